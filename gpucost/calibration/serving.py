"""Serving held against measurements: what benchmarks print, predictions with ranges, fits to sources."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers.checks import ValidationReport
from gpucost.calibration import measurements as measured_rows
from gpucost.calibration import wording
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Item, Measured, Measurements
from gpucost.calibration.record import Row
from gpucost.calibration.serving_rows import ServingRow, read_row
from gpucost.calibration.wording import ACCEPTANCE, SCENARIOS
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics import calibration as core
from gpucost.physics.calibration import Calibration, Parameter, ResidualPart, Values
from gpucost.physics.columns import Flags, Floats, Gathered, Integers
from gpucost.physics.hardware import peaks
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.bursts import varied_burst
from gpucost.physics.serving.calibration import HOST_BOUND_FRACTION, PREFIX_CACHING, SCHEME, doubts
from gpucost.physics.serving.cases import ServingCase, build, plain_options
from gpucost.physics.serving.efficiency import DEFAULTS, ENGINE_NAMES, FAMILIES, PARAMETERS, Software, resolve
from gpucost.physics.transformer import active_parameters, stack
from gpucost.units import MS_PER_S, TERA

# --- What a benchmark of each scenario prints: throughput, time per token and time to the first token, from the
# physics.
#
# A single stream and a fixed batch read their prompts first and then decode; a steady concurrency mixes both phases;
# a burst drains, so that its mean batch is smaller than its size; saturation runs what memory and the engine allow; a
# rate runs what Little's law says. Pools of a disaggregated deployment only decode.

_EARLY_BATCH_LIMIT = 256.0  # sequences that early engines run at once by default
_LAST_WAVE = 0.5  # of its places that the last wave of requests leaves empty, on average
_LITTLE_ROUNDS = 12  # after which rate × time and time by sequences agree
_DRAFT_COST = 0.05  # of a step that drafting a token takes: as `gpucost inference` takes it
_FITTED_RATIO = 1.15  # of what is thought to fit that a batch which ran may have: memory is known no better
_POOL_PROMPT_TOKENS = 16_384.0  # tokens that a pool of prompts reads at once, per accelerator


_NUMBERS = (
    "prompt_tokens",
    "output_tokens",
    "batch",
    "rate",
    "requests",
    "replicas",
    "prompt_workers",
    "decode_workers",
)


class Loads(Gathered, frozen=True):
    """Rows as arrays: what arrives, and how."""

    case: ServingCase  # its efficiencies are replaced by those of a calibration
    software: Software
    scenario: "np.ndarray[Any, np.dtype[np.int64]]"
    prompt_tokens: Floats
    output_tokens: Floats
    batch: Floats  # NaN where not stated
    rate: Floats
    requests: Floats  # NaN where not stated
    replicas: Floats
    prompt_workers: Floats
    decode_workers: Floats
    decode_only: Flags
    varied_lengths: Flags

    def is_(self, *names: str) -> Flags:
        """Return which rows are of a scenario."""
        return np.isin(self.scenario, [SCENARIOS.index(name) for name in names])


def loads_of(rows: Sequence[ServingRow], values: Mapping[str, float]) -> Loads:
    """Turn read rows into arrays."""
    drafted = np.array([row.drafted for row in rows], dtype=np.float64)
    options = replace(
        plain_options(len(rows)),
        prefix_hit=np.array([row.prefix_hit for row in rows]),
        draft_tokens=drafted,
        acceptance=np.where(drafted > 0, ACCEPTANCE, 0.0),
        draft_cost=np.where(drafted > 0, _DRAFT_COST, 0.0),
    )
    case, software = build([row.deployment for row in rows], values, options)

    def column(name: str) -> Floats:
        stated = (getattr(row, name) for row in rows)
        return np.array([np.nan if number is None else number for number in stated], dtype=np.float64)

    return Loads(
        case=case,
        software=software,
        scenario=np.array([SCENARIOS.index(row.scenario) for row in rows], dtype=np.int64),
        varied_lengths=np.array([row.varied_lengths for row in rows], dtype=np.bool_),
        decode_only=np.array([row.decode_only for row in rows], dtype=np.bool_),
        **{name: column(name) for name in _NUMBERS},
    )


class Printed(Struct, frozen=True):
    """What a benchmark would print, per row."""

    output_tokens_per_s: Floats
    total_tokens_per_s: Floats
    tpot_s: Floats
    ttft_s: Floats
    sequences: Floats  # running in one replica
    host_share: Floats

    @property
    def table(self) -> Floats:
        """The figures that sources state, a row for each metric (`serving.METRICS`)."""
        times = self.tpot_s * MS_PER_S, self.ttft_s * MS_PER_S
        return np.array([self.output_tokens_per_s, self.total_tokens_per_s, *times])


def printed(loads: Loads, values: Mapping[str, float]) -> Printed:
    """Return what each row's benchmark would print."""
    case = replace(loads.case, rates=resolve(values, loads.software))
    prompt, output = loads.prompt_tokens, loads.output_tokens

    # What runs at once in one replica: what is asked for, within memory and the engine's limit.
    rates, known = case.rates, np.isfinite(loads.batch)
    asked = loads.batch / np.where(loads.decode_workers > 0, np.maximum(loads.decode_workers, 1), loads.replicas)
    ranks = np.maximum(case.placement.data, 1)
    early = np.isin(
        loads.software.engine, [ENGINE_NAMES.index(n) for n in ("vllm-2023", "vllm-2024", "vllm-2025", "vllm-rocm")]
    )
    # the engine's limit: where a batch is stated somebody set it, except in early engines, whose default few changed
    limit = np.where(known, np.inf, rates.batch_limit * ranks)
    limit = np.where(early, np.minimum(limit, _EARLY_BATCH_LIMIT * ranks), limit)
    limit = np.minimum(limit, rates.seats)
    # capacity counts half an output, but those of a batch grow together: their whole outputs must fit
    grown = np.where(loads.is_("batch") & ~rates.reserving, 2.0, 1.0)
    fits = np.maximum(serving.capacity_sequences(case, prompt, output * grown), 1.0)
    in_all = np.where(np.isfinite(loads.requests), loads.requests / loads.replicas, np.inf)
    # a batch that was run did fit, where the memory counted here falls only a little short of it
    fits = np.where(known & loads.is_("batch") & (asked <= _FITTED_RATIO * fits), np.maximum(asked, fits), fits)
    sequences = np.minimum(np.minimum(np.where(known, asked, in_all), limit), fits)
    # a burst of equal requests starts and ends together: on average fewer run than at its height
    ramps = loads.is_("burst") & ~loads.varied_lengths
    sequences = np.maximum(np.where(ramps, sequences * np.minimum(rates.burst, 1.0), sequences), 1.0)
    rated = loads.is_("rated")
    if rated.any():
        # Little's law: a rate keeps rate × output × time per token running, and that time grows with what runs
        rows = np.flatnonzero(rated)
        rated_loads, rated_case, most = loads.take(rows), case.take(rows), sequences[rows]
        arriving = np.where(np.isfinite(rated_loads.rate), rated_loads.rate, 0.0) / rated_loads.replicas
        open_sequences = np.ones_like(most)
        for _ in range(_LITTLE_ROUNDS):
            steady = serving.steady(rated_case, open_sequences, rated_loads.prompt_tokens, rated_loads.output_tokens)
            open_sequences = np.clip(arriving * rated_loads.output_tokens * steady.tpot_s, 1.0, most)
        sequences[rows] = open_sequences
    # prompts and decoding share steps where requests come and go; what starts together, and pools, keep them apart
    alone = loads.is_("single", "prompt", "batch", "burst", "pool") | (loads.decode_workers > 0)
    at = serving.steady(case, sequences, prompt, output, mixed=~alone)
    full = ~np.isfinite(loads.batch)
    met = np.where(full & ~alone, met_sequences(loads, sequences), sequences)
    tpot, first = serving.steady(case, met, prompt, output, mixed=~alone).tpot_s, at.ttft_s
    # a batch and a single stream drain: tokens ÷ (prompts read + outputs written), the last wave with empty places
    reading = np.where(prompt > 0, first, 0.0)
    together = loads.is_("batch")  # whose prompts are read at once
    read_s = np.where(together & (prompt > 0), serving.prompt_s(case, prompt, sequences), sequences * reading)
    drained = sequences * output / (read_s + output * tpot)
    waves = np.maximum(np.where(loads.is_("batch"), loads.batch, 1.0) / loads.replicas / sequences, 1.0)
    drained = drained * waves / np.ceil(waves - 1e-9)
    speed = np.where(loads.is_("single", "batch"), drained, at.output_tokens_per_s)
    bursts = np.flatnonzero(loads.is_("burst"))
    if len(bursts):  # of a burst, prompts are read between the steps of those that write already
        mixing = serving.steady(case.take(bursts), sequences[bursts], prompt[bursts], output[bursts])
        speed[bursts] = mixing.output_tokens_per_s
    varied = np.flatnonzero(loads.is_("burst") & loads.varied_lengths & np.isfinite(loads.batch))
    if len(varied):  # outputs that differ end one by one, and the last few run almost alone
        sent = loads.batch[varied] / loads.replicas[varied]
        speed[varied] = varied_burst(case.take(varied), sequences[varied], sent, prompt[varied], output[varied])
    # a batch smaller than the replicas leaves some idle
    busy = np.where(~full, np.minimum(loads.replicas, np.maximum(loads.batch, 1.0)), loads.replicas)
    speed = np.where(loads.decode_only | loads.is_("pool"), sequences / tpot, speed) * busy
    # of two pools the slower one rules
    pools = np.minimum(sequences / tpot * loads.decode_workers, output * loads.prompt_workers / first)
    speed = np.where(loads.decode_workers > 0, pools, speed)
    # over a run of few requests not every place is taken: the last wave is half empty
    sent_waves = loads.requests / loads.replicas / sequences
    filled = np.where(sent_waves > 1, sent_waves / (sent_waves + _LAST_WAVE), 1.0)
    speed = speed * np.where(full, rates.saturation * filled, 1.0)
    # prompt tokens read per second: of the stated prompts at once, or of a pool that is always full
    pooled = np.maximum(_POOL_PROMPT_TOKENS * case.placement.gpus / np.maximum(prompt, 1.0), 1.0)
    prompts = np.where(np.isfinite(loads.batch), loads.batch, pooled)
    prompt_speed = prompts * prompt / serving.prompt_s(case, prompt, prompts) * loads.replicas
    return Printed(
        output_tokens_per_s=speed,
        total_tokens_per_s=np.where(loads.is_("prompt"), prompt_speed, speed * (prompt + output) / output),
        tpot_s=tpot,
        ttft_s=first,
        sequences=sequences,
        host_share=np.maximum(at.step.host_s, 0.0) / at.step.total_s,
    )


