"""Published load tests against the simulated replica: percentiles of the first token, of each token, end to end.

A test is sent as it says: its rate and how uneven the gaps are, or so many clients that each wait for their answer; as
many requests of such lengths. Nothing is fitted here: the step times are those of serving's calibration. What a test
leaves unsaid is assumed and noted. No prediction sees what was measured.
"""

import re
from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.calibration import measurements as measured_rows
from gpucost.calibration import wording
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Item, Measured, Measurements
from gpucost.calibration.record import Row
from gpucost.calibration.serving import loads_of, unstated_prefix
from gpucost.calibration.serving_rows import ServingRow, read_row
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.calibration import Calibration, width_of
from gpucost.physics.columns import Floats
from gpucost.physics.serving.calibration import MOST_CACHED, PREFIX_CACHING, doubts
from gpucost.physics.serving.replica import (
    ReplicaEngine,
    Requests,
    ServedRequests,
    engine_of,
    range_of,
    sampled,
    simulate,
)
from gpucost.units import MS_PER_S
from gpucost.workloads.arrivals import SEED, lengths, requests_of, uniform_lengths

STATISTICS = ("mean", "p50", "p90", "p95", "p99")  # as every writer of results calls them, but for its spelling
TIMES = {"ttft": ("ttft_s", MS_PER_S, "ms"), "tpot": ("tpot_s", MS_PER_S, "ms"), "e2e": ("e2e_s", 1.0, "s")}
METRICS = {f"{time}_{name}_{unit}": (time, name) for time, (_, _, unit) in TIMES.items() for name in STATISTICS}
_AS_SERVING = (  # columns that mean what they mean for serving
    "id",
    "source_name",
    "as_of",
    "model",
    "gpu",
    "n_gpus",
    "tp",
    "ep",
    "engine",
    "weight_precision",
    "request_rate",
    "notes",
)
_USUAL_SECONDS = 600.0  # that a test without a number of requests lasts: MLPerf's server scenario lasts as long
_MOST_REQUESTS = 4_000  # of one replica that are simulated: the tail of more is the same
_CHAT_VARIATION = (1.4, 1.0)  # of prompts and answers of conversations; an assumption, as Azure's trace of 2023 has it
_TASK_VARIATION = (0.6, 0.7)  # of a benchmark's questions: an assumption
_SHORTEST_SHARE = 0.1  # of a mean: "random lengths" are spread evenly from there to as far above


class LoadTest(Struct, frozen=True):
    """A load test as it was sent."""

    row: ServingRow
    rate: float | None  # requests per second that one replica meets
    variation: float  # of the gaps between arrivals
    clients: int | None  # that keep a request open, of one replica
    requests: int
    prompt_variation: float
    output_variation: float
    even: bool  # lengths are spread evenly, not lognormal
    seats: int | None  # that the server was told to run at once, at most
    bundled: bool  # tokens were sent in bundles: the time of each means nothing


