"""Saved answers that were changed and sealed anew: whoever changes a file can do so, and nothing warns of it."""

import json
import re
from contextlib import suppress
from random import Random

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.values import dump, spoilt_tree
from gpucost.answers.saved import sealed

ENDINGS = ("xlsx", "csv", "md", "html", "txt", "json")
LARGE = ("1e308", "-1e308", "1e400", "9" * 400, "5e-324", "-0.0", "NaN", "Infinity", "-Infinity", "1e15", "null")
_DEEP = 2000  # lists in lists
_NUMBER = re.compile(rb'": (-?\d[\d.e+-]*)[,}]')


def seals(random: Random) -> Case:
    """Every command that reads a saved answer, with one whose seal fits what was changed."""
    arguments = random.choice(_COMMANDS)
    kinds = good.answers()
    # those that the command takes: every kind, estimates with facts, or also what has a bill; else it refuses at once
    fitting = {"report": kinds, "watch": [good.estimate_with_facts()]}
    fitting_kinds = fitting.get(arguments[0], [good.estimate_with_facts(), *kinds[:4]])
    answer = random.choice(fitting_kinds if random.random() < 0.85 else kinds)
    content = {name: value for name, value in json.loads(answer).items() if name != "seal"}
    # a key that stands twice: readers of JSON differ in which of the two they take
    twice = random.choice(list(content)) if random.random() < 0.15 else None
    data = dump(spoilt_tree(random, content))
    if random.random() < 0.4 and (places := list(_NUMBER.finditer(data))):
        # a number that is no figure, or that no machine holds, in the place of another one
        place = random.choice(places)
        data = data[: place.start(1)] + random.choice(LARGE).encode() + data[place.end(1) :]
    if twice is not None:
        data = data.replace(b"{", b"{" + dump(twice) + random.choice([b": null, ", b": 3, ", b": {}, "]), 1)
    if random.random() < 0.05:
        data = data.replace(b"[", b"[" * _DEEP, 1).replace(b"]", b"]" * _DEEP, 1)
    with suppress(ValueError, RecursionError, OverflowError, AttributeError):  # what no program can seal stays without
        data = sealed(data.decode()).encode()
    files: dict[str, bytes | str] = {
        "answer.json": data,
        "good.json": answer,
        "train.log": good.LOG,
        "invoice.csv": good.INVOICE,
    }
    return Case(list(arguments), files)


_COMMANDS = (
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
