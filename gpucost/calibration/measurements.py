"""Measured rows: read from a file or the catalog, their figures, predictions beside them, and their errors."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from gpucost.answers import checks as shape
from gpucost.answers.checks import Skipped
from gpucost.answers.common import frame
from gpucost.calibration import wording
from gpucost.calibration.record import Row
from gpucost.errors import DataError, UsageError, nearest
from gpucost.gate import read_table, shown
from gpucost.physics.columns import Flags, Floats
from gpucost.schemas.dictionary import TABLES
from gpucost.workloads.training import SLOWEST

# --- Errors of predictions, per source and in total: the one report of every kind of validation.
#
# The macro-median is the mean over sources of each source's median error, sources with fewer than five rows pooled as
# one: a source is one voice, however many rows it publishes.

_SMALL_SOURCE_ROWS = 5
POOLED = "sources with fewer than five rows"
_WORST = 10


class Item(Struct, frozen=True):
    """One prediction beside its measurement."""

    id: str
    source: str
    metric: str
    measured: float
    predicted: float
    low: float
    high: float
    group: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def error_fraction(self) -> float:
        """Predicted ÷ measured − 1."""
        return self.predicted / self.measured - 1


def pooled_sources(items: Sequence[Item]) -> list[str]:
    """Return each item's source, those with few rows under one name."""
    counts = Counter(item.source for item in items)
    return [item.source if counts[item.source] >= _SMALL_SOURCE_ROWS else POOLED for item in items]


def statistics(items: Sequence[Item]) -> shape.Errors:
    """Return the figures of a set of predictions; None where there are none.

    >>> rows = [Item(str(k), "a", "m", 100.0, p, p - 15, p + 15) for k, p in enumerate((90.0, 110.0, 120.0))]
    >>> errors = statistics(rows)
    >>> round(errors["median_abs_error_fraction"], 3), round(errors["interval_coverage_fraction"], 3)
    (0.1, 0.667)
    """
    if not items:
        return cast(shape.Errors, dict.fromkeys(shape.Errors.__annotations__) | {"predicted": 0})
    # medians over sources, for one source with hundreds of rows would else speak for all; logarithms, so that twice as
    # fast and half as fast are equally wrong
    error = np.array([item.error_fraction for item in items])
    size = np.abs(error)
    sources = np.array(pooled_sources(items))
    log_error = np.log([item.predicted / item.measured for item in items])
    names = np.unique(sources)
    bias = [float(np.median(log_error[sources == name])) for name in names]
    within = [float(np.median(np.abs(log_error[sources == name] - b))) for name, b in zip(names, bias, strict=True)]
    inside = [item.low <= item.measured <= item.high for item in items]
    return {
        "predicted": len(items),
        "median_abs_error_fraction": float(np.median(size)),
        "p90_abs_error_fraction": float(np.percentile(size, 90)),
        "macro_median_abs_error_fraction": float(np.mean([np.median(size[sources == name]) for name in names])),
        "interval_coverage_fraction": float(np.mean(inside)),
        "median_high_low_ratio": float(np.median([item.high / item.low for item in items])),
        "bias_fraction": float(np.expm1(np.median(log_error))),
        "source_bias_sd_fraction": float(np.std(bias)),
        "within_source_fraction": float(np.mean(within)),
    }


def by_source(
    items: Sequence[Item], skipped: Sequence[shape.Skipped], sources: Mapping[str, str]
) -> list[shape.SourceErrors]:
    """Return the figures of each source, and how many of its rows were skipped."""
    by_source_name: dict[str, list[Item]] = {}
    for item in items:
        by_source_name.setdefault(item.source, []).append(item)
    lost = Counter(sources.get(entry["id"], "") for entry in skipped)
    rows: list[shape.SourceErrors] = []
    for name in sorted({*by_source_name, *lost}):
        items_of_source, skips = by_source_name.get(name, []), lost[name]
        row = {"source": name, "rows": len(items_of_source) + skips, "skipped": skips, **statistics(items_of_source)}
        rows.append(cast(shape.SourceErrors, {key: row[key] for key in shape.SourceErrors.__annotations__}))
    return rows


def payload(
    rows: int, items: Sequence[Item], skipped: Sequence[shape.Skipped], sources: Mapping[str, str], **more: Any
) -> shape.ValidationReport:
    """Return the whole report as a JSON-able mapping."""
    # ties by id, so that a report is the same each time
    ranked = sorted(items, key=lambda item: (-abs(np.log(item.predicted / item.measured)), item.id))
    report = {
        "rows": rows,
        "skipped": list(skipped),
        **statistics(items),
        "by_source": by_source(items, skipped, sources),
        "worst": [item.id for item in ranked[:_WORST]],
        "items": [as_row(item) for item in items],
    }
    return cast(shape.ValidationReport, report | more)


