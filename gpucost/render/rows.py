"""Flat rows, as the list commands give them, and histories of prices."""

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from gpucost.errors import UnknownNameError, UsageError, nearest
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    columns,
    columns_of,
    printable,
    table_of,
)

# --- Flat rows.

Rows = Sequence[Row]

_PLAIN = frozenset((str, int, float, bool, type(None)))  # types of cells that stand as they are
_UNLIMITED = 100_000  # a pipe has no width: every column is written in full


def render_rows(
    rows: Rows,
    *,
    columns: Sequence[str | Column],
    format_: str,
    fields: str | None = None,
    envelope: Row,
    title: str = "",
) -> str:
    """Write rows in a format; `fields` picks any keys of the rows, else people get `columns` and machines get all.

    `columns` are written as in `document.columns`: `key`, `key:priority`, `key=Heading`.
    """
    table = _table(rows, columns, fields, title)
    if format_ == "json":
        from gpucost.render.json import dumps

        warnings = list(envelope.get("warnings", ()))
        head = {key: value for key, value in envelope.items() if key != "warnings"}
        keys = [column.key for column in table.columns]
        records = rows if fields is None else [{key: row.get(key) for key in keys} for row in rows]
        return dumps({**head, "rows": records, "warnings": warnings})
    if format_ == "csv":
        from gpucost.render.table_csv import flatten, write_csv

        if fields is None and rows:
            # a price list has a hundred thousand rows, nearly all flat: a look at the types is quicker than to flatten
            return write_csv(
                row if _PLAIN.issuperset(map(type, row.values())) else flatten(row, complete=True) for row in rows
            )
        return write_csv(rows, [column.key for column in table.columns])
    if format_ == "md":
        from gpucost.render.markdown import table_lines

        return "\n".join(table_lines(printable(table)))
    from gpucost.render import text

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    terminal = text.detect(width=_UNLIMITED if piped else None)
    lines = "\n".join(line.rstrip() for line in text.table_lines(printable(table), terminal))
    return lines if terminal.unicode else text.to_ascii(lines)


def write_rows(
    path: str, rows: Rows, headings: Sequence[str | Column], fields: str | None, envelope: Mapping[str, Any], title: str
) -> None:
    """Write rows as a page (.html), or as a workbook of one sheet with every column."""
    if path.lower().endswith(".xlsx") and fields is None:
        # a sheet has room for every key, under the name by which one would ask for it
        headings = [
            Column(key, heading=key, verbatim=True) for key in dict.fromkeys(key for row in rows for key in row)
        ] or headings
    block = _table(rows, headings, fields, "")
    as_of, version = (str(envelope.get(name) or "") for name in ("as_of", "catalog_version"))
    warnings = tuple(envelope.get("warnings") or ())
    write_document(
        Document(title, (Section("", (block,)),), as_of=as_of, catalog_version=version, warnings=warnings), path
    )


def write_document(document: Document, path: str) -> None:
    """Write a document as a page (.html), or as a workbook of one sheet and the charts beside it."""
    document = printable(document)
    if not path.lower().endswith(".xlsx"):
        from gpucost.render.html import write_page

        write_page(document, path)
        return
    from gpucost.render.workbook import charts, static
    from gpucost.render.workbook.book import new_workbook

    with new_workbook(path) as book:
        sheet = book.sheet("Rows", (40, *(24,) * 11))
        drawn = static.write_document(book, sheet, document)
        sheet.skip()
        for remark in (*document.warnings, *document.remarks, ", ".join(document.stamp)):
            sheet.paragraph(remark, 7)
        if drawn:
            gallery = charts.Gallery(book, book.sheet(charts.NAME))
            for chart in drawn:
                gallery.picture(chart)
        book.close()


def _table(rows: Rows, headings: Sequence[str | Column], fields: str | None, title: str) -> Table:
    """Return the rows as a table with the headings of the list, or with the fields that were asked for."""
    default = columns(*headings)
    if fields is None:
        return Table(default, rows, title=title)
    # of no rows nobody knows the keys: then every name that could be one is taken at its word
    keys = (key for row in rows for key in row) if rows else filter(str.isidentifier, map(str.strip, fields.split(",")))
    available = list(dict.fromkeys([*keys, *(column.key for column in default)]))
    names = list(dict.fromkeys(name.strip() for name in fields.split(",") if name.strip()))
    if not names:
        raise UsageError("--fields names no column. Separate names by commas, or leave it out.")
    for name in names:
        if name not in available:
            near = nearest(name, available, 3, 0.4)
            raise UnknownNameError("column", name, near, f"Columns: {', '.join(available)}.")
    return Table(tuple(Column(name, heading=name, verbatim=True) for name in names), rows, title=title)


# --- Histories of prices.

_MARKS = 12  # vertical lines that a chart carries legibly
_DAY_MS = 86_400_000


def history_document(points: Sequence[Row], events: Sequence[Row], left_out: int, about: Mapping[str, Any]) -> Document:
    """Return a chart of prices by day with its largest events marked, and a table of all events."""
    data = [{**row, "day": row["day"].isoformat()} for row in points]
    largest = sorted(events, key=lambda event: -abs(event["change_fraction"]))[:_MARKS]
    chart = Chart(
        "line",
        "Price of a GPU-hour",
        f"Prices of {len({row['offer'] for row in points})} offers over time.",
        data,
        Axis("day"),
        Axis("usd_per_gpu_hour"),
        series="offer",
        steps=True,  # a price holds until the next one is seen
        marks=tuple(  # Vega knows days as milliseconds
            (
                f"{event['day']} {event['offer']}: {event['change_fraction']:+.0%}",
                float((event["day"] - date(1970, 1, 1)).days * _DAY_MS),
            )
            for event in largest
        ),
    )
    rows = [{**event, "day": event["day"].isoformat()} for event in events]
    blocks: list[Block] = [chart, *table_of("Events: changes of 5 % and more", rows, *columns_of("history events"))]
    if left_out:
        blocks.append(Paragraph(f"{left_out} more offers match; filters choose others."))
    return Document(
        "History of prices",
        (Section("", tuple(blocks)),),
        as_of=str(about["as_of"]),
        catalog_version=str(about["catalog_version"]),
    )
