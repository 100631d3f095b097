"""The Inputs sheet: every cell that may be changed, its unit, ends, source and status, and the scenario selector."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.formula.language import names as names_in
from gpucost.render.document import heading_of, in_words
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.live import LiveInput, LiveModel, Value

NAME = "Inputs"
BASE = "Base"
_BEFORE = {"input": 32, "meaning": 46, "unit": 28}  # columns and their widths
_AFTER = {
    "in use": 16,
    "as delivered": 16,
    "changed": 9,
    "source": 44,
    "dated": 12,
    "status": 11,
    "name in formulas": 30,
}
_BASE = len(_BEFORE)  # column
_WIDTH = 16

Scenarios = Mapping[str, Mapping[str, Mapping[str, Value]]]  # model -> scenario -> the inputs that it changes


def write(
    book: Workbook, models: list[LiveModel], scenarios: Scenarios, sources: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write all inputs; blue on pale yellow may be changed, everything else follows. Each scenario has its column."""
    names = list(dict.fromkeys(name for changes in scenarios.values() for name in changes))
    heads = [BASE, *(f"{name[:1].upper()}{name[1:]}" for name in (in_words("name", name) for name in names))]
    sheet = book.sheet(NAME, (*_BEFORE.values(), *(_WIDTH,) * len(heads), *_AFTER.values()))
    sheet.title("Inputs")
    row = sheet.next_row  # of the scenario; its number, the count of changes and the heads follow
    first, last = (address(row + 3, column, fixed=True) for column in (_BASE, _BASE + len(names)))
    explanation = "inputs take their base value, or the value in the chosen scenario's column"
    sheet.row("Scenario", None, None, Cell(BASE, "input"), explanation)
    choices = {"validate": "list", "source": f"={first}:{last}", "error_message": "Choose a scenario from the list."}
    sheet.page.data_validation(row, _BASE, row, _BASE, choices)
    book.define("scenario", NAME, row, _BASE)
    sheet.row("Scenario number", None, None, Formula(f"MATCH(scenario,{first}:{last},0)", 1))
    book.define("scenario_number", NAME, row + 1, _BASE)
    # The count reads rows below it: an input each, and for each model and group an empty row and a heading.
    count = sum(len(model.inputs) for model in models)
    end = row + 4 + count + 2 * sum(len({entry.group for entry in model.inputs}) + 1 for model in models)
    changed = _BASE + len(heads) + list(_AFTER).index("changed")
    span = f"{address(row + 3, changed, fixed=True)}:{address(end, changed, fixed=True)}"
    # a scenario other than the base counts as a change: what was computed before is then out of date
    counted = Formula(f"SUM({span})+IF(scenario_number=1,0,1)", 0)
    sheet.row("Inputs changed", None, None, counted, "static figures turn red when this is above 0")
    book.define("inputs_changed", NAME, row + 2, _BASE)
    head = sheet.heading(*_BEFORE, *heads, *_AFTER)
    sheet.page.freeze_panes(head + 1, 1)
    sheet.page.repeat_rows(head)
    for model in models:
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        lines = (*model.derived, *model.monthly, *model.answers)
        # what no formula reads shapes a table of the book: changing it here would change nothing, so it is pinned
        live = {name for line in lines for name in names_in(line.text)}
        for group in dict.fromkeys(entry.group for entry in model.inputs):
            sheet.row(Cell(group, "note"))
            for entry in model.inputs:
                if entry.group == group:
                    source = sources.get(entry.source_id) or {}
                    values = [scenarios[model.key].get(name, {}).get(entry.name) for name in names]
                    row = _input(sheet, entry, entry.name in live, values, source)
                    book.define(model.cell_name(entry.name), NAME, row, _BASE + 1 + len(values))


_FIXED = frozenset({"gpus"})  # the profile, people and prices that the command takes follow from it


def _input(sheet: Sheet, entry: LiveInput, live: bool, values: Sequence[Value], source: Mapping[str, Any]) -> int:
    """Write an input with its value in every scenario, and the one in use, which formulas read; return its row."""
    row = sheet.next_row
    base, *scenario_cells = (address(row, _BASE + column) for column in range(len(values) + 1))
    texts = [base, *(f'IF({cell}="",{base},{cell})' for cell in scenario_cells)]
    active = f"CHOOSE(scenario_number,{','.join(texts)})" if scenario_cells else base
    live = live and entry.name not in _FIXED
    style = "input" if live else "shade"
    pinned = "; fixed: other inputs and tables follow from it, so changing it needs a new run of gpucost"
    publisher = ", ".join(str(source[key]) for key in ("publisher", "title") if source.get(key))
    delivered = _BASE + len(texts) + list(_AFTER).index("as delivered")
    sheet.row(
        heading_of(entry.name),
        Cell(entry.description + ("" if live else pinned), "wrap"),
        entry.unit,
        *(Cell(value, style, entry.unit) for value in (entry.value, *values)),
        Cell(Formula(active, 0.0 if entry.value is None else entry.value), "plain", entry.unit),
        Cell(entry.value, "shade", entry.unit),
        Formula(f"IF({base}={address(row, delivered)},0,1)", 0),
        Cell(publisher or entry.source_id, "source"),
        entry.observed or str(source.get("published_on") or source.get("accessed_on") or ""),
        entry.status if live else "pinned",
        Cell(entry.name, "shade"),
    )
    rule = _validation(entry) if live else {"validate": "any"}
    if not live and isinstance(entry.value, (int, float)):
        # any other value is refused: what else follows from it is not in the book
        message = {"error_title": entry.name, "error_message": "Fixed here. Ask gpucost again with another value."}
        rule = {"validate": "decimal", "criteria": "==", "value": entry.value, **message}
    sheet.page.data_validation(row, _BASE, row, _BASE + len(values), rule)
    return row


def _validation(entry: LiveInput) -> dict[str, Any]:
    """Refuse what Python would refuse: choices outside the list, numbers outside the input's limits."""
    if entry.choices:
        return {"validate": "list", "source": [choice.replace('"', '""') for choice in entry.choices]}
    if entry.value is None or isinstance(entry.value, str):
        return {"validate": "any"}
    # where no limit is stated, what is not negative stays so, and a share below one does
    low = entry.minimum if entry.minimum is not None else (0.0 if entry.value >= 0 else None)
    high = entry.maximum
    if high is None and entry.unit == "fraction of one" and 0 <= entry.value <= 1:
        high = 1.0
    rule: dict[str, Any] = {"validate": "decimal", "error_title": entry.name}
    if low is not None and high is not None and high < 1e300:
        return {
            **rule,
            "criteria": "between",
            "minimum": low,
            "maximum": high,
            "error_message": f"Between {low:g} and {high:g}.",
        }
    if low is not None:
        return {**rule, "criteria": ">=", "value": low, "error_message": f"At least {low:g}."}
    return {**rule, "criteria": "between", "minimum": -1e15, "maximum": 1e15, "error_message": "A number."}
