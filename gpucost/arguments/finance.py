"""The arguments of the questions of a finance desk: an invoice against a plan, and how much to commit."""

from gpucost.arguments import kinds as k
from gpucost.arguments.kinds import one_of, share, whole
from gpucost.arguments.table import DATES, ONE_GPU, PLAN_START, PROVIDER, REGION, SAVED_RANK, SAVED_SIDE, A

RECONCILE = (
    A("invoice", k.FILE, "FOCUS 1.x file: .csv, .parquet or .json, also .gz.", required=True, place=True,
      example="invoice.csv"),
    A("estimate", k.PLAN, "Saved answer (.json), or a FOCUS file of what was planned; in the library also a payload.",
      example="saved.json"),
    PLAN_START,
    SAVED_RANK,
    SAVED_SIDE,
    A("done", share(100.0), "Work done, as a share of what was planned for the time: splits quantity from efficiency.",
      example="95%"),
    A("map", k.FILE, "CSV with the columns invoice and estimate: what the same product is called.", example="map.csv"),
    A("rate", k.TABLE, "USD per unit of a currency, as paid.", usual="the catalog's at the invoice's end",
      example={"EUR": "1.08"}),
    A("budget_rate", k.TABLE, "USD per unit of a currency, as planned.", usual="the catalog's on the plan's day",
      example={"EUR": "1.10"}),
    A("showback", k.name("TAG"), "Show the effective cost by the values of this tag.", example="team"),
    A("idle_by", one_of("cost", "quantity", "even"), "How the cost of unused commitments is shared among the tags.",
      "cost"),
    *DATES,
)  # fmt: skip
COMMIT = (
    A("usage", k.DEMAND, "CSV with time and gpus (or gpu_hours) by hour or day; in the library also GPUs by hour.",
      required=True, place=True, example="usage.csv"),
    ONE_GPU._replace(help="GPU whose prices are looked up where they are not said."),
    PROVIDER._replace(help="Look prices up at this provider."),
    REGION,
    A("on_demand", k.USD, "Price per GPU-hour without a commitment.", usual="the cheapest on record", example=3.99),
    A("committed", k.USD, "Price per GPU-hour under a commitment.", usual="the cheapest of the term on record",
      example=2.1),
    A("term", whole(1, 120, "MONTHS"), "Months of a commitment.", 12),
    A("step", whole(1, 100_000, "GPUS"), "GPUs of the smallest commitment.", 1),
    A("rungs", whole(1, 24), "Purchases over which to spread what is committed, so that not all ends at once.", 1),
    A("agreements", k.FILE, "CSV of agreements that hold: name, kind (contract, reservation, savings_plan, private, "
      "credit, annual), start, end and their figures.", example="agreements.csv"),
    *DATES,
)  # fmt: skip
