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
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR

# --- Statements: cash, profit and loss, and balance sheet by fiscal year; quarters and months folded beneath.

NAME = "Statements"
_FIRST = 2  # column of the first period
_WIDTH = 16  # of a column, in characters
_LEVELS = 3  # years, quarters, months


class StatementLayout(NamedTuple):
    """Where the statements of a model stand: the row of each line, the columns of the years compared, the figures."""

    rows: dict[str, int]
    years: dict[int, str]
    figures: dict[tuple[str, int], float]
    unit: str


class StatementSpan(NamedTuple):
    """A column of the sheet: a fiscal year, quarter or month, its level in the outline, and the months in it."""

    title: str
    first: int
    last: int
    level: int


def spans(model: LiveModel) -> list[StatementSpan]:
    """Return years, each followed by its quarters and these by their months, as far as the sheet of months reaches."""
    return list(_inside(model, range(len(model.periods)), 0))


def _inside(model: LiveModel, months: Iterable[int], level: int) -> Iterator[StatementSpan]:
    for title, part in groupby(months, lambda month: model.periods[month][level]):
        members = list(part)
        yield StatementSpan(title, members[0], members[-1], level)
        if level < _LEVELS - 1:
            yield from _inside(model, members, level + 1)


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: FlowRows
) -> dict[str, StatementLayout]:
    """Write the statements of every model that has books, all live; return where they stand."""
    sheet.title("Statements by fiscal year")
    sheet.row("Expand the years above the columns to see quarters and months. Costs are positive.")
    places = {}
    for model in models:
        columns = spans(model)
        years = {
            at: span.title
            for at, span in enumerate(columns, _FIRST)
            if not span.level and span.first <= model.compared_months
        }
        unit = shown_usd(float(abs(values[model.key]["assets_usd"]).max()))
        location = places[model.key] = StatementLayout({}, years, {}, unit)
        for column, span in enumerate(columns, _FIRST):
            beyond = span.first > model.compared_months
            fold = {"level": min(span.level + beyond, _LEVELS), "hidden": True} if span.level or beyond else {}
            sheet.page.set_column(column, column, _WIDTH, None, fold)
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        for block, rows in groupby(ROWS, lambda row: row.block):
            sheet.skip()
            sheet.heading(
                f"{block}, {unit.removesuffix(' in whole')}",
                "name",
                *(span.title for span in columns),
                figures_from=_FIRST,
            )
            for row in rows:
                _line(sheet, model, row, columns, values[model.key], flows, location)
        _check(book, sheet, model, columns, location)
    sheet.fold_names()
    sheet.page.freeze_panes(0, _FIRST)
    sheet.page.repeat_columns(0, _FIRST - 1)
    sheet.page.fit_to_pages(1, 0)
    sheet.stand_upright()
    return places


def _line(
    sheet: Sheet,
    model: LiveModel,
    row: Row,
    columns: list[StatementSpan],
    values: Mapping[str, Any],
    flows: FlowRows,
    location: StatementLayout,
) -> None:
    location.rows[row.name] = sheet.next_row
    total = row.name in ("cash_own_usd", "book_own_usd", "end_assets_usd", "end_debts_usd", "end_equity_usd")
    cells = []
    for at, span in enumerate(columns, _FIRST):
        parts = [_term(model, flows, name, how, span) for _, name, how in row.terms]
        text = "".join(f"{'-' if sign < 0 else '+'}{part}" for (sign, _, _), part in zip(row.terms, parts, strict=True))
        amount = sum(sign * _value(values[name], how, span) for sign, name, how in row.terms)
        location.figures[row.name, at] = amount
        cells.append(Cell(Formula(text.lstrip("+"), amount), "answer" if total else "plain", location.unit))
    sheet.row(Cell(row.description, "answer" if total else "plain"), Cell(row.name, "unit"), *cells)


def _term(model: LiveModel, flows: FlowRows, name: str, how: str, span: StatementSpan) -> str:
    row = flows[model.key, name]

    def at(month: int) -> str:
        return address(row, FIRST_MONTH + month)

    if how == "end" or (how == "sum" and span.first == span.last):
        return f"'{FLOWS}'!{at(span.last)}"
    if how == "change":
        before = f"'{FLOWS}'!{at(span.first - 1)}" if span.first else "0"
        return f"('{FLOWS}'!{at(span.last)}-{before})"
    return f"SUM('{FLOWS}'!{at(0 if how == 'so_far' else span.first)}:{at(span.last)})"


