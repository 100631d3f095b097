"""Published load tests against the simulated replica: percentiles of the first token, of each token, end to end.

A test is sent as it says: its rate and how uneven the gaps are, or so many clients that each wait for their answer; as
many requests of such lengths. Nothing is fitted here: the step times are those of serving's calibration. What a test
leaves unsaid is assumed and noted. No prediction sees what was measured.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.calibration import measurements, wording
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

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
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
CHAT_VARIATION = (1.4, 1.0)  # of prompts and answers of conversations; an assumption, as Azure's trace of 2023 has it
_TASK_VARIATION = (0.6, 0.7)  # of a benchmark's questions: an assumption
_SHORTEST_SHARE = 0.1


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
    words = str(row.get("notes") or "")
    clients, rate = wording.positive(row.get("max_concurrency")), wording.positive(row.get("request_rate"))
    asked = re.search(r"\b(\d{1,7}) in and (\d{1,7}) out", words)
    named = re.search(r"pipeline parallel (\d{1,4})", words)
    served = {
        **{name: row.get(name) for name in _AS_SERVING},
        "pp": named[1] if named else None,
        "kv_precision": "fp8" if "KV cache fp8" in words else None,
        "isl": wording.positive(row.get("mean_input_tokens")) or (asked and float(asked[1])),
        "osl": wording.positive(row.get("mean_output_tokens")) or (asked and float(asked[2])),
        "batch_or_concurrency": None if rate else clients,
        "scenario": "server",
        "served_by": "tuned" if "MLPerf" in words else "default",
        "draft_tokens": 1 if str(row.get("speculative") or "") == "y" else None,
    }
    one = read_row(entered(served, "serving", facts), facts)
    replicas = int(wording.positive(row.get("replicas")) or one.replicas)
    one = replace(one, replicas=replicas, notes=one.notes)
    shared = wording.number(row.get("shared_prefix_tokens"))
    if shared is not None:
        caches = one.deployment.engine in PREFIX_CACHING
        kept = min(shared / max(one.prompt_tokens, 1.0), MOST_CACHED) if caches else 0.0
        one = replace(one, prefix_hit=kept, stated_prefix=True)
    count = wording.positive(row.get("requests")) or (rate or 1.0) * _USUAL_SECONDS
    burst = re.search(r"burstiness (\d*\.?\d+)", words)
    constant = str(row.get("arrival") or "") == "constant"
    chat = re.search(r"sharegpt|conversation", words, re.IGNORECASE) is not None
    even = "random lengths" in words
    usual = CHAT_VARIATION if chat else _TASK_VARIATION if "MLPerf" in words else (0.0, 0.0)
    if "llama3.1-8b" in words:  # summaries are cut at 128 tokens
        usual = (_TASK_VARIATION[0], 0.0)
    seats = re.search(r"server runs at most (\d+) at once", words)
    if rate is None and clients is None:
        clients = count
    return LoadTest(
        row=one,
        rate=rate / replicas if rate else None,
        variation=0.0 if constant else 1 / sqrt(float(burst[1])) if burst else 1.0,
        clients=None if clients is None else max(ceil(clients / replicas), 1),
        requests=int(min(max(count / replicas, 1.0), _MOST_REQUESTS)),
        prompt_variation=_variation(row, "input", one.prompt_tokens, usual[0]),
        output_variation=_variation(row, "output", one.output_tokens, usual[1]),
        even=even,
        seats=int(seats[1]) if seats else None,
        bundled="several tokens at once" in words,
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


def served(test: LoadTest, engine: ReplicaEngine, slower: float = 1.0) -> ServedRequests:
    """Return what one replica makes of a test; `slower` stretches every step.

    Steps that take twice as long are steps of the usual length under arrivals twice as fast, at half the clock.
    """
    requests = sent(test)
    quick = replace(requests, arrived_s=requests.arrived_s / slower)
    return simulate(engine, quick, at_most=test.clients)


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


def _noise_of(answered: ServedRequests, metric: str) -> tuple[float, float]:
    """Return the 80 % range of a figure's sampling noise."""
    time, name = METRICS[metric]
    attribute, scale, _ = TIMES[time]
    low, high = sampled(getattr(answered, attribute), None if name == "mean" else float(name[1:]))[1]
    return low * scale, high * scale


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

    return tests, measurements.gather(rows, "load_measurements", read)


def predict(rows: Sequence[Row], facts: Catalog, calibration: Calibration) -> tuple[list[Item], Measurements]:
    """Predict every figure of load tests: at the usual speed of the steps, and at both ends of its range.

    The ends are those of the engine's speed under saturation (a queue near its capacity makes more of them) and of the
    sampling: a test is some requests of many.
    """
    tests, found = gather(rows, facts)
    if not tests:
        return [], found
    loads = loads_of([test.row for test in tests], calibration.values)
    items: list[Item] = []
    skipped: list[Skipped] = []
    of_row: dict[int, list[Measured]] = {}
    for figure in found.figures:
        of_row.setdefault(figure.row, []).append(figure)
    for index, test in enumerate(tests):
        row = test.row
        longest = 13 * (row.prompt_tokens + row.output_tokens)
        try:
            engine = engine_of(loads.case.take([index]), row.prompt_tokens, row.output_tokens, longest)
        except UsageError as error:
            skipped.append({"id": row.id, "reason": str(error)})
            continue
        if test.seats is not None:
            engine = replace(engine, seats=min(engine.seats, test.seats))
        width = float(width_of(_traits(row), calibration.ranges)[0])
        usual = served(test, engine)
        ends = [_statistics_of(served(test, engine, ratio), ratio) for ratio in np.exp([-width, width]).tolist()]
        middle = _statistics_of(usual, 1.0)
        for figure in of_row.get(index, ()):
            point, *both = (end[figure.metric] for end in (middle, *ends))
            noise = _noise_of(usual, figure.metric)  # of what is simulated, and as much of what was measured
            low, high = range_of(point, (min(point, *both), max(point, *both)), noise, noise)
            items.append(
                Item(row.id, row.source, figure.metric, figure.value, point, low, high, figure.group, row.notes)
            )
    return items, replace(found, skipped=[*found.skipped, *skipped])


def _traits(row: ServingRow) -> Mapping[str, Any]:
    own = doubts(row.deployment) | {
        "saturation": False,
        "unstated_layout": not row.stated_layout and row.deployment.gpus > 1,
        "unstated_lengths": not row.stated_lengths,
        "host_bound": False,
        "first_token": False,
        "unstated_server": False,
        "unstated_prefix": unstated_prefix(row),
    }
    return {name: np.array([applies]) for name, applies in own.items()}


def report(rows: Sequence[Row], facts: Catalog, calibration: Calibration, **more: Any) -> ValidationReport:
    """Return the report: all items, and the errors by metric."""
    items, found = predict(rows, facts, calibration)
    answer = measurements.payload(found.total, items, found.skipped, found.sources, **more)
    answer["predicted"], answer["figures"] = len({item.id for item in items}), len(items)
    answer["by_metric"] = {
        name: measurements.statistics(some) for name in METRICS if (some := [i for i in items if i.metric == name])
    }
    return answer
