"""Grids: every combination of the values of some arguments, or the rows of a table of cases, as columns."""

import codecs
import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.arguments import Argument, flag_of, known
from gpucost.arguments.kinds import FILE, TABLE, Kind, is_missing
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

# START:STOP:STEP, or xFACTOR in place of the step; each number may have a unit.
_RANGE = re.compile(
    r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*(?:(x)\s*)?"
    r"([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*",
    re.IGNORECASE,
)
_UNITS = ("h", "d", "w", "mo", "y", "ms", "s", "%")  # that stay with the number; b and k are counts
_SLACK = 1e-9  # by which a sum of steps may miss the end, or a whole number


def _values_of(argument: Argument, stated: Any) -> list[Any]:
    """Return the values of one axis, each checked; a value that is a list itself is joined with |.

    >>> from gpucost.ask import QUESTIONS
    >>> find = {argument.name: argument for argument in QUESTIONS["estimate"].arguments}
    >>> _values_of(find["gpus"], "8:64:x2,100"), _values_of(find["gpu"], "h100,a100|b200")
    ([8, 16, 32, 64, 100], ['h100', 'a100,b200'])
    >>> _values_of(find["overhead"], "10%:20%:5%"), _values_of(find["tokens"], "1b:1t:x10")
    ([0.1, 0.15, 0.2], [1000000000.0, 10000000000.0, 100000000000.0, 1000000000000.0])
    >>> _values_of(find["tokens"], "1e9:3e9:1e9")
    [1000000000.0, 2000000000.0, 3000000000.0]
    """
    entries: Sequence[Any]
    if isinstance(stated, str):
        entries = [word.strip().replace("|", ",") for word in stated.split(",") if word.strip()]
    else:
        stated = stated.tolist() if hasattr(stated, "tolist") else stated  # an array, or a column of a frame
        entries = list(stated) if isinstance(stated, (list, tuple, range, set)) else [stated]
    values: list[Any] = []
    for entry in entries:
        steps = _spread(entry, flag_of(argument.name)) if isinstance(entry, str) else None
        values.extend([entry] if steps is None else steps)
    if not values:
        raise UsageError(f"{flag_of(argument.name)}: the list is empty. Give at least one value.")
    return list(dict.fromkeys(_checked(argument, values)))


def _checked(argument: Argument, values: Sequence[Any]) -> list[Any]:
    """Return values once each was read: numbers as they are meant, the rest as written; None is not said."""
    checked: list[Any] = []
    for value in values:
        stated = None if is_missing(value) else value
        number = None if stated is None else value_of(argument, stated)
        # a number is kept as read, so that 8k and 8192 are one value; what else is read is no value of a table
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        checked.append(number if is_number else stated)
    return checked


def _spread(text: str, label: str) -> list[Any] | None:
    """Return the values of a range START:STOP:STEP or START:STOP:xFACTOR; None where the text is none."""
    match = _RANGE.fullmatch(text)
    if not match:
        return None
    start, first, stop, last, times, step, ending = match.groups()
    if first == last and first.lower() in _UNITS:
        # a step takes the unit of the ends, a factor may go without
        unit = first
        low, high, by = (_number(number, text, label) for number in (start, stop, step))
        if ending not in ("" if times else unit, unit):
            raise UsageError(
                f"{label}: the step of {text!r} has another unit. Write it as {start}{unit}:…:{step}{unit}."
            )
    else:
        unit = ""
        low, high = parse_count(start + first, label), parse_count(stop + last, label)
        by = _number(step, text, label) if times else parse_count(step + ending, label)
    if high < low or by <= (1.0 if times else 0.0) or (times and low <= 0):
        raise UsageError(
            f"{label}: {text!r} is not a range that ends. Write START:STOP:STEP, or START:STOP:x2 to double."
        )
    most = limit("limit_sweep_values")
    numbers = [low]
    while True:
        # from the start on each time: a sum of many steps would drift
        following = low * by ** len(numbers) if times else low + by * len(numbers)
        if following > high * (1 + _SLACK):
            break
        if len(numbers) >= most:
            raise UsageError(f"{label}: {text!r} has more than {most:,.0f} values. Take a larger step.")
        numbers.append(following)
    if unit:
        return [f"{number:.12g}{unit}" for number in numbers]
    values: list[Any] = []
    for number in numbers:
        near = round(number)
        is_whole = abs(number - near) <= _SLACK * max(1.0, abs(number))
        values.append(near if is_whole else float(f"{number:.12g}"))  # 12 digits: 0.1 + 0.05 is 0.15
    return values


def _number(text: str, range_text: str, label: str) -> float:
    try:
        return as_number(text)
    except ValueError:
        raise UsageError(f"{label}: cannot read {text!r} in {range_text!r} as a number.") from None


