"""Facts inside an answer: the records that a costing reads, packed as lines of CSV, and unpacked for a rerun."""

import csv
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from operator import attrgetter
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar
from weakref import ref

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray

from gpucost.catalog.discounts import CREDIT
from gpucost.catalog.loader import read_column
from gpucost.catalog.records import records
from gpucost.errors import UsageError
from gpucost.gate import lists_beside
from gpucost.market.budget import NOTICES, Quote
from gpucost.market.facts import Facts
from gpucost.market.supply import company
from gpucost.schemas import TABLES
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
    "sale",
)
SYSTEM = ("accelerator_id", "gpus", "scaleup_gb_per_s", "scaleup_gpus", "scaleout_gb_per_s", "max_power_kw")
_ACCELERATOR = Accelerator.__struct_fields__
# columns of the rows that stay rows
ROWS = {"credits": CREDIT, **lists_beside(__file__, "embedding")}
_alike = attrgetter(*SYSTEM)  # nodes that a costing cannot tell apart are one
_TABLE_OF: dict[type, str] = {Offer: "offers", System: "systems", Accelerator: "accelerators"}
# what the as-of view adds; all else that no table has is text
_KIND_BESIDE = {
    "age_days": "integer",
    "list_usd_per_gpu_hour": "number",
    "training_sources": "integer",
    "training_largest_gpus": "integer",
    "serving_sources": "integer",
}


