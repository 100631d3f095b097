"""Grids: every combination of the values of some arguments, or the rows of a table of cases, as columns."""

import codecs
import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.arguments import Argument, flag_of, known
from gpucost.arguments.kinds import FILE, FLAG, TABLE, Kind, is_missing
from gpucost.arguments.reading import refuse_twice_in_every_case, value_of
from gpucost.ask import QUESTIONS
from gpucost.catalog.loader import file_name, first_line, named, quiet, refuse_long
from gpucost.errors import DataError, UsageError
from gpucost.gate import beside, repeated, shown
from gpucost.limits import limit
from gpucost.units import as_number, parse_count

if TYPE_CHECKING:
    import duckdb


# --- Axes: what one argument takes over a sweep, as a list or a range, each value read as a single question reads it.

_RANGE = re.compile(
    r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*(?:(x)\s*)?"
    r"([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*",
    re.IGNORECASE,
)
_SLACK = 1e-9


def values_of(argument: Argument, stated: Any) -> list[Any]:
    """Return the values of one axis, each checked; a value that is a list itself is joined with |.

    >>> from gpucost.ask import QUESTIONS
    >>> find = {argument.name: argument for argument in QUESTIONS["estimate"].arguments}
    >>> values_of(find["gpus"], "8:64:x2,100"), values_of(find["gpu"], "h100,a100|b200")
    ([8, 16, 32, 64, 100], ['h100', 'a100,b200'])
    >>> values_of(find["overhead"], "10%:20%:5%"), values_of(find["tokens"], "1b:1t:x10")
    ([0.1, 0.15, 0.2], [1000000000.0, 10000000000.0, 100000000000.0, 1000000000000.0])
    >>> values_of(find["tokens"], "1e9:3e9:1e9")
    [1000000000.0, 2000000000.0, 3000000000.0]
    """
    values: list[Any] = []
    for value in _listed(argument, stated):
        spread = _spread(value, flag_of(argument.name)) if isinstance(value, str) else None
        values.extend([value] if spread is None else spread)
    if not values:
        raise UsageError(f"{flag_of(argument.name)}: the list is empty. Give at least one value.")
    return list(dict.fromkeys(checked(argument, values)))


def checked(argument: Argument, values: Sequence[Any]) -> list[Any]:
    """Return values once each was read: numbers as they are meant, the rest as written; None is not said."""
    values = [None if is_missing(value) else value for value in values]
    read = [None if value is None else value_of(argument, value) for value in values]
    return [
        meant if isinstance(meant, (int, float)) and not isinstance(meant, bool) else value
        for value, meant in zip(values, read, strict=True)
    ]


def _listed(argument: Argument, stated: Any) -> Sequence[Any]:
    if argument.kind is FLAG and isinstance(stated, bool):
        return [stated]
    if isinstance(stated, str):
        return [word.strip().replace("|", ",") for word in stated.split(",") if word.strip()]
    if hasattr(stated, "tolist"):
        stated = stated.tolist()
    return list(stated) if isinstance(stated, (list, tuple, range, set)) else [stated]


def _spread(text: str, label: str) -> list[Any] | None:
    """Return the values of a range START:STOP:STEP or START:STOP:xFACTOR; None where the text is none."""
    match = _RANGE.fullmatch(text)
    if not match:
        return None
    start, first, stop, last, times, step, ending = match.groups()
    if first == last == "%" or (first == last and first.lower() in ("h", "d", "w", "mo", "y", "ms", "s", "%")):
        unit = first
        low, high, by = _number(start, text, label), _number(stop, text, label), _number(step, text, label)
        if ending not in ("" if times else unit, unit):
            raise UsageError(
                f"{label}: the step of {text!r} has another unit. Write it as {start}{unit}:…:{step}{unit}."
            )
    else:
        unit = ""
        low, high = parse_count(start + first, label), parse_count(stop + last, label)
        by = _number(step, text, label) if times else parse_count(step + ending, label)
    numbers = _steps(low, high, by, bool(times), text, label)
    return [f"{number:.12g}{unit}" for number in numbers] if unit else [_plain(number) for number in numbers]


