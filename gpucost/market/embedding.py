"""Facts inside an answer: the records that a costing reads, packed as lines of CSV, and unpacked for a rerun."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date
from hashlib import blake2b
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog.discounts import CREDIT
from gpucost.catalog.plain import read_column
from gpucost.catalog.records import records
from gpucost.errors import UsageError
from gpucost.gate import beside
from gpucost.market.facts import Facts
from gpucost.market.places import company
from gpucost.market.terms import on_demand, place_of
from gpucost.options import OPTIONS
from gpucost.schemas import TABLES, Column
from gpucost.types import Accelerator, Architecture, Offer, System

Flags = NDArray[np.bool_]
Record = TypeVar("Record", System, Accelerator, Offer)

# What a costing reads of each record; the other fields are not embedded.
OFFER = (
    "offer_id",
    "provider",
    "instance_type",
    "gpu",
    "gpu_assumed",
    "gpus",
    "region",
    "region_scope",
    "option",
    "tier",
    "billing",
    "term_months",
    "payment",
    "upfront_usd",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "recurring_usd_per_hour",
    "minimum_hours",
    "billing_increment_hours",
    "minimum_units",
    "maximum_units",
    "observed_on",
    "source_id",
    "confidence",
    "age_days",
    "book",
    "price_kind",
    "list_usd_per_gpu_hour",
)
TWIN = ("provider", "instance_type", "region", "option", "usd_per_gpu_hour")
SYSTEM = ("accelerator_id", "gpus", "scaleup_gb_per_s", "scaleup_gpus", "scaleout_gb_per_s", "max_power_kw")
ACCELERATOR = tuple(field.name for field in fields(Accelerator))
# columns of the rows that stay rows
ROWS = {"credits": CREDIT, **{name: tuple(names.split()) for name, names in beside(__file__, "embedding")[1:]}}
_alike = attrgetter(*SYSTEM)  # nodes that a costing cannot tell apart are one
_TABLE_OF: dict[type, str] = {Offer: "offers", System: "systems", Accelerator: "accelerators"}
# what the as-of view adds; all else that no table has is text
_KIND_BESIDE = {"age_days": "integer", "list_usd_per_gpu_hour": "number"}


def pack(items: Iterable[Any], names: Sequence[str]) -> list[str]:
    """Write records as lines of CSV, the first one naming the columns; None is an empty cell."""
    lines: list[str] = []
    collecting: Any = SimpleNamespace(write=lines.append)
    writer = csv.writer(collecting)
    writer.writerow(names)
    writer.writerows(map(attrgetter(*names), items))
    return [line.removesuffix("\r\n") for line in lines]  # a name may hold what ends a line


def unpack(kind: type[Record], lines: Sequence[str]) -> list[Record]:
    """Read packed records back; fields that were not packed are empty."""
    names, *rows = _cells(lines)
    kinds = {**_KIND_BESIDE, **{column.name: column.kind for column in TABLES[_TABLE_OF[kind]].columns}}
    columns = [
        read_column(kinds.get(name, "text"), cells) for name, cells in zip(names, zip(*rows, strict=True), strict=False)
    ]
    bounds = {column.name: column for column in TABLES[_TABLE_OF[kind]].columns}
    for name, cells in zip(names, columns, strict=False):
        if name in bounds:
            _refuse_beyond(bounds[name], cells)
    return records(kind, names, zip(*columns, strict=True))


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of packed lines; those of a changed file may be anything."""
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        rows = []
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UsageError("the saved facts are no rows of one length: the file was changed.")
    return rows


def _refuse_beyond(column: Column, cells: Sequence[Any]) -> None:
    """Refuse numbers that the table of such rows would not take: a saved file is as much a stranger's as a book."""
    if column.kind not in ("number", "integer"):
        return
    low, high = -math.inf if column.low is None else column.low, math.inf if column.high is None else column.high
    for cell in cells:
        if cell is not None and not (low <= cell <= high and math.isfinite(cell) and (cell > 0 or not column.positive)):
            raise UsageError(f"the saved facts hold {column.name} = {cell!r}, which cannot be: the file was changed.")


