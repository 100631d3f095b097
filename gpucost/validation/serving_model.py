"""What a benchmark of each scenario prints: throughput, time per token and time to the first token, from the physics.

A single stream and a fixed batch read their prompts first and then decode; a steady concurrency mixes both phases; a
burst drains, so that its mean batch is smaller than its size; saturation runs what memory and the engine allow; a rate
runs what Little's law says. Pools of a disaggregated deployment only decode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpucost.physics.columns import Flags, Floats, Gathered
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.cases import build
from gpucost.physics.serving.efficiency import ENGINE_NAMES, Software, resolve
from gpucost.physics.serving.structs import ServingCase, plain_options
from gpucost.units import MS_PER_S
from gpucost.validation.serving_rows import ServingRow
from gpucost.validation.serving_wording import ACCEPTANCE, SCENARIOS

EARLY_BATCH_LIMIT = 256.0  # sequences that early engines run at once by default
LAST_WAVE = 0.5  # of its places that the last wave of requests leaves empty, on average
LITTLE_ROUNDS = 12
DRAFT_COST = 0.05  # of a step that drafting a token takes: as `gpucost inference` takes it
FITTED_RATIO = 1.15  # of what is thought to fit that a batch which ran may have: memory is known no better
POOL_PROMPT_TOKENS = 16_384.0  # tokens that a pool of prompts reads at once, per accelerator


_NUMBERS = (
    "prompt_tokens", "output_tokens", "batch", "rate", "requests", "replicas", "prompt_workers", "decode_workers",
)  # fmt: skip


class Loads(Gathered):
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
        draft_cost=np.where(drafted > 0, DRAFT_COST, 0.0),
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


@dataclass(frozen=True, slots=True)
class Printed:
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


def running(loads: Loads, case: ServingCase) -> Floats:
    """Return the sequences that run at once in one replica: what is asked for, within memory and the engine's limit.

    Those of a batch grow together, so that their whole outputs must fit.
    """
    rates, known = case.rates, np.isfinite(loads.batch)
    disaggregated = loads.decode_workers > 0
    asked = loads.batch / np.where(disaggregated, np.maximum(loads.decode_workers, 1), loads.replicas)
    ranks = np.maximum(case.placement.data, 1)
    early = np.isin(
        loads.software.engine, [ENGINE_NAMES.index(n) for n in ("vllm-2023", "vllm-2024", "vllm-2025", "vllm-rocm")]
    )
    limit = np.where(known, np.inf, rates.batch_limit * ranks)
    limit = np.where(early, np.minimum(limit, EARLY_BATCH_LIMIT * ranks), limit)
    limit = np.minimum(limit, rates.seats)
    grown = np.where(loads.is_("batch") & ~rates.reserving, 2.0, 1.0)  # capacity counts half an output
    fits = np.maximum(serving.capacity_sequences(case, loads.prompt_tokens, loads.output_tokens * grown), 1.0)
    sent = np.where(np.isfinite(loads.requests), loads.requests / loads.replicas, np.inf)
    fits = np.where(known & loads.is_("batch") & (asked <= FITTED_RATIO * fits), np.maximum(asked, fits), fits)
    most = np.minimum(np.minimum(np.where(known, asked, sent), limit), fits)
    ramps = loads.is_("burst") & ~loads.varied_lengths
    return np.maximum(np.where(ramps, most * np.minimum(rates.burst, 1.0), most), 1.0)


def by_littles_law(loads: Loads, case: ServingCase, most: Floats) -> Floats:
    """Return the sequences that a rate of requests keeps running: rate × output × time per token, at most `most`."""
    sequences = np.ones_like(most)
    arriving = np.where(np.isfinite(loads.rate), loads.rate, 0.0) / loads.replicas
    for _ in range(LITTLE_ROUNDS):
        at = serving.steady(case, sequences, loads.prompt_tokens, loads.output_tokens)
        sequences = np.clip(arriving * loads.output_tokens * at.tpot_s, 1.0, most)
    return sequences


def printed(loads: Loads, values: Mapping[str, float]) -> Printed:
    """Return what each row's benchmark would print."""
    case = replace(loads.case, rates=resolve(values, loads.software))
    prompt, output = loads.prompt_tokens, loads.output_tokens
    sequences = running(loads, case)
    rated = loads.is_("rated")
    if rated.any():
        rows = np.flatnonzero(rated)
        sequences[rows] = by_littles_law(loads.take(rows), case.take(rows), sequences[rows])
    alone = loads.is_("single", "prompt", "batch", "burst", "pool") | (loads.decode_workers > 0)
    at = serving.steady(case, sequences, prompt, output, mixed=~alone)
    full = ~np.isfinite(loads.batch)
    met = np.where(full & ~alone, met_sequences(loads, sequences), sequences)
    tpot, first = serving.steady(case, met, prompt, output, mixed=~alone).tpot_s, at.ttft_s
    reading = np.where(prompt > 0, first, 0.0)
    together = loads.is_("batch")  # whose prompts are read at once
    read_s = np.where(together & (prompt > 0), serving.prompt_s(case, prompt, sequences), sequences * reading)
    drained = sequences * output / (read_s + output * tpot)
    waves = np.maximum(np.where(loads.is_("batch"), loads.batch, 1.0) / loads.replicas / sequences, 1.0)
    drained = drained * waves / np.ceil(waves - 1e-9)
    speed = np.where(loads.is_("single", "batch"), drained, at.output_tokens_per_s)
    if len(bursts := np.flatnonzero(loads.is_("burst"))):
        mixing = serving.steady(case.take(bursts), sequences[bursts], prompt[bursts], output[bursts])
        speed[bursts] = mixing.output_tokens_per_s
    if len(varied := np.flatnonzero(loads.is_("burst") & loads.varied_lengths & np.isfinite(loads.batch))):
        sent = loads.batch[varied] / loads.replicas[varied]
        speed[varied] = varied_burst(case.take(varied), sequences[varied], sent, prompt[varied], output[varied])
    speed = np.where(loads.decode_only | loads.is_("pool"), sequences / tpot, speed) * loads.replicas
    pools = np.minimum(sequences / tpot * loads.decode_workers, output * loads.prompt_workers / first)
    speed = np.where(loads.decode_workers > 0, pools, speed)
    speed = speed * np.where(full, case.rates.saturation * filled(loads, sequences), 1.0)
    return Printed(
        output_tokens_per_s=speed,
        total_tokens_per_s=np.where(loads.is_("prompt"), prompt_speed(loads, case), speed * (prompt + output) / output),
        tpot_s=tpot, ttft_s=first, sequences=sequences, host_share=np.maximum(at.step.host_s, 0.0) / at.step.total_s,
    )  # fmt: skip


