"""The medium-neutral document: sections of paragraphs, facts, tables and charts, with notes, sources and warnings.

A builder turns an answer into a Document once; every writer (text, Markdown, HTML) only walks it.
Values stay numbers here. Rounding happens in the writers, by the unit alone (render/numbers.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar, cast

from gpucost.answers.common import Answer, Issued, Source
from gpucost.frozen import Frozen
from gpucost.gate import beside
from gpucost.render.numbers import amount, heading_of, measure_of, visible

Row = Mapping[str, Any]
Item = TypeVar("Item")
ChartKind = Literal["bridge", "bar", "stacked", "line", "scatter", "tornado", "roofline", "heat"]


class Column(Frozen):
    """One column of a table. Heading and unit follow from the key unless they are given."""

    key: str
    heading: str = ""
    unit: str = ""
    priority: int = 0  # a narrow terminal drops the highest first; 0 is never dropped
    unit_key: str = ""  # key of the cell that names this cell's unit, where units differ by row

    @property
    def title(self) -> str:
        """The heading without the unit."""
        return self.heading or heading_of(self.key)

    @property
    def measure(self) -> str:
        """The unit, given or stated by the key's suffix."""
        return self.unit or measure_of(self.key)

    def unit_in(self, row: Row) -> str:
        """Return the unit of this column's cell in one row."""
        return str(row.get(self.unit_key) or "") if self.unit_key else self.measure


class Paragraph(Frozen):
    """Running text. `lead` is the answer in one sentence; `code` keeps its line breaks."""

    text: str
    style: Literal["plain", "lead", "code", "note"] = "plain"
    source_ids: tuple[str, ...] = ()


class Fact(Frozen):
    """One labelled figure of a list of key figures, with its range and its sources."""

    label: str
    value: Any
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source_ids: tuple[str, ...] = ()
    note: str = ""


class KeyFigures(Frozen):
    """Key figures, shown as a list of label and value."""

    items: tuple[Fact, ...]
    title: str = ""


class Table(Frozen):
    """Rows of mappings and the columns that are shown. A row may carry `source_ids`; None cells are missing."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    total: Row | None = None
    interactive: bool = False  # HTML adds sorting and a filter
    most: int = 0  # rows for which a screen has room; 0 is all
    paper: str = ""  # what a printed page says in place of the rows

    @property
    def filled(self) -> tuple[Column, ...]:
        """The columns without secondary ones that are empty in every row."""
        return tuple(
            column
            for column in self.columns
            if not column.priority or any(row.get(column.key) not in (None, "", []) for row in self.rows)
        )


class Axis(Frozen):
    """One axis: the key in the data, its title and unit, and its scale."""

    key: str
    title: str = ""
    unit: str = ""
    log: bool = False

    @property
    def label(self) -> str:
        """The axis title."""
        return self.title or heading_of(self.key)

    @property
    def measure(self) -> str:
        """The unit, given or stated by the key's suffix."""
        return self.unit or measure_of(self.key)