def read_test(row: Row, facts: Catalog) -> LoadTest:
    """Read a load test in the columns of models/measurements/load.csv, and what a result says of spread lengths."""
    notes = str(row.get("notes") or "")
    clients, rate = wording.positive(row.get("max_concurrency")), wording.positive(row.get("request_rate"))
    lengths_in_notes = re.search(r"\b(\d{1,7}) in and (\d{1,7}) out", notes)
    pipeline = re.search(r"pipeline parallel (\d{1,4})", notes)
    # the columns of serving, with what only the remarks of a result say
    columns = {
        **{name: row.get(name) for name in _AS_SERVING},
        "pp": pipeline[1] if pipeline else None,
        "kv_precision": "fp8" if "KV cache fp8" in notes else None,
        "isl": wording.positive(row.get("mean_input_tokens")) or (lengths_in_notes and float(lengths_in_notes[1])),
        "osl": wording.positive(row.get("mean_output_tokens")) or (lengths_in_notes and float(lengths_in_notes[2])),
        "batch_or_concurrency": None if rate else clients,
        "scenario": "server",
        "served_by": "tuned" if "MLPerf" in notes else "default",
        "draft_tokens": 1 if str(row.get("speculative") or "") == "y" else None,
    }
    serving_row = read_row(entered(columns, "serving", facts), facts)
    replicas = int(wording.positive(row.get("replicas")) or serving_row.replicas)
    serving_row = replace(serving_row, replicas=replicas)
    shared = wording.number(row.get("shared_prefix_tokens"))
    if shared is not None:
        caches = serving_row.deployment.engine in PREFIX_CACHING
        hit = min(shared / max(serving_row.prompt_tokens, 1.0), MOST_CACHED) if caches else 0.0
        serving_row = replace(serving_row, prefix_hit=hit, stated_prefix=True)
    count = wording.positive(row.get("requests")) or (rate or 1.0) * _USUAL_SECONDS
    burst = re.search(r"burstiness (\d*\.?\d+)", notes)
    constant = str(row.get("arrival") or "") == "constant"
    chat = re.search(r"sharegpt|conversation", notes, re.IGNORECASE) is not None
    even = "random lengths" in notes
    # how far lengths spread where the result does not say: synthetic requests are all of one length
    usual = (0.0, 0.0)
    if "llama3.1-8b" in notes:  # MLPerf's summaries are cut at 128 tokens
        usual = (_TASK_VARIATION[0], 0.0)
    elif chat:
        usual = _CHAT_VARIATION
    elif "MLPerf" in notes:
        usual = _TASK_VARIATION
    seats = re.search(r"server runs at most (\d+) at once", notes)
    if rate is None and clients is None:
        clients = count  # all sent at once
    variation = 0.0 if constant else 1.0  # equal gaps, or exponential ones
    if burst and not constant:  # vLLM's burstiness is the shape k of a gamma distribution
        variation = 1 / sqrt(float(burst[1]))
    return LoadTest(
        row=serving_row,
        rate=rate / replicas if rate else None,
        variation=variation,
        clients=None if clients is None else max(ceil(clients / replicas), 1),
        requests=int(min(max(count / replicas, 1.0), _MOST_REQUESTS)),
        prompt_variation=_variation(row, "input", serving_row.prompt_tokens, usual[0]),
        output_variation=_variation(row, "output", serving_row.output_tokens, usual[1]),
        even=even,
        seats=int(seats[1]) if seats else None,
        bundled="several tokens at once" in notes,
    )


def _variation(row: Row, side: str, mean: float, usual: float) -> float:
    """Return the coefficient of variation of lengths: what a result states, else the usual one."""
    deviation = wording.number(row.get(f"{side}_std_tokens"))
    return usual if deviation is None or not mean else deviation / mean


def sent(test: LoadTest, seed: int = SEED) -> Requests:
    """Return the requests of a test."""
    draw, row = np.random.default_rng(seed), test.row
    if test.even:
        prompt = uniform_lengths(draw, row.prompt_tokens, test.requests, _SHORTEST_SHARE)
        output = uniform_lengths(draw, row.output_tokens, test.requests, _SHORTEST_SHARE)
    else:
        prompt = lengths(draw, row.prompt_tokens, test.requests, test.prompt_variation)
        output = lengths(draw, row.output_tokens, test.requests, test.output_variation)
    return requests_of(test.rate, prompt, output, draw, variation=test.variation, cached_fraction=row.prefix_hit)


def _served(test: LoadTest, engine: ReplicaEngine, slower: float = 1.0) -> ServedRequests:
    """Return what one replica makes of a test; `slower` stretches every step.

    Steps that take twice as long are steps of the usual length under arrivals twice as fast, at half the clock.
    """
    requests = sent(test)
    return simulate(engine, replace(requests, arrived_s=requests.arrived_s / slower), at_most=test.clients)


def _statistics_of(answered: ServedRequests, slower: float) -> dict[str, float]:
    """Return every figure that a load test prints."""
    figures: dict[str, float] = {}
    for time, (name, scale, unit) in TIMES.items():
        values: Floats = getattr(answered, name) * scale * slower
        if len(values):
            quantiles = np.quantile(values, [0.5, 0.9, 0.95, 0.99])
            printed = dict(zip(STATISTICS, [float(values.mean()), *quantiles.tolist()], strict=True))
            figures |= {f"{time}_{label}_{unit}": figure for label, figure in printed.items()}
    return figures


