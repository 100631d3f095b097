"""Arguments that several questions take: what each is for, its type, unit and example, said once."""

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from gpucost.arguments.kinds import (
    ANY_GPU,
    ANY_PROVIDER,
    ANY_REGION,
    BUILT_MODEL,
    DATASET,
    DATE,
    DAYS,
    DEADLINE,
    DECODE,
    FLAG,
    GB_PER_S,
    GPU,
    INPUTS,
    LATENCY,
    LENGTH,
    MILLISECONDS,
    MODEL,
    OPTION,
    PLAN,
    RUN_TOKENS,
    SECONDS,
    STACK,
    SYSTEM,
    TABLE,
    USD_PER_GPU_HOUR,
    WEEKS,
    count,
    named,
    one_of,
    plain,
    positive_share,
    share,
    whole,
)
from gpucost.arguments.signature import Group, detail
from gpucost.words import DISPATCHERS, METHODS, OFFLOADS, PRECISIONS, RANKS

if TYPE_CHECKING:
    from gpucost.types import Architecture

# The model, and what its offers are chosen by.
Model = Annotated[
    str | PathLike[str], MODEL, "Preset, size such as 8b, or path to a config.json.", detail(example="8b")
]
Gpu = Annotated[
    str | Sequence[str],
    ANY_GPU,
    "GPU or family, such as h100-sxm or h100; a list takes commas.",
    detail(example="h100"),
]
OneGpu = Annotated[str, GPU, "One accelerator, such as h100-sxm.", detail(example="h100-sxm")]
Provider = Annotated[
    str | Sequence[str], ANY_PROVIDER, "Provider, such as lambda; a list takes commas.", detail(example="lambda")
]
Region = Annotated[
    str | Sequence[str],
    ANY_REGION,
    "Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.",
    detail(example="us-east"),
]
Option = Annotated[
    str | Sequence[str], OPTION, "Purchase option: on_demand, spot, reserved …", detail(example="on_demand")
]
MaxAge = Annotated[
    str | float, DAYS, "Leave out prices older than this, such as 90d.", detail(example="180d", field="max_age_days")
]
StrictPrices = Annotated[
    bool, FLAG, "Leave out prices that are old for their kind (spot 7 days, marketplaces 30, lists 180)."
]
_ExcludeProvider = Annotated[
    str | Sequence[str], ANY_PROVIDER, "Leave this seller out; a list takes commas.", detail(example="vast")
]
_ProviderClass = Annotated[
    str,
    one_of("hyperscaler", "cloud", "marketplace", "serverless"),
    "Only sellers of this kind.",
    detail(example="cloud"),
]
Fabric = Annotated[
    str,
    named(),
    "Only machines joined by a network or link of this name, such as infiniband, efa, nvlink.",
    detail(example="infiniband"),
]
_MinConfidence = Annotated[
    str, one_of("low", "medium", "high"), "Leave out prices with a lower confidence.", detail(example="medium")
]
_MaxGpus = Annotated[str | int, whole(), "Use at most this many accelerators.", detail(example=64)]
_RankBy = Annotated[
    str,
    one_of(*RANKS),
    "Order offers by the budget that nine of ten such orders need, the expected cost, the cost at the quote, or time.",
    detail(usual="budget"),
]
_UsdPerGpuHour = Annotated[
    str | float,
    USD_PER_GPU_HOUR,
    "A price of your own for an accelerator-hour of --gpu, whoever sells it.",
    detail(example=2.5),
]
AsOf = Annotated[str | date, DATE, "Use prices as of this day.", detail(usual="today", example="2026-11-20")]
KnownAsOf = Annotated[str | date, DATE, "Ignore prices recorded after this day.", detail(example="2026-11-20")]
Top = Annotated[str | int, whole(0), "Number of options to show; 0 shows all."]
Gpus = Annotated[str | int, whole(), "Use exactly this many accelerators.", detail(example=64)]
Count = Annotated[str | int, whole(), "Number of GPUs."]
# How long and how large a training run is, and how its weights are trained.
Tokens = Annotated[str | float, RUN_TOKENS, "Tokens per epoch, such as 100b.", detail(example="100b")]
# 2^24 tokens: longer than any context on record, so that a digit too many is refused
SequenceTokens = Annotated[
    str | int,
    whole(1, 16_777_216, metavar="TOKENS"),
    "Tokens per sequence.",
    detail(usual="the model's, at most 8,192", example=8192, field="sequence_tokens"),
]
Offload = Annotated[str, one_of(*OFFLOADS), "What to offload to host memory."]
DocumentTokens = Annotated[
    str | float,
    count(16_777_216),
    "Tokens per document, where several documents share a sequence and attend only to themselves.",
    detail(usual="the sequence's", example=600),
]
GlobalBatch = Annotated[
    str | int, whole(1, 10_000_000), "Sequences per step.", detail(usual="as models of its size use", example=512)
]
Method = Annotated[str, one_of(*METHODS), "Train all weights, or adapters."]
LoraRank = Annotated[str | int, whole(1, 65_536), "Rank of the adapters."]
Precision = Annotated[
    str,
    one_of(*PRECISIONS),
    "Precision of the matrix products.",
    detail(usual="bf16, or fp16 on chips without it", example="bf16"),
]
# What a service, or a cluster that is owned, has to do, and how fast.
HoursPerMonth = Annotated[
    str | float,
    count(
        730,
        hint="A month has no more: for the hours of all GPUs together say --gpu-hours-per-month.",
        metavar="HOURS",
    ),
    "Hours a month that each GPU is used.",
    detail(example=200),
]
GpuHoursPerMonth = Annotated[
    str | float, count(1e12, metavar="HOURS"), "GPU-hours a month, of all GPUs together.", detail(example=10000)
]
PromptTokens = Annotated[
    str | float,
    LENGTH,
    "Mean prompt tokens per request, or a named length distribution.",
    detail(usual="1024", example=1000),
]
OutputTokens = Annotated[
    str | float,
    LENGTH,
    "Mean output tokens per request, or a named length distribution.",
    detail(usual="256", example=250),
]
Ttft = Annotated[
    str | float,
    LATENCY,
    "Maximum time to first token without a queue, e.g. 300ms, or none.",
    detail(usual="2s", example="300ms", field="ttft_ms"),
]
Tpot = Annotated[
    str | float,
    LATENCY,
    "Maximum time per output token, e.g. 30ms, or none.",
    detail(usual="50ms", example="30ms", field="tpot_ms"),
]
# How a model is served.
WeightFormat = Annotated[
    str,
    one_of("auto", "bf16", "fp16", "fp8", "int8", "w8a16", "nvfp4", "mxfp4", "int4", "gguf"),
    "Precision of the weights; auto: as published.",
    detail(example="fp8"),
]
CacheFormat = Annotated[
    str, one_of("auto", "bf16", "fp16", "fp8", "int8", "nvfp4", "fp4", "int4"), "Precision of the key-value cache."
]
Engine = Annotated[
    str,
    one_of(
        "vllm",
        "sglang",
        "trtllm",
        "tuned",
        "wide",
        "plain",
        "eager",
        "vllm-tpu",
        "vllm-xpu",
        "habana",
        "neuron",
        "unknown",
        "vllm-2025",
        "vllm-2024",
        "vllm-2023",
        "vllm-rocm",
        "transformers",
        "llama.cpp",
        "mlc",
        "exllama",
    ),
    "Serving engine.",
]
# Speeds that a person measured in place of the predicted ones, and the software that decides the latter.
Mfu = Annotated[
    str | float,
    positive_share(100),
    "Use your measured MFU instead of the prediction, e.g. 35%.",
    detail(example="35%", field="mfu_fraction"),
]
TokensPerSPerGpu = Annotated[
    str | float, count(1e9), "Use your measured speed: tokens per second per accelerator.", detail(example=9000)
]
StepTime = Annotated[
    str | float,
    SECONDS,
    "Use your measured speed: seconds per step on --gpus accelerators.",
    detail(example="7.3s", field="step_s"),
]
Software = Annotated[str, STACK, "Training software stack."]
SoftwareYear = Annotated[
    str | float, plain(2012, 2100, metavar="YEAR"), "Year of the software, such as 2024.5.", detail(example=2024.5)
]
# Owning instead of renting.
Rent = Annotated[
    str | float,
    USD_PER_GPU_HOUR,
    "Rental price per GPU-hour.",
    detail(usual="the market's", example=2.35, field="rent_usd_per_gpu_hour"),
]
Wacc = Annotated[
    str | float,
    share(),
    "Cost of capital, effective annual rate.",
    detail(usual="10%", example="10%", field="wacc_fraction"),
]
LeadTime = Annotated[
    str | float,
    WEEKS,
    "Delivery time, such as 36w; bridged by renting.",
    detail(example="36w", field="lead_time_weeks"),
]
PlanSource = Annotated[
    str | Mapping[str, Any],
    PLAN,
    "TOML file of inputs by name; in the library and in scenarios also a table.",
    detail(example="plan.toml"),
]
Inputs = Annotated[
    Mapping[str, Any], INPUTS, "Set any input of the plan; may be repeated.", detail(example={"pue_ratio": 1.2})
]
# How the work is laid out over the accelerators.
Sharding = Annotated[str | int, whole(0, 3), "0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP)."]
MicroBatch = Annotated[str | int, whole(), "Sequences per GPU per micro-step."]
System = Annotated[str, SYSTEM, "Node type and network.", detail(usual="the usual one of the accelerator")]
Flash = Annotated[bool, FLAG, "Use fused attention, or keep the scores in memory."]
# unlike `Flash`, this one may stay unsaid: then the range holds both
UsuallyFlash = Annotated[
    bool,
    FLAG,
    "Fused attention, or its scores kept in memory; unsaid, a few of those who run general stacks do the latter.",
    detail(usual="fused"),
]
Dispatcher = Annotated[
    str,
    one_of(*DISPATCHERS),
    "How tokens reach experts on other ranks: all-to-all, or a fused kernel (DeepEP, HybridEP).",
    detail(usual="all-to-all, and fused by some"),
]
TrainedModel = Annotated[
    "str | PathLike[str] | Architecture",
    BUILT_MODEL,
    "Preset, alias, size such as 11b, or a config.json.",
    detail(example="8b"),
]
Links = Annotated[str, one_of("own", "pcie"), "Links between the GPUs of a node: their own, or PCIe only."]
# Parts of an answer or of a plan.
Side = Annotated[str, one_of("own", "rent"), "Side of a saved tco.", detail(usual="the cheaper", example="own")]
Rank = Annotated[str | int, whole(), "Rank of the option in a saved answer."]
Start = Annotated[str | date, DATE, "Start day of the plan.", detail(usual="the invoice's first", example="2026-11-01")]
# What a person measured of a service.
OwnOutputTokensPerS = Annotated[
    str | float,
    count(1e9),
    "Use your measured speed: output tokens per second of a saturated replica.",
    detail(example=2400),
]
OwnTpot = Annotated[
    str | float,
    MILLISECONDS,
    "Use your measured speed: time per output token at own_concurrency requests.",
    detail(example="25ms", field="own_tpot_ms"),
]
OwnConcurrency = Annotated[str | int, whole(), "Concurrent requests when own_tpot was measured.", detail(example=64)]
ReplicaGpus = Annotated[str | int, whole(1, 4096), "Accelerators per replica.", detail(usual="searched", example=4)]
# How data reach the accelerators.
Dataset = Annotated[
    str | float,
    DATASET,
    "Data to read: total bytes, such as 2TB, or bytes per token or per sample (sequence), such as 150kb/sample.",
    detail(usual="token ids of 2 or 4 bytes", example="150kb/sample"),
]
LoaderWorkers = Annotated[str | int, whole(1, 4096), "Data-loader workers per accelerator.", detail(example=8)]
DecodeRate = Annotated[
    str | float, DECODE, "Throughput of one loader worker: 50MB/s, or 200 samples/s.", detail(example="50MB/s")
]
StorageBandwidth = Annotated[
    str | float,
    GB_PER_S,
    "Storage bandwidth for the whole run, such as 10GB/s.",
    detail(example="10GB/s", field="storage_gb_per_s"),
]
# Degrees of the layout.
TensorParallel = Annotated[str | int, whole(), "Tensor-parallel degree."]
PipelineParallel = Annotated[str | int, whole(), "Pipeline stages."]
ContextParallel = Annotated[str | int, whole(), "Context-parallel degree."]
ExpertParallel = Annotated[str | int, whole(), "Expert-parallel degree."]

