"""What is asked: a training run, read from human quantities and checked before anything is computed."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from os import PathLike, fspath
from typing import Any

from gpucost.errors import UsageError
from gpucost.market.assumptions import EVALUATION_FRACTION
from gpucost.options import OPTIONS
from gpucost.units import parse_count, parse_days, parse_fraction, parse_usd

GOALS = ("cost", "time", "pareto", "carbon")
METHODS = ("full", "lora", "qlora")
TARGETS = ("all", "attention", "feed_forward")
COMMITMENTS = ("full", "used")
PRECISIONS = ("bf16", "fp16", "fp8", "tf32", "fp32", "fp4")
POOL_VIEWS = ("both", "loaded", "incremental")
SOFTWARE = ("typical", "vendor", "megatron", "deepspeed", "sharded", "eager", "compiler", "native")
DEFAULT_DEADLINE_DAYS = 30.0
DEFAULT_TOP = 10
DEFAULT_RANK = 16
_OLDEST_STRICT_DAYS = max(rule.age_limit_days for rule in OPTIONS.values())
LARGEST_TOKENS = 1e17
LARGEST_GPUS = 1_000_000
LARGEST_SEQUENCE = 16_777_216


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """A training run to be costed; None means not asked for. Names carry units as everywhere."""

    model: str
    tokens: float
    epochs: float = 1.0
    gpus: int | None = None
    gpu: str | None = None
    provider: str | None = None
    region: str | None = None
    option: str | None = None
    deadline_days: float | None = DEFAULT_DEADLINE_DAYS
    deadline_given: bool = False
    max_cost_usd: float | None = None
    sequence_tokens: int | None = None
    global_batch: int | None = None  # sequences per step
    precision: str = "bf16"
    method: str = "full"
    lora_rank: int = DEFAULT_RANK
    lora_targets: str = "all"
    as_of: str | None = None
    known_as_of: str | None = None
    software: str = "typical"
    optimize: str = "cost"
    top: int = DEFAULT_TOP
    max_age_days: float | None = None
    strict_prices: bool = False
    commitment: str = "full"
    evaluation_fraction: float = EVALUATION_FRACTION.value
    experiments_fraction: float = 0.0
    pool: str | None = None
    pool_view: str = "both"
    all_regions: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-able fields."""
        return asdict(self)

    @property
    def trained_tokens(self) -> float:
        """Return the tokens that pass through training, epochs included."""
        return self.tokens * self.epochs


def from_dict(values: Mapping[str, Any]) -> TrainingRequest:
    """Read a request back from a saved result; keys of other versions are ignored."""
    names = {field.name for field in fields(TrainingRequest)}
    return TrainingRequest(**{name: value for name, value in values.items() if name in names})


def make_request(
    model: str | PathLike[str], tokens: str | float, *, today: date | None = None, **wanted: Any
) -> TrainingRequest:
    """Read human quantities into a request; anything unusable is refused with what would work.

    `wanted` takes the names of `READERS` and as_of, known_as_of, deadline, gpus; None stands for the default.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    unknown = sorted(set(given) - set(READERS) - {"as_of", "known_as_of", "deadline", "gpus"})
    if unknown:
        raise UsageError(f"estimate takes no {unknown[0]!r}. It takes {', '.join(sorted(READERS))}.")
    day = read_date(given.get("as_of"), "--as-of")
    gpus = _whole(given["gpus"], "--gpus", LARGEST_GPUS) if "gpus" in given else None
    start = date.fromisoformat(day) if day else today or date.today()
    limit, limit_given = _deadline(given.get("deadline"), gpus is not None, start)
    fields_given = {READERS[name][0]: READERS[name][1](value) for name, value in given.items() if name in READERS}
    request = TrainingRequest(
        model=_text(model, "--model"),
        tokens=_tokens(tokens),
        gpus=gpus,
        deadline_days=limit,
        deadline_given=limit_given,
        as_of=day,
        known_as_of=read_date(given.get("known_as_of"), "--known-as-of"),
        **fields_given,
    )
    _contradictions(request)
    return request


def _text(value: str | PathLike[str], flag: str) -> str:
    name = fspath(value).strip() if isinstance(value, str | PathLike) else ""
    if not name:
        raise UsageError(f"{flag}: a name is needed, such as 8b, llama-3-70b or a path to config.json.")
    return name


def _tokens(value: str | float) -> float:
    tokens = parse_count(value, "--tokens")
    if tokens > LARGEST_TOKENS:
        raise UsageError(
            f"--tokens: {value!r} is more than all text there is (the limit is 1e17). Did you mean 100b or 15t?"
        )
    if tokens < 1:
        raise UsageError(f"--tokens: {value!r} is less than one token. Write a count such as 100b or 15t.")
    return tokens


def _bounded(value: float, flag: str, highest: float) -> float:
    if value > highest:
        raise UsageError(f"{flag}: {value:g} is beyond {highest:,.0f}.")
    return value


def _whole(value: str | float, flag: str, highest: int) -> int:
    number = parse_count(value, flag)
    if number != math.floor(number) or number < 1:
        raise UsageError(f"{flag}: {value!r} is not a whole number of one or more.")
    if number > highest:
        raise UsageError(f"{flag}: {value!r} is beyond {highest:,}.")
    return int(number)


def _choice(value: str, flag: str, choices: tuple[str, ...]) -> str:
    found = str(value).strip().lower()
    if found not in choices:
        raise UsageError(f"{flag}: unknown {value!r}. Choose one of {', '.join(choices)}.")
    return found


def read_options(value: str) -> str:
    """Check one purchase option or a comma-separated list of them."""
    from difflib import get_close_matches

    found = []
    for part in value.split(","):
        name = part.strip().lower().replace("-", "_").replace(" ", "_")
        if name not in OPTIONS:
            near = get_close_matches(name, OPTIONS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of {', '.join(OPTIONS)}."
            raise UsageError(f"--option: unknown {part.strip()!r}. {hint}")
        found.append(name)
    return ",".join(found)


def _top(value: int) -> int:
    if int(value) < 0:
        raise UsageError(f"--top: {value} is negative. Give how many options to show; 0 shows all.")
    return int(value)


def _experiments(value: str | float) -> float:
    """Read experiments as a share of the run's compute; they may exceed the run, so that more than 100 % is allowed."""
    try:
        share = (
            float(value.strip()[:-1]) / 100 if isinstance(value, str) and value.strip().endswith("%") else float(value)
        )
    except ValueError:
        raise UsageError(
            f"--experiments: cannot read {value!r}. Write a share of the run, such as 50% or 0.5."
        ) from None
    if not 0 <= share <= 100:
        raise UsageError(f"--experiments: {value!r} lies outside 0 to 100 times the run.")
    return share