def answer(
    report: shape.ValidationReport, request: Mapping[str, Any], as_of: date, catalog_version: str
) -> shape.Validation:
    """Return a report as an answer."""
    return {
        **report,
        **frame(request, as_of, catalog_version),
        "lead": lead(report),
        "warnings": [],
        "sources": {},
    }


def lead(report: shape.ValidationReport) -> str:
    """Return the answer in one sentence."""
    macro, median = report["macro_median_abs_error_fraction"], report["median_abs_error_fraction"]
    if macro is None or median is None:
        return f"None of {report['rows']} rows could be predicted."
    return (
        f"{report['predicted']} of {report['rows']} rows predicted: the median error is {macro:.1%} as the mean over "
        f"sources, {median:.1%} over rows; {report['method']}."
    )


def as_row(item: Item) -> shape.PredictionRow:
    """Return an item as a mapping."""
    return cast(shape.PredictionRow, asdict(item) | {"notes": list(item.notes), "error_fraction": item.error_fraction})


# --- Measured rows of any kind: read from a file or the catalog, their figures, and predictions beside them.

_MOST_ROWS = 5_000  # each is predicted in about 2 ms
_REMARKS = (
    "id",
    "source_id",
    "source_name",
    "source_locator",
    "as_of",
    "notes",
    "sanity",
    "sanity_note",
    "recommended",
)
_UNREAD = ("derived_tokens_per_s_per_gpu", "measured_output_tok_s_per_gpu")  # figures that no prediction asks for


class Measured(Struct, frozen=True):
    """One measured figure of a row."""

    row: int
    metric: str
    value: float
    group: str = ""  # what the figure was derived from, or under which load it was taken


class Measurements(Struct, frozen=True):
    """Rows that could be read, their figures, figures that are only shown, and what was skipped with the reason."""

    rows: list[Any]
    figures: list[Measured]
    shown: list[Measured]  # compared, but never fitted or counted
    skipped: list[Skipped]
    sources: dict[str, str]  # id -> source
    total: int

    def select(self, chosen: Flags) -> "Measurements":
        """Return the rows that are chosen, with their figures."""
        places = np.flatnonzero(chosen).tolist()
        new = {old: index for index, old in enumerate(places)}  # figures name their row by its place

        def moved(figures: Sequence[Measured]) -> list[Measured]:
            return [replace(figure, row=new[figure.row]) for figure in figures if figure.row in new]

        return replace(
            self,
            rows=[self.rows[index] for index in places],
            figures=moved(self.figures),
            shown=moved(self.shown),
            total=len(places) + len(self.skipped),
        )

    def core(self) -> "Measurements":
        """Keep the rows well suited to validation."""
        return self.select(np.array([row.core for row in self.rows], dtype=np.bool_))

    def of_rows(self, name: str) -> "np.ndarray[Any, Any]":
        """Return an attribute of each figure's row."""
        return np.array([getattr(self.rows[figure.row], name) for figure in self.figures])

    @property
    def row_sources(self) -> "np.ndarray[Any, Any]":
        """Return the source of each row."""
        return np.array([row.source for row in self.rows])

    @property
    def log_measured(self) -> Floats:
        """Logarithms of the figures."""
        logged: Floats = np.log(np.array([figure.value for figure in self.figures], dtype=np.float64))
        return logged

    def items(
        self, middle: Floats, width: Floats, figures: Sequence[Measured] | None = None, above: Floats | None = None
    ) -> list[Item]:
        """Return predictions beside the measurements, `width` wide in logarithms below and, unless `above`, above."""
        items_found = []
        lower, upper = middle * np.exp(-width), middle * np.exp(width if above is None else above)
        columns = (middle.tolist(), lower.tolist(), upper.tolist())
        for figure, point, low, high in zip(self.figures if figures is None else figures, *columns, strict=True):
            row = self.rows[figure.row]
            items_found.append(
                Item(row.id, row.source, figure.metric, figure.value, point, low, high, figure.group, row.notes)
            )
        return items_found