# --- Tables of cases: Parquet, CSV and data frames as columns of codes, and grid files.

_Coded = dict[str, tuple[NDArray[Any], list[Any]]]

_MOST_COLUMNS, _LONGEST_HEADER = 1000, 100_000  # of a table; signs of its first line
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S")  # whose day is meant, as a single question does
_MADE_UP = re.compile(r"column\d+|.*[,;|\t].*|.*_\d+")  # what the engine calls columns whose header it cannot use
_BARE = re.compile(r"column\d+")  # of them, those without a name
_READERS = {".parquet": "read_parquet", ".csv": "read_csv"}


class _CaseTable(NamedTuple):
    """A table of cases: each column in its distinct values, and how errors name the table and its rows."""

    columns: _Coded
    name: str = "the table of cases"
    first: int = 1  # what the first case's row is called: 2 below the header of a CSV file


def cases_of(source: Any) -> _CaseTable:
    """Read a table of cases: a data frame, or the name of a Parquet or CSV file."""
    import duckdb

    with duckdb.connect() as connection:
        quiet(connection).execute("set threads = 2")
        if hasattr(source, "columns"):
            if not len(source.columns):
                raise UsageError("the table of cases has no columns. It needs one for each argument.")
            connection.register("frame_of_cases", source)
            return _CaseTable(_coded(connection, "frame_of_cases", "the table of cases"))
        path = Path(FILE.read(source, "--cases"))
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise UsageError(f"--cases: {path.name} is neither .parquet nor .csv. Write the cases as one of them.")
        if not path.is_file():
            raise UsageError(f"--cases: there is no file {path}. Name one with a column for each argument.")
        if reader == "read_parquet":
            refuse_long(connection, path, "limit_sweep_rows")
        name = file_name(path)
        if reader == "read_csv":
            # a first line that ends in empty cells is a header all the same: the reader would doubt that
            with path.open("rb") as file:
                first = file.readline(_LONGEST_HEADER).rstrip(b" \r\n")
            name += ", header = true" if first.endswith((b",", b";", b"\t")) else ""
        try:
            try:
                columns = _coded(connection, f"{reader}({name})", str(path))
            except duckdb.ConversionException:  # a column of numbers that goes on in words, below what was looked at
                columns = _coded(connection, f"{reader}({name}, sample_size = -1)", str(path))
        except duckdb.Error as error:
            if reader == "read_csv":
                # UTF-16, and lines that end in two ways, its reader takes for one line
                with path.open("rb") as file:
                    start = file.read(_LONGEST_HEADER)
                if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise DataError("is UTF-16. Save it as CSV in UTF-8.", file=str(path)) from None
                if 0 < start.count(b"\r\n") < start.count(b"\n"):
                    reason = "ends some lines with CRLF and others with LF. Save it with one of them."
                    raise DataError(reason, file=str(path)) from None
            raise DataError(f"cannot be read as cases: {first_line(error)}", file=str(path)) from None
    if reader == "read_csv":
        is_made_up, columns = any(map(_MADE_UP.fullmatch, columns)), _trimmed(columns)
        if is_made_up:
            _refuse_header(path, columns)
    return _CaseTable(columns, str(path), 2 if reader == "read_csv" else 1)


def _trimmed(columns: _Coded) -> _Coded:
    """Leave out what a spreadsheet adds: columns without a name or a value, and at the end rows without a value."""
    named_columns = {
        name: column for name, column in columns.items() if column[1] not in ([], [None]) or not _BARE.fullmatch(name)
    }
    # the code of an empty cell, the last of a column that has any; else one that no cell has
    empty = {name: len(values) - 1 if None in values else -1 for name, (_, values) in named_columns.items()}
    count = rows = len(next(iter(named_columns.values()))[0]) if named_columns else 0
    # in a table of one column an empty cell may be meant
    while (
        len(named_columns) > 1
        and count
        and all(codes[count - 1] == empty[name] for name, (codes, _) in named_columns.items())
    ):
        count -= 1
    if count == rows:
        return named_columns
    trimmed = {}
    for name, (codes, values) in named_columns.items():
        codes_left = codes[:count]
        has_empty = (codes_left == empty[name]).any()
        trimmed[name] = (codes_left, values if has_empty else values[: empty[name]])
    return trimmed


