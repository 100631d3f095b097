"""Answers say which unsaid thing widens the range of speed most; once it is said, the range is what they promised."""

import re
from functools import partial

import pytest

import gpucost
from gpucost.calibration.fits import training_shipped
from gpucost.catalog import open_catalog
from gpucost.physics.software import CLASSES
from gpucost.physics.training.calibration import APART_SHARE, FUSED_DISPATCH_YEAR, FUSED_SHARE
from gpucost.physics.training.efficiency import FUSED, FUSED_YEAR
from gpucost.workloads.unsaid import ATTENTION, PREFIX, SERVER, STACK

CATALOG = open_catalog()
NAMES = ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu", "tokens_per_s_per_gpu_high")
PROMISE = re.compile(r"Saying [^(]*\(--([\w-]+)(?: \w+)?\).* most: (?:speed )?to about ([+-]\d+)% to ([+-]\d+)%")


def estimate(**wanted):
    answer = gpucost.estimate("8b", "10b", gpu="h100-sxm", gpus=8, catalog=CATALOG, **wanted)
    return answer.payload["lead"], [answer.best[name] for name in NAMES]


def throughput(**wanted):
    answer = gpucost.throughput("8b", gpu="h100-sxm", gpus=8, catalog=CATALOG, **wanted).payload
    return answer["lead"], [answer[name] for name in NAMES]


def inference(**wanted):
    answer = gpucost.inference("70b", gpu="h100-sxm", catalog=CATALOG, **wanted)
    return " ".join(answer.payload["said"]), [
        1 / answer.best[name] for name in ("tpot_ms_high", "tpot_ms", "tpot_ms_low")
    ]


EAGER = {"model": "1b", "gpu": "a100-80gb", "gpus": 1, "sequence": 2048, "software": "eager"}  # whose scores fit


def eager_estimate(**wanted):
    answer = gpucost.estimate(tokens="10b", option="on_demand", catalog=CATALOG, **{**EAGER, **wanted})
    return answer.payload["lead"], [answer.best[name] for name in NAMES]


def eager_throughput(**wanted):
    answer = gpucost.throughput(catalog=CATALOG, **{**EAGER, **wanted}).payload
    return answer["lead"], [answer[name] for name in NAMES]


def eager_layout(**wanted):
    return eager_throughput(tensor=1, micro_batch=4, **wanted)


def percent(ends):
    low, speed, high = ends
    return [100 * (low / speed - 1), 100 * (high / speed - 1)]


@pytest.mark.parametrize(
    ("ask", "unsaid", "said"),
    [
        (estimate, STACK.subject, {"software": "vendor"}),
        (throughput, STACK.subject, {"software": "vendor"}),
        (inference, SERVER.subject, {"server": "tuned"}),
        (partial(inference, server="tuned"), PREFIX.subject, {"prefix_hit": 0}),
        (eager_estimate, ATTENTION[0], {"flash": True}),
        (eager_throughput, ATTENTION[0], {"flash": True}),
        (eager_layout, ATTENTION[0], {"flash": True}),
    ],
)
def test_what_is_unsaid_narrows_the_range_as_promised_once_it_is_said(ask, unsaid, said):
    lead, before = ask()
    promise = PROMISE.search(lead)
    assert promise, lead
    assert promise[1].replace("-", "_") == next(iter(said))
    assert unsaid in lead
    silent, after = ask(**said)
    assert unsaid not in silent
    assert percent(after) == pytest.approx([float(promise[2]), float(promise[3])], abs=1.0)
    assert percent(before)[0] < percent(after)[0] - 2


@pytest.mark.parametrize(("ask", "own"), [(estimate, {"mfu": "40%"}), (throughput, {"mfu": "40%"})])
def test_a_measured_speed_leaves_nothing_to_be_said(ask, own):
    assert not PROMISE.search(ask(**own)[0])


@pytest.mark.parametrize("ask", [eager_estimate, eager_throughput, eager_layout])
def test_unsaid_attention_reaches_down_to_those_who_do_not_fuse_it(ask):
    (_, unsaid), (_, fused), (_, apart) = ask(), ask(flash=True), ask(flash=False)
    assert unsaid[1:] == fused[1:]  # what is usual is still the point
    assert apart[1] < 0.9 * fused[1]
    assert apart[0] < unsaid[0] < fused[0]


def mixture(**wanted):
    asked = {"gpu": "h200-sxm", "gpus": 64, "software": "megatron", "flash": True, "catalog": CATALOG}
    answer = gpucost.throughput("qwen3-30b-a3b", **asked, **wanted).payload
    return answer["lead"], [answer[name] for name in NAMES]


def test_an_unsaid_dispatcher_reaches_up_to_those_who_fuse_it():
    (lead, unsaid), (_, plain), (_, fused) = mixture(), mixture(dispatcher="alltoall"), mixture(dispatcher="fused")
    assert unsaid[:2] == plain[:2]  # what is usual is still the point
    assert fused[1] > 1.05 * plain[1]
    assert plain[2] < unsaid[2] < fused[2]
    assert PROMISE.search(lead)[1] == "dispatcher"
    old, said = (mixture(software_year=2024.5, **more)[1] for more in ({}, {"dispatcher": "alltoall"}))
    assert old == said, "there was no such kernel then"


@pytest.mark.slow
def test_the_share_of_fused_dispatchers_is_that_of_the_sources_that_say_so():
    rows = [row for row in training_shipped(CATALOG).rows if row.architecture.experts]
    rows = [row for row in rows if row.software_year >= FUSED_DISPATCH_YEAR and row.software != "compiler"]
    fused = {row.source for row in rows if row.dispatcher == FUSED}
    assert pytest.approx(len(fused) / len({row.source for row in rows}), abs=0.02) == FUSED_SHARE


def test_the_more_scores_there_are_the_more_their_kernel_may_cost_until_they_fit_no_memory():
    def reach(**wanted):
        low, speed, _ = eager_layout(**wanted)[1]
        return low / speed

    assert reach(sequence=4096) < reach(sequence=2048) < reach(sequence=512)
    assert reach(sequence=131_072) == pytest.approx(reach(sequence=131_072, flash=True))


@pytest.mark.slow
def test_the_share_without_fused_attention_is_that_of_the_sources_that_say_so():
    rows = [row for row in training_shipped(CATALOG).rows if row.software in ("eager", "unknown")]
    stated = [row for row in rows if row.software_year >= FUSED_YEAR and row.stated_attention]
    stated = [row for row in stated if "untuned" not in row.source]  # written out on purpose: nobody's habit
    apart = {row.source for row in stated if not row.flash}
    share = len(apart) / len({row.source for row in stated})
    assert APART_SHARE[CLASSES.index("eager")] == pytest.approx(share, abs=0.02)
    assert APART_SHARE[CLASSES.index("vendor")] == 0
