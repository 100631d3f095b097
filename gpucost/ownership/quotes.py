"""Quotes for renting that a person holds, in one line or as rows of a .csv or .xlsx file: options of a plan."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.arguments.kinds import QUOTES, name, once, one_of, share, whole
from gpucost.errors import UsageError
from gpucost.gate import read_table, repeated
from gpucost.schemas.typed import filled, held, read_as, record
from gpucost.units import MONTHS_PER_YEAR, parse_fraction, parse_usd

if TYPE_CHECKING:
    from pydantic import BaseModel

BILLINGS = {
    "take-or-pay": "take_or_pay",
    "take or pay": "take_or_pay",
    "take_or_pay": "take_or_pay",
    "per use": "per_use",
    "per-use": "per_use",
    "per_use": "per_use",
}
MOST = 1000  # quotes; each is a plan of its own, counted month by month in about 3 ms
HOW = "Write it as 2.46/h, 12 months, take-or-pay, 20% upfront; the price comes first."

Entry = dict[str, Any]


def read_quotes(given: Any) -> list[Entry]:
    """Return quotes by name, and those of files, as rent options of a plan."""
    found: list[Entry] = []
    for called, terms in QUOTES.read(given, "quote").items():
        if not called.strip():
            raise UsageError(f"a quote needs a name before its terms, such as acme={terms}.")
        file = Path(called).suffix.lower() in (".csv", ".xlsx") and terms in (None, "")
        found += read_file(Path(called)) if file else [read_quote(called, str(terms))]
    if len(found) > MOST:
        raise UsageError(f"{len(found):,} quotes are more than the {MOST:,} that are compared at once. Keep the best.")
    names = [entry["name"] for entry in found]
    if twice := repeated(names):
        raise UsageError(f"quote {twice[0]!r} is given twice. Name each once.")
    return found


def read_quote(name: str, text: str) -> Entry:
    """Read the terms of one quote.

    >>> read_quote("acme", "$2.46/h, 1 year, take-or-pay, 20% upfront")["rent_term_months"]
    12.0
    """
    price, *terms = (part.strip() for part in text.split(","))
    entry: Entry = {"name": name, "rent_usd_per_gpu_hour": parse_usd(_hourly(price), f"quote {name!r}")}
    plain = {"rent_billing": "per_use", "rent_term_months": 0.0, "rent_upfront_fraction": 0.0}
    return {**entry, **plain, **once([_term(name, term) for term in terms if term], f"quote {name!r}")}


def _hourly(text: str) -> str:
    return re.sub(r"(?<!\s)\s*(/|per)\s*(gpu[- ]?)?(h|hr|hour)$", "", text.strip(), flags=re.IGNORECASE)


def _months(name: str, text: str) -> float:
    return float(whole(0, 1200).read(text, f"quote {name!r}"))


def _term(name: str, text: str) -> tuple[str, Any]:
    word = text.lower()
    if word in BILLINGS:
        return "rent_billing", BILLINGS[word]
    if months := re.fullmatch(r"(\d+)\s*(?:months?|mo)", word):
        return "rent_term_months", _months(name, months[1])
    if years := re.fullmatch(r"(\d+)\s*(?:years?|y)", word):
        return "rent_term_months", _months(name, years[1]) * MONTHS_PER_YEAR
    if upfront := re.fullmatch(r"(\d+(?:\.\d+)?%)\s*upfront", word):
        return "rent_upfront_fraction", parse_fraction(upfront[1], f"quote {name!r}")
    raise UsageError(f"quote {name!r}: cannot read {text!r}. {HOW}")


def read_file(path: Path) -> list[Entry]:
    """Read one quote a row; the term, billing and upfront share may be missing: none, by use, nothing."""
    return [
        _row(str(path), number, {name: cell for name, cell in row.items() if cell not in (None, "")})
        for _, rows in _tables(path)
        for number, row in rows
    ]


def _tables(path: Path) -> list[tuple[list[str], list[tuple[int, dict[str, Any]]]]]:
    """Return the header and the rows of a file, or of each sheet with rows; one of them must hold quotes."""
    if path.suffix.lower() == ".xlsx":
        from gpucost.catalog.spreadsheet import read_sheets

        tables: list[Any] = [
            (sheet.header, [(number, dict(zip(sheet.header, cells, strict=False))) for number, cells in sheet.rows])
            for sheet in read_sheets(path)
        ]
    else:
        tables = [read_table(path)]
    tables = [one for one in tables if one[1]] or tables[:1] or [([], [])]
    for header, rows in tables:
        filled(path, header, rows, ("name", "usd_per_gpu_hour"))
    return tables


@cache
def _quote() -> "type[BaseModel]":
    def price(value: Any, what: str) -> float:
        return parse_usd(_hourly(str(value)), what)

    model: type[BaseModel] = record(
        "Quote",
        name=(read_as(lambda value, what: name().read(str(value).strip(), what)), ...),
        usd_per_gpu_hour=(read_as(price), ...),
        term_months=read_as(whole(0, 1200).read),
        billing=read_as(lambda value, what: one_of(*BILLINGS).read(str(value).strip().lower(), what)),
        upfront_fraction=read_as(share().read),
    )
    return model


def _row(file: str, number: int, row: Mapping[str, Any]) -> Entry:
    read = held(_quote(), row, file, number)
    return {
        "name": read["name"],
        "rent_usd_per_gpu_hour": read["usd_per_gpu_hour"],
        "rent_billing": BILLINGS[read.get("billing") or "per use"],
        "rent_term_months": float(read.get("term_months") or 0),
        "rent_upfront_fraction": read.get("upfront_fraction") or 0.0,
    }
