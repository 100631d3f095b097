"""The cash of a mix by month, live: its cost of capital and the prices of rent and servers may be changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpucost.render.document import heading_of
from gpucost.render.workbook.book import Cell, Formula, Sheet, address

NAME = "Mix cash"
WIDTHS = (34, *(15,) * 11)
_FIRST = 1  # column of the first kind of cash
_NOTHING_USD = 0.005  # half a cent: less is rounding, not tax


class MixCells(NamedTuple):
    """Where the page of a mix finds what it costs now, what it cost as delivered, and the best single option."""

    cost: str
    delivered: str
    alone: str


def write_mix(sheet: Sheet, answer: Mapping[str, Any]) -> MixCells:
    """Write what is paid each month, its present value, and how far that is from the answer; return their cells.

    What financing moves is valued at the cost of debt and stands as it was delivered, and so does income tax.
    """
    months = answer["cash_by_month"]
    kinds = [key for key in months[0] if key not in ("month", "total_usd") and any(month[key] for month in months)]
    inputs = {row["name"]: row["value"] for row in answer["assumptions"]}
    nominal = inputs.get("wacc_convention") == "nominal"
    wacc = float(inputs.get("wacc_fraction") or 0.0)
    monthly_rate = wacc / 12 if nominal else (1 + wacc) ** (1 / 12) - 1
    sheet.title("Cash of the mix by month")
    sheet.row(Cell("Yellow cells may be changed: what follows from them is live. Costs are positive.", "note"))
    wacc_row = sheet.row("cost of capital, a year", Cell(wacc, "input", "fraction of one"))
    wacc_cell = address(wacc_row, 1)
    formula = f"{wacc_cell}/12" if nominal else f"(1+{wacc_cell})^(1/12)-1"
    rate_row = sheet.row("cost of capital, a month", Cell(Formula(formula, monthly_rate), "plain", "fraction of one"))
    rate_cell = address(rate_row, 1, fixed=True)
    taxed = any(abs(month.get("tax_usd") or 0.0) > _NOTHING_USD for month in months)
    factors = {}  # the cells of the yellow factors, by the kind of cash that they multiply
    if not taxed:  # the tax that follows from other prices is a question of its own
        for key, label in (("rent_usd", "rental prices, times"), ("servers_usd", "prices of servers, times")):
            if key in kinds:
                factors[key] = address(sheet.row(label, Cell(1.0, "input")), 1, fixed=True)
    sheet.skip()
    sheet.row(Cell("Present values", "heading"))
    # They stand above the months that they read: between lie a row for each kind, four more, and an empty one.
    first_kind_row = sheet.next_row
    heading_row = first_kind_row + len(kinds) + 5
    first_month_row, last_month_row = heading_row + 1, heading_row + len(months)
    discount_column = _FIRST + len(kinds) + 1  # after the kinds and their total

    def month_cells(column: int) -> str:
        top = address(first_month_row, column, fixed=True)
        return f"{top}:{address(last_month_row, column, fixed=True)}"

    # Financing is discounted at the cost of debt, which the answer does not repeat: it is what the others leave.
    present_usd: dict[str, float] = {}
    at_debt_usd = answer["cost_usd"]
    for key in kinds:
        if key != "financing_usd":
            present_usd[key] = sum(month[key] / (1 + monthly_rate) ** month["month"] for month in months)
            at_debt_usd -= present_usd[key]
    present_usd["financing_usd"] = at_debt_usd if "financing_usd" in kinds else 0.0
    for column, key in enumerate(kinds, _FIRST):
        if key == "financing_usd":
            sheet.row(f"{heading_of(key)}, at the cost of debt", Cell(present_usd[key], "shade", "USD in whole"))
        else:
            formula = f"SUMPRODUCT({month_cells(column)},{month_cells(discount_column)})"
            sheet.row(heading_of(key), Cell(Formula(formula, present_usd[key]), "plain", "USD in whole"))
    total_usd = sum(present_usd[key] for key in kinds)
    formula = f"SUM({address(first_kind_row, 1)}:{address(sheet.next_row - 1, 1)})"
    cost_row = sheet.row(Cell("cost of the mix", "answer"), Cell(Formula(formula, total_usd), "answer", "USD in whole"))
    delivered_row = sheet.row("as delivered", Cell(answer["cost_usd"], "shade", "USD in whole"))
    change = Formula(f"{address(cost_row, 1)}-{address(delivered_row, 1)}", total_usd - answer["cost_usd"])
    sheet.row("change", Cell(change, "plain", "USD in whole"))
    alone_row = sheet.row("best single option, as delivered", Cell(answer["best_pure_usd"], "shade", "USD in whole"))
    sheet.skip()
    delivered_headings = [f"{heading_of(key)}, as delivered" for key in factors]
    written_row = sheet.heading("month", *(heading_of(key) for key in kinds), "total", "discount", *delivered_headings)
    assert written_row == heading_row, "the present values read the rows below"
    sheet.page.freeze_panes(heading_row + 1, 1)
    sheet.page.repeat_rows(heading_row)
    # what may be multiplied is delivered right of the discount, so that the factor leaves it as it was
    delivered_columns = {key: column for column, key in enumerate(factors, discount_column + 1)}
    for month in months:
        index = sheet.next_row
        cells = []
        for key in kinds:
            if key in factors:
                formula = f"{address(index, delivered_columns[key])}*{factors[key]}"
                cells.append(Cell(Formula(formula, month[key]), "plain", "USD in whole"))
            else:
                cells.append(Cell(month[key], "plain", "USD in whole"))
        kinds_sum = f"SUM({address(index, _FIRST)}:{address(index, _FIRST + len(kinds) - 1)})"
        discount = f"(1+{rate_cell})^-{address(index, 0)}"
        sheet.row(
            month["month"],
            *cells,
            Cell(Formula(kinds_sum, sum(month[key] for key in kinds)), "answer", "USD in whole"),
            Cell(Formula(discount, (1 + monthly_rate) ** -month["month"]), "plain"),
            *(Cell(month[key], "shade", "USD in whole") for key in factors),
        )

    def from_other_sheets(row: int) -> str:
        return f"'{sheet.name}'!{address(row, 1, fixed=True)}"

    return MixCells(
        cost=from_other_sheets(cost_row), delivered=from_other_sheets(delivered_row), alone=from_other_sheets(alone_row)
    )
