"""The medium-neutral document: sections, facts, tables and charts, and how values are written in every medium."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from gpucost.answers import PRICED
from gpucost.answers.common import AnswerFrame, CitedSource, old_prices
from gpucost.errors import visible as visible
from gpucost.gate import beside
from gpucost.options import OPTIONS
from gpucost.render.json import SIGNIFICANT_DIGITS
from gpucost.units import SUFFIX_UNITS, format_count, unit_of
from gpucost.units import about as about

# --- Values: one rule per unit, shared by every medium, so that figures never differ.

MISSING = "–"
_ACRONYMS, _SHORT_UNITS = (
    {key: shown for kind, key, shown in beside(__file__, "words")[1:] if kind == of} for of in ("word", "unit")
)  # of the words of a key, of a unit
_HEADINGS = {key: heading for list_, key, heading, *_ in beside(__file__, "columns") if list_ == "any"}


_ENDS = ("_low", "_high", "_input", "_output")  # which end of a range or side of a price a figure is


@lru_cache(maxsize=4096)
def measure_of(key: str) -> str:
    """Return the unit of a key, by its suffix before the end of a range or the side of a price.

    >>> measure_of("tpot_ms_high"), measure_of("usd_per_mtok_input"), measure_of("gpus")
    ('milliseconds', 'USD per million tokens', '')
    """
    unit = unit_of(key)
    # a unit that the whole key names goes before that of its stem
    for end in _ENDS:
        unit = unit or (unit_of(key.removesuffix(end)) if key.endswith(end) else "")
    return unit


def heading_of(key: str) -> str:
    """Turn a key into a heading without its unit.

    >>> heading_of("npv_usd"), heading_of("gpu_hours"), heading_of("cost_usd")
    ('NPV', 'GPU hours', 'cost')
    """
    if key in _HEADINGS:
        return _HEADINGS[key]
    if key in SUFFIX_UNITS and key.startswith("usd"):
        return "cost"
    stem = key
    # The longest suffix first, so that `usd_per_gpu_hour` goes whole. Suffixes that are words of a name as well (GPU
    # hours, prompt tokens) stay: without them the heading would say nothing.
    for suffix in sorted(SUFFIX_UNITS, key=len, reverse=True):
        if key.endswith("_" + suffix) and suffix not in ("hours", "days", "months", "years", "tokens", "on", "from"):
            stem = key[: -len(suffix) - 1]
            break
    return " ".join(_ACRONYMS.get(word, word) for word in stem.split("_") if word)


def short_unit(unit: str) -> str:
    """Return the unit as a heading shows it."""
    return _SHORT_UNITS.get(unit, unit)


def day_text(day: str) -> str:
    """Write a day as people do.

    >>> day_text("2026-10-08")
    '8 Oct 2026'
    """
    return f"{int(day[8:10])} {_MONTHS[int(day[5:7]) - 1]} {day[:4]}"


def day_in_year(day: str, year: str) -> str:
    """Write a day, without its year where that is plain.

    >>> day_in_year("2026-10-08", "2026-11-28"), day_in_year("2025-10-08", "2026")
    ('8 Oct', '8 Oct 2025')
    """
    return day_text(day).removesuffix(f" {year[:4]}")


def format_value(value: Any, unit: str = "") -> str:
    """Write one value for a person, by its unit; a missing value is a dash, never a zero.

    >>> format_value(38214.4, "USD"), format_value(0.4123, "fraction of one"), format_value(None, "USD")
    ('38,214', '41.2%', '–')
    >>> format_value(-0.0001, "fraction of one"), format_value(0.1081, "USD per million tokens")
    ('0.0%', '0.108')
    >>> format_value(1.6449999999999998, "USD per GPU-hour")  # as a saved answer holds it: 1.645
    '1.65'
    """
    if type(value) is str:
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={format_value(item)}" for key, item in value.items())
    if not isinstance(value, (int, float)):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, float):  # as a saved answer holds it, so that both are rounded alike
        value = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    # A figure is left; money and shares have digits of their own, all else about three that count.
    if unit == "fraction of one":
        return f"{round(100 * value, 1) + 0.0:.1f}%"  # what rounds to nothing has no sign
    if unit == "USD":
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    if unit.startswith("USD per"):
        cents = 1 if unit == "USD per million tokens" else 0.1  # tokens cost cents: three digits tell them apart
        return f"{value:,.2f}" if abs(value) >= cents or value == 0 else f"{value:.3g}"
    if unit in ("tokens", "FLOP") and abs(value) >= 10_000:
        return format_count(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if abs(value) >= 1000 or (value == int(value) and abs(value) >= 100):
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    if abs(value) >= 0.01 or value == 0:
        return f"{value:.3g}"
    return f"{value:.2e}"


def format_named(key: str, value: Any) -> str:
    """Write the value of a named quantity with its unit.

    >>> format_named("cost_usd", 1234.5), format_named("mfu_fraction", 0.4), format_named("days", 12.34)
    ('$1,234', '40.0%', '12.3 days')
    """
    return amount(value, unit_of(key))


def amount(value: Any, unit: str) -> str:
    """Write a value with its unit; a short time in milliseconds or microseconds.

    >>> amount(0.177, "seconds"), amount(0.00913, "seconds"), amount(2.4e-6, "seconds")
    ('0.177 s', '9.13 ms', '2.4 µs')
    """
    text, short = figure(value, unit), short_unit(unit)
    if unit == "seconds" and text.endswith("s"):  # a short time has named its own unit already
        return text
    if text == MISSING or not short or short == "%":  # a share has its sign
        return text
    if short.startswith("$"):  # "$/GPU-h": the dollar goes before the figure, the rest behind it
        sign = "-" if text.startswith("-") else ""
        return f"{sign}${text.lstrip('-')}{short[1:]}"
    return f"{text} {short}"


def figure(value: Any, unit: str) -> str:
    """Write a value whose unit is said elsewhere; a time too short to be read in seconds says its own.

    >>> figure(0.177, "seconds"), figure(0.00913, "seconds"), figure(38214.4, "USD")
    ('0.177', '9.13 ms', '38,214')
    """
    if unit == "seconds" and isinstance(value, float) and 0 < value < 0.1:
        return f"{format_value(value * 1e3)} ms" if value >= 1e-4 else f"{format_value(value * 1e6)} µs"
    return format_value(value, unit)


# --- The document.
#
# A builder turns an answer into a Document once; every writer (text, Markdown, HTML) only walks it. Values stay
# numbers here. Rounding happens in the writers, by the unit alone.

Row = Mapping[str, Any]
Item = TypeVar("Item")
_ChartKind = Literal["bridge", "bar", "stacked", "area", "line", "scatter", "offers", "tornado", "roofline", "heat"]


class Column(Struct, frozen=True):
    """One column of a table. Heading and unit follow from the key unless they are given."""

    key: str
    heading: str = ""
    unit: str = ""
    priority: int = 0  # a narrow terminal hides the highest first; 0 is never hidden
    unit_key: str = ""  # key of the cell that names this cell's unit, where units differ by row
    verbatim: bool = False  # codes stay codes: a column that was chosen by its key, or an answer to SQL
    right: bool = False  # texts that hold a figure stand under each other as figures do

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


class Paragraph(Struct, frozen=True):
    """Running text. `lead` is the answer in one sentence; `code` keeps its line breaks."""

    text: str
    style: Literal["plain", "lead", "code", "note"] = "plain"
    source_ids: tuple[str, ...] = ()


class Fact(Struct, frozen=True):
    """One labelled figure of a list of key figures, with its range and its sources."""

    label: str
    value: Any
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source_ids: tuple[str, ...] = ()
    note: str = ""
    shorter: str | None = None  # the same in fewer words, or nothing, for a screen that has no room


class KeyFigures(Struct, frozen=True):
    """Key figures, shown as a list of label and value."""

    items: tuple[Fact, ...]
    title: str = ""
    style: Literal["plain", "answers", "questions"] = "plain"  # answers: each under its question, the first in weight


class Table(Struct, frozen=True):
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


class Axis(Struct, frozen=True):
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


class Slider(Struct, frozen=True):
    """A control of an interactive chart. Media without controls show the chart at `value`."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float

    @property
    def start(self) -> float:
        """The step of the control that lies nearest to the value."""
        decimals = max(0, -math.floor(math.log10(self.step)))  # of the step: 0.05 gives 2, without float noise
        return float(f"{self.low + self.step * round((self.value - self.low) / self.step):.{decimals}f}")