def _steps(low: float, high: float, by: float, times: bool, text: str, label: str) -> list[float]:
    if high < low or by <= (1.0 if times else 0.0) or (times and low <= 0):
        raise UsageError(
            f"{label}: {text!r} is not a range that ends. Write START:STOP:STEP, or START:STOP:x2 to double."
        )
    most = limit("limit_sweep_values")
    steps = [low]
    while len(steps) <= most:
        following = low * by ** len(steps) if times else low + by * len(steps)
        if following > high * (1 + _SLACK):
            return steps
        steps.append(following)
    raise UsageError(f"{label}: {text!r} has more than {most:,.0f} values. Take a larger step.")


def _number(text: str, range_text: str, label: str) -> float:
    try:
        return as_number(text)
    except ValueError:
        raise UsageError(f"{label}: cannot read {text!r} in {range_text!r} as a number.") from None


def _plain(number: float) -> int | float:
    near = round(number)
    return near if abs(number - near) <= _SLACK * max(1.0, abs(number)) else float(f"{number:.12g}")


# --- Tables of cases: Parquet, CSV and data frames as columns of codes, and grid files.

Coded = dict[str, tuple[NDArray[Any], list[Any]]]

_MOST_COLUMNS, _LONGEST_HEADER = 1000, 100_000
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S")  # whose day is meant, as a single question does
_MADE_UP = re.compile(r"column\d+|.*[,;|\t].*|.*_\d+")  # what the engine calls columns whose header it cannot use
_BARE = re.compile(r"column\d+")  # of them, those without a name
READERS = {".parquet": "read_parquet", ".csv": "read_csv"}


class CaseTable(NamedTuple):
    """A table of cases: each column in its distinct values, and how errors name the table and its rows."""

    columns: Coded
    said: str = "the table of cases"
    first: int = 1  # what the first case's row is called: 2 below the header of a CSV file


def cases_of(source: Any) -> CaseTable:
    """Read a table of cases: a data frame, or the name of a Parquet or CSV file."""
    import duckdb

    with duckdb.connect() as connection:
        quiet(connection).execute("set threads = 2")
        if hasattr(source, "columns"):
            if not len(source.columns):
                raise UsageError("the table of cases has no columns. It needs one for each argument.")
            connection.register("given", source)
            return CaseTable(_coded(connection, "given", "the table of cases"))
        path = Path(FILE.read(source, "--cases"))
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise UsageError(f"--cases: {path.name} is neither .parquet nor .csv. Write the cases as one of them.")
        if not path.is_file():
            raise UsageError(f"--cases: there is no file {path}. Name one with a column for each argument.")
        if reader == "read_parquet":
            refuse_long(connection, path, "limit_sweep_rows")
        name = f"{file_name(path)}{_header(path) if reader == 'read_csv' else ''}"
        try:
            try:
                columns = _coded(connection, f"{reader}({name})", str(path))
            except duckdb.ConversionException:  # a column of numbers that goes on in words, below what was looked at
                columns = _coded(connection, f"{reader}({name}, sample_size = -1)", str(path))
        except duckdb.Error as error:
            if reader == "read_csv":
                _refuse_text(path)
            raise DataError(f"cannot be read as cases: {first_line(error)}", file=str(path)) from None
    if reader == "read_csv":
        made_up, columns = any(map(_MADE_UP.fullmatch, columns)), _trimmed(columns)
        if made_up:
            _refuse_header(path, columns)
    return CaseTable(columns, str(path), 2 if reader == "read_csv" else 1)


