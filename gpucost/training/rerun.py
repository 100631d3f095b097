"""Reproduce a saved estimate from the facts that it embeds, and explain what differs under another version."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from gpucost import __version__
from gpucost.answers import SCHEMA_VERSION
from gpucost.answers.training import Difference, Estimate, Rerun
from gpucost.bridges.compare import bridge
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.market.embedded import embed, unembed
from gpucost.market.facts import make_market
from gpucost.physics.calibration import Calibration
from gpucost.training.request import TrainingRequest
from gpucost.training.run import answer_request
from gpucost.types import Architecture

_NEVER_NONE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "moe_layer_step")  # of any model
_NEEDED = ("model", "tokens")  # without which there is no question
_LARGEST = 10**15  # of any dimension
_REPORTED = 20  # differences named one by one


def rerun(
    saved: Estimate, calibration: Calibration, read_request: Callable[[Mapping[str, Any]], TrainingRequest]
) -> Estimate:
    """Compute a saved estimate again from its own facts: offers, hardware, model and assumptions as it embeds them."""
    if saved.get("kind") != "estimate" or "facts" not in saved:
        raise UsageError(
            f"a saved {saved.get('kind', 'file')!s} holds no facts to rerun from; `rerun` takes estimates saved with"
            " --format json."
        )
    if missing := [name for name in _NEEDED if saved["request"].get(name) is None]:
        raise UsageError(f"the request of the saved estimate lacks {' and '.join(missing)}: the file was changed.")
    try:
        facts = unembed(saved["facts"], saved["as_of"], saved["catalog_version"], saved["sources"])
        architecture = msgspec.convert(saved["facts"]["architecture"], Architecture)
        for name, value in structs.asdict(architecture).items():
            least = 1 if name in _NEVER_NONE else 0
            if name == "extra_parameters":  # a correction of what the dimensions count, either way
                least = -_LARGEST
            if isinstance(value, (int, float)) and not least <= value <= _LARGEST:
                raise ValueError(f"architecture.{name} is {shown(value)}, which no model has")
        request = read_request(saved["request"])
        mask = np.ones(len(facts.offers), bool)
        answer = answer_request(request, architecture, make_market(facts), mask, calibration)
        return {**answer, "facts": embed(facts, mask, architecture)}
    # whatever a changed file breaks: its author, not ours, has something to mend
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise UsageError(
            f"the saved facts cannot be read ({type(error).__name__}: {error}); the file was changed or is of another"
            " version."
        ) from None


def differences(saved: Any, fresh: Any, path: str = "") -> list[Difference]:
    """Return where two answers differ, key by key.

    >>> differences({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]})
    [{'where': 'b[1]', 'saved': 2, 'now': 3}]
    """
    if isinstance(saved, Mapping) and isinstance(fresh, Mapping):
        changes: list[Difference] = []
        for key in dict.fromkeys([*saved, *fresh]):
            changes += differences(saved.get(key), fresh.get(key), f"{path}.{key}" if path else str(key))
        return changes
    if isinstance(saved, list) and isinstance(fresh, list):
        changes = []
        for number in range(max(len(saved), len(fresh))):
            before, now = (items[number] if number < len(items) else None for items in (saved, fresh))
            changes += differences(before, now, f"{path}[{number}]")
        return changes
    return [] if saved == fresh and type(saved) is type(fresh) else [{"where": path, "saved": saved, "now": fresh}]


def verdict(saved: Estimate, fresh: Estimate) -> Rerun:
    """Return whether a rerun gave the same, and if not, what differs and why."""
    # a figure that joined the answers after the file was saved says nothing about the others
    known = {key: value for key, value in fresh.items() if key in saved or key not in Estimate.__optional_keys__}
    still_known = {key: value for key, value in saved.items() if key in Estimate.__annotations__}  # nor one that left
    changed = differences(still_known, known)
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
    comparison = bridge(saved, fresh) if changed else None
    lead = "Reproduced: every figure equals the saved one."
    if changed:
        lead = f"{len(changed)} figures differ: {'; '.join(reasons)}."
    return {
        "kind": "rerun",
        "schema_version": SCHEMA_VERSION,
        "gpucost_version": __version__,
        "request": saved["request"],
        "as_of": saved["as_of"],
        "catalog_version": saved["catalog_version"],
        "equal": not changed,
        "lead": lead,
        "reasons": reasons,
        "differences_found": len(changed),
        "differences": changed[:_REPORTED],
        "changes": [] if comparison is None else comparison["changes"],
        "warnings": [],
        "sources": {},
    }
