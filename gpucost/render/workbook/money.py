"""The Currency sheet: cash by year and present values in another currency, live, at the rates of its months."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.book import Cell, Formula, Sheet, address
from gpucost.render.workbook.calculations import FIRST_MONTH, Rows
from gpucost.render.workbook.live import LiveModel
from gpucost.units import MONTHS_PER_YEAR

NAME = "Currency"
_FIRST = 2  # column of month 0 and of year 0


def write(
    sheet: Sheet, model: LiveModel, values: Mapping[str, Any], flows: Rows, said: Mapping[str, Any], months: int
) -> None:
    """Write the rates, which may be changed, and cash and present values at them."""
    code, rates = said["currency"], said["rates"]
    sheet.title(f"In {code}: {model.title}")
    sheet.row(
        f"USD for one {code}: {said['forward']}, spot of {said['usd_per_unit_on']}; discounted: {said['discounting']}."
    )
    sheet.page.freeze_panes(0, _FIRST)
    width = max(12, len(f"-{max(map(abs, (*said['cash_own'], *said['cash_rent']))) * 10:,.0f}"))
    sheet.page.set_column(_FIRST, _FIRST + months, width)
    sheet.skip()
    top = sheet.row(Cell("month", "head"), Cell("", "head"), *(Cell(month, "head") for month in range(months + 1)))
    row = sheet.row(f"USD for one {code}", None, *(Cell(rate, "input", "USD per unit") for rate in rates))
    cash = {side: _cash(sheet, model, values, flows, side, row, rates) for side in ("own", "rent")}
    sheet.skip()
    years = -(-months // MONTHS_PER_YEAR)
    sheet.row(
        Cell(f"cash in {code}", "head"), Cell("total", "head"), *(Cell(f"year {n}", "head") for n in range(years + 1))
    )
    for side in ("own", "rent"):
        _years(sheet, side, cash[side], top, said["by_year"], months)
    sheet.skip()
    _present(sheet, model, flows, said, row, months)
    sheet.page.print_area(0, 0, sheet.next_row, _FIRST + max(years, MONTHS_PER_YEAR))


def _cash(
    sheet: Sheet, model: LiveModel, values: Mapping[str, Any], flows: Rows, side: str, row: int, rates: Any
) -> int:
    """Write the cash of a side by month."""
    line = flows[model.key, f"{side}_total_usd"]
    cells = [
        Cell(
            Formula(
                f"'Cash flows'!{address(line, FIRST_MONTH + month)}/{address(row, _FIRST + month)}",
                float(values[f"{side}_total_usd"][month]) / rate,
            ),
            "plain",
            "USD in whole",
        )
        for month, rate in enumerate(rates)
    ]
    return sheet.row({"own": "owning", "rent": "renting"}[side], None, *cells)


def _years(sheet: Sheet, side: str, cash: int, top: int, years: Any, months: int) -> None:
    """Write the cash of a side by year; year 0 is the start."""
    heads, line = (
        f"{address(at, _FIRST, fixed=True)}:{address(at, _FIRST + months, fixed=True)}" for at in (top, cash)
    )
    texts = [
        f'SUMIF({heads},"<={MONTHS_PER_YEAR * n}",{line})'
        + (f'-SUMIF({heads},"<={MONTHS_PER_YEAR * (n - 1)}",{line})' if n else "")
        for n in range(len(years))
    ]
    cells = [Cell(Formula(text, row[side]), "plain", "USD in whole") for text, row in zip(texts, years, strict=True)]
    total = Formula(f"SUM({line})", sum(row[side] for row in years))
    sheet.row({"own": "owning", "rent": "renting"}[side], Cell(total, "answer", "USD in whole"), *cells)


def _present(sheet: Sheet, model: LiveModel, flows: Rows, said: Mapping[str, Any], row: int, months: int) -> None:
    """Write present values: at the cost of capital given for the currency, else at the one that the rates imply."""
    spot = address(row, _FIRST, fixed=True)
    code = said["currency"]
    if said["discounting"].startswith("given"):
        rate = sheet.row(f"cost of capital in {code}, a year", Cell(said["wacc_fraction"], "input", "fraction of one"))
        wacc = address(rate, 1, fixed=True)
        span = f"{address(row, _FIRST, fixed=True)}:{address(row, _FIRST + months, fixed=True)}"
        month = _cut(model, flows, "m", months)
        ratio = f'(1+IF({model.cell_name("wacc_convention")}="nominal",{wacc}/12,(1+{wacc})^(1/12)-1))^-{month}'
        texts = {
            side: f"SUMPRODUCT({_cut(model, flows, line, months)}/{span}*{ratio})"
            for side, line in (("own", "own_in_cash_usd"), ("rent", "rent_total_usd"))
        }
        texts["own"] += f"+{model.cell_name('npv_financing_usd')}/{spot}"
    else:
        texts = {side: f"{model.cell_name(f'npv_{side}_usd')}/{spot}" for side in ("own", "rent")}
    places = []
    for side, words in (("own", "owning"), ("rent", "renting")):
        cell = Cell(Formula(texts[side], said[f"npv_{side}"]), "answer", "USD in whole")
        places.append(sheet.row(f"{words}, present value in {code}", cell))
    text = f"{address(places[1], 1)}-{address(places[0], 1)}"
    sheet.row(
        f"owning saves, in {code}", Cell(Formula(text, said["npv_rent"] - said["npv_own"]), "answer", "USD in whole")
    )


def _cut(model: LiveModel, flows: Rows, name: str, months: int) -> str:
    """Return the months compared of a monthly line."""
    row = flows[model.key, name]
    return f"'Cash flows'!{address(row, FIRST_MONTH, fixed=True)}:{address(row, FIRST_MONTH + months, fixed=True)}"
