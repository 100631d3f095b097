"""Saved answers before they are read by anybody: what they must hold, and whether their figures follow from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucost.answers.read import check, read_answer, reading
from gpucost.errors import UsageError


def read_saved(path: str | Path) -> dict[str, Any]:
    """Read a saved answer of any kind; one whose figures contradict each other is refused."""
    payload = read_answer(path)
    _refuse_contradictions(payload, str(path))
    return payload


def check_saved(payload: Mapping[str, Any], path: str) -> None:
    """Refuse an answer that lacks what its kind must have, or contradicts itself."""
    check(payload, path)
    _refuse_contradictions(payload, path)


def _refuse_contradictions(payload: Mapping[str, Any], path: str) -> None:
    from gpucost.money.recount import contradiction

    for answer in (payload, *(part["payload"] for part in payload.get("parts") or () if "payload" in part)):
        with reading(path):
            fault = contradiction(answer)
        if fault:
            raise UsageError(
                f"{path!r}: {fault}: the file was changed, or saved by another version. Ask again and save the answer"
                " with --format json -o FILE."
            )
