"""Errors of predictions, per source and in total: the one report of every kind of validation.

The macro-median is the mean over sources of each source's median error, sources with fewer than five rows pooled as
one: a source is one voice, however many rows it publishes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict

from gpucost.answers import checks as shape
from gpucost.answers.common import frame

SMALL_SOURCE_ROWS = 5
POOLED = "sources with fewer than five rows"
WORST = 10


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
    return [item.source if counts[item.source] >= SMALL_SOURCE_ROWS else POOLED for item in items]


def statistics(items: Sequence[Item]) -> shape.Errors:
    """Return the figures of a set of predictions; None where there are none.

    >>> rows = [Item(str(k), "a", "m", 100.0, p, p - 15, p + 15) for k, p in enumerate((90.0, 110.0, 120.0))]
    >>> found = statistics(rows)
    >>> round(found["median_abs_error_fraction"], 3), round(found["interval_coverage_fraction"], 3)
    (0.1, 0.667)
    """
    if not items:
        return cast(shape.Errors, dict.fromkeys(shape.Errors.__annotations__) | {"predicted": 0})
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
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.source, []).append(item)
    lost = Counter(sources.get(entry["id"], "") for entry in skipped)
    rows: list[shape.SourceErrors] = []
    for name in sorted({*found, *lost}):
        own, skips = found.get(name, []), lost[name]
        row = {"source": name, "rows": len(own) + skips, "skipped": skips, **statistics(own)}
        rows.append(cast(shape.SourceErrors, {key: row[key] for key in shape.SourceErrors.__annotations__}))
    return rows


def payload(
    rows: int, items: Sequence[Item], skipped: Sequence[shape.Skipped], sources: Mapping[str, str], **more: Any
) -> shape.ValidationReport:
    """Return the whole report as a JSON-able mapping."""
    ranked = sorted(items, key=lambda item: (-abs(np.log(item.predicted / item.measured)), item.id))
    found = {
        "rows": rows,
        "skipped": list(skipped),
        **statistics(items),
        "by_source": by_source(items, skipped, sources),
        "worst": [item.id for item in ranked[:WORST]],
        "items": [as_row(item) for item in items],
    }
    return cast(shape.ValidationReport, found | more)


def answer(
    found: shape.ValidationReport, request: Mapping[str, Any], as_of: date, catalog_version: str
) -> shape.Validation:
    """Return a report as an answer."""
    return {
        **found,
        **frame(request, as_of, catalog_version),
        "lead": lead(found),
        "warnings": [],
        "sources": {},
    }


def lead(found: shape.ValidationReport) -> str:
    """Return the answer in one sentence."""
    macro, median = found["macro_median_abs_error_fraction"], found["median_abs_error_fraction"]
    if macro is None or median is None:
        return f"None of {found['rows']} rows could be predicted."
    return (
        f"{found['predicted']} of {found['rows']} rows predicted: the median error is {macro:.1%} as the mean over "
        f"sources, {median:.1%} over rows; {found['method']}."
    )


def as_row(item: Item) -> shape.PredictionRow:
    """Return an item as a mapping."""
    return cast(shape.PredictionRow, asdict(item) | {"notes": list(item.notes), "error_fraction": item.error_fraction})