def _header(path: Path) -> str:
    """Return the option that a first line which ends in empty cells is a header: its reader would doubt that."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER).rstrip(b" \r\n")
    return ", header = true" if first.endswith((b",", b";", b"\t")) else ""


def _trimmed(columns: Coded) -> Coded:
    """Leave out what a spreadsheet adds: columns without a name or a value, and at the end rows without a value."""
    named_columns = {
        name: column for name, column in columns.items() if column[1] not in ([], [None]) or not _BARE.fullmatch(name)
    }
    empty = {name: len(values) - 1 if None in values else -1 for name, (_, values) in named_columns.items()}
    count = rows = len(next(iter(named_columns.values()))[0]) if named_columns else 0
    while (
        len(named_columns) > 1
        and count
        and all(codes[count - 1] == empty[name] for name, (codes, _) in named_columns.items())
    ):
        count -= 1
    if count == rows:
        return named_columns
    cut = {name: (codes[:count], values) for name, (codes, values) in named_columns.items()}
    return {
        name: (codes, values if (codes == empty[name]).any() else values[: empty[name]])
        for name, (codes, values) in cut.items()
    }


def _refuse_text(path: Path) -> None:
    """Refuse a CSV file in UTF-16, or whose lines end in two ways, which its reader takes for one line."""
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEADER)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError("is UTF-16. Save it as CSV in UTF-8.", file=str(path))
    if 0 < start.count(b"\r\n") < start.count(b"\n"):
        raise DataError("ends some lines with CRLF and others with LF. Save it with one of them.", file=str(path))


def _refuse_header(path: Path, names: Iterable[str]) -> None:
    """Refuse a CSV file whose header names no columns, or one twice, or whose rows are not as long as it."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        mark = max(",;\t|", key=file.readline(_LONGEST_HEADER).count)
        file.seek(0)
        rows = csv.reader(file, delimiter=mark)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            wide = len(header)
            while header and not header[-1]:
                header.pop()
            unlike = next(
                ((rows.line_num, len(row)) for row in rows if 0 < len(row) < len(header) or any(row[wide:])), None
            )
        except csv.Error as error:
            raise DataError(f"is not readable as CSV: {error}", file=str(path), row=rows.line_num) from None
    if unlike:
        reason = f"the row has {unlike[1]} cells, the header {wide}"
        raise DataError(f"{reason}. Leave unknown cells empty.", file=str(path), row=unlike[0])
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice", file=str(path), row=1, column=twice[0])
    if not header or header != list(names):
        raise DataError("must name the argument of each column, such as model,gpu,tokens", file=str(path), row=1)


def _coded(connection: "duckdb.DuckDBPyConnection", table: str, source: str) -> Coded:
    kinds = {row[0]: row[1] for row in connection.execute(f"describe select * from {table}").fetchall()}
    if not kinds:
        raise UsageError(f"{source} has no columns. It needs one for each argument.")
    if len(kinds) > _MOST_COLUMNS:
        raise UsageError(f"{source} has {len(kinds):,} columns; no question has {_MOST_COLUMNS:,} arguments.")
    coded_columns: Coded = {}
    for name, kind in kinds.items():
        is_text = kind.startswith(("VARCHAR", "ENUM", "DATE", "TIME", "INTERVAL", "BLOB", "UUID"))
        cell = f"{named(name)}{'::date' * (kind in _MOMENTS)}{'::varchar' * is_text}"
        cell = f"nullif(trim({cell}), '')" if kind == "VARCHAR" else cell
        coded_columns[name] = _distinct(
            connection.execute(f"select {cell} as v from {table}").fetchnumpy()["v"], is_text
        )
    return coded_columns


def _distinct(column: Any, is_text: bool) -> tuple[NDArray[Any], list[Any]]:
    """Return a column as codes and what they mean; cells without a value mean None."""
    import pandas

    data, missing = np.ma.getdata(column), np.ma.getmaskarray(column)
    if data.dtype.kind == "f":
        missing = missing | np.isnan(data)
    present = data[~missing]
    values, places = pandas.factorize(present)[::-1] if is_text else np.unique(present, return_inverse=True)
    codes = np.full(len(data), len(values), np.int32)
    codes[~missing] = places
    meanings = [value.strip() if isinstance(value, str) else value for value in values.tolist()]
    return codes, [*meanings, *([None] if missing.any() else [])]


def grid_of(path: str) -> dict[str, Any]:
    """Read a grid file: a TOML table of arguments, each a value, a list or a range."""
    from gpucost.gate import read_toml

    arguments: Mapping[str, Any] = read_toml(path)
    if nested := [name for name, value in arguments.items() if isinstance(value, Mapping)]:
        raise DataError(f'{nested[0]} is a table; a grid file holds arguments, such as gpus = "8:64:x2"', file=path)
    return dict(arguments)


# --- Grids: every combination of the values of some arguments, or the rows of a table of cases, as columns of
# numbers.

