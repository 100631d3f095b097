"""FOCUS files read by DuckDB where they lie: one pass that sums charges by day and product; bad rows are named.

CSV, JSON (an array or lines), each also packed by gzip, and Parquet. Times are compared in UTC.
"""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from gpucost.catalog.loader import engine, file_name, first_line, named, quiet, quoted, refuse_long
from gpucost.errors import DataError, UsageError
from gpucost.gate import repeated, shown
from gpucost.invoices.clouds import EXPORTS, FIELDS, as_focus, current_name, export_of
from gpucost.invoices.rows import NAMES, NEEDED, NUMBERS, TIMES, WRITTEN
from gpucost.limits import limit

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_GROUPS = 250_000  # sums of a day and a product
_LARGEST = 1e15  # of an amount: beyond it cents are lost in double precision
_TIMES = "1900-01-01", "9000-01-01"
_CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
_ROWS_LOOKED_AT = 1_000_000  # for what makes a file unreadable
_HEAD_BYTES = 65_536  # of a JSON file, likewise
_AGAIN = re.compile(r"(?<=.)_\d+$")  # how the engine calls a column whose name it has met
_JSON = (".json", ".jsonl", ".ndjson")
_FORMS = {
    ".csv": "read_csv({}, all_varchar = true, header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '')",
    ".parquet": "read_parquet({})",
    **dict.fromkeys(_JSON, "read_json({}, maximum_object_size = 16777216, "),
}
_WHOLE_DOCUMENT = "columns = {json: 'JSON'}, records = false)"
_READ = {name.lower(): name for name in WRITTEN}
_HELP = {
    "is not a time": ". Write it as 2026-11-01T00:00:00Z.",
    "is not an amount": ". Write a plain number such as 1234.5.",
}
_ZONE = r":[0-9]{2}([.][0-9]+)?\s*([A-Za-z][A-Za-z0-9_/+-]*|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"


Types = Mapping[str, tuple[str, str]]  # of a file's columns, by their names in small letters: the name, its type


class Charges(NamedTuple):
    """The sum of the charges of one day that have everything but their amounts in common."""

    day: date
    category: str
    corrected: bool
    committed: bool
    status: str
    currency: str
    unit: str
    gpus_per_unit: float
    negative: bool
    tag: str
    names: tuple[str, ...]
    rows: int
    billed: float
    effective: float
    listed: float
    contracted: float
    quantity: float
    end: datetime
    zoneless: int

    @property
    def money(self) -> str:
        """What the charge is in, and of which month: rates of exchange go by the month."""
        return self.currency if self.currency == "USD" else f"{self.currency} {self.day:%Y-%m}"


def read_charges(path: str, tag: str | None = None) -> list[Charges]:
    """Return the sums of a file's charges; `tag` splits them by the value of a tag too. The first bad row is named."""
    duckdb, connection = engine(), connected()
    # What is no regular file, or of no known form, is a sentence. Parquet is packed within; a second packing cannot be
    # read where it lies.
    unpacked = path.lower().removesuffix(".gz")
    form = _FORMS.get(os.path.splitext(unpacked)[1])
    if form is None or (unpacked.endswith(".parquet") and path.lower().endswith(".gz")):
        raise UsageError(f"cannot tell the format of {path[:200]!r} from its name: .csv, .parquet, .json, or with .gz.")
    if not os.path.isfile(path):
        wrong = "it is not a regular file" if os.path.exists(path) else "there is no such file"
        raise UsageError(f"cannot read {path[:200]!r}: {wrong}. Name a file that exists.")
    if any(sign in path for sign in "*?["):  # the engine would read all files that such a name matches
        raise UsageError(f"cannot read {path[:200]!r}: its name holds *, ? or [. Rename it.")
    if (size := os.path.getsize(path)) > limit("limit_invoice_file_bytes"):
        most = limit("limit_invoice_file_bytes") / 1e9
        raise DataError(
            f"has {size / 1e9:,.0f} GB, at most {most:,.0f}; limit_invoice_file_bytes raises that", file=path
        )
    source = form.format(file_name(path)) + (_WHOLE_DOCUMENT if unpacked.endswith(_JSON) else "")
    if path.lower().endswith(".parquet"):
        refuse_long(connection, path, "limit_invoice_rows")
    try:
        types, source = _described(connection, source, path)
        if tag and "tags" not in types:
            raise DataError(f"has no column Tags, so nothing carries the tag {tag}", file=path)
        charges = f"SELECT {_columns(types, tag)} FROM {source}"
        sums = """count(*), fsum(billed), fsum(effective), fsum(coalesce(listed, 0)), fsum(coalesce(contracted, 0)),
            fsum(coalesce(quantity, 0)), max(coalesce(ended, began)), count_if(zoneless), count_if(fault IS NOT NULL)"""
        keys = "CAST(began AS DATE), category, corrected, committed, status, currency, unit, gpus, negative, tag"
        names = ", ".join(f"n{number}" for number in range(len(NAMES)))
        query = f"SELECT {keys}, {names}, {sums} FROM ({charges}) GROUP BY ALL LIMIT {_MOST_GROUPS + 1}"
        groups = connection.execute(query).fetchall()
    except duckdb.Error as error:
        raise _misread(path) or DataError(f"cannot be read: {first_line(error)}", file=path) from None
    if not groups:
        raise DataError("holds no charges", file=path)
    if any(row[-1] for row in groups):
        # Sums come in no order and name no row: the file is read once more, in its order, for the first bad one.
        connection.execute("SET preserve_insertion_order = true")
        numbered = f"SELECT row_number() OVER () AS n, fault FROM ({charges})"
        first_bad = f"SELECT n, fault FROM ({numbered}) WHERE fault IS NOT NULL LIMIT 1"
        row, fault = connection.execute(first_bad).fetchall()[0]
        column, _, reason = fault.partition(" ")
        cell = f"SELECT CAST({_cell(types, column)} AS VARCHAR) AS cell FROM {source} LIMIT 1 OFFSET {row - 1}"
        text = connection.execute(cell).fetchall()[0][0]
        content = "" if text is None else f": found {shown(text)}{_HELP.get(reason, '')}"
        line = row + path.lower().removesuffix(".gz").endswith(".csv")  # a header stands before the rows
        raise DataError(f"{reason}{content}", file=path, row=line, column=column)
    if len(groups) > _MOST_GROUPS:
        raise DataError(f"names more than {_MOST_GROUPS:,} different products and days: split it by month", file=path)
    return [Charges._make([*row[:10], tuple(name or "" for name in row[10:16]), *row[16:-1]]) for row in groups]


