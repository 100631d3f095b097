"""Input that once broke a command is refused with a sentence, or answered."""

import ctypes
import json
import os
import subprocess
import sys
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import click
import numpy as np
import pytest
from click.testing import CliRunner

import gpucost
from benchmarks.fuzz.good import (
    POOL,
    START,
    SUPPLY,
    answers,
    bench,
    configurations,
    estimate_with_facts,
    parquet,
)
from gpucost.cli.messages import printable as shown
from gpucost.errors import GpuCostError, UsageError
from tests.commands import in_process


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return a function that runs a command beside files, and returns the sentence that refuses it."""
    from gpucost.cli import cli

    monkeypatch.chdir(tmp_path)

    def run(arguments, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text, "utf-8")
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert isinstance(result.exception, UsageError), (result.exception, result.output)
        return str(result.exception)

    return run


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


def test_what_is_said_on_stderr_steers_no_terminal():
    assert shown("no \x1b[2J, no \r, no \x07, no \x9b") == r"no \x1b[2J, no \r, no \x07, no \x9b"
    assert shown("4 × h100") == "4 × h100"


@pytest.mark.parametrize(
    "asked",
    [
        {"precision": set()},
        {"recompute": [[1]]},
        {"gpus": 10**400},
        {"as_of": b"x"},
    ],
)
def test_the_library_refuses_values_of_other_types(asked):
    with pytest.raises(UsageError):
        gpucost.throughput("8b", "h100-sxm", **{"gpus": 8, **asked})


@pytest.mark.parametrize(
    "asked",
    [{"set": set()}, {"set": 3}, {"quote": object}, {"quote": 1j}, {"plan": {1: 2}}, {"gpus": 10**400}],
)
def test_a_plan_in_python_refuses_values_of_other_types(asked):
    with pytest.raises(UsageError):
        gpucost.tco(**{"gpu": "h100-sxm", "gpus": 8, "draws": 0, **asked})


def test_a_value_of_thousands_of_characters_is_shortened(refused):
    assert len(refused(["audit", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "x" * 90_000])) < 400
    assert len(refused(["roofline", "--gpu", "h100-sxm", "--matmul", "y" * 90_000])) < 400


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("notes",), 3),
        (("figures", 0), 3),
        (("figures", 0, "op"), [1]),
        (("figures", 0, "time_s"), "x"),
        (("machine", "gpus"), None),
        (("machine", "power_limit_w"), "much"),
        (("failed",), [3]),
    ],
)
def test_a_bench_of_other_types_is_refused_by_its_key(refused, path, value):
    found = json.loads(bench())
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    Path("bench.json").write_text(json.dumps(found))
    assert str(path[-1]) in refused(["bench", "bench.json", "--show"])


def test_a_log_that_is_no_file_is_refused(refused):
    os.mkfifo("train.log")
    Path("answer.json").write_bytes(answers()[0])
    assert "pipe" in refused(["watch", "train.log", "--estimate", "answer.json"])
    assert "pipe" in refused(["calibrate", "--from-log", "/dev/zero", "--model", "8b", "--gpu", "l4", "--gpus", "8"])


def test_fields_that_name_nothing_are_refused(refused):
    assert "--fields" in refused(["sources", "--fields", " , "])


def test_an_integer_of_hundreds_of_digits_in_a_configuration_is_refused():
    from gpucost.architectures.config import Fields

    for digits in (400, 5000):
        with pytest.raises(UsageError, match="whole number"):
            Fields({"hidden_size": 10**digits}, "config.json").number("hidden_size")


def test_what_a_query_hands_over_has_a_place_in_json():
    from gpucost.render.json import plain

    given = [Decimal("1.5"), time(7), timedelta(days=1), b"x", UUID(int=1)]
    assert plain(given) == [1.5, "07:00:00", "1 day, 0:00:00", "78", "00000000-0000-0000-0000-000000000001"]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (["--months", "12", "--lead-time", "100w"], "arrive after 23 months"),
        (["--years", "1", "--lead-time", "53w"], "lead time"),
        (["--utilisation", "0"], "nothing would be used"),
        (["--utilisation", "1e-308"], "so near to 0"),
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


@pytest.mark.parametrize("offers", [[{"a": 1}], ["a,b", "1"], ["a,b", '1,"']])
def test_saved_facts_that_are_no_table_are_refused(refused, offers):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["offers"] = offers
    Path("saved.json").write_text(json.dumps(saved))
    assert "facts" in refused(["rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    "asked",
    [
        {"tokens": 5e-324},
        {"tokens": "10b", "deadline": "1e-308"},
    ],
)
def test_a_count_that_is_nearly_nothing_is_refused(asked):
    with pytest.raises(UsageError, match="too small a"):
        gpucost.estimate("8b", gpu="h100-sxm", gpus=64, **asked)


def test_cycles_that_multiply_the_layers_beyond_reason_are_refused(refused):
    config = {
        "model_type": "hrm_text", "vocab_size": 2, "hidden_size": 1536, "intermediate_size": 4096, "H_cycles": 151808,
        "num_hidden_layers": 128, "num_attention_heads": 12, "head_dim": 128, "L_cycles": 3,
    }  # fmt: skip
    Path("config.json").write_text(json.dumps(config))
    assert "layers" in refused(["models", "config.json"])


def test_a_configuration_without_heads_is_refused_and_a_long_name_in_one_is_cut(refused):
    whole = {"model_type": "x" * 3000, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
             "intermediate_size": 128, "vocab_size": 100, "k" * 3000: 1}  # fmt: skip
    Path("config.json").write_text(json.dumps(whole))
    said = in_process("models", "config.json")
    assert said.returncode == 0
    assert len(said.stderr) < 1500
    Path("config.json").write_text(
        json.dumps(whole | {"model_type": "jetmoe", "num_attention_heads": 0, "num_key_value_heads": []})
    )
    assert "heads" in refused(["models", "config.json"])


def test_the_best_interval_is_finite_whatever_the_rate():
    from gpucost.money.spot import optimal_interval_hours

    with np.errstate(all="raise"):
        found = optimal_interval_hours(np.array([1e-9, 1.0, 1e6, 1e12]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


def test_what_calibrate_says_of_a_book_steers_no_terminal(monkeypatch, tmp_path):
    from gpucost.cli import cli

    book = tmp_path / "a\x1b[2Jb"
    book.mkdir()
    monkeypatch.setenv("GPUCOST_BOOK", str(book))
    said = CliRunner().invoke(cli, ["calibrate", "--undo"])
    assert said.exit_code == 0
    assert "\x1b" not in said.output
    assert r"a\x1b[2Jb" in said.output


@pytest.mark.parametrize("name", ["book", "data", "store", "output", "as_of", "format", "limit_nesting"])
@pytest.mark.parametrize("value", ["3", "true", "[1]", "{a = 1}", '"a\\u0000"', "[[1]]", "9999999999999999999999"])
def test_a_setting_of_another_type_is_read_as_it_would_be_typed_or_refused(monkeypatch, tmp_path, name, value):
    from gpucost.cli import cli

    monkeypatch.chdir(tmp_path)
    Path("gpucost.toml").write_text(f"{name} = {value}\n")
    error = CliRunner().invoke(cli, ["prices", "--gpu", "h100-sxm", "--limit", "1"], standalone_mode=False).exception
    assert error is None or isinstance(error, (UsageError, click.ClickException)), repr(error)


def test_a_setting_speaks_for_an_option_that_is_given_several_times(monkeypatch, tmp_path):
    from gpucost.cli import cli

    monkeypatch.chdir(tmp_path)
    Path("gpucost.toml").write_text('[tco]\nset = ["pue_ratio=1.5"]\ndraws = 0\n')
    asked = ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--format", "json"]
    told = [json.loads(CliRunner().invoke(cli, [*asked, *more]).stdout) for more in ([], ["--set", "pue_ratio=1.5"])]
    assert told[0]["npv_usd"] == told[1]["npv_usd"]


def test_a_store_that_is_no_address_is_refused():
    from gpucost.catalog import open_catalog

    with pytest.raises(GpuCostError, match="no address"):
        open_catalog(store="https://[").offers()


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_name_that_no_name_can_be_is_refused(name):
    with pytest.raises(UsageError, match=r"at most 4,096|NUL"):
        gpucost.estimate(name, "1b")


def test_a_column_of_columns_is_refused():
    with pytest.raises(UsageError, match="dimensions"):
        gpucost.throughput("8b", "h100-sxm", gpus=8, sequence=[[1.0]])


@pytest.mark.parametrize("name", ["gpus", "term_months"])
def test_a_count_without_end_in_a_book_is_refused(name, tmp_path):
    from gpucost.catalog import open_catalog

    book = tmp_path / "offers.csv"
    book.write_text(f"provider,gpu,usd_per_gpu_hour,observed_on,{name}\nours,h100-sxm,2,2026-06-01,1e999\n")
    with pytest.raises(UsageError, match=name):
        open_catalog(book=tmp_path).offers()


def test_a_sweep_leaves_the_connection_that_a_process_shares_to_its_owner(monkeypatch, tmp_path):
    """One that a fork inherits never answers."""
    import duckdb

    monkeypatch.delattr(duckdb, "read_parquet")
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": [8, 16], "tokens": "1b"}
    for into in (None, str(tmp_path / "out")):
        assert len(gpucost.sweep("estimate", into=into, **asked).to_frame()) == 2


@pytest.mark.parametrize("value", ["[1]", '""', '"x"', "2026-01-01", "{a = 1}", "nan"])
def test_a_term_of_another_type_in_a_book_is_refused(value, tmp_path):
    from gpucost.catalog import open_catalog

    book = tmp_path / "book.toml"
    offer = 'provider = "ours"\ngpu = "h100-sxm"\noption = "reserved"\nusd_per_gpu_hour = 2\nobserved_on = 2026-06-01'
    book.write_text(f"[[offer]]\n{offer}\nterm_months = {value}\n")
    with pytest.raises(UsageError, match="term_months"):
        open_catalog(book=book).offers()


@pytest.mark.parametrize("supply", ['"x"', "3", "[1]", "[[1, 2]]", '""', "[]"])
def test_a_supply_of_a_scenario_that_is_no_table_is_refused(refused, supply):
    asked = 'model = "8b"\ntokens = "1b"\nname = "One"'
    assert "[supply]" in refused(["report", "s.toml", "-o", "out.md"], s=f"supply = {supply}\n[[training]]\n{asked}\n")


def test_a_parquet_book_whose_pages_unpack_to_nothing_is_refused(tmp_path):
    from gpucost.catalog import open_catalog

    data = bytearray(parquet())
    for place, byte in {544: 151, 1805: 15, 2730: 142, 3412: 68, 4024: 24}.items():
        data[place] = byte
    (tmp_path / "offers.parquet").write_bytes(data)
    with pytest.raises(UsageError):
        _ = open_catalog(book=tmp_path).price_rows


def test_a_table_of_cases_without_end_to_the_right_is_refused(refused):
    Path("cases.csv").write_text(",".join(f"x{n}" for n in range(1001)) + "\n" + ",".join(["1"] * 1001))
    assert "1,001 columns" in refused(["sweep", "--cases", "cases.csv"])


def test_a_joined_sweep_sends_no_control_character_and_begins_no_formula(tmp_path):
    from gpucost.sweeping.chunks import join
    from gpucost.sweeping.work import parquet_of

    words = ["=1+1", "@SUM(A1)", "a\x1b[2J", "b\u202e", "fine, as it is"]
    (tmp_path / "a.parquet").write_bytes(parquet_of({"gpu": (np.arange(5), words), "gpus": np.arange(5) - 1.0}))
    join([tmp_path / "a.parquet"], str(tmp_path / "out.csv"), ".csv")
    lines = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert lines[1:] == ["'=1+1,-1.0", "'@SUM(A1),0.0", r"a\x1b[2J,1.0", r"b\u202e,2.0", '"fine, as it is",3.0']


@pytest.mark.parametrize("number", range(9))
def test_every_kind_of_answer_fills_a_template(number):
    from gpucost.library.template import figures

    assert "schema_version" in figures(json.loads(answers()[number]))


@pytest.mark.parametrize(
    ("rows", "column"),
    [("x,-2,", "usd_per_gpu_hour"), ("x,2,1.5", "term_months"), (",2,12", "name"), ("x,,12", "usd_per_gpu_hour")],
)
def test_a_quote_that_cannot_be_is_refused_by_its_row_and_column(refused, rows, column):
    Path("quotes.csv").write_text(f"name,usd_per_gpu_hour,term_months\nfine,2/h,12\n{rows}\n")
    said = refused(["tco", "--gpu", "h100-sxm", "--gpus", "8", "--quote", "quotes.csv"])
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


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_a_price_of_the_first_or_the_last_day_there_is_is_judged(day):
    from datetime import date

    from gpucost.catalog.checks import Level

    level = Level([(date(2026, 1, number), 2.0) for number in range(1, 29)])
    assert level.around(date.fromisoformat(day)) is None
    assert level.around(date(2026, 1, 5)) == 2.0


@pytest.mark.parametrize("missing", ["model", "tokens"])
def test_a_saved_answer_whose_request_says_too_little_is_not_rerun(refused, missing):
    saved = json.loads(estimate_with_facts())
    del saved["request"][missing]
    Path("saved.json").write_text(json.dumps(saved))
    assert missing in refused(["rerun", "saved.json", "--accept-changed"])


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


def test_a_size_in_other_digits_is_no_name_of_a_model():
    with pytest.raises(UsageError, match="unknown model"):
        gpucost.estimate("\u0663b", "1b", gpu="h100-sxm", gpus=8)


@pytest.mark.parametrize("place", ["\u00b2", "-1", "x", "9" * 5000])
def test_a_layer_of_no_number_in_a_configuration_is_refused(refused, place):
    config = json.loads(configurations()[0]) | {"per_layer_config": {place: {"hidden_size": 8}}}
    Path("config.json").write_text(json.dumps(config))
    assert "layer" in refused(["models", "config.json"])


def test_a_tensor_of_a_layer_of_thousands_of_digits_is_read():
    from gpucost.architectures.storage import _LAYER

    assert _LAYER.search(f"model.layers.{'9' * 5000}.mlp") is None
    assert _LAYER.search("model.layers.61.mlp")[1] == "61"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokens", 1e308),
        ("epochs", -1),
        ("gpus", 10**30),
        ("sequence_tokens", -1),
        ("lora_rank", 1e308),
        ("mfu_fraction", 0),
        ("tokens_per_s_per_gpu", -1),
        ("step_s", 0),
        ("evaluation_fraction", -1),
        ("storage_gb_per_s", 0),
        ("deadline_days", "x"),
        ("deadline_given", 7),
    ],
)
def test_what_a_saved_request_says_is_held_against_what_may_be_asked(refused, name, value):
    saved = json.loads(estimate_with_facts())
    assert name in saved["request"]
    saved["request"][name] = value
    Path("saved.json").write_text(json.dumps(saved))
    assert f"request.{name}" in refused(["rerun", "saved.json", "--accept-changed"])


def test_more_simulated_months_than_the_limit_are_refused(refused):
    assert "limit_draw_months" in refused(["tco", "--gpu=h100-sxm", "--gpus=8", "--draws=1e6", "--months=48"])


def test_the_difference_of_figures_of_any_size_is_told():
    from gpucost.bridges.compare import difference

    assert difference((1e300, 0.0)) == -1e300
    assert difference((0.125, 2.0)) == 1.88


@pytest.mark.parametrize("systems", [["accelerator_id,gpus"], {"a": 1}])
def test_saved_offers_without_their_nodes_are_refused(refused, systems):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["systems"] = systems
    Path("saved.json").write_text(json.dumps(saved))
    assert "the saved facts cannot be read" in refused(["rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    ("number", "place", "value", "said"),
    [
        (5, ("tokens_per_s_per_gpu",), 0, "cannot be compared"),
        (5, ("tokens_per_s_per_gpu",), 5e-324, "cannot be compared"),
        (5, ("parts", 0, "bound"), "x", "bound"),
        (8, ("parts", 0, "payload", "sources"), "x", "sources"),
        (8, ("parts", 0, "payload", "options", 0, "layout", "expert"), "x", "layout.expert"),
    ],
)
def test_figures_that_no_answer_has_are_refused_in_a_comparison(refused, number, place, value, said):
    saved = json.loads(answers()[number])
    Path("first.json").write_text(json.dumps(saved))
    part = saved
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    Path("second.json").write_text(json.dumps(saved))
    assert said in refused(["compare", "first.json", "second.json"])


@pytest.mark.parametrize(
    ("name", "value"), [("sold", {}), ("providers", [{"provider": [1]}]), ("architecture", {"mtp_layers": "nan"})]
)
def test_saved_facts_of_other_types_are_refused(refused, name, value):
    saved = json.loads(estimate_with_facts())
    facts = saved["facts"]
    facts[name] = facts[name] | value if isinstance(value, dict) and value else value
    Path("saved.json").write_text(json.dumps(saved))
    assert "the saved facts cannot be read" in refused(["rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    ("cells", "said"),
    [("CAST(NULL AS VARCHAR) AS option", "option is not one of"), ("{'a': gpu} AS gpu", "gpu holds STRUCT")],
)
def test_a_book_without_a_way_to_buy_or_with_structures_in_its_cells_is_refused(tmp_path, cells, said):
    import duckdb

    from gpucost.catalog import open_catalog
    from gpucost.errors import DataError

    (tmp_path / "whole.parquet").write_bytes(parquet())
    (tmp_path / "book").mkdir()
    whole, made = f"'{tmp_path}/whole.parquet'", f"'{tmp_path}/book/offers.parquet'"
    duckdb.sql(f"COPY (SELECT * REPLACE ({cells}) FROM {whole}) TO {made} (FORMAT parquet)")
    with pytest.raises(DataError, match=said):
        open_catalog(book=tmp_path / "book").offers()


@pytest.mark.parametrize(
    ("number", "place", "said"),
    [(3, ("months", 1), "months"), (2, ("by_year", 1), "by_year")],
)
def test_what_a_saved_answer_lists_is_held_against_its_types(refused, number, place, said):
    saved = json.loads(answers()[number])
    saved[place[0]][place[1]] = {}
    Path("saved.json").write_text(json.dumps(saved))
    assert said in refused(["report", "saved.json", "-o", "out.md"])


def test_a_sweep_of_nothing_says_what_its_question_lacks():
    assert "give --rent" in in_process("sweep", "--question", "tco").stdout


@pytest.mark.parametrize("day", ["2026-11-09+1255b0c162a5", "2026-11-09T25:00", "2026-02-30"])
def test_a_saved_day_is_a_day_to_its_last_sign(tmp_path, day):
    saved = gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8, top=1).to_dict() | {"as_of": day}
    for use in (lambda: gpucost.export(saved, str(tmp_path / "out.csv")), lambda: gpucost.compare(saved, saved)):
        with pytest.raises(UsageError, match="no day such as"):
            use()


def test_a_saved_deadline_of_no_time_is_refused():
    from gpucost.ask import QUESTIONS
    from gpucost.training.request import from_dict

    with pytest.raises(UsageError, match="deadline_days"):
        from_dict({"model": "8b", "tokens": 1e9, "deadline_days": 5e-324}, QUESTIONS["estimate"])


def test_a_model_below_a_home_that_nobody_has_is_an_unknown_name():
    with pytest.raises(GpuCostError, match="nobody-of-that-name"):
        gpucost.estimate("~nobody-of-that-name/config", "1b")


def test_a_part_of_an_answer_that_has_none_is_refused(refused):
    Path("speed.json").write_bytes(answers()[5])
    assert "has no part" in refused(["compare", "speed.json#matrix", "speed.json"])


def test_a_provider_whose_name_ends_lines_is_priced_and_its_answer_rerun(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = 'a\rb\nc\r\nd\x85e\u2028f"g,'
    book = {"provider": name, "gpu": "h100-sxm", "gpus": 8, "usd_per_gpu_hour": 1, "valid_from": "2026-01-01"}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in book.items())
    Path("book.toml").write_text(f"[[offer]]\n{lines}\n", "utf-8")
    monkeypatch.setenv("GPUCOST_BOOK", "book.toml")
    in_process("estimate", *START["estimate"], "--gpus", "8", "--format", "json", "-o", "a.json")
    assert json.loads(Path("a.json").read_text("utf-8"))["options"][0]["provider"] == name
    monkeypatch.delenv("GPUCOST_BOOK")
    assert "Reproduced" in in_process("rerun", "a.json").stderr


@pytest.mark.parametrize("own", [{"mfu": "1e-308"}, {"step_time": "1e-300"}, {"tokens_per_s_per_gpu": "1e-300"}])
def test_an_own_speed_of_next_to_nothing_is_refused(own):
    with pytest.raises(UsageError, match=r"too small a number|not a positive|so near to 0"):
        gpucost.estimate("8b", "10b", gpu="h100-sxm", gpus=64, **own)


def test_debug_shows_where_an_error_comes_from_and_keeps_its_exit_code():
    asked = [sys.executable, "-m", "gpucost", "--debug", "estimate", "--model", "no\x1bsuch", "--tokens", "1b"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("gpucost: ")
    assert "\x1b" not in done.stderr


def test_a_workbook_that_the_system_does_not_take_is_refused(tmp_path, monkeypatch):
    import xlsxwriter.workbook

    def refused(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xlsxwriter.workbook.Workbook, "_store_workbook", refused)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match=r"cannot write.*out\.xlsx"):
        gpucost.roofline("h100-sxm", matmul="8192x8192x8192").to_excel(tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir()), "nothing stays of what was laid aside"


def test_a_bench_whose_spread_is_no_number_is_refused(refused):
    saved = json.loads(bench())
    saved["figures"][0]["spread_fraction"] = "=1+1"
    Path("bench.json").write_text(json.dumps(saved))
    assert "spread_fraction" in refused(["bench", "bench.json", "--show"])


def test_what_breaks_inside_the_process_of_a_query_is_no_fault_of_the_query():
    from gpucost.catalog.sandbox import bounds, run

    with pytest.raises(RuntimeError, match="TypeError"):
        run({"no_such": 1}, "select 1", bounds())


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("mix", {"constant": np.float32(8), "gpu": "h100-sxm", "months": 6, "max_on_demand": np.int64(8)}),
        ("tco", {"gpu": "h100-sxm", "gpus": np.int64(8), "draws": 0, "years": np.float32(4)}),
        ("fit", {"model": np.str_("8b"), "gpu": "h100-sxm", "micro_batch": np.array(8)}),
    ],
)
def test_numbers_of_numpy_are_written_as_numbers(name, asked):
    answer = getattr(gpucost, name)(**asked)
    assert json.loads(json.dumps(answer.to_dict()))["request"]["gpu"] == "h100-sxm"


def test_a_row_that_gathers_millions_of_values_is_refused(refused):
    assert "limit_query_row_bytes" in refused(["sql", "select list(range) from range(1000000)"])


def test_a_name_like_the_address_of_a_cell_stays_a_name_in_charts(tmp_path, monkeypatch):
    import zipfile

    monkeypatch.chdir(tmp_path)
    name = "='[evil.xlsx]S'!$A$1"
    one = {"name": name, "gpu": "h100-sxm", "gpus": 8, "draws": 0, "rent": 2.35}
    gpucost.report({"name": name, "ownership": [one]}).to_excel("out.xlsx")
    with zipfile.ZipFile("out.xlsx") as book:
        charts = [book.read(part) for part in book.namelist() if part.startswith("xl/charts/chart")]
    assert any(b"evil.xlsx" in chart for chart in charts)
    assert not any(b"<c:f>='[evil" in chart or b"<c:f>'[evil" in chart for chart in charts)


def test_a_saved_mix_whose_cash_lacks_a_month_is_refused(refused):
    saved = json.loads(answers()[3])
    del saved["cash_by_month"][-1]
    Path("mix.json").write_text(json.dumps(saved))
    assert "cash_by_month" in refused(["export", "--focus", "mix.json", "-o", "out.csv"])


def test_a_refused_sweep_leaves_no_folder(refused, tmp_path):
    Path("cases.csv").write_text("gpu,gpus,tokens\nh100-sxm,8,1b\n")
    assert "--model is missing" in refused(["sweep", "--cases", "cases.csv", "-o", "out.csv"])
    assert [one.name for one in tmp_path.iterdir()] == ["cases.csv"]


def test_a_sweep_is_kept_in_a_folder_whose_name_begins_like_a_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": [8, 16], "tokens": "1b"}
    assert len(gpucost.sweep("estimate", into="~nobody", **asked).to_frame()) == 2


def test_a_sign_in_a_files_name_is_no_pattern_for_others(tmp_path):
    """DuckDB takes `*` and `[1]` for patterns: a sweep once counted the cases of its neighbour with its own."""
    for name in ("star", "st*r"):
        found = gpucost.sweep(model="8b", gpu="h100-sxm", gpus="8,16", tokens="1b", into=str(tmp_path / name))
        assert (found.payload["cases"], found.payload["answered"], len(found.to_frame())) == (2, 2, 2)
    for name in ("cases1.csv", "cases[1].csv"):
        (tmp_path / name).write_text(f"gpus\n{8 if name == 'cases1.csv' else 16}\n", encoding="utf-8")
    found = gpucost.sweep(cases=str(tmp_path / "cases[1].csv"), model="8b", gpu="h100-sxm", tokens="1b")
    assert found.to_frame()["gpus"].tolist() == [16]


@pytest.mark.parametrize(
    ("function", "places", "named"),
    [
        ("estimate", ("8b", "1b"), {"catalog": 3}),
        ("estimate", ("8b", "1b"), {"deadline": np.datetime64("NaT").astype(object) or float("nan")}),
        ("open_catalog", (), {"root": 3}),
        ("open_catalog", (), {"book": b"x"}),
        ("open_catalog", (), {"store": np.array([1, 2])}),
        ("sweep", (), {"told": 3, "model": "8b", "tokens": "1b", "gpus": 8}),
        ("sweep", (), {"executor": len}),
        ("throughput", (np.array(8), "h100-sxm"), {}),
        ("sweep", (), {"workers": np.array([1, 2])}),
        ("sweep", (), {"into": "a\0b"}),
        ("sweep", (), {"grid": 3}),
        ("sweep", (), {"cases": 3}),
        ("sweep", (np.array([1, 2]),), {}),
        ("report", (3,), {}),
        ("report", ({},), {"share_safe": np.array([1, 2])}),
        ("export", (3, "a.csv"), {}),
        ("export", ([], "a.csv"), {}),
        ("export", ("a.json", 3), {}),
        ("commit", ([10**400],), {"on_demand": 4, "committed": 2}),
        ("tco", (), {"set": ["a"], "pue_ratio": 1.2}),
    ],
)
def test_what_stands_in_no_table_of_arguments_is_read_too(function, places, named):
    with pytest.raises(UsageError):
        getattr(gpucost, function)(*places, **named)


def test_a_deadline_may_be_a_moment():
    from datetime import datetime

    asked = {"gpus": 8, "gpu": "h100-sxm", "top": 1, "as_of": "2026-11-20"}
    moment, day = (gpucost.estimate("8b", "1b", deadline=d, **asked) for d in (datetime(2027, 1, 1, 7), "2027-01-01"))
    assert moment.best == day.best


def test_a_value_whose_text_breaks_is_named_by_its_type():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    holding = []
    holding.append(holding)
    for value in (Broken(), holding):
        with pytest.raises(UsageError, match="--option"):
            gpucost.estimate("8b", "1b", option=value)


def test_words_of_a_layout_may_be_columns_of_any_kind():
    asked = {"gpus": 8, "gpu": "h100-sxm", "tensor": 1, "precision": np.array(["bf16", "fp8"])}
    table = gpucost.throughput("8b", recompute=np.array(["none", "full"]), **asked)
    assert len(table.to_frame()) == 2


def test_what_a_chart_is_called_is_well_formed_wherever_it_stands(tmp_path):
    import zipfile
    from types import SimpleNamespace
    from xml.etree import ElementTree

    import xlsxwriter

    from gpucost.render.workbook.charts import Gallery

    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as file:
        sheet = SimpleNamespace(title=lambda _: None, next_row=0, page=file.add_worksheet())
        chart = file.add_chart({"type": "line"})
        chart.add_series({"values": "=Sheet1!$A$1:$A$2"})
        Gallery(SimpleNamespace(file=file), sheet).add(chart, "\x01", "", "")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        texts = [book.read(name).decode() for name in book.namelist() if "drawings/d" in name or "charts/c" in name]
    assert len(texts) == 2
    for text in texts:
        ElementTree.fromstring(text)
        assert r"\x01" in text


@pytest.mark.parametrize(
    "asked", ["nonsense", "bash_complete", "_", "zsh_\x1b[31m", "fish_sources", "bash_complete_more"]
)
def test_a_request_to_complete_that_no_shell_makes_is_refused(asked):
    done = in_process(_GPUCOST_COMPLETE=asked)
    assert done.returncode == 2
    assert "_GPUCOST_COMPLETE" in done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr


def test_a_bench_whose_figures_have_no_time_is_read(tmp_path):
    from gpucost.bench.run import SCHEMA_VERSION, read_bench

    path = tmp_path / "bench.json"
    head = {
        "kind": "bench",
        "schema_version": SCHEMA_VERSION,
        "machine": {"device": "NVIDIA H100 80GB HBM3", "gpus": 1},
    }
    path.write_text(json.dumps({**head, "figures": [{"id": "copy 1", "op": "copy"}]}))
    assert read_bench(path)["figures"][0]["rounds_s"] == []


def test_a_file_of_no_name_is_not_taken_for_no_file():
    done = in_process("calibrate", "--measurements=")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot read ''" in done.stderr


def test_a_query_over_a_folder_that_cannot_be_is_the_users_to_mend():
    done = in_process("sql", "select 1", GPUCOST_STORE="x" * 5000)
    assert done.returncode == 2
    assert "internal error" not in done.stderr
    assert "too long" in done.stderr


@pytest.mark.parametrize(
    ("part", "old", "new", "said"),
    [
        ("xl/workbook.xml", b'state="visible"', b'state="hidden"', "cannot be written again"),
        ("xl/theme/theme1.xml", b"<a:theme ", b"<a:theme <", r"no \.xlsx workbook"),
    ],
)
def test_a_template_that_would_give_no_workbook_is_refused(tmp_path, part, old, new, said):
    import zipfile

    import openpyxl
    from openpyxl.workbook.defined_name import DefinedName

    from gpucost.library.template import fill

    book, path = openpyxl.Workbook(), tmp_path / "template.xlsx"
    book.defined_names["cost_usd"] = DefinedName("cost_usd", attr_text="Sheet!$A$1")
    book.save(path)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    with pytest.raises(GpuCostError, match=said):
        fill({"kind": "estimate", "cost_usd": 1.0}, str(path), str(tmp_path / "filled.xlsx"))
    assert [one.name for one in tmp_path.iterdir()] == ["template.xlsx"]


def test_idle_accelerators_that_draw_more_than_busy_ones_are_refused(refused):
    said = refused(["tco", *START["tco"], "--set", "power_fraction_idle=1"])
    assert "power_fraction_idle" in said


def test_a_query_with_less_memory_than_the_facts_take_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = in_process("sql", "select count(*) from offers", GPUCOST_LIMIT_QUERY_MEMORY_GB="0.0001")
    assert (done.returncode, done.stdout) == (2, "")
    assert "of memory" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_sweep_of_many_sizes_keeps_few_clusters(monkeypatch):
    from gpucost.ask.estimate import request_of
    from gpucost.catalog import open_catalog
    from gpucost.training import sweep

    asked = {"model": ["8b"], "tokens": [1e10], "gpu": ["l40s"], "gpus": [8, 16, 24, 32, 40]}
    codes = {name: np.zeros(5, np.int64) for name in asked} | {"gpus": np.array([4, 0, 2, 1, 3])}
    whole = sweep.Sweeper(open_catalog(), request_of).rows(asked, codes)
    monkeypatch.setattr(sweep, "_CLUSTERS_AT_ONCE", 2)
    monkeypatch.setattr(sweep, "_LINES_KEPT", 0)
    few = sweep.Sweeper(open_catalog(), request_of)
    assert json.dumps(few.rows(asked, codes), default=np.ndarray.tolist) == json.dumps(whole, default=np.ndarray.tolist)
    assert len(few._clusters) <= 2


def test_a_parquet_book_that_lies_of_what_it_leaves_out_is_refused(tmp_path):
    data = bytearray(parquet())
    data[data.index(b",\x15(\x15\x04", data.index(b"spot")) + 2] = 6  # three values where its own statistics say all
    (tmp_path / "offers.parquet").write_bytes(data)
    done = in_process("prices", "--gpu", "h100-sxm", GPUCOST_BOOK=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "offers.parquet:4: option is not one of" in done.stderr


def test_a_tax_that_takes_everything_leaves_no_price_before_tax(refused):
    assert "tax_rate_fraction = 1.0" in refused(["tco", "--gpu", "h100-sxm", "--gpus", "64", "--tax-rate", "100%"])


def test_runs_steer_neither_terminal_nor_spreadsheet(capsys):
    from gpucost.cli.calibrate import _as_table
    from gpucost.cli.options import Output

    assert _as_table(Output("csv", None, None), [{"name": "=1+1\x1d\x1b[2J", "value": 0.123456789012345}])
    assert capsys.readouterr().out == "name,value\n'=1+1\\x1d\\x1b[2J,0.123456789012345\n"


def test_columns_of_a_query_are_named_as_they_like():
    query = 'select 1 as "=1+1 \x1b[31m", 2=2, \'three\' as "a:2", 4 as "k@u"'
    assert in_process("sql", query).stdout.split()[-4:] == ["1", "yes", "three", "4"]
    assert in_process("sql", query, "--format", "csv").stdout == "'=1+1 \\x1b[31m,(2 = 2),a:2,k@u\n1,true,three,4\n"
    assert "\x1b" not in in_process("sql", "explain select '\x1b[31m' as a").stdout


def test_what_equal_figures_leave_of_each_other_is_no_line():
    asked = {"gpu": "h100-sxm", "gpus": 64, "draws": 0, "financing": "operating_lease", "profile": "lab"}
    made = gpucost.tco(**asked, provider="lambda").payload
    assert "own_lease_payment_usd" in made["by_year"][0]
    assert not [line for line in made["lines"] if line["name"] == "own_lease_settled_usd"]
    assert "own_lease_settled_usd" not in made["cash_flows"][0]


def test_the_first_day_of_the_calendar_has_no_quarter_before_it():
    from datetime import date

    from gpucost.catalog.prices import quarters

    assert quarters(date(1, 1, 1), 3) == [date(1, 1, 1)]


@pytest.mark.parametrize("name", ["layers", "hidden", "heads", "kv_heads", "max_sequence_tokens"])
def test_a_saved_model_without_a_dimension_is_refused(refused, name):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["architecture"][name] = 0 if name != "max_sequence_tokens" else -1
    Path("saved.json").write_text(json.dumps(saved))
    assert f"architecture.{name} is" in refused(["rerun", "saved.json", "--accept-changed"])


def test_a_sweep_whose_rows_hold_little_or_are_unlike_each_other_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = gpucost.sweep(model="8b", gpu="h100-sxm,h200", gpus=8, tokens="1b").payload
    bare = json.loads(json.dumps(saved | {"rows": [{}], "front": [{}]}))
    Path("bare.json").write_text(json.dumps(bare))
    assert gpucost.report("bare.json").to_text(details=True)
    unlike = json.loads(json.dumps(bare | {"rows": [{}, {"a": 1}]}))
    Path("unlike.json").write_text(json.dumps(unlike))
    assert gpucost.report("unlike.json").to_text(details=True)


def test_a_saved_plan_without_an_input_is_no_plan_to_compare_with(refused):
    whole = next(one for one in map(json.loads, answers()) if one["kind"] == "tco")
    Path("whole.json").write_text(json.dumps(whole))
    moved = json.loads(json.dumps(whole))
    del moved["model"]["inputs"][0]
    Path("less.json").write_text(json.dumps(moved))
    assert "model.inputs" in refused(["compare", "less.json", "whole.json"])
    del whole["model"]["tables"]["use_by_month"]
    Path("table.json").write_text(json.dumps(whole))
    assert "use_by_month" in refused(["compare", "table.json", "less.json"])


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


def test_a_run_that_rounds_to_nothing_is_answered(refused):
    Path("pool.toml").write_bytes(POOL.replace(b"0.3", b"1e-9").replace(b"1.7", b"1e-9"))
    answer = gpucost.estimate("0.01b", 1, gpus=8, gpu="h100-sxm", pool="pool.toml", top=3)
    assert answer.best["cost_usd"] == 0
    assert answer.to_text(details=True)


@pytest.mark.parametrize("ask", ["to_text", "to_csv", "to_frame", "headline", "explain", "__repr__"])
def test_a_result_of_a_payload_that_is_no_answer_says_so_and_a_fault_of_ours_stays_one(ask, monkeypatch):
    from gpucost.ask.result import Result

    whole = next(one for one in map(json.loads, answers()) if one["kind"] == "fit")
    for payload in ({}, {"kind": "fit"}, {**whole, "kind": "tco"}):
        with pytest.raises(UsageError):
            getattr(Result(payload), ask)() and Result(payload).to_excel("out.xlsx")
    monkeypatch.setattr("gpucost.render.build.document", lambda _: {}["components"])
    with pytest.raises(KeyError):
        Result(whole).to_text()


@pytest.mark.parametrize("suffix", ["md", "html", "xlsx"])
def test_a_saved_answer_that_contradicts_itself_is_refused_whatever_breaks(refused, suffix, monkeypatch):
    saved = next(one for one in map(json.loads, answers()) if one["kind"] == "inference")
    Path("saved.json").write_text(json.dumps(saved))
    for place in ("gpucost.render.build.document", "gpucost.render.excel.write_workbook"):
        monkeypatch.setattr(place, lambda *_: {}["options"])  # breaks, as a figure that is missing does
    said = refused(["report", "saved.json", "-o", f"out.{suffix}"])
    assert said.startswith("'saved.json' does not hold together (")
    assert not Path(f"out.{suffix}").exists()


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_day_from_which_no_months_can_be_counted_is_refused(refused, day):
    for asked in (["prices", "decline"], ["commit", "use.csv", "--on-demand", "4", "--committed", "2"]):
        assert "1900 to 2199" in refused([*asked, "--as-of", day])


def test_a_parquet_book_that_breaks_the_database_is_refused(tmp_path):
    data = bytearray(parquet())
    for place, byte in {1061: 232, 1361: 103, 2240: 150, 2979: 24, 6091: 15}.items():
        data[place] = byte
    (tmp_path / "offers.parquet").write_bytes(data)
    done = in_process("data", "check", str(tmp_path / "offers.parquet"))
    assert done.returncode in (2, 5)
    assert "internal error" not in done.stderr
    done = in_process("prices", "--gpu", "h100-sxm", GPUCOST_BOOK=str(tmp_path))
    assert (done.returncode, done.stdout, "offers.parquet" in done.stderr) == (2, "", True)


@pytest.mark.parametrize("longest", [10**12, 10**30])
@pytest.mark.parametrize("name", ["model", "gpus"])
def test_a_column_has_a_longest_length(name, longest):
    with pytest.raises(UsageError, match="limit_sweep_values"):
        gpucost.throughput(**{"model": "8b", "gpu": "h100-sxm", "gpus": 8, name: range(longest)})


def test_a_list_that_holds_itself_is_no_column():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="as a number"):
        gpucost.throughput("8b", "h100-sxm", gpus=8, sequence=loop)


UNDECODABLE = "caf\udce9"  # a name in latin-1, as the system hands it over


def test_names_that_are_no_utf8_are_read_or_refused_with_a_sentence(tmp_path, monkeypatch):
    from gpucost.catalog import open_catalog

    monkeypatch.chdir(tmp_path)
    offers = tmp_path / "book" / "offers"
    offers.mkdir(parents=True)
    row = "provider,gpu,usd_per_gpu_hour,observed_on\nours,h100-sxm,1.5,2026-11-01\n"
    (offers / f"{UNDECODABLE}.csv").write_text(row)
    (tmp_path / "invoice.csv").write_text(
        "BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,Tags\n"
        "1,1,USD,Usage,2026-01-01,2026-01-02,{}\n"
    )
    assert [row.usd_per_gpu_hour for row in open_catalog(book=offers.parent).offers(provider="ours")] == [1.5]
    for said in (
        lambda: open_catalog().sql(f"select '{UNDECODABLE}'"),
        lambda: gpucost.reconcile("invoice.csv", showback=UNDECODABLE),
        lambda: gpucost.reconcile(f"{UNDECODABLE}.parquet", showback="team"),
    ):
        (tmp_path / f"{UNDECODABLE}.parquet").write_bytes(b"PAR1")
        with pytest.raises(UsageError, match=r"no UTF-8"):
            said()


def test_a_workbook_holds_what_is_no_utf8_as_an_escape(tmp_path):
    from gpucost.render.workbook.book import new_workbook

    with new_workbook(str(tmp_path / "a.xlsx")) as book:
        sheet = book.sheet("one", (40,) * 4)
        sheet.row(UNDECODABLE)
        sheet.paragraph(UNDECODABLE, 3)
        book.close()
    import openpyxl

    assert openpyxl.load_workbook(tmp_path / "a.xlsx")["one"]["A1"].value == r"caf\udce9"


def test_a_workbook_of_too_many_cells_is_refused_before_it_is_written(tmp_path, monkeypatch):
    from gpucost.cli import cli

    monkeypatch.setenv("GPUCOST_LIMIT_WRITTEN_CELLS", "100")
    result = CliRunner().invoke(cli, ["gpus", "-o", str(tmp_path / "gpus.xlsx")])
    assert isinstance(result.exception, UsageError)
    assert "limit_written_cells" in str(result.exception)
    assert not (tmp_path / "gpus.xlsx").exists()


def test_what_the_command_line_refuses_is_not_blamed_on_the_saved_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = in_process("estimate", "--model", "8b", "--tokens", "1b", "--gpu", "l4", "--format", "json", "-o", "a.json")
    assert made.returncode == 0
    refused = in_process("rerun", "a.json", "--fields", "rank", "-o", "a.html")
    assert refused.returncode == 2
    assert "leave --fields" in refused.stderr
    assert "hold together" not in refused.stderr


@pytest.mark.parametrize("sequence", [float("nan"), float("inf"), 0.0, -8192.0])
def test_a_column_of_sequences_holds_numbers_of_tokens(sequence):
    with pytest.raises(UsageError, match="sequence: a column"):
        gpucost.throughput("8b", "h100-sxm", gpus=8, sequence=[sequence, 8192.0])


@pytest.mark.parametrize("value", ["5e-324", "1e-12", "1e-10%"])
def test_a_share_that_is_no_figure_is_a_slip(value):
    with pytest.raises(UsageError, match="so near to 0"):
        gpucost.inference("8b", gpu="h100-sxm", utilisation=value)
    with pytest.raises(UsageError, match="so near to 0"):
        gpucost.tco(gpu="h100-sxm", gpus=8, utilisation=value)


@pytest.mark.parametrize("form", ["csv", "toml", "parquet"])
def test_a_price_that_is_no_figure_is_a_slip(form, tmp_path):
    import duckdb

    cells = {"provider": "ours", "gpu": "h100-sxm", "usd_per_gpu_hour": 5e-324, "observed_on": "2026-06-01"}
    file = tmp_path / f"offers.{form}"
    if form == "csv":
        file.write_text(",".join(cells) + "\n" + ",".join(map(str, cells.values())) + "\n")
    elif form == "toml":
        file.write_text("[[offer]]\n" + "".join(f"{key} = {json.dumps(cell)}\n" for key, cell in cells.items()))
    else:
        file.with_name("good").write_bytes(parquet())
        tiny = f"select * replace (5e-324 as usd_per_gpu_hour) from read_parquet('{file.with_name('good')}')"
        with duckdb.connect() as connection:
            connection.execute(f"copy ({tiny}) to '{file}' (format parquet)")
    with pytest.raises(UsageError, match="usd_per_gpu_hour"):
        gpucost.open_catalog(book=file).offers()


def saved_answers():
    return {found["kind"]: found for found in map(json.loads, answers())}


def test_an_ownership_that_costs_nothing_a_month_has_a_page_without_a_moving_lead():
    from gpucost.render.tco import _lead

    answer = saved_answers()["tco"]
    assert _lead(answer, 2.0)
    for row in answer["by_utilisation"]:
        row["usd_per_gpu_month"] = 0
    assert _lead(answer, 2.0) == ""


def test_a_bench_whose_products_name_no_precision_has_no_roofline():
    from gpucost.bench.verdict import roofline

    saved = json.loads(bench())
    for row in saved["figures"]:
        row.pop("precision", None)
    chip = gpucost.open_catalog().accelerator("h200")
    assert not roofline(saved, chip), "nothing says what was measured"