def read_file(path: str | Path, needed: Sequence[str] = ("model", "gpu")) -> list[dict[str, str]]:
    """Read a CSV file of measurements; only `model`, `gpu` and one measured column are indispensable."""
    header, rows = read_table(path, "limit_table_file_bytes")
    if missing := set(needed) - set(header):
        raise DataError(f"lacks the column {' and '.join(sorted(missing))}", file=str(path), row=1)
    if not rows:
        raise DataError("has no rows below its header", file=str(path))
    if len(rows) > _MOST_ROWS:
        reason = (
            f"has {len(rows):,} rows, and at most {_MOST_ROWS:,} are predicted at once. Split it, or take a sample."
        )
        raise DataError(reason, file=str(path))
    for name in header:  # other tables than those of runs may hold any column
        if "gpu" in needed and (likely := _likely_column(name, header)):
            reason = f"is not a column of measurements; did you mean {likely}? A remark of your own begins with x_"
            raise DataError(reason, file=str(path), row=1, column=name[:120])
    return [dict.fromkeys(header, "") | row for _, row in rows]


def _likely_column(name: str, columns: Sequence[str]) -> str:
    """Return the column of measurements that a header's unknown name is a slip of, where it lacks that; else nothing.

    >>> _likely_column("seqlen", ["model", "seqlen"]), _likely_column("seqlen", ["seqlen", "seq_len"])
    ('seq_len', '')
    >>> _likely_column("host", ["host"])
    ''
    """
    known = {column for table in TABLES if table.endswith("measurements") for column in TABLES[table].names}
    if name in known or name.startswith("x_"):
        return ""
    read = {column for table in ("training", "serving") for column in TABLES[f"{table}_measurements"].names}
    lacking = sorted(read - {*columns, *_REMARKS})
    likely = nearest(name.lower(), lacking, cutoff=0.8)  # at 0.8 one letter in five may differ
    return likely[0] if likely else ""


def gather(
    rows: Sequence[Row], table: str, read: Callable[[Row, int], tuple[Any, list[Measured], list[Measured]]]
) -> Measurements:
    """Read every row; what cannot be computed or compared is skipped with its reason."""
    measurements = Measurements([], [], [], [], {}, len(rows))
    for number, row in enumerate(rows):
        name = str(row.get("id") or f"row {number + 2}")  # as a table program counts, below the header
        measurements.sources[name] = str(row.get("source_name") or "")
        try:
            refuse_slips(row, table)
            mine, figures, shown = read(row, len(measurements.rows))
        except UsageError as error:
            measurements.skipped.append({"id": name, "reason": str(error)})
        except (ValueError, TypeError, ArithmeticError) as error:  # from the physics: no single cell is to blame
            measurements.skipped.append({"id": name, "reason": f"its numbers contradict each other: {error}"})
        else:
            measurements.rows.append(mine)
            measurements.figures.extend(figures)
            measurements.shown.extend(shown)
    return measurements


def refuse_slips(row: Row, table: str) -> None:
    """Refuse a cell that is no number where a table holds numbers, and a number that no run has there."""
    for column in TABLES[table].columns:
        cell, sharding = row.get(column.name), column.name == "zero_stage"  # words, or a number
        whole = column.kind == "integer" or sharding
        if not (whole or column.kind == "number") or column.name in _UNREAD or wording.missing(cell):
            continue
        value = wording.number(cell)
        if value is None and not sharding:
            advice = "Write digits with a decimal point, or nothing where it is not known."
            raise UsageError(f"{column.name} is {shown(cell)}, not a number. {advice}")
        if value is None:
            continue
        if value < 0 or (whole and value % 1):
            raise UsageError(f"{column.name} is {shown(cell)}, not a {'whole ' * whole}number of 0 or more")
        if sharding and value > 3:
            raise UsageError(f"{column.name} is {shown(cell)}, none of 0, 1, 2 and 3")
        if whole and value >= wording.MOST_COUNTED:
            raise UsageError(f"{column.name} is {shown(cell)}, which is implausibly large")


def possible(measurements: Measurements, shares: Floats) -> Measurements:
    """Leave out the rows of which a figure needs more than all of the peak, or next to nothing; the reason is kept."""
    reasons: dict[int, str] = {}
    for figure, share in zip(measurements.figures, shares.tolist(), strict=True):
        if share > 1:
            reasons[figure.row] = f"{figure.metric} of {figure.value:,.5g} needs {share:.0%} of the peak, more than all"
        elif share < SLOWEST:
            reasons[figure.row] = f"{figure.metric} of {figure.value:,.5g} needs less than a billionth of the peak"
    odd: list[Skipped] = [{"id": measurements.rows[row].id, "reason": reason} for row, reason in reasons.items()]
    sound = np.array([row not in reasons for row in range(len(measurements.rows))], dtype=np.bool_)
    return replace(measurements.select(sound), skipped=[*measurements.skipped, *odd], total=measurements.total)
