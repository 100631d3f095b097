"""One definition per table. Validation, the column dictionary of the docs and the DuckDB table are made from it.

The definitions are plain tuples, so that reading them costs nothing; the pydantic model of a table, which
judges data that is not trusted, is built on first use by `row_model`.
"""

from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pydantic import BaseModel

SCHEMA_VERSION = "1"  # of every JSON answer: a key that changes its meaning raises it

Kind = Literal["text", "integer", "number", "date", "flag"]

DUCKDB_TYPES: dict[str, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "flag": "BOOLEAN",
}


class Column(NamedTuple):
    """One column: its kind, what it means, and what a cell may hold. The unit is the name's suffix."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    low: float | None = None  # smallest value allowed
    high: float | None = None  # largest value allowed
    positive: bool = False  # zero is refused: a missing number is an empty cell
    choices: tuple[str, ...] = ()
    refers_to: str = ""  # table whose key this column holds


class Table(NamedTuple):
    """One table: where its CSV files are (a glob below the data root), its columns and its key."""

    name: str
    files: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)


def text(
    name: str, description: str, *, required: bool = False, choices: tuple[str, ...] = (), refers_to: str = ""
) -> Column:
    """Define a text column."""
    return Column(name, "text", description, required, choices=choices, refers_to=refers_to)


def number(
    name: str,
    description: str,
    *,
    required: bool = False,
    low: float | None = None,
    high: float | None = None,
    positive: bool = False,
) -> Column:
    """Define a floating-point column."""
    return Column(name, "number", description, required, low, high, positive)


def integer(
    name: str,
    description: str,
    *,
    required: bool = False,
    low: float | None = 0,
    high: float | None = None,
    positive: bool = False,
) -> Column:
    """Define an integer column; zero or more unless told otherwise."""
    return Column(name, "integer", description, required, low, high, positive)


def date(name: str, description: str, *, required: bool = False) -> Column:
    """Define a date column (YYYY-MM-DD)."""
    return Column(name, "date", description, required)


def flag(name: str, description: str, *, required: bool = False) -> Column:
    """Define a true/false column (1 or 0)."""
    return Column(name, "flag", description, required)


CONFIDENCES = ("high", "medium", "low")
STATUSES = ("given", "sourced", "assumed", "derived", "user")
OPTIONS = (
    "on_demand", "spot", "interruptible", "reserved", "savings_plan", "commitment", "capacity_block",
    "flex_start", "calendar", "community", "secure", "dedicated",
)  # fmt: skip

_PROVENANCE = (
    text("source_id", "key into sources.csv of the same folder", required=True, refers_to="sources"),
    text("confidence", "how well the row was checked", required=True, choices=CONFIDENCES),
    text("notes", "what a reader must know"),
)

_SOURCE_COLUMNS = (
    text("source_id", "key", required=True),
    text("publisher", "who published it", required=True),
    text("title", "what it is", required=True),
    text("locator", "where to find it: an address, a paper, a repository with path and commit", required=True),
    date("published_on", "date of publication, where known"),
    date("accessed_on", "date on which it was read"),
    text("note", "what a reader must know"),
)

_RANGE = (
    text("item", "stable name", required=True),
    number("low", "low end of the range"),
    number("typical", "typical value", required=True),
    number("high", "high end of the range"),
    text("unit", "unit of the three values", required=True),
)

_LISTING = (
    text("provider", "who sells it", required=True),
    text("listed_as", "name under which the source lists it", required=True),
    text("gpu", "accelerator id, or several separated by | where the source is ambiguous", required=True),
    integer("gpus", "accelerators in one unit", required=True, positive=True),
    text("region", "region as the source names it", required=True),
    text("option", "purchase option as the source names it", required=True),
    number("usd_per_hour", "price of one unit for an hour", required=True, positive=True),
    number("usd_per_gpu_hour", "price ÷ gpus", required=True, positive=True),
    date("valid_from", "the price holds from this day, where stated"),
)

ACCELERATORS = Table(
    "accelerators",
    "models/accelerators.csv",
    "Accelerators: dense peaks, usable memory, links per GPU and direction, power, prices.",
    (
        text("id", "canonical name", required=True),
        text("vendor", "who makes it", required=True),
        text("name", "full name", required=True),
        text("architecture", "micro-architecture and die", required=True),
        text("family", "family that calibration falls back to: kepler, pascal, volta, turing, ampere, ada, hopper, blackwell, rubin, cdna2, cdna3, cdna4, cdna5, rdna3, xe, gaudi, tpu, trainium, apple", required=True),
        text("form_factor", "SXM5, PCIe, OAM …", required=True),
        integer("year", "year of launch", required=True, low=2010),
        number("memory_gib", "memory that the device reports as usable", required=True, positive=True),
        number("memory_marketed_gb", "memory as the vendor writes it", required=True, positive=True),
        text("memory_type", "HBM3, GDDR6 …", required=True),
        number("hbm_gb_per_s", "bandwidth of the device memory", required=True, positive=True),
        number("l2_mb", "last-level cache", positive=True),
        integer("multiprocessors", "streaming multiprocessors or compute units", positive=True),
        number("fp64_tflops", "dense peak", positive=True),
        number("fp64_tensor_tflops", "dense peak", positive=True),
        number("fp32_tflops", "dense peak outside the matrix units", positive=True),
        number("tf32_tflops", "dense peak", positive=True),
        number("bf16_tflops", "dense peak", positive=True),
        number("fp16_tflops", "dense peak, FP32 accumulate", positive=True),
        number("fp8_tflops", "dense peak", positive=True),
        number("int8_tflops", "dense peak, in tera-operations", positive=True),
        number("fp6_tflops", "dense peak", positive=True),
        number("fp4_tflops", "dense peak", positive=True),
        number("sparse_ratio", "marketed sparse peak ÷ dense peak of the lowest common precision", required=True, low=1),
        text("scaleup_link", "NVLink, Infinity Fabric, ICI … or none", required=True),
        number("scaleup_gb_per_s", "scale-up bandwidth per GPU, one direction; 0 where there is none", required=True, low=0),
        integer("scaleup_gpus", "GPUs in the scale-up domain", required=True, positive=True),
        integer("pcie_generation", "PCI Express generation", positive=True),
        number("pcie_gb_per_s", "host link, one direction", positive=True),
        number("tdp_w", "board power limit", positive=True),
        integer("mig_slices", "largest number of MIG instances"),
        flag("ecc", "memory with error correction"),
        number("street_low_usd", "low street price", positive=True),
        number("street_high_usd", "high street price", positive=True),
        text("street_observed", "when the street price was seen (a year, a month or a span)"),
        text("street_source", "where the street price was seen, or estimate"),
        number("launch_usd", "list price at launch", positive=True),
        text("launch_source", "where the launch price stands"),
        text("second_source_id", "a second public source that the row was held against", refers_to="sources"),
        *_PROVENANCE,
    ),
    ("id",),
)  # fmt: skip

SYSTEMS = Table(
    "systems",
    "models/systems.csv",
    "Nodes, instances and racks: accelerators, links inside and between them, power, price.",
    (
        text("id", "canonical name", required=True),
        text("kind", "what it is", required=True, choices=("node", "baseboard", "rack", "cloud")),
        text("name", "full name", required=True),
        text("provider", "who rents it, for cloud instances"),
        text("instance_type", "the provider's name of it"),
        text("accelerator_id", "accelerator", required=True, refers_to="accelerators"),
        integer("gpus", "accelerators in one node", required=True, positive=True),
        number("scaleup_gb_per_s", "scale-up bandwidth per GPU, one direction; 0 where GPUs meet over PCIe only", required=True, low=0),
        integer("scaleup_gpus", "GPUs in the scale-up domain, which may span nodes", required=True, positive=True),
        number("scaleout_gb_per_s", "scale-out bandwidth per GPU, one direction; empty where no network is named", positive=True),
        text("fabric", "the scale-out network in words"),
        number("max_power_kw", "rated maximum of the node", positive=True),
        number("rack_units", "height", positive=True),
        number("price_low_usd", "low price of the node", positive=True),
        number("price_high_usd", "high price of the node", positive=True),
        text("price_observed", "when the price was seen"),
        text("price_source", "where the price was seen"),
        text("second_source_id", "a second public source that the row was held against", refers_to="sources"),
        *_PROVENANCE,
    ),
    ("id",),
)  # fmt: skip

LLMS = Table(
    "llms",
    "models/llms.csv",
    "Model architectures, with published parameter counts to hold the recount against.",
    (
        text("id", "canonical name", required=True),
        text("family", "model family", required=True),
        integer("layers", "transformer layers", required=True, positive=True),
        integer("hidden", "width of the residual stream", required=True, positive=True),
        integer("heads", "query heads", required=True, positive=True),
        integer("kv_heads", "key and value heads", required=True, positive=True),
        integer("head_dim", "dimension of a head", required=True, positive=True),
        integer("ffn_hidden", "feed-forward width of dense layers; 0 where every layer is a mixture of experts", required=True),
        flag("gated", "gated feed-forward (three matrices)", required=True),
        integer("vocab", "vocabulary", required=True, positive=True),
        flag("tied_embeddings", "input and output embeddings share their weights", required=True),
        integer("max_sequence_tokens", "longest sequence", required=True),
        integer("experts", "routed experts per layer", required=True),
        integer("experts_per_token", "routed experts that a token visits", required=True),
        integer("shared_experts", "experts that every token visits", required=True),
        integer("expert_ffn_hidden", "width of a routed expert", required=True),
        integer("shared_ffn_hidden", "width of a shared expert", required=True),
        integer("first_dense_layers", "dense layers before the first mixture of experts", required=True),
        integer("moe_layer_step", "a mixture of experts every n-th layer", required=True, positive=True),
        text("attention", "kind of attention", required=True, choices=("mha", "gqa", "mqa", "mla")),
        integer("q_lora_rank", "latent rank of queries (MLA)", required=True),
        integer("kv_lora_rank", "latent rank of keys and values (MLA)", required=True),
        integer("qk_nope_dim", "head dimension without rotation (MLA)", required=True),
        integer("qk_rope_dim", "head dimension with rotation (MLA)", required=True),
        integer("v_head_dim", "value head dimension (MLA)", required=True),
        integer("window_tokens", "sliding window; 0 is full attention", required=True),
        integer("window_layers", "layers that attend within the window only", required=True),
        integer("linear_layers", "layers with linear attention or a state-space mixer", required=True),
        text("norm", "normalisation: rms, ln, ln_w (weight only), ln_np (no parameters)", required=True, choices=("rms", "ln", "ln_w", "ln_np")),
        flag("qkv_bias", "biases in the attention projections (and everywhere, for older styles)", required=True),
        integer("mtp_layers", "multi-token prediction layers", required=True),
        integer("position_parameters", "learned position embeddings and similar", required=True),
        integer("extra_parameters", "parameters known from the weights that no dimension explains", required=True, low=None),
        integer("published_parameters", "total parameters that the publisher states", positive=True),
        integer("published_active_parameters", "active parameters that the publisher states", positive=True),
        integer("weights_parameters", "parameters counted in the published weight files", positive=True),
        integer("training_tokens", "tokens of the published training run", positive=True),
        *_PROVENANCE,
    ),
    ("id",),
)  # fmt: skip

ALIASES = Table(
    "aliases",
    "models/aliases.csv",
    "Other names of accelerators, systems and models.",
    (
        text("kind", "what is named", required=True, choices=("accelerator", "system", "model", "provider", "region")),
        text("alias", "the other name, in lower case", required=True),
        text("id", "canonical name", required=True),
        text("notes", "what a reader must know"),
    ),
    ("kind", "alias"),
)

MODEL_SOURCES = Table(
    "model_sources", "models/sources.csv", "Where the physical facts come from.", _SOURCE_COLUMNS, ("source_id",)
)
PRICE_SOURCES = Table(
    "price_sources", "pricing/sources.csv", "Where the money facts come from.", _SOURCE_COLUMNS, ("source_id",)
)

OFFERS = Table(
    "offers",
    "pricing/offers/*.csv",
    "Dated prices that can be ordered: who, what, where, on which terms. Append only; a correction is a new row.",
    (
        text("offer_id", "canonical id: provider, product, gpu, gpus, region, option, tier, term, payment", required=True),
        text("offer_kind", "only an offer can be ordered and ranked", required=True, choices=("offer", "floor", "average", "mixed")),
        text("provider", "who sells it", required=True),
        text("instance_type", "product name", required=True),
        text("listed_as", "name under which the source lists it, where that differs"),
        text("gpu", "accelerator id, or several separated by | where the source is ambiguous", required=True),
        flag("gpu_assumed", "the form factor or variant is assumed, not stated", required=True),
        integer("gpus", "accelerators in one unit of the offer", required=True, positive=True),
        text("system_id", "node that the offer is, where known", refers_to="systems"),
        text("region", "provider's region, or empty where the scope is not a region"),
        text("region_scope", "what the price covers", required=True, choices=("region", "country", "continent", "global", "any", "unknown")),
        text("option", "purchase option", required=True, choices=OPTIONS),
        text("tier", "the provider's tier, such as secure or community"),
        text("billing", "per use, or take-or-pay", required=True, choices=("per_use", "take_or_pay")),
        integer("term_months", "length of the commitment; 0 for none", required=True),
        text("payment", "how a commitment is paid", required=True, choices=("none", "no_upfront", "partial_upfront", "all_upfront", "monthly", "unknown")),
        number("upfront_usd", "paid at the start, for one unit", low=0),
        number("usd_per_hour", "effective price of one unit for an hour", required=True, positive=True, high=100000),
        number("usd_per_gpu_hour", "effective price ÷ gpus", required=True, positive=True, high=2000),
        number("recurring_usd_per_hour", "part of the price that is paid by the hour", low=0),
        number("minimum_hours", "shortest purchase", low=0),
        number("billing_increment_hours", "purchases are rounded up to this", low=0),
        integer("minimum_units", "smallest order in units", positive=True),
        integer("maximum_units", "largest order in units", positive=True),
        number("vcpus", "virtual processors of one unit", positive=True),
        number("memory_gib", "host memory of one unit", positive=True),
        number("local_nvme_gb", "local disk of one unit", low=0),
        number("network_gbit_per_s", "network of one unit", positive=True),
        text("interconnect", "how units reach each other, where the node is known"),
        text("availability", "what is known of the capacity"),
        date("valid_from", "the price holds from this day, where stated"),
        date("observed_on", "when the price was seen", required=True),
        date("recorded_on", "when it was learned; the observation's date for shipped facts", required=True),
        text("date_precision", "how exact the dates are", required=True, choices=("day", "approximate")),
        *_PROVENANCE,
    ),
    ("offer_id", "valid_from", "observed_on", "recorded_on", "source_id"),
)  # fmt: skip

PLAN_INPUTS = Table(
    "plan_inputs",
    "pricing/plan_inputs.csv",
    "Inputs of a comparison between owning and renting: every name that a plan file may set.",
    (
        text("name", "name in a plan file", required=True),
        text("group", "subject", required=True),
        text("description", "what it is", required=True),
        text("unit", "unit; empty for counts and choices"),
        text("item", "row of ownership.csv or energy.csv that gives low, typical and high"),
        text("value", "default where no item gives one: an assumption"),
        number("low", "low end of an assumption"),
        number("high", "high end of an assumption"),
        text("choices", "allowed words, separated by |"),
        number("minimum", "smallest value allowed"),
        number("maximum", "largest value allowed"),
        text("counts_when", "input=value under which it counts; alternatives of one input exclude each other"),
    ),
    ("name",),
)

OWNERSHIP = Table(
    "ownership",
    "pricing/ownership.csv",
    "What owning costs: inputs of the cash-flow plan, each with a range. Items of one exclusive group are alternatives.",
    (
        *_RANGE,
        text("exclusive_group", "alternatives of which one counts, such as network_capex; empty for none"),
        text("observed", "year, quarter or span that the values are from", required=True),
        *_PROVENANCE,
    ),
    ("item",),
)

OWNERSHIP_METHODS = Table(
    "ownership_methods",
    "pricing/ownership_methods.csv",
    "Published ways to compute the cost of ownership: formulas to compare with, not inputs.",
    (
        text("method", "name", required=True),
        text("formula", "the formula in words", required=True),
        text("observed", "year of publication", required=True),
        *_PROVENANCE,
    ),
    ("method",),
)

ENERGY = Table(
    "energy",
    "pricing/energy.csv",
    "Electricity tariffs and carbon intensity of grids.",
    (
        *_RANGE,
        text("kind", "tariff or carbon", required=True, choices=("electricity", "grid_carbon")),
        text("grid_region", "grid that the values hold for", required=True),
        text("observed", "year or month that the values are from", required=True),
        *_PROVENANCE,
    ),
    ("item",),
)

CLOUD_REGIONS = Table(
    "cloud_regions",
    "pricing/cloud_regions.csv",
    "Where a provider's region lies, and the rows of the energy table that hold there.",
    (
        text("provider", "provider, or any for names that several use", required=True),
        text("region", "region as offers name it", required=True),
        text("country", "ISO 3166 code; empty where the region spans countries"),
        text("electricity_item", "tariff in the energy table", refers_to="energy"),
        text("carbon_item", "carbon intensity in the energy table", required=True, refers_to="energy"),
        text("mapping", "how close the match is", required=True, choices=("grid", "country", "continent", "world")),
    ),
    ("provider", "region"),
)

MARKET_STATISTICS = Table(
    "market_statistics",
    "pricing/market_statistics.csv",
    "Medians, means and minima of markets: nobody can order them, and they are never ranked.",
    (
        text(
            "statistic", "what was computed", required=True, choices=("median", "mean over sizes", "minimum", "average")
        ),
        *_LISTING,
        date("observed_on", "when it was seen", required=True),
        *_PROVENANCE,
    ),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "observed_on", "usd_per_hour"),
)

UNDATED = Table(
    "undated",
    "pricing/undated.csv",
    "Prices without a day of observation: kept apart, never the latest.",
    (*_LISTING, *_PROVENANCE),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "usd_per_hour"),
)

COMPONENTS = Table(
    "components",
    "pricing/components.csv",
    "Prices of the GPU part of a machine, without its processors and memory: not an offer.",
    (*_LISTING, date("observed_on", "when it was seen", required=True), *_PROVENANCE),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "observed_on"),
)

QUARANTINE = Table(
    "quarantine",
    "pricing/quarantine.csv",
    "Prices that were refused, each with the reason.",
    (
        *_LISTING,
        date("observed_on", "when it was seen", required=True),
        text("reason", "why it was refused", required=True),
        *_PROVENANCE,
    ),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "observed_on", "usd_per_hour"),
)

DECISIONS = Table(
    "decisions",
    "pricing/decisions.csv",
    "What was decided on each collected price that a rule found suspicious or not orderable.",
    (
        integer(
            "line", "number of the price in the collection that the tables were made from", required=True, positive=True
        ),
        text("rule", "rule; O is our own", required=True),
        text("rule_text", "what the rule looks for"),
        text("proposed_action", "what the rule proposes", required=True),
        text("decision", "what was done", required=True),
        text("reason", "why", required=True),
        text(
            "destination",
            "table that holds the price now",
            required=True,
            choices=("offers", "market_statistics", "undated", "components", "quarantine"),
        ),
        text("provider", "who sells it", required=True),
        text("listed_as", "name under which the source lists it", required=True),
        text("option", "purchase option as the source names it", required=True),
        text("region", "region as the source names it"),
        number("usd_per_hour", "price of one unit for an hour", required=True, positive=True),
        date("observed_on", "when it was seen"),
    ),
    ("line", "rule"),
)

PROVIDERS = Table(
    "providers",
    "pricing/providers.csv",
    "Who rents accelerators, and how they bill.",
    (
        text("provider", "name used in offers", required=True),
        text("name", "full name", required=True),
        text("kind", "what it is", required=True, choices=("hyperscaler", "cloud", "marketplace", "serverless")),
        number("billing_increment_hours", "purchases are rounded up to this", positive=True),
        text("source_id", "key into sources.csv of the same folder", refers_to="sources"),
        text("notes", "what a reader must know"),
    ),
    ("provider",),
)

DISCOUNTS = Table(
    "discounts",
    "pricing/commitments/*.csv",
    "What a commitment or an interruptible option saves against on demand, and dated price changes.",
    (
        text("provider", "who sells it", required=True),
        text("product", "instance or offer that it holds for; empty where the publisher names none"),
        text("option", "purchase option", required=True, choices=(*OPTIONS, "price_cut", "price_rise")),
        integer("term_months", "length of the commitment; 0 for none, empty where not stated"),
        text(
            "payment", "how a commitment is paid", required=True, choices=("none", "no_upfront", "monthly", "unknown")
        ),
        number(
            "discount_fraction",
            "saving against on demand; of a price cut or rise, the change of the price",
            required=True,
            low=0,
            high=1,
        ),
        text(
            "kind", "how the figure came about", required=True, choices=("computed", "published", "published_maximum")
        ),
        text("region", "region that it was computed for"),
        date("observed_on", "when it was seen; empty where the source has no date"),
        *_PROVENANCE,
    ),
    ("provider", "product", "option", "term_months"),
)

SPOT = Table(
    "spot",
    "pricing/spot.csv",
    "How often interruptible capacity is lost: buckets that AWS publishes, and measured traces.",
    (
        text("provider", "who sells it", required=True),
        text("instance_type", "product", required=True),
        text("gpu", "accelerator", required=True, refers_to="accelerators"),
        integer("gpus", "accelerators in one instance", required=True, positive=True),
        text("region", "region", required=True),
        text("zone", "availability zone, for traces"),
        text(
            "kind",
            "published bucket of the trailing month, probes of availability, or trace of a held instance",
            required=True,
            choices=("bucket", "probe", "trace"),
        ),
        number(
            "monthly_interruption_low_fraction",
            "share of instances interrupted in a month, low end of the bucket",
            low=0,
            high=1,
        ),
        number("monthly_interruption_high_fraction", "high end of the bucket; empty where it is open", low=0, high=1),
        number("interruptions_per_instance_hour_low", "-ln(1 - share) / 730, or the measured rate", low=0),
        number("interruptions_per_instance_hour", "measured rate; empty for buckets", low=0),
        number("interruptions_per_instance_hour_high", "empty where the bucket is open", low=0),
        number("availability_fraction", "share of probes that found capacity", low=0, high=1),
        number("span_days", "length of the trace", positive=True),
        number("probe_interval_s", "time between probes", positive=True),
        number("savings_fraction", "saving over on demand that the publisher states", low=0, high=1),
        date("observed_on", "when it was seen, or when the trace began", required=True),
        *_PROVENANCE,
    ),
    ("provider", "instance_type", "region", "zone", "kind", "observed_on"),
)

SERVICES = Table(
    "services",
    "pricing/services.csv",
    "What stands beside accelerators: storage and traffic, per gigabyte of 1e9 bytes.",
    (
        text("provider", "who sells it", required=True),
        text(
            "service",
            "what it is",
            required=True,
            choices=(
                "object_storage",
                "archive_storage",
                "block_storage",
                "local_disk",
                "shared_file_system",
                "snapshot",
                "egress_internet",
                "egress_region",
                "egress_zone",
            ),
        ),
        text("name", "the provider's name of it", required=True),
        text("region", "region; empty where it holds everywhere"),
        number("usd_per_gb_month", "storage", low=0),
        number("usd_per_gb", "traffic", low=0),
        number("from_gb", "the tier begins at this monthly volume", low=0),
        flag("typical", "the row that an estimate uses for this provider and service", required=True),
        date("observed_on", "when it was seen; empty where the source has no date"),
        text("date_precision", "how exact the date is", required=True, choices=("day", "year", "undated")),
        *_PROVENANCE,
    ),
    ("provider", "service", "name", "region", "observed_on", "source_id"),
)

HOSTED_TOKENS = Table(
    "hosted_tokens",
    "pricing/hosted_tokens.csv",
    "Prices of hosted models per million tokens.",
    (
        text("provider", "who hosts it", required=True),
        text("listing", "the provider's name of the model", required=True),
        text("model", "model as the source groups it", required=True),
        text("model_id", "architecture", refers_to="llms"),
        number("input_usd_per_mtok", "price of a million input tokens", required=True, positive=True),
        number("output_usd_per_mtok", "price of a million output tokens", required=True, positive=True),
        number("cached_input_usd_per_mtok", "price of a million cached input tokens", positive=True),
        flag("suspect", "the price looks wrong and is never ranked", required=True),
        date("valid_from", "the price holds from this day, where stated"),
        date("valid_until", "the price holds until this day, where stated"),
        date("observed_on", "when it was seen", required=True),
        text("date_precision", "how exact the date is", required=True, choices=("day", "month", "approximate")),
        *_PROVENANCE,
    ),
    ("provider", "listing", "observed_on"),
)

OWNERSHIP_ANCHORS = Table(
    "ownership_anchors",
    "pricing/ownership_anchors.csv",
    "Published results of other cost-of-ownership models, to hold ours against.",
    (
        text("gpu", "accelerator", required=True, refers_to="accelerators"),
        text(
            "measure",
            "what was published",
            required=True,
            choices=("owner_hyperscaler", "owner_neocloud", "rental_3_years", "all_in_power"),
        ),
        number("usd_per_gpu_hour", "cost per GPU-hour", positive=True),
        number("kw_per_gpu", "all-in power per GPU", positive=True),
        date("observed_on", "when it was seen", required=True),
        *_PROVENANCE,
    ),
    ("gpu", "measure", "observed_on"),
)

EXCHANGE_RATES = Table(
    "exchange_rates",
    "pricing/exchange_rates.csv",
    "Dated exchange rates; prices are kept in USD.",
    (
        text("currency", "ISO 4217 code", required=True),
        date("on", "day of the rate", required=True),
        number("usd_per_unit", "USD for one unit of the currency", required=True, positive=True),
        *_PROVENANCE,
    ),
    ("currency", "on"),
)

TRAINING_MEASUREMENTS = Table(
    "training_measurements",
    "models/measurements/training.csv",
    "Published and own measurements of training, as their sources state them: what ran, on what, and how fast.",
    (
        text("id", "key", required=True),
        text("source_name", "who measured", required=True),
        text("source_locator", "where the figure stands", required=True),
        text("as_of", "date of the figure, as exact as it is known", required=True),
        text("model", "model as the source names it", required=True),
        number("params_b", "parameters, in billions", positive=True),
        number("active_params_b", "parameters that a token meets, in billions", positive=True),
        integer("n_layers", "layers", positive=True),
        integer("hidden", "width of the residual stream", positive=True),
        integer("n_heads", "query heads", positive=True),
        integer("n_kv_heads", "key and value heads", positive=True),
        integer("ffn_hidden", "feed-forward width", positive=True),
        text("gated_mlp", "gated feed-forward: y or n", choices=("y", "n")),
        integer("vocab", "vocabulary", positive=True),
        integer("seq_len", "sequence in tokens", positive=True),
        text("gpu", "accelerator as the source names it", required=True),
        integer("n_gpus", "accelerators", positive=True),
        text("interconnect", "links and networks in words"),
        text("framework", "software in words"),
        text("precision", "precision of the matrix products in words", required=True),
        integer("tp", "tensor-parallel degree", positive=True),
        integer("pp", "pipeline stages", positive=True),
        integer("cp", "context-parallel degree", positive=True),
        integer("ep", "expert-parallel degree", positive=True),
        integer("dp", "data-parallel degree", positive=True),
        text("zero_stage", "sharding in words"),
        number("micro_batch", "sequences per accelerator and micro-step", positive=True),
        number("global_batch", "sequences per optimizer step", positive=True),
        text("activation_recompute", "none, selective or full, in words"),
        text("flash_attention", "fused attention: y or n"),
        number("measured_tokens_per_s_per_gpu", "measured speed", positive=True),
        number("measured_tflops_per_gpu", "stated TFLOP/s per accelerator, by the source's own convention", positive=True),
        number("measured_mfu_pct", "stated utilisation in percent, by the source's own convention", positive=True),
        number("measured_iter_time_s", "measured time of a step", positive=True),
        number("measured_total_gpu_hours", "accelerator-hours of the whole run", positive=True),
        number("total_tokens", "tokens of the whole run", positive=True),
        text("notes", "what a reader must know"),
        text("task", "pretrain, sft or lora", required=True, choices=("pretrain", "sft", "lora", "qlora")),
        integer("vp", "virtual pipeline stages", positive=True),
        integer("n_experts", "routed experts", positive=True),
        integer("moe_topk", "experts that a token visits", positive=True),
        integer("moe_ffn_hidden", "width of a routed expert", positive=True),
        text("value_basis", "which figure the source states", required=True),
        flag("recommended", "the source's figure is usable"),
        number("derived_tokens_per_s_per_gpu", "speed as the collectors derived it where none is stated", positive=True),
        text("sanity", "how the stated figures agree with each other"),
        text("optimizer", "optimizer"),
        number("state_bytes_per_param", "bytes of weights, gradients and optimizer states per parameter", positive=True),
        flag("compiled", "compiled by torch.compile or the like"),
        integer("loss_chunk_tokens", "tokens per chunk of the loss; empty where it is whole", positive=True),
        integer("lora_rank", "rank of the adapters", positive=True),
        text("lora_targets", "matrices with adapters, in words"),
        text("base_precision", "precision of the frozen weights, in words"),
        number("peak_memory_gb", "allocator's peak on the fullest accelerator, in 1e9 bytes", positive=True),
        flag("core", "row is well suited to calibration and validation", required=True),
        text("source_id", "key into sources.csv of the models folder", required=True, refers_to="model_sources"),
    ),
    ("id",),
)

CALIBRATION = Table(
    "calibration",
    "models/calibration.csv",
    "Efficiencies of training fitted to the measurements, with their priors, and the widths of the ranges.",
    (
        text("name", "parameter", required=True),
        text("kind", "a parameter of the step time, or a ratio by which a trait widens the range", required=True, choices=("parameter", "range")),
        number("value", "fitted value", required=True, positive=True),
        number("prior", "what was believed before the fit", positive=True),
        number("prior_spread_ratio", "standard deviation of the logarithm before the fit", low=0),
        text("unit", "unit of the value", required=True),
        text("meaning", "what it stands for", required=True),
        integer("rows_used", "measurements in the fit", required=True),
        text("source_id", "key into sources.csv of the models folder", required=True, refers_to="model_sources"),
    ),
    ("name",),
)  # fmt: skip

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        ACCELERATORS,
        SYSTEMS,
        LLMS,
        ALIASES,
        MODEL_SOURCES,
        PRICE_SOURCES,
        OFFERS,
        PLAN_INPUTS,
        OWNERSHIP,
        OWNERSHIP_METHODS,
        ENERGY,
        CLOUD_REGIONS,
        MARKET_STATISTICS,
        UNDATED,
        COMPONENTS,
        QUARANTINE,
        DECISIONS,
        PROVIDERS,
        DISCOUNTS,
        SPOT,
        SERVICES,
        HOSTED_TOKENS,
        OWNERSHIP_ANCHORS,
        EXCHANGE_RATES,
        TRAINING_MEASUREMENTS,
        CALIBRATION,
    )
}


@cache
def row_model(name: str) -> type["BaseModel"]:
    """Build the pydantic model that judges one row of the table called `name`."""
    from gpucost.catalog.validation import build_row_model

    return build_row_model(TABLES[name])