def met_sequences(loads: Loads, sequences: Floats) -> Floats:
    """Return the sequences that a token runs among, on average over a run of few requests.

    Full for w − 1/2 waves, then falling to none over one: ∫n² ÷ ∫n = n·(1 − 1/6w) with _LAST_WAVE of one half.
    """
    waves = loads.requests / loads.replicas / sequences
    return np.where(waves > 1, sequences * (1 - (_LAST_WAVE - 1 / 3) / np.maximum(waves, 1.0)), sequences)


# --- Validating serving predictions: rows to observations, predictions with ranges, fits, leave-one-out.
#
# Rows whose batch is stated and rows at saturation are reported apart, and so is the time to the first token under
# load, which is a queue and no physics. A source is one voice, however many rows it publishes.

_COLUMNS = {
    "output_tokens_per_s": "measured_output_tokens_per_s",
    "total_tokens_per_s": "measured_total_tokens_per_s",
    "tpot_ms": "tpot_ms",
    "ttft_ms": "ttft_ms",
}
METRICS = tuple(_COLUMNS)
_OWN_SOURCE = "own device runs"
_NOT_CORE_WEIGHT = 0.25  # what a row that is not suited to validation counts in a fit, against one that is
_WITHIN_SOURCE = 0.25  # standard deviation of a residual's logarithm at which it counts in full
_VOICE_ROWS = 60  # figures of one source beyond which more of them add only as their root
_RUNS_HALFWAY = 5.0  # of one's own, at which their errors count as much as those of others
_OWN_WIDTH = 0.09  # half a range, in logarithms, that own runs narrow no further: from week to week and node to node
_LIMIT = 5.0  # standard deviations of a prior beyond which no parameter goes