class Chart(Struct, frozen=True):
    """A chart as data: what is drawn, not how. `description` says in words what the picture shows.

    bar: x names the bars, y their length, `low`/`high` keys draw a range.  stacked: `series` splits each bar.
    offers: every offer as a point, `series` says whether one can order it, `low` marks those on the front, which is
    drawn as a line, and `label` names them.
    line, scatter: x and y are numbers or dates, one line or colour per `series`; `label` names points.
    area: areas of each `series` stacked over x; the series that `label` names is a line over them.
    tornado: x names the assumption; `low` and `high` are keys of the result at its low and high value;
    `base` is the result at the centre.  roofline: line data under `series` plus points that carry `label`.
    heat: x and y name the cells, `value` colours them.
    bridge: each bar runs from `low` to `high`, `series` says whether it is an end, more or less (`bridge`).
    With `sliders`, `formulas` gives the y of each series as an expression in datum.<x> and the sliders' names;
    the data already hold the values at the sliders' start.
    """

    kind: _ChartKind
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


class Section(Struct, frozen=True):
    """A titled part. `detail` sections are left out on the terminal unless all is asked for."""

    title: str
    blocks: Sequence[Block]
    detail: bool = False
    board: bool = False  # the page that a board reads: printed and shown alone
    paper: bool = False  # holds the answer: where some parts do, paper shows them alone unless all is asked for


