"""What is asked of serving: a model, its load, targets, and where; read from human quantities and checked."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from typing import Any

from gpucost.errors import UsageError
from gpucost.physics.serving.cases import CACHE_BYTES, FORMATS
from gpucost.physics.serving.efficiency import ENGINE_NAMES
from gpucost.training import request as training_request
from gpucost.units import parse_count, parse_days, parse_fraction, parse_usd

GOALS = ("cost", "latency", "carbon")
DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS = 1024.0, 256.0
DEFAULT_UTILISATION = 0.7  # load at the busiest hour against the replicas' capacity, so that queues stay short
DEFAULT_TOP = 10
LARGEST_TOKENS = 16_777_216.0
LARGEST_RATE = 1e7


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A deployment to be costed; None means not asked for."""

    model: str
    prompt_tokens: float
    output_tokens: float
    distribution: str | None = None
    requests_per_s: float | None = None
    tokens_per_month: float | None = None  # prompt and output together
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    precision: str = "auto"
    cache: str = "auto"
    engine: str = "vllm"
    gpu: str | None = None
    provider: str | None = None
    region: str | None = None
    option: str | None = None
    as_of: str | None = None
    known_as_of: str | None = None
    utilisation_fraction: float = DEFAULT_UTILISATION
    utilisation_given: bool = False
    profile: str = "flat"
    autoscale: bool = False
    floor_replicas: int = 1
    replicas: int | None = None
    redundancy: int = 0
    prefix_hit_fraction: float = 0.0
    draft_tokens: int = 0
    acceptance_fraction: float = 0.0
    draft_cost_fraction: float = 0.05
    offload_fraction: float = 0.0
    optimize: str = "cost"
    top: int = DEFAULT_TOP
    max_age_days: float | None = None
    strict_prices: bool = False
    max_cost_usd: float | None = None  # per month

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-able fields."""
        return asdict(self)

    @property
    def tokens_per_request(self) -> float:
        """Prompt and output of one request."""
        return self.prompt_tokens + self.output_tokens

    @property
    def has_demand(self) -> bool:
        """Whether a load is given; else cost is stated at saturation."""
        return self.requests_per_s is not None or self.tokens_per_month is not None


Lengths = dict[str, tuple[float, float]]


def make_request(model: str | PathLike[str], *, lengths: Lengths | None = None, **wanted: Any) -> InferenceRequest:
    """Read human quantities into a request; anything unusable is refused with what would work.

    `wanted` holds what the command takes (READERS, and prompt, output, distribution, utilisation);
    None means not asked for. `lengths`: known distributions, name -> (mean prompt, mean output).
    """
    known = lengths or {}
    given = {name: value for name, value in wanted.items() if value is not None}
    if unknown := sorted(set(given) - set(READERS) - {"prompt", "output", "distribution", "utilisation"}):
        raise UsageError(f"inference takes no {', '.join(unknown)}. It takes what `gpucost inference --help` lists.")
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name in READERS:
            field, read = READERS[name]
            fields[field] = read(value, "--" + name.replace("_", "-"))
    means = distribution_lengths(given.get("distribution"), known) or (DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS)
    if "utilisation" in given:
        fields["utilisation_fraction"] = parse_fraction(given["utilisation"], "--utilisation")
        fields["utilisation_given"] = True
    request = InferenceRequest(
        model=name_of(model),
        prompt_tokens=tokens(length_or_number(given.get("prompt"), known, 0), "--prompt", means[0]),
        output_tokens=tokens(length_or_number(given.get("output"), known, 1), "--output", means[1]),
        distribution=given.get("distribution"),
        **fields,
    )
    contradictions(request)
    return request


def name_of(model: str | PathLike[str]) -> str:
    """Return the model's name, or refuse an empty one."""
    name = fspath(model).strip() if isinstance(model, str | PathLike) else ""
    if not name:
        raise UsageError("--model: a name is needed, such as llama-3.1-70b, 8b or a path to config.json.")
    return name


def distribution_lengths(name: str | None, known: dict[str, tuple[float, float]]) -> tuple[float, float] | None:
    """Return the mean lengths of a named distribution, or of an own CSV file with columns prompt and output."""
    if name is None:
        return None
    if name in known:
        return known[name]
    import os

    if os.path.exists(name):
        return own_lengths(name)
    from gpucost.errors import UnknownNameError

    raise UnknownNameError(
        "length distribution", name, sorted(known), "Or give a CSV file with columns prompt and output."
    )


def length_or_number(
    value: str | float | None, known: dict[str, tuple[float, float]], column: int
) -> str | float | None:
    """Return a number as it is, or the mean of a distribution that is named instead."""
    if not isinstance(value, str) or value.strip()[:1].isdigit() or value.strip()[:1] in ".+-":
        return value
    found = distribution_lengths(value.strip(), known)
    return value if found is None else found[column]


def own_lengths(path: str) -> tuple[float, float]:
    """Return the mean prompt and output of an own trace: a CSV file with one request per row."""
    import csv

    from gpucost.errors import DataError

    prompts: list[float] = []
    outputs: list[float] = []
    with open(path, encoding="utf-8-sig", newline="") as handle:
        for number, row in enumerate(csv.DictReader(handle), start=2):
            for column, into in (("prompt", prompts), ("output", outputs)):
                try:
                    value = float(row[column])
                except (KeyError, TypeError, ValueError):
                    raise DataError("is no number of tokens", file=path, row=number, column=column) from None
                if value < 0 or value > LARGEST_TOKENS:
                    raise DataError(f"{value:g} is no number of tokens", file=path, row=number, column=column)
                into.append(value)
    if not prompts:
        raise DataError("holds no request", file=path)
    return max(sum(prompts) / len(prompts), 1.0), max(sum(outputs) / len(outputs), 1.0)


