"""Fitting the efficiencies of serving, and holding sources, models or accelerators out of the fit.

Robust least squares around the priors. A source is one voice, however many rows it publishes; a parameter of one engine
or family is derived on its own rows only, which is what makes a fit a matter of seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.physics.columns import Flags, Floats
from gpucost.physics.serving.efficiency import DEFAULTS, ENGINES, FAMILIES, PARAMETERS
from gpucost.validation.serving import (
    MS_PER_S,
    OWN_SOURCE,
    Calibration,
    Measured,
    Measurements,
    fit_ranges,
    predicted,
    traits_of,
)
from gpucost.validation.serving_model import Loads, loads_of, printed

NOT_CORE_WEIGHT = 0.25  # what a row that is not suited to validation counts in a fit, against one that is

WITHIN_SOURCE = 0.25  # standard deviation of a residual's logarithm at which it counts in full
VOICE_ROWS = 60  # figures of one source beyond which more of them add only as their root


@dataclass(frozen=True)
class Observations:
    """Figures as arrays, ready for a fit."""

    loads: Loads
    figures: list[Measured]
    log_measured: Floats
    source: NDArray[Any]
    group: NDArray[Any]
    core: Flags


def observe(found: Measurements) -> Observations:
    """Turn measurements into arrays."""
    rows = [found.rows[figure.row] for figure in found.figures]
    values = np.array([figure.value for figure in found.figures])
    return Observations(
        loads_of(found.rows, DEFAULTS),
        found.figures,
        np.log(values),
        np.array([row.source for row in rows]),
        np.array([row.group for row in rows]),
        np.array([row.core for row in rows]),
    )


def voice(seen: Observations, chosen: Flags) -> Floats:
    """Return the weight of each figure: a source counts as √rows once it has many, and less where it is not core."""
    keys = np.char.add(np.char.add(seen.source.astype(str), "|"), seen.group.astype(str))
    _, inverse, counts = np.unique(keys[chosen], return_inverse=True, return_counts=True)
    weight = np.zeros(len(keys))
    count = counts[inverse].astype(np.float64)
    weight[chosen] = np.sqrt(np.minimum(count, VOICE_ROWS) / count)
    return weight * np.where(seen.core, 1.0, NOT_CORE_WEIGHT)


def used(seen: Observations) -> Flags:
    """Return which parameters the observations can say anything about."""
    families = {FAMILIES[code] for code in np.unique(seen.loads.software.family)}
    engines = {list(ENGINES)[code] for code in np.unique(seen.loads.software.engine)}
    members = {*FAMILIES, *ENGINES} - families - engines
    return np.array([parameter.name.partition(".")[2] not in members for parameter in PARAMETERS])


class Problem:
    """The least-squares problem of a fit: residuals of the chosen figures, pulls of the priors, their derivatives."""

    def __init__(self, seen: Observations, chosen: Flags, centre: Mapping[str, float]) -> None:
        self.seen = seen
        self.names = [parameter.name for parameter in PARAMETERS]
        self.middle = np.log([centre[name] for name in self.names])
        self.spread = np.array([parameter.spread for parameter in PARAMETERS])
        self.free = np.flatnonzero(used(seen))
        weight = voice(seen, chosen)
        self.figures = np.flatnonzero(weight > 0)
        self.weight = weight[self.figures] / WITHIN_SOURCE
        self.rows = np.array([seen.figures[index].row for index in self.figures])
        self.touched = rows_touched(seen, [self.names[index] for index in self.free])

    def values(self, z: Floats) -> dict[str, float]:
        """Return the parameters at a point, in standard deviations of the priors."""
        logs = self.middle.copy()
        logs[self.free] += z * self.spread[self.free]
        return dict(zip(self.names, np.exp(logs).tolist(), strict=True))

    def residual(self, z: Floats, part: NDArray[Any]) -> Floats:
        """Return the weighted residuals of some of the chosen figures; only their rows are evaluated."""
        kept, where = np.unique(self.rows[part], return_inverse=True)
        shown = printed(self.seen.loads.take(kept), self.values(z))
        chosen = self.figures[part]
        moved = [
            Measured(int(row), self.seen.figures[index].metric, 0.0) for row, index in zip(where, chosen, strict=True)
        ]
        logged = np.log(np.maximum(predicted(moved, shown), 1e-12))
        gap: Floats = (logged - self.seen.log_measured[chosen]) * self.weight[part]
        return gap

    def cost(self, z: Floats) -> Floats:
        """Return all residuals and the pulls of the priors."""
        return np.concatenate([self.residual(z, np.arange(len(self.figures))), z])

    def slopes(self, z: Floats) -> Floats:
        """Return the derivatives of `cost`, forward differences over the figures that a parameter can move."""
        base = self.cost(z)
        table = np.zeros((len(base), len(z)))
        table[len(self.figures) :] = np.eye(len(z))
        for column, mine in enumerate(self.touched):
            part = np.flatnonzero(mine[self.rows])
            if len(part):
                ahead = z.copy()
                ahead[column] += STEP
                table[part, column] = (self.residual(ahead, part) - base[part]) / STEP
        return table


def fit(
    seen: Observations,
    chosen: Flags,
    start: Mapping[str, float] = DEFAULTS,
    rounds: int = 6,
    centre: Mapping[str, float] = DEFAULTS,
) -> dict[str, float]:
    """Return the parameters that balance the chosen figures and the priors: robust least squares, maximum a posteriori.

    `centre` is the middle of the priors; `start` is only where the search begins.
    """
    from scipy.optimize import least_squares

    problem = Problem(seen, chosen, centre)
    first = (np.log([start[name] for name in problem.names]) - problem.middle) / problem.spread
    first = np.clip(first[problem.free], -LIMIT + 0.1, LIMIT - 0.1)
    solution = least_squares(
        problem.cost, first, jac=problem.slopes, bounds=(-LIMIT, LIMIT), loss="soft_l1", max_nfev=rounds
    )
    return problem.values(solution.x)


LIMIT = 5.0  # standard deviations of a prior beyond which no parameter goes
STEP = 1e-4  # of a derivative, in standard deviations of the prior


def rows_touched(seen: Observations, names: Sequence[str]) -> list[Flags]:
    """Return, per parameter, the rows that it can move: those of its engine or family, else all."""
    everything = np.ones(len(seen.loads), dtype=np.bool_)
    found = []
    for name in names:
        member = name.partition(".")[2]
        if member in ENGINES:
            found.append(seen.loads.software.engine == list(ENGINES).index(member))
        elif member in FAMILIES:
            found.append(seen.loads.software.family == FAMILIES.index(member))
        else:
            found.append(everything)
    return found


GROUPINGS = {
    "source": lambda row: row.source,
    "model": lambda row: row.deployment.architecture.name,
    "gpu": lambda row: row.deployment.accelerator.id,
}


def leave_one_out(
    found: Measurements, seen: Observations, grouping: str = "source", start: Mapping[str, float] = DEFAULTS
) -> Floats:
    """Predict each group with a calibration fitted to the others; groups without core rows share one fit.

    Returns log predictions.
    """
    groups = np.array([GROUPINGS[grouping](found.rows[figure.row]) for figure in found.figures])
    logged = np.full(len(groups), np.nan)
    whole: dict[str, float] | None = None
    for name in np.unique(groups):
        mine = groups == name
        if seen.core[mine].any():
            values = fit(seen, ~mine, start)
        else:
            whole = whole or fit(seen, np.ones(len(groups), dtype=np.bool_), start)
            values = whole
        logged[mine] = np.log(predicted(seen.figures, printed(seen.loads, values)))[mine]
    return logged


def own_steps(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return this project's own decode and prefill steps as rows of serving measurements, for the fit."""
    answer = []
    for number, row in enumerate(rows):
        decode, eager = row["phase"] == "decode", row["mode"] == "eager"
        tokens = float(row["batch"]) * float(row["context"])
        speed = (
            {"tpot_ms": float(row["step_s"]) * MS_PER_S}
            if decode
            else {"measured_total_tokens_per_s": tokens / float(row["step_s"])}
        )
        answer.append(
            {
                "id": f"own-{number}",
                "source_name": OWN_SOURCE,
                "model": OWN_MODELS.get(row["model"], row["model"]),
                "gpu": row["gpu"],
                "n_gpus": row["tp"],
                "tp": row["tp"],
                "pp": 1,
                "weight_precision": row["weight_precision"],
                "engine": "eager" if eager and decode else "plain",
                "kv_precision": "bf16",
                "scenario": "fixed-batch" if decode else "prefill-only",
                "isl": row["context"],
                "osl": 1,
                "batch_or_concurrency": row["batch"],
                "notes": "decode only",
                "core": 1,
                **speed,
            }
        )
    return answer


OWN_MODELS = {"llama3-8b": "llama-3-8b", "llama3-70b": "llama-3-70b", "llama3.2-1b": "llama-3.2-1b"}


def calibrate(found: Measurements) -> tuple[Calibration, Floats]:
    """Fit the parameters to all figures, the ranges to held-out sources; return also the held-out log predictions."""
    seen = observe(found)
    values = fit(seen, np.ones(len(seen.figures), dtype=np.bool_), rounds=30)
    held_out = leave_one_out(found, seen, start=values)
    traits = traits_of(found, found.figures, printed(seen.loads, values))
    _, inverse, counts = np.unique(seen.source, return_inverse=True, return_counts=True)
    ranges = fit_ranges(held_out - seen.log_measured, traits, 1 / np.sqrt(counts[inverse]))
    return Calibration(values, ranges), held_out
