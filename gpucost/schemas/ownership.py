"""Tables of what owning costs: inputs with ranges, energy, regions, exchange rates, results of others."""

from gpucost.schemas.columns import PROVENANCE, RANGE, Table, date, number, text

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
    "What owning costs: inputs of the plan, each with a range. Items of one exclusive group are alternatives.",
    (
        *RANGE,
        text("exclusive_group", "alternatives of which one counts, such as network_capex; empty for none"),
        text("observed", "year, quarter or span that the values are from", required=True),
        *PROVENANCE,
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
        *PROVENANCE,
    ),
    ("method",),
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
        *PROVENANCE,
    ),
    ("gpu", "measure", "observed_on"),
)

ENERGY = Table(
    "energy",
    "pricing/energy.csv",
    "Electricity tariffs and carbon intensity of grids.",
    (
        *RANGE,
        text("kind", "tariff or carbon", required=True, choices=("electricity", "grid_carbon")),
        text("grid_region", "grid that the values hold for", required=True),
        text("observed", "year or month that the values are from", required=True),
        *PROVENANCE,
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

EXCHANGE_RATES = Table(
    "exchange_rates",
    "pricing/exchange_rates.csv",
    "Dated exchange rates; prices are kept in USD.",
    (
        text("currency", "ISO 4217 code", required=True),
        date("on", "day of the rate", required=True),
        number("usd_per_unit", "USD for one unit of the currency", required=True, positive=True),
        *PROVENANCE,
    ),
    ("currency", "on"),
)