class Slider(Frozen):
    """A control of an interactive chart. Media without controls show the chart at `value`."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float


class Chart(Frozen):
    """A chart as data: what is drawn, not how. `description` says in words what the picture shows.

    bar: x names the bars, y their length, `low`/`high` keys draw a range.  stacked: `series` splits each bar.
    line, scatter: x and y are numbers or dates, one line or colour per `series`; `label` names points.
    tornado: x names the assumption; `low` and `high` are keys of the result at its low and high value;
    `base` is the result at the centre.  roofline: line data under `series` plus points that carry `label`.
    heat: x and y name the cells, `value` colours them.
    bridge: each bar runs from `low` to `high`, `series` says whether it is an end, more or less (`bridge`).
    With `sliders`, `formulas` gives the y of each series as an expression in datum.<x> and the sliders' names;
    the data already hold the values at the sliders' start.
    """

    kind: ChartKind
    title: str
    description: str
    data: Sequence[Row]
    x: Axis
    y: Axis
    series: str = ""
    label: str = ""
    low: str = ""
    high: str = ""
    value: str = ""
    base: float | None = None
    marks: tuple[tuple[str, float], ...] = ()  # labelled vertical lines: (label, x), of days in milliseconds since 1970
    steps: bool = False  # a line holds its value until the next point
    sliders: tuple[Slider, ...] = ()
    formulas: Mapping[str, str] = field(default_factory=dict)
    spoken: str = ""  # what the chart says at the sliders' values: an expression of Vega in their names
    lead: str = ""  # what the whole page says first once a slider was moved, likewise
    note: str = ""


Block = Paragraph | KeyFigures | Table | Chart


class Section(Frozen):
    """A titled part. `detail` sections are left out on the terminal unless all is asked for."""

    title: str
    blocks: Sequence[Block]
    detail: bool = False


class Document(Frozen):
    """A whole answer for a reader, whatever the medium."""

    title: str
    sections: tuple[Section, ...]
    lead: str = ""
    headline: str = ""  # the beginning of the lead that is the answer itself
    screen: tuple[Block, ...] = ()  # what one screen of a terminal shows in place of the sections
    kind: str = ""
    issued: str = ""  # status, by whom, when, and the hash of the answer
    as_of: str = ""
    catalog_version: str = ""
    request: Row = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def stamp(self) -> list[str]:
        """Who issued it, for which day, from which catalog."""
        day = f"as of {self.as_of}" if self.as_of else ""
        return [part for part in (self.issued, day, self.catalog_version and f"catalog {self.catalog_version}") if part]


def columns(*specs: str | Column) -> tuple[Column, ...]:
    """Make columns from `key=Heading@unit_key:priority`, of which all but the key may be left out.

    The heading and the unit follow from the key; `@unit_key` names the key of the cell that names the unit, where
    units differ by row; a priority lets a narrow terminal drop the column, the highest first.

    >>> columns("provider", "mfu_fraction:2", "value=true value@unit:1")[2]
    Column(key='value', heading='true value', unit='', priority=1, unit_key='unit')
    """
    return tuple(spec if isinstance(spec, Column) else _column(spec) for spec in specs)


def _column(spec: str) -> Column:
    rest, colon, priority = spec.rpartition(":")
    if not (colon and priority.isdigit()):
        rest, priority = spec, "0"
    rest, _, unit_key = rest.partition("@")
    key, _, heading = rest.partition("=")
    return Column(key, heading, priority=int(priority), unit_key=unit_key)


def columns_of(name: str) -> tuple[Column, ...]:
    """Return the columns of a list as columns.csv has them: on a narrow terminal those with a larger `leaves` go first.

    >>> columns_of("bill")[0].title
    'line'
    """
    lines = [cells for list_, *cells in beside(__file__, "columns") if list_ == name]
    return tuple(Column(key, head, unit, int(leaves or 0), by) for key, head, unit, by, leaves in lines)


def table_of(
    title: str, rows: Sequence[Row], *specs: str | Column, note: str = "", interactive: bool = False
) -> list[Table]:
    """Return a table of rows with the columns given, else with all that hold plain values; nothing without rows."""
    shown = specs or tuple(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], (dict, list))))
    return [Table(columns(*shown), rows, title, note, interactive=interactive)] if rows else []


def known_of(facts: Iterable[Fact], title: str = "") -> list[KeyFigures]:
    """Return the key figures that are known; nothing where none is."""
    known = tuple(fact for fact in facts if fact.value is not None)
    return [KeyFigures(known, title)] if known else []


def facts_of(title: str, figures: Row, unit: str = "") -> KeyFigures:
    """Return the plain values of a mapping as key figures, each under the heading of its key."""
    plain = {key: value for key, value in figures.items() if value is None or isinstance(value, (int, float, str))}
    items = (
        Fact(heading_of(key), "none" if value is None else value, unit or measure_of(key))
        for key, value in plain.items()
    )
    return KeyFigures(tuple(items), title)


def bridge(title: str, ends: tuple[Row, Row], effects: Sequence[Row], name: str, effect: str, unit: str) -> Chart:
    """Return the chart that leads from one figure to another: effects hang between the two ends that they explain.

    Rows have their words under `name` and their amount under `effect`; where all levels are far above zero, the bars of
    the ends begin near the lowest, and the note says where.
    """
    levels = [ends[0][effect]]
    for row in effects:
        levels.append(levels[-1] + row[effect])
    reach = [*levels, ends[1][effect]]
    room = (max(reach) - min(reach)) or abs(max(reach)) or 1.0
    base = max(min(reach) - room / 4, 0.0) if min(reach) > 0 else 0.0
    hung: list[Row] = [
        {
            name: row[name],
            effect: row[effect],
            "low": min(pair),
            "high": max(pair),
            "direction": "more" if row[effect] > 0 else "less",
        }
        for row, pair in zip(effects, pairwise(levels), strict=True)
    ]
    stand: list[Row] = [
        {
            name: end[name],
            effect: end[effect],
            "low": min(base, end[effect]),
            "high": max(base, end[effect]),
            "direction": "end",
        }
        for end in ends
    ]
    note = f"The bars of both ends begin at {amount(base, unit)}, not at 0." if base else ""
    words = f"Each bar begins where the one before it ends, from {ends[0][name]} to {ends[1][name]}."
    return Chart(
        "bridge",
        title,
        words,
        [stand[0], *hung, stand[1]],
        Axis(name),
        Axis(effect, "amount", unit),
        low="low",
        high="high",
        series="direction",
        note=note,
    )


def document_of(
    answer: Answer,
    title: str,
    *sections: Section,
    lead: str | None = None,
    headline: str = "",
    screen: Iterable[Block] = (),
) -> Document:
    """Put the parts that every document has around its sections; empty sections are left out."""
    filled = [replace(section, blocks=tuple(section.blocks)) for section in sections]
    return Document(
        title=title,
        lead=answer["lead"] if lead is None else lead,
        headline=headline,
        screen=tuple(screen),
        kind=str(answer.get("kind", "")),
        issued=_issued(answer.get("issued")),
        as_of=answer["as_of"],
        catalog_version=answer["catalog_version"],
        request=answer["request"],
        warnings=tuple(answer["warnings"]),
        sources=answer["sources"],
        sections=tuple(section for section in filled if section.blocks),
    )


def _issued(issued: Issued | None) -> str:
    if issued is None:
        return ""
    by = f" by {issued['by']}" if issued["by"] else ""
    return f"{issued['status'].capitalize()}{by} on {issued['on']}, SHA-256 {issued['sha256']}"


_NO_TEXT = frozenset((float, int, type(None), bool, date, Decimal))


def printable(value: Item) -> Item:
    """Return a document, or a part of one, in which no text can steer a terminal or reorder a line."""
    if type(value) in _NO_TEXT:
        return value
    made: Any = value
    if isinstance(value, str):
        made = visible(value)
    elif type(made) is dict and _are_printable(tuple(made)) and _all_printable(made.values()):
        return value  # most rows of a large table
    elif isinstance(value, Mapping):
        made = {printable(key): printable(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        made = type(value)(printable(item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        made = replace(value, **{item.name: printable(getattr(value, item.name)) for item in fields(value)})
    return cast(Item, made)


def _all_printable(values: Iterable[Any]) -> bool:
    """Tell whether values are figures, days and plain texts that are shown as they are."""
    return all(type(value) in _NO_TEXT or (type(value) is str and value.isprintable()) for value in values)


_are_printable = lru_cache(maxsize=64)(_all_printable)  # of the keys that every row has
