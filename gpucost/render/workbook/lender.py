"""The Lender sheet: debt service coverage, debt to resale value and covenants, live on the sheet of months."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address, shown_usd
from gpucost.render.workbook.calculations import FLOWS, FlowRows, scalar_reference
from gpucost.render.workbook.live import LiveModel
from gpucost.units import MONTHS_PER_YEAR

NAME = "Lender"
WIDTHS = (44, 28)
_FIRST = 2  # column of the first year
_WIDTH = 15
_FAR = 1e9  # above every coverage


class CovenantTest(NamedTuple):
    """A covenant on the sheet: its input, what it is called, the months that it tests, and its figures' unit."""

    limit: str
    description: str
    series: str
    breach: str
    unit: str


_COVENANTS = (
    CovenantTest("min_dscr_ratio", "coverage at least", "dscr_ratio", "dscr_breach", "ratio"),
    CovenantTest("max_ltv_fraction", "debt to resale value at most", "ltv_fraction", "ltv_breach", "fraction of one"),
)


def write(
    book: Workbook,
    sheet: Sheet,
    model: LiveModel,
    values: Mapping[str, Any],
    flows: FlowRows,
    lender: Mapping[str, Any],
) -> None:
    """Write coverage and debt to value by year, the worst months, and each covenant with its headroom."""

    def months(name: str) -> str:
        return scalar_reference(model, flows, name)

    years = list(range(1, int(lender["years"][-1]["year"]) + 1))
    unit = shown_usd(float(lender["lent_usd"]))
    sheet.title(f"Lender's view: {model.title}")
    sheet.paragraph(
        f"What pays the debt: {lender['income']}. Less running costs, replacements, and income tax before interest."
        " Coverage is tested monthly over the last twelve; what reselling the hardware settles is no debt service.",
        max(_FIRST + len(years) - 1, 6),
    )
    sheet.skip()
    for column, _ in enumerate(years, _FIRST):
        sheet.page.set_column(column, column, _WIDTH)
    heads = (f"in {unit.removesuffix(' in whole')}", "name")
    head = sheet.row(*(Cell(text, "head") for text in heads), *(Cell(year, "head", "year") for year in years))
    rows = _write_years(sheet, model, values, flows, years, head, unit)
    sheet.skip()
    _write_worst(book, sheet, model, values, months)
    sheet.skip()
    sheet.heading("covenant", "name", "limit", "worst month", "headroom", "first broken", "verdict")
    for test in _COVENANTS:
        _write_covenant(sheet, model, test, values, months, lender)
    sheet.skip()
    sheet.row(
        "Headroom: by how much the cash available, or the resale value, may fall in the worst month."
        " Change a limit on the sheet Inputs."
    )
    last = address(rows["ltv_fraction"], _FIRST + len(years) - 1)
    red = book.file.add_format({"font_color": "#C00000", "bold": True})
    area = f"A1:{last[0]}{sheet.next_row}"
    sheet.page.conditional_format(area, {"type": "cell", "criteria": "==", "value": '"BROKEN"', "format": red})
    sheet.page.freeze_panes(0, _FIRST)
    sheet.fold_names()


def _write_years(
    sheet: Sheet, model: LiveModel, values: Mapping[str, Any], flows: FlowRows, years: list[int], head: int, unit: str
) -> dict[str, int]:
    """Write a row for each figure, a column for each year."""
    rows: dict[str, int] = {}
    figures: dict[str, list[float]] = {}
    calendar = scalar_reference(model, flows, "plan_year")
    for name, description in (
        ("serviced_cash_usd", "cash available for debt service"),
        ("debt_service_usd", "debt service"),
        ("interest_usd", "of which interest"),
    ):
        line = scalar_reference(model, flows, name)
        in_year = values["plan_year"]
        figures[name] = [float(values[name][in_year == year - 1].sum()) for year in years]
        cells = [
            Cell(Formula(f"SUMIF({calendar},{address(head, column, fixed=True)}-1,{line})", amount), "plain", unit)
            for column, amount in zip(_columns(years), figures[name], strict=True)
        ]
        rows[name] = sheet.row(description, Cell(name, "unit"), *cells)
    service, interest = rows["debt_service_usd"], rows["interest_usd"]
    principal = [a - b for a, b in zip(figures["debt_service_usd"], figures["interest_usd"], strict=True)]
    texts = [f"{address(service, column)}-{address(interest, column)}" for column in _columns(years)]
    cells = [Cell(Formula(*pair), "plain", unit) for pair in zip(texts, principal, strict=True)]
    rows["principal_usd"] = sheet.row("of which principal", Cell("principal_usd", "unit"), *cells)
    covered = _ratios(figures, rows, "serviced_cash_usd", "debt_service_usd", 0, "ratio")
    rows["dscr_ratio"] = sheet.row("coverage (DSCR)", Cell("dscr_ratio", "unit"), *covered)
    for name, description in (
        ("debt_owed_usd", "debt outstanding at the end of the year"),
        ("pledged_value_usd", "resale value of the hardware then"),
    ):
        row = flows[model.key, name]
        figures[name] = [float(values[name][_last(model, year)]) for year in years]
        cells = [
            Cell(Formula(f"'{FLOWS}'!{address(row, 5 + _last(model, year), fixed=True)}", amount), "plain", unit)
            for year, amount in zip(years, figures[name], strict=True)
        ]
        rows[name] = sheet.row(description, Cell(name, "unit"), *cells)
    shares = _ratios(figures, rows, "debt_owed_usd", "pledged_value_usd", 1, "fraction of one")
    rows["ltv_fraction"] = sheet.row("debt to resale value (LTV)", Cell("ltv_fraction", "unit"), *shares)
    return rows


