"""The live part of an answer: its inputs, and formulas of gpucost.money, with the values Python found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucost.formula.language import Line, names
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
    observed: str = ""


@dataclass(frozen=True, slots=True)
class LiveModel:
    """Inputs, tables and lines of one answer. `answer` is the line that sensitivities and scenarios look at."""

    key: str  # prefix of its names in the workbook
    title: str
    inputs: tuple[LiveInput, ...]
    derived: tuple[Line, ...]
    answer: str
    shown: tuple[str, ...]  # lines on the Summary
    lower_is_better: bool = True
    tables: Mapping[str, Sequence[float]] = field(default_factory=dict)
    monthly: tuple[Line, ...] = ()
    answers: tuple[Line, ...] = ()
    months: int = 0
    expected: Mapping[str, float] = field(default_factory=dict)  # what the saved answer says, by line
    periods: Sequence[tuple[str, str, str]] = ()  # fiscal year, quarter and month of every month, where there are books
    compared_months: int = 0  # as delivered; the sheets of months reach further
    ways: Sequence[Mapping[str, Any]] = ()  # options that are recomputed beside each other
    scenarios: Mapping[str, Mapping[str, Value]] | None = None  # the inputs that each changes, where the answer says so

    def cell_name(self, name: str) -> str:
        """Return the name that a quantity has in the workbook."""
        return f"{self.key}_{name}"

    def starting_values(self) -> dict[str, Value]:
        """Return the inputs as delivered."""
        return {entry.name: entry.value for entry in self.inputs}

    @property
    def scalars(self) -> tuple[Line, ...]:
        """All lines with one value."""
        return (*self.derived, *self.answers)

    def line(self, name: str) -> Line:
        """Return the line of that name."""
        return next(line for line in (*self.scalars, *self.monthly) if line.name == name)


def constants(values: Mapping[str, float], words: Mapping[str, str]) -> tuple[LiveInput, ...]:
    """Return constants as inputs, so that no figure stands inside a formula."""
    return tuple(
        LiveInput(name, value, unit_of(name), status="constant", group="constants", description=words.get(name, ""))
        for name, value in values.items()
    )


def numbers(lines: Sequence[Line], found: Mapping[str, Any]) -> dict[str, float]:
    """Return what an answer says of some lines, where it says a number."""
    said = {line.name: found.get(line.name) for line in lines}
    return {name: value for name, value in said.items() if isinstance(value, (int, float))}


def compute(model: LiveModel, changes: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """Evaluate every line, with some inputs changed; a monthly line becomes an array over the months."""
    import numpy as np

    from gpucost.formula.arrays import evaluate

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
            waiting += names(texts[name]) if name in texts else ()
    return found
