"""Large price files: Parquet and CSV that DuckDB reads where they lie, judged by SQL with the bounds of the columns."""

import csv
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.catalog.loader import Store, engine, file_name, named, quoted, said_first
from gpucost.catalog.offer_rows import PRICE_KINDS, offer_id_sql
from gpucost.catalog.records import OWN_SOURCE
from gpucost.errors import DataError, UsageError
from gpucost.gate import repeated, shown
from gpucost.limits import limit
from gpucost.options import OPTIONS
from gpucost.schemas import DUCKDB_TYPES, TABLES, Column
from gpucost.schemas.validation import FIRST_DAY, FLAGS, TEXT_FORMULA
from gpucost.units import HOURS_PER_MONTH, SMALLEST

if TYPE_CHECKING:
    from gpucost.catalog.offer_rows import Completion

MOST_NAMES = 10_000  # different names of GPUs or systems in one file
_ROWS_AT_ONCE = 2_000_000  # that are held against each other
_OFFERS = TABLES["offers"].columns
_BESIDE = ("system", "currency", "per_hour", "per_gpu_hour", "price_kind", "valid_until")  # what a book may say besides
_NAMING = ("gpu", "system_id", "system")  # columns whose cells are names: what each means is looked up once
_ALIKE = (  # offers that are equal in these differ in name and price alone
    "provider",
    "gpu",
    "gpus",
    "system_id",
    "region",
    "region_scope",
    '"option"',
    "tier",
    "billing",
    "term_months",
    "payment",
    "interconnect",
    "minimum_units",
    "maximum_units",
    "valid_from",
    "valid_until",
    "observed_on",
)


def parquet_part(store: Store, layer: str, file: Path, completion: "Completion | None" = None) -> str:
    """Return the SQL over a Parquet file of prices, read where it lies; without a completion it is a store's part.

    One of a book whose rows leave something to follow, or name a currency, is completed as a large CSV file is.
    """
    _refuse_heavy(store, file)
    source = f"read_parquet({file_name(file)})"
    held = {row["column_name"]: row["column_type"] for row in _asked(store, f"DESCRIBE SELECT * FROM {source}", file)}
    present = list(held)
    _refuse_odd(held, file)
    if completion is not None:
        _refuse_columns(file, [name for name in present if name != "gone"], None)
    missing = [column.name for column in _OFFERS if column.required and column.name not in present]
    if missing and completion is None:
        raise DataError(f"columns missing: {', '.join(missing)}", file=str(file))
    store.execute("SET disabled_optimizers = 'statistics_propagation'")  # a file may lie of where it holds nothing
    try:
        if completion is not None and (missing or _is_short(store, file, present)):
            return _completed_part(store, layer, file, present, completion)
        absent = [name for name in (*(column.name for column in _OFFERS), *_BESIDE[4:]) if name not in present]
        blank = "".join(f", CAST(NULL AS VARCHAR) AS {named(name)}" for name in absent)
        numbered = _numbered(file, f"*{blank}")
        offers = judge(store, file, numbered, present, None if completion is None else _CONTRADICTIONS)
        _refuse_unknown(store, file, numbered)
    finally:
        store.outside = True
        store.lying.append(file)
        with suppress(DataError):  # a file may break the database, which then answers nothing more
            store.execute("RESET disabled_optimizers")
    part = typed(source, present, layer, "list" if completion is None else "contracted")
    if completion is not None:
        _refuse_twice(store, file, part)
    return _few(store, file, part, offers)


def _numbered(file: Path, cells: str) -> str:
    return f"SELECT {cells}, file_row_number + 1 AS n FROM read_parquet({file_name(file)}, file_row_number = true)"


def _refuse_odd(held: Mapping[str, str], file: Path) -> None:
    """Refuse columns of a Parquet file whose cells hold no single value, or truth where a number belongs."""
    numbers = {column.name for column in _OFFERS if column.kind in ("number", "integer")} | set(_BESIDE[2:4])
    for name, kind in held.items():
        if kind.endswith((")", "]")) and "DECIMAL" not in kind and not name.startswith("x_"):
            raise DataError(f"{name} holds {kind[:60]}, no single value in a cell", file=str(file))
        if kind == "BOOLEAN" and name in numbers:
            raise DataError("holds true and false, no numbers", file=str(file), column=name)


