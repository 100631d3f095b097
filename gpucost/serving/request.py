"""What is asked of serving: a model, its load, targets, and where; read from human quantities and checked."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from gpucost.arguments.kinds import LARGEST_LENGTH
from gpucost.errors import DataError, UnknownNameError, UsageError
from gpucost.workloads.service import Service

DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS = 1024.0, 256.0
DEFAULT_UTILISATION = 0.7  # load at the busiest hour against the replicas' capacity, so that queues stay short


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
    include_unverified: bool
    usd_per_gpu_hour: float | None  # a price of one's own
    max_cost_usd: float | None  # per month

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-able fields."""
        return asdict(self)

    @property
    def has_demand(self) -> bool:
        """Whether a load is given; else cost is stated at saturation."""
        return self.requests_per_s is not None or self.tokens_per_month is not None


class Lengths(NamedTuple):
    """Mean lengths of requests, and what running ones hold beyond the mean prompt and half the mean output."""

    prompt_tokens: float
    output_tokens: float
    longer_tokens: float = 0.0


Distributions = dict[str, Lengths]


def spread_of(prompt: float, output: float, output_median: float | None) -> Lengths:
    """Return lengths whose outputs are spread: long ones run longer, so that a running one is long.

    A renewal process is met at a length of E[o²]/E[o] (Cox 1962), half of it done; of a lognormal with mean m and
    median h, E[o²]/m = m·(m/h)².

    >>> spread_of(1000, 200, 100), spread_of(1000, 200, None).longer_tokens
    (Lengths(prompt_tokens=1000, output_tokens=200, longer_tokens=300.0), 0.0)
    """
    ratio = output / output_median if output_median else 1.0
    return Lengths(prompt, output, max(output / 2 * (ratio**2 - 1), 0.0))


def make_request(arguments: Mapping[str, Any], distributions: Distributions) -> InferenceRequest:
    """Make a request of the arguments of `inference`, read and under the names of its fields."""
    named = dict(arguments)
    usual = Lengths(DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS)
    means = distribution_lengths(named["distribution"], distributions) or usual
    stated = named["prompt_tokens"] or named["output_tokens"]
    named["longer_tokens"] = 0.0 if stated else means.longer_tokens
    for column, (name, mean) in enumerate(zip(("prompt_tokens", "output_tokens"), means[:2], strict=True)):
        if isinstance(named[name], str):
            lengths = distribution_lengths(named[name], distributions)
            assert lengths is not None
            named[name] = lengths[column]
        named[name] = named[name] or mean
    named["utilisation_given"] = named["utilisation_fraction"] is not None
    if not named["utilisation_given"]:
        named["utilisation_fraction"] = DEFAULT_UTILISATION
    request = InferenceRequest(**named)
    contradictions(request)
    return request


def distribution_lengths(name: str | None, distributions: Distributions) -> Lengths | None:
    """Return the lengths of a named distribution, or of an own CSV file with columns prompt and output."""
    if name is None:
        return None
    if name in distributions:
        return distributions[name]
    if os.path.exists(name):
        return own_lengths(name)
    raise UnknownNameError(
        "length distribution", name, sorted(distributions), "Or give a CSV file with columns prompt and output."
    )


def own_lengths(path: str) -> Lengths:
    """Return the lengths of an own trace: a CSV file with one request per row.

    A running request is met in proportion to its output: it holds Σ(p·o + o²/2) ÷ Σo tokens.
    """
    from gpucost.schemas.validation import number, table

    rows = [row for _, row in table(path, dict.fromkeys(("prompt", "output"), number(high=LARGEST_LENGTH)))]
    prompt, output = (sum(row[name] for row in rows) / len(rows) for name in ("prompt", "output"))
    for name, mean in (("prompt", prompt), ("output", output)):
        if mean < 1:
            raise DataError(f"has {mean:.3g} {name} tokens on average; at least 1 is needed", file=path, column=name)
    held = sum(row["prompt"] * row["output"] + row["output"] ** 2 / 2 for row in rows)
    running = held / sum(row["output"] for row in rows)
    return Lengths(prompt, output, max(running - prompt - output / 2, 0.0))


def contradictions(request: InferenceRequest) -> None:
    """Refuse what cannot hold at once."""
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
    if request.replicas is not None and request.autoscale:
        raise UsageError(
            "--replicas fixes the number of replicas and --autoscale changes it every hour; give one of them."
        )
    if request.autoscale and not request.has_demand:
        raise UsageError("--autoscale needs a load: --requests-per-s or --tokens-per-month.")
    if request.profile != "flat" and not request.has_demand:
        raise UsageError("--profile needs a load: --requests-per-s or --tokens-per-month.")
