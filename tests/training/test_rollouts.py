"""Training on answers that the model writes: the phases of a step by hand, what moves them, and what is refused."""

import json
import re
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from msgspec.structs import replace

import gpucost
from gpucost.ask.estimate import rerun
from gpucost.calibration import reinforcement
from gpucost.calibration.measurements import statistics
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import UsageError
from gpucost.market.supply import Key
from gpucost.render.json import dumps
from gpucost.workloads.rollouts import NOT_PRICED, phases_of, writer_of
from gpucost.workloads.speeds import search_layouts
from gpucost.workloads.training import Rollouts, make_workload

CATALOG = open_catalog()
README = Path(__file__).parents[2] / "README.md"
CALIBRATION = replace(training_calibration(CATALOG), generation=serving_calibration(CATALOG))
H100 = CATALOG.accelerator("h100-sxm5-80gb")
KEY = Key(H100, CATALOG.default_system(H100.id))
EIGHT = np.array([8], dtype=np.int64)


def made(output_tokens=2000.0, batch=1024, reference=False, answers=16):
    rollouts = Rollouts(answers, 250.0, output_tokens, reference)
    return make_workload(CATALOG.architecture("llama-3.1-8b"), global_batch=batch, rollouts=rollouts)


def step(workload, gpus=EIGHT):
    """Return the phases of a step, and the training step alone."""
    alone = search_layouts(replace(workload, rollouts=None), [KEY], gpus, CALIBRATION)
    tokens = workload.global_batch * workload.sequence_tokens / gpus
    training_s = tokens / alone.tokens_per_s_per_gpu
    writer = writer_of(workload, [KEY], gpus, CALIBRATION)
    return phases_of(workload, writer, [KEY], gpus, training_s, alone.parts_s, alone.layout.recompute), alone, writer


def ask(**more):
    wanted = {"model": "8b", "tokens": "2b", "method": "grpo", "rollouts": 16, "output_tokens": 2000, "gpu": "h100-sxm"}
    return gpucost.estimate(**{**wanted, **more}, catalog=CATALOG)


def test_a_sequence_is_a_prompt_and_its_answer_and_a_step_512_prompts_where_nobody_says():
    workload = make_workload(CATALOG.architecture("llama-3.1-8b"), tokens=1e12, rollouts=Rollouts(16, 250.0, 2000.0))
    assert (workload.sequence_tokens, workload.global_batch) == (2250, 512 * 16)


def test_scoring_is_the_forward_part_of_a_training_step_and_a_reference_scores_again():
    """Forward is one of three passes, one of four where activations are computed again: never more than a third."""
    (policy, alone, _), (both, _, _) = step(made()), step(made(reference=True))
    assert 0.2 * policy.training_s[0] < policy.scoring_s[0] < policy.training_s[0] / 3
    assert both.scoring_s[0] == pytest.approx(2 * policy.scoring_s[0])
    assert alone.fits.all()


def test_handing_weights_over_by_hand():
    """16.06 GB to an engine of one accelerator over NVLink at 450 GB/s: 36 ms."""
    phases, _, writer = step(made())
    assert phases.handing_s[0] == pytest.approx(
        16.06e9 / writer.tensor[0] / (KEY.system.scaleup_gb_per_s * 1e9), rel=0.01
    )


def test_writing_is_never_faster_than_reading_the_weights_once_a_token_of_the_longest_run():
    """1,024 answers on 8 accelerators: at least 2,000 steps on average, each reads 15 GB at 3.35 TB/s and the cache."""
    phases, _, writer = step(made())
    assert phases.writing_s[0] > 2000 * 15e9 / writer.tensor[0] / 3.35e12


def test_longer_answers_cost_more_in_every_phase_and_writing_most():
    short, long = (step(made(output_tokens=tokens))[0] for tokens in (1000.0, 8000.0))
    for name in ("writing_s", "scoring_s", "training_s"):
        assert getattr(long, name)[0] > getattr(short, name)[0], name
    shares = [float(one.writing_s[0] / one.total_s[0]) for one in (short, long)]
    assert shares[1] > shares[0]


def test_few_answers_leave_engines_half_empty():
    """Twice the accelerators for the same answers: the longest answer takes as long, so that writing hardly halves."""
    eight, sixteen = (step(made(batch=256), np.array([n], dtype=np.int64))[0] for n in (8, 16))
    assert sixteen.writing_s[0] > 0.6 * eight.writing_s[0]


