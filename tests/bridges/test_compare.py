"""Two answers compared: effects add up to the last digit, what changed comes first, anything that shares a figure."""

import json
from decimal import Decimal

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.bridges.compare import OF_A_RUN, REMAINDER, Cause, bridge, in_turn, of_owning, of_runs, side_by_side
from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.money.comparison import outcome
from gpucost.money.training_bill import INPUT_NAMES
from gpucost.render.json import dumps
from gpucost.render.text import write

NUMBERS = st.floats(0.01, 1e6)
FACTOR = st.floats(0.01, 1e4)  # a total of more than 1e13 holds no cents
THREE = st.fixed_dictionaries(dict.fromkeys(("speed", "hours", "price"), FACTOR))


def exactly(changes, difference):
    """Tell whether the effects add up to the difference, to the last digit that is written."""
    return sum((Decimal(repr(row["effect"])) for row in changes), Decimal(0)) == Decimal(repr(difference))


@given(THREE, THREE, st.floats(-0.02, 0.02))
@settings(max_examples=60, deadline=None)
def test_effects_in_turn_add_up_whatever_the_factors(before, after, off):
    causes = [Cause(name, name, (name,)) for name in before]
    ends = [values["hours"] * values["price"] / values["speed"] for values in (before, after)]
    ends[1] += off  # what another version rounded otherwise stands as the rest
    changes = in_turn(before, after, causes, lambda values: values["hours"] * values["price"] / values["speed"], ends)
    assert exactly(changes, float(round(Decimal(repr(ends[1])), 2) - round(Decimal(repr(ends[0])), 2)))


@given(st.dictionaries(st.sampled_from("abcd"), NUMBERS), st.dictionaries(st.sampled_from("abcd"), NUMBERS))
@settings(max_examples=60, deadline=None)
def test_effects_of_parts_add_up_whatever_the_parts(before, after):
    ends = sum(before.values()), sum(after.values())
    changes = side_by_side(before, after, ends)
    assert exactly(changes, float(round(Decimal(repr(ends[1])), 2) - round(Decimal(repr(ends[0])), 2)))


@pytest.fixture(scope="module")
def run():
    """A training run."""
    return gpucost.estimate("8b", "10b", option="reserved", top=1, with_facts=False).payload


@given(st.dictionaries(st.sampled_from(INPUT_NAMES), st.floats(0.5, 2.0), max_size=6))
@settings(max_examples=40, deadline=None)
def test_effects_of_a_bill_add_up_whatever_changes(run, moved):
    from gpucost.training.cases import recompute

    before = run["options"][0]["factors"]
    after = {**before, **{name: (before[name] or 0) * ratio for name, ratio in moved.items()}}
    ends = recompute(before)["cost_usd"], recompute(after)["cost_usd"]
    changes = of_runs(before, after, ends)
    assert exactly(changes, round(ends[1] - ends[0], 2))
    assert all(row["factor"] != REMAINDER for row in changes)


def test_the_factors_of_a_bill_have_a_cause_each():
    energy = {"rated_power_w", "power_fraction", "pue_ratio", "grid_kgco2e_per_kwh"}  # move carbon, not cost
    assert {name for cause in OF_A_RUN for name in cause.factors} == set(INPUT_NAMES) - energy


def test_a_dearer_price_alone_is_explained_by_price_alone(run):
    before = run["options"][0]["factors"]
    after = {**before, "usd_per_gpu_hour": 2 * before["usd_per_gpu_hour"]}
    from gpucost.training.cases import recompute

    found = of_runs(before, after, (run["options"][0]["cost_usd"], recompute(after)["cost_usd"]))
    assert [row["factor"] for row in found] == ["price"]


def test_an_answer_does_not_differ_from_itself(run):
    found = bridge(run, run)
    assert (found["changes"], found["what_changed"], found["difference"]) == ([], [], 0)


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


@pytest.fixture(scope="module")
def plan(catalog):
    """Owning against renting, without a simulation."""
    return gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog).payload


@given(st.data())
@settings(max_examples=5, deadline=None)
def test_effects_of_a_plan_add_up_whatever_input_changes(plan, data):
    model = plan["model"]
    known = {row["name"]: row["value"] for row in model["inputs"]}
    movable = [
        name for name, value in known.items() if name.endswith(("usd", "fraction", "usd_per_gpu_hour")) and value
    ]
    moved = data.draw(st.dictionaries(st.sampled_from(movable), st.floats(0.9, 1.0), min_size=1, max_size=3))
    after = {**known, **{name: known[name] * ratio for name, ratio in moved.items()}}
    tables = {name: np.array(rows) for name, rows in model["tables"].items()}
    worth = outcome({name: np.array([[v]]) if isinstance(v, float) else v for name, v in after.items()}, tables)
    ends = plan["npv_usd"]["saving"], float(worth.saving_usd[0])
    other = {**model, "inputs": [{**row, "value": after[row["name"]]} for row in model["inputs"]]}
    changes = of_owning(model, other, ends)
    assert exactly(changes, float(round(Decimal(repr(ends[1])), 2) - round(Decimal(repr(ends[0])), 2)))
    assert {row["factor"] for row in changes} <= {*moved, REMAINDER}


