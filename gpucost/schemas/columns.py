"""What a table definition is made of: columns by kind, and the groups of columns that several tables share."""

from typing import Literal, NamedTuple

Kind = Literal["text", "integer", "number", "date", "flag"]

DUCKDB_TYPES: dict[str, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "flag": "BOOLEAN",
}


class Column(NamedTuple):
    """One column: its kind, what it means, and what a cell may hold. The unit is the name's suffix."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    low: float | None = None  # smallest value allowed
    high: float | None = None  # largest value allowed
    positive: bool = False  # zero is refused: a missing number is an empty cell
    choices: tuple[str, ...] = ()
    refers_to: str = ""  # table whose key this column holds


class Table(NamedTuple):
    """One table: where its CSV files are (a glob below the data root), its columns and its key."""

    name: str
    files: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)


def text(
    name: str, description: str, *, required: bool = False, choices: tuple[str, ...] = (), refers_to: str = ""
) -> Column:
    """Define a text column."""
    return Column(name, "text", description, required, choices=choices, refers_to=refers_to)


def number(
    name: str,
    description: str,
    *,
    required: bool = False,
    low: float | None = None,
    high: float | None = None,
    positive: bool = False,
) -> Column:
    """Define a floating-point column."""
    return Column(name, "number", description, required, low, high, positive)


def integer(
    name: str,
    description: str,
    *,
    required: bool = False,
    low: float | None = 0,
    high: float | None = None,
    positive: bool = False,
) -> Column:
    """Define an integer column; zero or more unless told otherwise."""
    return Column(name, "integer", description, required, low, high, positive)


def date(name: str, description: str, *, required: bool = False) -> Column:
    """Define a date column (YYYY-MM-DD)."""
    return Column(name, "date", description, required)


def flag(name: str, description: str, *, required: bool = False) -> Column:
    """Define a true/false column (1 or 0)."""
    return Column(name, "flag", description, required)


CONFIDENCES = ("high", "medium", "low")

STATUSES = ("given", "sourced", "assumed", "derived", "user")

OPTIONS = (
    "on_demand",
    "spot",
    "interruptible",
    "reserved",
    "savings_plan",
    "commitment",
    "capacity_block",
    "flex_start",
    "calendar",
    "community",
    "secure",
    "dedicated",
)

PROVENANCE = (
    text("source_id", "key into sources.csv of the same folder", required=True, refers_to="sources"),
    text("confidence", "how well the row was checked", required=True, choices=CONFIDENCES),
    text("notes", "what a reader must know"),
)

SOURCE_COLUMNS = (
    text("source_id", "key", required=True),
    text("publisher", "who published it", required=True),
    text("title", "what it is", required=True),
    text("locator", "where to find it: an address, a paper, a repository with path and commit", required=True),
    date("published_on", "date of publication, where known"),
    date("accessed_on", "date on which it was read"),
    text("note", "what a reader must know"),
)

RANGE = (
    text("item", "stable name", required=True),
    number("low", "low end of the range"),
    number("typical", "typical value", required=True),
    number("high", "high end of the range"),
    text("unit", "unit of the three values", required=True),
)

LISTING = (
    text("provider", "who sells it", required=True),
    text("listed_as", "name under which the source lists it", required=True),
    text("gpu", "accelerator id, or several separated by | where the source is ambiguous", required=True),
    integer("gpus", "accelerators in one unit", required=True, positive=True),
    text("region", "region as the source names it", required=True),
    text("option", "purchase option as the source names it", required=True),
    number("usd_per_hour", "price of one unit for an hour", required=True, positive=True),
    number("usd_per_gpu_hour", "price ÷ gpus", required=True, positive=True),
    date("valid_from", "the price holds from this day, where stated"),
)