class Document(Struct, frozen=True):
    """A whole answer for a reader, whatever the medium."""

    title: str
    sections: tuple[Section, ...]
    lead: str = ""
    headline: str = ""  # the beginning of the lead that is the answer itself
    screen: tuple[Block, ...] = ()  # what one screen of a terminal shows in place of the sections
    name: str = ""  # of the answer, over a screen that says by itself what the lead says
    kind: str = ""
    issued: str = ""  # status, by whom, when, and the hash of the answer
    as_of: str = ""
    catalog_version: str = ""
    request: Row = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # what a full view says beside the warnings, one screen does not
    sources: Mapping[str, CitedSource] = field(default_factory=dict)

    @property
    def notice(self) -> str:
        """What a reader must know before the answer: that its prices are old."""
        return old_prices(self.as_of, self.catalog_version) if self.is_priced else ""

    @property
    def is_priced(self) -> bool:
        """Whether its figures are prices, or rest on them."""
        return self.kind in PRICED or self.kind == "prices"

    @property
    def day(self) -> str:
        """The day of the prices as people write it."""
        return day_text(self.as_of) if self.as_of else ""

    @property
    def stamp(self) -> list[str]:
        """Who issued it, for which day, from which catalog."""
        day = f"as of {self.as_of}" if self.as_of else ""
        return [part for part in (self.issued, day, self.catalog_version and f"catalog {self.catalog_version}") if part]


def columns(*items: str | Column) -> tuple[Column, ...]:
    """Return columns, of which those that a key says all about may be given by their key.

    >>> [column.title for column in columns("provider", Column("mfu_fraction", "speed"))]
    ['provider', 'speed']
    """
    return tuple(item if isinstance(item, Column) else Column(item) for item in items)


def columns_of(name: str) -> tuple[Column, ...]:
    """Return the columns of a list as columns.csv has them: on a narrow terminal those with a larger `leaves` go first.

    >>> columns_of("bill")[0].title
    'line'
    """
    lines = [cells for list_, *cells in beside(__file__, "columns") if list_ == name]
    return tuple(Column(key, head, unit, int(leaves or 0), by) for key, head, unit, by, leaves in lines)


