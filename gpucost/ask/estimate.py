"""`gpucost.estimate(...)`: what a training run costs, on every offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from msgspec.structs import replace

from gpucost.arguments import known, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import DEADLINE, FILE, FLAG, USD, count, one_of, plain, share, whole
from gpucost.arguments.signature import LIBRARY_ONLY, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import opened, question
from gpucost.ask.result import BilledResult, Unabridged
from gpucost.words import GOALS, METHODS

if TYPE_CHECKING:
    from gpucost.answers.training import Estimate
    from gpucost.catalog import Catalog
    from gpucost.physics.calibration import Calibration
    from gpucost.render.document import Document
    from gpucost.training.request import TrainingRequest


@dataclass(frozen=True, slots=True, repr=False)
class EstimateResult(BilledResult):
    """Ranked options of a training run, with their bills."""

    def _always(self) -> list[str]:
        from gpucost.physics.training.cases import PARTS

        # a run on one accelerator has no time for communication; its frame has the columns all the same
        return [f"components.{name}" for name in PARTS]

    # of any option that is shown: a reader may ask why the second one is not the first
    def explanation(self, rank: int = 1) -> "Document":
        """Return the document that explains an option, step by step, with formulas, numbers and sources."""
        from gpucost.render.explain import explanation

        return explanation(cast("Estimate", self.payload), rank)

    def explain(self, rank: int = 1) -> str:
        """Return how an option's figures come about."""
        from gpucost.render.text import write

        return write(self.explanation(rank), all_sections=True)


