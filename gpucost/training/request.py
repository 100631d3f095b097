"""What is asked: a training run, read from human quantities and checked before anything is computed."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from gpucost import clock
from gpucost.arguments import Question, read
from gpucost.arguments.kinds import FLAG, plain
from gpucost.errors import UsageError
from gpucost.options import OPTIONS
from gpucost.words import RANKS
from gpucost.workloads.training import DataFlow, OwnSpeed, Rollouts, needs_gpus, own_speed

DEFAULT_DEADLINE_DAYS = 30.0
_PROMPT_TOKENS = 250.0  # of a prompt that nobody states: an assumption, as those of school and contest mathematics
_OLDEST_STRICT_DAYS = max(rule.age_limit_days for rule in OPTIONS.values())


class TrainingRequest(Struct, frozen=True, kw_only=True):
    """A training run to be costed; None means not asked for. Names carry units as everywhere."""

    model: str
    tokens: float
    epochs: float
    gpus: int | None
    gpu: str | None
    provider: str | None
    region: str | None
    option: str | None
    deadline_days: float | None
    deadline_given: bool
    max_cost_usd: float | None
    sequence_tokens: int | None
    document_tokens: float | None
    global_batch: int | None  # sequences per step
    precision: str | None
    method: str
    lora_rank: int
    lora_targets: str
    offload: str
    flash: bool | None  # fused attention; None: usual, and some do without
    dispatcher: str | None  # how tokens reach their experts; None: all-to-all, and some fuse it
    as_of: str | None
    known_as_of: str | None
    software: str
    software_year: float | None
    mfu_fraction: float | None  # one's own speed, in one of three forms
    tokens_per_s_per_gpu: float | None
    step_s: float | None
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
    commitment: str
    evaluation_fraction: float
    experiments_fraction: float
    pool: str | None
    pool_view: str
    all_regions: bool
    dataset: str | None  # 2TB, 4/token or 150kb/sample
    loader_workers: int | None  # on each accelerator
    decode_rate: str | None
    storage_gb_per_s: float | None
    rollouts: int | None  # answers to each prompt, where the model is trained on what it writes
    prompt_tokens: float | None
    output_tokens: float | None
    reference_model: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-able fields."""
        return asdict(self)

    @property
    def own_speed(self) -> OwnSpeed | None:
        """Return the speed that was measured, where one was given."""
        return own_speed(self.mfu_fraction, self.tokens_per_s_per_gpu, self.step_s)

    @property
    def data_flow(self) -> DataFlow:
        """Return what was said of the data that feed the run."""
        return DataFlow(self.dataset, self.loader_workers, self.decode_rate, self.storage_gb_per_s)

    @property
    def written(self) -> Rollouts | None:
        """Return what the model writes to be trained on; None for training on given tokens."""
        if self.method != "grpo" or self.rollouts is None or self.output_tokens is None:
            return None
        return Rollouts(self.rollouts, self.prompt_tokens or _PROMPT_TOKENS, self.output_tokens, self.reference_model)

    @property
    def trained_tokens(self) -> float:
        """Return the tokens that pass through training, epochs included."""
        return self.tokens * self.epochs


def from_dict(values: Mapping[str, Any], question: Question) -> TrainingRequest:
    """Read a request back from a saved result, each value as `question` reads it, without keys of other versions."""
    kinds = {name: argument.kind for name, argument in question.fields.items()}
    kinds |= {"deadline_days": plain(1e-6), "deadline_given": FLAG}
    stated = {name: values[name] for name in TrainingRequest.__struct_fields__ if name in values}
    checked: dict[str, Any] = {
        name: None if value is None else kinds[name].read(value, f"request.{name}") for name, value in stated.items()
    }
    request = replace(make_request(read(question, model="any", tokens=1)), **checked)
    _contradictions(request)
    return request