def gather(rows: Sequence[Row], facts: Catalog, *, as_written: bool = False) -> Measurements:
    """Read every row; what cannot be computed or states nothing measured is skipped with its reason.

    `as_written` says that the rows come from a person's file, whose words are read into columns first.
    """

    def read(row: Row, index: int) -> tuple[ServingRow, list[Measured], list[Measured]]:
        mine = read_row(entered(row, "serving", facts) if as_written else row, facts)
        figures, loaded = measured(row, mine, index)
        if not figures and not loaded:
            raise UsageError("no measured throughput, time per token or time to the first token")
        return mine, figures, loaded

    return measured_rows.gather(rows, "serving_measurements", read)


def gather_own(rows: Sequence[Row], facts: Catalog) -> Measurements:
    """Read a user's rows, without those whose tokens need more FLOP than the chips' fastest format gives.

    A token needs 2 FLOP per active parameter; prompts found in a cache need none.
    """
    measurements = gather(rows, facts, as_written=True)
    shares = []
    for figure in measurements.figures:
        row: ServingRow = measurements.rows[figure.row]
        read, d = 1 - row.prefix_hit, row.deployment
        tokens_per_s = {
            "output_tokens_per_s": figure.value,
            "total_tokens_per_s": figure.value * read,
            "tpot_ms": MS_PER_S / figure.value,
            "ttft_ms": row.prompt_tokens * read * MS_PER_S / figure.value,
        }[figure.metric]
        gpus = d.gpus * ((row.prompt_workers + row.decode_workers) or row.replicas)
        flop = 2 * float(active_parameters(stack([d.architecture]))[0])
        shares.append(tokens_per_s * flop / (gpus * np.nanmax(peaks(d.accelerator)) * TERA))
    return measured_rows.possible(measurements, np.array(shares, dtype=np.float64))


