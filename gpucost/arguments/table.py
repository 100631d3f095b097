"""The arguments that questions take: name, kind, default and meaning of each; those that several share stand once."""

from typing import Any, NamedTuple

from gpucost.arguments import kinds as k
from gpucost.arguments.kinds import Kind, count, name, one_of, plain, positive_share, share, whole
from gpucost.words import CLASSES, METHODS, OFFLOADS, PRECISIONS, RECOMPUTES, STYLES


class Argument(NamedTuple):
    """One argument of a question."""

    name: str  # in the library and in scenario files; the command writes it --with-hyphens
    kind: Kind
    help: str
    default: Any = None
    usual: str = ""  # what holds where nothing is said and the default depends on the rest
    field: str = ""  # what the request behind the question calls it, where that differs
    old: tuple[str, ...] = ()  # names of former versions, still read
    required: bool = False
    column: bool = False  # may be a list or an array instead: a case each
    example: Any = None
    library_only: bool = False
    place: bool = False  # the command takes it without an option's name


A = Argument
SOFTWARE = ("typical", *CLASSES[:-1])
OPTIMIZERS = (
    "adamw", "adamw-fp32-gradients", "adamw-bf16", "adamw-8bit", "adamw-8bit-bf16", "adafactor", "adafactor-bf16",
    "sgd", "sgd-momentum", "muon", "lion",
)  # fmt: skip
FORMATS = ("bf16", "fp16", "fp8", "int8", "w8a16", "nvfp4", "mxfp4", "int4", "gguf")
CACHES = ("bf16", "fp16", "fp8", "int8", "nvfp4", "fp4", "int4")
CLAIMED = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4")
LARGEST_SEQUENCE = k.LARGEST_LENGTH

MODEL = A("model", k.MODEL, "Preset, size such as 8b, or path to a config.json.", required=True, example="8b")
GPU = A("gpu", k.GPU, "GPU or family, such as h100-sxm or h100; a list takes commas.", example="h100")
ONE_GPU = GPU._replace(help="One accelerator, such as h100-sxm.", example="h100-sxm")
PROVIDER = A("provider", k.PROVIDER, "Who sells it.", example="lambda")
REGION = A(
    "region",
    k.REGION,
    "Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.",
    example="us-east",
)
OPTION = A("option", k.OPTION, "Purchase option: on_demand, spot, reserved …", example="on_demand")
MAX_AGE = A("max_age", k.DAYS, "Leave out prices older than this, such as 90d.", field="max_age_days", example="180d")
STRICT = A("strict_prices", k.FLAG, "Leave out prices that are old for their kind.", False)
AS_OF = A("as_of", k.DATE, "The day that prices are asked for.", usual="today", example="2026-11-20")
KNOWN = A("known_as_of", k.DATE, "Hide what was recorded after this day.", example="2026-11-20")
DATES = (AS_OF, KNOWN)
FILTERS = (GPU, PROVIDER, REGION, OPTION, MAX_AGE)
TOP = A("top", whole(0), "Options to show; 0 shows all.", 10)
GPUS = A("gpus", whole(), "Take exactly this many accelerators.", example=64)
TOKENS = A("tokens", count(1e17, 1, "Write a count such as 100b or 15t.", "TOKENS"),
           "Tokens of one epoch, such as 100b.", required=True, example="100b")  # fmt: skip
SEQUENCE = A("sequence", whole(1, LARGEST_SEQUENCE, "TOKENS"), "Tokens per sequence.",
             usual="the model's, at most 8,192", field="sequence_tokens", example=8192)  # fmt: skip
OFFLOAD = A("offload", one_of(*OFFLOADS), "What host memory takes.", "none")
DOCUMENTS = A("document_tokens", count(LARGEST_SEQUENCE), "Tokens of a document, where several share a sequence"
              " and attend to themselves alone.", usual="the sequence's", example=600)  # fmt: skip
BATCH = A("global_batch", whole(1, 10_000_000), "Sequences per step.", usual="as models of its size use", example=512)
METHOD = A("method", one_of(*METHODS), "What is trained: all weights, or adapters.", "full")
RANK = A("lora_rank", whole(1, 65_536), "Rank of the adapters.", 16, old=("rank",))
PRECISION = A("precision", one_of(*PRECISIONS), "Precision of the products.",
              usual="bf16, or fp16 on chips without it", example="bf16")  # fmt: skip
