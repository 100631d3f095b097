"""Cash by year: the lines of the sheet of months, added up by year, for print."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.book import Cell, Formula, Sheet, address, shown_usd
from gpucost.render.workbook.calculations import TOTALS, FlowRows, scalar_reference
from gpucost.render.workbook.live import LiveModel
from gpucost.units import MONTHS_PER_YEAR

NAME = "Cash by year"
_FIRST, _WIDTH = 2, 14  # column of the start


def write(sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: FlowRows) -> None:
    """Write each line that is paid, in total and by year; year 0 is the start."""
    sheet.title("Cash by year")
    sheet.row(Cell("Costs are positive. The months are on the sheet Cash flows.", "note"))
    most = 1
    for model in (model for model in models if model.monthly):
        years = range(-(-(model.compared_months or model.months) // MONTHS_PER_YEAR) + 1)
        most = max(most, len(years))
        # one unit for the whole table, by the larger side
        totals = (abs(values[model.key][f"{side}_total_usd"]).sum() for side in ("own", "rent"))
        unit = shown_usd(float(max(totals)))
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        head = sheet.row(
            Cell(unit.removesuffix(" in whole"), "head"),
            Cell("total", "head right"),
            *(Cell(year, "head right", "year") for year in years),
        )
        months = scalar_reference(model, flows, "m")
        for line in model.monthly:
            series = values[model.key][line.name]
            if line.name not in TOTALS and not (line.side and abs(series).max() > 0):
                continue
            row = scalar_reference(model, flows, line.name)
            cells = []
            for year in years:
                at, end = address(head, _FIRST + year, fixed=True), MONTHS_PER_YEAR * year
                # what was paid until the end of the year, less what was paid before it
                text = f'SUMIF({months},"<="&12*{at},{row})'
                text += f'-SUMIF({months},"<="&12*({at}-1),{row})' if year else ""
                begin = end - MONTHS_PER_YEAR + 1 if year else 0
                cells.append(Cell(Formula(text, float(series[begin : end + 1].sum())), "right", unit))
            style = "answer" if line.name in TOTALS else "plain"
            total = Cell(Formula(f"SUM({row})", float(series.sum())), "answer" if style == "answer" else "right", unit)
            sheet.row(Cell(line.description, style), total, *cells)
    sheet.page.set_column(1, _FIRST + most, _WIDTH)
    sheet.page.freeze_panes(0, 1)
    sheet.page.repeat_columns(0, 0)
