"""Fitting the efficiencies to measurements, and the range that the residuals leave.

A measurement carries the habits of its source. Residuals are therefore split: the mean of a source counts with the
spread between sources, deviations from it with the spread within; so that a hundred rows of one laboratory teach how
time varies there, and weigh as one voice on how fast things are. Priors pull every parameter to what is believed
without the rows; what the rows do not touch stays there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpucost.physics.columns import Columns, Flags, Floats, Integers
from gpucost.physics.hardware import FAMILIES
from gpucost.physics.software import CLASSES
from gpucost.physics.training import steps as training
from gpucost.physics.training.efficiency import DEFAULTS, PARAMETERS, resolve
from gpucost.physics.training.steps import Case

BETWEEN_SOURCES = 0.12  # standard deviation of log(predicted ÷ measured) between the sources' means
WITHIN_SOURCE = 0.10  # and within a source
VOICES = 25  # rows of one source beyond which more of them add nothing
OUTLIER = 2.0  # standard deviations at which a residual stops counting in full (pseudo-Huber)
COVERAGE = 0.80

# What widens a range, each with the ratio by which it does.
TRAITS = (
    "unstated_layout", "unknown_software", "mixture_of_experts", "fine_tuning", "unusual_family", "whole_run",
    "host_bound",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Observations:
    """Measured cases: what was run, by which software, and how fast it was."""

    case: Case  # its efficiencies are ignored
    software: Integers
    software_year: Floats
    whole_run: Flags  # the figure covers restarts and evaluation
    source: Integers  # code of the source
    log_measured: Floats  # of tokens/s per accelerator

    def take(self, rows: Any) -> "Observations":
        """Return the observations that `rows` names."""
        return Observations(
            self.case.take(rows), self.software[rows], self.software_year[rows], self.whole_run[rows],
            self.source[rows], self.log_measured[rows],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.log_measured)


def with_values(seen: Observations, values: Mapping[str, float]) -> Case:
    """Return the cases with the efficiencies that `values` give them."""
    c = seen.case
    efficiency = resolve(values, c.hardware.family, seen.software, seen.software_year, c.hardware.year)
    return Case(c.shape, c.hardware, c.layout, c.recipe, efficiency)


def log_predicted(seen: Observations, values: Mapping[str, float]) -> Floats:
    """Return log tokens/s per accelerator; a whole run is slower than its steps by the production ratio."""
    speed = training.step(with_values(seen, values)).tokens_per_s_per_gpu
    lost = np.where(seen.whole_run, np.log(values["production_ratio"]), 0.0)
    logged: Floats = np.log(speed) - lost
    return logged


def used_parameters(seen: Observations) -> Flags:
    """Return which parameters the observations can say anything about."""
    families = {FAMILIES[code] for code in np.unique(seen.case.hardware.family)}
    classes = {CLASSES[code] for code in np.unique(seen.software)}

    def used(name: str) -> bool:
        member = name.partition(".")[2]
        return member not in (*FAMILIES, *CLASSES) or member in families | classes

    return np.array([used(parameter.name) for parameter in PARAMETERS])


def whitened(residual: Floats, source: Integers, between: float = BETWEEN_SOURCES) -> Floats:
    """Return residuals with the covariance of a common bias per source removed.

    Var = within²·I + between²·11ᵀ: deviations from the source's mean are divided by `within`, the mean by
    √(between² + within²/n).
    """
    out = np.empty_like(residual)
    for code in np.unique(source):
        rows = np.flatnonzero(source == code)
        n, mean = len(rows), residual[rows].mean()
        weight = min(1.0, np.sqrt(VOICES / n))
        bias = mean / np.sqrt(between**2 + WITHIN_SOURCE**2 / n) / np.sqrt(n)
        out[rows] = (residual[rows] - mean) / WITHIN_SOURCE * weight + bias
    return out


def pseudo_huber(residual: Floats) -> Floats:
    """Return residuals whose square grows only linearly beyond OUTLIER standard deviations.

    >>> pseudo_huber(np.array([0.0])), bool(pseudo_huber(np.array([20.0]))[0] < 20)
    (array([0.]), True)
    """
    grown: Floats = np.sign(residual) * OUTLIER * np.sqrt(2 * (np.sqrt(1 + (residual / OUTLIER) ** 2) - 1))
    return grown


def fit(
    seen: Observations,
    start: Mapping[str, float] = DEFAULTS,
    spread_ratio: float = 1.0,
    between: float = BETWEEN_SOURCES,
) -> dict[str, float]:
    """Return the parameters that balance the observations and the priors (maximum a posteriori, least squares).

    `start` is the prior's centre; `spread_ratio` scales the priors' spreads, below one for a fit on top of another.
    `between` is the spread between sources: nothing for runs whose own habits are to be learned.
    """
    from scipy.optimize import least_squares

    names = [parameter.name for parameter in PARAMETERS]
    centre = np.log([start[name] for name in names])
    spread = np.array([parameter.spread for parameter in PARAMETERS]) * spread_ratio
    free = np.flatnonzero(used_parameters(seen))

    def values(z: Floats) -> dict[str, float]:
        logs = centre.copy()
        logs[free] += z * spread[free]
        return dict(zip(names, np.exp(logs).tolist(), strict=True))

    def cost(z: Floats) -> Floats:
        residual = log_predicted(seen, values(z)) - seen.log_measured
        return np.concatenate([pseudo_huber(whitened(residual, seen.source, between)), z])

    solution = least_squares(cost, np.zeros(len(free)), bounds=(-4.0, 4.0), max_nfev=40)
    return values(solution.x)


# Ranges --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traits(Columns):
    """What makes a prediction less certain: see TRAITS."""

    unstated_layout: Flags
    unknown_software: Flags
    mixture_of_experts: Flags
    fine_tuning: Flags
    unusual_family: Flags
    whole_run: Flags
    host_bound: Flags


USUAL_FAMILIES = ("ampere", "hopper", "blackwell")


def traits(
    case: Case, software: Integers, step: training.Step, *, stated_layout: Flags | bool, whole_run: Flags | bool = False
) -> Traits:
    """Return the traits of cases; host-bound ones wait for the host and fixed overheads for a tenth of the step."""
    count = len(case)

    def flags(value: Any) -> Flags:
        return np.broadcast_to(np.asarray(value, dtype=np.bool_), (count,))

    waiting = (step.host_s + step.overhead_s) / step.total_s
    usual = np.isin(case.hardware.family, [FAMILIES.index(name) for name in USUAL_FAMILIES])
    return Traits(
        unstated_layout=flags(~np.asarray(stated_layout, dtype=np.bool_)),
        unknown_software=flags(software == CLASSES.index("unknown")),
        mixture_of_experts=flags(case.shape.experts > 0),
        fine_tuning=flags(case.recipe.method >= training.LORA),
        unusual_family=flags(~usual),
        whole_run=flags(whole_run),
        host_bound=flags(waiting > 0.1),
    )


def spread_of(traits_: Traits, ranges: Mapping[str, float]) -> Floats:
    """Return half the logarithmic width of the range: base · Π ratio of the traits that apply."""
    width = np.full(len(traits_), ranges["base"])
    for name in TRAITS:
        width = width * np.where(getattr(traits_, name), ranges[name], 1.0)
    return width


def fit_ranges(residual: Floats, traits_: Traits, source: Integers) -> dict[str, float]:
    """Fit the widths to residuals of held-out sources, so that 80 % of them lie within.

    The scale of a Laplace distribution is fitted by maximum likelihood with rows weighted by 1/√(rows of their
    source); ratios are kept between 1 and 2.5 by a prior; the base is then set by the weighted 80 % quantile.
    """
    from scipy.optimize import minimize

    counts = np.bincount(source)[source]
    weight = 1 / np.sqrt(counts)
    size = np.abs(residual)
    active = np.stack([getattr(traits_, name) for name in TRAITS]).astype(np.float64)

    def loss(x: Floats) -> float:
        log_scale = x[0] + x[1:] @ active
        data = np.sum(weight * (log_scale + size * np.exp(-log_scale)))
        return float(data + 0.5 * np.sum(((x[1:] - 0.2) / 0.3) ** 2))

    bounds = [(-5.0, 1.0)] + [(0.0, np.log(2.5))] * len(TRAITS)
    x = minimize(loss, np.array([np.log(0.1)] + [0.2] * len(TRAITS)), bounds=bounds, method="L-BFGS-B").x
    base = weighted_quantile(size / np.exp(x[1:] @ active), weight, COVERAGE)
    return {"base": base, **{name: float(np.exp(value)) for name, value in zip(TRAITS, x[1:], strict=True)}}


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """Return the smallest value below which `share` of the weight lies.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / np.sum(weight)
    return float(values[order][np.searchsorted(below, share)])


# The table -----------------------------------------------------------------------------------------------------------

DEFAULT_RANGES: dict[str, float] = {"base": 0.18, **dict.fromkeys(TRAITS, 1.25)}


@dataclass(frozen=True, slots=True)
class Calibration:
    """The parameters and the widths of the ranges."""

    values: Mapping[str, float]
    ranges: Mapping[str, float]


def load(rows: Sequence[Mapping[str, Any]]) -> Calibration:
    """Read the rows of calibration tables; later rows override earlier ones, so that a user's own book may follow."""
    values, ranges = dict(DEFAULTS), dict(DEFAULT_RANGES)
    for row in rows:
        target = ranges if row["kind"] == "range" else values
        target[str(row["name"])] = float(row["value"])
    return Calibration(values, ranges)


def interval(speed: Floats, traits_: Traits, ranges: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the 80 % range of a speed: speed · e^∓width. It contains its point."""
    width = spread_of(traits_, ranges)
    return speed * np.exp(-width), speed * np.exp(width)