def measured(row: Row, read: ServingRow, index: int) -> tuple[list[Measured], list[Measured]]:
    """Return the figures that a row states and the physics predicts, and its times under load."""
    figures, loaded = [], []
    for metric, column in _COLUMNS.items():
        value = wording.positive(row.get(column))
        if value is None or (read.scenario == "prompt" and metric in ("output_tokens_per_s", "tpot_ms")):
            continue
        # 8 requests a second of 281 tokens are 2,248 tokens, whatever serves them
        if metric in ("output_tokens_per_s", "total_tokens_per_s") and read.scenario == "rated":
            continue
        if metric == "ttft_ms" and not (read.scenario in ("single", "prompt") and (read.batch or 1) == 1):
            loaded.append(Measured(index, metric, value, read.group))
        elif metric != "ttft_ms" or read.prompt_tokens > 0:
            figures.append(Measured(index, metric, value, read.group))
    return figures, loaded


def predicted(figures: Sequence[Measured], shown: Printed) -> Floats:
    """Return the predictions of figures, in their units."""
    values: Floats = shown.table[
        [METRICS.index(figure.metric) for figure in figures], [figure.row for figure in figures]
    ]
    return values


def traits_of(measurements: Measurements, figures: Sequence[Measured], shown: Printed) -> dict[str, Flags]:
    """Return what makes each prediction less certain."""
    doubts_of = [doubts(row.deployment) for row in measurements.rows]

    def doubt(figure: Measured) -> dict[str, bool]:
        row: ServingRow = measurements.rows[figure.row]
        return doubts_of[figure.row] | {
            "saturation": row.group == "saturation",
            "unstated_layout": not row.stated_layout and row.deployment.gpus > 1,
            "unstated_lengths": not row.stated_lengths,
            "host_bound": bool(shown.host_share[figure.row] > HOST_BOUND_FRACTION),
            "first_token": figure.metric == "ttft_ms" or row.scenario == "prompt",
            "unstated_server": False,
            "unstated_prefix": unstated_prefix(row) and figure.metric != "tpot_ms",
        }

    table = [doubt(figure) for figure in figures]
    return {name: np.array([doubt_row[name] for doubt_row in table], dtype=np.bool_) for name in SCHEME.traits}


def unstated_prefix(row: ServingRow) -> bool:
    """Tell whether prompts may have been found in a cache of which a row does not speak."""
    return row.deployment.engine in PREFIX_CACHING and row.prompt_tokens > 0 and not row.stated_prefix


