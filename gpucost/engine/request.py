"""What is asked: a training run, read from human quantities and checked before anything is computed."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any

from gpucost.errors import UsageError
from gpucost.schemas import OPTIONS
from gpucost.units import parse_count, parse_days, parse_fraction, parse_usd

GOALS = ("cost", "time", "pareto", "carbon")
METHODS = ("full", "lora", "qlora")
COMMITMENTS = ("full", "used")
PRECISIONS = ("bf16", "fp16", "fp8", "tf32", "fp32", "fp4")
POOL_VIEWS = ("both", "loaded", "incremental")
SOFTWARE = ("typical", "vendor", "megatron", "deepspeed", "sharded", "eager", "compiler", "native")
DEFAULT_DEADLINE_DAYS = 30.0
DEFAULT_TOP = 10
LARGEST_TOKENS = 1e17
LARGEST_GPUS = 1_000_000
LARGEST_SEQUENCE = 16_777_216

# What the command line calls an option, for messages.
_FLAGS = {"max_age_days": "--max-age", "max_cost_usd": "--max-cost", "sequence_tokens": "--sequence"}


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
    lora_rank: int = 16
    lora_targets: str = "all"
    as_of: str | None = None
    known_as_of: str | None = None
    software: str = "typical"
    optimize: str = "cost"
    top: int = DEFAULT_TOP
    max_age_days: float | None = None
    strict_prices: bool = False
    commitment: str = "full"
    evaluation_fraction: float = 0.02
    experiments_fraction: float = 0.0
    pool: str | None = None
    pool_view: str = "both"

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
    model: str,
    tokens: str | float,
    *,
    epochs: str | float = 1,
    gpus: str | float | None = None,
    gpu: str | None = None,
    provider: str | None = None,
    region: str | None = None,
    option: str | None = None,
    deadline: str | float | date | None = None,
    max_cost: str | float | None = None,
    sequence: str | float | None = None,
    global_batch: str | float | None = None,
    precision: str = "bf16",
    method: str = "full",
    lora_rank: int = 16,
    lora_targets: str = "all",
    as_of: str | date | None = None,
    known_as_of: str | date | None = None,
    software: str = "typical",
    optimize: str = "cost",
    top: int = DEFAULT_TOP,
    max_age: str | float | None = None,
    strict_prices: bool = False,
    commitment: str = "full",
    evaluation: str | float = 0.02,
    experiments: str | float = 0,
    pool: str | None = None,
    pool_view: str = "both",
    today: date | None = None,
) -> TrainingRequest:
    """Read human quantities into a request; anything unusable is refused with what would work."""
    day = _date(as_of, "--as-of")
    limit, given = _deadline(deadline, gpus is not None, date.fromisoformat(day) if day else today or date.today())
    request = TrainingRequest(
        model=_text(model, "--model"),
        tokens=_tokens(tokens),
        epochs=_bounded(parse_count(epochs, "--epochs"), "--epochs", 10_000),
        gpus=None if gpus is None else _whole(gpus, "--gpus", LARGEST_GPUS),
        gpu=gpu,
        provider=provider,
        region=region,
        option=None if option is None else _option(option),
        deadline_days=limit,
        deadline_given=given,
        max_cost_usd=None if max_cost is None else parse_usd(max_cost, "--max-cost"),
        sequence_tokens=None if sequence is None else _whole(sequence, "--sequence", LARGEST_SEQUENCE),
        global_batch=None if global_batch is None else _whole(global_batch, "--global-batch", 10_000_000),
        precision=_choice(precision, "--precision", PRECISIONS),
        method=_choice(method, "--method", METHODS),
        lora_rank=_whole(lora_rank, "--rank", 65_536),
        lora_targets=lora_targets,
        as_of=day,
        known_as_of=_date(known_as_of, "--known-as-of"),
        software=_choice(software, "--software", SOFTWARE),
        optimize=_choice(optimize, "--optimize", GOALS),
        top=_top(top),
        max_age_days=None if max_age is None else parse_days(max_age, "--max-age"),
        strict_prices=bool(strict_prices),
        commitment=_choice(commitment, "--commitment", COMMITMENTS),
        evaluation_fraction=parse_fraction(evaluation, "--evaluation"),
        experiments_fraction=_experiments(experiments),
        pool=pool,
        pool_view=_choice(pool_view, "--pool-cost", POOL_VIEWS),
    )
    _contradictions(request, deadline)
    return request


def _text(value: str, flag: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{flag}: a name is needed, such as 8b, llama-3-70b or a path to config.json.")
    return value.strip()


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


def _option(value: str) -> str:
    from difflib import get_close_matches

    found = value.strip().lower().replace("-", "_").replace(" ", "_")
    if found not in OPTIONS:
        near = get_close_matches(found, OPTIONS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of {', '.join(OPTIONS)}."
        raise UsageError(f"--option: unknown {value!r}. {hint}")
    return found


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


def _date(value: str | date | None, flag: str) -> str | None:
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
        value = date.fromisoformat(_date(value, "--deadline") or "")
    if isinstance(value, date):
        days = (value - today).days
        if days <= 0:
            raise UsageError(f"--deadline: {value} is not after {today}. Name a later day, or a duration such as 30d.")
        return float(days), True
    return parse_days(value, "--deadline"), True


def _contradictions(request: TrainingRequest, deadline: object) -> None:
    if request.method == "full" and (request.lora_rank != 16 or request.lora_targets != "all"):
        raise UsageError("--rank and --targets belong to --method lora or qlora; full training has no adapters.")
    if request.strict_prices and request.max_age_days is not None and request.max_age_days > 180:
        raise UsageError(
            "--strict-prices drops prices over 180 days old at the latest; --max-age beyond that contradicts it."
        )
    if request.as_of and request.known_as_of and request.known_as_of < request.as_of:
        return  # a price on a day, as known before that day, is a forecast from old knowledge: allowed
