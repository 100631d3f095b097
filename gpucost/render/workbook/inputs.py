"""The Inputs sheet: every cell that may be changed, its unit, ends, source and status, and the scenario selector."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.live import LiveInput, LiveModel, Value

NAME = "Inputs"
SCENARIOS = ("Base", "Favourable", "Adverse")
_HEAD = (
    "name",
    "what it is",
    "unit",
    "base",
    "favourable",
    "adverse",
    "in use",
    "as delivered",
    "changed",
    "source",
    "dated",
    "status",
)
_BASE, _ACTIVE, _DELIVERED, _CHANGED = 3, 6, 7, 8

Ends = Mapping[tuple[str, str], tuple[Value, Value]]  # (model, input) -> favourable, adverse


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], ends: Ends, sources: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write all inputs; blue on pale yellow may be changed, everything else follows."""
    sheet.title("Inputs")
    row = sheet.row(
        "Scenario",
        None,
        None,
        Cell("Base", "input"),
        "Base, Favourable or Adverse: every input at its own base, better or worse end",
    )
    choices = {"validate": "list", "source": list(SCENARIOS), "error_message": "Choose Base, Favourable or Adverse."}
    sheet.page.data_validation(row, _BASE, row, _BASE, choices)
    book.define("scenario", NAME, row, _BASE)
    number = sheet.row(
        "Scenario number", None, None, Formula('IF(scenario="Favourable",2,IF(scenario="Adverse",3,1))', 1)
    )
    book.define("scenario_number", NAME, number, _BASE)
    count = sum(len(model.inputs) for model in models)
    last = number + 3 + count + 2 * sum(_groups(model) + 1 for model in models)
    span = f"{address(number + 2, _CHANGED, fixed=True)}:{address(last, _CHANGED, fixed=True)}"
    changed = sheet.row(
        "Inputs changed",
        None,
        None,
        Formula(f'SUM({span})+IF(scenario="Base",0,1)', 0),
        "static figures turn red when this is above 0",
    )
    book.define("inputs_changed", NAME, changed, _BASE)
    head = sheet.heading(*_HEAD)
    sheet.page.freeze_panes(head + 1, 1)
    sheet.page.repeat_rows(head)
    for model in models:
        _model(book, sheet, model, ends, sources)


def _groups(model: LiveModel) -> int:
    return len({entry.group for entry in model.inputs})


def _model(
    book: Workbook, sheet: Sheet, model: LiveModel, ends: Ends, sources: Mapping[str, Mapping[str, Any]]
) -> None:
    sheet.skip()
    sheet.row(Cell(model.title, "heading"))
    live = model.read_names()
    for group in dict.fromkeys(entry.group for entry in model.inputs):
        sheet.row(Cell(group, "note"))
        for entry in model.inputs:
            if entry.group == group:
                source = sources.get(entry.source_id) or {}
                row = _input(sheet, entry, entry.name in live, ends.get((model.key, entry.name)), source)
                book.define(model.cell_name(entry.name), NAME, row, _ACTIVE)


def _input(
    sheet: Sheet, entry: LiveInput, live: bool, ends: tuple[Value, Value] | None, source: Mapping[str, Any]
) -> int:
    row = sheet.next_row
    base, better, worse = (address(row, column) for column in (_BASE, _BASE + 1, _BASE + 2))
    active = f'CHOOSE(scenario_number,{base},IF({better}="",{base},{better}),IF({worse}="",{base},{worse}))'
    better_value, worse_value = ends or (None, None)
    style = "input" if live else "shade"
    sheet.row(
        entry.name,
        Cell(entry.description + ("" if live else "; pinned: it shapes a lookup table, change it in Python"), "wrap"),
        entry.unit,
        Cell(entry.value, style, entry.unit),
        Cell(better_value, style, entry.unit),
        Cell(worse_value, style, entry.unit),
        Cell(Formula(active, 0.0 if entry.value is None else entry.value), "plain", entry.unit),
        Cell(entry.value, "shade", entry.unit),
        Formula(f"IF({base}={address(row, _DELIVERED)},0,1)", 0),
        Cell(
            ", ".join(str(source[key]) for key in ("publisher", "title") if source.get(key)) or entry.source_id,
            "source",
        ),
        entry.observed or str(source.get("published_on") or source.get("accessed_on") or ""),
        entry.status if live else "pinned",
    )
    sheet.page.data_validation(row, _BASE, row, _BASE + 2, _validation(entry))
    return row


def _validation(entry: LiveInput) -> dict[str, Any]:
    """Refuse what Python would refuse: choices outside the list, numbers outside the input's limits."""
    if entry.choices:
        return {"validate": "list", "source": [choice.replace('"', '""') for choice in entry.choices]}
    if entry.value is None or isinstance(entry.value, str):
        return {"validate": "any"}
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