def _value(line: Any, how: str, span: StatementSpan) -> float:
    if how == "end":
        return float(line[span.last])
    if how == "change":
        return float(line[span.last] - (line[span.first - 1] if span.first else 0.0))
    return float(line[0 if how == "so_far" else span.first : span.last + 1].sum())


def _check(
    book: Workbook, sheet: Sheet, model: LiveModel, columns: list[StatementSpan], location: StatementLayout
) -> None:
    """Write how far the balance sheet is from balancing, over all periods."""

    def across(name: str) -> str:
        first, last = (
            address(location.rows[name], column, fixed=True) for column in (_FIRST, _FIRST + len(columns) - 1)
        )
        return f"{first}:{last}"

    assets, debts, equity = (across(f"end_{name}_usd") for name in ("assets", "debts", "equity"))
    text = f"SUMPRODUCT(ABS(ROUND({assets}-{debts}-{equity},4)))"  # a hundredth of a cent: less is rounding
    row = sheet.row("assets less debts less equity, over all periods", None, Cell(Formula(text, 0.0), "plain", "USD"))
    book.define(model.cell_name("unbalanced_usd"), NAME, row, _FIRST)


def books(models: list[LiveModel]) -> Iterator[LiveModel]:
    """Return the models that have books."""
    return (model for model in models if model.periods)


# --- Budget: cost by month at even odds (P50), and with the contingency that covers 80 % of outcomes.

BUDGET = "Budget"
_Z80, _Z90 = 0.8416, 1.2816  # standard deviations up to the 80th and 90th percentile
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
    return {model.key: _write_run(book, sheet, model, values[model.key], as_of) for model in models}


def is_run(model: LiveModel) -> bool:
    """Say whether a model has days over which its cost spreads."""
    return {"days", "cost_usd", "cost_high_usd"} <= {line.name for line in model.derived}


def write_owning(
    book: Workbook, sheet: Sheet, model: LiveModel, location: StatementLayout, drawn: Mapping[str, Any] | None
) -> None:
    """Write the budget of owning by fiscal year, live, with the contingency that covers 80 % of the draws."""
    p50, p90 = ((drawn or {}).get(f"own_{name}_usd") or 0.0 for name in ("p50", "p90"))
    # of a lognormal: log(P80 ÷ P50) is to log(P90 ÷ P50) as the one number of standard deviations to the other
    ratio = (p90 / p50) ** (_Z80 / _Z90) if p50 > 0 and p90 > 0 else 1.0
    name = model.cell_name("owning_p80_ratio")
    sheet.row(Cell(model.title, "heading"))
    sheet.row("P80 ÷ P50 of owning comes from the simulation as delivered: a lognormal through its P50 and P90.")
    book.define(name, BUDGET, sheet.row("P80 ÷ P50", None, Cell(ratio, "input")), 2)
    sheet.heading(location.unit.removesuffix(" in whole"), "name", *location.years.values(), figures_from=2)
    sheet.page.set_column(2, 1 + len(location.years), _WIDTH)
    for line in _OWNING:
        cells = [
            Cell(
                Formula(f"'{NAME}'!{address(location.rows[line], at)}", location.figures[line, at]),
                "answer" if line == _OWNING[-1] else "plain",
                location.unit,
            )
            for at in location.years
        ]
        total = sheet.row(next(row.description for row in ROWS if row.name == line), Cell(line, "unit"), *cells)
    paid = [max(location.figures[_OWNING[-1], at], 0.0) * (ratio - 1) for at in location.years]
    texts = [f"MAX({address(total, column)},0)*({name}-1)" for column in range(2, 2 + len(paid))]
    sheet.row(
        "contingency to P80, none on proceeds",
        None,
        *(Cell(Formula(*pair), "plain", location.unit) for pair in zip(texts, paid, strict=True)),
    )
    sheet.skip()


