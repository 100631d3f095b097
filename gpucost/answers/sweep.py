"""The answer of a sweep: many cases of one question, a row each."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from gpucost.answers.common import Answer

Row = Mapping[str, Any]  # what was asked, by the names of the arguments, and the figures of the question's answer


class Reason(TypedDict):
    """Why cases have no answer, and how many."""

    reason: str
    cases: int


class Cell(TypedDict):
    """The least value among the cases that share two arguments."""

    x: str | float
    y: str | float
    value: float | None
    cases: int


class Heat(TypedDict):
    """What the best case comes to over two of the arguments."""

    x: str
    y: str
    value: str
    cells: list[Cell]


class Sweep(Answer):
    """Many cases: the first rows, the best one, and where all rows are; `axes` counts the values of each argument."""

    kind: Literal["sweep"]
    gpucost_version: str
    question: str
    axes: dict[str, int]
    cases: int
    answered: int
    best: Row | None
    front: list[Row]
    heat: Heat | None
    reasons: list[Reason]
    rows: list[Row]
    file: str | None