def _refuse_header(path: Path, names: Iterable[str]) -> None:
    """Refuse a CSV file whose header names no columns, or one twice, or whose rows are not as long as it."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        mark = max(",;\t|", key=file.readline(_LONGEST_HEADER).count)  # the sign that the header has most of
        file.seek(0)
        rows = csv.reader(file, delimiter=mark)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            wide = len(header)
            while header and not header[-1]:
                header.pop()
            unlike = next(
                ((rows.line_num, len(row)) for row in rows if 0 < len(row) < len(header) or any(row[wide:])), None
            )  # too short, or with a value beyond the header
        except csv.Error as error:
            raise DataError(f"is not readable as CSV: {error}", file=str(path), row=rows.line_num) from None
    if unlike:
        reason = f"the row has {unlike[1]} cells, the header {wide}"
        raise DataError(f"{reason}. Leave unknown cells empty.", file=str(path), row=unlike[0])
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice", file=str(path), row=1, column=twice[0])
    if not header or header != list(names):
        raise DataError("must name the argument of each column, such as model,gpu,tokens", file=str(path), row=1)


def _coded(connection: "duckdb.DuckDBPyConnection", table: str, source: str) -> _Coded:
    import pandas

    kinds = {row[0]: row[1] for row in connection.execute(f"describe select * from {table}").fetchall()}
    if not kinds:
        raise UsageError(f"{source} has no columns. It needs one for each argument.")
    if len(kinds) > _MOST_COLUMNS:
        raise UsageError(f"{source} has {len(kinds):,} columns; no question has {_MOST_COLUMNS:,} arguments.")
    coded_columns: _Coded = {}
    for name, kind in kinds.items():
        is_text = kind.startswith(("VARCHAR", "ENUM", "DATE", "TIME", "INTERVAL", "BLOB", "UUID"))
        cell = f"{named(name)}{'::date' * (kind in _MOMENTS)}{'::varchar' * is_text}"
        cell = f"nullif(trim({cell}), '')" if kind == "VARCHAR" else cell
        column: Any = connection.execute(f"select {cell} as v from {table}").fetchnumpy()["v"]
        # as codes and what they mean; cells without a value mean None
        data, missing = np.ma.getdata(column), np.ma.getmaskarray(column)
        if data.dtype.kind == "f":
            missing = missing | np.isnan(data)
        present = data[~missing]
        # factorize keeps the order of texts, unique sorts numbers: each is the quicker one
        values, places = pandas.factorize(present)[::-1] if is_text else np.unique(present, return_inverse=True)
        codes = np.full(len(data), len(values), np.int32)
        codes[~missing] = places
        meanings = [value.strip() if isinstance(value, str) else value for value in values.tolist()]
        coded_columns[name] = codes, [*meanings, *([None] if missing.any() else [])]
    return coded_columns


def grid_of(path: str) -> dict[str, Any]:
    """Read a grid file: a TOML table of arguments, each a value, a list or a range."""
    from gpucost.gate import read_toml

    arguments: Mapping[str, Any] = read_toml(path)
    if nested := [name for name, value in arguments.items() if isinstance(value, Mapping)]:
        raise DataError(f'{nested[0]} is a table; a grid file holds arguments, such as gpus = "8:64:x2"', file=path)
    return dict(arguments)


# --- Grids: every combination of the values of some arguments, or the rows of a table of cases, as columns of numbers.

_Codes = dict[str, NDArray[np.int32]]

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
    listed: _Codes | None = None  # of the cases of a table; None is every combination, the last name fastest

    @property
    def moving(self) -> list[str]:
        """Return the arguments that take more than one value."""
        return [name for name, values in self.values.items() if len(values) > 1]

    def part(self, start: int, stop: int) -> _Codes:
        """Return the codes of cases from `start` to before `stop`.

        >>> grid = SweepGrid("estimate", {"gpu": ["a", "b"], "gpus": [1, 2, 4]}, 6)
        >>> {name: codes.tolist() for name, codes in grid.part(2, 5).items()}
        {'gpu': [0, 1, 1], 'gpus': [2, 0, 1]}
        """
        if self.listed is not None:
            return {name: codes[start:stop] for name, codes in self.listed.items()}
        remaining = np.arange(start, stop, dtype=np.int64)
        # the digits of the case's number: the last argument is the fastest
        codes: _Codes = {}
        for name in reversed(list(self.values)):
            size = len(self.values[name])
            codes[name] = (remaining % size).astype(np.int32)
            remaining //= size
        return {name: codes[name] for name in self.values}


def combinations(question: str, arguments: Mapping[str, Any]) -> SweepGrid:
    """Return every combination of what the arguments take."""
    arguments, by_name = _axes_of(question), _by_name(question, arguments)
    _refuse_incomplete(arguments, by_name)
    values = {name: _values_of(arguments[name], by_name[name]) for name in _order(arguments) if name in by_name}
    _refuse_unswept(values)
    refuse_twice_in_every_case(QUESTIONS[question], values)
    count = prod(map(len, values.values()))
    _refuse_many(count, " × ".join(f"{len(axis)} {name}" for name, axis in values.items() if len(axis) > 1))
    return SweepGrid(question, values, count)


def listed(question: str, cases: _CaseTable, constant_arguments: Mapping[str, Any]) -> SweepGrid:
    """Return the rows of a table; arguments beside it hold for every row."""
    arguments, columns = _axes_of(question), cases.columns
    if twice := sorted(set(columns) & set(constant_arguments)):
        raise UsageError(f"{flag_of(twice[0])} is given beside a table that has a column {twice[0]}. Keep one of them.")
    constants = _by_name(question, constant_arguments)
    values = {name: _values_of(arguments[name], value) for name, value in constants.items()}
    if several := [name for name, entries in values.items() if len(entries) > 1]:
        raise UsageError(f"{flag_of(several[0])}: beside a table of cases an argument takes one value for all of them.")
    try:
        tabled = _by_name(question, columns)
    except UsageError as error:  # of a column: it stands in the table
        raise DataError(str(error), file=cases.name) from None
    for name, (row_codes, entries) in tabled.items():
        argument = arguments[name]
        if argument.required and None in entries:
            row_number = cases.first + row_codes.tolist().index(entries.index(None))
            raise DataError("is empty; every case needs it", file=cases.name, row=row_number, column=name)
        try:
            values[name] = _checked(argument, entries)
        except UsageError:
            # each distinct value was read once; now row by row, to name the first that holds a faulty one
            for row_number, code in enumerate(row_codes, cases.first):
                try:
                    _checked(argument, [entries[code]])
                except UsageError as error:
                    reason = str(error).removeprefix(f"{flag_of(name)}: ")
                    raise DataError(reason, file=cases.name, row=row_number, column=name) from None
            raise
    _refuse_incomplete(arguments, values)
    _refuse_unswept(values)
    count = len(next(iter(tabled.values()))[0]) if tabled else 0
    if not count:
        raise UsageError("the table of cases is empty. It needs a column for each argument and a row for each case.")
    _refuse_many(count, f"{count:,} rows")
    ordered = [name for name in _order(arguments) if name in values]
    same = np.zeros(count, np.int32)  # what stands beside the table is the first and only value of every row
    codes = {name: tabled[name][0].astype(np.int32) if name in tabled else same for name in ordered}
    return SweepGrid(question, {name: values[name] for name in ordered}, count, codes)


def _axes_of(question: str) -> dict[str, Argument]:
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


def _refuse_unswept(values_by_argument: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what one sweep cannot hold: a list of options per case, cases of several days."""
    if "pareto" in values_by_argument.get("optimize", ()):
        raise UsageError(
            "--optimize pareto gives a list of options, and a sweep keeps one per case. Rank by cost or time."
        )
    for name in DATES:
        if len(values_by_argument.get(name, ())) > 1:
            raise UsageError(f"{flag_of(name)}: a sweep uses the prices of one day. Run one sweep for each day.")


