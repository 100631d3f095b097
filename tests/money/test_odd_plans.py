"""Plans, quotes, pools and supplies that cannot be are refused by their key; odd ones that can be are priced."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gpucost
from benchmarks.fuzz.good import (
    POOL,
    START,
    SUPPLY,
    answers,
)
from gpucost.errors import UsageError


def saved_answers():
    return {found["kind"]: found for found in map(json.loads, answers())}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("gpu = {low = 1}", "gpu"),
        ("gpu = true", "gpu"),
        ("provider = [1]", "provider"),
        ('draws = "x"', "draws"),
        ("draws = -1", "draws"),
        ('seed = "1e999"', "seed"),
        ("rent_stretch_ratio = 1e308", "rent_stretch_ratio"),
        ("pue_ratio = nan", "pue_ratio"),
        ("start_on = 5", "start_on"),
        ('residual_by_year = ["x"]', "residual_by_year"),
        ("residual_by_year = [nan]", "residual_by_year"),
        ("assessed_by_year = 3", "assessed_by_year"),
        ("depreciation_by_year = [[1]]", "depreciation_by_year"),
        ("rent_residual_correlation = 2", "rent_residual_correlation"),
        ("scenarios = 3", "scenarios"),
        ("[scenarios]\na = 3", "scenarios"),
        ("[scenarios.a]\nnothing = 3", "nothing"),
        ("rent_options = [1]", "rent_options"),
        ('[[rent_options]]\nname = "a"\nparts = 3', "parts"),
        ('[[rent_options]]\nname = "a"\nparts = [{share = "x"}]', "share"),
    ],
)
def test_a_value_of_another_kind_in_a_plan(refused, line, named):
    top = line if line.startswith("gpu") or line[0] == "[" else f'gpu = "h100-sxm"\n{line}'
    asked = ["tco", "--gpus", "8", "--plan", "plan.toml", *([] if line.startswith("gpu") else ["--gpu", "h100-sxm"])]
    assert named in refused(asked, plan=top)


def test_a_scenario_of_a_plan_changes_what_the_plan_may_say_and_names_no_other(refused):
    Path("two.toml").write_text(
        "[scenarios.a]\nlead_time_weeks = 36\nyears = 2\n"
        f"[scenarios.b]\nlead_time_months = {36 * 84 / 365}\nmonths = 24\n"
    )
    rows = gpucost.tco(gpu="h100-sxm", gpus=8, draws=0, plan="two.toml").payload["scenarios"]
    first, second = (row["saving_usd"] for row in rows if row["name"] in "ab")
    assert first == pytest.approx(second)
    asked = ["tco", "--gpus", "8", "--plan", "plan.toml"]
    assert "Did you mean" not in refused(asked, plan='gpu = "h100-sxm"\n[scenarios.a]\ndraws = 3')


@pytest.mark.parametrize("value", ["draws=x", "seed=-1", "residual_by_year=1", "currency=", "scenarios=1"])
def test_a_special_name_set_on_the_command_line(refused, value):
    assert value.partition("=")[0] in refused(["tco", "--gpu", "h100-sxm", "--gpus", "8", "--set", value])


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"reserved"\nusd', "{a = 1}\nusd"),
        ("1.9", "nan"),
        ("1.9", "inf"),
        ("1.9", "1e308"),
        ("1.9", '"x"'),
        ("= 12", "= inf"),
        ("= 12", "= 1.5"),
        ("= 12", "= 0"),
        ("[[supply]]", "[supply]"),
    ],
)
def test_a_supply_that_cannot_be(refused, good, bad):
    text = SUPPLY.decode()
    assert good in text
    refused(["mix", "--constant", "8", "--months", "6", "--plan", "plan.toml"], plan=text.replace(good, bad))


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("2026-01-01", "1.5"),
        ("2026-01-01", "2026-01-01T00:00:00Z"),
        ('"dgx-h100"', "[1]"),
        ("64", "nan"),
        ("64", "true"),
        ("64", "1e300"),
        ("1.7", "1e308"),
        ("1.7", "-1"),
        ('"lab"', "3"),
        ('name = "lab"', "nmae = 3"),
    ],
)
def test_a_pool_that_cannot_be(refused, good, bad):
    text = POOL.decode()
    assert good in text
    refused(["estimate", *START["estimate"], "--pool", "pool.toml"], pool=text.replace(good, bad))


@pytest.mark.parametrize(
    "asked",
    [{"set": set()}, {"set": 3}, {"rent": object}, {"rent": 1j}, {"plan": {1: 2}}, {"gpus": 10**400}],
)
def test_a_plan_in_python_refuses_values_of_other_types(asked):
    with pytest.raises(UsageError):
        gpucost.tco(**{"gpu": "h100-sxm", "gpus": 8, "draws": 0, **asked})


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (["--months", "12", "--lead-time", "100w"], "arrive after 23 months"),
        (["--years", "1", "--lead-time", "53w"], "lead time"),
        (["--utilisation", "0"], "utilisation"),
        (["--utilisation", "1e-308"], "so close to 0"),
    ],
)
def test_an_ownership_of_nothing_is_refused(refused, asked, reason):
    assert reason in refused(["tco", "--gpu", "h100-sxm", "--gpus", "64", *asked])


def test_a_long_lead_time_keeps_its_prices_above_zero():
    answer = gpucost.tco("h100-sxm", 1024, lead_time="100w", draws=0).payload
    assert all(option["levelised_usd_per_gpu_hour"] > 0 for option in answer["options"])
    assert answer["breakeven"]["months"] > 23
    assert {line["name"] for line in answer["lines"] if line["npv_usd"] < 0} <= {"own_resale_usd"}


def test_the_solver_writes_nothing_beside_the_answer(capfd, monkeypatch):
    from gpucost.money.mix import silent

    monkeypatch.setattr("threading.active_count", lambda: 1)  # whatever other tests have left running
    libc = ctypes.CDLL(None)
    with silent():
        libc.puts(b"from compiled code")
        libc.fflush(None)
    print("the answer", flush=True)
    assert capfd.readouterr().out == "the answer\n"
    asked = [sys.executable, "-m", "gpucost", "mix", "--constant", "33", "--gpu", "l40s", "--format", "json"]
    assert json.loads(subprocess.run(asked, capture_output=True).stdout)["kind"] == "mix"


def test_a_plan_is_printed_as_json_where_that_is_asked_for():
    from gpucost.cli import cli

    asked = ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--print-plan", "--format"]
    plan = json.loads(CliRunner().invoke(cli, [*asked, "json"]).stdout)
    assert plan["scope"]["gpus"] == 8
    assert gpucost.tco(plan=plan, draws=0).payload["request"]
    assert CliRunner().invoke(cli, [*asked, "csv"]).exit_code == 2


def test_the_best_interval_is_finite_whatever_the_rate():
    from gpucost.money.spot import optimal_interval_hours

    with np.errstate(all="raise"):
        found = optimal_interval_hours(np.array([1e-9, 1.0, 1e6, 1e12]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("supply", ['"x"', "3", "[1]", "[[1, 2]]", '""', "[]"])
def test_a_supply_of_a_scenario_that_is_no_table_is_refused(refused, supply):
    asked = 'model = "8b"\ntokens = "1b"\nname = "One"'
    assert "[supply]" in refused(["report", "s.toml", "-o", "out.md"], s=f"supply = {supply}\n[[training]]\n{asked}\n")


@pytest.mark.parametrize(
    ("rows", "column"),
    [("x,-2,", "usd_per_gpu_hour"), ("x,2,1.5", "term_months"), (",2,12", "name"), ("x,,12", "usd_per_gpu_hour")],
)
def test_a_quote_that_cannot_be_is_refused_by_its_row_and_column(refused, rows, column):
    Path("quotes.csv").write_text(f"name,usd_per_gpu_hour,term_months\nfine,2/h,12\n{rows}\n")
    said = refused(["tco", "--gpu", "h100-sxm", "--gpus", "8", "--rent", "quotes.csv"])
    assert f"quotes.csv:3:{column}" in said


@pytest.mark.parametrize(
    ("line", "key"),
    [('usd_per_gpu_hour = "-2"', "usd_per_gpu_hour"), ("usd_per_gpu_hour = 2\nnmae = 3", "nmae"), ("x = 1", "x")],
)
def test_a_supply_is_refused_by_its_key(refused, line, key):
    plan = f'gpu = "h100-sxm"\n[[supply]]\nname = "a"\nkind = "reserved"\nterm_months = 12\n{line}\n'
    said = refused(["mix", "--constant", "8", "--months", "6", "--plan", "plan.toml"], plan=plan)
    assert said.startswith("plan.toml:supply[0].")
    assert key in said or "required" in said


@pytest.mark.parametrize(
    "asked",
    [
        {"use_path": f"ramp from 20% over {'9' * 400} months"},
        {"use_path": f"from month {'9' * 400}: 20%"},
        {"quote": {"a": f"2/h, {'9' * 400} months"}},
        {"quote": {"a": "2/h, 1201 months"}},
    ],
)
def test_months_beyond_a_century_are_refused(asked):
    with pytest.raises(UsageError, match=r"beyond 1,200|no.* finite number"):
        gpucost.tco("h100-sxm", 8, draws=0, **asked)


def test_idle_accelerators_that_draw_more_than_busy_ones_are_refused(refused):
    said = refused(["tco", *START["tco"], "--set", "power_fraction_idle=1"])
    assert "power_fraction_idle" in said


def test_a_tax_that_takes_everything_leaves_no_price_before_tax(refused):
    assert "tax_rate_fraction = 1.0" in refused(["tco", "--gpu", "h100-sxm", "--gpus", "64", "--tax", "100%"])


def test_the_first_day_of_the_calendar_has_no_quarter_before_it():
    from datetime import date

    from gpucost.catalog.prices import quarters

    assert quarters(date(1, 1, 1), 3) == [date(1, 1, 1)]


def test_a_term_of_renting_is_whole_months(refused):
    assert "rent_term_months" in refused(["tco", "--gpu", "h100-sxm", "--gpus", "8", "--set", "rent_term_months=0.5"])


@pytest.mark.parametrize("correlation", [-1, 1])
def test_inputs_that_move_together_wholly_are_drawn(refused, correlation):
    Path("plan.toml").write_text(f"rent_residual_correlation = {correlation}")
    drawn = gpucost.tco(gpu="h100-sxm", gpus=8, draws=20, plan="plan.toml").payload["monte_carlo"]
    assert drawn["draws"] == 20


@pytest.mark.parametrize("name", ["own", "demand", "reserved"])
def test_a_supply_of_a_plan_has_a_name_of_its_own(refused, name):
    plan = SUPPLY.decode().replace('"reserved"\nkind', f'"{name}"\nkind') + SUPPLY.decode().partition("\n")[2]
    assert f"supply '{name}'" in refused(["mix", "--constant", "8", "--months", "6", "--plan", "plan.toml"], plan=plan)


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_day_from_which_no_months_can_be_counted_is_refused(refused, day):
    for asked in (["prices", "decline"], ["commit", "use.csv", "--on-demand", "4", "--committed", "2"]):
        assert "1900 to 2199" in refused([*asked, "--as-of", day])


def test_an_ownership_that_costs_nothing_a_month_has_a_page_without_a_moving_lead():
    from gpucost.render.tco import _lead

    answer = saved_answers()["tco"]
    assert _lead(answer, 2.0)
    for row in answer["by_utilisation"]:
        row["usd_per_gpu_month"] = 0
    assert _lead(answer, 2.0) == ""
