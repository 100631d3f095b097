"""What answers share: the frame around each of them, the lines of a bill, assumptions, and what was left out."""

import os
from collections import UserString
from collections.abc import Iterable, Mapping
from datetime import date
from math import isfinite
from typing import Any, NotRequired, TypedDict, TypeVar, cast

from gpucost.answers import SCHEMA_VERSION

Request = Mapping[str, Any]  # what was asked, by the names of the arguments

Record = TypeVar("Record")


class CitedSource(TypedDict):
    """Where a number comes from: a row of sources.csv."""

    publisher: str | None
    title: str | None
    locator: str | None
    published_on: str | None
    accessed_on: str | None


class Issued(TypedDict):
    """Who stands behind an answer, since when, and the seal of the answer without this stamp."""

    status: str
    by: str
    on: str
    sha256: str


class Frame(TypedDict):
    """The keys that every answer has."""

    schema_version: str
    request: Request
    as_of: str
    catalog_version: str
    issued: NotRequired[Issued]
    seal: NotRequired[str]  # of a saved answer: `gpucost.answers.saved`


class AnswerFrame(Frame):
    """The keys around what was asked for; `lead` is the answer in its first sentences."""

    lead: str
    warnings: list[str]
    sources: dict[str, CitedSource]


class BillLine(TypedDict):
    """One line of a bill: quantity × unit price, rounded to cents."""

    name: str
    quantity: float
    unit: str
    unit_price_usd: float
    cost_usd: float
    source_id: str
    status: str
    note: str


class AssumedValue(TypedDict):
    """A value that an answer rests on, with its range, and where it comes from."""

    name: str
    value: float | str | None
    unit: str
    low: float | None
    high: float | None
    status: str
    source_id: str | None
    note: str


class Excluded(TypedDict):
    """An offer that is no option, with the reason; `regions` lists where it is sold."""

    provider: str
    instance_type: str
    option: str
    gpu: str
    reason: str
    regions: list[str]


class Seller(TypedDict):
    """Who sells an offer, where, on which terms."""

    offer_id: str
    provider: str
    instance_type: str
    region: str | None
    region_scope: str
    option: str
    tier: str | None
    term_months: int
    payment: str
    gpu: str


class Listed(TypedDict, total=False):
    """What the list says, where a contract or a discount speaks in its place."""

    list_usd_per_gpu_hour: float
    credits_usd: float  # what credits of the book pay of the cost: of the run, or of a month


def listed(usd_per_gpu_hour: float | None, credits_usd: float = 0.0) -> Listed:
    """Return the list price beside a contract's, and what credits pay; nothing where the list itself speaks."""
    fields: Listed = {} if usd_per_gpu_hour is None else {"list_usd_per_gpu_hour": usd_per_gpu_hour}
    if credits_usd:
        fields["credits_usd"] = credits_usd
    return fields


class LayeredPrice(Listed, total=False):
    """Which layer a price is of, what a contract says of it, and what is left an hour when credits have paid."""

    price_book: str
    price_kind: str
    contracted_usd_per_gpu_hour: float
    effective_usd_per_gpu_hour: float


class Seen(Listed):
    """How old a price is and how far to trust it."""

    price_observed_on: str
    quoted_usd_per_gpu_hour: NotRequired[float]  # what was seen then; the price beside it is expected today
    sale: NotRequired[str]  # whether lists have the machine in that region: listed | priced | unknown
    missing: NotRequired[list[str]]  # what stands between the quote and an order
    age_days: int
    price_stale: bool
    price_book: str
    price_kind: str
    price_confidence: str


class OfferPoint(TypedDict):
    """An offer in the picture of all of them: who sells what, and whether one can order it for all that is known."""

    provider: str
    instance_type: str
    region: str | None
    option: str
    term_months: int
    gpu: str
    gpus: int
    age_days: int
    orderable: bool
    front: bool  # no other one that can be ordered is better in both directions of the picture


class LayoutRow(TypedDict):
    """How a training job is spread (`gpucost.types.Layout`)."""

    gpus: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    data: int
    sharding: int
    micro_batch: int
    global_batch: int
    virtual_stages: int
    recompute: str
    precision: str


class FormulaLine(TypedDict):
    """A derived number: its formula over the names before it, and its value."""

    name: str
    unit: str
    formula: str
    value: float | None


def finite(value: Any) -> float | None:
    """Return a number that JSON can hold; what is not known is None, never zero."""
    number = float(value)
    return number if isfinite(number) else None


def figures(kind: type[Record], columns: Mapping[str, Any], row: int) -> Record:
    """Return one row of columns as the record whose fields bear their names."""
    return cast(Record, {name: finite(columns[name][row]) for name in kind.__annotations__})


def frame(request: Request, as_of: date, catalog_version: str) -> Frame:
    """Return the keys that every answer starts with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "request": as_json(request),
        "as_of": as_of.isoformat(),
        "catalog_version": catalog_version,
    }


def as_json(value: Any) -> Any:
    """Return what was asked as JSON knows it: numbers of every make, days, texts, paths.

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> as_json({"a": (np.float64(2.5), "x"), "b": Fraction(7, 10), "c": np.datetime64("2026-06-01T12")})
    {'a': [2.5, 'x'], 'b': 0.7, 'c': '2026-06-01'}
    """
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        value = value.astype("datetime64[D]").tolist()
    if isinstance(value, date):
        return value.isoformat()[:10]
    if isinstance(value, UserString):
        return str(value)
    if hasattr(value, "as_integer_ratio") and not isinstance(value, int):  # a Fraction, too
        return float(value)
    return as_json(value.tolist()) if hasattr(value, "tolist") else value


def cited(sources: Mapping[str, Mapping[str, Any]], ids: Iterable[str | None]) -> dict[str, CitedSource]:
    """Return the sources that an answer leans on, by their ids; ids without a source are left out.

    >>> cited({"a": {"publisher": "A", "title": "T", "published_on": date(2026, 1, 2), "note": ""}}, ["a", None, "a"])
    {'a': {'publisher': 'A', 'title': 'T', 'locator': None, 'published_on': '2026-01-02', 'accessed_on': None}}
    """
    citations: dict[str, CitedSource] = {}
    for name in dict.fromkeys(ids):
        try:
            row = sources[name] if name else None
        except KeyError:
            continue
        if row is not None and name is not None:
            citations[name] = {
                "publisher": row.get("publisher"),
                "title": row.get("title"),
                "locator": row.get("locator"),
                "published_on": _day(row.get("published_on")),
                "accessed_on": _day(row.get("accessed_on")),
            }
    return citations


def _day(value: Any) -> str | None:
    return None if value is None else str(value)
