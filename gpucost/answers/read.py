"""Reading a saved answer: JSON of the present shape, or a sentence that says how to get one."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from gpucost.answers import KINDS
from gpucost.answers.schema import answer_schema, misfits
from gpucost.answers.training import Estimate
from gpucost.errors import UsageError
from gpucost.gate import read_json

_OLD_NAMES = {"summary": "lead", "assumptions_said": "said"}  # of schema version 1
_NAMED = 3  # misfits that a refusal names


def read_answer(path: str | Path) -> dict[str, Any]:
    """Read a saved answer of any kind; names that an older version gave to its keys are read as those of today."""
    payload = read_json(path, "limit_answer_file_bytes")
    if not isinstance(payload, dict) or not isinstance(payload.get("kind"), str):
        raise UsageError(f"{str(path)!r} is no saved answer: it has no `kind`. Save one with --format json -o FILE.")
    payload = {_OLD_NAMES.get(name, name): value for name, value in payload.items()}
    check(payload, str(path))
    return payload


def check(payload: Mapping[str, Any], path: str) -> None:
    """Refuse an answer that lacks what its kind must have, before anything reads it."""
    kind = str(payload["kind"])
    if kind not in KINDS:
        raise UsageError(f"{path!r} holds a {kind!r}, which is no answer. There are {', '.join(KINDS)}.")
    found = list(islice(misfits(payload, answer_schema(kind)), _NAMED))
    if found:
        raise UsageError(
            f"{path!r} is no {kind} as this version writes it ({'; '.join(found)}): it was saved by another version or"
            " changed. Ask again and save the answer with --format json -o FILE."
        )


def read_estimate(path: str | Path) -> Estimate:
    """Read a saved estimate."""
    payload = read_answer(path)
    if payload["kind"] != "estimate":
        raise UsageError(f"{str(path)!r} holds a {payload['kind']}, not an estimate saved with --format json.")
    return cast(Estimate, payload)