# what offers are chosen by
# a group is handed over as one dictionary, a TypedDict as keywords
OfferFilters = Annotated[
    dict[str, Any],
    Group(gpu=Gpu | None, provider=Provider | None, region=Region | None, option=Option | None, max_age=MaxAge | None),
]

# what fills relations beside the tables of the catalog, for one query
RELATION_ARGUMENTS = Group(
    model=Model | None,
    tokens=Annotated[Tokens | None, "Tokens to train on: fills hours in `speeds`, and `estimates`."],
    gpus=Annotated[Gpus | None, "Size of the training cluster.", detail(usual="every usual size")],
    gpu=Gpu | None,
    method=Annotated[Method | None, detail(usual="full")],
    sequence=SequenceTokens | None,
    global_batch=GlobalBatch | None,
    precision=Annotated[Precision | None, "Precision of the products in training."],
    software=Annotated[Software | None, detail(usual="typical")],
    deadline=Annotated[
        str | float | date | None, DEADLINE, "Longest run in `estimates`.", detail(usual="30d", example="60d")
    ],
    prompt_tokens=PromptTokens | None,
    output_tokens=OutputTokens | None,
    requests_per_s=Annotated[
        str | float | None, count(1e9), "Load of `served`, in requests per second.", detail(example=20)
    ],
    tokens_per_month=Annotated[
        str | float | None,
        count(1e18, metavar="TOKENS"),
        "Load of `served`, in tokens per month.",
        detail(example="5b"),
    ],
    ttft=Ttft | None,
    tpot=Tpot | None,
    weights=Annotated[WeightFormat | None, "Precision of the weights in serving.", detail(usual="auto")],
    engine=Annotated[Engine | None, detail(usual="vllm")],
)
RelationArguments = Annotated[dict[str, Any], RELATION_ARGUMENTS]