def test_an_estimate_costs_more_than_training_on_the_same_tokens_and_says_its_phases():
    answers, given = ask(), gpucost.estimate(model="8b", tokens="2b", sequence=2250, gpu="h100-sxm", catalog=CATALOG)
    assert answers.best["gpu_hours"] > 1.3 * given.best["gpu_hours"]
    assert "writing answers" in answers.payload["lead"]
    assert any("reward" in line for line in answers.payload["not_included"])
    drivers = {row["name"]: row["share_fraction"] for row in answers.payload["drivers"]}
    assert drivers["steps: writing answers"] > 0.05
    assert sum(drivers.values()) <= 1.001
    assert not any("reward" in line for line in given.payload["not_included"])


def test_the_parts_of_a_step_give_its_speed():
    best = ask().best
    tokens = best["layout"]["global_batch"] * 2250
    assert tokens / sum(best["components"].values()) / best["gpus"] == pytest.approx(
        best["tokens_per_s_per_gpu"], rel=1e-6
    )
    assert {"writing_answers_s", "scoring_answers_s", "handing_weights_over_s"} <= set(best["components"])


def test_its_range_is_wider_than_that_of_training():
    answers, given = ask(), gpucost.estimate(model="8b", tokens="2b", sequence=2250, gpu="h100-sxm", catalog=CATALOG)
    wide, narrow = (
        one.best["tokens_per_s_per_gpu_high"] / one.best["tokens_per_s_per_gpu_low"] for one in (answers, given)
    )
    assert wide > narrow


def test_a_saved_estimate_is_reproduced_by_both_calibrations():
    saved = json.loads(dumps(ask().payload))
    again = json.loads(dumps(rerun(saved, training_calibration(CATALOG))))
    assert again["options"][0]["cost_usd"] == saved["options"][0]["cost_usd"]
    assert again["calibration"] == saved["calibration"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"output_tokens": None}, "needs output_tokens="),
        ({"rollouts": None, "output_tokens": None}, "needs rollouts= and output_tokens="),
        ({"sequence": 4096}, '^sequence= does not go with method="grpo"'),
        ({"mfu": "40%"}, 'does not go with method="grpo"'),
        ({"method": "full"}, 'only with method="grpo"'),
    ],
)
def test_what_is_missing_or_said_twice_is_refused(changed, said):
    with pytest.raises(UsageError, match=said):
        ask(**changed)


@pytest.fixture(scope="module")
def published():
    return reinforcement.predict(CATALOG.rows("rl_measurements"), CATALOG)


def test_published_steps_are_predicted_where_they_state_what_is_written_and_skipped_with_the_reason_elsewhere(
    published,
):
    items, skipped = published
    assert {item.id for item in items} >= {"rl-053", "rl-059"}
    assert all(item.low < item.predicted < item.high for item in items)
    reasons = {row["id"]: row["reason"] for row in skipped}
    assert "answers" in reasons["rl-061"]
    assert len(items) + len(skipped) == len(CATALOG.rows("rl_measurements"))


def test_reinforcement_learning_is_not_priced_until_a_step_is_within_half_in_a_range_of_less_than_four(published):
    """Over steps and over sources; README and answers say the same, and the most that published steps missed by."""
    items, _ = published
    found = statistics(items)
    widest = max(
        median(one.high / one.low for one in items if one.source == name) for name in {i.source for i in items}
    )
    errors = found["median_abs_error_fraction"], found["macro_median_abs_error_fraction"]
    priced = max(errors) < 0.5 and widest < 4
    readme = README.read_text("utf-8")
    assert priced is False
    in_readme = re.findall(r"(\d+) %", readme.partition("Reinforcement learning is not priced")[2])[:2]
    assert [int(number) / 100 for number in in_readme] == [pytest.approx(one, abs=0.03) for one in errors]
    low, high = (extreme(one.measured / one.predicted for one in items) for extreme in (min, max))
    stated = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", NOT_PRICED)]
    assert stated == [pytest.approx(low, rel=0.2), pytest.approx(high, rel=0.2)]


def test_an_answer_on_reinforcement_learning_says_that_it_is_no_budget():
    answer = ask()
    assert answer.to_dict()["warnings"][0] == NOT_PRICED
    assert "below the budget" not in answer.to_text()
    usual = gpucost.estimate(model="8b", tokens="2b", gpu="h100-sxm", catalog=CATALOG)
    assert NOT_PRICED not in usual.to_dict()["warnings"]


def test_more_accelerators_shorten_a_published_step(published):
    """verl on 32, 64 and 128 H20: the same 8,192 answers."""
    by_id = {item.id: item.predicted for item in published[0]}
    assert by_id["rl-053"] > by_id["rl-054"] > by_id["rl-055"]