Codes = dict[str, NDArray[np.int32]]

# What a single answer is written with and a sweep of first options is not; the dates choose the catalog of all cases.
NOT_SWEPT = dict(beside(__file__, "not_swept")[1:])
DATES = ("as_of", "known_as_of")
QUESTIONS_SWEPT = ("estimate", "inference", "tco")
_LAST = ("tokens", "epochs", "deadline", "budget", "overhead", "experiments")  # vary fastest: they need no new search


class SweepGrid(Struct, frozen=True):
    """Cases: argument `name` of case i is `values[name][code]`, the code from the grid's order or from a table."""

    question: str
    values: Mapping[str, Sequence[Any]]
    count: int
    listed: Codes | None = None  # of the cases of a table; None is every combination, the last name fastest

    @property
    def moving(self) -> list[str]:
        """Return the arguments that take more than one value."""
        return [name for name, values in self.values.items() if len(values) > 1]

    def part(self, start: int, stop: int) -> Codes:
        """Return the codes of cases from `start` to before `stop`.

        >>> grid = Grid("estimate", {"gpu": ["a", "b"], "gpus": [1, 2, 4]}, 6)
        >>> {name: codes.tolist() for name, codes in grid.part(2, 5).items()}
        {'gpu': [0, 1, 1], 'gpus': [2, 0, 1]}
        """
        if self.listed is not None:
            return {name: codes[start:stop] for name, codes in self.listed.items()}
        remaining = np.arange(start, stop, dtype=np.int64)
        found: Codes = {}
        for name in reversed(list(self.values)):
            size = len(self.values[name])
            found[name] = (remaining % size).astype(np.int32)
            remaining //= size
        return {name: found[name] for name in self.values}


def combinations(question: str, arguments: Mapping[str, Any]) -> SweepGrid:
    """Return every combination of what the arguments take."""
    values = _read(question, arguments)
    refuse_twice_in_every_case(QUESTIONS[question], values)
    count = 1
    for listed in values.values():
        count *= len(listed)
    _bounded(count, " × ".join(f"{len(listed)} {name}" for name, listed in values.items() if len(listed) > 1))
    return SweepGrid(question, values, count)


def listed(question: str, cases: CaseTable, constant_arguments: Mapping[str, Any]) -> SweepGrid:
    """Return the rows of a table; arguments beside it hold for every row."""
    arguments, columns = _known(question), cases.columns
    if twice := sorted(set(columns) & set(constant_arguments)):
        raise UsageError(f"{flag_of(twice[0])} is given beside a table that has a column {twice[0]}. Keep one of them.")
    constants = _named(question, constant_arguments)
    values_by_argument = {name: values_of(arguments[name], value) for name, value in constants.items()}
    if several := [name for name, values in values_by_argument.items() if len(values) > 1]:
        raise UsageError(f"{flag_of(several[0])}: beside a table of cases an argument takes one value for all of them.")
    try:
        tabled = _named(question, columns)
    except UsageError as error:
        raise DataError(str(error), file=cases.said) from None
    values_by_argument |= {name: _checked(arguments[name], column, cases) for name, column in tabled.items()}
    _complete(arguments, values_by_argument)
    _refuse_unswept(values_by_argument)
    count = len(next(iter(tabled.values()))[0]) if tabled else 0
    if not count:
        raise UsageError("the table of cases is empty. It needs a column for each argument and a row for each case.")
    _bounded(count, f"{count:,} rows")
    ordered = [name for name in _order(arguments) if name in values_by_argument]
    same = np.zeros(count, np.int32)
    codes = {name: tabled[name][0].astype(np.int32) if name in tabled else same for name in ordered}
    return SweepGrid(question, {name: values_by_argument[name] for name in ordered}, count, codes)


def _checked(argument: Argument, column: tuple[NDArray[Any], list[Any]], cases: CaseTable) -> list[Any]:
    """Return the values of a column once each was read; the first row that holds a faulty one is named."""
    codes, values = column
    if argument.required and None in values:
        row_number = cases.first + codes.tolist().index(values.index(None))
        raise DataError("is empty; every case needs it", file=cases.said, row=row_number, column=argument.name)
    try:
        return checked(argument, values)
    except UsageError:
        for row, code in enumerate(codes):
            try:
                checked(argument, [values[code]])
            except UsageError as error:
                reason = str(error).removeprefix(f"{flag_of(argument.name)}: ")
                row_number = cases.first + row
                raise DataError(reason, file=cases.said, row=row_number, column=argument.name) from None
        raise


