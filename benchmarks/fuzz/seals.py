"""Saved answers that were changed and sealed anew: whoever changes a file can do so, and nothing warns of it."""

import json
import re
from random import Random

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.values import dump, spoilt_tree
from gpucost.answers.saved import sealed

ENDINGS = ("xlsx", "csv", "md", "html", "txt", "json")
LARGE = ("1e308", "-1e308", "1e400", "9" * 400, "5e-324", "-0.0", "NaN", "Infinity", "-Infinity", "1e15", "null")
DEEP = 2000  # lists in lists


def seals(random: Random) -> Case:
    """Every command that reads a saved answer, with one whose seal fits what was changed."""
    asked = random.choice(_ASKED)
    kinds = good.answers()
    one = random.choice(_fitting(asked[0], kinds) if random.random() < 0.85 else kinds)
    files: dict[str, bytes | str] = {
        "answer.json": tampered(random, one),
        "good.json": one,
        "train.log": good.LOG,
        "invoice.csv": good.INVOICE,
    }
    return Case(list(asked), files)


_ASKED = (
    *(("report", "answer.json", "-o", f"out.{ending}") for ending in ENDINGS),
    ("report", "answer.json"),
    ("saved", "rerun", "answer.json"),
    ("saved", "rerun", "answer.json", "--explain"),
    ("saved", "rerun", "answer.json", "--format", "json"),
    ("saved", "diff", "answer.json", "good.json"),
    ("saved", "diff", "good.json", "answer.json", "--format", "json"),
    ("saved", "export", "--focus", "answer.json", "-o", "plan.csv"),
    ("saved", "export", "--focus", "answer.json", "-o", "plan.parquet", "--start", "2026-11-01"),
    ("compare", "answer.json", "good.json"),
    ("compare", "good.json", "answer.json", "--format", "json"),
    ("reconcile", "invoice.csv", "--estimate", "answer.json"),
    ("watch", "train.log", "--estimate", "answer.json"),
)


def _fitting(command: str, kinds: list[bytes]) -> list[bytes]:
    """Return the answers that a command takes: estimates with facts, those with a bill, or every kind."""
    return {"report": kinds, "watch": [good.estimate_with_facts()]}.get(
        command, [good.estimate_with_facts(), *kinds[:4]]
    )


def tampered(random: Random, one: bytes) -> bytes:
    """Change an answer in some places, and seal it again; one that no program can seal stays without."""
    content = {name: value for name, value in json.loads(one).items() if name != "seal"}
    twice = random.choice(list(content)) if random.random() < 0.15 else None
    data = dump(spoilt_tree(random, content))
    if random.random() < 0.4:
        data = _numbered(random, data)
    if twice is not None:
        data = data.replace(b"{", b"{" + dump(twice) + random.choice([b": null, ", b": 3, ", b": {}, "]), 1)
    if random.random() < 0.05:
        data = data.replace(b"[", b"[" * DEEP, 1).replace(b"]", b"]" * DEEP, 1)
    try:
        return sealed(data.decode()).encode()
    except (ValueError, RecursionError, OverflowError, AttributeError):
        return data


def _numbered(random: Random, data: bytes) -> bytes:
    """Put a number that is no figure, or that no machine holds, in the place of another one."""
    places = list(_NUMBER.finditer(data))
    if not places:
        return data
    place = random.choice(places)
    return data[: place.start(1)] + random.choice(LARGE).encode() + data[place.end(1) :]


_NUMBER = re.compile(rb'": (-?\d[\d.e+-]*)[,}]')
