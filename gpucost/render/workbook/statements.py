"""The Statements, Budget and Currency sheets; the monthly lines behind them stand on the sheet Cash flows."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from gpucost.money.statements import ROWS, Row
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address, shown_usd
from gpucost.render.workbook.calculations import FIRST_MONTH, FLOWS, FlowRows, plain
from gpucost.render.workbook.live import LiveModel
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR, months_after

# --- Statements: cash, profit and loss, and balance sheet by fiscal year; quarters and months folded beneath.

NAME = "Statements"
_FIRST = 2  # column of the first period
_WIDTH = 16  # of a column, in characters
_LEVELS = 3  # years, quarters, months


class StatementLayout(NamedTuple):
    """Where the statements of a model stand: the row of each line, the columns of the years compared, the figures."""

    rows: dict[str, int]  # by the name of the line
    years: dict[int, str]  # column -> title
    figures: dict[tuple[str, int], float]  # as delivered, by line and column
    unit: str


class _Period(NamedTuple):
    """A column of the sheet: a fiscal year, quarter or month, the months in it, and its level in the outline."""

    title: str
    first_month: int
    last_month: int
    level: int


def _periods(model: LiveModel, months: Iterable[int], level: int = 0) -> Iterator[_Period]:
    """Yield years, each followed by its quarters and these by their months."""
    for title, part in groupby(months, lambda month: model.periods[month][level]):
        members = list(part)
        yield _Period(title, members[0], members[-1], level)
        if level < _LEVELS - 1:
            yield from _periods(model, members, level + 1)


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: FlowRows
) -> dict[str, StatementLayout]:
    """Write the statements of every model that has books, all live; return where they stand."""
    sheet.title("Statements by fiscal year")
    sheet.row("Expand the years above the columns to see quarters and months. Costs are positive.")
    places = {}
    for model in models:
        # as far as the sheet of months reaches; what lies beyond the comparison as delivered is folded away
        periods = list(_periods(model, range(len(model.periods))))
        years = {
            column: period.title
            for column, period in enumerate(periods, _FIRST)
            if not period.level and period.first_month <= model.compared_months
        }
        unit = shown_usd(float(abs(values[model.key]["assets_usd"]).max()))
        layout = places[model.key] = StatementLayout({}, years, {}, unit)
        for column, period in enumerate(periods, _FIRST):
            beyond = period.first_month > model.compared_months
            fold = {"level": min(period.level + beyond, _LEVELS), "hidden": True} if period.level or beyond else {}
            sheet.page.set_column(column, column, _WIDTH, None, fold)
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        for block, rows in groupby(ROWS, lambda row: row.block):
            sheet.skip()
            sheet.heading(
                f"{block}, {unit.removesuffix(' in whole')}",
                "name",
                *(period.title for period in periods),
                figures_from=_FIRST,
            )
            for row in rows:
                is_total = row.name in _STATEMENT_TOTALS
                layout.rows[row.name] = sheet.next_row
                cells = []
                for column, period in enumerate(periods, _FIRST):
                    cell = _statement_cell(model, flows, row, values[model.key], period)
                    layout.figures[row.name, column] = cell.value
                    cells.append(Cell(cell, "answer" if is_total else "plain", unit))
                sheet.row(Cell(row.description, "answer" if is_total else "plain"), Cell(row.name, "unit"), *cells)
        # how far the balance sheet is from balancing, over all periods: the sheet Checks reads it
        assets, debts, equity = (
            f"{address(layout.rows[f'end_{name}_usd'], _FIRST, fixed=True)}"
            f":{address(layout.rows[f'end_{name}_usd'], _FIRST + len(periods) - 1, fixed=True)}"
            for name in ("assets", "debts", "equity")
        )
        text = f"SUMPRODUCT(ABS(ROUND({assets}-{debts}-{equity},4)))"  # a hundredth of a cent: less is rounding
        unbalanced = Cell(Formula(text, 0.0), "plain", "USD")
        at = sheet.row("assets less debts less equity, over all periods", None, unbalanced)
        book.define(model.cell_name("unbalanced_usd"), NAME, at, _FIRST)
    sheet.fold_names()
    sheet.page.freeze_panes(0, _FIRST)
    sheet.page.repeat_columns(0, _FIRST - 1)
    sheet.page.fit_to_pages(1, 0)
    sheet.stand_upright()
    return places


_STATEMENT_TOTALS = ("cash_own_usd", "book_own_usd", "end_assets_usd", "end_debts_usd", "end_equity_usd")


def _statement_cell(model: LiveModel, flows: FlowRows, row: Row, values: Mapping[str, Any], period: _Period) -> Formula:
    """Return a line of a statement in one period: the monthly lines behind it, each with its sign."""
    text, amount = "", 0.0
    for sign, name, how in row.terms:
        series, row_of_months = values[name], flows[model.key, name]
        first, last = 0 if how == "so_far" else period.first_month, period.last_month
        last_cell = address(row_of_months, FIRST_MONTH + last)
        if how == "end":  # a balance: what stands at the end
            part, value = f"'{FLOWS}'!{last_cell}", series[last]
        elif how == "change":  # of a balance since the end of the period before
            before = f"'{FLOWS}'!{address(row_of_months, FIRST_MONTH + first - 1)}" if first else "0"
            part = f"('{FLOWS}'!{last_cell}-{before})"
            value = series[last] - (series[first - 1] if first else 0.0)
        elif how == "sum" and first == last:  # a single month needs no sum
            part, value = f"'{FLOWS}'!{last_cell}", series[last]
        else:  # what flows in the period, or has flowed so far
            part = f"SUM('{FLOWS}'!{address(row_of_months, FIRST_MONTH + first)}:{last_cell})"
            value = series[first : last + 1].sum()
        text += f"{'-' if sign < 0 else '+'}{part}"
        amount += sign * float(value)
    return Formula(text.lstrip("+"), amount)


# --- Budget: cost by month at even odds (P50), and with the contingency that covers 80 % of outcomes.

BUDGET = "Budget"
_Z80, _Z90 = 0.8416, 1.2816  # standard deviations up to the 80th and 90th percentile
# lines of the statement of cash that a budget shows; the last is their sum
_OWNING = (
    "cash_purchase_usd",
    "cash_running_usd",
    "cash_financing_usd",
    "cash_tax_usd",
    "cash_proceeds_usd",
    "cash_own_usd",
)
_SPARE_MONTHS = 6  # rows beyond the run, so that a slower run still fits


def write_budget(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], as_of: str
) -> dict[str, tuple[int, int]]:
    """Spread each run's cost evenly over its calendar days; return the rows of each run's first and last month."""
    try:
        today = date.fromisoformat(as_of)
    except ValueError:  # a saved answer may lack its day: months then have numbers alone
        today = None
    return {model.key: _write_run(book, sheet, model, values[model.key], today) for model in models}


def is_run(model: LiveModel) -> bool:
    """Say whether a model has days over which its cost spreads."""
    return {"days", "cost_usd", "cost_high_usd"} <= {line.name for line in model.derived}


def write_owning(
    book: Workbook, sheet: Sheet, model: LiveModel, layout: StatementLayout, draws: Mapping[str, Any] | None
) -> None:
    """Write the budget of owning by fiscal year, live, with the contingency that covers 80 % of the draws."""
    p50, p90 = ((draws or {}).get(f"own_{name}_usd") or 0.0 for name in ("p50", "p90"))
    # of a lognormal: log(P80 ÷ P50) is to log(P90 ÷ P50) as the one number of standard deviations to the other
    ratio = (p90 / p50) ** (_Z80 / _Z90) if p50 > 0 and p90 > 0 else 1.0
    name = model.cell_name("owning_p80_ratio")
    sheet.row(Cell(model.title, "heading"))
    sheet.row("P80 ÷ P50 of owning comes from the simulation as delivered: a lognormal through its P50 and P90.")
    book.define(name, BUDGET, sheet.row("P80 ÷ P50", None, Cell(ratio, "input")), 2)
    sheet.heading(layout.unit.removesuffix(" in whole"), "name", *layout.years.values(), figures_from=2)
    sheet.page.set_column(2, 1 + len(layout.years), _WIDTH)
    for line in _OWNING:
        style = "answer" if line == _OWNING[-1] else "plain"
        cells = []
        for column in layout.years:
            year = f"'{NAME}'!{address(layout.rows[line], column)}"
            cells.append(Cell(Formula(year, layout.figures[line, column]), style, layout.unit))
        total = sheet.row(next(row.description for row in ROWS if row.name == line), Cell(line, "unit"), *cells)
    # a year in which more comes in than goes out, as when the servers are sold, needs no contingency
    contingency = []
    for at, column in enumerate(layout.years, 2):
        usd = max(layout.figures[_OWNING[-1], column], 0.0) * (ratio - 1)
        contingency.append(Cell(Formula(f"MAX({address(total, at)},0)*({name}-1)", usd), "plain", layout.unit))
    sheet.row("contingency to P80, none on proceeds", None, *contingency)
    sheet.skip()


def _write_run(
    book: Workbook, sheet: Sheet, model: LiveModel, values: Mapping[str, Any], today: date | None
) -> tuple[int, int]:
    """Write the budget of a run month by month; return the rows of its first and last month."""
    cost, high, days = (plain(values[name]) for name in ("cost_usd", "cost_high_usd", "days"))
    names = {name: model.cell_name(name) for name in ("cost_usd", "cost_high_usd", "days")}
    sheet.skip()
    sheet.row(Cell(model.title, "heading"))
    sheet.row(
        "The range holds 80 % of outcomes: its high end is taken as the P90 of a lognormal distribution, "
        "which gives P80."
    )
    ratio = (high / cost) ** (_Z80 / _Z90) if cost > 0 else 1.0
    # what the table below rests on, each in a cell with a name
    length = DAYS_PER_YEAR / MONTHS_PER_YEAR
    per_month = _setting(book, sheet, model, "days_per_month", length, "days in a month")
    z80 = _setting(book, sheet, model, "z80_ratio", _Z80, "standard deviations up to the 80th percentile")
    z90 = _setting(book, sheet, model, "z90_budget_ratio", _Z90, "standard deviations up to the 90th percentile")
    text = f"({names['cost_high_usd']}/{names['cost_usd']})^({z80}/{z90})"
    p80 = model.cell_name("p80_ratio")
    book.define(p80, BUDGET, sheet.row("P80 ÷ P50", None, "ratio", Formula(text, ratio)), 3)
    sheet.heading("month", "starts", "share of the run", "P50, USD", "P80, USD", "contingency, USD", "P80 so far, USD")
    first = sheet.next_row
    so_far = 0.0
    months = math.ceil(days / length)
    for month in range(1, months + _SPARE_MONTHS + 1):
        # the part of the run's days that falls into the month, of equal months from today on
        share = max(0.0, min(days, month * length) - (month - 1) * length) / days
        starts = "" if today is None else str(months_after(today.replace(day=1), month - 1))[:7]
        so_far += share * cost * ratio
        a, c, d, e = (address(sheet.next_row, column) for column in (0, 2, 3, 4))
        part = f"MAX(0,MIN({names['days']},{a}*{per_month})-({a}-1)*{per_month})/{names['days']}"
        total = f"{e}+{address(sheet.next_row - 1, 6)}" if month > 1 else e
        sheet.row(
            month,
            starts,
            Cell(Formula(part, share), "plain", "fraction of one"),
            Cell(Formula(f"{c}*{names['cost_usd']}", share * cost), "plain", "USD"),
            Cell(Formula(f"{d}*{p80}", share * cost * ratio), "plain", "USD"),
            Cell(Formula(f"{e}-{d}", share * cost * (ratio - 1)), "plain", "USD"),
            Cell(Formula(total, so_far), "plain", "USD"),
        )
    last = sheet.next_row - 1
    totals = (
        (1.0, "fraction of one"),
        (cost, "USD"),
        (cost * ratio, "USD"),
        (cost * (ratio - 1), "USD"),
    )
    sums = [
        Cell(Formula(f"SUM({address(first, column)}:{address(last, column)})", value), "answer", unit)
        for column, (value, unit) in enumerate(totals, 2)
    ]
    total_row = sheet.row(Cell("total", "answer"), None, *sums)
    book.define(model.cell_name("budget_share"), BUDGET, total_row, 2)
    return first, first + max(months, 1) - 1


def _setting(book: Workbook, sheet: Sheet, model: LiveModel, name: str, value: float, description: str) -> str:
    row = sheet.row(name, description, "", Cell(value, "input"))
    book.define(model.cell_name(name), BUDGET, row, 3)
    return model.cell_name(name)


# --- Currency: cash by year and present values in another currency, live, at the rates of its months.

CURRENCY = "Currency"
_SIDES = {"own": "owning", "rent": "renting"}


def write_currency(
    sheet: Sheet, model: LiveModel, values: Mapping[str, Any], flows: FlowRows, currency: Mapping[str, Any], months: int
) -> dict[str, str]:
    """Write the rates, which may be changed, and cash and present values at them; return where the latter stand."""
    code, rates = currency["currency"], currency["rates"]
    sheet.title(f"In {code}: {model.title}")
    sheet.row(
        f"USD for one {code}: {currency['forward']}, spot of {currency['usd_per_unit_on']};"
        f" discounted: {currency['discounting']}."
    )
    sheet.page.freeze_panes(0, _FIRST)
    # no month may become a row of hashes when a rate is changed: room for ten times as much
    width = max(12, len(f"-{max(map(abs, (*currency['cash_own'], *currency['cash_rent']))) * 10:,.0f}"))
    sheet.page.set_column(_FIRST, _FIRST + months, width)
    sheet.skip()
    top = sheet.row(Cell("month", "head"), Cell("", "head"), *(Cell(month, "head") for month in range(months + 1)))
    row = sheet.row(f"USD for one {code}", None, *(Cell(rate, "input", "USD per unit") for rate in rates))

    def across(line: int) -> str:
        return f"{address(line, _FIRST, fixed=True)}:{address(line, _FIRST + months, fixed=True)}"

    # the cash of each side by month, at the rate of the month
    cash = {}
    for side, label in _SIDES.items():
        line = flows[model.key, f"{side}_total_usd"]
        cells = []
        for month, rate in enumerate(rates):
            text = f"'{FLOWS}'!{address(line, FIRST_MONTH + month)}/{address(row, _FIRST + month)}"
            amount = float(values[f"{side}_total_usd"][month]) / rate
            cells.append(Cell(Formula(text, amount), "plain", "USD in whole"))
        cash[side] = sheet.row(label, None, *cells)
    sheet.skip()
    # and by year: what was paid up to its end less what was paid before; year 0 is the start
    years = -(-months // MONTHS_PER_YEAR)
    head = sheet.row(
        Cell(f"cash in {code}", "head"), Cell("total", "head"), *(Cell(n, "head", "year") for n in range(years + 1))
    )
    for side, label in _SIDES.items():
        cells = []
        for number, entry in enumerate(currency["by_year"]):
            year, line_cells = address(head, _FIRST + number, fixed=True), across(cash[side])
            text = f'SUMIF({across(top)},"<="&{MONTHS_PER_YEAR}*{year},{line_cells})'
            if number:
                text += f'-SUMIF({across(top)},"<="&{MONTHS_PER_YEAR}*({year}-1),{line_cells})'
            cells.append(Cell(Formula(text, entry[side]), "plain", "USD in whole"))
        total = Formula(f"SUM({across(cash[side])})", sum(entry[side] for entry in currency["by_year"]))
        sheet.row(label, Cell(total, "answer", "USD in whole"), *cells)
    sheet.skip()
    # Present values are taken at the cost of capital given for the currency, else at the one that the rates imply:
    # then they are those in USD at the spot rate.
    spot = address(row, _FIRST, fixed=True)
    if currency["discounting"].startswith("given"):
        wacc_label = f"cost of capital in {code}, a year"
        wacc_row = sheet.row(wacc_label, Cell(currency["wacc_fraction"], "input", "fraction of one"))
        wacc = address(wacc_row, 1, fixed=True)
        compared = _compared(model, flows, "m", months)
        ratio = f'(1+IF({model.cell_name("wacc_convention")}="nominal",{wacc}/12,(1+{wacc})^(1/12)-1))^-{compared}'
        texts = {
            side: f"SUMPRODUCT({_compared(model, flows, series, months)}/{across(row)}*{ratio})"
            for side, series in (("own", "own_in_cash_usd"), ("rent", "rent_total_usd"))
        }
        # a loan is a debt in USD: its value is that in USD, whatever capital costs in the other currency
        texts["own"] += f"+{model.cell_name('npv_financing_usd')}/{spot}"
    else:
        texts = {side: f"{model.cell_name(f'npv_{side}_usd')}/{spot}" for side in _SIDES}
    present = {}
    for side, label in _SIDES.items():
        cell = Cell(Formula(texts[side], currency[f"npv_{side}"]), "answer", "USD in whole")
        present[side] = sheet.row(f"{label}, present value in {code}", cell)
    saving = Formula(
        f"{address(present['rent'], 1)}-{address(present['own'], 1)}", currency["npv_rent"] - currency["npv_own"]
    )
    sheet.row(f"owning saves, in {code}", Cell(saving, "answer", "USD in whole"))
    sheet.leave_unprinted()
    labels = {f"Buying, in {code}": present["own"], f"Renting, in {code}": present["rent"]}
    return {label: f"'{sheet.name}'!{address(at, 1, fixed=True)}" for label, at in labels.items()}


def _compared(model: LiveModel, flows: FlowRows, name: str, months: int) -> str:
    """Return the months compared of a monthly line."""
    row = flows[model.key, name]
    return f"'{FLOWS}'!{address(row, FIRST_MONTH, fixed=True)}:{address(row, FIRST_MONTH + months, fixed=True)}"
