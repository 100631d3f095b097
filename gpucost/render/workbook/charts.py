"""Native charts, drawn from the cells of other sheets, so that they move with them."""

from collections.abc import Sequence
from typing import Any

from gpucost.render.document import columns_of, visible
from gpucost.render.workbook import options, statements, static
from gpucost.render.workbook.book import Sheet, Workbook
from gpucost.render.workbook.live import LiveModel
from gpucost.render.workbook.statements import NAME as STATEMENTS
from gpucost.render.workbook.statements import StatementLayout

NAME = "Charts"
# Okabe and Ito's blue and vermilion, as in the charts of pages
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#7F7F7F"
_OFFERS_DRAWN = 15
_ROWS_PER_CHART, _CHARTS_ON_A_PAGE = 22, 4  # a chart is 400 pixels high, a row 20


class Gallery:
    """Places charts below each other, two in a row."""

    def __init__(self, book: Workbook, sheet: Sheet) -> None:
        self.book, self.sheet, self.count = book, sheet, 0
        self.breaks: list[int] = []  # rows at which a page of charts begins, so that none is cut
        sheet.title("Charts")

    def add(self, chart: Any, title: str, x_title: str, y_title: str, number: str = "#,##0") -> None:
        """Put one chart onto the sheet."""
        chart.set_title({"name": static.series_name(title), "name_font": {"size": 12}})
        chart.set_x_axis({"name": x_title, "name_font": {"size": 9}, "num_font": {"size": 9}, "label_position": "low"})
        chart.set_y_axis(
            {
                "name": y_title,
                "num_format": number,
                "name_font": {"size": 9},
                "num_font": {"size": 9},
                "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            }
        )
        chart.set_size({"width": 620, "height": 400})
        # two in a row: the second begins ten columns further right
        row = self.sheet.next_row + (self.count // 2) * _ROWS_PER_CHART
        if self.count and self.count % _CHARTS_ON_A_PAGE == 0:
            self.breaks.append(row)
            self.sheet.page.set_h_pagebreaks(self.breaks)
        self.sheet.page.insert_chart(row, (self.count % 2) * 10, chart, {"description": visible(title)})
        self.count += 1

    def offers(self, first: int, last: int, columns: Sequence[str]) -> None:
        """Cost of the best offers with their ranges, and cost against time."""
        if "cost_usd" not in columns or "provider" not in columns:  # of serving, whose offers cost by the token
            return
        last = min(last, first + _OFFERS_DRAWN - 1)
        cost, name = columns.index("cost_usd"), columns.index("provider")
        chart = self.book.file.add_chart({"type": "column"})
        series: dict[str, Any] = {
            "name": "cost",
            "categories": [static.OFFERS, first, name, last, name],
            "values": [static.OFFERS, first, cost, last, cost],
            "fill": {"color": _BLUE},
        }
        chart.add_series(series)
        # error bars would need lengths, and the cells hold ends: these are the markers of series without a line
        if {"cost_low_usd", "cost_high_usd"} <= set(columns):
            for key, color in (("cost_low_usd", _GREY), ("cost_high_usd", _ORANGE)):
                at = columns.index(key)
                marks = self.book.file.add_chart({"type": "line"})
                marks.add_series(
                    {
                        "name": key.removeprefix("cost_").removesuffix("_usd"),
                        "categories": [static.OFFERS, first, name, last, name],
                        "values": [static.OFFERS, first, at, last, at],
                        "line": {"none": True},
                        "marker": {
                            "type": "short_dash",
                            "size": 9,
                            "border": {"color": color},
                            "fill": {"color": color},
                        },
                    }
                )
                chart.combine(marks)
        chart.set_legend({"position": "bottom"})
        self.add(chart, "Cost of the first offers", "offer", "USD")
        # a second call replaces the axis that `add` set: columns begin at zero, whatever Excel would choose
        chart.set_y_axis({"name": "USD", "num_format": "#,##0", "min": 0, "num_font": {"size": 9}})
        if "days" in columns:
            days = columns.index("days")
            points = self.book.file.add_chart({"type": "scatter"})
            points.add_series(
                {
                    "categories": [static.OFFERS, first, days, last, days],
                    "values": [static.OFFERS, first, cost, last, cost],
                    "marker": {"type": "circle", "fill": {"color": _BLUE}},
                }
            )
            points.set_legend({"none": True})
            self.add(points, "Cost against time", "days", "USD")

    def picture(self, drawn: static.NativeChart) -> None:
        """Put a chart of an answer without a live model here."""
        self.add(drawn.chart, drawn.title, drawn.across, drawn.up, drawn.number)
        if drawn.lowest is not None:
            drawn.chart.set_y_axis({"name": drawn.up, "num_format": drawn.number, "min": drawn.lowest})

    def sizes(self, title: str, first: int, last: int) -> None:
        """Cost against time of one offer at several sizes of cluster."""
        keys = [column.key for column in columns_of("sheet sizes")]
        days, cost = keys.index("days"), keys.index("cost_usd")
        curve = self.book.file.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        curve.add_series(
            {
                "categories": [static.SIZES, first, days, last, days],
                "values": [static.SIZES, first, cost, last, cost],
                "line": {"color": _BLUE, "width": 1.75},
                "marker": {"type": "circle", "fill": {"color": _BLUE}},
            }
        )
        curve.set_legend({"none": True})
        self.add(curve, f"{title}: cost against time by size of cluster", "days", "USD")

    def tornado(self, model: LiveModel, base: float, first: int, last: int) -> None:
        """Draw what each input does to the answer, around the base."""
        chart = self.book.file.add_chart({"type": "bar", "subtype": "stacked"})
        labels = options.LABELS
        # the bars are changes against the base, so that zero is the middle and both ends hang on it
        for (name, color), column in zip((("at low", _BLUE), ("at high", _ORANGE)), options.CHANGES, strict=True):
            chart.add_series(
                {
                    "name": name,
                    "categories": [options.SENSITIVITY, first, labels, last, labels],
                    "values": [options.SENSITIVITY, first, column, last, column],
                    "fill": {"color": color},
                    "gap": 40,
                }
            )
        chart.set_legend({"position": "bottom"})
        line = model.line(model.answer)
        unit = line.measure
        self.add(chart, f"{model.title}: change of {line.description or line.name}", "", unit)
        chart.set_x_axis({"num_format": static.axis_format(base), "num_font": {"size": 9}, "name": unit})
        # Excel draws the first row at the bottom: reversed, the widest input stands on top
        chart.set_y_axis({"reverse": True, "label_position": "low", "num_font": {"size": 9}})

    def budget(self, model: LiveModel, first: int, last: int) -> None:
        """Cost by month with the contingency on top."""
        chart = self.book.file.add_chart({"type": "column", "subtype": "stacked"})
        for name, column, color in (("P50", 3, _BLUE), ("contingency to P80", 5, _ORANGE)):
            chart.add_series(
                {
                    "name": name,
                    "categories": [statements.BUDGET, first, 0, last, 0],
                    "values": [statements.BUDGET, first, column, last, column],
                    "fill": {"color": color},
                }
            )
        chart.set_legend({"position": "bottom"})
        self.add(chart, f"{model.title}: budget by month", "month", "USD")

    def ways(self, title: str, sheet: str, first: int, last: int, lowest: float = 0.0) -> None:
        """Present value of every option, as bars that begin at nothing; `lowest` is the least of them."""
        chart = self.book.file.add_chart({"type": "bar"})
        worth = options.PLACES["worth"]
        chart.add_series(
            {
                "categories": [sheet, first, 0, last, 0],
                "fill": {"color": _BLUE},
                "gap": 40,
                "values": [sheet, first, worth, last, worth],
            }
        )
        chart.set_legend({"none": True})
        self.add(chart, f"{title}: present value of every option", "", "USD")
        zero = {"min": 0} if lowest >= 0 else {}
        chart.set_x_axis({"num_format": "#,##0", "num_font": {"size": 9}, "name": "USD", **zero})
        chart.set_y_axis({"reverse": True, "num_font": {"size": 9}})

    def years(self, model: LiveModel, statement: StatementLayout) -> None:
        """Cash of both sides by fiscal year; the quarters, folded away beside them, are not drawn."""
        chart = self.book.file.add_chart({"type": "column"})
        first, last = min(statement.years), max(statement.years)
        # the heading of a block stands above its first line
        head = statement.rows["cash_purchase_usd"] - 1
        for name, line, color in (("owning", "cash_own_usd", _BLUE), ("renting", "cash_rent_usd", _ORANGE)):
            row = statement.rows[line]
            chart.add_series(
                {
                    "name": name,
                    "categories": [STATEMENTS, head, first, head, last],
                    "values": [STATEMENTS, row, first, row, last],
                    "fill": {"color": color},
                }
            )
        chart.set_legend({"position": "bottom"})
        self.add(chart, f"{model.title}: cash by fiscal year", "", "USD")
