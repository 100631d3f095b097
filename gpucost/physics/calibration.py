"""Calibration of any physics: parameters with priors, a robust fit around them, groups held out, and ranges.

What is predicted and how is said by the caller: a `Scheme` names the parameters and what widens a range, a `Part`
gives the residuals of some observations as a function of the values. Priors pull every parameter to what is believed
without the rows; what the rows do not touch stays there.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from gpucost.gate import beside
from gpucost.physics.columns import Flags, Floats, Integers

COVERAGE = 0.80  # of every range: one measurement in ten lies below it, one above
SLOWER, FASTER = ".slower", ".faster"  # the sides of a range that is fitted apart below and above its point
STEP = 1e-4  # of a derivative, in standard deviations of the prior: the middle between curvature and rounding

Values = Mapping[str, float]


class Parameter(NamedTuple):
    """One parameter of a calibration."""

    name: str
    prior: float
    spread: float  # standard deviation of the logarithm before the fit
    unit: str
    meaning: str
    fitted: bool = True  # else a constant: what is believed of it holds, for no fit of it helps sources it has not seen


def declared(module: str) -> tuple[tuple[Parameter, ...], dict[str, str]]:
    """Read the parameters.csv beside a module: what is fitted or constant, and what each trait of a range means."""
    rows = beside(module, "parameters")[1:]
    parameters = tuple(
        Parameter(name, float(prior), float(spread), unit, meaning, kind == "parameter")
        for kind, name, prior, spread, unit, meaning in rows
        if kind in ("parameter", "constant")
    )
    return parameters, {name: meaning for kind, name, *_, meaning in rows if kind == "trait"}


class Calibration(Struct, frozen=True):
    """The parameters and the widths of the ranges."""

    values: Values
    ranges: Values
    runs: tuple["Run", ...] = ()
    stacks: Mapping[str, str] = MappingProxyType({})  # software of one's own -> the shipped class it is like
    generation: "Calibration | None" = None  # of serving, for training on answers that the model writes

    def runs_of(self, software: str) -> tuple["Run", ...]:
        """Return the runs that speak of a stack: its own, and those that bear no stack's name."""
        return tuple(run for run in self.runs if run.stack in ("", software))


class Run(NamedTuple):
    """One measured run of one's own: its name, its configuration as text, and predicted ÷ measured speed."""

    name: str
    configuration: str
    ratio: float

    @property
    def stack(self) -> str:
        """The class of one's own that it was run with, in brackets behind its name.

        >>> Run("node7: train 8b [my-stack]", "", 1.0).stack, Run("train 8b", "", 1.0).stack
        ('my-stack', '')
        """
        return self.name.rpartition(" [")[2][:-1] if self.name.endswith("]") else ""


class Scheme(Struct, frozen=True, dict=True):
    """What a calibration is made of: its parameters, and what makes a prediction less certain."""

    parameters: tuple[Parameter, ...]
    traits: Mapping[str, str]  # name -> meaning
    width: float  # half the logarithmic width of a range before any fit
    ratio: float  # by which each trait widens it before any fit
    usual: float  # logarithm of the ratio that is believed of a trait
    sides: tuple[str, ...] = ("",)  # one width for both, or one each
    assumed: Mapping[str, float] = MappingProxyType({})  # ratios of traits that no measurement can have

    @cached_property
    def defaults(self) -> dict[str, float]:
        """Return the middle of every prior."""
        return {parameter.name: parameter.prior for parameter in self.parameters}

    @cached_property
    def default_ranges(self) -> dict[str, float]:
        """Return the widths before any fit."""
        usual = {"base": self.width, **dict.fromkeys(self.traits, self.ratio), **self.assumed}
        return {name + side: value for side in self.sides for name, value in usual.items()}

    def load(self, rows: Sequence[Mapping[str, Any]]) -> Calibration:
        """Read the rows of calibration tables; later ones override earlier ones, so that a user's own may follow."""
        values, ranges = dict(self.defaults), dict(self.default_ranges)
        runs: dict[str, Run] = {}
        stacks: dict[str, str] = {}
        for row in rows:
            if row["kind"] == "run":
                runs[str(row["name"])] = Run(str(row["name"]), str(row["meaning"]), float(row["value"]))
                continue
            if row["kind"] == "stack":
                stacks[str(row["name"])] = str(row["meaning"])
                continue
            # everything else is a parameter, also where an older table has a name that no prior knows
            target = ranges if row["kind"] == "range" else values
            target[str(row["name"])] = float(row["value"])
        return Calibration(values, ranges, tuple(runs.values()), stacks)


# Fits ----------------------------------------------------------------------------------------------------------------


