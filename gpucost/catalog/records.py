"""Rows of the catalog as the frozen records that travel between the floors."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from gpucost.types import Accelerator, Architecture, Offer, System

OWN_SOURCE = "user"  # source_id of the figures of a user's own book

Record = TypeVar("Record", Accelerator, Architecture, System, Offer)


_DEFAULTS: dict[str, tuple[tuple[str, Any], ...]] = {}


def _defaults(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """Return a record's fields, each with what an empty cell becomes: the default, "" for text, None for a number."""
    if kind.__name__ not in _DEFAULTS:
        _DEFAULTS[kind.__name__] = tuple(_default(field) for field in dataclasses.fields(kind))
    return _DEFAULTS[kind.__name__]


def _default(field: "dataclasses.Field[Any]") -> tuple[str, Any]:
    if field.default is not dataclasses.MISSING:
        return field.name, field.default
    return field.name, "" if field.type is str else None


def record(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Build a record from a row; columns that the record lacks are dropped, empty cells become its defaults."""
    values = {}
    for name, default in _defaults(kind):
        value = row.get(name)
        values[name] = default if value is None else value
    return kind(**values)


def records(kind: type[Record], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Record]:
    """Build many records from rows of cells in the order of the named columns."""
    fields = _defaults(kind)
    places = [names.index(name) if name in names else -1 for name, _ in fields]  # the last cell is None
    cells_of: Callable[[Sequence[Any]], Sequence[Any]] = itemgetter(*places)
    filled = [(place, default) for place, (_, default) in enumerate(fields) if default is not None]
    made: list[Record] = []
    one: Sequence[Any]
    for one in rows:
        cells = [*cells_of([*one, None])]
        for place, default in filled:
            if cells[place] is None:
                cells[place] = default
        made.append(kind(*cells))
    return made


def architecture(row: Mapping[str, Any]) -> Architecture:
    """Build an architecture from its row, layer by layer where the row holds a configuration; the id is its name."""
    if not row.get("config"):
        return record(Architecture, {**row, "name": row["id"]})
    from gpucost.architectures.reader import architecture_of

    made = architecture_of(json.loads(row["config"]), row["id"], f"models/llms.csv: {row['id']}")
    return dataclasses.replace(
        made, family=row["family"], source_id=row["source_id"], notes=row["notes"] or "", status="sourced", warnings=()
    )
