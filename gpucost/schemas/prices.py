"""Tables of prices: offers, what was set apart from them, discounts, interruptions, services and hosted tokens."""

from gpucost.schemas.columns import (
    LISTING,
    OPTIONS,
    PROVENANCE,
    SOURCE_COLUMNS,
    Table,
    date,
    flag,
    integer,
    number,
    text,
)

PRICE_SOURCES = Table(
    "price_sources", "pricing/sources.csv", "Where the money facts come from.", SOURCE_COLUMNS, ("source_id",)
)

OFFERS = Table(
    "offers",
    "pricing/offers/*.csv",
    "Dated prices that can be ordered: who, what, where, on which terms. Append only; a correction is a new row.",
    (
        text(
            "offer_id", "canonical id: provider, product, gpu, gpus, region, option, tier, term, payment", required=True
        ),
        text(
            "offer_kind",
            "only an offer can be ordered and ranked",
            required=True,
            choices=("offer", "floor", "average", "mixed"),
        ),
        text("provider", "who sells it", required=True),
        text("instance_type", "product name", required=True),
        text("listed_as", "name under which the source lists it, where that differs"),
        text("gpu", "accelerator id, or several separated by | where the source is ambiguous", required=True),
        flag("gpu_assumed", "the form factor or variant is assumed, not stated", required=True),
        integer("gpus", "accelerators in one unit of the offer", required=True, positive=True),
        text("system_id", "node that the offer is, where known", refers_to="systems"),
        text("region", "provider's region, or empty where the scope is not a region"),
        text(
            "region_scope",
            "what the price covers",
            required=True,
            choices=("region", "country", "continent", "global", "any", "unknown"),
        ),
        text("option", "purchase option", required=True, choices=OPTIONS),
        text("tier", "the provider's tier, such as secure or community"),
        text("billing", "per use, or take-or-pay", required=True, choices=("per_use", "take_or_pay")),
        integer("term_months", "length of the commitment; 0 for none", required=True),
        text(
            "payment",
            "how a commitment is paid",
            required=True,
            choices=("none", "no_upfront", "partial_upfront", "all_upfront", "monthly", "unknown"),
        ),
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
        *PROVENANCE,
    ),
    ("offer_id", "valid_from", "observed_on", "recorded_on", "source_id"),
)

MARKET_STATISTICS = Table(
    "market_statistics",
    "pricing/market_statistics.csv",
    "Medians, means and minima of markets: nobody can order them, and they are never ranked.",
    (
        text(
            "statistic", "what was computed", required=True, choices=("median", "mean over sizes", "minimum", "average")
        ),
        *LISTING,
        date("observed_on", "when it was seen", required=True),
        *PROVENANCE,
    ),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "observed_on", "usd_per_hour"),
)

UNDATED = Table(
    "undated",
    "pricing/undated.csv",
    "Prices without a day of observation: kept apart, never the latest.",
    (*LISTING, *PROVENANCE),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "usd_per_hour"),
)

COMPONENTS = Table(
    "components",
    "pricing/components.csv",
    "Prices of the GPU part of a machine, without its processors and memory: not an offer.",
    (*LISTING, date("observed_on", "when it was seen", required=True), *PROVENANCE),
    ("provider", "listed_as", "gpu", "gpus", "region", "option", "observed_on"),
)

QUARANTINE = Table(
    "quarantine",
    "pricing/quarantine.csv",
    "Prices that were refused, each with the reason.",
    (
        *LISTING,
        date("observed_on", "when it was seen", required=True),
        text("reason", "why it was refused", required=True),
        *PROVENANCE,
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
        *PROVENANCE,
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
        *PROVENANCE,
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
        *PROVENANCE,
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
        *PROVENANCE,
    ),
    ("provider", "listing", "observed_on"),
)
