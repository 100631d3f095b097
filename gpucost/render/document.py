"""The medium-neutral document: sections of paragraphs, facts, tables and charts, with notes, sources and warnings.

A builder turns an answer's payload into a Document once; every writer (text, Markdown, HTML) only walks it.
Values stay numbers here. Rounding happens in the writers, by the unit alone (render/numbers.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpucost.render.numbers import heading_of
from gpucost.units import unit_of

ChartKind = Literal["bar", "stacked", "line", "scatter", "tornado", "roofline", "heat"]


@dataclass(frozen=True, slots=True)
class Column:
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
        return self.unit or unit_of(self.key)

    def unit_in(self, row: Mapping[str, Any]) -> str:
        """Return the unit of this column's cell in one row."""
        return str(row.get(self.unit_key) or "") if self.unit_key else self.measure


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. `lead` is the answer in one sentence; `code` keeps its line breaks."""

    text: str
    style: Literal["plain", "lead", "code", "note"] = "plain"
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """One labelled figure of a list of key figures, with its range and its sources."""

    label: str
    value: Any
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source_ids: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Key figures, shown as a list of label and value."""

    items: tuple[Fact, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of mappings and the columns that are shown. A row may carry `source_ids`; None cells are missing."""

    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    title: str = ""
    note: str = ""
    total: Mapping[str, Any] | None = None
    interactive: bool = False  # HTML adds sorting and a filter


@dataclass(frozen=True, slots=True)
class Axis:
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
        return self.unit or unit_of(self.key)


@dataclass(frozen=True, slots=True)
class Slider:
    """A control of an interactive chart. Media without controls show the chart at `value`."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as data: what is drawn, not how. `description` says in words what the picture shows.

    bar: x names the bars, y their length, `low`/`high` keys draw a range.  stacked: `series` splits each bar.
    line, scatter: x and y are numbers or dates, one line or colour per `series`; `label` names points.
    tornado: x names the assumption; `low` and `high` are keys of the result at its low and high value;
    `base` is the result at the centre.  roofline: line data under `series` plus points that carry `label`.
    heat: x and y name the cells, `value` colours them.
    With `sliders`, `formulas` gives the y of each series as an expression in datum.<x> and the sliders' names;
    the data already hold the values at the sliders' start.
    """

    kind: ChartKind
    title: str
    description: str
    data: Sequence[Mapping[str, Any]]
    x: Axis
    y: Axis
    series: str = ""
    label: str = ""
    low: str = ""
    high: str = ""
    value: str = ""
    base: float | None = None
    marks: tuple[tuple[str, float], ...] = ()  # labelled vertical lines: (label, x)
    sliders: tuple[Slider, ...] = ()
    formulas: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


Block = Paragraph | Facts | Table | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part. `detail` sections are left out on the terminal unless all is asked for."""

    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A whole answer for a reader, whatever the medium."""

    title: str
    sections: tuple[Section, ...]
    lead: str = ""
    kind: str = ""
    as_of: str = ""
    catalog_version: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def columns(*specs: str | Column) -> tuple[Column, ...]:
    """Make columns from keys; "key:2" gives a priority, "key=Heading" a heading.

    >>> columns("provider", "mfu_fraction:2", "days=duration")[1].priority
    2
    """
    made = []
    for spec in specs:
        if isinstance(spec, Column):
            made.append(spec)
            continue
        name, _, priority = spec.partition(":")
        key, _, heading = name.partition("=")
        made.append(Column(key, heading, priority=int(priority or 0)))
    return tuple(made)


def used_sources(payload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the payload's sources as a mapping from id to row, whether stored as a mapping or a list."""
    sources = payload.get("sources") or {}
    if isinstance(sources, Mapping):
        return {str(key): row for key, row in sources.items()}
    return {str(row["source_id"]): row for row in sources}