@pytest.mark.parametrize("order", [1, -1])
def test_plans_whose_prices_follow_other_rules_are_compared(catalog, order):
    """A server's price is a quote for one chip and follows from the board's for another: a rule needs its price."""
    asked = {"t4": {"gpus": 1, "years": 1, "tax": "25%"}, "a100-80gb": {"gpus": 8}}
    both = [gpucost.tco(gpu, draws=0, catalog=catalog, **given).payload for gpu, given in asked.items()][::order]
    rules = [next(row["value"] for row in one["assumptions"] if row["name"] == "server_price_basis") for one in both]
    assert len(set(rules)) == 2
    found = bridge(*both)
    assert exactly(found["changes"], found["difference"])
    assert "server_price_basis" in {row["factor"] for row in found["changes"]}


def test_a_cause_that_leaves_no_figure_waits_for_the_others():
    causes = [Cause(name, name, (name,)) for name in ("rule", "quote", "share", "hours")]
    before = {"rule": "share", "quote": float("nan"), "share": 3.0, "hours": 2.0}
    after = {"rule": "quote", "quote": 5.0, "share": float("nan"), "hours": 4.0}

    def figure(run):
        return run[run["rule"]] * run["hours"]

    rows = in_turn(before, after, causes, figure, (6.0, 20.0))
    assert [(row["factor"], row["effect"]) for row in rows] == [
        ("quote", 0.0), ("rule", 4.0), ("share", 0.0), ("hours", 10.0),
    ]  # fmt: skip
    with pytest.raises(ArithmeticError):
        in_turn(before, after | {"quote": float("nan")}, causes, figure, (6.0, 20.0))


@pytest.fixture(scope="module")
def answers(catalog, plan):
    """Two answers of each question."""
    ask = {"catalog": catalog, "with_facts": False, "top": 1}
    return {
        "estimate": [
            gpucost.estimate("8b", "10b", gpu=gpu, gpus=16, **ask).payload for gpu in ("h100-sxm", "h200-sxm")
        ],
        "inference": [gpucost.inference("8b", gpu=gpu, top=1, catalog=catalog).payload for gpu in ("l40s", "h200-sxm")],
        "throughput": [gpucost.throughput("8b", gpu, 8, catalog=catalog).payload for gpu in ("h100-sxm", "h200-sxm")],
        "tco": [plan, gpucost.tco("h200-sxm", 64, rent=3, years=5, draws=0, catalog=catalog).payload],
        "fit": [gpucost.fit("8b", "h100-sxm", gpus=gpus, catalog=catalog).payload for gpus in (8, 16)],
    }


@pytest.mark.parametrize("question", ["estimate", "inference", "throughput", "tco", "fit"])
def test_every_question_compares_exactly_and_says_first_what_changed(answers, question):
    first, second = (json.loads(dumps(one)) for one in answers[question])
    found = gpucost.compare(first, second)
    payload = found.payload
    assert payload["changes"]
    assert exactly(payload["changes"], payload["difference"])
    assert payload["difference"] == pytest.approx(payload["after_value"] - payload["before_value"], abs=0.006)
    assert payload["what_changed"][0]["name"] in ("gpu", "gpus")
    screen = write(found.document(), width=80, one_screen=True, color=False).splitlines()
    assert len(screen) <= 24
    assert max(map(len, screen)) <= 80
    heads = [number for number, line in enumerate(screen) if line.startswith(("what changed", "Effect of each cause"))]
    assert heads == sorted(heads)
    assert len(heads) == 2


def test_a_comparison_of_plans_says_values_with_units_sums_of_either_side_and_what_was_asked(answers):
    first = gpucost.tco(gpu="h100-sxm", gpus=8, rent=2.35, draws=0, set={"wacc_fraction": 0.1}).to_dict()
    second = gpucost.tco(gpu="h100-sxm", gpus=8, rent=2.35, draws=0, set={"wacc_fraction": 0.14}).to_dict()
    found = gpucost.compare(first, second)
    text = write(found.document(), width=120, color=False)
    cause = next(line.split() for line in text.splitlines() if line.startswith("WACC"))
    total = next(line.split() for line in text.splitlines() if line.startswith("total"))
    assert cause[2:4] == ["10.0%", "14.0%"]
    assert [cause[4], cause[5], cause[6]] == total[1:]
    assert "e+0" not in text
    asked = next(part for part in found.document().sections if part.title == "Arguments that differ")
    assert [row["after"] for row in asked.blocks[0].rows] == ["{'wacc_fraction': 0.14}"]


def test_an_estimate_and_a_layout_share_their_speed(answers):
    found = gpucost.compare(answers["estimate"][0], answers["throughput"][0]).payload
    assert found["figure"] == "gpu_s_per_mtok"
    assert found["after_value"] == pytest.approx(1e6 / answers["throughput"][0]["tokens_per_s_per_gpu"])