def _known(question: str) -> dict[str, Argument]:
    """Return what may be an axis: the arguments of a question, and the inputs of a plan where it takes one."""
    if not isinstance(question, str) or question not in QUESTIONS_SWEPT:
        raise UsageError(f"a sweep asks {', '.join(QUESTIONS_SWEPT)}, not {shown(question)}.")
    arguments = {argument.name: argument for argument in QUESTIONS[question].arguments}
    if _SET not in arguments:
        return arguments
    return {**arguments, **{name: item for name, item in _plan_inputs().items() if name not in arguments}}


_SET = "set"  # the argument that takes inputs of the plan; each of them is an axis of its own


@cache
def _plan_inputs() -> dict[str, Argument]:
    """Return the inputs of a plan as arguments, each read as a plan reads it."""
    from gpucost.catalog.shared import shared_catalog
    from gpucost.ownership.plan import Registry

    registry = Registry(shared_catalog())

    def reader(name: str) -> Kind:
        return Kind(lambda value, label: registry.number(name, value, "--set"), ("string", "number"))

    return {name: Argument(name, reader(name), row["description"]) for name, row in registry.inputs.items()}


def _order(arguments: Mapping[str, Argument]) -> list[str]:
    return [name for name in arguments if name not in _LAST] + [name for name in _LAST if name in arguments]


def _read(question: str, stated: Mapping[str, Any]) -> dict[str, list[Any]]:
    arguments, named = _known(question), _named(question, stated)
    _complete(arguments, named)
    values_by_argument = {name: values_of(arguments[name], named[name]) for name in _order(arguments) if name in named}
    _refuse_unswept(values_by_argument)
    return values_by_argument


def _refuse_unswept(values_by_argument: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what one sweep cannot hold: a list of options per case, cases of several days."""
    if "pareto" in values_by_argument.get("optimize", ()):
        raise UsageError(
            "--optimize pareto gives a list of options, and a sweep keeps one per case. Rank by cost or time."
        )
    for name in DATES:
        if len(values_by_argument.get(name, ())) > 1:
            raise UsageError(f"{flag_of(name)}: a sweep uses the prices of one day. Run one sweep for each day.")


def _named(question: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by name; those that no sweep takes are refused with the reason.

    Inputs of a plan may stand under `set`, or beside the arguments under their own names.
    """
    arguments = {argument.name for argument in QUESTIONS[question].arguments}
    inputs = {name: value for name, value in stated.items() if name in _known(question) and name not in arguments}
    named = known(QUESTIONS[question], {name: value for name, value in stated.items() if name not in inputs})
    if named.get(_SET):
        by_set = TABLE.read(named.pop(_SET), "--set")
        if unknown := [name for name in by_set if name not in _known(question)]:
            from gpucost.ownership.plan import unknown_input

            raise unknown_input(unknown[0], _plan_inputs(), "--set", ())
        if twice := sorted(by_set.keys() & (named.keys() | inputs.keys())):
            raise UsageError(f"{twice[0]} is given twice: as an argument and by --set. Keep one.")
        inputs |= by_set
    named |= inputs
    for name in named:
        if name in NOT_SWEPT:
            raise UsageError(f"{flag_of(name)}: {NOT_SWEPT[name]}. Leave it out.")
    return named


def _complete(arguments: Mapping[str, Argument], named: Mapping[str, Any]) -> None:
    if missing := [name for name, argument in arguments.items() if argument.required and name not in named]:
        raise UsageError(f"{flag_of(missing[0])} is missing. {arguments[missing[0]].help}")


def _bounded(count: int, described: str) -> None:
    most = limit("limit_sweep_cases")
    if count > most:
        raise UsageError(
            f"this sweep has {count:,} cases ({described}), more than {most:,.0f}. Take fewer values; the setting"
            " limit_sweep_cases raises the bound."
        )
