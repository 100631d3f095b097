"""The Calculations and Cash flows sheets, a model recomputed case by case, and the checks of the book on itself."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field

from gpucost.formula.language import Line, names
from gpucost.formula.spreadsheet import ALL_MONTHS, to_excel
from gpucost.money import comparison
from gpucost.render.workbook.book import POSSIBLE, Cell, Formula, Sheet, Workbook, address, column_letters, shown_usd
from gpucost.render.workbook.live import LiveModel, Value, needed

# --- Calculations and Cash flows: one live formula per row, every input by name, no figure inside a formula.

NAME, FLOWS, TABLES = "Calculations", "Cash flows", "Tables"
_VALUE = 3
COLUMN = "\x01"  # stands for the column of the month until the row is copied across
_NARROW = 11
FIRST_MONTH = 5  # column of month 0 on the Cash flows sheet
# lines of neither side that a reader of the cash flows looks for
TOTALS = frozenset(
    f"{name}_usd"
    for name in (
        "own_running",
        "own_in_cash",
        "own_financing",
        "own_total",
        "rent_services",
        "rent_total",
        "saving_in_cash",
        "saving",
    )
)
FlowRows = dict[tuple[str, str], int]  # (model, monthly line) -> row on the Cash flows sheet


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: FlowRows
) -> None:
    """Write the lines with one value, in the order in which they follow from each other."""
    sheet.title("Calculations")
    sheet.page.freeze_panes(sheet.heading("name", "meaning", "unit", "value", "formula in names") + 1, 1)
    for model in models:
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        group = ""
        for line in model.scalars:
            if line.group != group:
                group = line.group
                sheet.row(Cell(group, "note"))
            text, value = solved(
                to_excel(line.text, partial(scalar_reference, model, flows)), values[model.key][line.name]
            )
            style = "answer" if line.name in model.shown else "plain"
            live = Cell(Formula(text, value), style, shown_unit(line))
            description, formula = Cell(line.description, "wrap"), Cell(line.text, "wrap")
            row = sheet.row(line.name, description, line.measure, live, formula)
            book.define(model.cell_name(line.name), NAME, row, _VALUE)


def shown_unit(line: Line) -> str:
    """Return the unit that a line is shown in: a break-even beyond all hours is none."""
    return POSSIBLE if line.name == "breakeven_utilisation_fraction" else line.measure


def scalar_reference(model: LiveModel, flows: FlowRows, name: str) -> str:
    """Return how a formula outside the timeline names a quantity: a monthly line is its whole row."""
    name = name.removesuffix(ALL_MONTHS)
    if (model.key, name) in flows:
        row = flows[model.key, name]
        first, last = address(row, FIRST_MONTH, fixed=True), address(row, FIRST_MONTH + model.months, fixed=True)
        return f"'{FLOWS}'!{first}:{last}"
    return model.cell_name(name)


def solved(text: str, value: Any) -> tuple[str, Any]:
    """Let a figure that does not exist (the IRR of cash flows of one sign) read "none" in the workbook."""
    number = plain(value)
    if "IRR(" not in text and "NA(" not in text:
        return text, number
    return f'IFERROR({text},"none")', "none" if isinstance(number, float) and number != number else number


def plain(value: Any) -> Any:
    """Turn a NumPy scalar into what a cell stores."""
    return value if isinstance(value, str) else float(value)


def plan_rows(models: list[LiveModel]) -> FlowRows:
    """Decide on which row of the Cash flows sheet every monthly line stands."""
    rows: FlowRows = {}
    row = 3  # below the title and the note
    for model in models:
        if not model.monthly:
            continue
        row += 2  # an empty row and the model's title
        rows[model.key, "m"] = row
        for line in model.monthly:
            row += 1
            rows[model.key, line.name] = row
        row += 1
    return rows


def write_flows(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: FlowRows
) -> None:
    """Write one row per line and one column per month; each row holds one formula, copied across."""
    unit = shown_usd(_largest(models, values))
    sheet.title(f"Cash flows by month, in {unit.removesuffix(' in whole')}")
    sheet.row(Cell("Folded: intermediate lines, and lines that are zero as delivered.", "note"))
    sheet.page.freeze_panes(0, FIRST_MONTH)
    compared, longest = (max(getattr(model, name) for model in models) for name in ("compared_months", "months"))
    sheet.page.set_column(FIRST_MONTH, FIRST_MONTH + longest, month_width(models, values))
    if 0 < compared < longest:  # the months beyond the plan are folded away and not printed
        sheet.page.set_column(
            FIRST_MONTH + compared + 1,
            FIRST_MONTH + longest,
            month_width(models, values),
            None,
            {"level": 1, "hidden": True},
        )
    for model in models:
        if not model.monthly:
            continue
        sheet.next_row = flows[model.key, "m"] - 1
        dates = [Cell(name, "note") for _, _, name in model.periods[: model.months + 1]]
        sheet.row(Cell(model.title, "heading"), None, None, None, Cell("month of", "note") if dates else None, *dates)
        months = [Cell(month, "head") for month in range(model.months + 1)]
        sheet.row(*(Cell(text, "head") for text in ("name", "meaning", "unit", "side", "total")), *months)
        for line in model.monthly:
            read = line.name in TOTALS or (line.side and abs(values[model.key][line.name]).max() > 0)
            if not read:
                sheet.page.set_row(sheet.next_row, None, None, {"level": 1, "hidden": True})
            row, series = flows[model.key, line.name], values[model.key][line.name]
            assert row == sheet.next_row, "other sheets read this row"
            shown_in = unit if line.measure == "USD" else line.measure
            total = None
            if line.measure == "USD":  # ratios and balances do not add up
                span = f"{address(row, FIRST_MONTH)}:{address(row, FIRST_MONTH + model.months)}"
                total = Cell(Formula(f"SUM({span})", float(series.sum())), "plain", shown_in)
            # the formula is made once, with a sign in place of the column, and copied across
            template = to_excel(line.text, partial(_month_reference, model, flows))
            cells = []
            for month in range(model.months + 1):
                text = template.replace(COLUMN, column_letters(FIRST_MONTH + month))
                cells.append(Cell(Formula(text, float(series[month])), "plain", shown_in))
            sheet.row(line.name, line.description, shown_in.removesuffix(" in whole"), line.side, total, *cells)
    sheet.leave_unprinted()


def month_width(models: list[LiveModel], values: Mapping[str, Mapping[str, Any]]) -> float:
    """Return a width at which no figure of a month becomes a row of hashes, with room for ten times as much."""
    return max(_NARROW, len(f"-{10 * _largest(models, values):,.0f}") + 1)


def _largest(models: list[LiveModel], values: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest amount of a month, whatever its sign."""
    lines = ((values[model.key][line.name], line.measure) for model in models for line in model.monthly)
    return max(float(abs(series).max()) for series, unit in lines if unit == "USD")