def table_of(
    title: str, rows: Sequence[Row], *items: str | Column, note: str = "", interactive: bool = False
) -> list[Table]:
    """Return a table of rows with the columns given, else with all that hold plain values; nothing without rows."""
    # of all rows, for a key may be missing from the first
    headings = items or tuple(
        dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], (dict, list)))
    )
    return [Table(columns(*headings), rows, title, note, interactive=interactive)] if rows else []


def present_figures(facts: Iterable[Fact], title: str = "") -> list[KeyFigures]:
    """Return the key figures that are known; nothing where none is."""
    present = tuple(fact for fact in facts if fact.value is not None)
    return [KeyFigures(present, title)] if present else []


def facts_of(title: str, figures: Row, unit: str = "") -> KeyFigures:
    """Return the plain values of a mapping as key figures, each under the heading of its key."""
    plain = {key: value for key, value in figures.items() if value is None or isinstance(value, (int, float, str))}
    items = (
        Fact(heading_of(key), "none" if value is None else in_words("name", value), unit or measure_of(key))
        for key, value in plain.items()
    )
    return KeyFigures(tuple(items), title)


def bridge(title: str, ends: tuple[Row, Row], effects: Sequence[Row], name: str, effect: str, unit: str) -> Chart:
    """Return the chart that leads from one figure to another: effects hang between the two ends that they explain.

    Rows have their words under `name` and their amount under `effect`; where all levels are far above zero, the bars of
    the ends begin near the lowest, and the note says where.
    """
    levels = [ends[0][effect]]  # after the first end and after each effect
    for row in effects:
        levels.append(levels[-1] + row[effect])
    reach = [*levels, ends[1][effect]]
    # Effects are often small beside the ends. A quarter of what moves stays below the lowest level, which leaves the
    # effects four fifths of the picture; never below zero.
    room = (max(reach) - min(reach)) or abs(max(reach)) or 1.0
    base = max(min(reach) - room / 4, 0.0) if min(reach) > 0 else 0.0
    effect_bars: list[Row] = [
        {
            name: row[name],
            effect: row[effect],
            "low": min(pair),
            "high": max(pair),
            "direction": "more" if row[effect] > 0 else "less",
        }
        for row, pair in zip(effects, pairwise(levels), strict=True)
    ]
    end_bars: list[Row] = [
        {
            name: end[name],
            effect: end[effect],
            "low": min(base, end[effect]),
            "high": max(base, end[effect]),
            "direction": "end",
        }
        for end in ends
    ]
    note = f"The bars at both ends start at {amount(base, unit)}, not at 0." if base else ""
    description = f"Each bar starts where the one before it ends, from {ends[0][name]} to {ends[1][name]}."
    return Chart(
        "bridge",
        title,
        description,
        [end_bars[0], *effect_bars, end_bars[1]],
        Axis(name),
        Axis(effect, "amount", unit),
        low="low",
        high="high",
        series="direction",
        note=note,
    )


def document_of(
    answer: AnswerFrame,
    title: str,
    *sections: Section,
    lead: str | None = None,
    headline: str = "",
    screen: Iterable[Block] = (),
    name: str = "",
) -> Document:
    """Put the parts that every document has around its sections; empty sections are left out."""
    filled = [replace(section, blocks=tuple(section.blocks)) for section in sections]
    stamp = ""
    if issued := answer.get("issued"):
        by = f" by {issued['by']}" if issued["by"] else ""
        stamp = f"{issued['status'].capitalize()}{by} on {issued['on']}, SHA-256 {issued['sha256']}"
    return Document(
        title=title,
        lead=answer["lead"] if lead is None else lead,
        headline=headline,
        screen=tuple(screen),
        name=name,
        kind=str(answer.get("kind", "")),
        issued=stamp,
        as_of=answer["as_of"],
        catalog_version=answer["catalog_version"],
        request=answer["request"],
        warnings=tuple(answer["warnings"]),
        remarks=tuple(cast(Row, answer).get("remarks", ())),
        sources=answer["sources"],
        sections=tuple(section for section in filled if section.blocks),
    )