PROMPT = A("prompt_tokens", k.LENGTH, "Mean prompt of a request, or a named length distribution.", usual="1024",
           old=("prompt",), example=1000)  # fmt: skip
OUTPUT = A("output_tokens", k.LENGTH, "Mean output of a request, or a named length distribution.", usual="256",
           old=("output",), example=250)  # fmt: skip
TTFT = A("ttft", k.MILLISECONDS, "Longest time to the first token without a queue: 300ms, 1s.", field="ttft_ms",
         example="2s")  # fmt: skip
TPOT = A("tpot", k.MILLISECONDS, "Longest time per output token: 50ms.", field="tpot_ms", example="50ms")
OWN_SERVING = (
    A("own_output_tokens_per_s", count(1e9), "Your own speed: output tokens per second of a saturated replica.",
      example=2400),
    A("own_tpot", k.MILLISECONDS, "Your own speed: time per output token of a replica with own_concurrency requests.",
      field="own_tpot_ms", example="25ms"),
    A("own_concurrency", whole(), "Requests that ran at once when own_tpot was measured.", example=64),
    A("replica_gpus", whole(1, 4096), "Accelerators of one replica.", usual="searched", example=4),
)  # fmt: skip
FORMAT = A(
    "precision", one_of("auto", *FORMATS), "Precision of the weights; auto: as published.", "auto", example="fp8"
)
CACHE = A("cache", one_of("auto", *CACHES), "Precision of the key-value cache.", "auto")
ENGINES = (
    "vllm", "sglang", "trtllm", "tuned", "wide", "plain", "eager", "vllm-tpu", "vllm-xpu", "unknown", "vllm-2025",
    "vllm-2024", "vllm-2023", "vllm-rocm", "transformers", "llama.cpp", "mlc", "exllama",
)  # fmt: skip
ENGINE = A("engine", one_of(*ENGINES), "What serves it.", "vllm")
MFU = A("mfu", positive_share(100.0), "Your own speed as MFU over the steps, such as 35%, not the predicted one.",
        field="mfu_fraction", example="35%")  # fmt: skip
OWN_TOKENS = A("tokens_per_s_per_gpu", count(1e9), "Your own speed: tokens per second on each accelerator.",
               example=9000)  # fmt: skip
STEP_TIME = A("step_time", k.SECONDS, "Your own speed: seconds of a step on --gpus accelerators.", field="step_s",
              example="7.3s")  # fmt: skip
OWN_SPEED = (MFU, OWN_TOKENS, STEP_TIME)

