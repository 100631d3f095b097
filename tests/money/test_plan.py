"""Plan files and flags: every input by name, refused clearly where it cannot be, and back again without loss."""

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli.question import command_of
from gpucost.errors import DataError, GpuCostError, PriceMissingError, UnknownNameError, UsageError
from gpucost.market.hires import rentable
from gpucost.ownership.assemble import registry_of
from tests.money.plans import catalog
from tests.rules import for_each

command = command_of("tco")


def tco(**wanted):
    return gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog(), **wanted).payload


def value(payload, name):
    return next(entry for entry in payload["assumptions"] if entry["name"] == name)


@pytest.mark.slow
@for_each(
    "row",
    [row for row in catalog().rows("plan_inputs") if row["name"] not in registry_of(catalog()).choices],
    lambda row: row["name"],
)
def test_every_input_can_be_set_by_name(row):
    special = {
        "months": 36.0,
        "months_per_year": 12.0,
        "hours_per_month": 720.0,
        "depreciation_years": 4.0,
        "gpus": 16.0,
        "rent_term_months": 12.0,
    }
    wanted = special.get(row["name"], max(row["minimum"] or 0.0, 0.0) + 0.5)
    condition = registry_of(catalog()).conditions.get(row["name"])
    chosen = {condition.input: condition.choices[0]} if condition else {}
    needed = {"residual_fraction": 0.3} if chosen == {"residual_basis": "given"} else {}
    needed |= {"rent_term_months": 12.0} if row["name"] == "rent_upfront_fraction" else {}
    needed |= {"tokens_per_s_per_gpu": 1000.0} if chosen == {"income_basis": "per_mtok"} else {}
    plan = {"rent_usd_per_gpu_hour": 2.35, **needed, **chosen, row["name"]: wanted}
    found = value(gpucost.tco("h100-sxm", plan=plan, draws=0, catalog=catalog()).payload, row["name"])
    assert (found["value"], found["status"], found["counts"]) == (wanted, "given", True)


@pytest.mark.parametrize("given", [12.5, {"value": 12, "low": 6, "high": 24}, {"value": 12, "high": 24}])
def test_a_term_is_a_whole_number_of_months_and_no_range(given):
    plan = {"rent_usd_per_gpu_hour": 2.35, "rent_term_months": given}
    with pytest.raises(UsageError, match="months"):
        gpucost.tco("h100-sxm", plan=plan, draws=0, catalog=catalog())


def test_every_default_is_sourced_derived_or_marked_as_assumed():
    for entry in tco()["assumptions"]:
        if entry["status"] == "sourced":
            assert catalog().source(entry["source_id"])["locator"]
        else:
            assert entry["status"] in ("given", "assumed", "derived")
        if entry["low"] is not None and isinstance(entry["value"], float):
            assert entry["low"] <= entry["value"] <= entry["high"], entry["name"]


@pytest.mark.parametrize(("ends", "read"), [({"low": 1.2}, (1.2, 1.3)), ({"high": 1.5}, (1.3, 1.5))])
def test_a_range_with_one_end_ends_at_its_value_on_the_other_side(ends, read):
    payload = gpucost.tco("h100-sxm", 8, plan={"pue_ratio": {"value": 1.3, **ends}}, draws=0, catalog=catalog()).payload
    (pue,) = (row for row in payload["assumptions"] if row["name"] == "pue_ratio")
    assert (pue["low"], pue["high"]) == read


def test_values_come_from_the_ownership_table():
    payload = tco()
    facts = {row["item"]: row for row in (*catalog().rows("ownership"), *catalog().rows("energy"))}
    for row in catalog().rows("plan_inputs"):
        if row["item"]:
            stated = facts[row["item"]]["typical"]
            months = 48 if row["name"] == "loan_term_months" else stated  # a loan ends with the comparison
            assert value(payload, row["name"])["value"] == min(stated, months), row["name"]