def _month_reference(model: LiveModel, flows: FlowRows, name: str) -> str:
    """Return how a formula of the timeline names a quantity: a monthly line is its cell in the same month."""
    if name.endswith(ALL_MONTHS):
        return scalar_reference(model, flows, name)
    if (model.key, name) in flows:
        row = flows[model.key, name] + 1
        return f"{COLUMN}${row}" if name == "m" else f"{COLUMN}{row}"  # the heading of months stands in one row
    return model.cell_name(name)


def write_tables(book: Workbook, sheet: Sheet, models: list[LiveModel]) -> None:
    """Write the lookup tables, one column each, as named ranges."""
    sheet.title("Lookup tables")
    tables = [(model, name, list(table)) for model in models for name, table in model.tables.items()]
    head = sheet.heading(*(name for _, name, _ in tables))
    for index in range(max(len(table) for _, _, table in tables)):
        sheet.row(*(Cell(table[index], "input") if index < len(table) else None for _, _, table in tables))
    for column, (model, name, table) in enumerate(tables):
        book.define(model.cell_name(name), TABLES, head + 1, column, head + len(table))


# --- Cases: a column of scalars for each case, and only those monthly lines that the case changes.

CASES, CASE_FLOWS = "Cases", "Case flows"
_FIRST_CASE = 3  # column of the first case on the Cases sheet
_FIRST_MONTH = 2
_BASE_COLUMN = "\x02"  # stands for the column of the month on the sheet of months