def make_request(values: Mapping[str, Any], deadline_given: bool = False, today: date | None = None) -> TrainingRequest:
    """Make a request of the arguments of `estimate` as they were read."""
    limit = values["deadline"]
    if not deadline_given and not values["gpus"]:  # a pinned cluster may take its time
        limit = DEFAULT_DEADLINE_DAYS
    if isinstance(limit, date):  # a day is counted from the day of the prices
        start = date.fromisoformat(values["as_of"]) if values["as_of"] else today or clock.today()
        if limit <= start:
            raise UsageError(f"--deadline: {limit} is not after {start}. Name a later day, or a duration such as 30d.")
        limit = float((limit - start).days)
    request = TrainingRequest(
        model=values["model"],
        tokens=values["tokens"],
        epochs=values["epochs"],
        gpus=values["gpus"],
        gpu=values["gpu"],
        provider=values["provider"],
        region=values["region"],
        option=values["option"],
        deadline_days=limit,
        deadline_given=deadline_given,
        max_cost_usd=values["budget"],
        sequence_tokens=values["sequence"],
        document_tokens=values["document_tokens"],
        global_batch=values["global_batch"],
        precision=values["precision"],
        method=values["method"],
        lora_rank=values["lora_rank"],
        lora_targets=values["lora_targets"],
        offload=values["offload"],
        flash=values["flash"],
        dispatcher=values["dispatcher"],
        as_of=values["as_of"],
        known_as_of=values["known_as_of"],
        software=values["software"],
        software_year=values["software_year"],
        mfu_fraction=values["mfu"],
        tokens_per_s_per_gpu=values["tokens_per_s_per_gpu"],
        step_s=values["step_time"],
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
        commitment=values["commitment"],
        evaluation_fraction=values["overhead"],
        experiments_fraction=values["experiments"],
        pool=values["pool"],
        pool_view=values["pool_view"],
        all_regions=values["all_regions"],
        dataset=values["dataset"],
        loader_workers=values["loader_workers"],
        decode_rate=values["decode_rate"],
        storage_gb_per_s=values["storage_bandwidth"],
        rollouts=values["rollouts"],
        prompt_tokens=values["prompt_tokens"],
        output_tokens=values["output_tokens"],
        reference_model=values["reference_model"],
    )
    _contradictions(request)
    return request


def _contradictions(request: TrainingRequest) -> None:
    """Refuse what contradicts itself; `from_dict` asks again, since a saved request may have been changed by hand."""
    if request.method == "grpo":
        if request.rollouts is None or request.output_tokens is None:
            needed = {"--rollouts": request.rollouts, "--output-tokens": request.output_tokens}
            lacking = " and ".join(flag for flag, value in needed.items() if value is None)
            raise UsageError(
                f"--method grpo needs {lacking}: how many answers the model writes to a prompt, and how long they are"
                " on average, rule its steps, and neither has a usual value. The log of a trainer has both (verl:"
                " response_length/mean)."
            )
        # what a prompt and its answers say already, and a speed of training alone
        doubly = {
            "--sequence": request.sequence_tokens,
            "--document-tokens": request.document_tokens,
            "--mfu, --tokens-per-s-per-gpu or --step-time": request.own_speed,
        }
        twice = [flag for flag, value in doubly.items() if value is not None]
        if twice:
            raise UsageError(
                f"{twice[0]} does not go with --method grpo: a sequence is a prompt and its answer, and a step also"
                " writes and scores. Leave it out."
            )
    needs_gpus(request.own_speed, request.gpus)
    if request.gpus and request.max_gpus and request.gpus > request.max_gpus:
        raise UsageError(f"--gpus {request.gpus} contradicts --max-gpus {request.max_gpus}. Leave one of them out.")
    if request.strict_prices and request.max_age_days is not None and request.max_age_days > _OLDEST_STRICT_DAYS:
        raise UsageError(
            f"--strict-prices drops prices over {_OLDEST_STRICT_DAYS} days old at the latest; --max-age beyond that"
            " contradicts it."
        )