def _refuse_impossible(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        for name, value in row.items():
            lowest = 0 if name.startswith(("usd_", "interruptions_", "availability_", "billing_")) else -math.inf
            if isinstance(value, (int, float)) and not (lowest <= value and math.isfinite(value)):
                raise UsageError(f"the saved facts hold {name} = {value!r}, which cannot be: the file was changed.")


def _digits(value: Any) -> Any:
    """Return a value with the digits that a saved answer keeps, so that it hashes alike before and after."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        return {str(key): _digits(item) for key, item in value.items()}
    return [_digits(item) for item in value] if isinstance(value, (list, tuple)) else value


def seal(facts: Mapping[str, Any], as_of: str, version: str) -> str:
    """Return the hash over saved facts with their day and version: what was changed by hand no longer fits it."""
    kept = {name: facts[name] for name in sorted(facts) if name != "seal"}
    text = json.dumps(_digits([as_of, version, kept]), sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=12).hexdigest()


def embed(facts: Facts, mask: Flags, architecture: Architecture) -> dict[str, Any]:
    """Return the facts behind the offers that a request looked at, compact and readable: one line per record."""
    index = np.flatnonzero(mask)
    offers = [facts.offers[number] for number in index]
    systems = {_alike(facts.systems[number]): facts.systems[number] for number in index}
    place = {key: number for number, key in enumerate(systems)}
    gpus = list(dict.fromkeys(offer.gpu for offer in offers))
    sellers = {offer.provider for offer in offers}
    companies = {company(provider) for provider in sellers}
    looked_at = {
        "assumptions": facts.assumptions,
        "services": [row for row in facts.services if row["provider"] in companies],
        "spot": [row for row in facts.spot if row["kind"] != "bucket" or row["provider"] in sellers],
        "regions": [row for row in facts.regions if row["provider"] in {*companies, *sellers, "any"}],
        "providers": [row for row in facts.providers if row["provider"] in sellers],
        "credits": facts.credits,
        "spot_moves": [row for row in facts.spot_moves if row["provider"] in (None, *sellers)],
    }
    embedded = {
        "architecture": asdict(architecture),
        "accelerators": pack((facts.accelerators[name] for name in gpus), ACCELERATOR),
        "nodes": pack((facts.nodes[name] for name in gpus), SYSTEM),
        "systems": pack(systems.values(), SYSTEM),
        "sold": [[*pair, facts.sold[pair]] for pair in dict.fromkeys((offer.provider, offer.gpu) for offer in offers)],
        **{name: [_kept(row, ROWS[name]) for row in rows] for name, rows in looked_at.items()},
        "offers": pack(offers, OFFER),
        "ended": dict(facts.ended),
        **({"placeless": facts.placeless} if facts.placeless else {}),
        **({"twins": pack(twins, TWIN)} if (twins := _twins(facts, offers)) else {}),
        "offer_systems": [place[_alike(facts.systems[number])] for number in index],
    }
    return {**embedded, "seal": seal(embedded, facts.as_of.isoformat(), facts.catalog_version)}


def _twins(facts: Facts, offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers on demand behind the ranges of spot prices that are not among the offers."""
    spot = dict.fromkeys(place_of(offer) for offer in offers if OPTIONS[offer.option].family == "preemptible")
    if not spot:
        return []
    known, kept = on_demand((*facts.twins, *facts.offers)), on_demand(offers)
    return [known[place] for place in spot if place in known and kept.get(place) is not known[place]]


def _kept(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    values = {name: row.get(name) for name in names}
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}


def unembed(saved: Mapping[str, Any], as_of: str, version: str, sources: Mapping[str, Any]) -> Facts:
    """Read embedded facts back."""
    systems = unpack(System, saved["systems"])
    for name in ROWS:
        _refuse_impossible(saved.get(name, ()))
    return Facts(
        as_of=date.fromisoformat(as_of),
        catalog_version=version,
        offers=tuple(unpack(Offer, saved["offers"])),
        accelerators={chip.id: chip for chip in unpack(Accelerator, saved["accelerators"])},
        systems=tuple(systems[place] for place in saved["offer_systems"]),
        nodes={system.accelerator_id: system for system in unpack(System, saved["nodes"])},
        sold={(provider, gpu): gpus for provider, gpu, gpus in saved["sold"]},
        **{name: tuple(saved.get(name, ())) for name in ROWS},
        sources=sources,
        ended=saved.get("ended", {}),
        placeless=saved.get("placeless", 0),
        twins=tuple(unpack(Offer, saved["twins"]) if "twins" in saved else ()),
    )
