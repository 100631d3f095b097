"""Reproduce a saved estimate from the facts that it embeds, and explain what differs under another version."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpucost import __version__
from gpucost.errors import DataError, UsageError
from gpucost.market.facts import embed, make_market, unembed
from gpucost.physics.training.calibration import Calibration
from gpucost.training.request import from_dict
from gpucost.training.run import answer_request
from gpucost.types import Architecture

_REPORTED = 20  # differences named one by one


def read_answer(path: str) -> dict[str, Any]:
    """Read a saved answer."""
    try:
        payload = json.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path!r}: {error}. Save an answer with --format json -o FILE.") from None
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg}", file=path, row=error.lineno, column=str(error.colno)) from None
    if not isinstance(payload, dict) or "kind" not in payload:
        raise UsageError(f"{path!r} is no saved answer: it has no `kind`. Save one with --format json -o FILE.")
    return payload


def rerun(saved: Mapping[str, Any], calibration: Calibration) -> dict[str, Any]:
    """Compute a saved estimate again from its own facts: offers, hardware, model and assumptions as it embeds them."""
    if saved.get("kind") != "estimate" or "facts" not in saved:
        raise UsageError(
            f"a saved {saved.get('kind', 'file')!s} holds no facts to rerun from; `rerun` takes estimates saved with"
            " --format json."
        )
    try:
        facts = unembed(saved["facts"], saved["as_of"], saved["catalog_version"], saved["sources"])
        architecture = Architecture(**saved["facts"]["architecture"])
        request = from_dict(saved["request"])
        mask = np.ones(len(facts.offers), bool)
        answer = answer_request(request, architecture, make_market(facts), mask, calibration)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the saved facts cannot be read ({type(error).__name__}: {error}); the file was changed or is of another"
            " version."
        ) from None
    return answer | {"facts": embed(facts, mask, architecture)}


def differences(saved: Any, fresh: Any, place: str = "") -> list[dict[str, Any]]:
    """Return where two answers differ, key by key.

    >>> differences({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]})
    [{'where': 'b[1]', 'saved': 2, 'now': 3}]
    """
    if isinstance(saved, Mapping) and isinstance(fresh, Mapping):
        found = []
        for key in dict.fromkeys([*saved, *fresh]):
            found += differences(saved.get(key), fresh.get(key), f"{place}.{key}" if place else str(key))
        return found
    if isinstance(saved, list) and isinstance(fresh, list):
        found = []
        for number in range(max(len(saved), len(fresh))):
            before, now = (items[number] if number < len(items) else None for items in (saved, fresh))
            found += differences(before, now, f"{place}[{number}]")
        return found
    return [] if saved == fresh and type(saved) is type(fresh) else [{"where": place, "saved": saved, "now": fresh}]


def verdict(saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a rerun gave the same, and if not, what differs and why."""
    from gpucost.saved.compare import compare

    changed = differences(saved, fresh)
    reasons = []
    if saved.get("gpucost_version") != __version__:
        reasons.append(
            f"computed by version {saved.get('gpucost_version')}, now {__version__}: the model changed, the facts"
            " did not"
        )
    if saved.get("calibration") != fresh.get("calibration"):
        reasons.append("the calibration of the physics changed")
    if changed and not reasons:
        reasons.append("the saved file was changed by hand: same version and calibration, other figures")
    comparison = compare(saved, fresh) if changed else None
    return {
        "kind": "rerun",
        "schema_version": saved.get("schema_version"),
        "gpucost_version": __version__,
        "as_of": saved.get("as_of"),
        "catalog_version": saved.get("catalog_version"),
        "equal": not changed,
        "summary": _sentence(changed, reasons),
        "reasons": reasons,
        "differences_found": len(changed),
        "differences": changed[:_REPORTED],
        "changes": [] if comparison is None else comparison["changes"],
        "warnings": [],
        "sources": {},
    }


def _sentence(changed: list[dict[str, Any]], reasons: list[str]) -> str:
    if not changed:
        return "Reproduced: every figure equals the saved one."
    return f"{len(changed)} figures differ: {'; '.join(reasons)}."
