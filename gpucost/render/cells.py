"""How figures, headings and cells are worded: the same in every medium."""

from collections.abc import Callable, Sequence

from gpucost.render.document import Column, Fact, Row
from gpucost.render.numbers import amount, figure, short_unit


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
    if column.unit_key:
        return lambda row: amount(row.get(key), column.unit_in(row))
    return lambda row: figure(row.get(key), unit)


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
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in values if value is not None
    ) and any(value is not None for value in values)
