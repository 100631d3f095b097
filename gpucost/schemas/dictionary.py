"""The data dictionary: tables.csv names the tables, columns.csv their columns; each is read when first asked for."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple, cast

from gpucost.gate import beside
from gpucost.options import OPTIONS

Kind = Literal["text", "integer", "number", "date", "flag"]

DUCKDB_TYPES: dict[str, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "flag": "BOOLEAN",
}

_LISTS = {"{options}": OPTIONS}  # closed lists that have a home of their own


class Column(NamedTuple):
    """One column: its kind, what it means, and what a cell may hold."""

    name: str
    kind: Kind
    description: str
    unit: str = ""
    required: bool = False
    low: float | None = None  # smallest value allowed
    high: float | None = None  # largest value allowed
    positive: bool = False  # zero is refused: a missing number is an empty cell
    choices: tuple[str, ...] = ()
    refers_to: str = ""  # table whose key this column holds


class Table:
    """One table: where its CSV files are (a glob below the data root), its key and its columns."""

    def __init__(self, name: str, files: str, key: tuple[str, ...], description: str) -> None:
        self.name, self.files, self.key, self.description = name, files, key, description

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns in the order in which shipped files hold them."""
        return tuple(_column(cells) for cells in beside(__file__, "columns")[1:] if cells[0] == self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns in their order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)


class _Tables(Mapping[str, Table]):
    """Every table by its name, in the dictionary's order."""

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {
            name: Table(name, files, tuple(key.split()), text)
            for name, files, key, text in beside(__file__, "tables")[1:]
        }

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def _column(cells: list[str]) -> Column:
    _, name, kind, unit, bounds, required, values, refers_to, description = cells
    limits = dict(bound.split() for bound in bounds.split(", ")) if bounds else {}
    choices = tuple(one for word in values.split(" | ") for one in _LISTS.get(word, (word,))) if values else ()
    return Column(
        name,
        cast(Kind, kind),
        description,
        unit,
        required == "required",
        _number(limits, ">="),
        _number(limits, "<="),
        limits.get(">") == "0",
        choices,
        refers_to,
    )


def _number(limits: Mapping[str, str], sign: str) -> float | None:
    return float(limits[sign]) if sign in limits else None


TABLES: Mapping[str, Table] = _Tables()
HISTORY = Table(
    "price_history",
    "pricing/history/*.csv",
    ("provider", "instance_type", "gpu", "gpus", "region", "option", "term_months", "source_id", "observed_on"),
    "Dated prices as change points: from that day on a source listed the price, until its next row. Too many rows for"
    " the start of a command: read when a day in the past or a history is asked for.",
)


def table_of(name: str) -> Table:
    """Return the table called `name`, the history among them.

    >>> table_of("offers").files, table_of("price_history").files
    ('pricing/offers/*.csv', 'pricing/history/*.csv')
    """
    return HISTORY if name == HISTORY.name else TABLES[name]
