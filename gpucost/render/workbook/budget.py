"""The Budget sheet: a run's cost by month, at even odds (P50) and with the contingency that covers 80 % of outcomes."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from gpucost.money.statements import ROWS
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.calculations import plain
from gpucost.render.workbook.live import LiveModel
from gpucost.render.workbook.statements import NAME as STATEMENTS
from gpucost.render.workbook.statements import Place
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR

NAME = "Budget"
_Z80, _Z90, _Z95 = 0.8416, 1.2816, 1.6449  # standard deviations up to the 80th, 90th and 95th percentile
_OWNING = (
    "cash_purchase_usd",
    "cash_running_usd",
    "cash_financing_usd",
    "cash_tax_usd",
    "cash_proceeds_usd",
    "cash_own_usd",
)
_SPARE_MONTHS = 6  # rows beyond the run, so that a slower run still fits


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], as_of: str
) -> dict[str, tuple[int, int]]:
    """Spread each run's cost evenly over its calendar days; return the rows of each run's first and last month."""
    return {model.key: _model(book, sheet, model, values[model.key], as_of) for model in models}


def is_run(model: LiveModel) -> bool:
    """Say whether a model has days over which its cost spreads."""
    return {"days", "cost_usd", "cost_high_usd"} <= {line.name for line in model.derived}


def write_owning(book: Workbook, sheet: Sheet, model: LiveModel, place: Place, drawn: Mapping[str, Any] | None) -> None:
    """Write the budget of owning by fiscal year, live, with the contingency that covers 80 % of the draws."""
    p50, p95 = ((drawn or {}).get(f"own_{name}_usd") or 0.0 for name in ("p50", "p95"))
    ratio = (p95 / p50) ** (_Z80 / _Z95) if p50 > 0 and p95 > 0 else 1.0
    name = model.cell_name("owning_p80_ratio")
    sheet.row(Cell(model.title, "heading"))
    sheet.row("P80 ÷ P50 of owning is that of the draws as delivered, of a lognormal through their P50 and P95.")
    book.define(name, NAME, sheet.row("P80 ÷ P50", None, Cell(ratio, "input")), 2)
    sheet.heading(place.unit.removesuffix(" in whole"), "name", *place.years.values())
    for line in _OWNING:
        cells = [
            Cell(
                Formula(f"'{STATEMENTS}'!{address(place.rows[line], at)}", place.figures[line, at]),
                "answer" if line == _OWNING[-1] else "plain",
                place.unit,
            )
            for at in place.years
        ]
        total = sheet.row(next(row.description for row in ROWS if row.name == line), Cell(line, "unit"), *cells)
    paid = [max(place.figures[_OWNING[-1], at], 0.0) * (ratio - 1) for at in place.years]
    texts = [f"MAX({address(total, column)},0)*({name}-1)" for column in range(2, 2 + len(paid))]
    sheet.row(
        "contingency to P80, none on proceeds",
        None,
        *(Cell(Formula(*pair), "plain", place.unit) for pair in zip(texts, paid, strict=True)),
    )
    sheet.skip()


def _model(book: Workbook, sheet: Sheet, model: LiveModel, values: Mapping[str, Any], as_of: str) -> tuple[int, int]:
    cost, high, days = (plain(values[name]) for name in ("cost_usd", "cost_high_usd", "days"))
    names = {name: model.cell_name(name) for name in ("cost_usd", "cost_high_usd", "days")}
    sheet.skip()
    sheet.row(Cell(model.title, "heading"))
    sheet.row(
        "The answer's range holds 80 % of outcomes: its high end is taken as P90 of a lognormal "
        "distribution, from which P80 follows."
    )
    ratio = (high / cost) ** (_Z80 / _Z90) if cost > 0 else 1.0
    per_month, p80 = _settings(book, sheet, model, ratio)
    sheet.heading("month", "starts", "share of the run", "P50, USD", "P80, USD", "contingency, USD", "P80 so far, USD")
    first = sheet.next_row
    length = DAYS_PER_YEAR / MONTHS_PER_YEAR
    so_far = 0.0
    months = math.ceil(days / length)
    for month in range(1, months + _SPARE_MONTHS + 1):
        share = max(0.0, min(days, month * length) - (month - 1) * length) / days
        so_far += share * cost * ratio
        a, c, d, e = (address(sheet.next_row, column) for column in (0, 2, 3, 4))
        part = f"MAX(0,MIN({names['days']},{a}*{per_month})-({a}-1)*{per_month})/{names['days']}"
        total = f"{e}+{address(sheet.next_row - 1, 6)}" if month > 1 else e
        sheet.row(
            month,
            _month_after(as_of, month - 1),
            Cell(Formula(part, share), "plain", "fraction of one"),
            Cell(Formula(f"{c}*{names['cost_usd']}", share * cost), "plain", "USD"),
            Cell(Formula(f"{d}*{p80}", share * cost * ratio), "plain", "USD"),
            Cell(Formula(f"{e}-{d}", share * cost * (ratio - 1)), "plain", "USD"),
            Cell(Formula(total, so_far), "plain", "USD"),
        )
    last = sheet.next_row - 1
    total_row = sheet.row(Cell("total", "answer"), None, *_sums(first, last, cost, ratio))
    book.define(model.cell_name("budget_share"), NAME, total_row, 2)
    return first, first + max(months, 1) - 1


def _sums(first: int, last: int, cost_usd: float, ratio: float) -> list[Cell]:
    """Return the cells of the total: shares, P50, P80 and the contingency between them."""
    totals = (
        (1.0, "fraction of one"),
        (cost_usd, "USD"),
        (cost_usd * ratio, "USD"),
        (cost_usd * (ratio - 1), "USD"),
    )
    return [
        Cell(Formula(f"SUM({address(first, column)}:{address(last, column)})", value), "answer", unit)
        for column, (value, unit) in enumerate(totals, 2)
    ]


def _settings(book: Workbook, sheet: Sheet, model: LiveModel, ratio: float) -> tuple[str, str]:
    """Write what the table below rests on; return the names of the days in a month and of P80 ÷ P50."""
    per_month = _setting(book, sheet, model, "days_per_month", DAYS_PER_YEAR / MONTHS_PER_YEAR, "days in a month")
    z80 = _setting(book, sheet, model, "z80_ratio", _Z80, "standard deviations up to the 80th percentile")
    z90 = _setting(book, sheet, model, "z90_budget_ratio", _Z90, "standard deviations up to the 90th percentile")
    high, cost = model.cell_name("cost_high_usd"), model.cell_name("cost_usd")
    row = sheet.row("P80 ÷ P50", None, "ratio", Formula(f"({high}/{cost})^({z80}/{z90})", ratio))
    p80 = model.cell_name("p80_ratio")
    book.define(p80, NAME, row, 3)
    return per_month, p80


def _setting(book: Workbook, sheet: Sheet, model: LiveModel, name: str, value: float, words: str) -> str:
    row = sheet.row(name, words, "", Cell(value, "input"))
    book.define(model.cell_name(name), NAME, row, 3)
    return model.cell_name(name)


def _month_after(as_of: str, months: int) -> str:
    try:
        start = date.fromisoformat(as_of)
    except ValueError:
        return ""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return f"{year}-{month + 1:02d}"
