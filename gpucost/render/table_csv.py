"""CSV: one row per entry of its main list, or the long form with one row per line of the bill."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpucost.answers import main_list
from gpucost.render.document import Row, visible
from gpucost.render.json import dumps

# what Excel and LibreOffice read as the beginning of a formula (OWASP, CSV injection); the last four are full width
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def safe_text(value: Any) -> Any:
    """Keep text that begins like a formula from becoming one in a spreadsheet; numbers pass.

    >>> safe_text("=1+1"), safe_text(-3.5)
    ("'=1+1", -3.5)
    """
    return "'" + value if isinstance(value, str) and value.startswith(_FORMULA_SIGNS) else value


def flatten(row: Row, prefix: str = "", *, complete: bool = False) -> dict[str, Any]:
    """Make one flat row: nested mappings become dotted keys, lists of plain values are joined, lists of records go.

    With `complete` nothing goes: lists of records, and mappings whose dotted keys are those of others, stand as JSON.

    >>> flatten({"a": {"b": 1, 2: 3}, "ids": ["x", "y"], "lines": [{"c": 1}]})
    {'a.b': 1, 'a.2': 3, 'ids': 'x;y'}
    >>> flatten({"a": {"b": 1}, "a.b": 2, "lines": [{"c": 1}]}, complete=True)
    {'a': '{"b": 1}', 'a.b': 2, 'lines': '[{"c": 1}]'}
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            inner = flatten(value, f"{name}.", complete=complete)
            # {"a": {"b": 1}, "a.b": 2} would give two columns of one name
            is_unambiguous = inner.keys().isdisjoint([*flat, *(f"{prefix}{sibling}" for sibling in row)])
            flat |= inner if is_unambiguous and (inner or not complete) else {name: dumps(value, indent=None)}
        elif isinstance(value, (list, tuple)):
            if not is_nested(value):
                flat[name] = ";".join(map(str, value))
            elif complete:
                flat[name] = dumps(value, indent=None)
        else:
            flat[name] = value
    return flat


def is_nested(value: Any) -> bool:
    """Tell whether a value is a mapping, or a list that holds mappings or lists."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, (Mapping, list)) for item in value)
    return isinstance(value, Mapping)


def rows_csv(payload: Row, lines: bool = False) -> str:
    """Return the main list as CSV; with `lines`, one row per line of each option's bill."""
    return write_csv(flatten(row) for row in (bill_lines(payload) if lines else payload[main_list(payload["kind"])]))


def bill_lines(payload: Row) -> list[dict[str, Any]]:
    """Return a row per line of each option's bill, with the option that it is of."""
    keys = ("rank", "provider", "instance_type", "region", "option")
    rows = payload[main_list(payload["kind"])]
    return [{**{key: row.get(key) for key in keys}, **line} for row in rows for line in row["lines"]]


def write_csv(rows: Iterable[Row], keys: Sequence[str] = ()) -> str:
    """Write flat rows; the header is `keys`, else those of the rows in order of appearance; missing is empty."""
    records = list(rows)
    names = keys or list(dict.fromkeys(name for row in records for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(cell, names))
    for row in records:
        writer.writerow(["" if row.get(name) is None else cell(row[name]) for name in names])
    return out.getvalue()


def cell(value: Any) -> Any:
    """Return a value as a cell of a CSV file shows it: no text steers a terminal or begins a formula."""
    if isinstance(value, float):  # as many digits as JSON has
        return f"{value:.12g}"
    if isinstance(value, bool):
        return str(value).lower()
    return safe_text(visible(value)) if isinstance(value, str) else value