def test_a_plan_reads_back_to_the_same_answer(tmp_path):
    first = gpucost.tco(
        "h100-sxm",
        64,
        utilisation="70%",
        rent=2.35,
        catalog=catalog(),
        plan={
            "financing": "loan",
            "residual_by_year": [0.7, 0.5],
            "scenarios": {"dear power": {"electricity_usd_per_kwh": 0.3}},
            "rent_options": [{"name": "blend", "parts": [{"share": 1.0, "rent_usd_per_gpu_hour": 2.0}]}],
            "currency": "EUR",
            "start_on": "2027-01-01",
        },
    )
    file = tmp_path / "plan.toml"
    file.write_text(first.to_plan())
    second = gpucost.tco(plan=str(file), catalog=catalog())
    for key in ("npv_usd", "breakeven", "monte_carlo", "scenarios", "irr_fraction", "cash_flows", "currency"):
        assert first.payload[key] == second.payload[key], key
    kept = [
        (a["status"], b["status"])
        for a, b in zip(first.assumptions, second.assumptions, strict=True)
        if a["status"] == "sourced" and a["counts"]
    ]
    assert set(kept) == {("sourced", "sourced")}


def test_flags_win_over_the_plan_and_sections_are_for_the_reader(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        '[anything]\ngpus = 16\npue_ratio = {value = 1.2, low = 1.1, high = 1.3, source = "contract"}\nyears = 3\n'
        '[rent.deep]\nrent_usd_per_gpu_hour = "2.10"\n'
    )
    payload = gpucost.tco("h100-sxm", plan=str(file), years=2, draws=0, catalog=catalog()).payload
    assert [value(payload, name)["value"] for name in ("gpus", "months", "rent_usd_per_gpu_hour", "pue_ratio")] == [
        16,
        24,
        2.1,
        1.2,
    ]
    assert value(payload, "pue_ratio")["note"] == "contract"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"utilisation_fraction": 1.2}, "utilisation_fraction"),
        ({"utilisation": "120%"}, "0 to 100"),
        ({"years": 0}, "outside 0.01 to 100"),
        ({"months": 0}, "at least|1 to 240"),
        ({"facility_life_years": 0, "facility_basis": "own"}, "facility_life_years"),
        ({"depreciation_years": 0}, "depreciation_years"),
        ({"depreciation_years": 2.5}, "whole number"),
        ({"server_usd": -1}, "server_usd"),
        ({"rent_usd_per_gpu_hour": -2.35}, "rent_usd_per_gpu_hour"),
        ({"rent_usd_per_gpu_hour": 0}, "positive"),
        ({"electricity_usd_per_kwh": "cheap"}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": "0,12"}, "has a comma that does not separate thousands"),
        ({"server_usd": "1.234,56"}, "has a comma that does not separate thousands"),
        (
            {"server_usd": {"value": 280000, "low": "1,5", "high": "300,000"}},
            "has a comma that does not separate thousands",
        ),
        ({"usd_per_unit": "1,10", "currency": "EUR"}, "usd_per_unit: .*has a comma that does not separate thousands"),
        ({"wacc_fraction": float("nan")}, "wacc_fraction"),
        ({"financing": "gift"}, "cash, loan, lease"),
        ({"server_usd": 0}, "positive"),
        ({"pue_ratio": 0.9}, "pue_ratio"),
        ({"pue_ratio": {"value": 1.3, "low": 1.4, "high": 1.5}}, "own range"),
        ({"pue_ratio": {"value": 1.3, "low": 1.4}}, "own range"),
        ({"pue_ratio": {"value": 1.3, "high": 1.2}}, "own range"),
        ({"pue_ratio": {"value": 1.3, "lowest": 1.2}}, "lowest"),
        ({"residual_by_year": [1.2]}, "outside 0 to 1"),
        ({"residual_by_year": 3}, "list"),
        ({"depreciation_by_year": [0.5, 0.4]}, "add up"),
        ({"rent_path": "zigzag"}, "zigzag"),
        ({"months": 36.5}, "whole number"),
        ({"rent_options": [{"name": "x", "parts": [{"share": 0.4}]}]}, "add up"),
        ({"scenarios": {"s": {"pue_ratio": 0.1}}}, "pue_ratio"),
        ({"facility_basis": "own", "facility_usd_per_mw": -5}, "facility_usd_per_mw"),
        ({"residual_basis": "given"}, "residual_fraction is needed"),
        ({"server_price_basis": "all_in"}, "all_in_usd_per_gpu"),
        ({"goodput_fraction": 0}, "goodput_fraction"),
        ({"rent_upfront_fraction": 1}, "^rent: 100%.*rent_upfront_fraction"),
        ({"rent_upfront_fraction": {"value": 0, "high": 0.5}}, "^rent: 50%"),
        ({"quote": {"a": "2/h, take-or-pay, 100% upfront"}}, "rent option 'a': 100%"),
        ({"rent_options": [{"name": "b", "rent_upfront_fraction": 0.2}]}, "rent option 'b': 20%"),
        ({"scenarios": {"s": {"rent_upfront_fraction": 0.3}}}, "scenario s: 30%"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(plan, words):
    with pytest.raises((UsageError, PriceMissingError), match=words):
        gpucost.tco("h100-sxm", 64, plan={"rent_usd_per_gpu_hour": 2.35, **plan}, catalog=catalog())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nyears = 3\n[b]\nyears = 2", "years is given twice"),
        ("[a]\npue_ratio = 1.3\n[b]\npue_ratio = 1.2", "pue_ratio is given twice"),
        ('[a.quote]\nx = "2/h"\n[b.quote]\ny = "2/h"', "quote is given twice"),
        ("[a.scenarios.s]\npue_ratio = 1.3\n[b.scenarios.s]\npue_ratio = 1.2", "s is given twice"),
        ("months = 12\n[b]\nyears = 3", "months is given twice, also by years"),
        ("utilisation = 0.5\nutilisation_fraction = 0.9", "utilisation_fraction is given twice, also by utilisation"),
        ("lead_time_months = 2\nlead_time_weeks = 3", "lead_time_months is given twice, also by lead_time_weeks"),
        ('rent_path = "flat"\nrent_path_basis = "observed_v"', "rent_path_basis is given twice, also by rent_path"),
        ("[scenarios.s]\nmonths = 12\nyears = 3", "months is given twice, also by years"),
    ],
)
def test_what_a_plan_says_twice_is_refused(tmp_path, text, said):
    (tmp_path / "plan.toml").write_text(f"rent_usd_per_gpu_hour = 2.35\n{text}\n")
    with pytest.raises(UsageError, match=said):
        tco(plan=str(tmp_path / "plan.toml"))


