"""The Sensitivity sheet: each input at its low and high end, everything recomputed by live formulas."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpucost.formula.spreadsheet import ALL_MONTHS, to_excel
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address, column_letters
from gpucost.render.workbook.calculations import COLUMN, plain
from gpucost.render.workbook.live import LiveInput, LiveModel, Value, compute, needed

NAME, CASES, FLOWS = "Sensitivity", "Cases", "Case flows"
_SHOWN, _SHOWN_MONTHLY = 10, 6  # inputs that move the answer most; monthly lines are many cells a case
_FIRST_CASE = 3  # column of the base case on the Cases sheet
_FIRST_MONTH = 2
_HEADINGS = ("input", "unit", "low", "high", *(f"answer at {at}" for at in ("low", "base", "high")),
             "low − base", "high − base")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Probe:
    """The model with one input at one end, and what Python finds for it."""

    label: str
    name: str
    value: Value
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """What one input does to the answer."""

    entry: LiveInput
    low: Probe
    high: Probe
    width: float


def spans(model: LiveModel) -> list[Span]:
    """Recompute the answer at both ends of every input that has them, widest first."""
    found = []
    reached = needed(model, model.answer)
    for entry in model.inputs:
        if entry.low is None or entry.high is None or entry.low == entry.high or entry.name not in reached:
            continue
        cases = [
            Probe(f"{entry.name} {end}", entry.name, value, compute(model, {entry.name: value}))
            for end, value in (("low", entry.low), ("high", entry.high))
        ]
        width = abs(float(cases[1].values[model.answer]) - float(cases[0].values[model.answer]))
        if width > 0:  # also leaves out what is not a number
            found.append(Span(entry, cases[0], cases[1], width))
    return sorted(found, key=lambda span: (-span.width, span.entry.name))


def favourable_ends(model: LiveModel, found: list[Span]) -> dict[tuple[str, str], tuple[Value, Value]]:
    """Return each input's better and worse end for the scenarios: those that the answer states, else as found."""
    if model.ends is not None:
        return {(model.key, name): pair for name, pair in model.ends.items()}
    ends: dict[tuple[str, str], tuple[Value, Value]] = {}
    for span in found:
        low, high = (float(case.values[model.answer]) for case in (span.low, span.high))
        better_is_low = (low < high) == model.lower_is_better
        pair = (span.low.value, span.high.value)
        ends[model.key, span.entry.name] = pair if better_is_low else (pair[1], pair[0])
    return ends


