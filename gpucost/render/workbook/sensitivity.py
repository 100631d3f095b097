"""The Sensitivity sheet: each input at its low and high end, everything recomputed by live formulas.

The Cases sheet holds the calculation once per case (one column a case); where the model has monthly lines, the Case
flows sheet holds those that a case moves, one block a case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpucost.render.workbook.book import Cell, Formula, Sheet, address
from gpucost.render.workbook.calculations import Rows, plain
from gpucost.render.workbook.cases import CASES, Case, Cases
from gpucost.render.workbook.live import LiveInput, LiveModel, Value, compute, needed

NAME = "Sensitivity"
_SHOWN, _SHOWN_MONTHLY = 10, 6  # inputs that move the answer most; monthly lines are many cells a case
_HEADINGS = (
    "input",
    "what it is",
    "unit",
    "low",
    "high",
    *(f"answer at {at}" for at in ("low", "base", "high")),
    "low − base",
    "high − base",
)
LABELS, CHANGES = 1, (8, 9)  # columns of a chart's names and bars


@dataclass(frozen=True, slots=True)
class Span:
    """What one input does to the answer."""

    entry: LiveInput
    low: Case
    high: Case
    width: float


def spans(model: LiveModel) -> list[Span]:
    """Recompute the answer at both ends of every input that has them, widest first."""
    found = []
    reached = needed(model, model.answer)
    for entry in model.inputs:
        if entry.low is None or entry.high is None or entry.low == entry.high or entry.name not in reached:
            continue
        cases = [
            Case(f"{entry.name} {end}", {entry.name: value}, compute(model, {entry.name: value}))
            for end, value in (("low", entry.low), ("high", entry.high))
        ]
        width = abs(float(cases[1].values[model.answer]) - float(cases[0].values[model.answer]))
        if width > 0:  # also leaves out what is not a number
            found.append(Span(entry, cases[0], cases[1], width))
    return sorted(found, key=lambda span: (-span.width, span.entry.name))


def scenarios(model: LiveModel, found: list[Span]) -> Mapping[str, Mapping[str, Value]]:
    """Return what each scenario changes: as the answer states it, else every input's better or worse end."""
    if model.scenarios is not None:
        return model.scenarios
    better, worse = {}, {}
    for span in found:
        low, high = (float(case.values[model.answer]) for case in (span.low, span.high))
        ends = (span.entry.low, span.entry.high)
        better[span.entry.name], worse[span.entry.name] = ends if (low < high) == model.lower_is_better else ends[::-1]
    return {"favourable": better, "adverse": worse}


class Probes(Cases):
    """The recomputation of one model at the ends of the inputs that move its answer most."""

    def __init__(self, model: LiveModel, found: list[Span], base: Mapping[str, Any], flows: Rows) -> None:
        self.spans = found[: _SHOWN_MONTHLY if model.monthly else _SHOWN]
        ends = [case for span in self.spans for case in (span.low, span.high)]
        super().__init__(model, [Case("base", {}, base), *ends], [model.answer], flows)

    def answer(self, case: int) -> Cell:
        """Return a cell that shows the answer of one case."""
        line = self.model.line(self.model.answer)
        found = plain(self.cases[case].values[line.name])
        return Cell(Formula(self.scalar(case, line.name, CASES), found), "plain", line.measure)


def write(sheet: Sheet, blocks: list[Probes]) -> dict[str, tuple[int, int]]:
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
        sheet.row(Cell(f"{block.model.title}: {line.description or line.name} ({line.measure})", "heading"))
        sheet.heading(*_HEADINGS)
        first = sheet.next_row
        for number, span in enumerate(block.spans):
            row = sheet.next_row
            cells = [block.answer(2 * number + 1), block.answer(0), block.answer(2 * number + 2)]
            low, base, high = (plain(cell.value.value) for cell in cells)
            unit = span.entry.unit
            sheet.row(
                span.entry.name,
                Cell(span.entry.description or span.entry.name.replace("_", " "), "wrap"),
                unit,
                Cell(span.entry.low, "plain", unit),
                Cell(span.entry.high, "plain", unit),
                *cells,
                Cell(Formula(f"{address(row, 5)}-{address(row, 6)}", low - base), "plain", line.measure),
                Cell(Formula(f"{address(row, 7)}-{address(row, 6)}", high - base), "plain", line.measure),
            )
        if block.spans:
            places[block.model.key] = (first, sheet.next_row - 1)
        else:
            sheet.row("No input has stated ends.")
    return places
