"""Measured rows of any kind: read from a file or the catalog, their figures, and predictions beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpucost.answers.checks import Skipped
from gpucost.errors import DataError, UsageError
from gpucost.gate import read_table
from gpucost.physics.columns import Flags, Floats
from gpucost.validation import report
from gpucost.validation.training_rows import Row


@dataclass(frozen=True)
class Measured:
    """One measured figure of a row."""

    row: int
    metric: str
    value: float
    group: str = ""  # what the figure was derived from, or under which load it was taken


@dataclass(frozen=True)
class Measurements:
    """Rows that could be read, their figures, figures that are only shown, and what was skipped with the reason."""

    rows: list[Any]
    figures: list[Measured]
    shown: list[Measured]  # compared, but never fitted or counted
    skipped: list[Skipped]
    sources: dict[str, str]  # id -> source
    total: int

    def select(self, chosen: Flags) -> "Measurements":
        """Return the rows that are chosen, with their figures."""
        kept = np.flatnonzero(chosen).tolist()
        new = {old: index for index, old in enumerate(kept)}

        def moved(figures: Sequence[Measured]) -> list[Measured]:
            return [replace(figure, row=new[figure.row]) for figure in figures if figure.row in new]

        return replace(
            self, rows=[self.rows[index] for index in kept], figures=moved(self.figures), shown=moved(self.shown),
            total=len(kept) + len(self.skipped),
        )  # fmt: skip

    def core(self) -> "Measurements":
        """Keep the rows well suited to validation."""
        return self.select(np.array([row.core for row in self.rows], dtype=np.bool_))

    def of_rows(self, name: str) -> "np.ndarray[Any, Any]":
        """Return an attribute of each figure's row."""
        return np.array([getattr(self.rows[figure.row], name) for figure in self.figures])

    @property
    def log_measured(self) -> Floats:
        """Logarithms of the figures."""
        logged: Floats = np.log(np.array([figure.value for figure in self.figures], dtype=np.float64))
        return logged

    def items(
        self, middle: Floats, width: Floats, figures: Sequence[Measured] | None = None, above: Floats | None = None
    ) -> list[report.Item]:
        """Return predictions beside the measurements, `width` wide in logarithms below and, unless `above`, above."""
        found = []
        lower, upper = middle * np.exp(-width), middle * np.exp(width if above is None else above)
        columns = (middle.tolist(), lower.tolist(), upper.tolist())
        for figure, point, low, high in zip(self.figures if figures is None else figures, *columns, strict=True):
            row = self.rows[figure.row]
            found.append(
                report.Item(row.id, row.source, figure.metric, figure.value, point, low, high, figure.group, row.notes)
            )
        return found


def read_file(path: str | Path, needed: Sequence[str] = ("model", "gpu")) -> list[dict[str, str]]:
    """Read a CSV file of measurements; only `model`, `gpu` and one measured column are indispensable."""
    header, rows = read_table(path, "limit_answer_file_bytes")
    if missing := set(needed) - set(header if rows else ()):
        raise DataError(f"lacks the column {' and '.join(sorted(missing))}", file=str(path), row=1)
    return [dict.fromkeys(header, "") | row for _, row in rows]


def gather(rows: Sequence[Row], read: Callable[[Row, int], tuple[Any, list[Measured], list[Measured]]]) -> Measurements:
    """Read every row; what cannot be computed or compared is skipped with its reason."""
    found = Measurements([], [], [], [], {}, len(rows))
    for number, row in enumerate(rows):
        name = str(row.get("id") or f"row {number + 2}")
        found.sources[name] = str(row.get("source_name") or "")
        try:
            mine, figures, shown = read(row, len(found.rows))
        except UsageError as error:
            found.skipped.append({"id": name, "reason": str(error)})
        except (ValueError, TypeError, ArithmeticError) as error:
            found.skipped.append({"id": name, "reason": f"its numbers contradict each other: {error}"})
        else:
            found.rows.append(mine)
            found.figures.extend(figures)
            found.shown.extend(shown)
    return found