def _write_run(
    book: Workbook, sheet: Sheet, model: LiveModel, values: Mapping[str, Any], as_of: str
) -> tuple[int, int]:
    cost, high, days = (plain(values[name]) for name in ("cost_usd", "cost_high_usd", "days"))
    names = {name: model.cell_name(name) for name in ("cost_usd", "cost_high_usd", "days")}
    sheet.skip()
    sheet.row(Cell(model.title, "heading"))
    sheet.row(
        "The range holds 80 % of outcomes: its high end is taken as the P90 of a lognormal distribution, "
        "which gives P80."
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
    book.define(model.cell_name("budget_share"), BUDGET, total_row, 2)
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
    book.define(p80, BUDGET, row, 3)
    return per_month, p80


def _setting(book: Workbook, sheet: Sheet, model: LiveModel, name: str, value: float, description: str) -> str:
    row = sheet.row(name, description, "", Cell(value, "input"))
    book.define(model.cell_name(name), BUDGET, row, 3)
    return model.cell_name(name)


def _month_after(as_of: str, months: int) -> str:
    try:
        start = date.fromisoformat(as_of)
    except ValueError:
        return ""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return f"{year}-{month + 1:02d}"


# --- Currency: cash by year and present values in another currency, live, at the rates of its months.

CURRENCY = "Currency"


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
    width = max(12, len(f"-{max(map(abs, (*currency['cash_own'], *currency['cash_rent']))) * 10:,.0f}"))
    sheet.page.set_column(_FIRST, _FIRST + months, width)
    sheet.skip()
    top = sheet.row(Cell("month", "head"), Cell("", "head"), *(Cell(month, "head") for month in range(months + 1)))
    row = sheet.row(f"USD for one {code}", None, *(Cell(rate, "input", "USD per unit") for rate in rates))
    cash = {side: _cash(sheet, model, values, flows, side, row, rates) for side in ("own", "rent")}
    sheet.skip()
    years = -(-months // MONTHS_PER_YEAR)
    head = sheet.row(
        Cell(f"cash in {code}", "head"), Cell("total", "head"), *(Cell(n, "head", "year") for n in range(years + 1))
    )
    for side in ("own", "rent"):
        _years(sheet, side, cash[side], top, head, currency["by_year"], months)
    sheet.skip()
    own, rent = _present(sheet, model, flows, currency, row, months)
    sheet.leave_unprinted()
    cells = {f"Buying, in {code}": own, f"Renting, in {code}": rent}
    return {label: f"'{sheet.name}'!{address(at, 1, fixed=True)}" for label, at in cells.items()}


def _cash(
    sheet: Sheet, model: LiveModel, values: Mapping[str, Any], flows: FlowRows, side: str, row: int, rates: Any
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


def _years(sheet: Sheet, side: str, cash: int, top: int, head: int, years: Any, months: int) -> None:
    """Write the cash of a side by year; year 0 is the start."""
    heads, line = (
        f"{address(at, _FIRST, fixed=True)}:{address(at, _FIRST + months, fixed=True)}" for at in (top, cash)
    )
    texts = []
    for n in range(len(years)):
        year = address(head, _FIRST + n, fixed=True)
        before = f'-SUMIF({heads},"<="&{MONTHS_PER_YEAR}*({year}-1),{line})' if n else ""
        texts.append(f'SUMIF({heads},"<="&{MONTHS_PER_YEAR}*{year},{line}){before}')
    cells = [Cell(Formula(text, row[side]), "plain", "USD in whole") for text, row in zip(texts, years, strict=True)]
    total = Formula(f"SUM({line})", sum(row[side] for row in years))
    sheet.row({"own": "owning", "rent": "renting"}[side], Cell(total, "answer", "USD in whole"), *cells)


def _present(
    sheet: Sheet, model: LiveModel, flows: FlowRows, currency: Mapping[str, Any], row: int, months: int
) -> list[int]:
    """Write present values and return their rows.

    They are taken at the cost of capital given for the currency, else at the one that the rates imply.
    """
    spot = address(row, _FIRST, fixed=True)
    code = currency["currency"]
    if currency["discounting"].startswith("given"):
        rate = sheet.row(
            f"cost of capital in {code}, a year", Cell(currency["wacc_fraction"], "input", "fraction of one")
        )
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
    rows = []
    for side, label in (("own", "owning"), ("rent", "renting")):
        cell = Cell(Formula(texts[side], currency[f"npv_{side}"]), "answer", "USD in whole")
        rows.append(sheet.row(f"{label}, present value in {code}", cell))
    text = f"{address(rows[1], 1)}-{address(rows[0], 1)}"
    sheet.row(
        f"owning saves, in {code}",
        Cell(Formula(text, currency["npv_rent"] - currency["npv_own"]), "answer", "USD in whole"),
    )
    return rows


def _cut(model: LiveModel, flows: FlowRows, name: str, months: int) -> str:
    """Return the months compared of a monthly line."""
    row = flows[model.key, name]
    return f"'Cash flows'!{address(row, FIRST_MONTH, fixed=True)}:{address(row, FIRST_MONTH + months, fixed=True)}"