def _is_short(store: Store, file: Path, present: Collection[str]) -> bool:
    """Tell whether a Parquet file with the columns of the table leaves to its reader what a CSV file may leave."""
    if not set(_BESIDE[:4]).isdisjoint(present):
        return True
    short = [f"{name} IS NULL" for name in ("gpus", "usd_per_hour", "usd_per_gpu_hour")]
    short += [f"CAST({name} AS VARCHAR) LIKE '{sign}'" for name in ("provider", "gpu") for sign in (" %", "% ")]
    query = f"SELECT bool_or({' OR '.join(short)}) AS short FROM read_parquet({file_name(file)})"
    return bool(_asked(store, query, file)[0]["short"])


def typed(source: str, present: Collection[str], layer: str, usual_kind: str = "contracted") -> str:
    """Return the SQL that gives the columns of prices their types."""
    columns = ", ".join(
        f"CAST({named(column.name) if column.name in present else 'NULL'} AS {DUCKDB_TYPES[column.kind]})"
        f" AS {named(column.name)}"
        for column in _OFFERS
    )
    kind = f"coalesce(price_kind, '{usual_kind}')" if "price_kind" in present else f"'{usual_kind}'"
    end = f"CAST({'valid_until' if 'valid_until' in present else 'NULL'} AS DATE)"
    gone = ", gone" if "gone" in present else ""
    return f"SELECT {columns}, '{layer}' AS book, {kind} AS price_kind, {end} AS valid_until{gone} FROM {source}"


def csv_part(store: Store, layer: str, file: Path, completion: "Completion") -> str:
    """Return the SQL over the Parquet file made of a large CSV file of prices."""
    return _completed_part(store, layer, file, _header(file), completion)


def _completed_part(store: Store, layer: str, file: Path, header: Sequence[str], completion: "Completion") -> str:
    """Complete and judge a file of prices, and return the SQL over the Parquet file made of it."""
    for column in _NAMING:
        if column in header:
            _resolve(store, file, header, column, completion)
    known = {"USD": 1.0, **completion.rates}
    rates = ", ".join(f"({quoted(name)}, {rate!r}, '{rate:g}')" for name, rate in known.items())
    store.execute(f"CREATE OR REPLACE TABLE large_rates AS SELECT * FROM (VALUES {rates}) AS r(currency, rate, said)")
    whole = _completed(file, header)
    names = [*(column.name for column in _OFFERS), "price_kind", "valid_until"]
    offers = judge(store, file, whole, [*header, *names], _CURRENCIES | _CONTRADICTIONS)
    made = store.folder() / f"{layer}-{'offers-' * (file.parent.name == 'offers')}{file.name}.parquet"
    store.lying.append(made)
    _asked(store, f"COPY ({typed(f'({whole})', names, layer)}) TO {quoted(str(made))} (FORMAT parquet)", file)
    for table in ("rates", *_NAMING):
        store.execute(f"DROP TABLE IF EXISTS large_{table}")
    part = f"SELECT * FROM read_parquet({file_name(made)})"
    _refuse_twice(store, file, part)
    return _few(store, file, part, offers)


def _refuse_twice(store: Store, file: Path, part: str) -> None:
    """Refuse two rows of one key: some of the keys at a time, as numbers made of them, so that memory holds them."""
    offer, *others = TABLES["offers"].key
    parts = _asked(store, f"SELECT count(*) AS n FROM ({part})", file)[0]["n"] // _ROWS_AT_ONCE + 1
    keys = f"SELECT hash({offer}) AS one, hash({', '.join(others)}) AS other, {offer}, usd_per_hour FROM ({part})"
    for turn in range(parts):
        query = f"SELECT any_value({offer}) AS offer, min(usd_per_hour) < max(usd_per_hour) AS apart FROM ({keys})"
        query += f" WHERE one % {parts} = {turn} GROUP BY one, other HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
        for row in _asked(store, query, file):
            reason = "has two prices on one day: neither would rank" if row["apart"] else "stands twice: keep one row"
            raise DataError(f"{shown(row['offer'])} {reason}", file=str(file), column=offer)


