"""Requests that a load sends: when they arrive, how long they are; drawn by a seed, or taken from a trace."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.catalog import Catalog
from gpucost.errors import DataError, UnknownNameError, UsageError
from gpucost.gate import read_table, shown
from gpucost.physics.columns import Floats
from gpucost.physics.serving.replica import Requests
from gpucost.units import as_number

SEED = 20_231_111  # the day of Azure's trace: any number would do, and must stay
CHAT_VARIATION = (1.0, 1.0)  # of prompts and outputs where only means are stated: an assumption, near Azure's of 2023
_P95 = 1.6449  # standard deviations of the 95th percentile
_VARIATIONS = {"poisson": 1.0, "constant": 0.0}
_MOST_VARIATION = 10.0
_TRACES = ("azure-conversation", "azure-code", "mooncake-conversation")
_COLUMNS, _SEEN = ("arrived_s", "prompt_tokens", "output_tokens"), "prompt_tokens_seen_before"
_LONGEST_TIMES = 12.0  # a drawn length against the mean, at most: data sets cut what a model cannot read


def variation_of(arrivals: str) -> float:
    """Return the coefficient of variation of the gaps that a word or a number says.

    >>> variation_of("poisson"), variation_of("constant"), variation_of("2.5")
    (1.0, 0.0, 2.5)
    """
    if arrivals in _VARIATIONS:
        return _VARIATIONS[arrivals]
    try:
        variation = float(arrivals)
    except ValueError:
        raise UnknownNameError(
            "arrivals",
            arrivals,
            [*_VARIATIONS, *_TRACES],
            "Or give a number, the coefficient of variation, or a CSV file.",
        ) from None
    if not 0 <= variation <= _MOST_VARIATION:
        raise UsageError(f"--arrivals: a coefficient of variation lies from 0 to {_MOST_VARIATION:g}, not {arrivals}.")
    return variation


def variation_by(mean: float, p95: float) -> float:
    """Return the coefficient of variation of a lognormal with a mean and a 95th percentile.

    p95 ÷ mean = e^(1.645·σ − σ²/2), of whose two solutions the narrower is taken.

    >>> round(variation_by(250, 700), 2)
    1.01
    """
    # σ²/2 − 1.645·σ + ln(p95 ÷ mean) = 0
    room = _P95**2 - 2 * np.log(p95 / mean)
    if p95 < mean or room < 0:
        most = np.exp(_P95**2 / 2)
        raise UsageError(
            f"a 95th percentile of {p95:g} tokens: with a mean of {mean:g} it lies from it to {most:.1f} × it."
        )
    sigma = _P95 - np.sqrt(room)
    return float(np.sqrt(np.expm1(sigma**2)))


def trace_of(arrivals: str, catalog: Catalog) -> Requests | None:
    """Return a trace that is shipped or a file of one's own; None where arrivals are drawn."""
    if arrivals in _TRACES:
        rows = catalog.rows("request_traces")
        return _columns_of([row for row in rows if row["trace"] == arrivals])
    return (
        own_trace(arrivals) if os.path.exists(arrivals) else None
    )  # else a word or a number, which `variation_of` reads


def own_trace(path: str) -> Requests:
    """Return the requests of a CSV file: arrived_s, prompt_tokens, output_tokens, perhaps prompt_tokens_seen_before."""
    header, rows = read_table(path, "limit_table_file_bytes")
    if missing := [name for name in _COLUMNS if name not in header]:
        raise DataError(f"lacks the column {' and '.join(missing)}", file=path, row=1)
    if len(rows) < 2:
        raise DataError("a trace has two requests at least", file=path)
    numbers: list[dict[str, float]] = []
    for line, row in rows:
        request = {}
        for name in (*_COLUMNS, *((_SEEN,) if _SEEN in header else ())):
            least = 0.0 if name in ("arrived_s", _SEEN) else 1.0
            try:
                value = as_number(row[name])
            except ValueError:
                raise DataError(f"{shown(row[name])} is not a number", file=path, row=line, column=name) from None
            if not least <= value <= 1e9:
                raise DataError(f"{value:g} is not {least:g} or more", file=path, row=line, column=name)
            request[name] = value
        if numbers and request["arrived_s"] < numbers[-1]["arrived_s"]:
            reason = f"arrives at {request['arrived_s']:g} s, before the row above it: sort the trace by time"
            raise DataError(reason, file=path, row=line, column="arrived_s")
        numbers.append(request)
    return _columns_of(numbers)


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> Requests:
    """Return rows of a trace as columns."""
    arrived, prompt, output = (np.array([float(row[name]) for row in rows]) for name in _COLUMNS)
    return Requests(arrived, prompt, output, np.array([float(row.get(_SEEN) or 0.0) for row in rows]))


def gaps(draw: np.random.Generator, rate: float, count: int, variation: float) -> Floats:
    """Return the times between arrivals: gamma with a coefficient of variation, 1 Poisson, 0 a fixed beat.

    >>> gaps(np.random.default_rng(1), 4.0, 2, 0.0)
    array([0.25, 0.25])
    """
    if variation <= 0:
        return np.full(count, 1 / rate)
    shape = 1 / variation**2  # of a gamma distribution, whose coefficient of variation is 1/√shape
    times: Floats = draw.gamma(shape, 1 / (rate * shape), count)
    return times


def lengths(draw: np.random.Generator, mean: float, count: int, variation: float) -> Floats:
    """Return whole lengths with a mean, lognormal with a coefficient of variation; 0: all equal.

    The sample is scaled to its mean, so that few requests bear the load that was asked.
    """
    if variation <= 0:
        return np.full(count, max(round(mean), 1.0))
    sigma = np.sqrt(np.log1p(variation**2))
    # of mean 1: e^(−σ²/2) is the median
    drawn = np.minimum(draw.lognormal(-(sigma**2) / 2, sigma, count), _LONGEST_TIMES)
    return whole(drawn, mean)


def whole(drawn: Floats, mean: float) -> Floats:
    """Return drawn lengths as whole tokens with a mean.

    >>> whole(np.array([0.5, 1.5]), 10.0)
    array([ 5., 15.])
    """
    tokens: Floats = np.maximum(np.round(drawn * (mean / drawn.mean())), 1.0)
    return tokens


def uniform_lengths(draw: np.random.Generator, mean: float, count: int, least: float) -> Floats:
    """Return whole lengths spread evenly from a share of the mean to as much above it."""
    drawn = draw.uniform(least, 2 - least, count)
    return whole(drawn, mean)


def requests_of(
    rate: float | None,
    prompt: Floats,
    output: Floats,
    draw: np.random.Generator,
    *,
    variation: float = 1.0,
    cached_fraction: float = 0.0,
) -> Requests:
    """Return requests that arrive at a rate; without one all are there at once, and clients hold them back."""
    count = len(prompt)
    # a closed loop: all requests are there from the start, as many at once as the clients keep open
    arrived = np.zeros(count) if rate is None else np.cumsum(gaps(draw, rate, count, variation))
    return Requests(arrived, prompt, output, cached_fraction * prompt)
