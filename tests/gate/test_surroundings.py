"""Threads that share a catalog, terminals of few signs: the same answers, and no crash."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from gpucost.store.files import write_text

BOOK = '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\ngpus = 8\nusd_per_gpu_hour = 1\nobserved_on = 2026-01-01\n'


@pytest.mark.slow
@pytest.mark.parametrize("with_book", [False, True])
def test_a_catalog_is_shared_by_eight_threads_from_its_first_call(tmp_path, with_book):
    (tmp_path / "book.toml").write_text(BOOK)
    for _ in range(3):
        catalog = open_catalog("2026-11-01", book=tmp_path if with_book else None)
        start = Barrier(8)

        def first(number, catalog=catalog, start=start):
            start.wait()
            if number % 2:
                catalog.query("SELECT count(*) AS n FROM llms", "llms", "systems")
                return len(catalog.offers())
            rows = catalog.price_rows
            return sum(not row["conflict"] and not row["gpu_ambiguous"] for row in rows)

        with ThreadPoolExecutor(8) as pool:
            counts = list(pool.map(first, range(8)))
        assert len(set(counts[0::2])) == len(set(counts[1::2])) == 1


@pytest.mark.parametrize(
    ("command", "encoding"),
    [
        (("--help",), "ascii"),
        (("data", "schema", "estimate"), "cp437"),
        (("data", "sources", "--format", "md"), "latin-1"),
    ],
)
def test_few_signs_break_nothing(command, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.getcwd()}
    said = subprocess.run([sys.executable, "-m", "gpucost", *command], capture_output=True, env=environment)
    assert said.returncode == 0, said.stderr
    assert b"internal error" not in said.stderr
    assert said.stdout.decode("utf-8")


@pytest.mark.parametrize(
    "asked", ["estimate --model 8b --tokens 1b --quiet", "tco --gpu h100 --gpus 8 --quiet", "sql 'SELECT 7 AS USD'"]
)
def test_a_folder_that_somebody_removed_is_one_without_settings(asked, tmp_path):
    script = "import os, sys; from gpucost.cli import run; os.rmdir(os.getcwd()); run()"
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", script, *shlex.split(asked)]
    (tmp_path / "gone").mkdir()
    said = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path / "gone", text=True)
    assert said.returncode == 0, said.stderr
    assert "$" in said.stdout or "USD" in said.stdout


def test_nothing_is_written_into_a_folder_that_somebody_removed(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match=r"x\.json"):
        write_text("x.json", "text")