LONGEST_MEANS = 4.5  # mean outputs that the longest of many is long: an assumption, as ShareGPT's are
DRAIN_POINTS, DRAIN_WEIGHTS = np.polynomial.legendre.leggauss(6)


def varied_burst(case: ServingCase, places: Floats, sent: Floats, prompt: Floats, output: Floats) -> Floats:
    """Return the output tokens per second of requests that are sent at once and end one by one.

    Places are refilled until all have started: (sent − places)·μ ÷ places steps at full places. Then outputs of
    lengths spread as an exponential with mean μ leave n·e^(−x/μ) running: μ·∫ step(n) d(ln n) until the longest ends.
    Prompts are read beside the steps of the first phase, those of the first places before it.
    """
    full = serving.steady(case, places, prompt, output)
    refilled = np.maximum(sent - places, 0.0) * output / full.output_tokens_per_s
    first = serving.prompt_s(case, prompt, places)
    end = np.minimum(np.log(np.maximum(places, 1.0)), LONGEST_MEANS)
    drain = np.zeros_like(places)
    for point, weight in zip(DRAIN_POINTS, DRAIN_WEIGHTS, strict=True):
        fallen = end * (point + 1) / 2
        running = np.maximum(places * np.exp(-fallen), 1.0)
        step = serving.decode_step(case, running, prompt + output * (1 + fallen) / 2).total_s
        drain += weight / 2 * end * step
    drain = np.where(end > 0, output * drain, output * serving.decode_step(case, places, prompt + output / 2).total_s)
    return sent * output / (first + refilled + drain)


def met_sequences(loads: Loads, sequences: Floats) -> Floats:
    """Return the sequences that a token runs among, on average over a run of few requests.

    Full for w − 1/2 waves, then falling to none over one: ∫n² ÷ ∫n = n·(1 − 1/6w) with LAST_WAVE of one half.
    """
    waves = loads.requests / loads.replicas / sequences
    return np.where(waves > 1, sequences * (1 - (LAST_WAVE - 1 / 3) / np.maximum(waves, 1.0)), sequences)


def filled(loads: Loads, sequences: Floats) -> Floats:
    """Return the mean share of places that are taken over a run of few requests: the last wave is half empty."""
    waves = loads.requests / loads.replicas / sequences
    return np.where(waves > 1, waves / (waves + LAST_WAVE), 1.0)


def prompt_speed(loads: Loads, case: ServingCase) -> Floats:
    """Return the prompt tokens read per second: of the stated prompts at once, or of a pool that is always full."""
    full = np.maximum(POOL_PROMPT_TOKENS * case.placement.gpus / np.maximum(loads.prompt_tokens, 1.0), 1.0)
    prompts = np.where(np.isfinite(loads.batch), loads.batch, full)
    return prompts * loads.prompt_tokens / serving.prompt_s(case, loads.prompt_tokens, prompts) * loads.replicas
