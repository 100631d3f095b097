"""The user's own accelerators as offers: owned or committed pools, incremental or fully loaded."""

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from gpucost.catalog import Catalog
from gpucost.errors import DataError, PriceMissingError
from gpucost.gate import read_toml, repeated, shown
from gpucost.market.exchange import usd_per_unit
from gpucost.market.facts import AS_OWNED, make_offer
from gpucost.schemas import typed
from gpucost.types import Offer, System
from gpucost.units import HOURS_PER_MONTH

if TYPE_CHECKING:
    from pydantic import BaseModel

_VIEWS = ("incremental", "loaded")
_PRICE_KEYS = tuple(f"{view}_usd_per_gpu_hour" for view in _VIEWS)
# how a price may be written: in USD or in the currency of the pool, of an hour or of a month
_WAYS = ("usd_per_gpu_hour", "usd_per_gpu_month", "price_per_gpu_hour", "price_per_gpu_month")


@cache
def _pool_model() -> "type[BaseModel]":
    """Return the model of one [[pool]]."""
    # bounds that catch a slip of units: no GPU-hour costs more, and a month has 730 of them
    price, monthly = typed.number(high=2000, above=True), typed.number(high=1.5e6, above=True)
    model: type[BaseModel] = typed.record(
        "Pool",
        name=typed.text(200),
        gpu=typed.text(200, 1),
        gpus=typed.number(1, 1e6, whole_number=True),
        system=typed.text(200, 1),
        available_gpus=typed.number(1, 1e9, whole_number=True),
        **{f"{view}_{way}": price if way.endswith("hour") else monthly for view in _VIEWS for way in _WAYS},
        currency=typed.text(3, 3),
        upfront_per_gpu=typed.number(high=1e7, above=True),
        term_months=typed.number(1, 1200, whole_number=True),
        until=(Any, None),
        valid_until=(Any, None),
        region=typed.text(200),
        observed_on=(Any, None),
    )
    return model


def read_pool(path: str, catalog: Catalog, as_of: date, view: str) -> tuple[list[Offer], list[System]]:
    """Read pools from a TOML file with [[pool]] tables.

    Each names a gpu, the gpus per node, available_gpus, and what a GPU-hour costs: incremental_usd_per_gpu_hour (power
    and upkeep of capacity that is paid for anyway) and loaded_usd_per_gpu_hour (with capital, space and staff), also as
    ..._usd_per_gpu_month, or as incremental_price_per_gpu_hour and the like in a `currency`. What was paid upfront for
    a term (upfront_per_gpu, term_months) is part of the loaded cost; `until` is the last day.
    """
    content = read_toml(path)
    if strange := next((name for name in content if name != "pool"), None):
        raise DataError("this key is unknown; write each pool as a table [[pool]]", file=path, column=strange[:120])
    tables = content.get("pool", [])
    # [pool] in place of [[pool]] reads as one table, and means one pool: it is refused with the way to write it
    if not isinstance(tables, list) or not tables:
        raise DataError(
            "no [[pool]] table; each pool needs gpu, gpus, available_gpus and a price per GPU-hour", file=path
        )
    pairs = []
    for position, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise DataError(f"{shown(table)} is not a table [[pool]]", file=path, row=position)
        typed.validated(_pool_model(), table, path, position)
        views = [name for name in _VIEWS if view in ("both", name) and any(f"{name}_{way}" in table for way in _WAYS)]
        if not views:
            raise DataError(f"no price: give {' or '.join(_PRICE_KEYS)}", file=path, row=position)
        pairs += [_offer(table, position, path, catalog, as_of, name) for name in views]
    if twice := repeated(offer.offer_id for offer, _ in pairs):
        reason = f"two pools are called {shown(twice[0].split('/')[1])}. Give each a name of its own."
        raise DataError(reason, file=path, column="name")
    return [offer for offer, _ in pairs], [system for _, system in pairs]


