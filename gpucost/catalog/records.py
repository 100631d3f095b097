"""Rows of the catalog as the frozen records that travel between the floors."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from gpucost.types import Accelerator, Architecture, Offer, System

Record = TypeVar("Record", Accelerator, Architecture, System, Offer)


@cache
def _defaults(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """Return a record's fields, each with what an empty cell becomes: the default, "" for text, None for a number."""
    return tuple(
        (field.name, ("" if field.type is str else None) if field.default is dataclasses.MISSING else field.default)
        for field in dataclasses.fields(kind)
    )


def record(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Build a record from a row; columns that the record lacks are dropped, empty cells become its defaults."""
    values = {}
    for name, default in _defaults(kind):
        value = row.get(name)
        values[name] = default if value is None else value
    return kind(**values)


def accelerator(row: Mapping[str, Any]) -> Accelerator:
    """Build an accelerator from its row."""
    return record(Accelerator, row)


def system(row: Mapping[str, Any]) -> System:
    """Build a system from its row."""
    return record(System, row)


def architecture(row: Mapping[str, Any]) -> Architecture:
    """Build an architecture from its row; the canonical id is its name."""
    return record(Architecture, {**row, "name": row["id"]})
