"""The live part of an answer: inputs and formulas in the language of gpucost.formula, with the values Python found.

The same text is evaluated here, for the Sensitivity sheet, and written as a spreadsheet formula by the sheets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucost import formula
from gpucost.units import unit_of

Value = float | str | None  # None is an input that nobody gave: an empty cell, which is not above zero


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One cell that a person may change."""

    name: str
    value: Value
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source_id: str = ""
    status: str = ""
    group: str = "inputs"
    description: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One named formula. A monthly line has a value in every month; `answer` lines are what the reader asked for."""

    name: str
    text: str
    unit: str = ""
    description: str = ""
    side: str = ""
    group: str = "calculations"


@dataclass(frozen=True, slots=True)
class LiveModel:
    """Inputs, tables and lines of one answer. `answer` is the line that sensitivities and scenarios look at."""

    key: str  # prefix of its names in the workbook
    title: str
    inputs: tuple[LiveInput, ...]
    derived: tuple[LiveLine, ...]
    answer: str
    shown: tuple[str, ...]  # lines on the Summary
    lower_is_better: bool = True
    tables: Mapping[str, Sequence[float]] = field(default_factory=dict)
    monthly: tuple[LiveLine, ...] = ()
    answers: tuple[LiveLine, ...] = ()
    months: int = 0
    expected: Mapping[str, float] = field(default_factory=dict)  # what the saved answer says, by line

    def cell_name(self, name: str) -> str:
        """Return the name that a quantity has in the workbook."""
        return f"{self.key}_{name}"

    def starting_values(self) -> dict[str, Value]:
        """Return the inputs as delivered."""
        return {entry.name: entry.value for entry in self.inputs}

    @property
    def scalars(self) -> tuple[LiveLine, ...]:
        """All lines with one value."""
        return (*self.derived, *self.answers)

    def read_names(self) -> set[str]:
        """Return every name that a formula reads; an input that none reads shapes a lookup table and is pinned."""
        return {name for line in (*self.derived, *self.monthly, *self.answers) for name in formula.names(line.text)}

    def line(self, name: str) -> LiveLine:
        """Return the line of that name."""
        return next(line for line in (*self.scalars, *self.monthly) if line.name == name)


def lines_of(group: str, text: str, units: Mapping[str, str] | None = None) -> list[LiveLine]:
    """Read a block of formulas (`name: description`, the formula indented below it); units follow from the names."""
    from gpucost.money.evaluate import read_lines

    given = units or {}
    return [
        LiveLine(line.name, line.text, given.get(line.name) or unit_of(line.name), line.description, group=group)
        for line in read_lines("\n".join(row for row in text.splitlines() if row.strip()))
    ]


def compute(model: LiveModel, changes: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """Evaluate every line, with some inputs changed; a monthly line becomes an array over the months."""
    import numpy as np

    from gpucost.money.evaluate import evaluate

    values: dict[str, Any] = {}
    for name, value in {**model.starting_values(), **(changes or {})}.items():
        values[name] = value if isinstance(value, str) else np.float64("nan" if value is None else value)
    values |= {name: np.asarray(table, np.float64) for name, table in model.tables.items()}
    for line in model.derived:
        values[line.name] = evaluate(line.text, values)
    if model.monthly:
        values["m"] = np.arange(model.months + 1, dtype=np.float64)
        for line in model.monthly:
            values[line.name] = np.broadcast_to(evaluate(line.text, values), values["m"].shape)
    for line in model.answers:
        values[line.name] = evaluate(line.text, values)
    return values


def needed(model: LiveModel, target: str) -> set[str]:
    """Return every name that a line depends on, itself included."""
    texts = {line.name: line.text for line in (*model.derived, *model.monthly, *model.answers)}
    found: set[str] = set()
    waiting = [target]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += formula.names(texts[name]) if name in texts else ()
    return found


def from_block(
    payload: Mapping[str, Any], key: str, title: str, answer: str, shown: Sequence[str], **more: Any
) -> LiveModel:
    """Read the model block that a payload carries."""
    block = payload["model"]
    monthly = tuple(_line(row) for row in block.get("monthly") or ())
    months = int(block.get("months") or len(block["monthly"][0]["values"]) - 1) if monthly else 0
    rows = [*(block.get("derived") or ()), *(block.get("answers") or ())]
    return LiveModel(
        key=key,
        title=title,
        inputs=tuple(_input(row) for row in block["inputs"]),
        derived=tuple(_line(row) for row in block.get("derived") or ()),
        answer=answer,
        shown=tuple(shown),
        tables=block.get("tables") or {},
        monthly=monthly,
        answers=tuple(_line(row) for row in block.get("answers") or ()),
        months=months,
        expected={row["name"]: row["value"] for row in rows if row.get("value") is not None},
        **more,
    )


def _input(row: Mapping[str, Any]) -> LiveInput:
    return LiveInput(
        name=row["name"],
        value=row["value"],
        unit=row.get("unit") or unit_of(row["name"]),
        low=row.get("low"),
        high=row.get("high"),
        source_id=row.get("source_id") or "",
        status=row.get("status") or "",
        group=row.get("group") or "inputs",
        description=row.get("description") or "",
        choices=tuple(choice for choice in row.get("choices") or () if choice),
        minimum=row.get("minimum"),
        maximum=row.get("maximum"),
    )


def _line(row: Mapping[str, Any]) -> LiveLine:
    return LiveLine(
        name=row["name"],
        text=row["formula"],
        unit=row.get("unit") or unit_of(row["name"]),
        description=row.get("description") or "",
        side=row.get("side") or "",
        group=row.get("group") or "calculations",
    )