def _offer(
    table: dict[str, Any], number: int, path: str, catalog: Catalog, as_of: date, view: str
) -> tuple[Offer, System]:
    """Return a pool as an offer at one view of its cost, and the node that it is."""

    def fault(reason: str, column: str) -> DataError:
        return DataError(reason, file=path, row=number, column=column)

    # the node that the pool names, else the usual one of its accelerator; where it names both, they agree
    system_name, gpu = table.get("system"), table.get("gpu")
    if gpu is None and system_name is None:
        raise fault("the name of a gpu or a system is needed", "gpu")
    if system_name is None:
        system = catalog.default_system(catalog.accelerator(str(gpu)).id)
    else:
        system = catalog.system(system_name)
        ids = [system.accelerator_id] if gpu is None else catalog.accelerator_names.matches(gpu)
        if system.accelerator_id not in (ids or [catalog.accelerator(str(gpu)).id]):
            raise fault(f"{system.id} has {system.accelerator_id}, not {shown(gpu)}: leave one of the two out", "gpu")
    gpus = int(table.get("gpus", system.gpus))
    available = int(table.get("available_gpus", gpus))
    if available < gpus:
        reason = f"{available} are fewer than the {gpus} of one node: give gpus = {available}, or more of them"
        raise fault(reason, "available_gpus")

    # what a GPU-hour costs in USD; what was paid upfront is spread over its term, and part of the loaded view alone
    stated = [way for way in _WAYS if f"{view}_{way}" in table]
    if len(stated) > 1:
        reason = f"the {view} cost is given twice, as {view}_{stated[0]} and {view}_{stated[1]}. Keep one."
        raise fault(reason, f"{view}_{stated[1]}")
    try:
        rate = usd_per_unit(catalog, str(table.get("currency") or "USD").upper())
    except PriceMissingError as error:
        raise fault(str(error), "currency") from None
    price = float(table[f"{view}_{stated[0]}"]) * (1.0 if stated[0].startswith("usd") else rate)
    price /= HOURS_PER_MONTH if stated[0].endswith("month") else 1.0
    upfront, term = table.get("upfront_per_gpu"), table.get("term_months")
    if (upfront is None) != (term is None):
        reason = "what was paid upfront needs its term, and a term what was paid: give both, or neither"
        raise fault(reason, "term_months" if term is None else "upfront_per_gpu")
    if upfront is not None and term is not None and view == "loaded":
        price += float(upfront) * rate / (float(term) * HOURS_PER_MONTH)

    end = _pool_end(table, number, path)
    if end is not None and end < as_of:
        reason = f"it ended on {end}, before {as_of}, the day that prices are taken from. Leave the pool out."
        raise fault(reason, "until")
    day = table.get("observed_on", as_of)  # TOML has days of its own, and many write them as texts
    try:
        seen = date.fromisoformat(day.strip()) if isinstance(day, str) else day
    except ValueError:
        seen = None
    if type(seen) is not date:  # a moment is a date too
        raise fault(f"{shown(day)} is not a day such as 2026-06-15", "observed_on")
    if seen > as_of:
        reason = f"{seen} lies after {as_of}, the day that prices are taken from. Ask with --as-of {seen} or later."
        raise fault(reason, "observed_on")
    name = _pool_name(table, number)
    fields = AS_OWNED | {
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
        "availability": f"{available} accelerators{f' until {end}' if end else ''}",
        "observed_on": seen,
        "age_days": max(0, (as_of - seen).days),
        "notes": f"{view} cost of capacity of your own",
    }
    return make_offer(fields), system


def _pool_name(table: Mapping[str, Any], number: int) -> str:
    """Return what a pool is called."""
    return str(table.get("name") or f"pool-{number}")


def _pool_end(table: Mapping[str, Any], number: int, path: str) -> date | None:
    """Return the last day of a pool; None where it has no end."""
    stated = [name for name in ("until", "valid_until") if table.get(name) is not None]
    if not stated:
        return None
    try:
        end = date.fromisoformat(str(table[stated[0]]).strip())
    except ValueError:
        reason = f"{shown(table[stated[0]])} is not a day such as 2027-06-30"
        raise DataError(reason, file=path, row=number, column=stated[0]) from None
    return end


def pool_ends(path: str) -> dict[str, date]:
    """Return the last day of each pool in a file that has one, by name."""
    tables = enumerate(read_toml(path)["pool"], 1)
    ends = {_pool_name(table, number): _pool_end(table, number, path) for number, table in tables}
    return {name: end for name, end in ends.items() if end is not None}