class Case(Struct, frozen=True):
    """The model with some inputs changed, what Python finds for it, and cells that an input is taken from."""

    label: str
    changes: Mapping[str, Value]
    values: Mapping[str, Any]
    cells: Mapping[str, str] = field(default_factory=dict)  # input -> formula of the cell


class CaseBlock:
    """The recomputation of one model for some targets."""

    def __init__(self, model: LiveModel, cases: Sequence[Case], targets: Sequence[str], flows: FlowRows) -> None:
        self.model, self.cases, self.flows = model, list(cases), flows
        reached = {name for target in targets for name in needed(model, target)}
        self.inputs = [entry for entry in model.inputs if entry.name in reached]
        self.lines = [line for line in model.scalars if line.name in reached]
        monthly = [line for line in model.monthly if line.name in reached]
        # the inputs that a case changes and all that hangs on them; what it does not move is read from the model
        self.moved: list[set[str]] = []
        for case in self.cases:
            moved = set(case.changes)
            for line in (*self.lines, *monthly, *self.lines):  # answers read monthly lines, other scalars never do
                if moved.intersection(names(line.text)):
                    moved.add(line.name)
            self.moved.append(moved)
        self.monthly = [[line for line in monthly if line.name in moved] for moved in self.moved]
        self.rows: dict[str, int] = {}
        self.flow_rows: dict[tuple[int, str], int] = {}
        self.month_row = 0

    def plan(self, first_row: int) -> int:
        """Give every quantity its row on the Cases sheet; return the row after them."""
        listed = [entry.name for entry in self.inputs] + [line.name for line in self.lines]
        self.rows = {name: first_row + 3 + index for index, name in enumerate(listed)}
        return first_row + 3 + len(listed)

    def plan_flows(self, first_row: int) -> int:
        """Give every monthly line of every case that moves it a row; return the row after them."""
        if not any(self.monthly):
            return first_row
        self.month_row = first_row + 1
        row = self.month_row + 1
        for index, lines in enumerate(self.monthly):
            row += 1
            for line in lines:
                self.flow_rows[index, line.name] = row
                row += 1
        return row

    def write(self, sheet: Sheet) -> None:
        """Write the Cases sheet's block: a row per quantity, a column per case."""
        sheet.skip()
        sheet.row(Cell(self.model.title, "heading"))
        sheet.heading("name", "unit", "", *(case.label for case in self.cases))
        for entry in self.inputs:
            cells = []
            for case in self.cases:
                value = case.changes.get(entry.name, entry.value)
                stored = 0.0 if value is None else value
                if entry.name in case.cells:  # changed by a cell, as half of the rent is
                    cells.append(Cell(Formula(case.cells[entry.name], stored), "plain", entry.unit))
                elif entry.name in case.changes:  # changed to a figure
                    cells.append(Cell(value, "shade", entry.unit))
                else:  # as on the sheet Inputs
                    cells.append(Cell(Formula(self.model.cell_name(entry.name), stored), "plain", entry.unit))
            sheet.row(entry.name, entry.unit, None, *cells)
        for line in self.lines:
            assert sheet.next_row == self.rows[line.name]
            cells = []
            for index, case in enumerate(self.cases):
                text = to_excel(line.text, partial(self.scalar, index))
                cells.append(Cell(Formula(text, plain(case.values[line.name])), "plain", line.measure))
            sheet.row(line.name, line.measure, None, *cells)

    def write_flows(self, sheet: Sheet) -> None:
        """Write the Case flows sheet's block: a row per line, a column per month, a block per case."""
        if not any(self.monthly):
            return
        sheet.next_row = self.month_row - 1
        sheet.row(Cell(self.model.title, "heading"))
        months = range(self.model.months + 1)
        sheet.row(Cell("month", "head"), Cell("", "head"), *(Cell(month, "head") for month in months))
        for index, case in enumerate(self.cases):
            sheet.row(Cell(case.label, "note"))
            for line in self.monthly[index]:
                template = to_excel(line.text, partial(self._monthly, index))
                series = case.values[line.name]
                texts = (
                    template.replace(COLUMN, column_letters(_FIRST_MONTH + month)).replace(
                        _BASE_COLUMN, column_letters(FIRST_MONTH + month)
                    )
                    for month in months
                )
                cells = [
                    Cell(Formula(text, float(series[month])), "plain", line.measure) for month, text in enumerate(texts)
                ]
                sheet.row(line.name, line.measure, *cells)

    def line(self, case: int, name: str) -> str:
        """Return the whole row of a monthly line under a case."""
        if (case, name) not in self.flow_rows:
            return scalar_reference(self.model, self.flows, name)
        row, last = self.flow_rows[case, name], _FIRST_MONTH + self.model.months
        return f"'{CASE_FLOWS}'!{address(row, _FIRST_MONTH, fixed=True)}:{address(row, last, fixed=True)}"

    def scalar(self, case: int, name: str, sheet: str = "") -> str:
        """Return how a formula of the Cases sheet, or of another, names a quantity under a case."""
        name = name.removesuffix(ALL_MONTHS)
        if (self.model.key, name) in self.flows:
            return self.line(case, name)
        if name in self.model.tables or name not in self.rows:
            return self.model.cell_name(name)
        column = column_letters(_FIRST_CASE + case)
        return f"{sheet}!${column}${self.rows[name] + 1}" if sheet else f"{column}{self.rows[name] + 1}"

    def _monthly(self, case: int, name: str) -> str:
        """Return how a line of a month names a quantity under a case: in the case's block where it moves."""
        if name.endswith(ALL_MONTHS):
            return self.scalar(case, name)
        if name == "m":
            return f"{COLUMN}${self.month_row + 1}"
        if (case, name) in self.flow_rows:
            return f"{COLUMN}{self.flow_rows[case, name] + 1}"
        if (self.model.key, name) in self.flows:
            return f"'{FLOWS}'!{_BASE_COLUMN}{self.flows[self.model.key, name] + 1}"
        return self.scalar(case, name, CASES)