def gather(rows: Sequence[Row], facts: Catalog) -> tuple[list[LoadTest], Measurements]:
    """Read every test with the figures that it states."""
    tests: list[LoadTest] = []

    def read(row: Row, index: int) -> tuple[ServingRow, list[Measured], list[Measured]]:
        test = read_test(row, facts)
        figures = [
            Measured(index, metric, value, "closed" if test.rate is None else "rated")
            for metric, (time, _) in METRICS.items()
            if (value := wording.positive(row.get(metric))) is not None and not (test.bundled and time == "tpot")
        ]
        if not figures:
            raise UsageError("no measured time to the first token, per token or end to end")
        tests.append(test)
        return test.row, figures, []

    return tests, measured_rows.gather(rows, "load_measurements", read)


def predict(rows: Sequence[Row], facts: Catalog, calibration: Calibration) -> tuple[list[Item], Measurements]:
    """Predict every figure of load tests: at the usual speed of the steps, and at both ends of its range.

    The ends are those of the engine's speed under saturation (a queue near its capacity makes more of them) and of the
    sampling: a test is some requests of many.
    """
    tests, measurements = gather(rows, facts)
    if not tests:
        return [], measurements
    loads = loads_of([test.row for test in tests], calibration.values)
    items: list[Item] = []
    skipped: list[Skipped] = []
    plain = dict.fromkeys(("saturation", "host_bound", "first_token", "unstated_server"), False)
    of_row: dict[int, list[Measured]] = {}
    for figure in measurements.figures:
        of_row.setdefault(figure.row, []).append(figure)
    for index, test in enumerate(tests):
        row = test.row
        longest = 13 * (row.prompt_tokens + row.output_tokens)  # beyond any length that the usual spreads draw
        try:
            engine = engine_of(loads.case.take([index]), row.prompt_tokens, row.output_tokens, longest)
        except UsageError as error:
            skipped.append({"id": row.id, "reason": str(error)})
            continue
        if test.seats is not None:
            engine = replace(engine, seats=min(engine.seats, test.seats))
        # half the range of a step's time, in logarithms: what a simulation answers by itself is no doubt here
        doubted = {
            **doubts(row.deployment),
            **plain,
            "unstated_layout": not row.stated_layout and row.deployment.gpus > 1,
            "unstated_lengths": not row.stated_lengths,
            "unstated_prefix": unstated_prefix(row),
        }
        traits = {name: np.array([applies]) for name, applies in doubted.items()}
        width = float(width_of(traits, calibration.ranges)[0])
        usual = _served(test, engine)
        ends = [_statistics_of(_served(test, engine, ratio), ratio) for ratio in np.exp([-width, width]).tolist()]
        middle = _statistics_of(usual, 1.0)
        for figure in of_row.get(index, ()):
            point, *both = (end[figure.metric] for end in (middle, *ends))
            # the 80 % range of sampling noise, of what is simulated and as much of what was measured
            time, name = METRICS[figure.metric]
            attribute, scale, _ = TIMES[time]
            share = None if name == "mean" else float(name[1:])
            low_noise, high_noise = sampled(getattr(usual, attribute), share)[1]
            noise = low_noise * scale, high_noise * scale
            low, high = range_of(point, (min(point, *both), max(point, *both)), noise, noise)
            items.append(
                Item(row.id, row.source, figure.metric, figure.value, point, low, high, figure.group, row.notes)
            )
    return items, replace(measurements, skipped=[*measurements.skipped, *skipped])


def report(rows: Sequence[Row], facts: Catalog, calibration: Calibration, **more: Any) -> ValidationReport:
    """Return the report: all items, and the errors by metric."""
    items, measurements = predict(rows, facts, calibration)
    answer = measured_rows.payload(measurements.total, items, measurements.skipped, measurements.sources, **more)
    answer["predicted"], answer["figures"] = len({item.id for item in items}), len(items)
    answer["by_metric"] = {
        name: measured_rows.statistics(some) for name in METRICS if (some := [i for i in items if i.metric == name])
    }
    return answer
