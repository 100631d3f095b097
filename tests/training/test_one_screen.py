"""The default answer: one screen of 24 lines by 80 columns; --details shows all of it, --quiet one line."""

import pytest

from gpucost.render import build, text
from gpucost.render.offers import budget_note, picks
from gpucost.render.text import write
from tests.training.market import BUCKET, answer, offer
from tests.training.test_estimate_command import RUN, gpucost

ROWS, COLUMNS = 24, 80
QUESTIONS = (
    (),
    ("--option", "spot"),
    ("--option", "on_demand", "--deadline", "7d"),
    ("--gpu", "h100", "--optimize", "time"),
    ("--optimize", "pareto"),
    ("--strict-prices",),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_the_default_answer_fits_one_screen(question):
    code, out, err = gpucost(*RUN, *question, COLUMNS=str(COLUMNS))
    assert code == 0
    lines = out.splitlines()
    assert len(lines) < ROWS, out  # a line is left for the prompt
    assert max(map(len, lines)) <= COLUMNS
    assert {"Price", "Model", "Assumes", "Range"} <= {line.split(" ")[0] for line in lines}
    assert sum("$" in line for line in lines) >= 3, "a row, its price, its range"
    assert err == ""


def test_details_show_what_the_screen_leaves_out():
    _, screen, _ = gpucost(*RUN, COLUMNS=str(COLUMNS))
    _, details, _ = gpucost(*RUN, "--details", COLUMNS=str(COLUMNS))
    for heading in ("Offers, lowest budget first", "Other ways to buy", "Bill of the top offer"):
        assert heading in details
        assert heading not in screen


def test_quiet_is_one_line_and_contradicts_other_formats():
    code, out, err = gpucost(*RUN, "--quiet")
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert out.startswith("Budget ")
    code, _, err = gpucost(*RUN, "--quiet", "--format", "json")
    assert code == 2
    assert "--quiet" in err


def test_a_warning_is_said_once():
    _, out, err = gpucost(*RUN, "--option", "spot", COLUMNS="200")
    warnings = [line for line in out.splitlines() if line.startswith("! ")]
    assert warnings
    assert all((out + err).count(line.removeprefix("! ")) == 1 for line in warnings)


def test_interruptible_offers_start_at_rank_1():
    _, out, _ = gpucost(*RUN, "--option", "spot", "--format", "csv", "--fields", "rank,option")
    ranks = [line.split(",")[0] for line in out.splitlines()[1:]]
    assert ranks == [str(rank) for rank in range(1, len(ranks) + 1)]


@pytest.mark.usefixtures("round_speeds")
def test_the_best_of_each_kind_stands_once():
    listed = [
        offer(0.8, option="spot"), offer(0.5, age_days=400), offer(1.5, provider="new"), offer(2.0, "slow"),
        offer(1.2, option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront"),
    ]  # fmt: skip
    found = answer(listed, spot=[BUCKET], commitment="used")["highlights"]
    kinds = {row["kind"]: (row["option"], row["provider"]) for row in found}
    assert kinds["lowest budget"] == ("on_demand", "acme")  # nothing is known against it
    assert len({str(row) for row in found}) == len(found)


def test_each_row_of_the_screen_says_its_budget_and_equal_ones_why():
    kept = {"kind": "lowest budget", "gpu": "h100-sxm5-80gb", "gpus": 8, "option": "on_demand", "term_months": 0,
            "provider": "acme", "age_days": 1, "budget_usd": 18_300.0}  # fmt: skip
    gone = {**kept, "kind": "if still there", "option": "spot", "age_days": 49}
    assert [row["budget"] for row in picks([kept, gone], "budget_usd")] == ["$18,300", "$18,300"]
    assert "equal" in budget_note([kept, gone], "budget_usd")
    assert "equal" not in budget_note([kept, {**gone, "budget_usd": 20_000.0}], "budget_usd")
    assert "equal" not in budget_note([{**kept, "budget_usd": None}] * 2, "budget_usd")  # an answer of before budgets


@pytest.mark.usefixtures("round_speeds")
def test_the_answer_stands_in_weight_on_a_terminal_only():
    document = build.document(answer([offer(1.0)]))
    assert "\x1b[1mTrain " in write(document, width=200, color=True, one_screen=True)
    assert "\x1b" not in text.write(document, width=200, color=False, one_screen=True)
