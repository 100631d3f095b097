"""`gpucost.fit(...)`: does a model fit a GPU, on how many, and what is the smallest change that helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.arguments import flag_of, read, read_stated
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FLAG, one_of, whole
from gpucost.arguments.signature import detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import opened, question
from gpucost.ask.result import Result, copied
from gpucost.errors import ContradictionError, UsageError
from gpucost.words import RECOMPUTES, STYLES

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

# Arguments that mean something to training alone, the keys of a verdict, and what means something to serving alone.
_OF_TRAINING = (
    "system",
    "method",
    "optimizer",
    "sequence",
    "micro_batch",
    "recompute",
    "loss_chunk",
    "offload",
    "lora_rank",
    "tensor",
    "pipeline",
    "context",
    "expert",
    "sharding",
    "style",
    "flash",
)
_VERDICT = ("gpu", "gpus", "layout", "fits", "needed_gb", "usable_gb", "headroom_gb")
_OF_SERVING = ("prompt_tokens", "output_tokens", "ttft", "tpot", "precision", "cache", "engine")


@dataclass(frozen=True, slots=True, repr=False)
class _Fitting(Result):
    """An answer to whether something fits."""

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The first option, where any fits."""
        return next(iter(self.options), None)

    @property
    def exit_code(self) -> int:
        """6 where it does not fit."""
        return 0 if self.fits else 6

    @property
    def fits(self) -> bool:
        """Whether the peak stays within what is usable, or anything serves it."""
        return bool(self.payload["fits"])


@dataclass(frozen=True, slots=True, repr=False)
class FitResult(_Fitting):
    """A verdict on memory: the footprint by component, the layout, and the changes that were tried."""

    @property
    def options(self) -> list[Mapping[str, Any]]:
        """The layout that was judged, with its memory."""
        return [{name: copied(self.payload[name]) for name in _VERDICT}]

    @property
    def gpus(self) -> int:
        """The accelerators of the layout: those asked for, else the fewest that fit."""
        return int(self.payload["gpus"])

    @property
    def needed_gb(self) -> float:
        """The allocator's peak on the fullest GPU, in units of 1e9 bytes."""
        return float(self.payload["needed_gb"])

    @property
    # changes stand in the order in which they hurt, so the first that helps is the gentlest
    def smallest_change(self) -> Mapping[str, Any] | None:
        """The gentlest change that makes it fit (or fit on fewer GPUs), or None where none was found."""
        return next((copied(row) for row in self.payload["changes"] if row["helps"]), None)


@dataclass(frozen=True, slots=True, repr=False)
class ServingFitResult(_Fitting):
    """Which accelerators serve a model within the targets: the fewest, the cheapest, and why others do not."""

    @property
    def smallest(self) -> Mapping[str, Any] | None:
        """The option with the least memory in all."""
        option: Mapping[str, Any] | None = copied(self.payload["smallest"])
        return option

    @property
    def cheapest(self) -> Mapping[str, Any] | None:
        """The option with the lowest price per hour."""
        option: Mapping[str, Any] | None = copied(self.payload["cheapest"])
        return option


@dataclass(frozen=True, slots=True, repr=False)
class FitsResult(_Fitting):
    """Which accelerators a training job fits, the cheapest per hour first."""

    @property
    def fits(self) -> bool:
        """Whether anything holds it."""
        return bool(self.payload["rows"])