def as_unseen(measurements: Measurements) -> Measurements:
    """Return rows whose chips are known by the other sources alone: what is known of them before they are entered."""
    sources: dict[str, set[str]] = {}
    for row in measurements.rows:
        sources.setdefault(row.deployment.accelerator.id, set()).add(row.source)

    def unseen(row: ServingRow) -> ServingRow:
        chip = row.deployment.accelerator
        known = replace(chip, serving_sources=len(sources[chip.id] - {row.source}))
        return replace(row, deployment=replace(row.deployment, accelerator=known))

    return replace(measurements, rows=[unseen(row) for row in measurements.rows])


def traits(measurements: Measurements, values: Values) -> dict[str, Flags]:
    """Return what makes the predictions of all figures less certain, under a calibration's values."""
    return traits_of(measurements, measurements.figures, printed(loads_of(measurements.rows, values), values))


def predict(measurements: Measurements, calibration: Calibration) -> tuple[list[Item], list[Item]]:
    """Predict every figure with a calibration; the second list holds times to the first token under load."""
    if not measurements.rows:
        return [], []
    shown = printed(loads_of(measurements.rows, calibration.values), calibration.values)
    answers = []
    for figures in (measurements.figures, measurements.shown):
        width = core.width_of(traits_of(measurements, figures, shown), calibration.ranges)
        answers.append(measurements.items(predicted(figures, shown), width, figures))
    return answers[0], answers[1]


# Fits ----------------------------------------------------------------------------------------------------------------


class ServingObservations(Struct, frozen=True):
    """Figures as arrays, ready for a fit."""

    loads: Loads
    metric: Integers  # code into METRICS
    row: Integers  # of `loads`
    log_measured: Floats
    voice: NDArray[Any]  # who speaks: a source, and under which load
    source: NDArray[Any]
    core: Flags

    def take(self, figures: Any) -> "ServingObservations":
        """Return some figures, with the rows that they need."""
        rows, places = np.unique(self.row[figures], return_inverse=True)
        return ServingObservations(
            self.loads.take(rows),
            self.metric[figures],
            places,
            self.log_measured[figures],
            self.voice[figures],
            self.source[figures],
            self.core[figures],
        )

    def __len__(self) -> int:
        return len(self.log_measured)


def observe(measurements: Measurements) -> ServingObservations:
    """Turn measurements into arrays."""
    sources, groups = (measurements.of_rows(name).astype(str) for name in ("source", "group"))
    return ServingObservations(
        loads_of(measurements.rows, DEFAULTS),
        np.array([METRICS.index(figure.metric) for figure in measurements.figures], dtype=np.int64),
        np.array([figure.row for figure in measurements.figures], dtype=np.int64),
        measurements.log_measured,
        np.char.add(np.char.add(sources, "|"), groups),
        sources,
        measurements.of_rows("core").astype(np.bool_),
    )


def log_predicted(seen: ServingObservations, values: Values) -> Floats:
    """Return the logarithms of the predictions."""
    table = printed(seen.loads, values).table
    logged: Floats = np.log(np.maximum(table[seen.metric, seen.row], 1e-12))
    return logged


def problem_of(
    seen: ServingObservations, centre: Values = DEFAULTS, parameters: Sequence[Parameter] = PARAMETERS
) -> core.FitProblem:
    """Return the fit that balances the figures and the priors around `centre`."""
    software, row = seen.loads.software, seen.row
    members = {name: (software.family == code)[row] for code, name in enumerate(FAMILIES)}
    members |= {name: (software.engine == code)[row] for code, name in enumerate(ENGINE_NAMES)}
    # a source counts as the root of its rows once it has many, and less where it is not core
    _, voice, counts = np.unique(seen.voice, return_inverse=True, return_counts=True)
    count = counts[voice].astype(np.float64)
    weight = np.sqrt(np.minimum(count, _VOICE_ROWS) / count) * np.where(seen.core, 1.0, _NOT_CORE_WEIGHT)
    weight /= _WITHIN_SOURCE

    def part_of(figures: Integers) -> ResidualPart:
        part = seen.take(figures)
        return ResidualPart(figures, lambda values: (log_predicted(part, values) - part.log_measured) * weight[figures])

    return core.FitProblem(parameters, core.touched_by(parameters, members, len(seen)), part_of, centre, 1.0)


def solve(problem: core.FitProblem, start: Values | None = DEFAULTS, rounds: int = 6) -> dict[str, float]:
    """Return the parameters that solve a fit of serving; the search begins at `start`."""
    return core.fit(problem, start=start, limit=_LIMIT, rounds=rounds, loss="soft_l1")