# --- Checks, each by another route than the figure it checks.


class Balance(NamedTuple):
    """What holds, the two figures that say so, how they are computed, and the condition on their cells."""

    claim: str
    first: Formula
    second: Formula
    note: str
    condition: str  # {0} and {1} are the two cells


def balances(model: LiveModel, values: Mapping[str, Any], flows: FlowRows) -> list[Balance]:
    """Return the checks of a cash-flow model: totals, balances, depreciation and present values; others have none."""
    if (model.key, "saving_usd") not in flows:
        return []

    def ref(name: str) -> str:
        return scalar_reference(model, flows, name)

    def total(name: str) -> float:
        return float(values[name].sum())

    # equal but for rounding, which grows with what the figures are made of: at least as large as the purchase
    near = f"ABS({{0}}-{{1}})<=check_tolerance*MAX(1,ABS({{1}}),ABS({ref('capex_usd')}))"
    owned, rented = total("own_total_usd"), total("rent_total_usd")
    # the sheet of months has the side of each line and its total in columns: they are added up by the side
    rows = [flows[model.key, line.name] for line in model.monthly]
    side_cells, total_cells = (
        f"'{FLOWS}'!{address(min(rows), column, fixed=True)}:{address(max(rows), column, fixed=True)}"
        for column in (_SIDE, _TOTAL)
    )
    sides = [
        Balance(
            f"the total of {side}ing is the sum of its lines",
            Formula(f"SUM({ref(f'{side}_total_usd')})", total(f"{side}_total_usd")),
            Formula(f'SUMIF({side_cells},"{side}",{total_cells})', sum(total(line.name) for line in lines)),
            "line by line over all months",
            near,
        )
        for side, lines in (("own", comparison.OWN_LINES), ("rent", comparison.RENT_LINES))
    ]
    nothing = Formula("0", 0.0)
    bought = (values["arrival_month"] < values["months"]) * values["capex_usd"] + values["refresh_usd"]
    basis = f"IF({ref('arrival_month')}<{ref('months')},{ref('capex_usd')},0)+{ref('refresh_usd')}"
    written = f"SUM({ref('depreciation_usd')})+SUM({ref('written_off_usd')})"
    # the present value of the saving by another route: cash at the cost of capital, debt at its own
    capital = _discounted(ref, values, ("rent_total_usd", "own_in_cash_usd", "own_lease_returned_usd"))
    debt = _discounted(ref, values, ("own_financing_usd", "own_lease_returned_usd"), "debt_")
    unbalanced = Balance(
        "the balance sheet balances",
        Formula(model.cell_name("unbalanced_usd"), 0.0),
        nothing,
        "assets less debts less equity by period",
        near,
    )
    return [
        *sides,
        Balance(
            "what owning saves is rent less owning",
            Formula(f"SUM({ref('saving_usd')})", total("saving_usd")),
            Formula(f"SUM({ref('rent_total_usd')})-SUM({ref('own_total_usd')})", rented - owned),
            "over all months",
            near,
        ),
        Balance(
            "the loan ends at zero",
            _repaid(ref, values, "loan"),
            nothing,
            "drawn and paid, discounted at the loan's own rate",
            near,
        ),
        Balance(
            "the lease ends at zero",
            _repaid(ref, values, "lease"),
            nothing,
            "the same at the lease's own rate",
            f'OR({ref("financing")}="operating_lease",{near})',
        ),
        Balance(
            "all that was bought is written off",
            Formula(written, total("depreciation_usd") + total("written_off_usd")),
            Formula(basis, float(bought)),
            "depreciation and what is left at the end, against the purchase and its replacement",
            near,
        ),
        Balance(
            "the present value is that of the cash",
            capital,
            Formula(f"{ref('npv_saving_usd')}+{debt.text}", float(values["npv_saving_usd"]) + debt.value),
            "discounted month by month; beside it the saving, with what is financed at the cost of debt",
            near,
        ),
        *([unbalanced] if model.periods else []),
        Balance(
            "the sheet of months holds the whole comparison",
            Formula(ref("months"), float(values["months"])),
            Formula(f"MAX({ref('m')})", float(model.months)),
            "the months compared, and the last month of the sheet",
            "{0}<={1}",
        ),
    ]