class ResidualPart(NamedTuple):
    """Residuals of some observations: which of all they are, and their values at given parameters."""

    rows: Integers
    residual: Callable[[Values], Floats]


def pseudo_huber(residual: Floats, outlier: float) -> Floats:
    """Return residuals whose square grows only linearly beyond `outlier` standard deviations.

    >>> pseudo_huber(np.array([0.0]), 2.0), bool(pseudo_huber(np.array([20.0]), 2.0)[0] < 20)
    (array([0.]), True)
    """
    grown: Floats = np.sign(residual) * outlier * np.sqrt(2 * (np.sqrt(1 + (residual / outlier) ** 2) - 1))
    return grown


def touched_by(parameters: Sequence[Parameter], members: Mapping[str, Flags], count: int) -> list[Flags]:
    """Return, per parameter, the observations that it can move: those of its member (family, engine …), else all."""
    everything = np.ones(count, dtype=np.bool_)
    return [members.get(parameter.name.partition(".")[2], everything) for parameter in parameters]


class FitProblem:
    """Least squares around priors: residuals of the observations, pulls of the priors, and their derivatives."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        touched: Sequence[Flags],
        part_of: Callable[[Integers], ResidualPart],
        centre: Values,
        spread_ratio: float,
    ) -> None:
        # Parameters are positive ratios and times: the fit moves their logarithms, in standard deviations of the prior,
        # so that all have one scale and the pull of a prior is the coordinate itself.
        self.names = [parameter.name for parameter in parameters]
        self.middle = np.log([centre[name] for name in self.names])
        self.spread = np.array([parameter.spread for parameter in parameters]) * spread_ratio
        self.free = [
            i
            for i, (rows, parameter) in enumerate(zip(touched, parameters, strict=True))
            if parameter.fitted and rows.any()
        ]
        self.whole = part_of(np.arange(len(touched[0])))
        # Many parameters move the same observations (those of a family, of an engine): their part is made once.
        kinds = {touched[index].tobytes(): np.flatnonzero(touched[index]) for index in self.free}
        parts = {key: part_of(rows) for key, rows in kinds.items()}
        self.parts = [parts[touched[index].tobytes()] for index in self.free]
        self.last: tuple[Floats, Floats] | None = None

    def values(self, z: Floats) -> dict[str, float]:
        """Return the parameters at a point, in standard deviations of the priors."""
        logs = self.middle.copy()
        logs[self.free] += z * self.spread[self.free]
        return dict(zip(self.names, np.exp(logs).tolist(), strict=True))

    def cost(self, z: Floats) -> Floats:
        """Return all residuals and the pulls of the priors; those of the last point are kept for its derivatives."""
        if self.last is None or not np.array_equal(z, self.last[0]):
            self.last = z.copy(), np.concatenate([self.whole.residual(self.values(z)), z])
        return self.last[1]

    def slopes(self, z: Floats) -> Floats:
        """Return the derivatives of `cost`: forward differences over the observations that a parameter can move."""
        base = self.cost(z)
        table = np.zeros((len(base), len(z)))
        table[len(base) - len(z) :] = np.eye(len(z))  # the pulls are the coordinates
        for column, part in enumerate(self.parts):
            ahead = z.copy()
            ahead[column] += STEP
            table[part.rows, column] = (part.residual(self.values(ahead)) - base[part.rows]) / STEP
        return table


def fit(
    problem: FitProblem, *, start: Values | None = None, limit: float = 4.0, rounds: int = 40, loss: str = "linear"
) -> dict[str, float]:
    """Return the parameters that balance the observations and the priors: maximum a posteriori by least squares.

    The search begins at `start`, else at the priors; no parameter goes further than `limit` standard deviations from
    its prior, and one that no observation touches stays there.
    """
    from scipy.optimize import least_squares

    first = np.zeros(len(problem.free))
    if start is not None:
        logs = np.log([start[name] for name in problem.names])
        # the search must begin inside its bounds
        first = np.clip(((logs - problem.middle) / problem.spread)[problem.free], 0.1 - limit, limit - 0.1)
    bounds = (-limit, limit)
    solution = least_squares(problem.cost, first, jac=problem.slopes, bounds=bounds, max_nfev=rounds, loss=loss)
    return problem.values(solution.x)


# Ranges --------------------------------------------------------------------------------------------------------------


def width_of(traits: Mapping[str, Flags], ranges: Values, side: str = "") -> Floats:
    """Return the logarithmic width of a side of the 80 % range: base · Π ratio ^ how far each trait applies."""
    width: Floats = np.full(len(next(iter(traits.values()))), ranges["base" + side])
    for name, applies in traits.items():
        width = width * ranges[name + side] ** np.asarray(applies, dtype=np.float64)
    return width


def interval(
    speed: Floats, traits: Mapping[str, Flags], ranges: Values, ceiling: Floats, narrowing: Floats
) -> tuple[Floats, Floats]:
    """Return the 80 % range of a speed: from speed · e^−slower to speed · e^faster, at most the ceiling.

    Runs of one's own narrow both sides by a ratio. The range contains its point.
    """
    low = speed * np.exp(-width_of(traits, ranges, SLOWER) * narrowing)  # widths are logarithms
    high = speed * np.exp(width_of(traits, ranges, FASTER) * narrowing)
    return low, np.clip(high, speed, np.maximum(ceiling, speed))


_ODDS = np.log(9.0)  # of lying below an end of an 80 % range, as a logarithm: one to nine


def mixed_low(speed: Floats, low: Floats, apart: Floats, share: Floats) -> Floats:
    """Return the low end of the 80 % range of what people run: `share` of them at the speed `apart`, the rest at speed.

    Each is spread as `low` says, by a logistic law whose tenth part lies below its end. The end is the speed x with
    (1 − share)·F(ln x − ln speed) + share·F(ln x − ln apart) = 0.1. It is never above `low`.

    >>> ends = mixed_low(np.ones(3), np.full(3, 0.8), np.array([0.4, 0.4, 1.0]), np.array([0.0, 0.2, 0.2]))
    >>> ends.round(2).tolist()  # half of the fifth that is slower lies below 0.4
    [0.8, 0.4, 0.8]
    """
    # F(x) = 1 ÷ (1 + e^(−odds · x ÷ width)), so that F(−width) = 0.1; the mixture's end is found by halving, 24 times:
    # to a ten-millionth of the distance between the two speeds.
    width = np.log(speed / low)
    step = np.log(speed / np.minimum(apart, speed))
    near, far = np.zeros_like(step), step  # how far below `low` the end lies
    for _ in range(24):
        middle = (near + far) / 2
        usual, slower = (1 / (1 + np.exp(_ODDS * (width + middle - shift) / width)) for shift in (0.0, step))
        enough = (1 - share) * usual + share * slower <= (1 - COVERAGE) / 2
        near, far = np.where(enough, near, middle), np.where(enough, middle, far)
    return low * np.exp(-far)


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """Return the smallest value below which `share` of the weight lies.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / np.sum(weight)
    return float(values[order][np.searchsorted(below, share)])