TRAINING_STACK = A("software", k.one_of_or_own(*SOFTWARE, old={"unknown": "typical"}), "Training stack.", "typical")
SOFTWARE_YEAR = A("software_year", plain(2012, 2100, "YEAR"), "Age of the software, such as 2024.5.", example=2024.5)
ESTIMATE = (
    MODEL,
    TOKENS,
    A("epochs", count(10_000), "Passes over the tokens.", 1),
    GPUS,
    *FILTERS,
    A("deadline", k.DEADLINE, "Longest run: a duration, a day, or none.", usual="30d; none with gpus", example="30d"),
    A("max_cost", k.USD, "Budget; exit code 3 if no option keeps it.", field="max_cost_usd", example=100_000),
    SEQUENCE, DOCUMENTS, BATCH,
    PRECISION._replace(kind=one_of(*PRECISIONS[:-1])),
    METHOD, RANK, OFFLOAD,
    A("lora_targets", one_of("all", "attention", "feed_forward"), "Matrices with adapters.", "all", old=("targets",)),
    TRAINING_STACK,
    SOFTWARE_YEAR,
    *OWN_SPEED,
    A("optimize", one_of("cost", "time", "pareto", "carbon"), "What to rank by.", "cost"),
    TOP,
    A("all_regions", k.FLAG, "A row for every region, not for the cheapest only.", False),
    STRICT,
    A("commitment", one_of("full", "used"), "full: a run pays for its whole term; used: for its hours.", "full"),
    A("overhead", share(), "Hours beside the steps (evaluations, stalls, slower phases), as a share of them.", "20%",
      field="evaluation_fraction", old=("evaluation",)),
    A("experiments", share(100.0), "Trial runs before the run, as a share of it.", "0%", field="experiments_fraction"),
    A("pool", k.FILE, "TOML file with your own accelerators; they enter as offers.", example="pool.toml"),
    A("pool_view", one_of("both", "loaded", "incremental"), "What your own accelerators cost.", "both",
      old=("pool_cost",)),
    *DATES,
    A("with_facts", k.FLAG, "Embed the facts that `gpucost rerun` needs.", True, library_only=True),
)  # fmt: skip
INFERENCE = (
    MODEL,
    PROMPT,
    OUTPUT,
    A("lengths", name("NAME|FILE", "length_distributions"), "Named length distribution, or a CSV of prompt,output.",
      field="distribution", old=("distribution",), example="azure-conversation"),
    A("requests_per_s", count(1e7), "Mean load in requests per second.", example=5),
    A("tokens_per_month", count(1e18, metavar="TOKENS"), "Load in tokens, prompt and output together.", example="5b"),
    TTFT,
    TPOT,
    FORMAT,
    CACHE,
    ENGINE,
    A("utilisation", share(), "Load at the busiest hour against capacity.", usual="70%; 100% at saturation",
      field="utilisation_fraction", old=("utilization",), example="60%"),
    A("profile", name("NAME|FILE"), "Load over the day: flat, office, consumer, or a file of 24 or 168 numbers.",
      "flat"),
    A("autoscale", k.FLAG, "Switch replicas by the hour.", False),
    A("floor", whole(0), "Replicas that stay on when scaling.", 1, field="floor_replicas"),
    A("replicas", whole(), "Run exactly this many serving replicas.", example=2),
    A("redundancy", whole(0), "Replicas beside those that serve.", 0),
    A("prefix_hit", share(), "Share of prompt tokens found in the prefix cache.", 0, field="prefix_hit_fraction"),
    A("draft_tokens", whole(0), "Tokens proposed per step by speculation.", 0),
    A("acceptance", share(), "Probability that a proposed token is kept.", 0, field="acceptance_fraction"),
    A("draft_cost", share(), "Time of proposing a token, as a share of a step.", "5%", field="draft_cost_fraction"),
    A("offload", share(), "Share of the weights left in host memory.", 0, field="offload_fraction"),
    *OWN_SERVING,
    A("optimize", one_of("cost", "latency", "carbon"), "What to rank by.", "cost"),
    A("max_cost", k.USD, "Budget of a month; exit code 3 if no offer keeps it.", field="max_cost_usd", example=50_000),
    TOP._replace(help="Options to show of those that stay and of those that may be interrupted; 0 shows all."),
    STRICT,
    *FILTERS,
    *DATES,
)  # fmt: skip
RENT = A("rent", k.USD, "Rental price per GPU-hour.", usual="the market's", field="rent_usd_per_gpu_hour", example=2.35)
WACC = A("wacc", share(), "Cost of capital, effective, a year.", usual="10%", field="wacc_fraction", example="10%")
LEAD = A("lead_time", k.WEEKS, "Wait for delivery, such as 36w; bridged by rent.", field="lead_time_weeks",
         old=("lead_time_weeks",), example="36w")  # fmt: skip
PLAN = A("plan", k.PLAN, "TOML file with any input by name; in the library and in scenarios also a table.",
         example="plan.toml")  # fmt: skip
