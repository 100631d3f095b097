"""What makes a report fit to be handed on: who stands behind it, and what of it may be shared."""

from collections.abc import Callable, Mapping
from datetime import date
from hashlib import sha256
from typing import Any

from gpucost.arguments import QUESTIONS
from gpucost.catalog.names import listed
from gpucost.errors import UsageError

Payload = Mapping[str, Any]

# of the arguments of a question: what may hold a price or a name that somebody agreed upon in private
PRIVATE = ("rent", "pool", "rent_curve", "on_demand", "committed", "agreements")
SELLER = ("provider", "region")  # left out together where no public price names the seller
PRIVATE_INPUTS = ("rent", "quote", "supply", "price")  # beginnings of such inputs of a plan
PARTS = {"estimate": "training", "inference": "serving", "tco": "ownership", "mix": "mix"}


def hash_of(payload: Payload) -> str:
    """Return the SHA-256 of an answer as JSON, without the stamp that bears it."""
    from gpucost.render.json import dumps

    return sha256(dumps({key: value for key, value in payload.items() if key != "issued"}).encode()).hexdigest()


def issued(payload: Payload, status: str | None, by: str | None, on: str | None) -> dict[str, Any]:
    """Return an answer with its stamp; an older stamp gives way, and one that no longer fits is a warning."""
    kept = {key: value for key, value in payload.items() if key != "issued"}
    if (old := payload.get("issued")) and old["sha256"] != hash_of(kept) and not (status or by or on):
        words = f"The answer was changed after it was {old['status']} on {old['on']}: its SHA-256 is another."
        return {**payload, "warnings": [*payload["warnings"], words]}
    if not (status or by or on):
        return dict(payload)
    stamp = {"status": status or "draft", "by": by or "", "on": on or date.today().isoformat()}
    return {**kept, "issued": {**stamp, "sha256": hash_of(kept)}}


def shareable(content: Payload, say: list[str], sells: Callable[[str], bool], where: str = "") -> dict[str, Any]:
    """Return what was asked, without private prices, sellers and files; `say` gets what was left out."""
    found: dict[str, Any] = {}
    seller = content.get("provider")
    public = not isinstance(seller, (str, list)) or all(map(sells, listed(seller)))
    for key, value in content.items():
        if (
            key in PRIVATE
            or (not where and key in ("invoice", "commitment"))
            or (where and key.startswith(PRIVATE_INPUTS))
            or (key in SELLER and not public)
        ):
            say.append(f"{where}{key}")
        elif isinstance(value, Mapping):
            found[key] = shareable(value, say, sells, f"{where}{key}.")
        elif isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
            found[key] = [shareable(one, say, sells, f"{where}{key}[{number}].") for number, one in enumerate(value, 1)]
        elif isinstance(value, str) and value.lower().endswith((".toml", ".csv", ".json", ".xlsx")):
            say.append(f"{where}{key}")
        else:
            found[key] = value
    return found


def asked_anew(payload: Payload) -> dict[str, Any]:
    """Return the request of a saved answer as a scenario, so that it can be asked without private facts."""
    kind = str(payload["kind"])
    if kind == "scenario":
        return dict(payload["request"])
    if kind not in PARTS:
        raise UsageError(
            f"a saved {kind} cannot be made safe to share, only what can be asked anew: {', '.join(PARTS)}."
        )
    taken = {item.field or item.name: item.name for item in QUESTIONS[kind].arguments if not item.library_only}
    usual = {name for name in taken if payload["request"].get(f"{name.rpartition('_')[0]}_given") is False}
    given = {key: value for key, value in payload["request"].items() if value is not None and key not in usual}
    request = {taken.get(key, key): value for key, value in given.items() if key in taken or key in taken.values()}
    return {"name": kind.capitalize(), "as_of": payload["as_of"], PARTS[kind]: [{"name": kind.capitalize(), **request}]}
