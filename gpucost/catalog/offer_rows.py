"""Completing a price that a person wrote down: what follows from the rest, the canonical offer id, the judgement."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from typing import Any

from msgspec.structs import asdict

from gpucost import gate
from gpucost.catalog.book_files import Draft, day
from gpucost.catalog.book_files import Row as BookRow
from gpucost.catalog.names import NameIndex
from gpucost.catalog.records import OWN_SOURCE
from gpucost.catalog.shipped import KINDS, Shipped
from gpucost.errors import DataError, UsageError
from gpucost.gate import shown
from gpucost.options import OPTIONS
from gpucost.schemas import TABLES
from gpucost.units import HOURS_PER_MONTH, as_number

# --- Completing a price that a person wrote down: what follows from the rest, and the canonical offer id.

WRITTEN = ("per_hour", "per_gpu_hour", "currency")  # in a book, beside the columns of the table
MOST = 1e9  # no count of a price is as large

Row = dict[str, Any]


def offer_id(row: Mapping[str, Any]) -> str:
    """Build the canonical id: provider, product, gpus and gpu, region or its scope, option and tier, term and payment.

    >>> offer_id({"provider": "aws", "instance_type": "p5.48xlarge", "gpu": "h100-sxm5-80gb", "gpus": 8,
    ...           "region": "us-east-1", "region_scope": "region", "option": "reserved", "tier": None,
    ...           "term_months": 12, "payment": "no_upfront"})
    'aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/reserved/12mo/no_upfront'
    """
    option = f"{row['option']}.{row['tier']}" if row["tier"] and row["tier"] != row["option"] else str(row["option"])
    place = _slug(row["region"] or ("global" if row["region_scope"] == "any" else row["region_scope"]))
    gpus = f"{row['gpus']}x{str(row['gpu']).replace('|', '~')}"
    parts = [row["provider"], _slug(row["instance_type"]), gpus, place, option]
    if int(row["term_months"]):
        parts += [f"{row['term_months']}mo", row["payment"]]
    return "/".join(map(str, parts))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", str(text).lower()).strip("-")


def slug_sql(text: str, kept: str = ".") -> str:
    """Return the SQL of a text as ids carry it: small letters, digits and what is kept, dashes for all else."""
    return f"trim(regexp_replace(lower({text}), '[^a-z0-9{kept}]+', '-', 'g'), '-')"


def offer_id_sql(**given: str) -> str:
    """Return the SQL of `offer_id` over columns of the same names, those given as SQL apart."""
    names = "provider instance_type gpus gpu region region_scope tier term_months payment"
    row = {**{name: name for name in names.split()}, "option": '"option"', **given}
    scope = f"CASE {row['region_scope']} WHEN 'any' THEN 'global' ELSE {row['region_scope']} END"
    place = slug_sql(f"coalesce({row['region']}, {scope})")
    option = f"concat_ws('.', {row['option']}, nullif({row['tier']}, {row['option']}))"
    months = row["term_months"]
    term = f"CASE WHEN TRY_CAST({months} AS DOUBLE) > 0 THEN {months} || 'mo/' || {row['payment']} END"
    parts = f"{slug_sql(row['instance_type'])}, {row['gpus']} || 'x' || replace({row['gpu']}, '|', '~')"
    return f"concat_ws('/', {row['provider']}, {parts}, {place}, {option}, {term})"


def complete_offer(values: Row, exchange_rates: Mapping[str, float]) -> Row:
    """Fill in what follows: rates from one another, scope from region, billing from option, dates, and the id."""
    row: Row = {"option": "on_demand", "gpus": 1, **values}
    for name in ("provider", "gpu"):
        if not row.get(name):
            raise UsageError(f"a price needs {name}.")
    _fill_price(row, exchange_rates)
    _fill_dates(row)
    for name in ("gpus", "term_months"):
        row[name] = _count(row.get(name, 0), name)
    row.setdefault("instance_type", f"{row['gpus']}x {row['gpu']}")
    row.setdefault("region_scope", "region" if row.get("region") else "any")
    committed = row["term_months"] > 0 or (row["option"] in OPTIONS and OPTIONS[row["option"]].take_or_pay)
    row.setdefault("billing", "take_or_pay" if committed else "per_use")
    row.setdefault("payment", "no_upfront" if row["term_months"] else "none")
    constants = {"offer_kind": "offer", "gpu_assumed": 0, "date_precision": "day", "source_id": OWN_SOURCE}
    row = {**constants, "confidence": "high", **row}
    row.setdefault("offer_id", offer_id({"region": None, "tier": None, **row}))
    return row


def _count(value: Any, name: str) -> int:
    """Return a count however it is written, 12 or 12.0."""
    number = _amount(value, name)
    if not abs(number) < MOST:
        raise UsageError(f"{name} = {shown(value)} is no count.")
    if number != int(number):
        raise DataError(f"expected a whole number, found {shown(value)}", file="", column=name)
    return int(number)


def _fill_price(row: Row, exchange_rates: Mapping[str, float]) -> None:
    """Convert a price in another currency, and derive the price of a unit or of a GPU from the other."""
    currency = str(row.pop("currency", "USD")).upper()
    if currency != "USD" and currency not in exchange_rates:
        raise UsageError(
            f"no exchange rate for {currency}. Add [exchange_rates] {currency} = <USD per {currency}> to the book."
        )
    rate = 1.0 if currency == "USD" else exchange_rates[currency]
    refuse_astray(row, currency, {"usd_per_gpu_hour": "per_gpu_hour", "usd_per_hour": "per_hour"})
    for name in ("per_hour", "per_gpu_hour"):
        if name in row:
            amount, own = _amount(row.pop(name), name) * rate, f"usd_{name}"
            refuse_apart(own, _amount(row.get(own, amount), own), name, amount)
            row[own] = amount
    if currency != "USD":
        row["notes"] = "; ".join(
            filter(None, (str(row.get("notes") or ""), f"converted from {currency} at {rate:g} USD"))
        )
    _effective(row)
    if "usd_per_hour" not in row and "usd_per_gpu_hour" not in row:
        raise UsageError("a price needs usd_per_gpu_hour or usd_per_hour (or per_hour with a currency).")
    gpus = _amount(row["gpus"], "gpus")
    if gpus <= 0:
        raise UsageError(f"gpus = {row['gpus']} must be one or more.")
    if "usd_per_hour" not in row:
        row["usd_per_hour"] = _amount(row["usd_per_gpu_hour"], "usd_per_gpu_hour") * gpus
    elif "usd_per_gpu_hour" not in row:
        row["usd_per_gpu_hour"] = _amount(row["usd_per_hour"], "usd_per_hour") / gpus
    _refuse_contradiction(row, gpus)
    _refuse_parts(row)
    _refuse_order(row)


def refuse_astray(row: Mapping[str, Any], currency: str, amounts: Mapping[str, str]) -> None:
    """Refuse a currency of no amount: each amount in USD has a twin that is in the currency."""
    if currency == "USD" or any(twin in row for twin in amounts.values()):
        return
    own = next((name for name in (*amounts, *row) if name in row and "usd" in name.split("_")), None)
    twin = amounts.get(str(own)) or " or ".join(amounts.values())
    found = f"{own} is in USD" if own else f"there is no amount in {currency}"
    raise UsageError(f"{found}: for an amount in {currency} write {twin}, or leave the currency out.")


def refuse_apart(own: str, usd: float, twin: str, amount: float) -> None:
    """Refuse an amount in USD and its twin in a currency of which only one can be true."""
    if _apart(usd, amount):
        raise UsageError(f"{own} {usd:g} and {twin}, which is {amount:g} USD, contradict each other: state one.")


def _apart(one: float, other: float) -> bool:
    """Tell whether amounts that should be one differ by more than rounding, 1 %."""
    return abs(one - other) > 0.01 * max(abs(one), abs(other))


def _refuse_contradiction(row: Row, gpus: float) -> None:
    """Refuse prices of a unit and of a GPU of which only one can be true."""
    unit, one = (_amount(row[name], name) for name in ("usd_per_hour", "usd_per_gpu_hour"))
    if _apart(unit, one * gpus):
        raise UsageError(
            f"usd_per_hour {unit:g} and usd_per_gpu_hour {one:g} contradict each other for {gpus:g} GPUs: state one."
        )


def _refuse_parts(row: Row) -> None:
    """Refuse a price that what is paid at the start and by the hour does not make up; a part may be unknown."""
    months = _amount(row.get("term_months", 0), "term_months")
    recurring, upfront = (row.get(name) for name in ("recurring_usd_per_hour", "upfront_usd"))
    if recurring is None and (upfront is None or months <= 0):
        return
    unit = _amount(row["usd_per_hour"], "usd_per_hour")
    parts = 0.0 if recurring is None else _amount(recurring, "recurring_usd_per_hour")
    whole = recurring is not None and upfront is not None and months > 0
    if upfront is not None and months > 0:
        parts += _amount(upfront, "upfront_usd") / (months * HOURS_PER_MONTH)
    if _apart(unit, parts) and (whole or parts > unit):
        raise UsageError(
            f"usd_per_hour {unit:g} contradicts recurring_usd_per_hour and upfront_usd, which over the term come to"
            f" {parts:g}: state one."
        )


def _refuse_order(row: Row) -> None:
    """Refuse a smallest order above the largest."""
    if "minimum_units" not in row or "maximum_units" not in row:
        return
    least, most = (_amount(row[name], name) for name in ("minimum_units", "maximum_units"))
    if least > most:
        raise UsageError(f"minimum_units {least:g} is more than maximum_units {most:g}: nothing can be ordered.")


def _effective(row: Row) -> None:
    """Spread what is paid at the start over the term: effective = recurring + upfront ÷ hours of the term."""
    if "upfront_usd" not in row:
        return
    priced = bool({"usd_per_hour", "usd_per_gpu_hour"} & set(row))
    months, upfront = (_amount(row.get(name, 0), name) for name in ("term_months", "upfront_usd"))
    if months <= 0 and (upfront or not priced):
        raise UsageError("a price with upfront_usd needs term_months, over which it is spread.")
    if priced:
        return
    recurring = _amount(row.get("recurring_usd_per_hour", 0), "recurring_usd_per_hour")
    row["usd_per_hour"] = recurring + upfront / (months * HOURS_PER_MONTH)
    row.setdefault("payment", "partial_upfront" if recurring else "all_upfront")


def _amount(value: Any, name: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return as_number(value)
    except (TypeError, ValueError):
        raise DataError(f"cannot read {shown(value)} as a number", file="", column=name) from None


def _fill_dates(row: Row) -> None:
    for name in ("valid_from", "observed_on", "recorded_on"):
        if isinstance(row.get(name), date):
            row[name] = row[name].isoformat()
    if "observed_on" not in row and "valid_from" not in row:
        raise UsageError("a price needs observed_on or valid_from: the day it was seen, or from which it holds.")
    row.setdefault("observed_on", row.get("valid_from"))
    row.setdefault("recorded_on", row["observed_on"])


# --- From a row as the user wrote it to a row as the tables hold it: what follows is filled in, then it is judged.

PRICE_KINDS = ("list", "contracted", "effective")
_DEFAULTS: dict[str, BookRow] = {
    "accelerators": {
        "vendor": "own",
        "architecture": "own",
        "family": "own",
        "form_factor": "PCIe",
        "sparse_ratio": 1,
        "scaleup_link": "none",
        "scaleup_gb_per_s": 0,
        "scaleup_gpus": 1,
        "memory_type": "unknown",
        "source_id": OWN_SOURCE,
        "confidence": "medium",
    },
    "systems": {"kind": "node", "source_id": OWN_SOURCE, "confidence": "medium"},
    "llms": {
        "family": "own",
        "gated": 1,
        "tied_embeddings": 0,
        "attention": "gqa",
        "norm": "rms",
        "qkv_bias": 0,
        "moe_layer_step": 1,
        "source_id": OWN_SOURCE,
        "confidence": "medium",
    },
}
_PROVENANCE = frozenset(("source_id", "second_source_id", "notes", "confidence"))
_OF_ONE_PRICE = frozenset(
    (
        "usd_per_hour",
        "usd_per_gpu_hour",
        "valid_from",
        "valid_until",
        "observed_on",
        "recorded_on",
        "upfront_usd",
        "recurring_usd_per_hour",
    )
)


class Completion:
    """What is needed to complete the rows of one book: the shipped facts, its own rows so far, its exchange rates."""

    def __init__(self, shipped: Shipped, own: Mapping[str, Sequence[BookRow]], rates: Mapping[str, float]) -> None:
        self.shipped, self.own = shipped, own
        self._indices: dict[str, NameIndex] = {}
        self._by_key: dict[str, tuple[int, dict[str, BookRow]]] = {}
        self.rates = {**shipped.exchange_rates, **rates}

    def row(self, draft: Draft) -> BookRow:
        """Complete a draft and judge it; the first fault is an error that names file, row and column."""
        from gpucost.schemas.validation import check_row

        values = self._like(draft)
        if draft.table == "llms" and "config" in values:
            values = {**_from_config(values.pop("config"), draft), **values}
        values = {**_DEFAULTS.get(draft.table, {}), **values}
        extras: BookRow = {}
        if draft.table == "offers":
            extras = {"price_kind": str(values.pop("price_kind", "contracted")), "valid_until": _end(values, draft)}
        try:
            complete = _COMPLETE.get(draft.table)
            values = complete(self, values) if complete else values
            if extras and extras["price_kind"] not in PRICE_KINDS:
                raise UsageError(f"price_kind {extras['price_kind']!r} is none of {', '.join(PRICE_KINDS)}.")
        except DataError as error:
            raise error if error.file else draft.error(error.reason, error.column) from None
        except UsageError as error:
            raise draft.error(str(error)) from None
        if draft.table == "price_sources":
            values = {"title": values.get("source_id", ""), "locator": "the user's own book", **values}
        row, faults = check_row(TABLES[draft.table], values, draft.place, draft.row)
        if faults:
            raise next((fault for fault in faults if fault.column in draft.values), faults[0]).error()
        return {**row, **extras}

    def _like(self, draft: Draft) -> BookRow:
        """Start from the row that `like` names, the user's own or a shipped one."""
        values = dict(draft.values)
        model = values.pop("like", None)
        key = TABLES[draft.table].key[0]
        if model is None and draft.table == "offers":
            model = values.get(key)
        if model is None:
            return values
        base = self._known(draft.table, self._canonical(draft.table, str(model)))
        if base is None:
            if "like" not in draft.values:
                return values
            raise draft.error(f"like = {model!r} names no row of {draft.table}", "like")
        left_out = _PROVENANCE | _OF_ONE_PRICE if draft.table == "offers" else _PROVENANCE
        inherited = {name: value for name, value in base.items() if value is not None and name not in left_out}
        return {**inherited, "source_id": OWN_SOURCE, **values}

    def has(self, table: str, name: str) -> bool:
        """Tell whether the book itself has a row of that key."""
        return name in self._owned(table)

    def _owned(self, table: str) -> dict[str, BookRow]:
        """Return the book's own rows of a table so far by their keys, of equal ones the first."""
        rows = self.own.get(table, ())
        known, found = self._by_key.get(table, (0, {}))
        for row in rows[known:]:
            found.setdefault(str(row[TABLES[table].key[0]]), row)
        self._by_key[table] = len(rows), found
        return found

    def _known(self, table: str, id_: str) -> BookRow | None:
        """Return the row of an id, the book's own first."""
        return self._owned(table).get(id_) or next(iter(self.shipped.rows_of(table, id_)), None)

    def _canonical(self, table: str, name: str) -> str:
        """Return the id that a name means in a shipped table; any other name is returned as it is."""
        found = self._index(table).matches(name) if table in KINDS else []
        return found[0] if len(found) == 1 else name

    def _index(self, table: str) -> NameIndex:
        if table not in self._indices:
            self._indices[table] = self.shipped.index(table)
        return self._indices[table]

    def accelerator(self, name: str) -> str:
        """Return the id of the accelerator that a name means, the book's own first."""
        return name if self.has("accelerators", name) else self._index("accelerators").one(name)

    def system(self, name: str) -> str:
        """Return the id of the system that a name means, the book's own first."""
        return name if self.has("systems", name) else self._index("systems").one(name)

    def accelerators(self, name: str) -> list[str]:
        """Return every accelerator that a name means, the book's own first."""
        return [name] if self.has("accelerators", name) else self._index("accelerators").several(name)

    def recorded(self, column: str) -> frozenset[str]:
        """Return the values that prices have in a column, shipped and the book's own."""
        own = {str(row[column]) for row in self.own.get("offers", ()) if row.get(column)}
        return self.shipped.recorded(column) | own

    @cached_property
    def _price_keys(self) -> frozenset[str]:
        return frozenset((*TABLES["offers"].names, *WRITTEN))

    def offer(self, values: BookRow) -> BookRow:
        """Complete a price: the accelerator and the node by name, then what follows from the rest."""
        from gpucost.schemas.validation import unknown_column

        if "gpu" in values:
            values["gpu"] = self.accelerator(str(values["gpu"]))
        for name in ("system_id", "system"):
            if name in values:
                values["system_id"] = self.system(str(values.pop(name)))
        self._refuse_other_node(values)
        if unknown := next((name for name in values if name not in self._price_keys), None):
            raise DataError(unknown_column(unknown, TABLES["offers"]), file="", column=unknown)
        return complete_offer(values, self.rates)

    def _refuse_other_node(self, values: BookRow) -> None:
        """Refuse a price of an accelerator on a node that holds another."""
        id_ = values.get("system_id")
        node = self._owned("systems").get(id_) or self._index("systems").rows.get(id_) if id_ else None
        if node and values.get("gpu", node["accelerator_id"]) != node["accelerator_id"]:
            raise UsageError(
                f"the system {id_} holds {node['accelerator_id']}, not {values['gpu']}: name another, or leave it out."
            )

    def chip(self, values: BookRow) -> BookRow:
        """Complete an accelerator: its name, its year and either size of its memory."""
        for name, other in (("memory_gib", "memory_marketed_gb"), ("memory_marketed_gb", "memory_gib")):
            if other in values:
                values.setdefault(name, values[other])
        return {"name": values.get("id", ""), "year": self.shipped.as_of.year, **values}

    def node(self, values: BookRow) -> BookRow:
        """Complete a node: the links between its accelerators are theirs."""
        name = values.pop("gpu", None) or values.get("accelerator_id")
        if name is None:
            raise UsageError("a system needs accelerator_id.")
        values["accelerator_id"] = self.accelerator(str(name))
        chip = self._known("accelerators", values["accelerator_id"]) or {}
        links = {"scaleup_gb_per_s": chip.get("scaleup_gb_per_s", 0), "scaleup_gpus": chip.get("scaleup_gpus", 1)}
        return {"name": values.get("id", ""), **links, **values}

    def model(self, values: BookRow) -> BookRow:
        """Complete an architecture: dimensions that it lacks are zero, heads and their width follow."""
        for column in TABLES["llms"].columns:
            if column.kind == "integer" and column.required and not column.positive:
                values.setdefault(column.name, 0)
        values.setdefault("kv_heads", values.get("heads"))
        if not values.get("head_dim") and values.get("hidden") and values.get("heads"):
            with suppress(ValueError, ZeroDivisionError, OverflowError):  # what is no count is judged with its row
                values["head_dim"] = int(float(values["hidden"]) // float(values["heads"]))
        return values


_COMPLETE: dict[str, Callable[[Completion, BookRow], BookRow]] = {
    "offers": Completion.offer,
    "accelerators": Completion.chip,
    "systems": Completion.node,
    "llms": Completion.model,
}


def _end(values: BookRow, draft: Draft) -> date | None:
    """Take out the last day of a contract; it must not lie before its first."""
    said = values.pop("valid_until", None)
    try:
        end = None if said is None else day(said)
    except UsageError as error:
        raise draft.error(str(error), "valid_until") from None
    start = values.get("valid_from")
    if end is not None and start is not None and str(end) < str(start):
        raise draft.error(f"the contract would end on {end}, before it holds from {start}", "valid_until")
    return end


def _from_config(config: Any, draft: Draft) -> BookRow:
    from gpucost.architectures.config import load
    from gpucost.architectures.reader import read_config

    path = gate.expanded(str(config))
    path = path if path.is_absolute() else draft.file.parent / path
    path = path / "config.json" if path.is_dir() else path
    made = asdict(read_config(path))
    columns = set(TABLES["llms"].names) - {"notes"}
    row = {name: value for name, value in made.items() if name in columns and value != ""}
    return {**row, "config": json.dumps(load(path))}