SET = A("set", k.TABLE, "Set any input of the plan; may be repeated.", example={"pue_ratio": 1.2})
TCO = (
    ONE_GPU._replace(help="Accelerator to own, such as h100-sxm."),
    A("gpus", whole(), "How many.", example=64),
    A("utilisation", share(), "Share of the owned hours that are allocated, such as 70%.",
      field="utilisation_fraction", old=("utilization",), example="70%"),
    A("years", plain(0.01, 100), "Length of the comparison.", usual="4", example=4),
    A("months", whole(1, 1200), "The same in months.", example=48),
    A("rent", k.RENTS, "Rental price per GPU-hour, or quotes: acme=2.46/h, 12 months, take-or-pay, or a .csv or .xlsx "
      "of them; may be repeated.", usual="the market's", old=("quote",), example=2.35),
    PROVIDER._replace(help="Take the rental price of this provider from the catalog."),
    REGION._replace(help="The provider's region."),
    OPTION._replace(help="The provider's purchase option: on_demand, reserved, spot …"),
    A("rent_path", one_of("flat", "decline", "observed_v", "curve"), "How the rental price moves.", usual="flat",
      example="decline"),
    A("rent_curve", k.FILE, "CSV of rental prices: month, usd_per_gpu_hour.", example="curve.csv"),
    WACC,
    A("tax", share(), "Income tax; cash flows are then after tax.", field="tax_rate_fraction", old=("tax_rate",),
      example="25%"),
    A("tax_regime", one_of("de", "ie", "sg", "uk", "us"), "Tax law of a country: rate, depreciation, limits on losses, "
      "tax on purchases; cash flows are then after tax.", example="us"),
    A("site", name("SITE", "sites"), "Colocation, sales and property tax of a region, such as us_virginia, germany.",
      example="us_virginia"),
    A("use_path", name("PATH"), "How use moves against the utilisation: ramp 20% over 6 months; from month 25: 120%; "
      "seasons and 12 shares; or a CSV of month and use.", example="ramp 20% over 6 months"),
    A("refresh_gpu", name("GPU", "accelerators"), "Newer chip at a replacement (refresh_month), with its speed.",
      example="b200"),
    A("profile", one_of("desk", "lab", "colocation", "own"), "Where it stands and who runs it.",
      usual="by the number and form of the GPUs", example="colocation"),
    A("financing", one_of("cash", "loan", "lease", "operating_lease"), "How the purchase is paid.", usual="cash",
      example="loan"),
    LEAD,
    A("electricity_region", name("REGION", "electricity"), "Tariff of a region in the energy table, such as us_texas.",
      old=("electricity",), example="us_texas"),
    A("grid_region", name("REGION", "grid_carbon"), "Carbon of a grid in the energy table, such as france.",
      old=("grid",), example="france"),
    MODEL._replace(help="Model of the workload that sets utilisation and cost per token.", required=False),
    TOKENS._replace(help="Tokens of one training run.", required=False),
    MFU._replace(help="Your own training speed as MFU over the steps, such as 35%.", field=""),
    OWN_TOKENS._replace(help="Your own speed: tokens per second on each accelerator; for serving, prompt and reply."),
    STEP_TIME._replace(help="Your own seconds of a training step on the gpus.", field=""),
    A("runs_per_year", plain(0, 1e6), "Training runs a year.", usual="1", example=4),
    A("tokens_per_month", count(1e18, metavar="TOKENS"), "Tokens to serve a month, prompt and reply together.",
      example="5b"),
    A("prompt_tokens", count(LARGEST_SEQUENCE, 1, metavar="TOKENS"), "Prompt of a request, for a serving load.",
      old=("prompt",), example=1000),
    A("output_tokens", count(LARGEST_SEQUENCE, 1, metavar="TOKENS"), "Reply of a request, for a serving load.",
      example=250),
    A("api_price", k.USD, "Price of a hosted API per million tokens, for the same tokens.", field="api_usd_per_mtok",
      old=("api",), example=0.9),
    A("currency", name("CODE", "currencies"), "Show the result in this currency as well.", example="EUR"),
    PLAN,
    SET,
    A("draws", whole(0), "Monte Carlo draws; 0 leaves it out.", usual="1000", example=1000),
    A("seed", whole(0, 2**32 - 1), "Seed of the draws.", usual="1", example=1),
    *DATES,
)  # fmt: skip
MIX = (
    A("demand", k.DEMAND, "CSV with the columns month and gpus; in the library also GPUs by month.",
      example="demand.csv", place=True),
    A("constant", plain(0, 1e6, "GPUS"), "Instead of a file: this many GPUs in every month.", example=64),
    A("growth", share(100.0, -0.999), "Yearly growth of the constant, such as 20%.", usual="0%", example="20%"),
    A("months", whole(1, 120), "Length, with constant.", 36),
    ONE_GPU,
    RENT._replace(help="On-demand price per GPU-hour."),
    PROVIDER._replace(help="Take prices and terms of this provider from the catalog."),
    A("budget", plain(0, 1e15, "USD"), "Most capital to spend on owned servers.", field="budget_usd",
      old=("budget_usd",), example=2_000_000),
    A("max_owned", plain(0, 1e9, "GPUS"), "Most GPUs to own.", field="max_owned_gpus", old=("max_owned_gpus",),
      example=64),
    A("max_on_demand", plain(0, 1e9, "GPUS"), "Most GPUs that on demand can give.", example=32),
    A("spot_share", share(), "Share of each month's demand that spot may carry.", usual="30%", example="30%"),
    A("own", k.FLAG, "Whether owning is allowed; without it everything is rented.", usual="yes", example=True),
    A("life_months", whole(1, 1200), "Life of owned servers.", usual="60", example=60),
    LEAD._replace(help="From order to use, such as 36w."),
    WACC,
    A("gap", share(), "Stop once no mix can be cheaper by more than this.", usual="0.01%", example="1%"),
    A("time_limit", plain(0.001, 86_400, "SECONDS"), "Stop by the clock too; a busy machine then finds another mix.",
      field="time_limit_s", example=60),
    PLAN._replace(help="TOML file with any input by name, and [[supply]] entries; elsewhere also a table."),
    SET,
    *DATES,
)  # fmt: skip
DEGREES = (
    A("tensor", whole(), "Tensor-parallel degree.", column=True),
    A("pipeline", whole(), "Pipeline stages.", column=True),
    A("context", whole(), "Context-parallel degree.", column=True),
    A("expert", whole(), "Expert-parallel degree.", column=True),
)
SHARDING = A("sharding", whole(0, 3), "0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP).", column=True)
MICRO = A("micro_batch", whole(), "Sequences per GPU and micro-step.", column=True)
ONE_SYSTEM = A("system", k.SYSTEM, "Node and network.", usual="the usual one of the accelerator")
FLASH = A("flash", k.FLAG, "Fused attention, or the scores in memory.", True)
TRAINED_MODEL = MODEL._replace(
    kind=k.BUILT_MODEL, help="Preset, alias, size such as 11b, or a config.json.", column=True
)
LAYOUT = (
    A("gpus", whole(), "How many.", 1, column=True),
    ONE_SYSTEM,
    *DEGREES,
    A("data", whole(), "Data-parallel degree.", usual="what the others leave", column=True),
    A("virtual_stages", whole(), "Model chunks per pipeline stage.", column=True),
    SHARDING,
    MICRO,
    BATCH._replace(column=True),
    SEQUENCE._replace(column=True, field=""),
    DOCUMENTS, OFFLOAD,
    A("recompute", one_of(*RECOMPUTES), "Activations to recompute.", column=True),
    PRECISION._replace(column=True),
    METHOD, RANK, TRAINING_STACK,
    SOFTWARE_YEAR,
    FLASH,
)  # fmt: skip
LINKS = A("links", one_of("own", "pcie"), "What joins the GPUs of a node: their own links, or PCIe alone.", "own")
THROUGHPUT = (TRAINED_MODEL, ONE_GPU._replace(required=True, column=True), *LAYOUT, LINKS, *OWN_SPEED, *DATES)
ROOFLINE = (
    ONE_GPU._replace(required=True),
    A("matmul", name("MxNxK"), "A matrix product."),
    A("attention", name("TOKENSxHEADSxDIM"), "Causal attention over one sequence; naive with --no-flash."),
    A("norm", name("TOKENSxWIDTH"), "A norm over each token."),
    A("gelu", name("TOKENSxWIDTH"), "An activation such as GELU over every value."),
    A("copy", k.BYTES, "An element-wise pass over so many bytes, such as 2GiB.", example="2GiB"),
    A("all_reduce", k.BYTES, "An all-reduce over the gpus, such as of 16gb.", example="16gb"),
    TRAINED_MODEL._replace(help="A whole training step of this model.", required=False, column=False),
    *(argument._replace(column=False) for argument in LAYOUT),
    *DATES,
)
FIT_TRAINING = (
    A("gpus", whole(), "How many; else the fewest that fit."),
    ONE_SYSTEM,
    METHOD,
    A("optimizer", one_of(*OPTIMIZERS), "Optimizer and the precision of its states.", "adamw"),
    SEQUENCE._replace(usual="the model's, at most 4,096", field=""),
    MICRO._replace(usual="1", column=False),
    A("recompute", one_of("auto", *RECOMPUTES), "Activations to recompute; auto: the least that fits.", "auto"),
    A("loss_chunk", whole(1, LARGEST_SEQUENCE, "TOKENS"), "Tokens whose logits exist at a time.", usual="all"),
    OFFLOAD, RANK,
    *(argument._replace(column=False, usual="searched") for argument in (*DEGREES, SHARDING)),
    A("style", one_of(*STYLES), "How the stack keeps activations.", usual="fused; library for adapters",
      old=("software",)),
    FLASH,
)  # fmt: skip
FIT_SERVING = (PROMPT, OUTPUT, TTFT, TPOT, FORMAT, CACHE, ENGINE)
FIT = (
    TRAINED_MODEL._replace(column=False),
    ONE_GPU._replace(help="One accelerator, such as h100-sxm; all of them else."),
    *FIT_TRAINING,
    A("serving", k.FLAG, "Serve the model instead of training it.", False),
    *(argument._replace(help=f"Serving: {argument.help[0].lower()}{argument.help[1:]}") for argument in FIT_SERVING),
    *DATES,
)