def _ratios(
    figures: Mapping[str, Sequence[float]], rows: Mapping[str, int], top: str, bottom: str, least: int, unit: str
) -> list[Cell]:
    """Return one row divided by another, year by year; none where the divisor is at most the least."""
    cells = []
    for column, (above, below) in enumerate(zip(figures[top], figures[bottom], strict=True), _FIRST):
        over, under = address(rows[top], column), address(rows[bottom], column)
        text = f'IF({under}>{least},{over}/{under},"none")'
        cells.append(Cell(Formula(text, above / below if below > least else "none"), "answer", unit))
    return cells


def _columns(years: list[int]) -> range:
    return range(_FIRST, _FIRST + len(years))


def _last(model: LiveModel, year: int) -> int:
    """Return the last month of a year of the comparison as delivered."""
    return min(MONTHS_PER_YEAR * year, model.compared_months)


def _write_worst(book: Workbook, sheet: Sheet, model: LiveModel, values: Mapping[str, Any], months: Any) -> None:
    """Write the lowest coverage and the highest debt to value, each with its month; later rows read them by name."""
    import numpy as np

    service, coverage, ltv = (values[name] for name in ("debt_service_usd", "dscr_ratio", "ltv_fraction"))
    lowest = float((coverage + (service <= 0) * _FAR).min())
    highest = float(ltv.max())
    idle, line, share = (months(name) for name in ("debt_service_usd", "dscr_ratio", "ltv_fraction"))
    text = f"SUMPRODUCT(MIN({line}+({idle}<=0)*{_FAR:.0f}))"
    sheet.heading("worst months", "name", "figure", "month")
    off = {"worst_dscr_ratio": f"({idle}<=0)+(ROUND({line},9)>ROUND({{0}},9))"}
    off["worst_ltv_fraction"] = f"(ROUND({share},9)<ROUND({{0}},9))"
    first = {
        "worst_dscr_ratio": int(np.argmin(np.round(coverage + (service <= 0) * _FAR, 9))),
        "worst_ltv_fraction": int(np.argmax(np.round(ltv, 9))),
    }
    for name, description, found, formula, unit in (
        ("worst_dscr_ratio", "lowest coverage over twelve months", lowest, text, "ratio"),
        ("worst_ltv_fraction", "highest debt to resale value", highest, f"MAX({share})", "fraction of one"),
    ):
        other = off[name].format(address(sheet.next_row, _FIRST))
        month = f"SUMPRODUCT(MIN({months('m')}+({other})*{_FAR:.0f}))"
        row = sheet.row(
            description,
            Cell(name, "unit"),
            Cell(Formula(formula, found), "answer", unit),
            Cell(Formula(month, float(first[name])), "plain", "months"),
        )
        book.define(model.cell_name(name), sheet.name, row, _FIRST)


def _write_covenant(
    sheet: Sheet,
    model: LiveModel,
    test: CovenantTest,
    values: Mapping[str, Any],
    months: Any,
    lender: Mapping[str, Any],
) -> None:
    covenant = next((row for row in lender["covenants"] if row["name"] == test.limit), None)
    worst = model.cell_name("worst_" + test.series)
    limit = model.cell_name(test.limit)
    least = test.limit == "min_dscr_ratio"
    share = f"1-{limit}/{worst}" if least else f"1-{worst}/{limit}"
    broken = [int(x) for x in values[test.breach]]
    first = broken.index(1) if 1 in broken else "none"
    verdict = "not stated" if covenant is None else "BROKEN" if 1 in broken else "kept"
    stated = {} if covenant is None else covenant
    headroom = stated.get("headroom_fraction")
    sheet.row(
        test.description,
        Cell(test.limit, "unit"),
        Cell(Formula(f'IF({limit}>0,{limit},"not stated")', stated.get("limit", "not stated")), "plain", test.unit),
        Cell(Formula(worst, stated.get("worst", _level(values, test))), "plain", test.unit),
        Cell(
            Formula(f'IF(AND({limit}>0,{worst}>0),{share},"none")', "none" if headroom is None else headroom),
            "plain",
            "fraction of one",
        ),
        Cell(
            Formula(f'IFERROR(MATCH(1,{months(test.breach)},0)-1,"none")', float(first) if first != "none" else first),
            "plain",
            "months",
        ),
        Cell(
            Formula(f'IF({limit}>0,IF(SUM({months(test.breach)})>0,"BROKEN","kept"),"not stated")', verdict), "answer"
        ),
    )


def _level(values: Mapping[str, Any], test: CovenantTest) -> float:
    series = values[test.series]
    if test.series == "ltv_fraction":
        return float(series.max())
    return float((series + (values["debt_service_usd"] <= 0) * _FAR).min())
