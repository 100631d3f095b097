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
from gpucost.schemas import TABLES, TableColumn
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
ACCELERATOR = Accelerator.__struct_fields__
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
        raise UsageError("the rows of the saved facts differ in length: the file was changed.")
    return rows


def _refuse_beyond(column: TableColumn, cells: Sequence[Any]) -> None:
    """Refuse numbers that the table of such rows would not take: a saved file is as much a stranger's as a book."""
    if column.kind not in ("number", "integer"):
        return
    low, high = -math.inf if column.low is None else column.low, math.inf if column.high is None else column.high
    for cell in cells:
        if cell is not None and not (low <= cell <= high and math.isfinite(cell) and (cell > 0 or not column.positive)):
            raise UsageError(
                f"the saved facts hold {column.name} = {cell!r}, which is impossible: the file was changed."
            )


def _refuse_impossible(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        for name, value in row.items():
            lowest = 0 if name.startswith(("usd_", "interruptions_", "availability_", "billing_")) else -math.inf
            if isinstance(value, (int, float)) and not (lowest <= value and math.isfinite(value)):
                raise UsageError(f"the saved facts hold {name} = {value!r}, which is impossible: the file was changed.")


def embed(facts: Facts, mask: Flags, architecture: Architecture) -> dict[str, Any]:
    """Return the facts behind the offers that a request looked at, compact and readable: one line per record."""
    packed = _embedded(facts, mask)
    copies = {name: _copied(rows) for name, rows in packed.items()}  # whoever changes an answer changes no other one
    return {"architecture": to_builtins(architecture), **copies}


def _copied(rows: Any) -> Any:
    if isinstance(rows, dict):
        return dict(rows)
    return [row.copy() if isinstance(row, (dict, list)) else row for row in rows] if isinstance(rows, list) else rows


_PACKED_KEPT = 8
_packed: "OrderedDict[tuple[int, bytes], tuple[ref[Facts], dict[str, Any]]]" = OrderedDict()
_packed_lock = Lock()


def _embedded(facts: Facts, mask: Flags) -> dict[str, Any]:
    """Return the facts behind some offers; those of the last few questions are kept, as most look at the same."""
    name = (id(facts), mask.tobytes())
    with _packed_lock:
        kept = _packed.pop(name, None)
        if kept is None or kept[0]() is not facts:
            kept = (ref(facts), _packed_facts(facts, mask))
        _packed[name] = kept
        if len(_packed) > _PACKED_KEPT:
            _packed.popitem(last=False)
        return kept[1]


def _packed_facts(facts: Facts, mask: Flags) -> dict[str, Any]:
    index = np.flatnonzero(mask)
    offers = [facts.offers[number] for number in index]
    systems = {_alike(facts.systems[number]): facts.systems[number] for number in index}
    position = {key: number for number, key in enumerate(systems)}
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
        "measured_chips": facts.measured_chips,
    }
    return {
        "accelerators": pack((facts.accelerators[name] for name in gpus), ACCELERATOR),
        "nodes": pack((facts.nodes[name] for name in gpus), SYSTEM),
        "systems": pack(systems.values(), SYSTEM),
        "sold": [[*pair, facts.sold[pair]] for pair in dict.fromkeys((offer.provider, offer.gpu) for offer in offers)],
        **{name: [_kept(row, ROWS[name]) for row in rows] for name, rows in looked_at.items()},
        "offers": pack(offers, OFFER),
        "ended": dict(facts.ended),
        **({"placeless": facts.placeless} if facts.placeless else {}),
        **({"quotes": pack((facts.quotes[number] for number in index), Quote._fields)} if facts.quotes else {}),
        **({"size_shares": dict(facts.size_shares)} if facts.size_shares else {}),
        "offer_systems": [position[_alike(facts.systems[number])] for number in index],
    }


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
        systems=tuple(systems[index] for index in saved["offer_systems"]),
        nodes={system.accelerator_id: system for system in unpack(System, saved["nodes"])},
        sold={(provider, gpu): gpus for provider, gpu, gpus in saved["sold"]},
        **{name: tuple(saved.get(name, ())) for name in ROWS},
        sources=sources,
        ended=saved.get("ended", {}),
        placeless=saved.get("placeless", 0),
        quotes=_quotes(saved.get("quotes", ()), len(saved["offer_systems"])),
        size_shares=_shares(saved.get("size_shares", {})),
    )


def _quotes(lines: Any, offers: int) -> tuple[Quote, ...]:
    """Read back what was known of the offers of a saved answer; those of a changed file may be anything."""
    if not lines:
        return ()
    try:
        quotes = tuple(Quote(*(float(cell) for cell in row)) for row in _cells(lines)[1:])
        right = len(quotes) == offers and all(
            0 < quote.low_ratio <= 1 <= quote.high_ratio < math.inf
            and 0 <= quote.chance <= 1
            and quote.most_gpus >= 0
            and 0 <= quote.notice < len(NOTICES)
            for quote in quotes
        )
    except (TypeError, ValueError):
        right = False
    if not right:
        raise UsageError("the saved facts hold an impossible chance or range of a price: the file was changed.")
    return quotes


def _shares(rows: Any) -> dict[str, list[float]]:
    try:
        shares = {str(kind): [float(cell) for cell in row] for kind, row in rows.items()}
    except (AttributeError, TypeError, ValueError):
        shares = {"": [math.nan]}
    if not all(0 <= cell <= 1 for row in shares.values() for cell in row) or len({*map(len, shares.values())}) > 1:
        raise UsageError("the saved facts hold impossible chances of large orders: the file was changed.")
    return shares
