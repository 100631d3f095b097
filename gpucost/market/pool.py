"""The user's own accelerators as offers: owned or committed pools, incremental or fully loaded."""

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from gpucost.catalog import Catalog
from gpucost.errors import DataError
from gpucost.gate import read_toml, repeated, shown
from gpucost.market.facts import make_offer
from gpucost.schemas.typed import held, number, record, text
from gpucost.types import Offer, System

if TYPE_CHECKING:
    from pydantic import BaseModel

VIEWS = ("incremental", "loaded")
_PRICE_KEYS = tuple(f"{view}_usd_per_gpu_hour" for view in VIEWS)

_AS_OWNED = {
    "offer_kind": "offer",
    "provider": "own",
    "gpu_assumed": False,
    "region_scope": "unknown",
    "option": "on_demand",
    "billing": "per_use",
    "term_months": 0,
    "payment": "none",
    "confidence": "high",
    "book": "user",
    "price_kind": "effective",
}


@cache
def pool_model() -> "type[BaseModel]":
    """Return the model of one [[pool]]."""
    price = number(high=2000, above=True)
    model: type[BaseModel] = record(
        "Pool",
        name=text(200),
        gpu=text(200, 1),
        gpus=number(1, 1e6, whole=True),
        system=text(200, 1),
        available_gpus=number(1, 1e9, whole=True),
        incremental_usd_per_gpu_hour=price,
        loaded_usd_per_gpu_hour=price,
        region=text(200),
        observed_on=(Any, None),
    )
    return model


def read_pool(path: str, catalog: Catalog, as_of: date, view: str) -> tuple[list[Offer], list[System]]:
    """Read pools from a TOML file with [[pool]] tables.

    Each names a gpu, the gpus per node, available_gpus, and what a GPU-hour costs: incremental_usd_per_gpu_hour (power
    and upkeep of capacity that is paid for anyway) and loaded_usd_per_gpu_hour (with capital, space and staff).
    """
    whole = read_toml(path)
    if strange := next((name for name in whole if name != "pool"), None):
        raise DataError("no such key is known here; each pool is a table [[pool]]", file=path, column=strange[:120])
    tables = whole.get("pool", [])
    if not isinstance(tables, list) or not tables:
        raise DataError(
            "no [[pool]] table; each pool needs gpu, gpus, available_gpus and a price per GPU-hour", file=path
        )
    pairs = []
    for place, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise DataError(f"{shown(table)} is no table [[pool]]", file=path, row=place)
        held(pool_model(), table, path, place)
        views = [name for name in VIEWS if view in ("both", name) and f"{name}_usd_per_gpu_hour" in table]
        if not views:
            raise DataError(f"no price: give {' or '.join(_PRICE_KEYS)}", file=path, row=place)
        pairs += [_offer(table, place, path, catalog, as_of, name) for name in views]
    if twice := repeated(offer.offer_id for offer, _ in pairs):
        reason = f"two pools are called {shown(twice[0].split('/')[1])}. Give each a name of its own."
        raise DataError(reason, file=path, column="name")
    return [offer for offer, _ in pairs], [system for _, system in pairs]


def _offer(
    table: dict[str, Any], number: int, path: str, catalog: Catalog, as_of: date, view: str
) -> tuple[Offer, System]:
    system = _system(table, number, path, catalog)
    gpus = int(table.get("gpus", system.gpus))
    available = int(table.get("available_gpus", gpus))
    if available < gpus:
        reason = f"{available} are fewer than the {gpus} of one node: give gpus = {available}, or more of them"
        raise DataError(reason, file=path, row=number, column="available_gpus")
    price = float(table[f"{view}_usd_per_gpu_hour"])
    name, seen = str(table.get("name") or f"pool-{number}"), _seen(table, number, path, as_of)
    known = _AS_OWNED | {
        "offer_id": f"own/{name}/{view}",
        "instance_type": f"{name} ({view})",
        "tier": view,
        "gpu": system.accelerator_id,
        "gpus": gpus,
        "system_id": system.id,
        "region": str(table.get("region", "")),
        "usd_per_hour": price * gpus,
        "usd_per_gpu_hour": price,
        "maximum_units": max(1, available // gpus),
        "availability": f"{available} accelerators",
        "observed_on": seen,
        "age_days": max(0, (as_of - seen).days),
        "notes": f"{view} cost of capacity of your own",
    }
    return make_offer(known), system


def _seen(table: dict[str, Any], number: int, path: str, as_of: date) -> date:
    """Return the day when a pool's cost was seen, written as a day or as its text; no day of the future."""
    day = table.get("observed_on", as_of)
    try:
        seen = date.fromisoformat(day.strip()) if isinstance(day, str) else day
    except ValueError:
        seen = None
    if type(seen) is not date:
        raise DataError(f"{shown(day)} is no day such as 2026-06-15", file=path, row=number, column="observed_on")
    if seen > as_of:
        reason = f"{seen} lies after {as_of}, the day that prices are taken from. Ask with --as-of {seen} or later."
        raise DataError(reason, file=path, row=number, column="observed_on")
    return seen


def _system(table: dict[str, Any], number: int, path: str, catalog: Catalog) -> System:
    """Return the node that a pool names, else the usual one of its accelerator; where it names both, they agree."""
    named, gpu = table.get("system"), table.get("gpu")
    if gpu is None and named is None:
        raise DataError("the name of a gpu or a system is needed", file=path, row=number, column="gpu")
    if named is None:
        return catalog.default_system(catalog.accelerator(str(gpu)).id)
    system = catalog.system(named)
    meant = [system.accelerator_id] if gpu is None else catalog.accelerator_names.matches(gpu)
    if system.accelerator_id not in (meant or [catalog.accelerator(str(gpu)).id]):
        reason = f"{system.id} has {system.accelerator_id}, not {shown(gpu)}: leave one of the two out"
        raise DataError(reason, file=path, row=number, column="gpu")
    return system