# The table -----------------------------------------------------------------------------------------------------------

_BASE_MEANING = "half width of the 80 % range, in logarithms, where no trait below applies"
_SIDE_MEANINGS = {"": "", SLOWER: "; below the point", FASTER: "; above the point"}


def table(
    scheme: Scheme, fitted: Calibration, rows_used: int, source_id: str, centre: Values, spread_ratio: float = 1.0
) -> list[dict[str, Any]]:
    """Return the rows of a calibration table; `centre` is the middle of the priors it was fitted around."""
    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "kind": "parameter",
            "value": _rounded(fitted.values[p.name]),
            "prior": _rounded(centre[p.name]),
            "prior_spread_ratio": p.spread * spread_ratio,
            "unit": p.unit,
            "meaning": p.meaning,
        }
        for p in scheme.parameters
        if p.fitted or fitted.values[p.name] != p.prior  # a constant that stays at its prior needs no row
    ]
    base_traits = {"base": _BASE_MEANING, **scheme.traits}
    meanings = {name + side: text + _SIDE_MEANINGS[side] for side in scheme.sides for name, text in base_traits.items()}
    for name, value in fitted.ranges.items():
        unit = "logarithm" if name.startswith("base") else "ratio"
        empty = {"prior": None, "prior_spread_ratio": None}
        row = {
            "name": name,
            "kind": "range",
            "value": _rounded(value),
            **empty,
            "unit": unit,
            "meaning": meanings[name],
        }
        rows.append(row)
    for run in fitted.runs:
        row = {"name": run.name, "kind": "run", "value": run.ratio, "prior": None, "prior_spread_ratio": None}
        rows.append(row | {"unit": "ratio", "meaning": run.configuration})
    for name, like in fitted.stacks.items():
        row = {"name": name, "kind": "stack", "value": 1.0, "prior": None, "prior_spread_ratio": None}
        rows.append(row | {"unit": "class", "meaning": like})
    return [row | {"rows_used": rows_used, "source_id": source_id} for row in rows]


def _rounded(value: float) -> float:
    """Return a value at six significant digits: more would be noise of the fit.

    >>> _rounded(0.123456789)
    0.123457
    """
    return float(f"{value:.6g}")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the rows as the CSV file that the catalog reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return text.getvalue()
