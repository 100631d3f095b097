"""The cash of a mix by month, live: its cost of capital and the prices of rent and servers may be changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpucost.render.document import heading_of
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address

NAME = "Mix cash"
WIDTHS = (34, *(15,) * 11)
_FIRST = 1  # column of the first kind of cash
_NOTHING_USD = 0.005


class MixCells(NamedTuple):
    """Where the page of a mix finds what it costs now, what it cost as delivered, and the best single option."""

    cost: str
    delivered: str
    alone: str


def write_mix(book: Workbook, sheet: Sheet, answer: Mapping[str, Any]) -> MixCells:
    """Write what is paid each month, its present value, and how far that is from the answer; return their cells.

    What financing moves is valued at the cost of debt and stands as it was delivered, and so does income tax.
    """
    rows = answer["cash_by_month"]
    kinds = [key for key in rows[0] if key not in ("month", "total_usd") and any(row[key] for row in rows)]
    inputs = {row["name"]: row["value"] for row in answer["assumptions"]}
    nominal = inputs.get("wacc_convention") == "nominal"
    wacc = float(inputs.get("wacc_fraction") or 0.0)
    monthly = wacc / 12 if nominal else (1 + wacc) ** (1 / 12) - 1
    sheet.title("Cash of the mix by month")
    sheet.row(Cell("Yellow cells may be changed: what follows from them is live. Costs are positive.", "note"))
    rate = sheet.row("cost of capital, a year", Cell(wacc, "input", "fraction of one"))
    text = f"{address(rate, 1)}/12" if nominal else f"(1+{address(rate, 1)})^(1/12)-1"
    at = sheet.row("cost of capital, a month", Cell(Formula(text, monthly), "plain", "fraction of one"))
    taxed = any(abs(row.get("tax_usd") or 0.0) > _NOTHING_USD for row in rows)
    factors = {}
    if not taxed:  # the tax that follows from other prices is a question of its own
        for key, label in (("rent_usd", "rental prices, times"), ("servers_usd", "prices of servers, times")):
            if key in kinds:
                factors[key] = address(sheet.row(label, Cell(1.0, "input")), 1, fixed=True)
    sheet.skip()
    sheet.row(Cell("Present values", "heading"))
    # the present values stand above the months that they read: a row for each kind, four below them, the heading
    head = sheet.next_row + len(kinds) + 5
    first, last = head + 1, head + len(rows)
    discount = _FIRST + len(kinds) + 1
    # Financing is discounted at the cost of debt, which the answer does not repeat: it is what the others leave.
    worth: dict[str, float] = {}
    at_debt = answer["cost_usd"]
    for key in kinds:
        if key != "financing_usd":
            worth[key] = sum(row[key] / (1 + monthly) ** row["month"] for row in rows)
            at_debt -= worth[key]
    worth["financing_usd"] = at_debt if "financing_usd" in kinds else 0.0
    top = sheet.next_row
    for key in kinds:
        column = _FIRST + kinds.index(key)
        span, ratio = (
            f"{address(first, place, fixed=True)}:{address(last, place, fixed=True)}" for place in (column, discount)
        )
        if key == "financing_usd":
            sheet.row(f"{heading_of(key)}, at the cost of debt", Cell(worth[key], "shade", "USD in whole"))
        else:
            sheet.row(
                heading_of(key), Cell(Formula(f"SUMPRODUCT({span},{ratio})", worth[key]), "plain", "USD in whole")
            )
    total = sum(worth[key] for key in kinds)
    place = sheet.row(
        Cell("cost of the mix", "answer"),
        Cell(Formula(f"SUM({address(top, 1)}:{address(sheet.next_row - 1, 1)})", total), "answer", "USD in whole"),
    )
    now = address(place, 1)
    sheet.row("as delivered", Cell(answer["cost_usd"], "shade", "USD in whole"))
    sheet.row(
        "change",
        Cell(Formula(f"{now}-{address(sheet.next_row - 1, 1)}", total - answer["cost_usd"]), "plain", "USD in whole"),
    )
    alone = sheet.row("best single option, as delivered", Cell(answer["best_pure_usd"], "shade", "USD in whole"))
    sheet.skip()
    delivered = [f"{heading_of(key)}, as delivered" for key in factors]
    head = sheet.heading("month", *(heading_of(key) for key in kinds), "total", "discount", *delivered)
    assert head == first - 1, "the present values read the rows below"
    sheet.page.freeze_panes(head + 1, 1)
    sheet.page.repeat_rows(head)
    for row in rows:
        index = sheet.next_row
        cells = []
        for key in kinds:
            if key in factors:
                shipped = address(index, discount + 1 + list(factors).index(key))
                cells.append(Cell(Formula(f"{shipped}*{factors[key]}", row[key]), "plain", "USD in whole"))
            else:
                cells.append(Cell(row[key], "plain", "USD in whole"))
        span = f"{address(index, _FIRST)}:{address(index, _FIRST + len(kinds) - 1)}"
        ratio = f"(1+{address(at, 1, fixed=True)})^-{address(index, 0)}"
        sheet.row(
            row["month"],
            *cells,
            Cell(Formula(f"SUM({span})", sum(row[key] for key in kinds)), "answer", "USD in whole"),
            Cell(Formula(ratio, (1 + monthly) ** -row["month"]), "plain"),
            *(Cell(row[key], "shade", "USD in whole") for key in factors),
        )
    return MixCells(*(f"'{sheet.name}'!{address(row, 1, fixed=True)}" for row in (place, place + 1, alone)))