def fit(
    seen: ServingObservations,
    start: Values = DEFAULTS,
    centre: Values = DEFAULTS,
    rounds: int = 6,
    parameters: Sequence[Parameter] = PARAMETERS,
) -> dict[str, float]:
    """Return the parameters that balance the figures and the priors around `centre`; the search begins at `start`."""
    return solve(problem_of(seen, centre, parameters), start, rounds)


def tune(measurements: Measurements, base: Calibration) -> Calibration:
    """Fit a user's own runs on top of a calibration: parameters that they say nothing about stay.

    All parameters may move, those too that no published source pays for: the runs speak of one's own machine. Ranges
    narrow towards what the runs leave unexplained, by n ÷ (n + 5) for n of them, and no further than one's own speed.
    """
    seen = observe(measurements)
    values = fit(
        seen, base.values, base.values, parameters=[parameter._replace(fitted=True) for parameter in PARAMETERS]
    )
    left = np.abs(log_predicted(seen, values) - seen.log_measured)
    width = core.width_of(traits(measurements, values), base.ranges)
    known = len(left) / (len(left) + _RUNS_HALFWAY)
    # by how much of the published range the runs' own errors reach, at the coverage that ranges promise
    reached = float(np.clip(core.weighted_quantile(left / width, np.ones(len(left)), core.COVERAGE), 0.0, 1.0))
    narrowed = base.ranges["base"] * (1 - known * (1 - reached))
    return replace(
        base, values=values, ranges={**base.ranges, "base": max(narrowed, min(_OWN_WIDTH, base.ranges["base"]))}
    )


# names of bench shapes for the models whose dimensions they are
_BENCH_MODELS = {"llama3-8b": "llama-3-8b", "llama3-70b": "llama-3-70b", "llama3.2-1b": "llama-3.2-1b"}


def own_steps(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return this project's own decode and prefill steps as rows of serving measurements, for the fit."""
    answer = []
    for number, row in enumerate(rows):
        decode, step_s = row["phase"] == "decode", float(row["step_s"])
        tokens = float(row["batch"]) * float(row["context"])
        speed = {"tpot_ms": step_s * MS_PER_S} if decode else {"measured_total_tokens_per_s": tokens / step_s}
        answer.append(
            {
                "id": f"own-{number}",
                "source_name": _OWN_SOURCE,
                "model": _BENCH_MODELS.get(row["model"], row["model"]),
                "gpu": row["gpu"],
                "n_gpus": row["tp"],
                "tp": row["tp"],
                "pp": 1,
                "weight_precision": row["weight_precision"],
                "engine_class": "eager" if row["mode"] == "eager" and decode else "plain",
                "kv_precision": "bf16",
                "load": "prompt" if not decode else "single" if float(row["batch"]) == 1 else "batch",
                "served_by": "offline",
                "isl": row["context"],
                "osl": 1,
                "batch_or_concurrency": row["batch"],
                "decode_only": 1,
                "core": 1,
                **speed,
            }
        )
    return answer


# Report --------------------------------------------------------------------------------------------------------------


def report_payload(measurements: Measurements, items: Sequence[Item], **more: Any) -> ValidationReport:
    """Return the report: all items, and the two groups apart."""
    answer = measured_rows.payload(measurements.total, items, measurements.skipped, measurements.sources, **more)
    answer["stated"] = measured_rows.statistics([item for item in items if item.group == "stated"])
    answer["saturation"] = measured_rows.statistics([item for item in items if item.group == "saturation"])
    return answer


def in_sample_payload(measurements: Measurements, calibration: Calibration, **more: Any) -> ValidationReport:
    """Return the report of one calibration: by metric besides, and times under load apart from all."""
    items, loaded = predict(measurements, calibration)
    answer = report_payload(measurements, items, **more)
    answer["predicted"], answer["figures"] = len({figure.row for figure in measurements.figures}), len(items)
    answer["by_metric"] = {
        name: measured_rows.statistics([item for item in items if item.metric == name]) for name in METRICS
    }
    answer["loaded_ttft"] = [measured_rows.as_row(item) for item in loaded]
    answer["caveat"] = (
        "Time to the first token under load is a queue, not physics: no accuracy is claimed for loaded_ttft."
    )
    return answer