@question(
    # three ways to say one measured speed
    exclusive=["mfu tokens_per_s_per_gpu step_time"],
    needs=[
        needs(
            "lora_rank lora_targets",
            given("method", "lora", "qlora"),
            words="with --method lora or qlora: full training has no adapters",
        ),
        needs("rollouts prompt_tokens output_tokens reference_model", given("method", "grpo")),
        needs("pool_view", given("pool")),
        needs("usd_per_gpu_hour", given("gpu"), words="with --gpu: it is the price of one accelerator"),
    ],
)
def estimate(
    model: v.Model,
    tokens: v.Tokens,
    *,
    # the run
    epochs: Annotated[str | float, count(10_000), "Passes over the tokens."] = 1,
    gpus: v.Gpus | None = None,
    # the offers it is priced on
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
    max_age: v.MaxAge | None = None,
    # what it may take
    deadline: Annotated[
        str | float | date | None,
        DEADLINE,
        "Longest run allowed: a duration, a day, or none.",
        detail(usual="30d; none with gpus", example="30d"),
    ] = None,
    budget: Annotated[
        str | float | None,
        USD,
        "Most that a run may need, by its budget; exit code 3 if every offer needs more.",
        detail(example=100000, field="max_cost_usd"),
    ] = None,
    # how it is trained
    sequence: v.SequenceTokens | None = None,
    document_tokens: v.DocumentTokens | None = None,
    global_batch: v.GlobalBatch | None = None,
    precision: Annotated[
        str | None,
        one_of("bf16", "fp16", "fp8", "fp4", "tf32", "fp32"),
        "Precision of the matrix products.",
        detail(usual="bf16, or fp16 on chips without it", example="bf16"),
    ] = None,
    method: Annotated[
        str,
        one_of(*METHODS, "grpo"),
        "Train all weights, adapters, or all weights on answers that the model writes (grpo).",
    ] = "full",
    lora_rank: v.LoraRank = 16,
    offload: v.Offload = "none",
    flash: v.UsuallyFlash | None = None,
    dispatcher: v.Dispatcher | None = None,
    lora_targets: Annotated[str, one_of("all", "attention", "feed_forward"), "Matrices that get adapters."] = "all",
    software: v.Software = "typical",
    software_year: v.SoftwareYear | None = None,
    # a speed that was measured in place of the predicted one
    mfu: v.Mfu | None = None,
    tokens_per_s_per_gpu: v.TokensPerSPerGpu | None = None,
    step_time: v.StepTime | None = None,
    # what is shown, and what is charged
    optimize: Annotated[str, one_of(*GOALS["estimate"]), "What to rank by."] = "cost",
    top: v.Top = 10,
    all_regions: Annotated[bool, FLAG, "Show a row for every region, not only the cheapest."] = False,
    strict_prices: v.StrictPrices = False,
    commitment: Annotated[
        str, one_of("full", "used"), "Charge a run for its whole term (full) or for its hours (used)."
    ] = "full",
    overhead: Annotated[
        str | float,
        share(),
        "Hours outside training steps (evaluations, stalls, slower phases), as a share of the steps.",
        detail(field="evaluation_fraction"),
    ] = "20%",
    experiments: Annotated[
        str | float,
        share(100),
        "Trial runs and failed experiments, as a share of the run.",
        detail(field="experiments_fraction"),
    ] = "0%",
    pool: Annotated[
        str | None, FILE, "TOML file of your own accelerators, to compare as offers.", detail(example="pool.toml")
    ] = None,
    pool_view: Annotated[
        str,
        one_of("both", "loaded", "incremental"),
        "Cost of your own accelerators: loaded, incremental or both.",
    ] = "both",
    # the day of the prices
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    with_facts: Annotated[bool, FLAG, "Embed the facts that `gpucost saved rerun` needs.", LIBRARY_ONLY] = True,
    # how data reach the accelerators
    dataset: v.Dataset | None = None,
    loader_workers: v.LoaderWorkers | None = None,
    decode_rate: v.DecodeRate | None = None,
    storage_bandwidth: v.StorageBandwidth | None = None,
    # learning from answers that the model writes
    rollouts: Annotated[str | int | None, whole(2, 4096), "Answers to each prompt.", detail(example=16)] = None,
    prompt_tokens: Annotated[
        str | float | None, plain(1), "Mean tokens of a prompt.", detail(usual="250 with grpo", example=250)
    ] = None,
    output_tokens: Annotated[str | float | None, plain(1), "Mean tokens of an answer.", detail(example=2000)] = None,
    reference_model: Annotated[bool, FLAG, "A frozen reference model scores the answers too."] = False,
    catalog: "Catalog | None" = None,
    **market: Unpack[v.MarketFilters],
) -> EstimateResult:
    """Return what it costs to train `model` on `tokens`, on every offer that can do it, best first.

    Rank real offers by the cost of a whole training run, with days, accelerators, layout, range and price age.

    $ gpucost estimate --model 8b --tokens 100b
    $ gpucost estimate --model llama-3-70b --tokens 2t --gpu h100 --option on_demand --deadline 60d
    $ gpucost estimate --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --explain
    $ gpucost estimate --model 8b --tokens 2b --method grpo --rollouts 16 --output-tokens 2000
    """
    # written out, here and in every question: a type checker then sees each argument, a test each that is left out
    values = read(
        QUESTIONS["estimate"],
        model=model,
        tokens=tokens,
        epochs=epochs,
        gpus=gpus,
        gpu=gpu,
        provider=provider,
        region=region,
        option=option,
        max_age=max_age,
        deadline=deadline,
        budget=budget,
        sequence=sequence,
        document_tokens=document_tokens,
        global_batch=global_batch,
        precision=precision,
        method=method,
        lora_rank=lora_rank,
        offload=offload,
        flash=flash,
        dispatcher=dispatcher,
        lora_targets=lora_targets,
        software=software,
        software_year=software_year,
        mfu=mfu,
        tokens_per_s_per_gpu=tokens_per_s_per_gpu,
        step_time=step_time,
        optimize=optimize,
        top=top,
        all_regions=all_regions,
        strict_prices=strict_prices,
        commitment=commitment,
        overhead=overhead,
        experiments=experiments,
        pool=pool,
        pool_view=pool_view,
        as_of=as_of,
        known_as_of=known_as_of,
        with_facts=with_facts,
        dataset=dataset,
        loader_workers=loader_workers,
        decode_rate=decode_rate,
        storage_bandwidth=storage_bandwidth,
        rollouts=rollouts,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        reference_model=reference_model,
        **market,
    )
    from gpucost.training.run import estimate as run

    facts, request = opened(values, catalog), _request(values, deadline is not None)
    payload = run(request, facts, with_facts=values["with_facts"])
    # all offers are ranked only once somebody asks for them, as to_frame() does
    if len(payload["options"]) == payload["options_found"]:
        return EstimateResult(payload)
    return EstimateResult(
        payload, all_of_it=Unabridged(lambda: run(replace(request, top=0), facts, with_facts=False), payload)
    )


def _request(values: Mapping[str, Any], deadline_given: bool, today: date | None = None) -> "TrainingRequest":
    from gpucost.training.request import make_request

    return make_request(values, deadline_given, today)


def request_of(stated: Mapping[str, Any], today: date | None = None) -> "TrainingRequest":
    """Read arguments of `estimate` into the request of its engine."""
    arguments = known(QUESTIONS["estimate"], stated)
    return _request(read(QUESTIONS["estimate"], **arguments), "deadline" in arguments, today)


def rerun(saved: "Estimate", calibration: "Calibration") -> "Estimate":
    """Compute a saved estimate again from its own facts; its request is read as it was once asked."""
    from gpucost.training.request import from_dict
    from gpucost.training.rerun import rerun

    # runs of GRPO write answers while they train, so their time leans on the calibration of serving too
    if saved.get("request", {}).get("method") == "grpo" and calibration.generation is None:
        from gpucost.catalog.calibrations import serving_calibration
        from gpucost.catalog.shared import shared_catalog

        calibration = replace(calibration, generation=serving_calibration(shared_catalog()))
    # each value as its argument reads it today; an argument that joined since has its default
    return rerun(saved, calibration, lambda values: from_dict(values, QUESTIONS["estimate"]))