SAVED_SIDE = A("side", one_of("own", "rent"), "Which side of a saved tco.", usual="the cheaper", example="own")
SAVED_RANK = A("rank", whole(), "Which option of a saved answer.", 1)
PLAN_START = A("start", k.DATE, "Day on which the plan starts.", usual="the invoice's first", example="2026-11-01")

# What the list commands take. Those that open the catalog take its days as well.
NAMED = A("name", k.GPU, "", place=True)
LISTS = {
    "prices": (*FILTERS, A("limit", whole(), "Show only the cheapest N."), *DATES),
    "prices history": (*FILTERS, A("plot", k.FLAG, "Draw lines and events; a page with -o FILE.html.", False), *DATES),
    **dict.fromkeys(("prices stale", "prices watch", "prices report", "prices decline"), (*FILTERS, *DATES)),
    "prices coverage": (A("machines", k.FLAG, "By machine: its newest price.", False), *FILTERS, *DATES),
    "prices risk": (A("above", share(), "Count days above this share of on demand.", usual="50%"), *FILTERS, *DATES),
    "prices diff": (
        A("first", k.DATE, "", required=True, place=True),
        A("second", k.DATE, "", required=True, place=True),
        A("all", k.FLAG, "Also the prices that did not change.", False),
        *FILTERS,
        KNOWN,
    ),
    "gpus": (
        NAMED,
        GPU._replace(help="GPU or family, such as h100; the same as NAME."),
        A("vendor", name(names="vendors"), "Only this vendor's."),
        A("generations", k.FLAG, "A row per generation, with its ratios to the one before.", False),
        *DATES,
    ),
    "systems": (
        NAMED._replace(kind=k.SYSTEM),
        GPU._replace(help="Only systems with this GPU or family."),
        PROVIDER._replace(help="Only this provider's instances."),
        *DATES,
    ),
    "models": (
        NAMED._replace(kind=k.MODEL),
        A("family", name(names="families"), "Only this family, such as 'Llama 3.1'."),
        A("context", whole(1, 1_000_000_000, "TOKENS"), "Tokens of the sequence whose cache is counted.", 8192),
        *DATES,
    ),
    "sources": (
        A("source_id", name(names="sources"), "", place=True),
        A("table", name(names="tables"), "Only the sources of one table, such as offers."),
        *DATES,
    ),
    "sql": (
        A("query", name("QUERY"), "", place=True),
        A("file", k.FILE, "Read the query from FILE."),
        A("question", name(names="questions"), "Ask a ready-made question; `--question list` names them."),
        A("time_limit", name("SECONDS"), "When the query is stopped: 20 unless told, at most 3600."),
        *DATES,
    ),
    "export": (
        A("saved", k.FILE, "", required=True, place=True),
        A("focus", k.FLAG, "As FOCUS rows, the form of invoices.", False),
        PLAN_START._replace(usual="the day of its prices"),
        SAVED_RANK,
        SAVED_SIDE,
        A("tag", k.TABLE, "Tag of every row, such as team=research; may be repeated."),
    ),
    "report": (
        A("source", name("SCENARIO.toml|ANSWER.json"), "", required=True, place=True),
        A("status", one_of("draft", "approved"), "Stamp the report with its status and its SHA-256.", usual="no stamp"),
        A("by", k.name(), "Who stands behind it."),
        A("date", k.DATE, "Since when.", usual="today"),
        A("share_safe", k.FLAG, "Ask anew without one's own price book, quotes, prices, pools and files.", False),
        A("template", k.FILE, "Fill the named cells of this .xlsx; -o names the copy that is written."),
    ),
    "init": (
        A("path", k.FILE, "", place=True),
        A("skill", k.FLAG, "Write a SKILL.md that tells an agent how to ask instead.", False),
        A("force", k.FLAG, "Replace an existing file.", False),
    ),
    "schema": (A("what", name(names="schemas"), "", "scenario", place=True),),
    "rerun": (
        A("path", k.FILE, "", required=True, place=True),
        A("explain", k.FLAG, "Say whether the figures are equal, and why not, instead of writing the answer.", False),
    ),
}
