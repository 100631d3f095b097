"""A short run of the fuzzer on every surface: nothing breaks, hangs or answers nonsense."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.judge import folder, verdict_of
from benchmarks.fuzz.surfaces import SURFACES, case

CASES = 3  # of each surface


@pytest.mark.slow
@pytest.mark.more  # two minutes on two cores
def test_nothing_breaks_on_any_surface():
    """In a process of its own: one that ran other tests has grown already, and memory is judged by what is used."""
    asked = [sys.executable, "-m", "benchmarks.fuzz", "--cases", str(CASES * len(SURFACES)), "--json"]
    asked += [word for surface in SURFACES for word in ("--surface", surface)]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=600)
    found = json.loads(done.stdout)
    assert found["places"] == [], done.stderr
    assert {sum(counts.values()) for counts in found["counts"].values()} == {CASES}
    assert found["counts"]["sql"]["answered"], "a query that the fuzzer itself breaks is refused for ever"


@pytest.mark.slow
def test_queries_are_answered_by_the_catalog_that_the_fuzzer_shares():
    """It stands for Catalog's own way in: a parameter that is renamed there and not here would look like a crash."""
    asked = [sys.executable, "-m", "benchmarks.fuzz", "--cases", "12", "--surface", "sql", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=120)
    found = json.loads(done.stdout)
    assert found["places"] == [], done.stderr
    assert found["counts"]["sql"]["answered"]


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES)
def test_a_number_names_a_case_for_ever(surface):
    assert case(surface, 7) == case(surface, 7)
    assert len({repr(case(surface, number)) for number in range(60)}) > 40


def test_the_judge_sees_each_fault(monkeypatch, tmp_path):
    from gpucost.cli.lists import sources

    def asked(action):
        monkeypatch.setattr(sources, "callback", lambda **_: action())
        with folder():
            return verdict_of(Case(["data", "sources", "--format", "json"])).kind

    assert asked(lambda: None) == "answered"
    assert asked(lambda: 1 / 0) == "crash"
    assert asked(lambda: print('{"a": NaN}')) == "nonsense"
    assert asked(lambda: print("\x1b[2J")) == "nonsense"
    assert asked(lambda: print('{"cost_usd": -1}')) == "nonsense"
    assert asked(lambda: print('{"cost_usd": 1, "cost_low_usd": 2, "cost_high_usd": 3}')) == "nonsense"


@pytest.mark.parametrize(
    "variables", [{"HOME": ""}, {"LC_ALL": "C"}, {"TZ": "Pacific/Kiritimati"}, {"TZ": "Nowhere/No"}]
)
def test_any_environment_gives_the_same_bytes(variables):
    assert audited(**variables) == audited(HOME="/")


@cache
def audited(**variables):
    """Return what a question prints in a process of its own."""
    asked = [sys.executable, "-m", "gpucost", "audit", "--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm"]
    asked += ["--gpus", "64", "--days", "8", "--as-of", "2026-11-20", "--format", "json"]
    plain = {key: value for key, value in os.environ.items() if key not in ("HOME", "LC_ALL", "TZ", "PYTHONUTF8")}
    root = Path(__file__).parents[2]
    done = subprocess.run(asked, capture_output=True, env={**plain, **variables}, cwd=root, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
