"""How a price row is completed and checked, wherever it comes from: SQL over relations of typed columns.

    written, a text per cell -> read, typed -> completed, what follows filled in -> judged, the first fault of each row

A rule is the SQL that is true of a row at fault; its sentence is made of that one row. Files of ten rows and of ten
million, workbooks, Parquet files and parts of a store pass the same _rules; only how their cells are reached differs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from gpucost.catalog.loader import named, quoted
from gpucost.catalog.records import OWN_SOURCE
from gpucost.gate import shown
from gpucost.limits import limit
from gpucost.options import OPTIONS
from gpucost.schemas import DUCKDB_TYPES, TABLES, TableColumn
from gpucost.schemas.dictionary import LONGEST_NAME, NAME_IN_SQL
from gpucost.schemas.validation import FIRST_DAY, FLAGS, TEXT_FORMULA, cell_fault
from gpucost.units import HOURS_PER_MONTH, SMALLEST

# --- The canonical id of an offer, as SQL: prices of one product from several sources are known by it.


def slug_sql(text: str, signs: str = ".") -> str:
    """Return the SQL of a text as ids carry it: small letters and digits of any script, dashes else."""
    return f"trim(regexp_replace(lower({text}), '[^\\p{{L}}\\p{{M}}\\p{{N}}{signs}]+', '-', 'g'), '-')"


def offer_id_sql(**columns: str) -> str:
    """Return the SQL of an offer's id: provider, product, GPUs, region or its scope, option and tier, term and payment.

    Columns of these names are read, those given as SQL apart. `tests/catalog/test_offer_id.py` has examples.
    """
    names = "provider instance_type gpus gpu region region_scope tier term_months payment"
    row = {**{name: name for name in names.split()}, "option": '"option"', **columns}
    scope = f"CASE {row['region_scope']} WHEN 'any' THEN 'global' ELSE {row['region_scope']} END"
    # a price of any region and one of the whole world are one product
    region = slug_sql(f"coalesce({row['region']}, {scope})")
    option = f"concat_ws('.', {row['option']}, nullif({row['tier']}, {row['option']}))"
    months = row["term_months"]
    term = f"CASE WHEN TRY_CAST({months} AS DOUBLE) > 0 THEN {months} || 'mo/' || {row['payment']} END"
    gpus = f"{row['gpus']} || 'x' || replace({row['gpu']}, '|', '~')"
    return f"concat_ws('/', {row['provider']}, {slug_sql(row['instance_type'])}, {gpus}, {region}, {option}, {term})"


Row = Mapping[str, Any]

_PRICE_KINDS = ("list", "contracted", "effective")
BOOK_COLUMNS = (  # of a price in a book, beside those of the table
    TableColumn("price_kind", "text", "list, contracted or effective", choices=_PRICE_KINDS),
    TableColumn("valid_until", "date", "last day on which the price holds"),
)
_WRITTEN_COLUMNS = (  # what a person may write in place of columns of the table
    TableColumn("like", "text", "id of an offer from which the row differs in what it states"),
    TableColumn("system", "text", "the node, by any name"),
    TableColumn("currency", "text", "currency of per_hour and per_gpu_hour"),
    TableColumn("per_hour", "number", "price of one unit in the currency", positive=True),
    TableColumn("per_gpu_hour", "number", "price of one GPU in the currency", positive=True),
)
_ROUNDING = 0.01  # amounts that should be equal may differ by rounding
_LEFT_OUT_OF_LIKE = frozenset(  # what a row that is like another has of its own
    (
        "source_id",
        "notes",
        "confidence",
        "usd_per_hour",
        "usd_per_gpu_hour",
        "upfront_usd",
        "recurring_usd_per_hour",
        "valid_from",
        "valid_until",
        "observed_on",
        "recorded_on",
    )
)


@cache
def every_column() -> tuple[TableColumn, ...]:
    """Return the columns that a price may be written with."""
    return (*_WRITTEN_COLUMNS, *TABLES["offers"].columns, *BOOK_COLUMNS)


# --- Cells: how a column reads them, and which it forbids.


def reading(column: TableColumn, cell: str) -> str:
    """Return the SQL of a cell as its column holds it, NULL where it cannot."""
    if column.kind == "integer":
        return f"TRY_CAST(TRY_CAST({cell} AS DOUBLE) AS BIGINT)"
    if column.kind == "flag":  # 1.0 in a column of numbers with gaps
        return f"lower(CAST({cell} AS VARCHAR)) IN ('1', 'true', '1.0')"
    return f"TRY_CAST({cell} AS {DUCKDB_TYPES[column.kind]})"


def forbidden(column: TableColumn, cell: str, is_text: bool = True) -> str:
    """Return the SQL that is true of a cell which its column forbids; an empty one is judged once it is completed."""
    value = reading(column, cell)
    if column.kind == "flag":
        faults = [f"lower(CAST({cell} AS VARCHAR)) NOT IN ({_list((*FLAGS, '0.0', '1.0'))})"]
    elif column.kind == "text":
        value = f"CAST({cell} AS VARCHAR)"
        faults = [
            f"length({value}) > {int(limit('limit_text_characters'))}",
            f"(starts_with({value}, '=') AND regexp_matches({value}, '^{TEXT_FORMULA}'))",
        ]
        if column.is_name:
            plain = f"regexp_full_match({value}, {quoted(NAME_IN_SQL)})"
            faults += [f"({value} <> '' AND (length({value}) > {LONGEST_NAME} OR NOT {plain}))"]
        faults += [f"{value} NOT IN ({_list(column.choices)})"] if column.choices else []
        faults += [f"{value} = ''"] if column.required else []
    elif column.kind == "date":
        faults = [f"({cell} IS NOT NULL AND {value} IS NULL)", f"{value} < DATE '{FIRST_DAY}'"]
        faults += [f"CAST({value} AS VARCHAR) <> {cell}"] if is_text else []
    else:
        number = f"TRY_CAST({cell} AS DOUBLE)"
        # whatever the database can cast is not yet what a person meant: 1_000, 2.5 GPUs, infinity
        faults = [f"({cell} IS NOT NULL AND {number} IS NULL)"]
        faults += [f"contains({cell}, '_')"] if is_text else []
        faults += _beyond(column, number)
        faults += [f"{number} <> floor({number})", f"abs({number}) >= {2.0**63}"] if column.kind == "integer" else []
    return f"coalesce({' OR '.join(faults)}, false)"


def _beyond(column: TableColumn, number: str) -> list[str]:
    """Return the SQL of the bounds that a number breaks."""
    faults = [f"NOT isfinite({number})", f"({number} <> 0 AND abs({number}) < {SMALLEST})"]
    faults += [f"{number} <= 0"] if column.positive else []
    faults += [f"{number} < {column.low}"] if column.low is not None else []
    return faults + ([f"{number} > {column.high}"] if column.high is not None else [])


def _list(texts: Iterable[str]) -> str:
    return ", ".join(map(quoted, texts))


def refused_cells(columns: Iterable[TableColumn]) -> dict[str, str]:
    """Return the SQL that is true of a typed cell which its column forbids, by what is said of such cells at large."""
    wrong = {}
    for column in columns:
        if column.kind in ("number", "integer"):
            most = f", at most {column.high:g}" if column.high is not None else ""
            kind = "a count" if column.kind == "integer" else "a finite number"
            expected = f"{kind} {'above 0' if column.positive else 'of 0 or more'}{most}"
        elif column.choices:
            expected = f"one of {', '.join(column.choices)}"
        else:
            expected = {"date": "a day", "flag": "0 or 1"}.get(column.kind, "a text")
        sql = forbidden(column, named(column.name), is_text=False)
        if column.required:
            sql += f" OR {named(column.name)} IS NULL"
        wrong[f"{column.name} is not {expected}"] = sql
    return wrong


def read(written: str, types: Mapping[str, str]) -> str:
    """Return the SQL that reads the cells of a relation, each by its column, and numbers the first column at fault.

    `types` are the types of the columns that are there. The number is the place in `every_column`, from 1.
    """
    values, faults = ["n"], ["CASE"]
    for number, column in enumerate(every_column(), 1):
        is_there = column.name in types
        cell = named(column.name) if is_there else f"CAST(NULL AS {DUCKDB_TYPES[column.kind]})"
        values.append(f"{reading(column, cell) if is_there else cell} AS {named(column.name)}")
        if is_there:
            faults.append(f"WHEN {forbidden(column, cell, types[column.name] == 'VARCHAR')} THEN {number}")
    fault = f"{' '.join(faults)} END" if len(faults) > 1 else "CAST(NULL AS INTEGER)"
    return f"SELECT {', '.join(values)}, {fault} AS fault_of_cell FROM ({written})"


# --- Completing: what follows from the rest.


def billing_sql() -> str:
    """Return the SQL of how an offer is billed where nobody says: what is committed is owed, used or not."""
    owed = _list(name for name, rule in OPTIONS.items() if rule.take_or_pay)
    return f"CASE WHEN term_months > 0 OR \"option\" IN ({owed}) THEN 'take_or_pay' ELSE 'per_use' END"


def effective_usd_per_hour_sql(recurring: str, upfront: str, months: str) -> str:
    """Return the SQL of an effective price: recurring + upfront ÷ the hours of the term."""
    return f"({recurring} + {upfront} / ({months} * {HOURS_PER_MONTH}))"


def completed(read_rows: str, names: str, rates: str, models: str | None, usual_kind: str = "contracted") -> str:
    """Return the SQL that fills in what follows: from the row that `like` names, from names, currencies and the rest.

    `names` is a table of what each name of a column means, with the accelerator of a system; `rates` holds the USD of
    currencies; `models` are the offers that `like` or an id may name, one row of each.
    """
    # what a row that is like another does not state, it has from that one
    inherited = [name for name in TABLES["offers"].names if name not in _LEFT_OUT_OF_LIKE]
    follows = ", ".join(f"coalesce(r.{named(name)}, m.{named(name)}) AS {named(name)}" for name in inherited)
    rows = f"SELECT r.*, CAST(NULL AS VARCHAR) AS model FROM ({read_rows}) AS r"
    if models is not None:
        rows = f"""SELECT r.* REPLACE ({follows}, coalesce(r.price_kind, m.price_kind) AS price_kind),
            m.offer_id AS model
        FROM ({read_rows}) AS r LEFT JOIN ({models}) AS m ON m.offer_id = coalesce(r."like", r.offer_id)"""
    # what names mean, and the currency in USD
    rows = f"""SELECT r.* REPLACE (coalesce(p.id, r.provider) AS provider, coalesce(g.id, r.gpu) AS gpu,
            coalesce(s.id, r.system, r.system_id) AS system_id, upper(r.currency) AS currency,
            coalesce(r."option", 'on_demand') AS "option", coalesce(r.gpus, 1) AS gpus,
            coalesce(r.term_months, 0) AS term_months, coalesce(r.observed_on, r.valid_from) AS observed_on),
        s.holds AS gpu_of_system, CASE WHEN r.currency IS NULL THEN 1 ELSE w.rate END AS rate, w.rate_text,
        r.usd_per_hour AS stated_usd_per_hour, r.usd_per_gpu_hour AS stated_usd_per_gpu_hour
    FROM ({rows}) AS r LEFT JOIN {rates} AS w ON w.currency = upper(r.currency)
    LEFT JOIN {names} AS p ON p.kind = 'provider' AND p.name = r.provider
    LEFT JOIN {names} AS g ON g.kind = 'gpu' AND g.name = r.gpu
    LEFT JOIN {names} AS s ON s.kind = 'system' AND s.name = coalesce(r.system, r.system_id)"""
    rows = f"""SELECT * REPLACE (coalesce(per_hour * rate, usd_per_hour) AS usd_per_hour,
            coalesce(per_gpu_hour * rate, usd_per_gpu_hour) AS usd_per_gpu_hour,
            CASE WHEN currency <> 'USD' THEN concat_ws('; ', notes, 'converted from ' || currency || ' at ' || rate_text
                || ' USD') ELSE notes END AS notes)
    FROM ({rows})"""
    # a term that is paid at the start is spread over its hours
    spread = effective_usd_per_hour_sql("coalesce(recurring_usd_per_hour, 0)", "upfront_usd", "term_months")
    rows = f"""SELECT *, usd_per_hour IS NULL AND usd_per_gpu_hour IS NULL AND upfront_usd IS NOT NULL
            AND term_months > 0 AS is_spread,
        coalesce(usd_per_hour, usd_per_gpu_hour * gpus, CASE WHEN term_months > 0 THEN {spread} END) AS unit_usd
    FROM ({rows})"""
    constants = {
        "offer_kind": "'offer'",
        "gpu_assumed": "false",
        "date_precision": "'day'",
        "source_id": quoted(OWN_SOURCE),
        "confidence": "'high'",
        "price_kind": quoted(usual_kind),
    }
    prepaid = _list(name for name, rule in OPTIONS.items() if rule.prepaid)
    rows = f"""SELECT * EXCLUDE (is_spread, unit_usd) REPLACE (unit_usd AS usd_per_hour,
            coalesce(usd_per_gpu_hour, unit_usd / nullif(gpus, 0)) AS usd_per_gpu_hour,
            coalesce(recorded_on, observed_on) AS recorded_on,
            coalesce(instance_type, gpus || 'x ' || gpu) AS instance_type,
            coalesce(region_scope, CASE WHEN region IS NULL THEN 'any' ELSE 'region' END) AS region_scope,
            coalesce(billing, {billing_sql()}) AS billing,
            coalesce(payment, CASE WHEN is_spread AND recurring_usd_per_hour > 0 THEN 'partial_upfront'
                WHEN is_spread OR term_months = 0 AND "option" IN ({prepaid}) THEN 'all_upfront'
                WHEN term_months = 0 THEN 'none' ELSE 'no_upfront' END) AS payment,
            {", ".join(f"coalesce({name}, {value}) AS {name}" for name, value in constants.items())})
    FROM ({rows})"""
    return f"SELECT * REPLACE (coalesce(offer_id, {offer_id_sql()}) AS offer_id) FROM ({rows})"


def complete_already(read_rows: str, names: str | None, usual_kind: str) -> str:
    """Return the SQL of rows that leave nothing to follow, with the columns of `completed` that the rules look at."""
    holds, join = "CAST(NULL AS VARCHAR)", ""
    if names is not None:
        holds, join = "s.holds", f"LEFT JOIN {names} AS s ON s.kind = 'system' AND s.name = r.system_id"
    return f"""SELECT r.* REPLACE (coalesce(price_kind, {quoted(usual_kind)}) AS price_kind), CAST(NULL AS VARCHAR)
        AS model, {holds} AS gpu_of_system, CAST(1 AS DOUBLE) AS rate,
        usd_per_hour AS stated_usd_per_hour, usd_per_gpu_hour AS stated_usd_per_gpu_hour
    FROM ({read_rows}) AS r {join}"""


# --- Judging: what no price may be.


class _Rule(NamedTuple):
    """What no price may be: the column to name, the SQL that is true of a row at fault, and what is said of it."""

    column: str
    wrong: str
    sentence: Callable[[Row], str]


def astray(currency: str, stated: Collection[str], amounts: Mapping[str, str]) -> str:
    """Say that a currency is that of no amount: each amount in USD has a twin that is in the currency.

    >>> astray("EUR", ["usd"], {"usd": "amount"})
    'usd is in USD: for an amount in EUR write amount, or leave the currency out.'
    """
    # the amounts that have a twin are named before those that have none
    in_usd = next((name for name in (*amounts, *stated) if name in stated and "usd" in name.split("_")), None)
    twin = amounts.get(str(in_usd)) or " or ".join(amounts.values())
    amount = f"{in_usd} is in USD" if in_usd else f"there is not an amount in {currency}"
    return f"{amount}: for an amount in {currency} write {twin}, or leave the currency out."


def apart(name: str, usd: float, twin: str, amount: float) -> str:
    """Say that an amount in USD and its twin in a currency contradict each other; nothing where they agree."""
    if abs(usd - amount) <= _ROUNDING * max(abs(usd), abs(amount)):
        return ""
    return f"{name} {usd:g} and {twin}, which is {amount:g} USD, contradict each other: state one."


_AMOUNTS = {"usd_per_gpu_hour": "per_gpu_hour", "usd_per_hour": "per_hour"}  # and their twins in the currency


def _differ(left: str, right: str) -> str:
    return f"abs({left} - {right}) > {_ROUNDING} * greatest(abs({left}), abs({right}))"


def _missing(name: str) -> _Rule:
    return _Rule(name, f"coalesce({named(name)}, '') = ''", lambda _: f"a price needs {name}.")


def _twins(usd: str, twin: str) -> _Rule:
    return _Rule(
        usd,
        _differ(f"stated_{usd}", f"{twin} * rate"),
        lambda row: apart(usd, row[f"stated_{usd}"], twin, row[twin] * row["rate"]),
    )


def _bounds(column: TableColumn) -> _Rule:
    return _Rule(
        column.name,
        " OR ".join(_beyond(column, column.name)),
        lambda row: cell_fault(column, row[column.name]) or f"{row[column.name]:g} is not a price",
    )


# a price is the sum of what is paid by the hour and at the start, where a source states both parts
_BY_HOUR, _AT_START = "recurring_usd_per_hour", f"upfront_usd / (nullif(term_months, 0) * {HOURS_PER_MONTH})"
_PARTS = f"(coalesce({_BY_HOUR}, 0) + coalesce({_AT_START}, 0))"


def _parts_sentence(row: Row) -> str:
    parts = row["recurring_usd_per_hour"] or 0.0
    if row["upfront_usd"] and row["term_months"] > 0:
        parts += row["upfront_usd"] / (row["term_months"] * HOURS_PER_MONTH)
    return (
        f"usd_per_hour {row['usd_per_hour']:g} contradicts recurring_usd_per_hour and upfront_usd, which over the term"
        f" come to {parts:g}: state one."
    )


def _rules() -> tuple[_Rule, ...]:
    """Return what no completed price may be, in the order in which a row is judged."""
    # what is missing comes before what contradicts it: a sentence may format every cell that its rule reads
    return (
        _Rule(
            "like", '"like" IS NOT NULL AND model IS NULL', lambda row: f"like = {row['like']!r} names no row of offers"
        ),
        _missing("provider"),
        _missing("gpu"),
        _Rule(
            "currency",
            "rate IS NULL",
            lambda row: (
                f"no exchange rate for {row['currency']}. Add [exchange_rates] {row['currency']} = <USD per"
                f" {row['currency']}> to the book."
            ),
        ),
        _Rule(
            "currency",
            "currency <> 'USD' AND per_hour IS NULL AND per_gpu_hour IS NULL",
            lambda row: astray(
                row["currency"],
                [
                    name
                    for name, cell in (
                        ("usd_per_gpu_hour", row["stated_usd_per_gpu_hour"]),
                        ("usd_per_hour", row["stated_usd_per_hour"]),
                        ("upfront_usd", row["upfront_usd"]),
                        ("recurring_usd_per_hour", row["recurring_usd_per_hour"]),
                    )
                    if cell is not None
                ],
                _AMOUNTS,
            ),
        ),
        *(_twins(usd, twin) for usd, twin in _AMOUNTS.items()),
        _Rule(
            "upfront_usd",
            "term_months <= 0 AND (upfront_usd <> 0 OR (upfront_usd IS NOT NULL AND usd_per_hour IS NULL))",
            lambda _: "a price with upfront_usd needs term_months, over which it is spread.",
        ),
        _Rule(
            "usd_per_hour",
            "usd_per_hour IS NULL",
            lambda _: "a price needs usd_per_gpu_hour or usd_per_hour (or per_hour with a currency).",
        ),
        *(_bounds(TABLES["offers"].column(name)) for name in ("usd_per_hour", "usd_per_gpu_hour")),
        _Rule("usd_per_gpu_hour", "usd_per_gpu_hour IS NULL", lambda _: "a value is required"),
        _Rule(
            "usd_per_hour",
            _differ("usd_per_hour", "(usd_per_gpu_hour * gpus)"),
            lambda row: (
                f"usd_per_hour {row['usd_per_hour']:g} and usd_per_gpu_hour {row['usd_per_gpu_hour']:g} contradict each"
                f" other for {row['gpus']} GPUs: state one."
            ),
        ),
        _Rule(
            "usd_per_hour",
            f"{_differ('usd_per_hour', _PARTS)} AND (({_BY_HOUR} + {_AT_START}) IS NOT NULL OR {_PARTS} > usd_per_hour)"
            f" AND ({_BY_HOUR} IS NOT NULL OR {_AT_START} IS NOT NULL)",
            _parts_sentence,
        ),
        _Rule(
            "minimum_units",
            "minimum_units > maximum_units",
            lambda row: (
                f"minimum_units {row['minimum_units']} is more than maximum_units {row['maximum_units']}: nothing can"
                " be ordered."
            ),
        ),
        _Rule(
            "observed_on",
            "observed_on IS NULL",
            lambda _: "a price needs observed_on or valid_from: the day it was seen, or from which it holds.",
        ),
        _Rule(
            "valid_until",
            "valid_until < valid_from",
            lambda row: f"the contract would end on {row['valid_until']}, before it holds from {row['valid_from']}",
        ),
        _Rule(
            "system_id",
            "gpu_of_system <> gpu",
            lambda row: (
                f"the system {row['system_id']} holds {row['gpu_of_system']}, not {row['gpu']}: name another, or leave"
                " it out."
            ),
        ),
        *(
            _Rule(column.name, f"{named(column.name)} IS NULL", lambda _: "a value is required")
            for column in TABLES["offers"].columns
            if column.required and column.name not in ("provider", "gpu", "usd_per_hour", "usd_per_gpu_hour")
        ),
    )


def with_faults(complete_rows: str) -> str:
    """Return the SQL of completed rows, each with its number `n` and the number of its first fault, NULL for none."""
    first = len(every_column()) + 1
    faults = " ".join(f"WHEN {rule.wrong} THEN {number}" for number, rule in enumerate(_rules(), first))
    columns = ", ".join(named(column.name) for column in (*TABLES["offers"].columns, *BOOK_COLUMNS))
    return f"SELECT {columns}, n, coalesce(fault_of_cell, CASE {faults} END) AS fault FROM ({complete_rows})"


def fault_text(number: int, written: Row, complete_row: Row) -> tuple[str, str]:
    """Return the column and the reason of a fault: of a cell as it was written, else of the completed row."""
    columns = every_column()
    if number > len(columns):
        rule = _rules()[number - len(columns) - 1]
        column = "system" if rule.column == "system_id" and written.get("system") else rule.column
        return column, rule.sentence(complete_row)
    of_cell = columns[number - 1]
    cell = written[of_cell.name]
    cell = cell.strip() if isinstance(cell, str) else cell
    most = int(limit("limit_text_characters"))
    return of_cell.name, cell_fault(of_cell, cell) or f"{shown(cell)}: a cell holds at most {most:,} characters"
