"""Threads that share a catalog, terminals of few signs: the same answers, and no crash."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gpucost.catalog import open_catalog

BOOK = '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\ngpus = 8\nusd_per_gpu_hour = 1\nobserved_on = 2026-01-01\n'


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
    [(("--help",), "ascii"), (("schema", "estimate"), "cp437"), (("sources", "--format", "md"), "latin-1")],
)
def test_few_signs_break_nothing(command, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.getcwd()}
    said = subprocess.run([sys.executable, "-m", "gpucost", *command], capture_output=True, env=environment)
    assert said.returncode == 0, said.stderr
    assert b"internal error" not in said.stderr
    assert said.stdout.decode("utf-8")
