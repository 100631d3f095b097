"""`gpucost.inference(...)`: what serving a model costs per million tokens, on every offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from msgspec.structs import replace

from gpucost.arguments import flag_of, known, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import (
    FLAG,
    LARGEST_LENGTH,
    MILLISECONDS,
    SECONDS,
    USD,
    WORD_OR_FILE,
    count,
    one_of,
    plain,
    share,
    whole,
)
from gpucost.arguments.signature import absent, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import opened, question
from gpucost.ask.result import BilledResult, Result, Unabridged
from gpucost.errors import UnknownNameError, UsageError
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from gpucost.words import GOALS

if TYPE_CHECKING:
    from gpucost.answers.serving import Inference
    from gpucost.catalog import Catalog
    from gpucost.render.document import Document
    from gpucost.serving.request import InferenceRequest


@dataclass(frozen=True, slots=True, repr=False)
class InferenceResult(BilledResult):
    """Ranked options of a deployment, with latency, cost per token and bills."""

    def explanation(self) -> "Document":
        """Return the document that explains the first option."""
        return explanation(cast("Inference", self.payload))


@dataclass(frozen=True, slots=True, repr=False)
class ProcessingResult(Result):
    """Ranked options of a model that gives no tokens out, by the cost of a unit of its own."""

    @property
    def best(self) -> Mapping[str, Any]:
        """The first option."""
        return cast(Mapping[str, Any], self.payload["options"][0])


def explanation(payload: "Inference") -> "Document":
    """Return the document that explains the first option: its range by cause, formulas, step by part, memory."""
    from gpucost.render.document import Paragraph, Section, Table, columns, columns_of, document_of
    from gpucost.render.offers import serving_causes

    best, block = payload["options"][0], payload["model"]
    parts = [{"part": name.removesuffix("_s"), "time_ms": 1e3 * value} for name, value in best["components"].items()]
    memory = [{"part": name, "value": value} for name, value in best["memory"].items()]
    return document_of(
        payload,
        f"How {best['provider']} {best['instance_type']} comes to its price",
        Section("Assumptions", [Paragraph(text) for text in payload["said"]]),
        Section("Where the monthly range comes from", [Table(columns_of("range causes"), serving_causes(best))]),
        Section("One decode step, by part", [Table(columns("part", "time_ms"), parts)]),
        Section("Memory of one accelerator, GB", [Table(columns("part", "value"), memory)]),
        Section("Numbers", [Table(columns("name", "value", "unit", "source_id:2"), block["inputs"])]),
        Section(
            "Formulas",
            [Table(columns("name", "formula", "value", "unit"), block["derived"]), Paragraph(payload["split_rule"])],
        ),
    )


@question(
    # ways to say the same load, the same measured speed, the same format, the same number of replicas
    exclusive=[
        "requests_per_s tokens_per_month users",
        "own_output_tokens_per_s own_tpot",
        "precision weights",
        "replicas gpus",
    ],
    needs=[
        needs(
            "acceptance draft_cost", given("draft_tokens"), words="with --draft-tokens: how many are proposed per step"
        ),
        needs("usd_per_gpu_hour", given("gpu"), words="with --gpu: it is the price of one accelerator"),
        needs("floor", given("requests_per_s"), given("tokens_per_month"), given("users")),
        needs("think_time", given("users"), words="with --users: it is their time between requests"),
        needs(
            "percentile arrivals prompt_p95 output_p95 disaggregated",
            given("slo_ttft"),
            given("slo_tpot"),
            words="with --slo-ttft or --slo-tpot: they say which requests are simulated",
        ),
        needs("floor", absent("replicas"), words="without --replicas, which fixes them"),
    ],
)
def inference(
    model: v.Model,
    *,
    # a request
    prompt_tokens: v.PromptTokens | None = None,
    output_tokens: v.OutputTokens | None = None,
    images: Annotated[
        str | float | None,
        count(10_000),
        "Images in a prompt, for models that see.",
        detail(example=1, usual="none"),
    ] = None,
    image_size: Annotated[
        str | int | None,
        whole(64, 8192, metavar="PIXELS"),
        "Side of a square image: in a prompt, or as it is made.",
        detail(usual="1024, or as the model's maker says", example=1024),
    ] = None,
    steps: Annotated[
        str | int | None, whole(1, 1000), "Steps of an image.", detail(usual="as its maker says", example=28)
    ] = None,
    lengths: Annotated[
        str | None,
        WORD_OR_FILE._replace(names="length_distributions"),
        "Named length distribution, or a CSV of prompt,output.",
        detail(example="azure-conversation", field="distribution"),
    ] = None,
    # the load, and how fast it is answered
    requests_per_s: Annotated[
        str | float | None, count(1e7), "Mean load, in requests per second.", detail(example=5)
    ] = None,
    tokens_per_month: Annotated[
        str | float | None,
        count(1e18, metavar="TOKENS"),
        "Load in tokens per month, prompt and output together.",
        detail(example="5b"),
    ] = None,
    ttft: v.Ttft | None = None,
    tpot: v.Tpot | None = None,
    # a service level that is kept under load, and the requests that are simulated for it
    slo_ttft: Annotated[
        str | float | None,
        MILLISECONDS,
        "Time to first token that a percentile of requests keeps under load, e.g. 500ms.",
        detail(example="500ms", field="slo_ttft_ms"),
    ] = None,
    slo_tpot: Annotated[
        str | float | None,
        MILLISECONDS,
        "Time per output token that a percentile of requests keeps under load, e.g. 40ms.",
        detail(example="40ms", field="slo_tpot_ms"),
    ] = None,
    percentile: Annotated[
        str | float, plain(1, 99.9, metavar="PERCENT"), "Share of requests that keep the service level."
    ] = 95,
    users: Annotated[
        str | float | None, count(1e9), "People who ask, read the answer, think, and ask again.", detail(example=400)
    ] = None,
    think_time: Annotated[
        str | float, SECONDS, "Time between an answer and the next request of a user.", detail(field="think_s")
    ] = "30s",
    arrivals: Annotated[
        str,
        WORD_OR_FILE,
        "Arrivals within a service level: poisson, constant, the coefficient of variation of gaps, a trace (azure-"
        "conversation, azure-code, mooncake-conversation), or a CSV of arrived_s, prompt_tokens, output_tokens.",
    ] = "poisson",
    prompt_p95: Annotated[
        str | float | None,
        count(LARGEST_LENGTH, 1, metavar="TOKENS"),
        "95th percentile of prompt tokens.",
        detail(usual="spread as conversations are", example=4000, field="prompt_p95_tokens"),
    ] = None,
    output_p95: Annotated[
        str | float | None,
        count(LARGEST_LENGTH, 1, metavar="TOKENS"),
        "95th percentile of output tokens.",
        detail(usual="spread as conversations are", example=700, field="output_p95_tokens"),
    ] = None,
    disaggregated: Annotated[
        bool, FLAG, "Read prompts on replicas of their own, which send the cache to those that write."
    ] = False,
    # how the model is served
    precision: v.WeightFormat = "auto",
    weights: Annotated[
        v.WeightFormat | None, "Another name of --precision.", detail(usual="auto", field="precision")
    ] = None,
    cache: v.CacheFormat = "auto",
    engine: v.Engine = "vllm",
    server: Annotated[
        str | None,
        one_of("default", "tuned", "offline"),
        "How the model is served: by a server with its defaults, by one tuned for the model, or in offline batches.",
        detail(usual="default, with a range that holds tuned ones too", example="tuned"),
    ] = None,
    # how many replicas, and when they run
    utilisation: Annotated[
        str | float | None,
        share(),
        "Load at the peak hour as a share of capacity.",
        detail(usual="70%; 100% at saturation", example="60%", field="utilisation_fraction"),
    ] = None,
    profile: Annotated[
        str, WORD_OR_FILE, "Load over the day: flat, office, consumer, or a file of 24 or 168 numbers."
    ] = "flat",
    autoscale: Annotated[bool, FLAG, "Scale replicas every hour."] = False,
    floor: Annotated[str | int, whole(0), "Minimum replicas when scaling.", detail(field="floor_replicas")] = 1,
    replicas: Annotated[str | int | None, whole(), "Run exactly this many serving replicas.", detail(example=2)] = None,
    gpus: Annotated[
        v.Gpus | None, "Serve on so many GPUs in all, as replicas that are always busy; with a load, --max-gpus."
    ] = None,
    redundancy: Annotated[str | int, whole(0), "Spare replicas."] = 0,
    # what makes tokens cheaper
    prefix_hit: Annotated[
        str | float | None,
        share(),
        "Share of prompt tokens in the prefix cache.",
        detail(usual="0, and a wider range", example="30%", field="prefix_hit_fraction"),
    ] = None,
    draft_tokens: Annotated[str | int, whole(0), "Tokens per step proposed by speculative decoding."] = 0,
    acceptance: Annotated[
        str | float, share(), "Probability that a proposed token is accepted.", detail(field="acceptance_fraction")
    ] = 0,
    draft_cost: Annotated[
        str | float, share(), "Time to propose a token, as a share of a step.", detail(field="draft_cost_fraction")
    ] = "5%",
    offload: Annotated[
        str | float, share(), "Share of the weights left in host memory.", detail(field="offload_fraction")
    ] = 0,
    # a speed that was measured in place of the predicted one
    own_output_tokens_per_s: v.OwnOutputTokensPerS | None = None,
    own_tpot: v.OwnTpot | None = None,
    own_concurrency: v.OwnConcurrency | None = None,
    replica_gpus: v.ReplicaGpus | None = None,
    # what is shown, and what offers it is priced on
    optimize: Annotated[str, one_of(*GOALS["inference"]), "What to rank by."] = "cost",
    budget: Annotated[
        str | float | None,
        USD,
        "Most that a month may need, by its budget; exit code 3 if every offer needs more.",
        detail(example=50000, field="max_cost_usd"),
    ] = None,
    top: Annotated[v.Top, "Number of options to show, interruptible ones counted separately; 0 shows all."] = 10,
    strict_prices: v.StrictPrices = False,
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
    max_age: v.MaxAge | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
    **market: Unpack[v.MarketFilters],
) -> "InferenceResult | ProcessingResult":
    """Return what it costs to serve `model`, on every offer that can, cheapest tokens first.

    Rank real offers by the cost of a million tokens, with replicas, latency and range; beside hosted prices. Models
    that do not generate tokens (embeddings, rerankers, speech, images) are ranked by the cost of a unit of their own.

    $ gpucost inference --model llama-3.1-70b --precision fp8 --prompt-tokens 2000 --output-tokens 300
    $ gpucost inference --model 8b --requests-per-s 20 --profile office --autoscale --tpot 50ms
    $ gpucost inference --model flux.1-dev --steps 28 --image-size 1024
    $ gpucost inference --model gpt-oss-120b --lengths azure-conversation --tokens-per-month 20b --gpu h100
    """
    values = read(
        QUESTIONS["inference"],
        model=model,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        images=images,
        image_size=image_size,
        steps=steps,
        lengths=lengths,
        requests_per_s=requests_per_s,
        tokens_per_month=tokens_per_month,
        ttft=ttft,
        tpot=tpot,
        slo_ttft=slo_ttft,
        slo_tpot=slo_tpot,
        percentile=percentile,
        users=users,
        think_time=think_time,
        arrivals=arrivals,
        prompt_p95=prompt_p95,
        output_p95=output_p95,
        disaggregated=disaggregated,
        precision=precision,
        weights=weights,
        cache=cache,
        engine=engine,
        server=server,
        utilisation=utilisation,
        profile=profile,
        autoscale=autoscale,
        floor=floor,
        replicas=replicas,
        gpus=gpus,
        redundancy=redundancy,
        prefix_hit=prefix_hit,
        draft_tokens=draft_tokens,
        acceptance=acceptance,
        draft_cost=draft_cost,
        offload=offload,
        own_output_tokens_per_s=own_output_tokens_per_s,
        own_tpot=own_tpot,
        own_concurrency=own_concurrency,
        replica_gpus=replica_gpus,
        optimize=optimize,
        budget=budget,
        top=top,
        strict_prices=strict_prices,
        gpu=gpu,
        provider=provider,
        region=region,
        option=option,
        max_age=max_age,
        as_of=as_of,
        known_as_of=known_as_of,
        **market,
    )
    from gpucost.physics.tasks import NAMES
    from gpucost.serving.request import make_request
    from gpucost.serving.run import infer, lengths_of
    from gpucost.serving.tasks import TaskQuestion, image_said, process, refuse_by_name, task_row, with_images

    facts = opened(values, catalog)
    row = task_row(facts, values["model"])
    pictures, side_pixels, steps_of_image = (values[name] for name in ("images", "image_size", "steps"))
    # a model that gives no tokens out: embeddings, rerankers, speech, images
    if row is not None and row["kind"] != "vision":
        if pictures:
            raise UsageError(f"--images: {row['id']} is {NAMES[row['kind']]} and sees none. Leave it out.")
        task = TaskQuestion(_input_tokens(row, values), side_pixels, steps_of_image)
        # its load is counted in units: tokens a month become requests a second
        units = {**values, "prompt_tokens": None}
        if values["tokens_per_month"] is not None:
            if row["kind"] not in ("embedding", "reranker"):
                raise UsageError(
                    f"--tokens-per-month: {row['id']} is {NAMES[row['kind']]}. Say --requests-per-s, in units."
                )
            tokens_of_unit = _input_tokens(row, values) or float(row["input_tokens"])
            # a load of embeddings is stated in tokens; the engine counts inputs
            requests_per_month = values["tokens_per_month"] / tokens_of_unit
            units["requests_per_s"] = requests_per_month / HOURS_PER_MONTH / SECONDS_PER_HOUR
            units["tokens_per_month"] = None
        request = make_request(units, lengths_of(facts))
        payload = process(request, row, task, facts)
        every = Unabridged(lambda: process(replace(request, top=0), row, task, facts), payload)
        return ProcessingResult(payload, all_of_it=every)
    if steps_of_image is not None:
        raise UsageError("--steps: only of models that make images, such as sdxl. Leave it out.")
    request = make_request(values, lengths_of(facts))
    # a model that writes, and sees nothing
    if row is None:
        try:
            facts.architecture(request.model)
        except UnknownNameError:
            # a model of images or speech that is not on record gets a better sentence than a wrong name
            refuse_by_name(request.model)
            raise
        if pictures or side_pixels is not None:
            known = ", ".join(model["id"] for model in facts.rows("task_models") if model["kind"] == "vision")
            raise UsageError(f"--images: what {values['model']} makes of an image is not on record. It is for {known}.")
        answer_payload = infer(request, facts)
        every = Unabridged(lambda: infer(replace(request, top=0), facts), answer_payload)
        return InferenceResult(answer_payload, all_of_it=every)
    # a model that writes about what it sees: its images are tokens of the prompt
    seen = with_images(request, row, pictures or 0, side_pixels, facts)
    answer_payload = infer(seen, facts)
    # what an image counts as decides the price, so the first sentence says it
    answer_payload["lead"] += f" {image_said(row, pictures or 0, side_pixels, facts, answer_payload)}"
    return InferenceResult(
        answer_payload, all_of_it=Unabridged(lambda: infer(replace(seen, top=0), facts), answer_payload)
    )


# What means nothing to a model that gives no tokens out.
_OF_OUTPUT = (
    "output_tokens",
    "lengths",
    "ttft",
    "tpot",
    "server",
    "slo_ttft",
    "slo_tpot",
    "users",
    "prompt_p95",
    "output_p95",
    "replicas",
    "own_output_tokens_per_s",
    "own_tpot",
    "own_concurrency",
    "replica_gpus",
)


def _input_tokens(row: Mapping[str, Any], values: Mapping[str, Any]) -> float | None:
    """Return the tokens of an input; refuse what belongs to models that write."""
    from gpucost.physics.tasks import NAMES

    for name in _OF_OUTPUT:
        if values[name] is not None:
            raise UsageError(
                f"{flag_of(name)}: {row['id']} is {NAMES[row['kind']]} and writes no tokens. Leave it out."
            )
    if isinstance(values["prompt_tokens"], str):  # the name of a length distribution
        raise UsageError(f"--prompt-tokens: write a number of tokens for {row['id']}.")
    return None if values["prompt_tokens"] is None else float(values["prompt_tokens"])


def request_of(catalog: "Catalog", **stated: Any) -> "InferenceRequest":
    """Read arguments of `inference` into the request of its engine."""
    from gpucost.serving.request import make_request
    from gpucost.serving.run import lengths_of

    question_ = QUESTIONS["inference"]
    return make_request(read(question_, **known(question_, stated)), lengths_of(catalog))