def read_date(value: str | date | None, flag: str) -> str | None:
    """Read a day as YYYY-MM-DD."""
    if value is None or isinstance(value, date):
        return None if value is None else value.isoformat()
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        raise UsageError(f"{flag}: cannot read {value!r}. Write a date as YYYY-MM-DD.") from None


def _deadline(value: str | float | date | None, pinned: bool, today: date) -> tuple[float | None, bool]:
    """Return the deadline in days and whether it was asked for; a pinned cluster has none unless it is asked for."""
    if value is None:
        return (None if pinned else DEFAULT_DEADLINE_DAYS), False
    if isinstance(value, str) and value.strip().lower() == "none":
        return None, True
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.strip()):
        value = date.fromisoformat(read_date(value, "--deadline") or "")
    if isinstance(value, date):
        days = (value - today).days
        if days <= 0:
            raise UsageError(f"--deadline: {value} is not after {today}. Name a later day, or a duration such as 30d.")
        return float(days), True
    return parse_days(value, "--deadline"), True


def _contradictions(request: TrainingRequest) -> None:
    if request.method == "full" and (request.lora_rank != DEFAULT_RANK or request.lora_targets != "all"):
        raise UsageError("--rank and --targets belong to --method lora or qlora; full training has no adapters.")
    if request.strict_prices and request.max_age_days is not None and request.max_age_days > _OLDEST_STRICT_DAYS:
        raise UsageError(
            f"--strict-prices drops prices over {_OLDEST_STRICT_DAYS} days old at the latest; --max-age beyond that"
            " contradicts it."
        )


def _one_of(flag: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    return lambda value: _choice(value, flag, choices)


# argument -> field of the request and how it is read
READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "epochs": ("epochs", lambda value: _bounded(parse_count(value, "--epochs"), "--epochs", 10_000)),
    "gpu": ("gpu", str),
    "provider": ("provider", str),
    "region": ("region", str),
    "option": ("option", read_options),
    "max_cost": ("max_cost_usd", lambda value: parse_usd(value, "--max-cost")),
    "sequence": ("sequence_tokens", lambda value: _whole(value, "--sequence", LARGEST_SEQUENCE)),
    "global_batch": ("global_batch", lambda value: _whole(value, "--global-batch", 10_000_000)),
    "precision": ("precision", _one_of("--precision", PRECISIONS)),
    "method": ("method", _one_of("--method", METHODS)),
    "lora_rank": ("lora_rank", lambda value: _whole(value, "--rank", 65_536)),
    "lora_targets": ("lora_targets", _one_of("--targets", TARGETS)),
    "software": ("software", _one_of("--software", SOFTWARE)),
    "optimize": ("optimize", _one_of("--optimize", GOALS)),
    "top": ("top", _top),
    "max_age": ("max_age_days", lambda value: parse_days(value, "--max-age")),
    "strict_prices": ("strict_prices", bool),
    "commitment": ("commitment", _one_of("--commitment", COMMITMENTS)),
    "evaluation": ("evaluation_fraction", lambda value: parse_fraction(value, "--overhead")),
    "experiments": ("experiments_fraction", _experiments),
    "pool": ("pool", str),
    "pool_view": ("pool_view", _one_of("--pool-cost", POOL_VIEWS)),
    "all_regions": ("all_regions", bool),
}
