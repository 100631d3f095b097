"""The Change log: every input as delivered and as it is now, whether it was changed, and on what it rests."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.document import heading_of
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.live import LiveModel

NAME = "Change log"
WIDTHS = (34, 14, 14, 10, 10, 14, 58, 15, 11)
_HEADS = ("input", "as delivered", "now", "changed?", "status", "dated", "source", "changed by", "on")
STATUSES = "input_status"  # the name of the column of statuses


def write(book: Workbook, sheet: Sheet, models: Sequence[LiveModel], sources: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a row for each input; who changed it, and when, is filled in by hand beside it."""
    sheet.title("Change log")
    count = sum(len(model.inputs) for model in models)
    first = sheet.next_row + 3  # below the count and the heading
    last = first + count + len(models) - 1
    span = f"{address(first, 3, fixed=True)}:{address(last, 3, fixed=True)}"
    folded = "Those that an alternative replaces are folded away."
    # rows with a verdict are inputs: those that name a model have none
    text = f'COUNTIF({span},"yes")&" of "&COUNTIF({span},"*")&" inputs differ from what was delivered. {folded}"'
    sheet.row(Cell(Formula(text, f"0 of {count} inputs differ from what was delivered. {folded}"), "note"))
    sheet.skip()
    head = sheet.heading(*_HEADS)
    assert head == first - 1, "the count reads the rows below"
    sheet.page.freeze_panes(head + 1, 1)
    sheet.page.repeat_rows(head)
    for model in models:
        sheet.row(Cell(model.title, "note"))
        for entry in model.inputs:
            source = sources.get(entry.source_id) or {}
            row, value = sheet.next_row, 0.0 if entry.value is None else entry.value
            if not entry.counts:  # an alternative replaces it
                sheet.page.set_row(row, None, None, {"level": 1, "hidden": True})
            publisher = ", ".join(str(source[key]) for key in ("publisher", "title") if source.get(key))
            sheet.row(
                Cell(heading_of(entry.name), "wrap"),
                Cell(entry.value, "shade", entry.unit),
                Cell(Formula(model.cell_name(entry.name), value), "plain", entry.unit),
                Formula(f'IF({address(row, 2)}={address(row, 1)},"no","yes")', "no"),
                entry.status or "derived",
                entry.observed or str(source.get("published_on") or source.get("accessed_on") or ""),
                Cell(publisher or entry.source_id, "source"),
                Cell("", "input"),
                Cell("", "input"),
            )
    book.define(STATUSES, NAME, first, _HEADS.index("status"), last)
    red = book.file.add_format({"font_color": "#C00000", "bold": True})
    rule = {"type": "cell", "criteria": "==", "value": '"yes"', "format": red}
    sheet.page.conditional_format(first, 3, last, 3, rule)
