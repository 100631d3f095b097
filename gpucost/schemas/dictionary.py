"""The data dictionary: tables, their columns, the values of closed lists, each in a CSV file beside this module."""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
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
_OPTIONS = "options"  # what a column refers to whose values are purchase options: they have a table of their own

# Names that answers repeat in sentences and agents read to a model: of these columns a cell is short and plain, so that
# no file of prices smuggles in an instruction. LETTERS differs between Python and RE2, which DuckDB uses.
_NAMES = frozenset(
    ("id", "name", "provider", "instance_type", "gpu", "system_id", "accelerator_id", "region", "tier", "vendor")
)
LONGEST_NAME = 60
_WORD = r"[LETTERS+/()|~,×-]+(\.[LETTERS+/()|~,×-]+)*"
_NAME = f"{_WORD}( {_WORD}){{0,9}}"
NAME = _NAME.replace("LETTERS", r"\w")  # up to ten words, without the marks that end a sentence or begin a quotation
NAME_IN_SQL = _NAME.replace("LETTERS", r"\pL\pN_")


class TableColumn(NamedTuple):
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

    @property
    def is_name(self) -> bool:
        """Tell whether sentences repeat what stands here: it is short and of plain characters, as no prose is."""
        is_parameter = self.description == "parameter"  # of a calibration: `node7: a`, which this program writes
        return self.kind == "text" and not self.choices and self.name in _NAMES and not is_parameter


class DataTable:
    """One table: where its CSV files are (a glob below the data root), its columns and those that are its key."""

    def __init__(self, name: str, files: str, description: str) -> None:
        self.name, self.files, self.description = name, files, description

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns in the order in which shipped files hold them."""
        choices: dict[str, list[str]] = {}
        for row in _rows_by_table("choices").get(self.name, ()):
            choices.setdefault(row["column"], []).append(row["choice"])
        columns = []
        for row in _rows_by_table("columns")[self.name]:
            is_option = row["refers_to"] == _OPTIONS
            column = TableColumn(
                name=row["column"],
                kind=cast(Kind, row["kind"]),
                description=row["description"],
                unit=row["unit"],
                required=row["required"] == "required",
                low=float(row["at_least"]) if row["at_least"] else None,
                high=float(row["at_most"]) if row["at_most"] else None,
                positive=row["above"] == "0",
                choices=(*(OPTIONS if is_option else ()), *choices.get(row["column"], ())),
                refers_to="" if is_option else row["refers_to"],  # the options are no table of facts
            )
            columns.append(column)
        return tuple(columns)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return the columns that tell one row from another."""
        # a key has an order of its own: errors name a row by its first column
        places = {int(row["key"]): row["column"] for row in _rows_by_table("columns")[self.name] if row["key"]}
        return tuple(places[position] for position in sorted(places))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns in their order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> TableColumn:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)


class _Tables(Mapping[str, DataTable]):
    """Every table by its name, in the dictionary's order; read on first use, which many commands never come to."""

    @cached_property
    def _tables(self) -> dict[str, DataTable]:
        return {name: DataTable(name, files, text) for name, files, text in beside(__file__, "tables")[1:]}

    def __getitem__(self, name: str) -> DataTable:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@cache
def _rows_by_table(file: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of a file of the dictionary by the table that they describe."""
    header, *lines = beside(__file__, file)
    rows: dict[str, list[dict[str, str]]] = {}
    for cells in lines:
        rows.setdefault(cells[0], []).append(dict(zip(header, cells, strict=True)))
    return rows


TABLES: Mapping[str, DataTable] = _Tables()
HISTORY = DataTable(
    "price_history",
    "pricing/history/*.csv",
    "Dated prices as change points: from that day on a source listed the price, until its next row. Too many rows for"
    " the start of a command: read when a day in the past or a history is asked for.",
)


def table_of(name: str) -> DataTable:
    """Return the table called `name`, the history among them.

    >>> table_of("offers").files, table_of("price_history").files
    ('pricing/offers/*.csv', 'pricing/history/*.csv')
    """
    return HISTORY if name == HISTORY.name else TABLES[name]