def charges_of(rows: Iterable[Mapping[str, Any]]) -> list[Charges]:
    """Return the charges of rows that were made here, as they would read from a file."""
    return [
        Charges(
            row["ChargePeriodStart"].date(),
            row["ChargeCategory"],
            False,
            row["CommitmentDiscountId"] is not None,
            row["CommitmentDiscountStatus"] or "",
            row["BillingCurrency"],
            row["PricingUnit"],
            row["x_GpusPerUnit"] or 0.0,
            row["BilledCost"] < 0 or row["EffectiveCost"] < 0,
            "",
            tuple(row[name] or "" for name in NAMES),
            1,
            row["BilledCost"],
            row["EffectiveCost"],
            row["ListCost"],
            row["ContractedCost"],
            row["PricingQuantity"],
            row["ChargePeriodEnd"],
            0,
        )
        for row in rows
    ]


def connected() -> "DuckDBPyConnection":
    """Return an empty database that holds little, writes nothing of its own, and counts time in UTC."""
    # An invoice may be larger than the memory: groups are few, so that a small limit holds them.
    limits = {"memory_limit": "1400MB", "preserve_insertion_order": False, "temp_directory": ""}
    connection = quiet(engine().connect(":memory:", config=limits))
    connection.execute("SET TimeZone = 'UTC'")
    with suppress(engine().Error):  # else CSV cells that are no numbers end the query; older engines have none of it
        connection.execute("SET disabled_optimizers = 'type_pushdown'")
    return connection