def tokens(value: str | float | None, flag: str, default: float) -> float:
    """Read a number of tokens per request."""
    if value is None:
        return default
    number = parse_count(value, flag)
    if number > LARGEST_TOKENS or number < 1:
        raise UsageError(f"{flag}: {value!r} lies outside 1 to {LARGEST_TOKENS:,.0f} tokens.")
    return number


def bounded(value: str | float, flag: str, highest: float) -> float:
    """Read a positive number up to a bound."""
    number = parse_count(value, flag)
    if number > highest:
        raise UsageError(f"{flag}: {value!r} is beyond {highest:,.0f}.")
    return number


def milliseconds(value: str | float, flag: str) -> float:
    """Read a latency: "200ms", "1.5s" or a number of milliseconds.

    >>> milliseconds("1.5s", "--ttft"), milliseconds(50, "--tpot")
    (1500.0, 50.0)
    """
    text = str(value).strip().lower()
    scale = 1.0
    if text.endswith("ms"):
        text = text[:-2]
    elif text.endswith("s"):
        text, scale = text[:-1], 1000.0
    try:
        number = float(text) * scale
    except ValueError:
        raise UsageError(
            f"{flag}: cannot read {value!r}. Write milliseconds or seconds, such as 200ms or 1.5s."
        ) from None
    if not 0 < number < 1e9:
        raise UsageError(f"{flag}: {value!r} is not a positive latency.")
    return number


def whole(value: str | float, flag: str, lowest: int) -> int:
    """Read a whole number of at least `lowest`."""
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"{flag}: cannot read {value!r}. Write a whole number.") from None
    if number != int(number) or not lowest <= number <= 1_000_000:
        raise UsageError(f"{flag}: {value!r} is not a whole number of {lowest} or more.")
    return int(number)


def choice(value: str, flag: str, choices: tuple[str, ...]) -> str:
    """Read one of a closed list."""
    from difflib import get_close_matches

    found = str(value).strip().lower()
    if found not in choices:
        near = get_close_matches(found, choices, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of {', '.join(choices)}."
        raise UsageError(f"{flag}: unknown {value!r}. {hint}")
    return found


Reader = Callable[[Any, str], Any]


def as_given(value: Any, flag: str) -> Any:
    """Return a value as it is: names that the catalog resolves, switches."""
    return value


def up_to(highest: float) -> Reader:
    """Return a reader of positive numbers up to a bound."""
    return lambda value, flag: bounded(value, flag, highest)


def at_least(lowest: int) -> Reader:
    """Return a reader of whole numbers from a bound."""
    return lambda value, flag: whole(value, flag, lowest)


def one_of(*choices: str) -> Reader:
    """Return a reader of one of a closed list."""
    return lambda value, flag: choice(value, flag, choices)


# argument -> field of the request, and how it is read
READERS: dict[str, tuple[str, Reader]] = {
    **{name: (name, as_given) for name in ("gpu", "provider", "region", "profile", "autoscale", "strict_prices")},
    "requests_per_s": ("requests_per_s", up_to(LARGEST_RATE)),
    "tokens_per_month": ("tokens_per_month", up_to(1e18)),
    "ttft": ("ttft_ms", milliseconds),
    "tpot": ("tpot_ms", milliseconds),
    "precision": ("precision", one_of("auto", *FORMATS)),
    "cache": ("cache", one_of("auto", *CACHE_BYTES)),
    "engine": ("engine", one_of(*ENGINE_NAMES)),
    "option": ("option", lambda value, flag: training_request.read_options(value)),
    "as_of": ("as_of", training_request.read_date),
    "known_as_of": ("known_as_of", training_request.read_date),
    "floor": ("floor_replicas", at_least(0)),
    "replicas": ("replicas", at_least(1)),
    "redundancy": ("redundancy", at_least(0)),
    "prefix_hit": ("prefix_hit_fraction", parse_fraction),
    "draft_tokens": ("draft_tokens", at_least(0)),
    "acceptance": ("acceptance_fraction", parse_fraction),
    "draft_cost": ("draft_cost_fraction", parse_fraction),
    "offload": ("offload_fraction", parse_fraction),
    "optimize": ("optimize", one_of(*GOALS)),
    "top": ("top", at_least(0)),
    "max_age": ("max_age_days", parse_days),
    "max_cost": ("max_cost_usd", parse_usd),
}


def contradictions(request: InferenceRequest) -> None:
    """Refuse what cannot hold at once."""
    if request.requests_per_s is not None and request.tokens_per_month is not None:
        raise UsageError("--requests-per-s and --tokens-per-month both state the load; give one of them.")
    if request.utilisation_fraction == 0:
        raise UsageError("--utilisation: at 0 % no token is served. Write 70% or 0.7.")
    if request.draft_tokens and not request.acceptance_fraction:
        raise UsageError(
            "--draft-tokens needs --acceptance, the probability that a proposed token is kept, such as 0.7."
        )
    if request.acceptance_fraction and not request.draft_tokens:
        raise UsageError("--acceptance belongs to --draft-tokens; say how many tokens are proposed per step.")
    if request.replicas is not None and request.autoscale:
        raise UsageError("--replicas fixes the replicas and --autoscale changes them by the hour; give one of them.")
    if request.autoscale and not request.has_demand:
        raise UsageError("--autoscale needs a load: --requests-per-s or --tokens-per-month.")
    if request.profile != "flat" and not request.has_demand:
        raise UsageError("--profile needs a load: --requests-per-s or --tokens-per-month.")