def _by_name(question: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by name; those that no sweep takes are refused with the reason.

    Inputs of a plan may stand under `set`, or beside the arguments under their own names.
    """
    axes = _axes_of(question)
    arguments = {argument.name for argument in QUESTIONS[question].arguments}
    inputs = {name: value for name, value in stated.items() if name in axes and name not in arguments}
    by_name = known(QUESTIONS[question], {name: value for name, value in stated.items() if name not in inputs})
    if by_name.get(_SET):
        by_set = TABLE.read(by_name.pop(_SET), "--set")
        if unknown := [name for name in by_set if name not in axes]:
            from gpucost.ownership.plan import unknown_input

            raise unknown_input(unknown[0], _plan_inputs(), "--set", ())
        if twice := sorted(by_set.keys() & (by_name.keys() | inputs.keys())):
            raise UsageError(f"{twice[0]} is given twice: as an argument and by --set. Keep one.")
        inputs |= by_set
    by_name |= inputs
    for name in by_name:
        if name in NOT_SWEPT:
            raise UsageError(f"{flag_of(name)}: {NOT_SWEPT[name]}. Leave it out.")
    return by_name


def _refuse_incomplete(arguments: Mapping[str, Argument], by_name: Mapping[str, Any]) -> None:
    if missing := [name for name, argument in arguments.items() if argument.required and name not in by_name]:
        raise UsageError(f"{flag_of(missing[0])} is missing. {arguments[missing[0]].help}")


def _refuse_many(count: int, described: str) -> None:
    most = limit("limit_sweep_cases")
    if count > most:
        raise UsageError(
            f"this sweep has {count:,} cases ({described}), more than {most:,.0f}. Take fewer values; the setting"
            " limit_sweep_cases raises the bound."
        )