_NO_TEXT = frozenset((float, int, type(None), bool, date, Decimal))


def printable(value: Item) -> Item:
    """Return a document, or a part of one, in which no text can steer a terminal or reorder a line."""
    if type(value) in _NO_TEXT:
        return value
    # A page may hold a hundred thousand cells, nearly all of them harmless: what is clean is returned, not rebuilt.
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = visible(value)
    elif type(cleaned) is dict and _are_printable(tuple(cleaned)) and _all_printable(cleaned.values()):
        return value  # most rows of a large table
    elif isinstance(value, Mapping):
        cleaned = {printable(key): printable(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        cleaned = type(value)(printable(item) for item in value)
    elif isinstance(value, Struct):
        cleaned = type(value)(*map(printable, astuple(value)))
    return cast(Item, cleaned)


def _all_printable(values: Iterable[Any]) -> bool:
    """Tell whether values are figures, days and plain texts that are shown as they are."""
    return all(type(value) in _NO_TEXT or (type(value) is str and value.isprintable()) for value in values)


_are_printable = lru_cache(maxsize=64)(_all_printable)  # of the keys that every row has


# --- Wording of figures, headings and cells, the same in every medium.

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
# columns whose cells are codes of ours, such as on_demand, and no ids that one may have to type
_CODED = frozenset(("option", "kind", "payment", "billing", "price_kind", "side", "constraint", "metric"))


def fact_text(fact: Fact) -> str:
    """Write a key figure with its range and note."""
    text = amount(fact.value, fact.unit)
    if fact.low is not None and fact.high is not None:
        text += f" ({amount(fact.low, fact.unit)} to {amount(fact.high, fact.unit)})"
    return f"{text}  {fact.note}" if fact.note else text


def cell_text(row: Row, column: Column) -> str:
    """Write one cell; where units differ by row the cell names its own, as a time does that is short for its column."""
    return cell_writer(column)(row)


def cell_writer(column: Column) -> Callable[[Row], str]:
    """Return what writes the cells of a column."""
    key, unit = column.key, column.measure
    if key in _CODED and not column.verbatim:
        return lambda row: figure(in_words(key, row.get(key)), unit)
    if column.unit_key:
        return lambda row: amount(row.get(key), column.unit_in(row))
    return lambda row: figure(row.get(key), unit)


def in_words(key: str, value: Any) -> Any:
    """Return a value as a person reads it: the codes of some columns become words, anything else stays.

    A name is a code only where it does not also stand in a formula, so tables of names ask for this themselves.

    >>> in_words("option", "commitment"), in_words("name", "own_in_cash"), in_words("provider", "aws_bedrock")
    ('committed use', 'own in cash', 'aws_bedrock')
    """
    return _code_in_words(key, value) if isinstance(value, str) and (key in _CODED or key == "name") else value


@lru_cache(maxsize=4096)
def _code_in_words(key: str, code: str) -> str:
    if key == "option" and code in OPTIONS:
        return OPTIONS[code].label
    return heading_of(code) if _CODE.fullmatch(code) else code


def head_text(column: Column) -> str:
    """Write a column's heading with its unit."""
    unit = short_unit(column.measure) if not column.unit_key else ""
    return with_heading(column.title, unit)


def with_heading(title: str, unit: str) -> str:
    """Put a short unit behind a heading that does not name it yet."""
    return title if unit in ("", "%") or unit in title.split() else f"{title} ({unit})"


def is_numeric(column: Column, rows: Sequence[Row]) -> bool:
    """Tell whether the column holds numbers and is aligned to the right."""
    values = [row.get(column.key) for row in rows]
    return column.right or (  # bool is an int to Python, but is written as yes and no
        all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values if value is not None)
        and any(value is not None for value in values)
    )