def _few(store: Store, file: Path, source: str, offers: int) -> str:
    """Return the SQL of no more offers than an answer ranks: beyond, the cheapest of those alike on a day speaks."""
    most = limit("limit_book_offers")
    if offers <= most:
        return source
    kept = named(f"kept {file}")
    alike = ", ".join(_ALIKE)
    _asked(
        store,
        f"CREATE OR REPLACE TABLE {kept} AS SELECT DISTINCT arg_min(offer_id, usd_per_gpu_hour) AS offer_id"
        f" FROM ({source}) GROUP BY {alike}",
        file,
    )
    count = store.fetch(f"SELECT count(*) AS count FROM {kept}")[0]["count"]
    if count > most:
        raise DataError(
            f"holds {count:,} offers unlike each other, at most {most:,.0f}; the setting limit_book_offers raises that",
            file=str(file),
        )
    warnings.warn(
        f"{file}: of {offers:,} offers {count:,} speak: of those alike in provider, GPU, place and terms the cheapest"
        f" of a day. The setting limit_book_offers ({most:,.0f}) keeps more.",
        stacklevel=2,
    )
    return f"{source} WHERE offer_id IN (SELECT offer_id FROM {kept})"


def _header(file: Path) -> list[str]:
    """Return the names of the columns; an unknown one is refused as in a small file."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        header = next(csv.reader([text.readline(int(limit("limit_text_characters")))]), [])
    _refuse_columns(file, header, 1)
    return header


def _refuse_columns(file: Path, header: Sequence[str], row: int | None) -> None:
    known = {*(column.name for column in _OFFERS), *_BESIDE}
    for name in repeated(header):
        raise DataError("the column appears twice", file=str(file), row=row, column=name)
    for name in header:
        if name not in known and not name.startswith("x_"):
            raise DataError(
                "a large file of prices has no such column; one of your own begins with x_",
                file=str(file),
                row=row,
                column=name,
            )
    for name in ("provider", "gpu"):
        if name not in header:
            raise DataError("the column is missing", file=str(file), row=row, column=name)


def _raw(file: Path, header: Sequence[str]) -> str:
    """Return the SQL of the rows as texts, each with its number; an empty cell is NULL."""
    own = [name for name in header if name[:2] != "x_"]
    if file.suffix.lower() == ".parquet":
        return _numbered(
            file, ", ".join(f"nullif(trim(CAST({named(name)} AS VARCHAR)), '') AS {named(name)}" for name in own)
        )
    types = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)
    how = (
        "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '', strict_mode = true"
    )
    cells = ", ".join(f"nullif(trim({named(name)}), '') AS {named(name)}" for name in own)
    wide = f", max_line_size = {int(limit('limit_text_characters')) * 4}"
    source = f"read_csv({file_name(file)}, {how}{wide}, columns = {{{types}}})"
    return f"SELECT row_number() OVER () + 1 AS n, {cells} FROM {source}"


def _resolve(store: Store, file: Path, header: Sequence[str], column: str, completion: "Completion") -> None:
    """Make the table of what each GPU or system named in a file means."""
    query = f"SELECT {column} AS name, min(n) AS n FROM ({_raw(file, header)}) WHERE {column} IS NOT NULL GROUP BY 1"
    found = _asked(store, f"{query} LIMIT {MOST_NAMES + 1}", file)
    if len(found) > MOST_NAMES:
        raise DataError(f"names more than {MOST_NAMES:,} different values", file=str(file), column=column)
    store.execute(f"CREATE OR REPLACE TABLE large_{column} (name VARCHAR, id VARCHAR)")
    for row in found:
        try:
            meant = (completion.accelerator if column == "gpu" else completion.system)(row["name"])
        except UsageError as error:
            raise DataError(str(error), file=str(file), row=row["n"], column=column) from None
        store.execute(f"INSERT INTO large_{column} VALUES (?, ?)", [row["name"], meant])


def _completed(file: Path, header: Sequence[str]) -> str:
    """Return the SQL that fills in what follows: as `offer_rows.complete_offer` does for one row."""
    months, gpus, recurring = (_number(name) for name in ("term_months", "gpus", "recurring_usd_per_hour"))
    spread = f"coalesce({recurring}, 0) + {_number('upfront_usd')} / ({months} * {HOURS_PER_MONTH})"
    stated = f"{_number('usd_per_hour')}, {_number('usd_per_gpu_hour')} * {gpus}"
    unit = f"coalesce({stated}, CASE WHEN {months} > 0 THEN {spread} END)"
    owed = ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.take_or_pay)
    priced = f"""SELECT * REPLACE (coalesce(usd_per_hour, CAST({unit} AS VARCHAR)) AS usd_per_hour,
        coalesce(usd_per_gpu_hour, CAST({unit} / {gpus} AS VARCHAR)) AS usd_per_gpu_hour,
        coalesce(recorded_on, observed_on) AS recorded_on,
        coalesce(instance_type, gpus || 'x ' || gpu) AS instance_type,
        coalesce(region_scope, CASE WHEN region IS NULL THEN 'any' ELSE 'region' END) AS region_scope,
        coalesce(billing, CASE WHEN {months} > 0 OR "option" IN ({owed}) THEN 'take_or_pay' ELSE 'per_use' END)
            AS billing,
        coalesce(payment, CASE WHEN usd_per_hour IS NULL AND usd_per_gpu_hour IS NULL AND upfront_usd IS NOT NULL
            THEN CASE WHEN {recurring} > 0 THEN 'partial_upfront' ELSE 'all_upfront' END
            WHEN {months} = 0 THEN 'none' ELSE 'no_upfront' END) AS payment,
        {", ".join(f"coalesce({name}, '{value}') AS {name}" for name, value in _CONSTANTS.items())})
        FROM ({_read(file, header)})"""
    return f"SELECT * REPLACE (coalesce(offer_id, {offer_id_sql()}) AS offer_id) FROM ({priced})"


def _read(file: Path, header: Sequence[str]) -> str:
    """Return the SQL of the rows with every column, names resolved and amounts in USD."""
    every = [*(column.name for column in _OFFERS), *_BESIDE]
    has = {name: f"r.{named(name)}" if name in header else "CAST(NULL AS VARCHAR)" for name in every}
    joins = f" LEFT JOIN large_rates AS w ON w.currency = upper({has['currency']})"
    for name in _NAMING:
        if name in header:
            joins, has[name] = f"{joins} LEFT JOIN large_{name} ON large_{name}.name = r.{name}", f"large_{name}.id"
    rate = f"CASE WHEN {has['currency']} IS NULL THEN 1 ELSE w.rate END"
    own = {
        **has,
        "system_id": f"coalesce({has['system']}, {has['system_id']})",
        "option": f"coalesce({has['option']}, 'on_demand')",
        "gpus": f"coalesce({_count(has['gpus'])}, '1')",
        "term_months": f"coalesce({_count(has['term_months'])}, '0')",
        "observed_on": f"coalesce({has['observed_on']}, {has['valid_from']})",
        "no_rate": f"({rate}) IS NULL",
        **_currency_faults(has, rate),
        "notes": f"CASE WHEN upper({has['currency']}) <> 'USD' THEN concat_ws('; ', {has['notes']}, 'converted from '"
        f" || upper({has['currency']}) || ' at ' || w.said || ' USD') ELSE {has['notes']} END",
        **{
            f"usd_{name}": f"coalesce(CAST({_number(has[name])} * {rate} AS VARCHAR), {has[f'usd_{name}']})"
            for name in ("per_hour", "per_gpu_hour")
        },
    }
    columns = ", ".join(f"{text} AS {named(name)}" for name, text in own.items() if name not in _BESIDE[:4])
    return f"SELECT r.n, {columns} FROM ({_raw(file, header)}) AS r{joins}"


def _currency_faults(has: Mapping[str, str], rate: str) -> dict[str, str]:
    """Return the SQL of what `offer_rows` refuses about a currency, by the names in `_CURRENCIES`."""
    amounts = {has[name]: (_number(has[name]), _number(has[f"usd_{name}"])) for name in ("per_hour", "per_gpu_hour")}
    apart = (
        f"abs({one} * {rate} - {usd}) > 0.01 * greatest(abs({one} * {rate}), abs({usd}))"
        for one, usd in amounts.values()
    )
    return {
        "unread": " OR ".join(f"({cell} IS NOT NULL AND {one} IS NULL)" for cell, (one, _) in amounts.items()),
        "astray": f"upper({has['currency']}) <> 'USD' AND {' AND '.join(f'{cell} IS NULL' for cell in amounts)}",
        "apart": " OR ".join(f"coalesce({rule}, false)" for rule in apart),
    }


_HOURS = f"nullif(TRY_CAST(term_months AS DOUBLE), 0) * {HOURS_PER_MONTH}"
_BY_HOUR, _AT_START = "TRY_CAST(recurring_usd_per_hour AS DOUBLE)", f"TRY_CAST(upfront_usd AS DOUBLE) / ({_HOURS})"
_PARTS = f"(coalesce({_BY_HOUR}, 0) + coalesce({_AT_START}, 0)) / nullif(TRY_CAST(usd_per_hour AS DOUBLE), 0)"
_CURRENCIES = {
    "no exchange rate is known for the currency": "no_rate",
    "per_hour or per_gpu_hour is not a number": "unread",
    "the currency is that of per_hour and per_gpu_hour, which are empty": "astray",
    "a price in USD and one in the currency contradict each other": "apart",
}
_CONTRADICTIONS = {
    "a price with upfront_usd needs term_months, over which it is spread": (
        "TRY_CAST(upfront_usd AS DOUBLE) <> 0 AND coalesce(TRY_CAST(term_months AS DOUBLE), 0) <= 0"
    ),
    "usd_per_hour, upfront_usd and recurring_usd_per_hour contradict each other": (
        f"({_PARTS} > 1.01 AND isfinite({_PARTS})) OR ({_PARTS} < 0.99 AND {_BY_HOUR} + {_AT_START} IS NOT NULL)"
    ),
    f"price_kind is none of {', '.join(PRICE_KINDS)}": f"price_kind NOT IN ({', '.join(map(quoted, PRICE_KINDS))})",
    "the contract would end before it holds": "TRY_CAST(valid_until AS DATE) < TRY_CAST(valid_from AS DATE)",
}
_CONSTANTS = {
    "offer_kind": "offer",
    "gpu_assumed": "0",
    "date_precision": "day",
    "source_id": OWN_SOURCE,
    "confidence": "high",
    "price_kind": "contracted",
}


def _number(text: str) -> str:
    return f"TRY_CAST({text} AS DOUBLE)"


def _count(text: str) -> str:
    """Return the SQL of a count in digits alone, written 12 or 12.0; any other text as it stands."""
    whole = f"CASE WHEN {_number(text)} % 1 = 0 THEN CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) END"
    return f"coalesce({whole}, {text})"


def judge(
    store: Store, file: Path, numbered: str, present: Collection[str], more: Mapping[str, str] | None = None
) -> int:
    """Judge every row by the bounds of its columns; the first bad row is named. Return how many offers there are."""
    known = {column.name: column for column in _OFFERS}
    judged = [known[name] for name in dict.fromkeys(present) if name in known]  # what was written before what follows
    rules = rules_of(judged)
    unit, one = _number("usd_per_hour"), f"{_number('usd_per_gpu_hour')} * {_number('gpus')}"
    rules = {**(more or {}), **rules}
    rules["usd_per_hour and usd_per_gpu_hour contradict each other"] = f"abs({unit} - {one}) > 0.01 * {unit}"
    if {"minimum_units", "maximum_units"} <= set(present):
        rules["minimum_units is more than maximum_units"] = f"{_number('minimum_units')} > {_number('maximum_units')}"
    if "valid_until" in present:
        rules["valid_until is not a day"] = "valid_until IS NOT NULL AND TRY_CAST(valid_until AS DATE) IS NULL"
    counted = ", ".join(f"count_if({rule}), min(CASE WHEN {rule} THEN n END)" for rule in rules.values())
    query = f"SELECT {counted}, count(DISTINCT offer_id), count(*) FROM ({numbered})"
    *found, offers, rows = next(_rows(store, query, file))
    for reason, count, first in zip(rules, found[::2], found[1::2], strict=True):
        if count:
            raise DataError(f"{reason} ({count:,} rows, the first is named)", file=str(file), row=first)
    if rows > (most := limit("limit_book_rows")):
        reason = f"holds {rows:,} rows, at most {most:,.0f}; the setting limit_book_rows raises that"
        raise DataError(reason, file=str(file))
    return int(offers)


def rules_of(columns: Iterable[Column]) -> dict[str, str]:
    """Return the SQL that is true of a cell which its column forbids, by what is said of it."""
    return {f"{column.name} is not {_expected(column)}": _fault(column) for column in columns}


def _refuse_unknown(store: Store, file: Path, numbered: str) -> None:
    """Refuse prices of an accelerator that has no row: a Parquet file names accelerators by their ids."""
    store.ensure("accelerators")
    gpu, known = "CAST(gpu AS VARCHAR)", "SELECT id FROM accelerators"
    query = f"SELECT {gpu} AS gpu, min(n) AS n FROM ({numbered}) WHERE {gpu} NOT IN ({known}) GROUP BY 1"
    for row in _asked(store, f"{query} ORDER BY n LIMIT 1", file):
        said = "is the id of no accelerator. `gpucost gpus` lists them; one of your own goes into accelerators.csv"
        raise DataError(f"{shown(row['gpu'])} {said}", file=str(file), row=row["n"], column="gpu")


def _refuse_heavy(store: Store, file: Path) -> None:
    """Refuse a Parquet file that unpacks to more than it may, before anything is unpacked."""
    most = limit("limit_book_unpacked_bytes")
    size = "coalesce(total_uncompressed_size, 0)"
    query = f"SELECT max({size}) AS one, sum({size}) AS whole, arg_max(path_in_schema, {size}) AS name"
    row = _asked(store, f"{query} FROM parquet_metadata({file_name(file)})", file)[0]
    one, whole = row["one"] or 0, row["whole"] or 0
    if one > most / 8 or whole > most:
        raise DataError(
            f"unpacks to {whole / 1e6:,.0f} MB, column {row['name']} to {one / 1e6:,.0f} MB at once; at most"
            f" {most / 1e6:,.0f} and {most / 8e6:,.0f} MB. The setting limit_book_unpacked_bytes raises that.",
            file=str(file),
        )


def _asked(store: Store, query: str, file: Path) -> list[dict[str, Any]]:
    try:
        return store.fetch(query)
    except engine().Error as error:
        raise DataError(f"cannot be read: {said_first(error)}", file=str(file)) from None


def _rows(store: Store, query: str, file: Path) -> Iterator[tuple[Any, ...]]:
    try:
        yield from store.execute(query).fetchall()
    except engine().Error as error:
        raise DataError(f"cannot be read: {said_first(error)}", file=str(file)) from None


def _fault(column: Column) -> str:
    """Return the SQL that is true of a cell which its column forbids."""
    cell, read = named(column.name), f"TRY_CAST({named(column.name)} AS {DUCKDB_TYPES[column.kind]})"
    faults = [f"({cell} IS NOT NULL AND {read} IS NULL)"]
    if column.kind == "text":
        faults.append(f"length({read}) > {int(limit('limit_text_characters'))}")
        faults.append(f"regexp_matches({read}, '^{TEXT_FORMULA}')")
    if column.kind == "flag":
        words = ", ".join(map(quoted, (*FLAGS, "0.0", "1.0")))  # as a column of numbers with gaps holds 0 and 1
        faults.append(f"lower(CAST({cell} AS VARCHAR)) NOT IN ({words})")
    faults += [f"{read} < DATE '{FIRST_DAY}'"] if column.kind == "date" else []
    if column.choices:
        faults.append(f"{read} NOT IN ({', '.join(map(quoted, column.choices))})")
    if column.required and column.kind == "text":
        faults.append(f"coalesce({read}, '') = ''")
    if column.required and column.kind in ("number", "integer", "date") and column.name != "term_months":
        faults.append(f"{cell} IS NULL")
    if column.kind == "integer":
        faults += [f"{read} <> TRY_CAST({cell} AS DOUBLE)"]
    if column.kind in ("number", "integer"):
        faults += [f"NOT isfinite(CAST({read} AS DOUBLE))"]
        faults += [f"({read} <> 0 AND abs({read}) < {SMALLEST})"]
        faults += [f"{read} <= 0"] if column.positive else []
        faults += [f"{read} < {column.low}"] if column.low is not None else []
        faults += [f"{read} > {column.high}"] if column.high is not None else []
    return f"coalesce({' OR '.join(faults)}, false)"


def _expected(column: Column) -> str:
    if column.kind in ("number", "integer"):
        kind = "a count" if column.kind == "integer" else "a finite number"
        return f"{kind} {'above 0' if column.positive else 'of 0 or more'}" + (
            f", at most {column.high:g}" if column.high is not None else ""
        )
    if column.choices:
        return f"one of {', '.join(column.choices)}"
    return {"date": "a day", "flag": "0 or 1"}.get(column.kind, "a text")