def pack(items: Iterable[Any], names: Sequence[str]) -> list[str]:
    """Write records as lines of CSV, the first one naming the columns; None is an empty cell."""
    lines: list[str] = []
    # csv writes to anything that has a method write, line by line
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
    # numbers that the table of such rows would not take: a saved file is as much a stranger's as a book
    bounds = {column.name: column for column in TABLES[_TABLE_OF[kind]].columns if column.kind in ("number", "integer")}
    for name, values in zip(names, columns, strict=False):
        if name not in bounds:
            continue
        column = bounds[name]
        low = -math.inf if column.low is None else column.low
        high = math.inf if column.high is None else column.high
        for cell in values:
            if cell is None or (low <= cell <= high and math.isfinite(cell) and (cell > 0 or not column.positive)):
                continue
            raise UsageError(f"the saved facts hold {name} = {cell!r}, which is impossible: the file was changed.")
    return records(kind, names, zip(*columns, strict=True))


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of packed lines; those of a changed file may be anything."""
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        rows = []
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UsageError("the rows of the saved facts differ in length: the file was changed.")
    return rows


def embed(facts: Facts, mask: Flags, architecture: Architecture) -> dict[str, Any]:
    """Return the facts behind the offers that a request looked at, compact and readable: one line per record."""
    name = (id(facts), mask.tobytes())
    with _packed_lock:  # those of the last few questions stay, as most look at the same offers
        entry = _packed.pop(name, None)
        if entry is None or entry[0]() is not facts:  # an id is given again once its facts are gone
            entry = (ref(facts), _packed_facts(facts, mask))
        _packed[name] = entry
        if len(_packed) > _MOST_PACKED:
            _packed.popitem(last=False)
    embedded: dict[str, Any] = {"architecture": to_builtins(architecture)}
    for part, rows in entry[1].items():  # whoever changes an answer changes no other one
        if isinstance(rows, list):
            embedded[part] = [row.copy() if isinstance(row, (dict, list)) else row for row in rows]
        else:
            embedded[part] = dict(rows) if isinstance(rows, dict) else rows
    return embedded


_MOST_PACKED = 8
_packed: "OrderedDict[tuple[int, bytes], tuple[ref[Facts], dict[str, Any]]]" = OrderedDict()
_packed_lock = Lock()


def _packed_facts(facts: Facts, mask: Flags) -> dict[str, Any]:
    index = np.flatnonzero(mask)
    offers = [facts.offers[number] for number in index]
    # hundreds of offers have few kinds of nodes: each is written once, and offers say which
    systems = {_alike(facts.systems[number]): facts.systems[number] for number in index}
    position = {key: number for number, key in enumerate(systems)}
    gpus = list(dict.fromkeys(offer.gpu for offer in offers))
    sellers = {offer.provider for offer in offers}
    companies = {company(provider) for provider in sellers}
    rows_of_part = {
        "assumptions": facts.assumptions,
        "services": [row for row in facts.services if row["provider"] in companies],
        "spot": [row for row in facts.spot if row["kind"] != "bucket" or row["provider"] in sellers],
        "regions": [row for row in facts.regions if row["provider"] in {*companies, *sellers, "any"}],
        "providers": [row for row in facts.providers if row["provider"] in sellers],
        "credits": facts.credits,
        "measured_chips": facts.measured_chips,
    }
    rows: dict[str, list[dict[str, Any]]] = {}
    for part, items in rows_of_part.items():
        rows[part] = [{name: row.get(name) for name in ROWS[part]} for row in items]
        for row in rows[part]:
            row.update({name: cell.isoformat() for name, cell in row.items() if isinstance(cell, date)})
    return {
        "accelerators": pack((facts.accelerators[name] for name in gpus), _ACCELERATOR),
        "nodes": pack((facts.nodes[name] for name in gpus), SYSTEM),
        "systems": pack(systems.values(), SYSTEM),
        "sold": [[*pair, facts.sold[pair]] for pair in dict.fromkeys((offer.provider, offer.gpu) for offer in offers)],
        **rows,
        "offers": pack(offers, OFFER),
        "ended": dict(facts.ended),
        **({"placeless": facts.placeless} if facts.placeless else {}),
        **({"quotes": pack((facts.quotes[number] for number in index), Quote._fields)} if facts.quotes else {}),
        **({"size_shares": dict(facts.size_shares)} if facts.size_shares else {}),
        "offer_systems": [position[_alike(facts.systems[number])] for number in index],
    }


def unembed(saved: Mapping[str, Any], as_of: str, version: str, sources: Mapping[str, Any]) -> Facts:
    """Read embedded facts back."""
    systems = unpack(System, saved["systems"])
    # a saved file is a stranger's: what no table could hold is refused
    for row in (row for name in ROWS for row in saved.get(name, ())):
        for name, value in row.items():
            lowest = 0 if name.startswith(("usd_", "interruptions_", "availability_", "billing_")) else -math.inf
            if isinstance(value, (int, float)) and not (lowest <= value and math.isfinite(value)):
                raise UsageError(f"the saved facts hold {name} = {value!r}, which is impossible: the file was changed.")
    quotes: tuple[Quote, ...] = ()
    if saved.get("quotes", ()):
        try:
            quotes = tuple(Quote(*(float(cell) for cell in row)) for row in _cells(saved["quotes"])[1:])
            possible = len(quotes) == len(saved["offer_systems"]) and all(
                0 < quote.low_ratio <= 1 <= quote.high_ratio < math.inf
                and 0 <= quote.chance <= 1
                and quote.most_gpus >= 0
                and 0 <= quote.notice < len(NOTICES)
                for quote in quotes
            )
        except (TypeError, ValueError):
            possible = False
        if not possible:
            raise UsageError("the saved facts hold an impossible chance or range of a price: the file was changed.")
    try:
        shares = {str(kind): [float(cell) for cell in row] for kind, row in saved.get("size_shares", {}).items()}
    except (AttributeError, TypeError, ValueError):
        shares = {"": [math.nan]}
    if not all(0 <= cell <= 1 for row in shares.values() for cell in row) or len({*map(len, shares.values())}) > 1:
        raise UsageError("the saved facts hold impossible chances of large orders: the file was changed.")
    return Facts(
        as_of=date.fromisoformat(as_of),
        catalog_version=version,
        offers=tuple(unpack(Offer, saved["offers"])),
        accelerators={chip.id: chip for chip in unpack(Accelerator, saved["accelerators"])},
        systems=tuple(systems[index] for index in saved["offer_systems"]),
        nodes={system.accelerator_id: system for system in unpack(System, saved["nodes"])},
        sold={(provider, gpu): gpus for provider, gpu, gpus in saved["sold"]},
        **{name: tuple(saved.get(name, ())) for name in ROWS},
        sources=sources,
        ended=saved.get("ended", {}),
        placeless=saved.get("placeless", 0),
        quotes=quotes,
        size_shares=shares,
    )
