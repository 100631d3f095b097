"""The arguments of the questions that judge: which GPU to choose, and whether a claim is possible."""

from gpucost.arguments import kinds as k
from gpucost.arguments.kinds import count, one_of, share, whole
from gpucost.arguments.table import CLAIMED, DATES, FILTERS, GPU, GPUS, METHOD, MODEL, PRECISION, SEQUENCE, TOKENS, A

CHOOSE = (
    MODEL._replace(required=False, default="8b"),
    A("purpose", one_of("training", "fine-tuning", "serving", "research", "desk"), "What it is for.", "training"),
    A("budget", k.USD, "What may be spent, such as 2k, 50k or 1m.", example="50k"),
    A(
        "tokens",
        count(1e17, 1, "", "TOKENS"),
        "Tokens of the run; serving: a month.",
        usual="100b, 100m to fine-tune, 1b to serve",
    ),
    A("hours_per_month", count(730, metavar="HOURS"), "Hours of use a month, for research and a desk.", 176.0),
    A(
        "workload",
        k.TABLE,
        "One of several workloads, such as chat='serving 8b 5b': purpose, model, tokens.",
        example={"chat": "serving 8b 5b"},
    ),
    A("pool", k.TABLE, "Accelerators that you own, such as h100-sxm=8.", example={"h100-sxm": "8"}),
    *FILTERS[:4],
    *DATES,
)
COMPARE = (
    A("first", k.ANSWER, "Saved answer or scenario, FILE#PART for one part of it.", place=True, example="before.json"),
    A("second", k.ANSWER, "The one to set against it; else the other parts of the first.", place=True,
      example="after.json"),
    A("rank", whole(), "Which option of each answer.", 1),
    A("model", k.MODELS, "Instead of files: models, with commas or repeated.", usual="8b", example="8b,70b"),
    A("gpu", k.GPUS, "Accelerators, with commas or repeated: every model on each.", example="h100-sxm,h200"),
    A("speed", k.FLAG, "Time one job on two, or on one over its own links and over PCIe: what links cost.", False),
    GPUS._replace(help="With --speed: accelerators of the job.", example=8),
    TOKENS._replace(help="Tokens of the run.", usual="100b", required=False),
    *FILTERS[1:4],
    *DATES,
)  # fmt: skip
AUDIT = (
    MODEL._replace(required=False),
    TOKENS._replace(help="Tokens trained on.", required=False),
    GPU._replace(help="Accelerator; a family is judged by its most favourable variant."),
    A("gpus", whole(), "How many."),
    A("days", k.DAYS, "Claimed duration."),
    A("hours", count(1e9, metavar="HOURS"), "Claimed duration in hours."),
    A("gpu_hours", count(1e12, metavar="HOURS"), "Claimed accelerator-hours."),
    A("cost", k.USD, "Claimed cost of the run.", field="cost_usd"),
    PRECISION._replace(kind=one_of(*CLAIMED), help="Precision claimed."),
    METHOD,
    SEQUENCE,
    A("fits", one_of("training", "serving"), "Claim: it fits on these accelerators."),
    A("weights_gb", count(1e12, metavar="GB"), "Claimed size of the weights."),
    A("training_gb", count(1e12, metavar="GB"), "Claimed memory of training in all."),
    A("tokens_per_s", count(1e12), "Claimed output tokens per second in serving, over all accelerators.",
      field="decode_tokens_per_s"),
    A("batch", whole(), "Sequences decoded at once, for tokens_per_s.", 1),
    A("buy", k.USD, "Claimed price of buying.", field="buy_usd"),
    A("rent_monthly", k.USD, "Claimed rent per month.", field="rent_usd_per_month"),
    A("own_monthly", k.USD, "Claimed running cost of owning per month.", field="own_usd_per_month"),
    A("payback_months", count(1e4), "Claimed months until buying pays back."),
    A("hours_per_month", count(1e12, metavar="HOURS"),
      "Accelerator-hours needed per month, for how busy the gpus would be.", field="gpu_hours_per_month"),
    A("discount", share(), "Annual rate for the present value.", "10%", field="discount_fraction"),
    *DATES,
)  # fmt: skip
