"""Answers that hold something against something: a claim against facts, predictions against runs."""

from typing import Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame


class CheckRow(TypedDict):
    """One check: `value` is what the claim says or implies, `low`, `typical` and `high` what would be true."""

    name: str
    verdict: str
    value: float | None
    low: float | None
    typical: float | None
    high: float | None
    unit: str
    explanation: str


class Audit(AnswerFrame):
    """Whether a claim is possible."""

    kind: Literal["audit"]
    verdict: str
    checks: list[CheckRow]
    notes: list[str]


class Baseline(TypedDict):
    """The errors of a rule to beat."""

    predicted: int
    median_abs_error_fraction: float | None
    p90_abs_error_fraction: float | None
    macro_median_abs_error_fraction: float | None  # the mean over sources of each one's median


class Errors(Baseline):
    """The errors of a set of predictions."""

    interval_coverage_fraction: float | None  # of measurements that lie within the 80 % range
    median_high_low_ratio: float | None  # how wide ranges are
    bias_fraction: float | None
    source_bias_sd_fraction: float | None  # how far the sources' median errors spread
    within_source_fraction: float | None  # the median deviation inside a source


class SourceErrors(TypedDict):
    """The errors of one source."""

    source: str
    rows: int
    skipped: int
    predicted: int
    median_abs_error_fraction: float | None
    p90_abs_error_fraction: float | None
    bias_fraction: float | None
    interval_coverage_fraction: float | None


class PredictionRow(TypedDict):
    """One prediction beside its measurement."""

    id: str
    source: str
    metric: str
    measured: float
    predicted: float
    low: float
    high: float
    group: str
    notes: list[str]
    error_fraction: float  # predicted ÷ measured − 1


class Skipped(TypedDict):
    """A row that could not be predicted, and why."""

    id: str
    reason: str


class ValidationReport(Errors):
    """The errors of all predictions, by source, and one by one."""

    kind: Literal["validation"]
    validated: Literal["training", "memory", "serving", "load", "rl", "runs"]
    method: str
    rows: int
    skipped: list[Skipped]
    by_source: list[SourceErrors]
    worst: list[str]  # ids, the largest error first
    items: list[PredictionRow]
    # training
    baselines: NotRequired[dict[str, Baseline]]
    from_flop_rates: NotRequired[Errors]
    # memory
    by_recompute: NotRequired[dict[str, Errors]]
    # serving
    stated: NotRequired[Errors]
    saturation: NotRequired[Errors]
    figures: NotRequired[int]
    by_metric: NotRequired[dict[str, Errors]]
    loaded_ttft: NotRequired[list[PredictionRow]]
    caveat: NotRequired[str]


class Validation(AnswerFrame, ValidationReport):
    """Predictions against measurements."""
