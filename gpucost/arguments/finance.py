"""The arguments of the questions of a finance desk: an invoice against a plan, and how much to commit."""

from gpucost.arguments import kinds as k
from gpucost.arguments.kinds import one_of, share
from gpucost.arguments.table import PLAN_START, SAVED_RANK, SAVED_SIDE, A

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
)  # fmt: skip
