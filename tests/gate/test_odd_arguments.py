"""Arguments and settings that are strange are refused with a sentence, or read."""

import json
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas
import pytest
from click.testing import CliRunner

import gpucost
from benchmarks.fuzz.good import (
    POOL,
)
from gpucost.errors import GpuCostError, UsageError
from tests.commands import in_process

UNDECODABLE = "caf\udce9"  # a name in latin-1, as the system hands it over


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


def test_a_value_of_thousands_of_characters_is_shortened(refused):
    assert len(refused(["audit", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "x" * 90_000])) < 400
    assert len(refused(["roofline", "--gpu", "h100-sxm", "--matmul", "y" * 90_000])) < 400


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

    with pytest.raises(GpuCostError, match="web address"):
        open_catalog(store="https://[").offers()


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_name_that_no_name_can_be_is_refused(name):
    with pytest.raises(UsageError, match=r"at most 4,096|NUL"):
        gpucost.estimate(name, "1b")


def test_a_column_of_columns_is_refused():
    with pytest.raises(UsageError, match="dimensions"):
        gpucost.throughput("8b", "h100-sxm", gpus=8, sequence=[[1.0]])


@pytest.mark.parametrize("own", [{"mfu": "1e-308"}, {"step_time": "1e-300"}, {"tokens_per_s_per_gpu": "1e-300"}])
def test_an_own_speed_of_next_to_nothing_is_refused(own):
    with pytest.raises(UsageError, match=r"too small a number|not a positive|so close to 0"):
        gpucost.estimate("8b", "10b", gpu="h100-sxm", gpus=64, **own)


def test_debug_shows_where_an_error_comes_from_and_keeps_its_exit_code():
    asked = [sys.executable, "-m", "gpucost", "--debug", "estimate", "--model", "no\x1bsuch", "--tokens", "1b"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("gpucost: ")
    assert "\x1b" not in done.stderr


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
        with pytest.raises(UsageError, match=r"(--option|option=)"):
            gpucost.estimate("8b", "1b", option=value)


def test_words_of_a_layout_may_be_columns_of_any_kind():
    asked = {"gpus": 8, "gpu": "h100-sxm", "tensor": 1, "precision": np.array(["bf16", "fp8"])}
    table = gpucost.throughput("8b", recompute=np.array(["none", "full"]), **asked)
    assert len(table.to_frame()) == 2


@pytest.mark.parametrize(
    "asked", ["nonsense", "bash_complete", "_", "zsh_\x1b[31m", "fish_sources", "bash_complete_more"]
)
def test_a_request_to_complete_that_no_shell_makes_is_refused(asked):
    done = in_process(_GPUCOST_COMPLETE=asked)
    assert done.returncode == 2
    assert "_GPUCOST_COMPLETE" in done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr


def test_a_file_of_no_name_is_not_taken_for_no_file():
    done = in_process("validate", "--kind", "training", "--measurements=")
    assert (done.returncode, done.stdout) == (2, "")
    assert "''" in done.stderr


def test_a_run_that_rounds_to_nothing_is_answered(refused):
    pool = POOL.replace(b"0.3", b"1e-9").replace(b"1.7", b"1e-9").replace(b"2026-01-01", b"2026-11-01")
    Path("pool.toml").write_bytes(pool)
    asked = {"sequence": 1, "gpus": 8, "gpu": "h100-sxm", "pool": "pool.toml", "top": 3, "as_of": "2026-11-20"}
    answer = gpucost.estimate("0.01b", 8, **asked)
    assert answer.best["provider"] == "own"
    assert answer.best["cost_usd"] == 0
    assert answer.to_text(details=True)


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
        with pytest.raises(UsageError, match="UTF-8"):
            said()


@pytest.mark.parametrize("sequence", [float("nan"), float("inf"), 0.0, -8192.0])
def test_a_column_of_sequences_holds_numbers_of_tokens(sequence):
    with pytest.raises(UsageError, match=r"^sequence: "):
        gpucost.throughput("8b", "h100-sxm", gpus=8, sequence=[sequence, 8192.0])


@pytest.mark.parametrize("value", ["5e-324", "1e-12", "1e-10%"])
def test_a_share_that_is_no_figure_is_a_slip(value):
    with pytest.raises(UsageError, match="so close to 0"):
        gpucost.inference("8b", gpu="h100-sxm", utilisation=value)
    with pytest.raises(UsageError, match="so close to 0"):
        gpucost.tco(gpu="h100-sxm", gpus=8, utilisation=value)


@pytest.mark.parametrize("missing", [pandas.NA, pandas.NaT, np.ma.masked], ids=repr)
@pytest.mark.parametrize("name", ["overhead", "method", "strict_prices", "gpus", "deadline", "region", "as_of", "pool"])
def test_a_value_that_is_missing_is_as_one_that_is_not_said(name, missing):
    asked = {"model": "8b", "tokens": "1b", "gpu": "h100-sxm", "top": 1, "with_facts": False}
    plain = gpucost.estimate(**asked).best["cost_usd"]
    assert gpucost.estimate(**asked, **{name: missing}).best["cost_usd"] == plain


def test_a_masked_cell_of_a_column_is_not_what_stands_below_the_mask():
    gpus = np.ma.masked_array([8, 16], mask=[False, True])
    table = gpucost.throughput("8b", "h100-sxm", gpus=gpus)
    assert "1 with" in repr(table)
