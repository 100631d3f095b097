"""Claims in circulation, typed into `audit`: what is true is possible, what is false is not."""

import csv
import json
import shlex
from pathlib import Path

import pytest

from tests.commands import in_process

with (Path(__file__).parent / "claims.csv").open(encoding="utf-8", newline="") as file:
    CLAIMS = list(csv.DictReader(file))


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row["claim"])
def test_a_claim_is_judged_as_the_world_knows_it(row):
    answer = in_process("audit", *shlex.split(row["arguments"]), "--format", "json")
    assert answer.returncode in (0, 5), answer.stderr
    verdict = json.loads(answer.stdout)["verdict"]
    assert (verdict == "possible") == (row["is_true"] == "yes"), answer.stdout
    assert (answer.returncode == 5) == (verdict == "impossible")


def test_there_are_fifty_of_each():
    truths = [row["is_true"] for row in CLAIMS]
    assert min(truths.count("yes"), truths.count("no")) >= 50
