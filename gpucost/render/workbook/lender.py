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


class _CovenantTest(NamedTuple):
    """A covenant on the sheet: its input, what it is called, the months that it tests, and its figures' unit."""

    limit: str
    description: str
    series: str
    breach: str
    unit: str


_COVENANTS = (
    _CovenantTest("min_dscr_ratio", "coverage at least", "dscr_ratio", "dscr_breach", "ratio"),
    _CovenantTest("max_ltv_fraction", "debt to resale value at most", "ltv_fraction", "ltv_breach", "fraction of one"),
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
    import numpy as np

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
    # The lowest coverage and the highest debt to value, each with its month. A month without debt service has no
    # coverage: it is moved far above every other, so that the minimum passes it by.
    service, coverage, ltv = (values[name] for name in ("debt_service_usd", "dscr_ratio", "ltv_fraction"))
    served = coverage + (service <= 0) * _FAR
    idle, line, share = (months(name) for name in ("debt_service_usd", "dscr_ratio", "ltv_fraction"))
    worst = {"dscr_ratio": float(served.min()), "ltv_fraction": float(ltv.max())}
    sheet.heading("worst months", "name", "figure", "month")
    # what keeps a month from being the worst: {0} is the cell of the figure; nine digits, for rounding differs
    for name, description, formula, others, month, unit_of_figure in (
        (
            "dscr_ratio",
            "lowest coverage over twelve months",
            f"SUMPRODUCT(MIN({line}+({idle}<=0)*{_FAR:.0f}))",
            f"({idle}<=0)+(ROUND({line},9)>ROUND({{0}},9))",
            int(np.argmin(np.round(served, 9))),
            "ratio",
        ),
        (
            "ltv_fraction",
            "highest debt to resale value",
            f"MAX({share})",
            f"(ROUND({share},9)<ROUND({{0}},9))",
            int(np.argmax(np.round(ltv, 9))),
            "fraction of one",
        ),
    ):
        other = others.format(address(sheet.next_row, _FIRST))
        first_month = f"SUMPRODUCT(MIN({months('m')}+({other})*{_FAR:.0f}))"
        row = sheet.row(
            description,
            Cell(f"worst_{name}", "unit"),
            Cell(Formula(formula, worst[name]), "answer", unit_of_figure),
            Cell(Formula(first_month, float(month)), "plain", "months"),
        )
        book.define(model.cell_name(f"worst_{name}"), sheet.name, row, _FIRST)
    sheet.skip()
    sheet.heading("covenant", "name", "limit", "worst month", "headroom", "first broken", "verdict")
    for test in _COVENANTS:
        # a covenant that nobody stated has a row too: its limit may be given on the sheet Inputs
        stated: Mapping[str, Any] = next((row for row in lender["covenants"] if row["name"] == test.limit), {})
        worst_cell, limit = model.cell_name(f"worst_{test.series}"), model.cell_name(test.limit)
        is_least = test.limit == "min_dscr_ratio"
        share = f"1-{limit}/{worst_cell}" if is_least else f"1-{worst_cell}/{limit}"
        broken, headroom = [int(flag) for flag in values[test.breach]], stated.get("headroom_fraction")
        first_broken = float(broken.index(1)) if 1 in broken else "none"
        verdict = ("BROKEN" if 1 in broken else "kept") if stated else "not stated"
        is_broken = f"SUM({months(test.breach)})>0"
        sheet.row(
            test.description,
            Cell(test.limit, "unit"),
            Cell(Formula(f'IF({limit}>0,{limit},"not stated")', stated.get("limit", "not stated")), "plain", test.unit),
            Cell(Formula(worst_cell, stated.get("worst", worst[test.series])), "plain", test.unit),
            Cell(
                Formula(f'IF(AND({limit}>0,{worst_cell}>0),{share},"none")', "none" if headroom is None else headroom),
                "plain",
                "fraction of one",
            ),
            Cell(Formula(f'IFERROR(MATCH(1,{months(test.breach)},0)-1,"none")', first_broken), "plain", "months"),
            Cell(Formula(f'IF({limit}>0,IF({is_broken},"BROKEN","kept"),"not stated")', verdict), "answer"),
        )
    sheet.skip()
    sheet.row(
        "Headroom: by how much the cash available, or the resale value, may fall in the worst month."
        " Change a limit on the sheet Inputs."
    )
    # the area of the red verdicts: a letter is enough, for a loan runs no more years than the alphabet has columns
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
    # what flows is added up over the months of each year
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
    # a payment is interest and principal
    service, interest = rows["debt_service_usd"], rows["interest_usd"]
    principal = [a - b for a, b in zip(figures["debt_service_usd"], figures["interest_usd"], strict=True)]
    texts = [f"{address(service, column)}-{address(interest, column)}" for column in _columns(years)]
    cells = [Cell(Formula(*pair), "plain", unit) for pair in zip(texts, principal, strict=True)]
    rows["principal_usd"] = sheet.row("of which principal", Cell("principal_usd", "unit"), *cells)
    covered = _ratios(figures, rows, "serviced_cash_usd", "debt_service_usd", 0, "ratio")
    rows["dscr_ratio"] = sheet.row("coverage (DSCR)", Cell("dscr_ratio", "unit"), *covered)
    # what stands is that of the year's last month
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
