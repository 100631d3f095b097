"""A model recomputed case by case: one column of scalars a case, and only those monthly lines that a case moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpucost.formula.language import Line, names
from gpucost.formula.spreadsheet import ALL_MONTHS, to_excel
from gpucost.render.workbook.book import Cell, Formula, Sheet, address, column_letters
from gpucost.render.workbook.calculations import COLUMN, FIRST_MONTH, Rows, plain, scalar_reference
from gpucost.render.workbook.calculations import FLOWS as MONTHS
from gpucost.render.workbook.live import LiveModel, Value, needed

CASES, FLOWS = "Cases", "Case flows"
_FIRST_CASE = 3  # column of the first case on the Cases sheet
_FIRST_MONTH = 2
_BASE_COLUMN = "\x02"  # stands for the column of the month on the sheet of months


@dataclass(frozen=True, slots=True)
class Case:
    """The model with some inputs changed, what Python finds for it, and cells that an input is taken from."""

    label: str
    changes: Mapping[str, Value]
    values: Mapping[str, Any]
    cells: Mapping[str, str] = field(default_factory=dict)  # input -> formula of the cell


class Cases:
    """The recomputation of one model for some targets."""

    def __init__(self, model: LiveModel, cases: Sequence[Case], targets: Sequence[str], flows: Rows) -> None:
        self.model, self.cases, self.flows = model, list(cases), flows
        reached = {name for target in targets for name in needed(model, target)}
        self.inputs = [entry for entry in model.inputs if entry.name in reached]
        self.lines = [line for line in model.scalars if line.name in reached]
        monthly = [line for line in model.monthly if line.name in reached]
        self.moved = [_moved(case.changes, self.lines, monthly) for case in self.cases]
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
            sheet.row(entry.name, entry.unit, None, *(self._input(case, entry.name) for case in self.cases))
        for line in self.lines:
            assert sheet.next_row == self.rows[line.name]
            cells = []
            for index, case in enumerate(self.cases):
                text = to_excel(line.text, partial(self.scalar, index))
                cells.append(Cell(Formula(text, plain(case.values[line.name])), "plain", line.measure))
            sheet.row(line.name, line.measure, None, *cells)

    def _input(self, case: Case, name: str) -> Cell:
        entry = next(entry for entry in self.inputs if entry.name == name)
        value = case.changes.get(name, entry.value)
        stored = 0.0 if value is None else value
        if name in case.cells:
            return Cell(Formula(case.cells[name], stored), "plain", entry.unit)
        if name in case.changes:
            return Cell(value, "shade", entry.unit)
        return Cell(Formula(self.model.cell_name(name), stored), "plain", entry.unit)

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
        return f"'{FLOWS}'!{address(row, _FIRST_MONTH, fixed=True)}:{address(row, last, fixed=True)}"

    def scalar(self, case: int, name: str, sheet: str = "") -> str:
        """Return how a formula of the Cases sheet, or of another, names a quantity under a case."""
        name = name.removesuffix(ALL_MONTHS)
        if (self.model.key, name) in self.flows:
            return self.line(case, name)
        if name in self.model.tables or name not in self.rows:
            return self.model.cell_name(name)
        column = column_letters(_FIRST_CASE + case)
        return f"'{sheet}'!${column}${self.rows[name] + 1}" if sheet else f"{column}{self.rows[name] + 1}"

    def _monthly(self, case: int, name: str) -> str:
        if name.endswith(ALL_MONTHS):
            return self.scalar(case, name)
        if name == "m":
            return f"{COLUMN}${self.month_row + 1}"
        if (case, name) in self.flow_rows:
            return f"{COLUMN}{self.flow_rows[case, name] + 1}"
        if (self.model.key, name) in self.flows:
            return f"'{MONTHS}'!{_BASE_COLUMN}{self.flows[self.model.key, name] + 1}"
        return self.scalar(case, name, CASES)


def _moved(changes: Mapping[str, Value], scalars: Sequence[Line], monthly: Sequence[Line]) -> set[str]:
    """Return the inputs that a case changes and all that hangs on them."""
    moved = set(changes)
    for line in (*scalars, *monthly, *scalars):  # answers read monthly lines, other scalars never do
        if moved.intersection(names(line.text)):
            moved.add(line.name)
    return moved