@question(needs=[needs("lora_rank", given("method", "lora", "qlora"))])
def fit(
    # which accelerators
    model: v.TrainedModel,
    gpu: Annotated[v.OneGpu | None, "One accelerator, such as h100-sxm; by default all."] = None,
    gpus: Annotated[
        v.Count | None, "Number of GPUs; by default the fewest that fit; serving: all of them, as replicas."
    ] = None,
    *,
    system: v.System | None = None,
    # how it is trained
    method: v.Method = "full",
    optimizer: Annotated[
        str,
        one_of(
            "adamw",
            "adamw-fp32-gradients",
            "adamw-bf16",
            "adamw-8bit",
            "adamw-8bit-bf16",
            "adafactor",
            "adafactor-bf16",
            "sgd",
            "sgd-momentum",
            "muon",
            "lion",
        ),
        "Optimizer and the precision of its states.",
    ] = "adamw",
    sequence: Annotated[v.SequenceTokens | None, detail(usual="the model's, at most 4,096", field="")] = None,
    micro_batch: Annotated[v.MicroBatch | None, detail(usual="1")] = None,
    recompute: Annotated[
        str, one_of("auto", *RECOMPUTES), "Activation recomputation; auto: the least that fits."
    ] = "auto",
    loss_chunk: Annotated[
        str | int | None,
        whole(1, 16_777_216, metavar="TOKENS"),
        "Tokens per chunk of the loss.",
        detail(usual="all"),
    ] = None,
    offload: v.Offload = "none",
    lora_rank: v.LoraRank = 16,
    # the layout
    tensor: Annotated[v.TensorParallel | None, detail(usual="searched")] = None,
    pipeline: Annotated[v.PipelineParallel | None, detail(usual="searched")] = None,
    context: Annotated[v.ContextParallel | None, detail(usual="searched")] = None,
    expert: Annotated[v.ExpertParallel | None, detail(usual="searched")] = None,
    sharding: Annotated[v.Sharding | None, detail(usual="searched")] = None,
    style: Annotated[
        str | None,
        one_of(*STYLES),
        "Software style, which decides what activations are kept.",
        detail(usual="fused; trainer for adapters"),
    ] = None,
    flash: v.Flash = True,
    # the service
    serving: Annotated[bool, FLAG, "Serve the model instead of training it."] = False,
    prompt_tokens: Annotated[
        v.PromptTokens | None, "Serving: mean prompt tokens per request, or a named length distribution."
    ] = None,
    output_tokens: Annotated[
        v.OutputTokens | None, "Serving: mean output tokens per request, or a named length distribution."
    ] = None,
    ttft: Annotated[v.Ttft | None, "Serving: maximum time to first token without a queue, e.g. 300ms, or none."] = None,
    tpot: Annotated[v.Tpot | None, "Serving: maximum time per output token, e.g. 30ms, or none."] = None,
    precision: Annotated[v.WeightFormat, "Serving: precision of the weights; auto: as published."] = "auto",
    cache: Annotated[v.CacheFormat, "Serving: precision of the key-value cache."] = "auto",
    engine: Annotated[v.Engine, "Serving: engine."] = "vllm",
    # the day of the facts
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> FitResult | FitsResult | ServingFitResult:
    """Return whether training `model` fits, on `gpus` accelerators or on the fewest that do, or what serves it.

    Memory of training on the fullest GPU, by component: does it fit, on how many, and what would help.

    Without --gpus the fewest GPUs that fit are found, without --gpu on every accelerator. Every change shown was tried,
    the gentlest that works first. The exit code is 6 where it does not fit.

    $ gpucost fit --model 13b
    $ gpucost fit --model llama-3-70b --gpu h100-sxm
    $ gpucost fit --model 8b --gpu rtx-4090 --gpus 1 --method qlora --sequence 2048 --explain
    $ gpucost fit --model 70b --serving --prompt-tokens 2k --output-tokens 256 --tpot 50ms
    """
    written = {
        "model": model,
        "gpu": gpu,
        "gpus": gpus,
        "system": system,
        "method": method,
        "optimizer": optimizer,
        "sequence": sequence,
        "micro_batch": micro_batch,
        "recompute": recompute,
        "loss_chunk": loss_chunk,
        "offload": offload,
        "lora_rank": lora_rank,
        "tensor": tensor,
        "pipeline": pipeline,
        "context": context,
        "expert": expert,
        "sharding": sharding,
        "style": style,
        "flash": flash,
        "serving": serving,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "ttft": ttft,
        "tpot": tpot,
        "precision": precision,
        "cache": cache,
        "engine": engine,
        "as_of": as_of,
        "known_as_of": known_as_of,
    }
    values = read(QUESTIONS["fit"], **written)
    facts = opened(values, catalog)
    stated = read_stated(QUESTIONS["fit"], **written)
    # what belongs to the other side is refused, rather than ignored without a word
    foreign_names = _OF_TRAINING if values["serving"] else _OF_SERVING
    names = [argument.name for argument in QUESTIONS["fit"].arguments]
    if foreign := [name for name in names if name in foreign_names and name in stated]:
        flags, how = ", ".join(map(flag_of, foreign)), "without" if values["serving"] else "with"
        raise ContradictionError(f"{flags}: only {how} --serving.", foreign[:1])
    # the engines have defaults of their own: they get what was stated
    common = ("model", "gpu", "serving", "as_of", "known_as_of")
    job: dict[str, Any] = {name: values[name] for name in stated if name not in common}
    if values["serving"]:
        from gpucost.ask.inference import request_of
        from gpucost.serving.run import serving_fit_payload

        count = job.pop("gpus", None)
        gpus_of_all_replicas = None if count is None else int(count)
        request = request_of(facts, model=values["model"], gpu=values["gpu"], **job)
        return ServingFitResult(serving_fit_payload(facts, request, values["gpu"], gpus_of_all_replicas))
    if "style" in job:
        job["software"] = job.pop("style")  # the engine calls a style of software so
    if values["gpu"] is None and values["system"] is None:
        # no accelerator is named: all are tried
        from gpucost.fitting.fit import everywhere

        if "gpus" in job:
            raise UsageError("--gpus needs --gpu; without it, the fewest of every accelerator are counted.")
        return FitsResult(everywhere(facts, values["model"], **job))
    from gpucost.fitting.fit import answer as fitted

    return FitResult(fitted(facts, values["model"], values["gpu"], **job))
