"""Every bound that `gpucost config` shows, exceeded: refused soon, in little memory, with no process left."""

import csv
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.fuzz import blows, good, waits
from gpucost.limits import LIMITS

H100 = "provider,gpu,gpus,usd_per_gpu_hour,observed_on\n"
BOOK = {"GPUCOST_BOOK": "book"}
PRICES = ["prices", "--gpu", "h100-sxm", "--limit", "1"]
SQL = ["sql", "--format", "json", "--"]
TCO = ["tco", "--gpu", "h100-sxm", "--gpus", "8"]
RECONCILE = ["reconcile", "invoice.parquet", "--estimate", "answer.json"]


def book(rows, name="offers.csv"):
    lines = [f"acme-{number},h100-sxm,8,{1 + number / 1000},2026-11-0{1 + number % 9}" for number in range(rows)]
    return {f"book/{name}": (H100 + "\n".join(lines)).encode()}


SHEET = good.workbook([["provider", "gpu"]] + [["a", "b"]] * 40)


def small_parquet(rows):
    return blows.repeated("book", rows)


# bound -> a lower one, what exceeds it, and the files that it names; None where another test says so
CASES = {
    "limit_text_file_bytes": (1000, [*TCO, "--plan", "plan.toml"], {"plan.toml": b"#" * 2000}),
    "limit_log_file_bytes": (
        1000, ["watch", "train.log", "--estimate", "answer.json"], {"train.log": good.LOG * 20, "answer.json": None}
    ),
    "limit_answer_file_bytes": (1000, ["saved", "rerun", "answer.json"], {"answer.json": None}),
    "limit_book_file_bytes": (1000, PRICES, book(60)),
    "limit_book_unpacked_bytes": (100, PRICES, {"book/offers.parquet": small_parquet(5000)}),
    "limit_book_rows": (1000, PRICES, {"book/offers.parquet": small_parquet(5000)}),
    "limit_book_offers": (4, PRICES, {"book/offers.parquet": None}),
    "limit_table_file_bytes": (
        100, ["data", "check", "offers.csv", "--table", "offers"], {"offers.csv": good.BOOK_CSV * 9}
    ),
    "limit_invoice_file_bytes": (1000, RECONCILE, {"invoice.parquet": None, "answer.json": None}),
    "limit_invoice_rows": (1, RECONCILE, {"invoice.parquet": None, "answer.json": None}),
    "limit_workbook_cells": (20, PRICES, {"book/offers.xlsx": SHEET}),
    "limit_workbook_bytes": (1000, PRICES, {"book/offers.xlsx": SHEET}),
    "limit_nesting": (4, [*TCO, "--plan", "plan.toml"], {"plan.toml": b"x = " + b"[" * 9 + b"]" * 9}),
    "limit_digits": (5, [*TCO, "--plan", "plan.toml"], {"plan.toml": b"x = 12345678901"}),
    "limit_text_characters": (100, [*TCO, "--plan", "plan.toml"], {"plan.toml": b'x = "' + b"y" * 300 + b'"'}),
    "limit_name_characters": (50, ["estimate", "--model", "x" * 200, "--tokens", "1b"], {}),
    "limit_query_seconds": (1, [*SQL, "select count(*) from range(100000000000) a, range(100000) b"], {}),
    "limit_query_memory_gb": (0.05, [*SQL, "select list(range) from range(100000000)"], {}),
    "limit_query_result_bytes": (10_000, [*SQL, "select repeat(chr(1), 1000) from range(20)"], {}),
    "limit_query_row_bytes": (1000, [*SQL, "select repeat('x', 20000)"], {}),
    "limit_query_rows": (100, [*SQL, "select * from range(100000)"], {}),
    "limit_query_cells": (100, [*SQL, "select range, range, range from range(100000)"], {}),
    "limit_sweep_cases": (10, ["sweep", "--model=8b", "--gpu=h100-sxm", "--gpus=8:800:8", "--tokens=1b"], {}),
    "limit_sweep_rows": (1000, ["sweep", "--cases", "cases.parquet"], {"cases.parquet": blows.repeated("cases", 5000)}),
    "limit_sweep_values": (10, ["sweep", "--model=8b", "--gpu=h100-sxm", "--gpus=8:8000:8", "--tokens=1b"], {}),
    "limit_refresh_seconds": (1, ["prices", "refresh", "--from=azure", "--mirror=SERVER", "--store=new"], {}),
    "limit_store_seconds": (1, ["prices", "verify", "--store=SERVER/p"], {}),
    "limit_pattern_seconds": (
        1, ["watch", "train.log", "--estimate", "answer.json", "--pattern", r"step_ms=(?:a+)+b(\d+)"],
        {"train.log": b"a" * 64, "answer.json": None},
    ),
    "limit_refresh_bytes": (20_000, ["prices", "refresh", "--from=oci", "--mirror=SERVER", "--store=new"], {}),
}  # fmt: skip
# Asked by a small process of its own: the peak that is counted for a child begins with that of the process that starts
# it, and a process that ran other tests has grown, and so have its other children.
MEASURED = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "gpucost", *sys.argv[2:]]).returncode
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(code)
"""


def files_of(name, files):
    found = {file: data for file, data in files.items() if data is not None}
    if "answer.json" in files:
        found["answer.json"] = good.answers()[0]
    if "invoice.parquet" in files:
        found["invoice.parquet"] = good.invoice_parquet()
    if files.get("book/offers.parquet", b"") is None:
        found["book/offers.parquet"] = good.parquet()
    return found


def test_every_bound_has_a_case_that_exceeds_it():
    assert set(CASES) == set(LIMITS)


@pytest.mark.parametrize("name", CASES)
def test_a_bound_that_is_exceeded_refuses_soon_and_in_little_memory(name, tmp_path):
    value, arguments, files = CASES[name]
    for file, data in files_of(name, files).items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    behaviour = "without_end" if name == "limit_refresh_bytes" else "dripping_body"
    with waits.served(behaviour) as address:
        words = [word.replace("SERVER", address) for word in arguments]
        homes = {f"XDG_{kind}_HOME": str(tmp_path / "home") for kind in ("CONFIG", "DATA", "CACHE")}
        given = {**os.environ, **homes, **(BOOK if any(file.startswith("book") for file in files) else {})}
        given |= {f"GPUCOST_{name.upper()}": str(value), "PYTHONPATH": os.getcwd()}
        began = time.monotonic()
        command = [sys.executable, "-c", MEASURED, str(tmp_path / "peak"), *words]
        with subprocess.Popen(command, cwd=tmp_path, env=given, text=True, start_new_session=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:  # fmt: skip
            out, said = asked.communicate(timeout=100)
        seconds = time.monotonic() - began
    assert asked.returncode in (2, 5), said or out
    assert "Traceback" not in said
    assert "internal error" not in said
    assert said.strip()
    if LIMITS[name].unit == "seconds":
        assert seconds < 2 * value + 8, "a busy machine needs some seconds to begin"
    assert 1e7 < int((tmp_path / "peak").read_text()) < 2e9
    with pytest.raises(ProcessLookupError):
        os.killpg(asked.pid, 0)  # nobody of its session is left


@pytest.mark.slow
def test_a_file_of_millions_of_equal_rows_is_refused_by_its_footer(tmp_path):
    """Some hundred kilobytes that hold 30 million rows: what would take a minute of the processor takes none."""
    from gpucost.catalog import open_catalog
    from gpucost.errors import DataError
    from gpucost.sweeping.grid import cases_of

    (tmp_path / "book").mkdir()
    (tmp_path / "book/offers.parquet").write_bytes(blows.repeated("book"))
    (tmp_path / "cases.parquet").write_bytes(blows.repeated("cases"))
    assert (tmp_path / "book/offers.parquet").stat().st_size < 1_000_000
    spent_s = time.process_time()
    with pytest.raises(DataError, match="holds 30,000,000 rows"):
        open_catalog(book=tmp_path / "book").offers()
    with pytest.raises(DataError, match="holds 30,000,000 rows"):
        cases_of(str(tmp_path / "cases.parquet"))
    assert time.process_time() - spent_s < 10


def test_the_table_of_bounds_is_what_config_shows():
    from tests.commands import in_process

    shown = json.loads(in_process("config", "--format", "json").stdout)["rows"]
    table = Path(__file__).parents[2] / "gpucost/limits.csv"
    names = [row[0] for row in csv.reader(io.StringIO(table.read_text()))][1:]
    assert [row["setting"] for row in shown if row["kind"] == "limit"] == names


@pytest.mark.parametrize("address", ["https://me:secret@example.org/gpu", "https://example.org/gpu?sig=secret#secret"])
def test_config_shows_no_key_within_an_address(address, monkeypatch):
    from tests.commands import in_process

    for form in ("json", "table", "csv"):
        done = in_process("config", "--format", form, GPUCOST_STORE=address)
        assert "secret" not in done.stdout + done.stderr
        assert "example.org/gpu" in done.stdout