@pytest.mark.parametrize(
    "twice",
    [
        {"years": 4, "set": {"months": 12}},
        {"rent_path": "flat", "set": {"rent_path_basis": "observed_v"}},
        {"lead_time": 3, "set": {"lead_time_months": 2}},
    ],
)
def test_an_argument_and_an_input_that_mean_the_same_are_refused(twice):
    with pytest.raises(UsageError, match=f"{next(iter(twice['set']))} is given twice, also by"):
        tco(**twice)


@pytest.mark.parametrize(("name", "given"), [("gpus", "banana"), ("rent_usd_per_gpu_hour", 0), ("months", "long")])
def test_what_a_flag_overrules_is_checked_too(name, given):
    with pytest.raises(UsageError, match=f"plan: {name}"):
        tco(plan={name: given}, months=12)


def test_unknown_inputs_get_the_nearest_names():
    with pytest.raises(UnknownNameError, match="pue_ratio"):
        tco(pue_ration=1.2)
    with pytest.raises(UnknownNameError, match="utilisation_fraction"):
        gpucost.tco("h100-sxm", 8, plan={"utilization_fraction": 0.7}, catalog=catalog())


def test_a_broken_or_missing_plan_file_is_refused(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text("gpus = = 3")
    with pytest.raises(DataError, match=r"plan\.toml"):
        gpucost.tco("h100-sxm", plan=str(file), catalog=catalog())
    with pytest.raises(UsageError, match=r"cannot (be )?read"):
        gpucost.tco("h100-sxm", plan=str(tmp_path / "none.toml"), catalog=catalog())


def test_a_rent_curve_with_a_gap_is_refused_and_a_good_one_is_used(tmp_path):
    curve = tmp_path / "curve.csv"
    curve.write_text("month,usd_per_gpu_hour\n1,2.0\n3,1.8\n")
    with pytest.raises(DataError, match=r"curve\.csv:3:month"):
        gpucost.tco("h100-sxm", 8, rent_curve=str(curve), catalog=catalog())
    curve.write_text("month,usd_per_gpu_hour\n1,2.0\n2,1.5\n3,1.0\n")
    payload = gpucost.tco(
        "h100-sxm", 8, rent_curve=str(curve), utilisation=1, months=6, draws=0, catalog=catalog()
    ).payload
    compute = [row["rent_compute_usd"] / (8 * 730) for row in payload["cash_flows"]]
    assert compute[1:] == pytest.approx([2.0, 1.5, 1.0, 1.0, 1.0, 1.0])


def test_the_files_of_a_plan_are_beside_it_and_those_of_flags_are_not(tmp_path, monkeypatch):
    (tmp_path / "d").mkdir()
    rents, rates = "month,usd_per_gpu_hour\n1,2.0\n2,1.5\n", "month,usd_per_unit\n1,1.25\n"
    for name, text in {"d/r.csv": rents, "d/e.csv": rates, "mine.csv": rents.replace("2.0", "4.0")}.items():
        (tmp_path / name).write_text(text)
    plan = tmp_path / "d" / "p.toml"
    plan.write_text('rent_curve = "r.csv"\ncurrency = "EUR"\ncurrency_curve = "e.csv"\n')
    monkeypatch.chdir(tmp_path)

    def rented(**more):
        made = gpucost.tco("h100-sxm", 8, plan="d/p.toml", draws=0, catalog=catalog(), **more)
        return made, value(made.payload, "rent_usd_per_gpu_hour")["value"], made.payload["currency"]["rates"][1]

    made, *found = rented()
    assert found == [2.0, 1.25]
    assert rented(rent_curve="mine.csv")[1:] == (4.0, 1.25)
    plan.write_text(made.to_plan())
    assert rented()[1:] == (2.0, 1.25)


def test_without_a_price_the_market_or_the_provider_gives_one():
    market = gpucost.tco("h100-sxm", 64, draws=0, catalog=catalog()).payload
    rent = value(market, "rent_usd_per_gpu_hour")
    assert rent["status"] == "sourced"
    assert rent["low"] <= rent["value"] <= rent["high"]
    assert "(seen " in rent["note"]
    crusoe = gpucost.tco("h100-sxm", 64, provider="crusoe", draws=0, catalog=catalog()).payload
    first = next(
        entry
        for entry in rentable(catalog(), "h100-sxm5-80gb", 64, provider="crusoe", option="on_demand")
        if entry.offer.gpus == 8
    )
    assert value(crusoe, "rent_usd_per_gpu_hour")["value"] == first.usd_per_gpu_hour
    with pytest.raises(GpuCostError):
        gpucost.tco("h100-sxm", 64, provider="no such cloud", catalog=catalog())


def test_an_ambiguous_accelerator_is_refused():
    with pytest.raises(GpuCostError, match="ambiguous"):
        gpucost.tco("hopper", 8, rent=2.0, catalog=catalog())


def test_a_training_workload_sets_utilisation_by_its_gpu_hours():
    payload = gpucost.tco(
        "h100-sxm", 64, rent=2.35, model="8b", tokens="1t", runs_per_year=4, draws=0, catalog=catalog()
    ).payload
    used, speed = (value(payload, name)["value"] for name in ("utilisation_fraction", "tokens_per_s_per_gpu"))
    hours = 4 * 1e12 / (speed * 3600) / value(payload, "goodput_fraction")["value"]
    assert used == pytest.approx(hours / (64 * 8760))
    mtok = speed * 3600 / 1e6
    assert payload["levelised_usd_per_mtok"] == pytest.approx(payload["levelised_usd_per_gpu_hour_productive"] / mtok)
    with pytest.raises(UsageError, match="at least"):
        gpucost.tco("h100-sxm", 8, rent=2.35, model="8b", tokens="15t", runs_per_year=4, catalog=catalog())


def test_no_runs_a_year_are_not_one():
    with pytest.raises(UsageError, match="runs_per_year = 0"):
        gpucost.tco("h100-sxm", 64, rent=2.35, model="8b", tokens="1t", runs_per_year=0, catalog=catalog())


def test_a_serving_load_sets_utilisation_by_its_tokens():
    payload = tco(plan={"tokens_per_s_per_gpu": 1_000, "goodput_fraction": 1.0}, tokens_per_month="80b")
    assert value(payload, "utilisation_fraction")["value"] == pytest.approx(80e9 / (1_000 * 3600 * 730 * 64))


@pytest.mark.parametrize("name", ["prompt_tokens", "output_tokens"])
def test_a_length_says_nothing_beside_a_stated_speed(name):
    for stated in ({"tokens_per_s_per_gpu": 1_000}, {"set": {"tokens_per_s_per_gpu": 1_000}}):
        with pytest.raises(UsageError, match=f"^{name}=: tokens_per_s_per_gpu"):
            gpucost.tco(gpu="h100-sxm", model="8b", tokens_per_month="80b", draws=0, **stated, **{name: 300})


@pytest.mark.parametrize(("name", "text"), [("server_usd", "50%"), ("pue_ratio", "$1.3"), ("server_usd", "٣")])
def test_a_sign_of_another_unit_is_no_number(name, text):
    with pytest.raises(UsageError, match=f"{name} = "):
        tco(set={name: text})
    assert value(tco(set={"pue_ratio": "130%"}), "pue_ratio")["value"] == 1.3


@pytest.mark.parametrize("load", [{"tokens_per_month": "200b"}, {"tokens": "300b", "runs_per_year": 2}])
def test_a_workload_uses_no_more_than_the_utilisation_asked_for(load):
    asked = {"model": "8b", "gpu": "h100-sxm", "rent": 2.35, "draws": 0, "catalog": catalog(), **load}
    used = value(gpucost.tco(**asked, gpus=64, utilisation="70%").payload, "utilisation_fraction")["value"]
    assert used < 0.1
    with pytest.raises(UsageError, match=r"2%.*at least \d+") as told:
        gpucost.tco(**asked, gpus=64, utilisation="2%")
    enough = int(re.search(r"give \D+(\d+)", str(told.value)).group(1))
    used = value(gpucost.tco(**asked, gpus=enough, utilisation="2%").payload, "utilisation_fraction")["value"]
    assert 0.01 < used <= 0.02


def test_a_serving_load_of_a_model_takes_its_speed_from_the_serving_physics():
    wanted = {"model": "llama-3.1-8b", "tokens_per_month": "400b", "prompt_tokens": 1000, "output_tokens": 300}
    payload = gpucost.tco("h100-sxm", rent=2.35, draws=0, catalog=catalog(), **wanted).payload
    speed, used, gpus, good = (
        value(payload, name)["value"]
        for name in ("tokens_per_s_per_gpu", "utilisation_fraction", "gpus", "goodput_fraction")
    )
    assert speed * 3600 * 730 * gpus * used * good == pytest.approx(400e9)
    assert 0.2 < used <= 0.7
    assert payload["levelised_usd_per_mtok"] > 0


KEYS = {
    "npv_usd",
    "irr_fraction",
    "payback_months",
    "levelised_usd_per_gpu_hour",
    "levelised_usd_per_gpu_hour_owned",
    "levelised_usd_per_gpu_hour_productive",
    "breakeven",
    "cash_flows",
    "sensitivity",
    "probability_buy_wins_fraction",
    "assumptions",
    "warnings",
    "schema_version",
    "request",
    "as_of",
    "catalog_version",
    "sources",
}


def test_the_command_writes_the_documented_keys(tmp_path):
    out = tmp_path / "tco.json"
    run = CliRunner().invoke(
        command,
        [
            "--gpu",
            "h100-sxm",
            "--gpus",
            "64",
            "--utilisation",
            "70%",
            "--years",
            "4",
            "--rent",
            "2.35",
            "--format",
            "json",
            "-o",
            str(out),
        ],
    )
    assert run.exit_code == 0, run.output
    payload = json.loads(out.read_text())
    assert set(payload) >= KEYS
    assert set(payload["breakeven"]) >= {"utilisation_fraction", "usd_per_gpu_hour", "months"}
    assert set(payload["npv_usd"]) >= {"own", "rent"}
    assert all(
        set(entry) >= {"name", "value", "unit", "low", "high", "source_id", "status"}
        for entry in payload["assumptions"]
    )


@pytest.mark.parametrize(
    "arguments",
    [["--explain"], ["--print-plan"], ["--format", "md"], ["--format", "csv"], ["--explain", "--format", "md"]],
)
def test_the_command_shows_each_form(arguments):
    run = CliRunner().invoke(command, ["--gpu", "h100-sxm", "--gpus", "8", "--rent", "2.35", *arguments])
    assert run.exit_code == 0, run.output
    assert "own_servers_usd" in run.output or "server" in run.output


def test_the_command_loads_neither_pandas_nor_scipy():
    code = (
        "import sys, gpucost; gpucost.tco('h100-sxm', 8, rent=2.35); "
        "heavy = ('pandas', 'scipy', 'openpyxl', 'xlsxwriter', 'pydantic', 'altair', 'rich'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