class MarketFilters(TypedDict, total=False):
    """What a question that ranks offers leaves out of its market, beside the offers that it is about."""

    exclude_provider: _ExcludeProvider | None
    provider_class: _ProviderClass | None
    fabric: Fabric | None
    min_confidence: _MinConfidence | None
    max_gpus: _MaxGpus | None
    rank_by: _RankBy
    usd_per_gpu_hour: _UsdPerGpuHour | None


Years = Annotated[str | float, plain(0.01, 100), "Length of the comparison.", detail(usual="4", example=4)]

# how an answer is handed on
Tags = Annotated[Mapping[str, Any], TABLE, "Tag of every row, such as team=research; may be repeated."]
FirstDay = Annotated[Start, detail(usual="the day of its prices")]
Status = Annotated[
    str, one_of("draft", "approved"), "Stamp the report with its status and its SHA-256.", detail(usual="no stamp")
]
StampedBy = Annotated[str, named("NAME"), "Approver shown in the stamp."]
StampedOn = Annotated[str | date, DATE, "Day of the stamp.", detail(usual="today")]
AcceptChanged = Annotated[bool, FLAG, "Use a saved answer even if it was edited (marked in the output)."]
ShareSafe = Annotated[bool, FLAG, "Ask again without your own price book, quotes, prices, pools and files."]