def test_answers_without_a_common_figure_are_refused(answers):
    with pytest.raises(UsageError, match="no figure to compare estimate with tco"):
        gpucost.compare(answers["estimate"][0], answers["tco"][0])
    for asked, said in (({}, "fit without gpu="), ({"serving": True, "gpu": "h100-sxm"}, "fit --serving")):
        with pytest.raises(UsageError, match=rf"to compare {said} by. .* fit of training on one gpu="):
            gpucost.compare(*[gpucost.fit("8b", **asked)] * 2)
    with pytest.raises(UsageError, match="option 9"):
        gpucost.compare(*answers["estimate"], rank=9)
    with pytest.raises(UsageError, match=r"(--model|model=) and (--gpu|gpu=)"):
        gpucost.compare()
    with pytest.raises(UsageError, match="given twice"):
        gpucost.compare(*answers["estimate"], model="8b")


SCENARIO = """
[[training]]
name = "now"
model = "8b"
tokens = "10b"
gpu = "h100-sxm"
gpus = 16
top = 1

[[training]]
name = "later"
model = "8b"
tokens = "20b"
gpu = "h100-sxm"
gpus = 16
top = 1

[[comparison]]
name = "why"
first = "now"
second = "later"
"""


def test_parts_of_a_scenario_are_compared_by_name_alone_and_in_the_report(tmp_path, answers):
    file = tmp_path / "plan.toml"
    file.write_text(SCENARIO)
    asked = CliRunner().invoke(cli, ["compare", f"{file}#now", f"{file}#later", "--format", "json"])
    by_name = json.loads(asked.output)
    assert (by_name["first"], by_name["second"]) == ("now", "later")
    assert by_name["changes"][0]["factor"] == "tokens"
    report = gpucost.report(file)
    parts = {part["name"]: part["payload"] for part in report.payload["parts"]}
    assert json.loads(dumps(parts["why"]["changes"])) == by_name["changes"]
    assert gpucost.compare(report).payload["difference"] == parts["why"]["difference"]
    both = gpucost.compare(report, report).payload
    assert [part["name"] for part in both["parts"]][:2] == ["now", "later"]
    assert all(part["payload"]["difference"] == 0 for part in both["parts"] if part["part"] == "training")
    with pytest.raises(UsageError, match=r"no part 'never'\. Parts: now, later, why"):
        gpucost.compare(f"{file}#never", f"{file}#now")


def test_models_on_accelerators_stand_side_by_side_with_the_answers_of_their_questions(catalog):
    found = gpucost.compare(model=["8b", "70b"], gpu="h100-sxm,h200", tokens="10b", catalog=catalog).payload
    assert [(row["model"], row["gpu"]) for row in found["rows"]] == [
        ("8b", "h100-sxm"), ("8b", "h200"), ("70b", "h100-sxm"), ("70b", "h200"),
    ]  # fmt: skip
    row = found["rows"][1]
    run = gpucost.estimate("8b", "10b", gpu="h200", top=1, with_facts=False, catalog=catalog).best
    served = gpucost.inference("8b", gpu="h200", top=1, catalog=catalog).best
    assert (row["cost_usd"], row["days"]) == (run["cost_usd"], run["days"])
    assert row["usd_per_mtok"] == served["usd_per_mtok"]
    assert row["times_first"] == row["cost_usd"] / found["rows"][0]["cost_usd"]


def test_models_side_by_side_have_no_causes_and_say_so(catalog):
    found = gpucost.compare(model="8b", gpu="h100-sxm,h200", tokens="10b", catalog=catalog)
    with pytest.raises(UsageError, match=r"to_frame\(\)"):
        _ = found.changes
    assert len(found.to_frame()) == 2


def test_what_cannot_be_trained_or_served_says_why(catalog):
    row = gpucost.compare(model="405b", gpu="v100-sxm2-16gb", tokens="10t", catalog=catalog).payload["rows"][0]
    assert row["cost_usd"] is None
    assert row["note"]


def test_over_pcie_a_step_loses_what_its_links_gave(catalog):
    found = gpucost.compare(model="70b", gpu="h100-sxm", gpus=64, speed=True, catalog=catalog).payload
    own = gpucost.throughput("70b", "h100-sxm", 64, catalog=catalog)
    pcie = gpucost.throughput("70b", "h100-sxm", 64, links="pcie", catalog=catalog)
    assert own.tokens_per_s_per_gpu > pcie.tokens_per_s_per_gpu
    assert found["difference"] == pytest.approx(1e6 / pcie.tokens_per_s_per_gpu - 1e6 / own.tokens_per_s_per_gpu, 1e-4)
    assert exactly(found["changes"], found["difference"])
    # one layout: a part of a step that goes over NVLink slows by no more than NVLink is faster: 450 against
    # half of 64 GB/s, for what PCIe carries passes the host's memory
    layout = {"tensor": 8, "sharding": 1, "micro_batch": 1, "recompute": "full"}
    timed = [
        gpucost.throughput("70b", "h100-sxm", 8, links=links, catalog=catalog, **layout) for links in ("own", "pcie")
    ]
    seconds = [{row["part"]: row["time_s"] for row in one.payload["parts"]} for one in timed]
    assert seconds[0]["matrix"] == seconds[1]["matrix"]
    assert 2 < seconds[1]["tensor"] / seconds[0]["tensor"] < 450 / 32
