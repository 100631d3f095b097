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
    prices_age_days: NotRequired[int]  # of the catalog's newest price on that day, where it is old
    issued: NotRequired[Issued]
    seal: NotRequired[str]  # of a saved answer: `gpucost.answers.saved`


class AnswerFrame(Frame):
    """The keys around what was asked for; `lead` is the answer in its first sentences."""

    lead: str
    warnings: list[str]
    sources: dict[str, CitedSource]


class StatedFact(TypedDict):
    """A sentence about what an answer takes as given, under its label."""

    label: str
    text: str


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


class Budgeted(TypedDict, total=False):
    """What one must have for an order so that nine of ten end below it, and the parts of it."""

    budget_usd: float
    expected_usd: float  # with the chance the cost, else that of the fallback
    chance_available_fraction: float  # that it can be had at about its quote
    fallback_usd: float | None  # the high end of what one would order instead; None of a question without any


class Seen(Listed):
    """How old a price is and how far to trust it."""

    price_observed_on: str
    sale: NotRequired[str]  # whether lists have the machine in that region: listed | priced | unknown
    age_days: int
    price_stale: bool
    price_book: str
    price_kind: str
    price_confidence: str


class OfferRow(TypedDict):
    """A row of the table of offers: who sells what, its rank and labels, or why it has no rank."""

    rank: int | None
    labels: list[str]  # what it is best at: lowest budget, major cloud, most measured chip, fastest, if still there
    standing: str  # orderable | committed | interruptible | unlikely | left out
    reason: str  # why it has no rank; empty where it has one
    offer_id: str
    provider: str
    instance_type: str
    region: str | None
    regions: list[str]  # all in which it is sold, or left out for that reason
    option: str
    term_months: int
    gpu: str
    gpus: int
    usd_per_gpu_hour: float  # as quoted
    price_observed_on: str
    age_days: int
    front: bool  # no other one that can be ordered beats it in both cost and time


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
    keys: Frame = {
        "schema_version": SCHEMA_VERSION,
        "request": as_json(request),
        "as_of": as_of.isoformat(),
        "catalog_version": catalog_version,
    }
    age_days = days_without_prices(keys["as_of"], catalog_version)
    return {**keys, "prices_age_days": age_days} if age_days is not None else keys


_OLD_CATALOG_DAYS = 60  # a catalog without a newer price than that tells the past


def days_without_prices(as_of: str, catalog_version: str) -> int | None:
    """Return how many days lie between a catalog's newest price, whose day its version begins with, and a day after it.

    Few days are None, and so is a version without a day.

    >>> days_without_prices("2027-06-01", "2026-11-09+69458a7f19c0")
    204
    >>> days_without_prices("2026-12-24", "2026-11-09+69458a7f19c0")
    """
    try:
        days = (date.fromisoformat(as_of) - date.fromisoformat(catalog_version.partition("+")[0])).days
    except ValueError:
        return None
    return days if days > _OLD_CATALOG_DAYS else None


def old_prices(as_of: str, catalog_version: str) -> str:
    """Return the sentence that says so and how to get new ones; "" where prices are not old."""
    if (days := days_without_prices(as_of, catalog_version)) is None:
        return ""
    newest = catalog_version.partition("+")[0]
    return f"Prices are old: the newest is {days} days old, of {newest}. Refresh them: `gpucost prices refresh`."


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
    # a day of NumPy; asked by its traits, so that NumPy need not be imported
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
