"""What is asked of serving: a model, its load, targets, and where; read from human quantities and checked."""

import os
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from gpucost.arguments.kinds import LARGEST_LENGTH
from gpucost.errors import DataError, UnknownNameError, UsageError
from gpucost.gate import may_look_at
from gpucost.words import RANKS
from gpucost.workloads.arrivals import own_trace
from gpucost.workloads.service import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    USUAL_TPOT_MS,
    USUAL_TTFT_MS,
    Service,
)

_DEFAULT_UTILISATION = 0.7  # load at the busiest hour against the replicas' capacity, so that queues stay short


class InferenceRequest(Service, frozen=True, kw_only=True):
    """A service to be costed; None means not asked for."""

    model: str
    distribution: str | None
    requests_per_s: float | None
    tokens_per_month: float | None  # prompt and output together
    gpu: str | None
    provider: str | None
    region: str | None
    option: str | None
    as_of: str | None
    known_as_of: str | None
    utilisation_fraction: float
    utilisation_given: bool
    profile: str
    autoscale: bool
    floor_replicas: int
    replicas: int | None
    redundancy: int
    optimize: str
    top: int
    max_age_days: float | None
    strict_prices: bool
    exclude_provider: str | None
    provider_class: str | None
    fabric: str | None
    min_confidence: str | None
    max_gpus: int | None
    rank_by: str
    usd_per_gpu_hour: float | None  # a price of one's own
    max_cost_usd: float | None  # per month
    users: float | None = None  # who ask, read and think, and ask again
    think_s: float = 0.0  # between an answer and the next question
    slo_ttft_ms: float | None = None  # that a percentile of requests keeps under load
    slo_tpot_ms: float | None = None
    percentile: float = 95.0
    arrivals: str = "poisson"  # or constant, a coefficient of variation of the gaps, a trace
    prompt_p95_tokens: float | None = None
    output_p95_tokens: float | None = None
    disaggregated: bool = False  # prompts are read on replicas of their own
    ttft_given: bool = False
    tpot_given: bool = False
    gpus: int | None = None  # in all, without a load

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-able fields."""
        return asdict(self)

    @property
    def has_demand(self) -> bool:
        """Whether a load is given; else cost is stated at saturation."""
        return self.requests_per_s is not None or self.tokens_per_month is not None or self.users is not None

    @property
    def has_level(self) -> bool:
        """Whether replicas are sized by percentiles under load, not by their capacity."""
        return self.slo_ttft_ms is not None or self.slo_tpot_ms is not None

    @property
    def has_usual_targets(self) -> bool:
        """Whether tokens are in time where nobody says it: not in offline batches, at a measured speed or a level."""
        return self.server != "offline" and self.own_speed is None and not self.has_level

    def with_usual_targets(self) -> "InferenceRequest":
        """Return the request with the latency that its users would accept where nobody says another."""
        if not self.has_usual_targets:
            return self
        return replace(
            self,
            ttft_ms=self.ttft_ms if self.ttft_given else USUAL_TTFT_MS,
            tpot_ms=self.tpot_ms if self.tpot_given else USUAL_TPOT_MS,
        )

    def relaxed(self) -> "Iterator[InferenceRequest]":
        """Yield the request, then what it comes to without the targets that were assumed, the fewest first."""
        yield self
        assumed = self.assumed_targets
        for name in assumed:
            yield replace(self, **{name: None})
        if len(assumed) > 1:
            yield replace(self, **dict.fromkeys(assumed))

    @property
    def assumed_targets(self) -> list[str]:
        """The targets that nobody said."""
        stated = {"ttft_ms": self.ttft_given, "tpot_ms": self.tpot_given}
        return [name for name, is_stated in stated.items() if not is_stated and getattr(self, name) is not None]

    @property
    def lifted_targets(self) -> list[str]:
        """The targets that would have been assumed, had anything met them."""
        usual = self.with_usual_targets()
        return [name for name in usual.assumed_targets if getattr(self, name) is None]


class Lengths(NamedTuple):
    """Mean lengths of requests, and what running ones hold beyond the mean prompt and half the mean output."""

    prompt_tokens: float
    output_tokens: float
    longer_tokens: float = 0.0
    seen_fraction: float | None = None  # of prompt tokens, that an unlimited prefix cache had seen; None: not said


Distributions = dict[str, Lengths]  # by name


def spread_of(prompt: float, output: float, output_median: float | None) -> Lengths:
    """Return lengths whose outputs are spread: long ones run longer, so that a running one is long.

    A renewal process is met at a length of E[o²]/E[o] (Cox 1962), half of it done; of a lognormal with mean m and
    median h, E[o²]/m = m·(m/h)².

    >>> spread_of(1000, 200, 100).longer_tokens, spread_of(1000, 200, None).longer_tokens
    (300.0, 0.0)
    """
    ratio = output / output_median if output_median else 1.0  # e^(σ²/2) of a lognormal: mean ÷ median
    return Lengths(prompt, output, max(output / 2 * (ratio**2 - 1), 0.0))


def make_request(values: Mapping[str, Any], distributions: Distributions) -> InferenceRequest:
    """Make a request of the arguments of `inference` as they were read."""
    usual = Lengths(DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS)
    # the mean lengths of the trace that arrivals are taken from, where they are not drawn
    arrivals, traced = values["arrivals"], None
    if arrivals in distributions:
        traced = distributions[arrivals]
    elif os.path.exists(arrivals):
        trace = own_trace(arrivals)
        seen = float(trace.cached_tokens.sum() / trace.prompt_tokens.sum())
        trace_means = float(trace.prompt_tokens.mean()), float(trace.output_tokens.mean())
        traced = Lengths(*trace_means, seen_fraction=seen or None)
    means = _distribution_lengths(values["lengths"], distributions) or traced or usual
    prompt, output, utilisation = (values[name] for name in ("prompt_tokens", "output_tokens", "utilisation"))
    hit = values["prefix_hit"]
    request = InferenceRequest(
        prompt_tokens=_length(prompt, means, 0, distributions),
        output_tokens=_length(output, means, 1, distributions),
        longer_tokens=0.0 if prompt or output else means.longer_tokens,  # a stated mean says nothing of a spread
        ttft_ms=_limit_ms(values["ttft"]),
        tpot_ms=_limit_ms(values["tpot"]),
        ttft_given=values["ttft"] is not None,
        tpot_given=values["tpot"] is not None,
        precision=values["weights"] or values["precision"],
        cache=values["cache"],
        engine=values["engine"],
        server=values["server"],
        prefix_hit_fraction=hit if hit is not None or traced is None else traced.seen_fraction,
        draft_tokens=values["draft_tokens"],
        acceptance_fraction=values["acceptance"],
        draft_cost_fraction=values["draft_cost"],
        offload_fraction=values["offload"],
        own_output_tokens_per_s=values["own_output_tokens_per_s"],
        own_tpot_ms=values["own_tpot"],
        own_concurrency=values["own_concurrency"],
        replica_gpus=values["replica_gpus"],
        model=values["model"],
        distribution=values["lengths"],
        requests_per_s=values["requests_per_s"],
        tokens_per_month=values["tokens_per_month"],
        gpu=values["gpu"],
        provider=values["provider"],
        region=values["region"],
        option=values["option"],
        as_of=values["as_of"],
        known_as_of=values["known_as_of"],
        utilisation_fraction=_DEFAULT_UTILISATION if utilisation is None else utilisation,
        utilisation_given=utilisation is not None,
        profile=values["profile"],
        autoscale=values["autoscale"],
        floor_replicas=values["floor"],
        replicas=values["replicas"],
        redundancy=values["redundancy"],
        optimize=values["optimize"],
        top=values["top"],
        max_age_days=values["max_age"],
        strict_prices=values["strict_prices"],
        exclude_provider=values["exclude_provider"],
        provider_class=values["provider_class"],
        fabric=values["fabric"],
        min_confidence=values["min_confidence"],
        max_gpus=values["max_gpus"],
        rank_by=values["rank_by"] or RANKS[0],
        usd_per_gpu_hour=values["usd_per_gpu_hour"],
        max_cost_usd=values["budget"],
        users=values["users"],
        think_s=values["think_time"],
        slo_ttft_ms=values["slo_ttft"],
        slo_tpot_ms=values["slo_tpot"],
        percentile=values["percentile"],
        arrivals=arrivals,
        prompt_p95_tokens=values["prompt_p95"],
        output_p95_tokens=values["output_p95"],
        disaggregated=values["disaggregated"],
        gpus=values["gpus"],
    )
    # Refuse what cannot hold at once.
    if request.utilisation_fraction == 0:
        raise UsageError("--utilisation: at 0 % nothing is served. Write 70% or 0.7.")
    if request.draft_tokens and not request.acceptance_fraction:
        raise UsageError(
            "--draft-tokens needs --acceptance, the probability that a proposed token is kept, such as 0.7."
        )
    if (request.own_tpot_ms is None) != (request.own_concurrency is None):
        raise UsageError("--own-tpot and --own-concurrency go together: a time per token, and how many requests ran.")
    if request.own_speed is not None and request.replica_gpus is None:
        raise UsageError(f"{request.own_flag} needs --replica-gpus: how many accelerators the measured replica had.")
    if request.gpus is not None and request.has_demand:
        raise UsageError("--gpus fixes the accelerators, and a load says how many it takes. Limit them by --max-gpus.")
    if request.replicas is not None and request.autoscale:
        raise UsageError(
            "--replicas fixes the number of replicas and --autoscale changes it every hour; give one of them."
        )
    if request.autoscale and not request.has_demand:
        raise UsageError("--autoscale needs a load: --requests-per-s or --tokens-per-month.")
    if request.profile != "flat" and not request.has_demand:
        raise UsageError("--profile needs a load: --requests-per-s or --tokens-per-month.")
    return request.with_usual_targets()


def _limit_ms(stated: float | None) -> float | None:
    """Return a target in milliseconds; none is no target."""
    return stated if stated is not None and isfinite(stated) else None


def _length(stated: float | str | None, means: Lengths, column: int, distributions: Distributions) -> float:
    """Return the mean of a length: the one stated, that of a named distribution, or what else is known of it."""
    if isinstance(stated, str):
        lengths = _distribution_lengths(stated, distributions)
        assert lengths is not None
        stated = (lengths.prompt_tokens, lengths.output_tokens)[column]
    return stated or (means.prompt_tokens, means.output_tokens)[column]


def _distribution_lengths(name: str | None, distributions: Distributions) -> Lengths | None:
    """Return the lengths of a named distribution, or of an own CSV file with columns prompt and output."""
    if name is None:
        return None
    if name in distributions:
        return distributions[name]
    if may_look_at(name) and os.path.exists(name):
        return own_lengths(name)
    raise UnknownNameError(
        "length distribution", name, sorted(distributions), "Or give a CSV file with columns prompt and output."
    )


def own_lengths(path: str) -> Lengths:
    """Return the lengths of an own trace: a CSV file with one request per row.

    A running request is met in proportion to its output: it holds Σ(p·o + o²/2) ÷ Σo tokens.
    """
    from gpucost.schemas import typed

    rows = [row for _, row in typed.table(path, dict.fromkeys(("prompt", "output"), typed.number(high=LARGEST_LENGTH)))]
    prompt, output = (sum(row[name] for row in rows) / len(rows) for name in ("prompt", "output"))
    for name, mean in (("prompt", prompt), ("output", output)):
        if mean < 1:
            raise DataError(f"has {mean:.3g} {name} tokens on average; at least 1 is needed", file=path, column=name)
    token_steps = sum(row["prompt"] * row["output"] + row["output"] ** 2 / 2 for row in rows)
    running = token_steps / sum(row["output"] for row in rows)
    return Lengths(prompt, output, max(running - prompt - output / 2, 0.0))