_SIDE, _TOTAL = 3, 4  # columns of the sheet of months


def _repaid(ref: Callable[[str], str], values: Mapping[str, Any], kind: str) -> Formula:
    """Discount what is drawn, paid and settled at the rate of a debt."""
    parts = [f"own_{kind}_{part}_usd" for part in ("drawn", "payment", "settled")]
    rate = f"{kind}_rate_fraction"
    text = f"SUMPRODUCT(({'+'.join(map(ref, parts))})/(1+{ref(rate)}/{ref('months_per_year')})^{ref('m')})"
    monthly = float(values[rate]) / float(values["months_per_year"])
    return Formula(text, float((sum(values[name] for name in parts) / (1 + monthly) ** values["m"]).sum()))


def _discounted(ref: Callable[[str], str], values: Mapping[str, Any], lines: Sequence[str], debt: str = "") -> Formula:
    """Discount the first line less the others month by month, at the cost of capital or of debt."""
    rate = f"monthly_{debt}rate_fraction"
    text = f"SUMPRODUCT(({'-'.join(map(ref, lines))})/(1+{ref(rate)})^{ref('m')})"
    net = values[lines[0]] - sum(values[name] for name in lines[1:])
    return Formula(text, float((net / (1 + float(values[rate])) ** values["m"]).sum()))
