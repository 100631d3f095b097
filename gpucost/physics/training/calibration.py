"""Calibrating training: observations, their residuals, and what makes a prediction less certain.

A measurement carries the habits of its source. Residuals are therefore split: the mean of a source counts with the
spread between sources, deviations from it with the spread within; so that a hundred rows of one laboratory teach how
time varies there, and weigh as one voice on how fast things are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpucost.physics import calibration as core
from gpucost.physics.calibration import Parameter, ResidualPart, Scheme, Values, mixed_low
from gpucost.physics.columns import Flags, Floats, Gathered, Integers
from gpucost.physics.hardware import FAMILIES
from gpucost.physics.software import CLASSES
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import FULL, LORA, QLORA, Step, TrainingCase
from gpucost.physics.training.efficiency import DEFAULTS, PARAMETERS, TRAITS, TYPICAL, resolve
from gpucost.physics.training.memory import from_training, training_memory, usable_bytes
from gpucost.physics.training.own_runs import Alike

_BETWEEN_SOURCES = 0.12  # standard deviation of log(predicted ÷ measured) between the sources' means
_WITHIN_SOURCE = 0.10  # and within a source
_VOICES = 25  # rows of one source beyond which more of them add nothing
_OUTLIER = 2.0  # standard deviations at which a residual stops counting in full
_USUAL_FAMILIES = ("ampere", "hopper", "blackwell")
_HOST_BOUND_FRACTION = 0.1
_OWN = [parameter.name for parameter in PARAMETERS].index("own_ratio")

SCHEME = Scheme(
    parameters=PARAMETERS,
    traits=TRAITS,
    width=0.18,
    ratio=1.25,
    usual=0.2,
    sides=(core.SLOWER, core.FASTER),
)
_OLD_FAMILIES = ("pascal", "volta", "turing")
_LONG_CONTEXT_TOKENS = 32_768
_OLDER_STACKS = [CLASSES.index(name) for name in ("megatron", "deepspeed")]


class Observations(Gathered, frozen=True):
    """Measured cases: what was run, by which software, and how fast it was."""

    case: TrainingCase  # its efficiencies are ignored
    software: Integers
    software_year: Floats
    whole_run: Flags  # the figure covers restarts and evaluation
    long_run_ratio: Floats  # hours of a long run ÷ those of its steps; 1 where the figure is of no such run
    dispatcher: Integers  # how tokens reach their experts: unsaid (-1), all-to-all (0), fused (1)
    sinks: Integers  # attention with learned sinks: unsaid (-1), apart (0), fused (1)
    source: Integers  # code of the source
    log_measured: Floats  # of tokens/s per accelerator


def with_values(seen: Observations, values: Values) -> TrainingCase:
    """Return the cases with the efficiencies that `values` give them."""
    c = seen.case
    efficiency = resolve(values, c.hardware, seen.software, seen.software_year, seen.dispatcher, seen.sinks)
    return TrainingCase(c.shape, c.hardware, c.layout, c.recipe, efficiency)


def log_predicted(seen: Observations, values: Values) -> Floats:
    """Return log tokens/s per accelerator.

    A run timed to a target is slower than its steps by the production ratio, a long one by what failures cost it and
    what stands beside its steps.
    """
    speed = training.step(with_values(seen, values)).tokens_per_s_per_gpu
    timed = np.where(seen.whole_run & (seen.long_run_ratio == 1), np.log(values["production_ratio"]), 0.0)
    logged: Floats = np.log(speed) - timed - np.log(seen.long_run_ratio)
    return logged


def whitened(
    residual: Floats, source: Integers, between: float = _BETWEEN_SOURCES, within: float = _WITHIN_SOURCE
) -> Floats:
    """Return residuals with the covariance of a common bias per source removed.

    Var = within²·I + between²·11ᵀ: deviations from the source's mean are divided by `within`, the mean by
    √(between² + within²/n).
    """
    counts = np.bincount(source)
    n = counts[source]
    mean = np.bincount(source, residual)[source] / n
    weight = np.minimum(1.0, np.sqrt(_VOICES / n))
    # The mean is one observation, spread over its n rows: the squares of n such parts add up to its own.
    bias = mean / np.sqrt(between**2 + within**2 / n) / np.sqrt(n)
    white: Floats = (residual - mean) / within * weight + bias
    return white


def problem(
    seen: Observations,
    centre: Values = DEFAULTS,
    spread_ratio: float = 1.0,
    between: float = _BETWEEN_SOURCES,
    within: float = _WITHIN_SOURCE,
    parameters: Sequence[Parameter] = PARAMETERS,
) -> core.FitProblem:
    """Return the fit that balances the observations and the priors around `centre`.

    `between` is the spread between sources: nothing for runs whose own habits are to be learned, which alone move
    `own_ratio`.
    """
    # The rows that speak of each family and class; an unknown class is the mean of the typical ones, and speaks of
    # them.
    members = {name: seen.case.hardware.family == code for code, name in enumerate(FAMILIES)}
    members |= {name: seen.software == code for code, name in enumerate(CLASSES)}
    members |= {name: members[name] | members["unknown"] for name in TYPICAL if members[name].any()}
    touched = [
        np.isin(seen.source, seen.source[mine])  # whitening mixes the rows of a source
        for mine in core.touched_by(parameters, members, len(seen))
    ]
    if between:  # sources: a ratio that all of them share is what the other parameters say
        touched[_OWN] = np.zeros(len(seen), dtype=np.bool_)

    def part_of(rows: Integers) -> ResidualPart:
        observed = seen.take(rows)

        def residual(values: Values) -> Floats:
            gap = log_predicted(observed, values) - observed.log_measured
            return core.pseudo_huber(whitened(gap, observed.source, between, within), _OUTLIER)

        return ResidualPart(rows, residual)

    return core.FitProblem(parameters, touched, part_of, centre, spread_ratio)


def fit(
    seen: Observations,
    centre: Values = DEFAULTS,
    spread_ratio: float = 1.0,
    between: float = _BETWEEN_SOURCES,
    within: float = _WITHIN_SOURCE,
    start: Values | None = None,
    parameters: Sequence[Parameter] = PARAMETERS,
) -> dict[str, float]:
    """Return the parameters that balance the observations and the priors; the search begins at `start`."""
    return core.fit(problem(seen, centre, spread_ratio, between, within, parameters), start=start)


def traits(
    alike: Alike,
    step: Step,
    *,
    stated_layout: Flags | bool,
    whole_run: Flags | bool = False,
) -> dict[str, Flags]:
    """Return what makes cases less certain, or more; host-bound ones wait for the host for a tenth of the step."""

    def flags(value: Any) -> Flags:
        return np.broadcast_to(np.asarray(value, dtype=np.bool_), step.total_s.shape)

    family, software = alike.hardware.family, alike.software
    waiting = (step.host_s + step.overhead_s) / step.total_s
    # How many doublings more accelerators a case has than the largest cluster of its chip that was measured: a trait
    # that counts as often as they are.
    largest = alike.hardware.largest_gpus
    ratio = alike.layout.gpus / np.maximum(largest, 1.0)
    doublings = np.where(largest > 0, np.log2(np.maximum(ratio, 1.0)), 0.0)
    usual = np.isin(family, [FAMILIES.index(name) for name in _USUAL_FAMILIES])
    return {
        "unstated_layout": flags(~np.asarray(stated_layout, dtype=np.bool_)),
        "unknown_software": flags(np.equal(software, CLASSES.index("unknown"))),
        "mixture_of_experts": flags(alike.shape.experts > 0),
        "unusual_family": flags(~usual),
        "old_family": flags(np.isin(family, [FAMILIES.index(name) for name in _OLD_FAMILIES])),
        "whole_run": flags(whole_run),
        "host_bound": flags(waiting > _HOST_BOUND_FRACTION),
        "long_context": flags(alike.recipe.sequence_tokens >= _LONG_CONTEXT_TOKENS),
        "older_stack": flags(np.isin(software, _OLDER_STACKS)),
        "adapters": flags(alike.recipe.method >= LORA),
        "quantised_base": flags(alike.recipe.method == QLORA),
        "unmeasured_chip": flags(alike.hardware.sources == 0),
        "one_source": flags(alike.hardware.sources <= 1),
        "two_sources": flags(alike.hardware.sources <= 2),
        "beyond_largest": np.broadcast_to(doublings, step.total_s.shape),
    }


# Share of those who run a class of stack and do not say how it attends, whose attention is not fused: of six sources of
# general stacks since 2023 that say so, one. A stack that nobody names is such a one in a third of all cases. Stacks of
# one kernel have no share.
_APART = {"eager": 1 / 6, "unknown": 1 / 6 / len(TYPICAL)}
APART_SHARE = np.array([_APART.get(name, 0.0) for name in CLASSES])


def unsaid_attention_low(
    software: Integers | int, case: TrainingCase, step: Step, low: Floats, closer: Floats | float = 1.0
) -> Floats:
    """Return the low end of a speed's range where nobody says how attention is computed: some do not fuse it.

    `low` is that of fused attention. What does not fit in memory with its scores, all else recomputed, runs fused. Runs
    of one's own speak of the stack that one has: they lessen the share as they narrow a range.
    """
    share = APART_SHARE[software] * closer * case.layout.flash
    if not np.any(share):
        return low
    # without a fused kernel scores lie in memory: the most that recomputation saves is allowed for
    full = np.full(len(case), FULL)
    apart = replace(case.layout, flash=np.zeros(len(case), dtype=np.bool_), recompute=full)
    need = training_memory(case.shape, apart, from_training(case.recipe, "eager")).total_bytes
    share = np.where(need <= usable_bytes(case.hardware.memory_gib), share, 0.0)
    speed = step.tokens_per_s_per_gpu
    return mixed_low(speed, low, speed * training.apart_ratio(case, step), share)


# Share of those who train mixtures and do not say how tokens reach their experts, whose dispatcher is a fused kernel:
# of eleven sources since such kernels exist, three say that theirs is; none names the other kind.
FUSED_SHARE, FUSED_DISPATCH_YEAR = 3 / 11, 2025.0


def unsaid_dispatcher_high(
    case: TrainingCase,
    software_year: Floats | float,
    speed: Floats,
    high: Floats,
    closer: Floats | float = 1.0,
    unsaid: Flags | bool = True,
) -> Floats:
    """Return the high end of a speed's range where nobody says how tokens reach their experts: some fuse that.

    `high` is that of plain all-to-all. Runs of one's own lessen the share as they narrow a range.
    """
    mixtures = (case.shape.experts > 0) & (np.asarray(software_year) >= FUSED_DISPATCH_YEAR) & unsaid
    share = np.broadcast_to(FUSED_SHARE * closer * mixtures, speed.shape)
    rows = np.flatnonzero((share > 0) & (high > speed))
    if not len(rows):
        return high
    plain = case.take(rows)
    fused = replace(plain, efficiency=replace(plain.efficiency, dispatch_ratio=np.ones(len(rows))))
    faster = training.step(plain).total_s / training.step(fused).total_s
    above = high.copy()
    # the low end of the time per token is the high end of the speed
    above[rows] = 1 / mixed_low(1 / speed[rows], 1 / high[rows], 1 / (speed[rows] * faster), share[rows])
    return above


def ceiling(step: Step) -> Floats:
    """Return the speed that no step exceeds: its products and attention alone, at what the best kernels attain."""
    with np.errstate(divide="ignore", over="ignore"):  # a step without products has no ceiling
        return step.tokens_per_s_per_gpu * step.total_s / (step.matrix_s + step.attention_s)