def write_rows(rows: Sequence[Mapping[str, Any]], path: str, form: str) -> None:
    """Write FOCUS rows to a file as csv or parquet; times carry their zone."""
    # The engine writes Parquet, and reads the rows faster from a CSV file beside it than one by one.
    target = f"{path}.csv" if form == "parquet" else path
    try:
        with open(target, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(WRITTEN)
            for row in rows:
                cells = (row[name] for name in WRITTEN)
                lines.writerow(
                    cell.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(cell, datetime) else cell for cell in cells
                )
        if form == "parquet":
            kinds = dict.fromkeys(NUMBERS, "DOUBLE") | dict.fromkeys(TIMES, "TIMESTAMPTZ")
            types = ", ".join(f"{name}: '{kinds.get(name, 'VARCHAR')}'" for name in WRITTEN)
            how = f"auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', columns = {{{types}}}"
            source = f"read_csv({file_name(target)}, {how})"
            connected().execute(f"COPY (FROM {source}) TO {quoted(path)} (FORMAT parquet, USE_TMP_FILE false)")
    finally:
        if target != path:
            with suppress(FileNotFoundError):
                os.unlink(target)


def _described(connection: "DuckDBPyConnection", source: str, path: str) -> tuple[Types, str]:
    """Return the types of a file's columns, and the SQL that reads it: values of JSON as the texts that they are."""
    # The types of JSON are guessed from its first values; as texts, all of them are read as those of a CSV are.
    packed = source.endswith(_WHOLE_DOCUMENT)
    if packed:
        keys = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {source}").fetchall()
        names_in_file = sorted(str(key) for (key,) in keys)
        columns = [(key, "VARCHAR") for key in names_in_file if key.lower() in _READ or key.lower() in FIELDS]
    else:
        columns = [row[:2] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
    names = [_AGAIN.sub("", current_name(name).lower()) for name, _ in columns]
    for name in repeated(names):
        if name in _READ:
            reason = "the column is there twice, whatever the case of its letters. Keep one."
            raise DataError(reason, file=path, column=_READ[name])
    export = export_of(frozenset(names))
    columns_in_file = {name.lower() for name, _ in columns}
    missing = [name for name in NEEDED if name.lower() not in columns_in_file]
    if export is None and missing:
        known = ", ".join(export.vendor for export in EXPORTS)
        reason = f"is not a FOCUS file; missing columns: {', '.join(missing)}; nor an export of {known}"
        raise _misread(path) or DataError(reason, file=path)
    if packed:
        texts = ", ".join(f"{named(name)}: 'VARCHAR'" for name, _ in columns)
        source = f"{source.removesuffix(_WHOLE_DOCUMENT)}columns = {{{texts}}}, records = true)"
    types = {current_name(name).lower(): (name, kind) for name, kind in columns}
    return (types, source) if export is None else as_focus(export, types, source)


def _misread(path: str) -> DataError | None:
    """Return why a text file is none that can be read: its encoding, the sign between its cells, a ragged row."""
    form = path.lower().removesuffix(".gz")
    if form.endswith(_JSON):
        # a mark before its text, nothing, or a table around its list
        try:
            with _opened(path) as file:
                start = file.read(_HEAD_BYTES)
        except (OSError, EOFError, zlib.error):
            return None
        if start.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return DataError("begins with a byte order mark. Save it in UTF-8 without one.", file=path)
        if start.split() in ([], [b"[]"], [b"[", b"]"]):
            return DataError("holds no charges", file=path)
        if around := re.match(rb'\s*\{\s*"([^"\\]*)"\s*:\s*\[', start):
            key = shown(around[1].decode("utf-8", "replace"))
            return DataError(f"holds its charges under {key}. Write them as a list, or one charge a line.", file=path)
        return None
    if not form.endswith(".csv"):
        return None
    # The engine's message names neither the sign nor the row: the file is looked at once more.
    number = 1
    try:
        with _opened(path) as file:
            if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return DataError("is UTF-16. Save it as CSV in UTF-8.", file=path)
            file.seek(0)
            lines = csv.reader(io.TextIOWrapper(cast(IO[bytes], file), "utf-8-sig", newline=""), strict=True)
            header = next(lines, [])
            for sign in ";\t|" if len(header) == 1 else "":
                if sign in header[0]:
                    return DataError(f"has {sign!r} between its cells. Save it with commas.", file=path, row=1)
            for number, line in enumerate(islice(lines, _ROWS_LOOKED_AT), 2):
                if line and len(line) != len(header):
                    return DataError(
                        f"has {len(line)} cells where the header has {len(header)}; quote cells that hold commas",
                        file=path,
                        row=number,
                    )
    except UnicodeDecodeError as error:
        fault = f"holds a byte that is no UTF-8 (0x{error.object[error.start]:02x})"
        return DataError(f"{fault}. Save it as CSV in UTF-8.", file=path)
    except csv.Error as error:
        return DataError(f"is not readable as CSV: {error}", file=path, row=number + 1)
    except (OSError, EOFError, zlib.error):
        return None
    return None


def _opened(path: str) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _columns(types: Types, tag: str | None) -> str:
    """Return the SQL of what is summed and by what; what a file does not hold is empty."""
    text = {name: _text(types, name) for name in ("ChargeCategory", "BillingCurrency", *NAMES)}
    billed, effective, listed, contracted, gpus = (
        _number(types, name) for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "x_GpusPerUnit")
    )
    # Some exports price nothing by quantity, and state only what was consumed.
    quantity = f"coalesce({_number(types, 'PricingQuantity')}, {_number(types, 'ConsumedQuantity')})"
    began, ended = _time(types, "ChargePeriodStart"), _time(types, "ChargePeriodEnd")
    unit = f"coalesce({_text(types, 'PricingUnit')}, {_text(types, 'ConsumedUnit')}, '')"
    category = _word(types, "ChargeCategory", *_CATEGORIES)
    # What is wrong with a row is the first fault that is true of it: a column, and the reason after a space.
    wild = f"(NOT isfinite({{0}}) OR abs({{0}}) > {_LARGEST:g})"
    bad = f"({{0}} IS NULL OR {wild})"
    faults = {
        "BilledCost is not an amount": bad.format(billed),
        "EffectiveCost is not an amount": bad.format(effective),
        "ListCost is not an amount": wild.format(listed),
        "ContractedCost is not an amount": wild.format(contracted),
        "PricingQuantity is not an amount": wild.format(quantity),
        "x_GpusPerUnit is not a number": wild.format(gpus),
        "ChargeCategory is missing": f"coalesce({text['ChargeCategory']}, '') = ''",
        f"ChargeCategory is none of {', '.join(_CATEGORIES)}": f"{category} IS NULL",
        "BillingCurrency is not a code of three letters": f"coalesce(length({text['BillingCurrency']}), 0) <> 3",
    }
    for name, sql in (("ChargePeriodStart", f"coalesce({began}, 'infinity')"), ("ChargePeriodEnd", ended)):
        faults[f"{name} is not a time"] = f"NOT {sql} BETWEEN TIMESTAMP '{_TIMES[0]}' AND TIMESTAMP '{_TIMES[1]}'"
    faults["ChargePeriodEnd is not a time after ChargePeriodStart"] = (
        f"{ended} < {began} OR {ended} = {began} AND {category} = 'Usage'"  # what is bought at a moment may end in it
    )
    tested = " ".join(f"WHEN {rule} THEN {quoted(why)}" for why, rule in faults.items())

    # a row's time names no zone where it ends in none; what is no text has one
    cell, kind = _cell(types, "ChargePeriodStart"), types["chargeperiodstart"][1]
    zoneless = "false"
    if kind == "VARCHAR":
        zoneless = f"NOT ({cell} LIKE '%Z' OR regexp_matches({cell}, {quoted(_ZONE)}))"

    tag_value = "''"
    if tag:
        if any(sign in tag for sign in "\"'\\"):
            raise UsageError(f"--showback: {tag[:40]!r} is not a tag key.")
        cell, kind = _cell(types, "Tags"), types["tags"][1]
        tags = cell if kind in ("VARCHAR", "JSON") else f"to_json({cell})"
        bare = re.sub(r"^user[:_]", "", tag)
        keys = dict.fromkeys((tag, bare, f"user:{bare}", f"user_{bare}"))  # AWS's two reports put `user` before a tag
        paths = (quoted(f'$."{key}"') for key in keys)
        tag_value = f"coalesce({', '.join(f'TRY(json_extract_string({tags}, {path}))' for path in paths)}, '')"

    columns = {
        "began": began,
        "ended": ended,
        "category": category,
        "currency": f"upper({text['BillingCurrency']})",
        "corrected": f"{_word(types, 'ChargeClass', 'Correction')} IS NOT NULL",
        "committed": f"{_text(types, 'CommitmentDiscountId')} IS NOT NULL",
        "unit": unit,
        "status": f"coalesce({_word(types, 'CommitmentDiscountStatus', 'Used', 'Unused')}, '')",
        "gpus": f"coalesce({gpus}, 0)",
        "negative": f"{billed} < 0 OR {effective} < 0",
        "tag": tag_value,
        "billed": billed,
        "effective": effective,
        "listed": listed,
        "contracted": contracted,
        "quantity": quantity,
        "zoneless": zoneless,
        "fault": f"CASE {tested} END",
        **{f"n{number}": text[name] for number, name in enumerate(NAMES)},
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def _cell(types: Types, name: str) -> str:
    column = types.get(name.lower())
    return named(column[0]) if column else "NULL"


def _text(types: Types, name: str) -> str:
    cell = _cell(types, name)
    if types.get(name.lower(), ("", ""))[1] != "VARCHAR":
        cell = f"CAST({cell} AS VARCHAR)"
    return f"nullif({cell}, '')"


def _word(types: Types, name: str, *choices: str) -> str:
    """Return the SQL of a word of a closed list, whatever its case; NULL where a cell holds none of them."""
    cases = " ".join(f"WHEN '{word.lower()}' THEN '{word}'" for word in choices)
    return f"CASE lower(trim({_text(types, name)})) {cases} END"


def _number(types: Types, name: str) -> str:
    return f"TRY_CAST({_cell(types, name)} AS DOUBLE)"


def _time(types: Types, name: str) -> str:
    """Return the SQL of a time in UTC; a text without a zone is taken to be in UTC."""
    cell = _cell(types, name)
    if types.get(name.lower(), ("", ""))[1] != "VARCHAR":
        return f"CAST({cell} AS TIMESTAMP)"
    # a cast to TIMESTAMPTZ reads every zone; the plain one is faster for the Z of nearly all files
    zoned = f"CAST(TRY_CAST({cell} AS TIMESTAMPTZ) AS TIMESTAMP)"
    plain = f"WHEN {cell} LIKE '%Z' THEN TRY_CAST({cell} AS TIMESTAMP)"
    return f"CASE {plain} WHEN {cell} LIKE '%z' THEN TRY_CAST(upper({cell}) AS TIMESTAMP) ELSE {zoned} END"