class Probes:
    """The recomputation of one model, case by case."""

    def __init__(self, model: LiveModel, found: list[Span], base: Mapping[str, Any]) -> None:
        self.model = model
        self.spans = found[: _SHOWN_MONTHLY if model.monthly else _SHOWN]
        self.cases = [Probe("base", "", 0.0, base), *(case for span in self.spans for case in (span.low, span.high))]
        reached = needed(model, model.answer)
        self.inputs = [entry for entry in model.inputs if entry.name in reached]
        self.lines = [line for line in model.scalars if line.name in reached]
        self.monthly = [line for line in model.monthly if line.name in reached]
        self.rows: dict[str, int] = {}
        self.flow_rows: dict[tuple[int, str], int] = {}
        self.month_row = 0

    def plan(self, first_row: int) -> int:
        """Give every quantity its row on the Cases sheet; return the row after them."""
        names = [entry.name for entry in self.inputs] + [line.name for line in self.lines]
        self.rows = {name: first_row + 3 + index for index, name in enumerate(names)}
        return first_row + 3 + len(names)

    def plan_flows(self, first_row: int) -> int:
        """Give every monthly line of every case its row; return the row after them."""
        if not self.monthly:
            return first_row
        self.month_row = first_row + 1
        row = self.month_row + 1
        for index in range(len(self.cases)):
            row += 1
            for line in self.monthly:
                self.flow_rows[index, line.name] = row
                row += 1
        return row

    def write(self, sheet: Sheet) -> None:
        """Write the Cases sheet's block: a row per quantity, a column per case."""
        sheet.skip()
        sheet.row(Cell(self.model.title, "heading"))
        sheet.heading("name", "unit", "", *(case.label for case in self.cases))
        for entry in self.inputs:
            name = self.model.cell_name(entry.name)
            row = [
                Cell(case.value, "shade", entry.unit)
                if case.name == entry.name
                else Cell(Formula(name, 0.0 if entry.value is None else entry.value), "plain", entry.unit)
                for case in self.cases
            ]
            sheet.row(entry.name, entry.unit, None, *row)
        for line in self.lines:
            assert sheet.next_row == self.rows[line.name]
            cells = []
            for index, case in enumerate(self.cases):
                text = to_excel(line.text, partial(self._scalar, index))
                cells.append(Cell(Formula(text, plain(case.values[line.name])), "plain", line.measure))
            sheet.row(line.name, line.measure, None, *cells)

    def write_flows(self, sheet: Sheet) -> None:
        """Write the Case flows sheet's block: a row per line, a column per month, a block per case."""
        if not self.monthly:
            return
        sheet.next_row = self.month_row - 1
        sheet.row(Cell(self.model.title, "heading"))
        sheet.row(
            Cell("month", "head"), Cell("", "head"), *(Cell(month, "head") for month in range(self.model.months + 1))
        )
        for index, case in enumerate(self.cases):
            sheet.row(Cell(case.label, "note"))
            for line in self.monthly:
                template = to_excel(line.text, partial(self._monthly, index))
                cells = []
                for month in range(self.model.months + 1):
                    text = template.replace(COLUMN, column_letters(_FIRST_MONTH + month))
                    cells.append(Cell(Formula(text, float(case.values[line.name][month])), "plain", line.measure))
                sheet.row(line.name, line.measure, *cells)

    def _scalar(self, case: int, name: str) -> str:
        name = name.removesuffix(ALL_MONTHS)
        if (case, name) in self.flow_rows or (name == "m" and self.monthly):
            row = self.month_row if name == "m" else self.flow_rows[case, name]
            first, last = (
                address(row, column, fixed=True) for column in (_FIRST_MONTH, _FIRST_MONTH + self.model.months)
            )
            return f"'{FLOWS}'!{first}:{last}"
        if name in self.model.tables:
            return self.model.cell_name(name)
        return f"{column_letters(_FIRST_CASE + case)}{self.rows[name] + 1}"

    def _monthly(self, case: int, name: str) -> str:
        if name.endswith(ALL_MONTHS):
            return self._scalar(case, name)
        if name == "m":
            return f"{COLUMN}${self.month_row + 1}"
        if (case, name) in self.flow_rows:
            return f"{COLUMN}{self.flow_rows[case, name] + 1}"
        if name in self.model.tables:
            return self.model.cell_name(name)
        return f"'{CASES}'!${column_letters(_FIRST_CASE + case)}${self.rows[name] + 1}"

    def answer(self, case: int) -> Cell:
        """Return a cell that shows the answer of one case."""
        line = self.model.line(self.model.answer)
        reference = f"'{CASES}'!{address(self.rows[line.name], _FIRST_CASE + case, fixed=True)}"
        return Cell(Formula(reference, plain(self.cases[case].values[line.name])), "plain", line.measure)


def write(book: Workbook, sheet: Sheet, blocks: list[Probes]) -> dict[str, tuple[int, int]]:
    """Write the Sensitivity sheet; return for each model the first and last row of its table, for the chart."""
    sheet.title("Sensitivity")
    sheet.row(
        "Each input alone at its low and high end; all cells are recomputed live (sheet Cases). Ends are "
        "those of the inputs' sources as delivered."
    )
    places = {}
    for block in blocks:
        line = block.model.line(block.model.answer)
        sheet.skip()
        sheet.row(Cell(f"{block.model.title}: {line.name} ({line.measure})", "heading"))
        sheet.heading(*_HEADINGS)
        first = sheet.next_row
        for number, span in enumerate(block.spans):
            row = sheet.next_row
            cells = [block.answer(2 * number + 1), block.answer(0), block.answer(2 * number + 2)]
            low, base, high = (plain(cell.value.value) for cell in cells)
            unit = span.entry.unit
            sheet.row(
                span.entry.name,
                unit,
                Cell(span.entry.low, "plain", unit),
                Cell(span.entry.high, "plain", unit),
                *cells,
                Cell(Formula(f"{address(row, 4)}-{address(row, 5)}", low - base), "plain", line.measure),
                Cell(Formula(f"{address(row, 6)}-{address(row, 5)}", high - base), "plain", line.measure),
            )
        if block.spans:
            places[block.model.key] = (first, sheet.next_row - 1)
        else:
            sheet.row("No input has stated ends.")
    return places
