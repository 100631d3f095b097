"""Grids: every combination of the values of some arguments, or the rows of a table of cases, as columns of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.arguments import QUESTIONS, Argument, flag_of
from gpucost.arguments.reading import renamed
from gpucost.errors import DataError, UsageError
from gpucost.gate import beside, shown
from gpucost.limits import limit
from gpucost.sweeping.axes import checked, values_of
from gpucost.sweeping.tables import Cases

Codes = dict[str, NDArray[np.int32]]

# What a single answer is written with and a sweep of first options is not; the dates choose the catalog of all cases.
NOT_SWEPT = dict(beside(__file__, "not_swept")[1:])
DATES = ("as_of", "known_as_of")
QUESTIONS_SWEPT = ("estimate", "inference", "tco")
_LAST = ("tokens", "epochs", "deadline", "max_cost", "overhead", "experiments")  # vary fastest: they need no new search


@dataclass(frozen=True, slots=True)
class Grid:
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
        rest = np.arange(start, stop, dtype=np.int64)
        found: Codes = {}
        for name in reversed(list(self.values)):
            size = len(self.values[name])
            found[name] = (rest % size).astype(np.int32)
            rest //= size
        return {name: found[name] for name in self.values}


def combinations(question: str, given: Mapping[str, Any]) -> Grid:
    """Return every combination of what the arguments take."""
    values = _read(question, given)
    count = 1
    for listed in values.values():
        count *= len(listed)
    _bounded(count, " × ".join(f"{len(listed)} {name}" for name, listed in values.items() if len(listed) > 1))
    return Grid(question, values, count)


def listed(question: str, cases: Cases, given: Mapping[str, Any]) -> Grid:
    """Return the rows of a table; arguments beside it hold for every row."""
    arguments, columns = _known(question), cases.columns
    if twice := sorted(set(columns) & set(given)):
        raise UsageError(f"{flag_of(twice[0])} is given beside a table that has a column {twice[0]}. Keep one of them.")
    beside = _named(question, given)
    said = {name: values_of(arguments[name], value) for name, value in beside.items()}
    if several := [name for name, values in said.items() if len(values) > 1]:
        raise UsageError(f"{flag_of(several[0])}: beside a table of cases an argument takes one value for all of them.")
    try:
        tabled = _named(question, columns)
    except UsageError as error:
        raise DataError(str(error), file=cases.said) from None
    said |= {name: _checked(arguments[name], column, cases) for name, column in tabled.items()}
    _complete(arguments, said)
    _refuse_unswept(said)
    count = len(next(iter(tabled.values()))[0]) if tabled else 0
    if not count:
        raise UsageError("the table of cases is empty. It needs a column for each argument and a row for each case.")
    _bounded(count, f"{count:,} rows")
    ordered = [name for name in _order(arguments) if name in said]
    same = np.zeros(count, np.int32)
    codes = {name: tabled[name][0].astype(np.int32) if name in tabled else same for name in ordered}
    return Grid(question, {name: said[name] for name in ordered}, count, codes)


def _checked(argument: Argument, column: tuple[NDArray[Any], list[Any]], cases: Cases) -> list[Any]:
    """Return the values of a column once each was read; the first row that holds a faulty one is named."""
    codes, values = column
    if argument.required and None in values:
        place = cases.first + codes.tolist().index(values.index(None))
        raise DataError("is empty; every case needs it", file=cases.said, row=place, column=argument.name)
    try:
        return checked(argument, values)
    except UsageError:
        for row, code in enumerate(codes):
            try:
                checked(argument, [values[code]])
            except UsageError as error:
                reason = str(error).removeprefix(f"{flag_of(argument.name)}: ")
                place = cases.first + row
                raise DataError(reason, file=cases.said, row=place, column=argument.name) from None
        raise


def _known(question: str) -> dict[str, Argument]:
    if not isinstance(question, str) or question not in QUESTIONS_SWEPT:
        raise UsageError(f"a sweep asks {', '.join(QUESTIONS_SWEPT)}, not {shown(question)}.")
    return {argument.name: argument for argument in QUESTIONS[question].arguments}


def _order(arguments: Mapping[str, Argument]) -> list[str]:
    return [name for name in arguments if name not in _LAST] + [name for name in _LAST if name in arguments]


def _read(question: str, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    arguments, named = _known(question), _named(question, given)
    _complete(arguments, named)
    found = {name: values_of(arguments[name], named[name]) for name in _order(arguments) if name in named}
    _refuse_unswept(found)
    return found


def _refuse_unswept(found: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what one sweep cannot hold: a list of options per case, cases of several days."""
    if "pareto" in found.get("optimize", ()):
        raise UsageError("--optimize pareto is a list of options; a sweep keeps one per case. Rank by cost or time.")
    for name in DATES:
        if len(found.get(name, ())) > 1:
            raise UsageError(f"{flag_of(name)}: a sweep looks at one day. Run one sweep for each.")


def _named(question: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names of today; those that no sweep takes are refused with the reason."""
    named, _ = renamed(question, given)
    for name in named:
        if name in NOT_SWEPT:
            raise UsageError(f"{flag_of(name)}: {NOT_SWEPT[name]}. Leave it out.")
    return named


def _complete(arguments: Mapping[str, Argument], named: Mapping[str, Any]) -> None:
    if missing := [name for name, argument in arguments.items() if argument.required and name not in named]:
        raise UsageError(f"{flag_of(missing[0])} is missing. {arguments[missing[0]].help}")


def _bounded(count: int, said: str) -> None:
    most = limit("limit_sweep_cases")
    if count > most:
        raise UsageError(
            f"this sweep has {count:,} cases ({said}), more than {most:,.0f}. Take fewer values; the setting"
            " limit_sweep_cases raises the bound."
        )
