"""The bill of a training run as formulas: hours, interruptions, the purchase, the lines, their range, energy.

Engine, workbook, `--explain` and the documentation read these lines. Inputs are columns with one element per case;
the fleet (GPUs, nodes, layout, speed) is given, another one needs another search.
"""

from gpucost.formula.arrays import Columns, evaluate_columns
from gpucost.formula.language import Input, Line, read_inputs, read_lines
from gpucost.money import bill, energy, spot
from gpucost.money.bill import BillItem
from gpucost.units import HOURS_PER_DAY, HOURS_PER_MONTH, HOURS_PER_YEAR, SECONDS_PER_HOUR

INPUTS: tuple[Input, ...] = (
    *read_inputs("""
run
    tokens: trained tokens, epochs included
pinned: cluster and layout
    gpus: GPUs; another count needs a new layout search in Python
    nodes: nodes
    gpus_per_unit: GPUs in one unit of the offer
run
    tokens_per_s_per_gpu: speed of one GPU
    tokens_per_s_per_gpu_low: low end of its 80 % range
    tokens_per_s_per_gpu_high: high end of its 80 % range
price
    usd_per_gpu_hour: price of one GPU for an hour
    price_low_ratio: low end ÷ price; below 1 where the price is old or spot
    price_high_ratio: high end ÷ price; above 1 where the price is old or spot
run
    evaluation_fraction: hours beside the steps (evaluations, stalls, slower phases), as a share of them
    experiments_fraction: trial runs before the run, as a share of it; off by default
    ramp_hours: start-up before the first step
interruptions
    restart_hours: from an interruption back to work, once capacity is there
    wait_hours: until capacity is back; calendar time, not paid
    checkpoint_gb: size of one checkpoint
    checkpoint_write_gb_per_s: write bandwidth of the whole job
    preemptions_per_node_hour: preemptions per node and hour
    preemptions_per_node_hour_low: its low end
    preemptions_per_node_hour_high: its high end
    failures_per_gpu_year: hardware failures that stop the job, per GPU and year
    failures_per_gpu_year_low: its low end
    failures_per_gpu_year_high: its high end
terms
    term_months: length of the contract; 0 is none
    take_or_pay: 1 where the whole term is owed
    charge_commitment: 1 where the run pays for the hours that it leaves unused
    minimum_hours: shortest purchase
    billing_increment_hours: purchases are rounded up to this; 0 is by the second
    upfront_usd: due at the start of a term, per unit
    recurring_usd_per_hour: recurring part of the price, per unit
    prepaid: 1 where the whole purchase is paid at its start
services
    dataset_gb: the tokens on disk
    checkpoints_gb: kept checkpoints
    storage_usd_per_gb_month: price of storage
    egress_gb: data leaving
    egress_usd_per_gb: price of data leaving
"""),
    *energy.INPUTS,
)
INPUT_NAMES = tuple(entry.name for entry in INPUTS)

CONSTANTS = {
    "seconds_per_hour": SECONDS_PER_HOUR,
    "hours_per_day": HOURS_PER_DAY,
    "hours_per_month": HOURS_PER_MONTH,
    "hours_per_year": HOURS_PER_YEAR,
    "tokens_per_mtok": 1e6,
    "z90_ratio": 1.2816,  # standard deviations between the middle and the end of an 80 % range
    "slack_ratio": 1e-9,  # a run of 24.000000001 hours is one day, not two
    **energy.CONSTANTS,
    **spot.CONSTANTS,
}

# Where the speed is to be changed, it follows from the MFU: model FLOP per second ÷ dense peak.
SPEED_INPUTS = read_inputs("""
run
    model_flop_per_token: model FLOP per trained token
    peak_tflops: dense peak of one GPU in the precision used
    mfu_fraction: model FLOP per second ÷ dense peak
    speed_low_ratio: low end of the 80 % range of the speed ÷ typical
    speed_high_ratio: high end of the 80 % range of the speed ÷ typical
""")
SPEED_CONSTANTS = {"flop_per_tflop": 1e12}
SPEED = read_lines(
    """
tokens_per_s_per_gpu: speed of one GPU
    mfu_fraction * peak_tflops * flop_per_tflop / model_flop_per_token
tokens_per_s_per_gpu_low: low end of its 80 % range
    tokens_per_s_per_gpu * speed_low_ratio
tokens_per_s_per_gpu_high: high end of its 80 % range
    tokens_per_s_per_gpu * speed_high_ratio
""",
    "time",
)

TIME = read_lines(
    """
work_hours: hours of training steps
    tokens / (tokens_per_s_per_gpu * gpus) / seconds_per_hour
productive_hours: with the hours beside the steps
    work_hours * (1 + evaluation_fraction)
checkpoint_hours: writing one checkpoint
    checkpoint_gb / checkpoint_write_gb_per_s / seconds_per_hour
longest_interval_hours: no interval is longer than the run
    max(work_hours, checkpoint_hours)
""",
    "time",
)

# END is nothing, _low or _high. A gang of nodes stops when any of its nodes stops, so that rates add up.
_STRETCH = """
stopsEND_per_hour: interruptions of the whole job per hour
    preemptions_per_node_hourEND * nodes + failures_per_gpu_yearEND * gpus / hours_per_year
intervalEND_hours: work between two checkpoints that makes the run shortest, (1 + W(−exp(−λC − 1))) ÷ λ
    best_interval_hours(stopsEND_per_hour, checkpoint_hours, longest_interval_hours)
raw_stretchEND_ratio: hours paid ÷ hours of work, exp(λR) (exp(λ(τ + C)) − 1) ÷ (λτ)
    stretch_ratio(stopsEND_per_hour, intervalEND_hours, checkpoint_hours, restart_hours)
"""
INTERRUPTIONS = read_lines(
    "".join(_STRETCH.replace("END", end) for end in ("", "_low", "_high"))
    + """
stretch_paid_ratio: hours paid ÷ hours of work
    raw_stretch_ratio
stretch_low_ratio: at the low rates
    min(raw_stretch_low_ratio, stretch_paid_ratio)
stretch_high_ratio: at the high rates
    max(raw_stretch_high_ratio, stretch_paid_ratio)
goodput_fraction: share of the paid hours that becomes progress
    1 / stretch_paid_ratio
paid_hours: hours paid
    productive_hours * stretch_paid_ratio + ramp_hours
interruptions: interruptions of the whole run
    stops_per_hour * paid_hours
stretch_calendar_ratio: calendar hours ÷ hours of work
    stretch_paid_ratio * (1 + stops_per_hour * wait_hours)
calendar_hours: from start to end
    productive_hours * stretch_calendar_ratio + ramp_hours
days: from start to end
    calendar_hours / hours_per_day
calendar_months: for storage
    calendar_hours / hours_per_month
stretch_spread_ratio: chance alone, standard deviation ÷ hours of work
    stretch_spread_ratio(stops_per_hour, interval_hours, checkpoint_hours, restart_hours, work_hours)
""",
    "interruptions",
)

# Four views of one purchase, which must not be mixed. Amortised: hours used × effective price. Exposure: everything
# the contract obliges to pay, used or not. Unused: their difference. Cash: what has left the account when the run
# ends, upfront parts and the instalments of each started month, due in arrears.
PURCHASE = read_lines(
    """
term_hours: hours of one term
    term_months * hours_per_month
terms: consecutive contracts
    where(term_hours > 0, ceil(paid_hours / where(term_hours > 0, term_hours, 1) - slack_ratio), 0)
bound: 1 where whole terms are owed
    where(take_or_pay > 0 and terms > 0, 1, 0)
rounded_hours: rounded up to what can be bought
    max(where(billing_increment_hours > 0, ceil(paid_hours / where(billing_increment_hours > 0,
        billing_increment_hours, 1) - slack_ratio) * billing_increment_hours, paid_hours), minimum_hours)
billed_hours: hours owed per unit
    where(bound > 0, terms * term_hours, rounded_hours)
beyond_hours: owed and not used
    max(billed_hours - paid_hours, 0)
exposure_usd: everything that the contract obliges to pay
    gpus * billed_hours * usd_per_gpu_hour
months_due: instalments due by the end of the run
    min(ceil(paid_hours / hours_per_month - slack_ratio), terms * term_months)
cash_usd: paid by the end of the run
    where(bound > 0 and prepaid <= 0, gpus / gpus_per_unit * (terms * upfront_usd + months_due * hours_per_month *
        recurring_usd_per_hour), exposure_usd)
amortised_usd: hours used × effective price
    gpus * paid_hours * usd_per_gpu_hour
unused_usd: commitment that the run leaves idle
    exposure_usd - amortised_usd
owed: 1 where the run pays for whole terms
    where(bound > 0 and charge_commitment > 0, 1, 0)
""",
    "purchase",
)

_HOUR, _STORAGE = ("GPU-hour", "usd_per_gpu_hour"), ("GB-month", "storage_usd_per_gb_month")
RUN_LINES = (
    BillItem("compute", "gpus * work_hours", *_HOUR, "training steps"),
    BillItem(
        "evaluation", "gpus * work_hours * evaluation_fraction", *_HOUR,
        "evaluations, data stalls and slower phases beside the steps",
    ),
    BillItem(
        "failed and repeated work", "gpus * productive_hours * (stretch_paid_ratio - 1)", *_HOUR,
        "work lost to interruptions, restarts and checkpoint writes",
    ),
    BillItem(
        "idle and ramp", "gpus * (ramp_hours + where(bound > 0, 0, beyond_hours))", *_HOUR,
        "start-up, and hours rounded up to what can be bought",
    ),
)  # fmt: skip
HOUR_LINES = (
    *RUN_LINES,
    BillItem(
        "unused commitment", "gpus * where(owed > 0, beyond_hours, 0)", *_HOUR,
        "hours owed under the term and not used",
    ),
    BillItem(
        "experiments", "gpus * work_hours * experiments_fraction", *_HOUR, "trial runs before the run, when asked for"
    ),
)  # fmt: skip
BILL = (
    *HOUR_LINES,
    BillItem(
        "dataset storage", "dataset_gb * calendar_months", *_STORAGE, "the tokens, while the run lasts", "storage"
    ),
    BillItem(
        "checkpoint storage", "checkpoints_gb * calendar_months", *_STORAGE, "kept checkpoints, while the run lasts",
        "storage",
    ),
    BillItem("egress", "egress_gb", "GB", "egress_usd_per_gb", "the final weights, out once", "egress"),
)  # fmt: skip

# A term that is owed in whole costs the same however long the run takes: only its price is uncertain.
ANSWERS = (
    *read_lines(
        f"""
cost_usd: the whole bill
    {bill.total(BILL)}
hours_cost_usd: of which GPU-hours
    {bill.total(HOUR_LINES)}
gpu_hours: GPU-hours of the run
    {" + ".join(f"{line.key}_quantity" for line in RUN_LINES)}
shorter_ratio: how much shorter the run may be, shares of speed and interruptions added in squares
    exp((log(tokens_per_s_per_gpu_high / tokens_per_s_per_gpu) ** 2 + log(stretch_paid_ratio / stretch_low_ratio) **
        2) ** (1 / 2))
longer_ratio: how much longer
    exp((log(tokens_per_s_per_gpu / tokens_per_s_per_gpu_low) ** 2 + log(stretch_high_ratio / stretch_paid_ratio) **
        2) ** (1 / 2))
chance_ratio: how much longer by chance alone
    1 + z90_ratio * stretch_spread_ratio / stretch_paid_ratio
range_up_ratio: independent shares of the price, speed, interruptions and chance, added in squares
    exp((log(price_high_ratio) ** 2 + where(owed > 0, 0, 1) * (log(longer_ratio) ** 2 + log(chance_ratio) ** 2)) **
        (1 / 2))
range_down_ratio: the same towards the low end
    exp(-(log(price_low_ratio) ** 2 + where(owed > 0, 0, 1) * (log(shorter_ratio) ** 2 + log(chance_ratio) ** 2)) **
        (1 / 2))
cost_low_usd: low end of the 80 % range
    min(round_cents(hours_cost_usd * range_down_ratio + cost_usd - hours_cost_usd), cost_usd)
cost_high_usd: high end of the 80 % range
    max(round_cents(hours_cost_usd * range_up_ratio + cost_usd - hours_cost_usd), cost_usd)
days_low: low end of the 80 % range
    days / shorter_ratio
days_high: high end of the 80 % range
    days * longer_ratio
usd_per_mtok: per million trained tokens
    cost_usd / (tokens / tokens_per_mtok)
drawn_gpu_hours: GPU-hours at rated power
    gpus * paid_hours * power_fraction
""",
        "answers",
    ),
    *energy.ENERGY,
)

LINES: tuple[Line, ...] = (*TIME, *INTERRUPTIONS, *PURCHASE, *bill.formulas(BILL), *ANSWERS)

KEPT = (
    "work_hours", "paid_hours", "days", "days_low", "days_high", "gpu_hours", "checkpoint_hours", "interval_hours",
    "interruptions", "stretch_paid_ratio", "stretch_calendar_ratio", "stretch_low_ratio", "stretch_high_ratio",
    "stretch_spread_ratio", "goodput_fraction", "cost_usd", "cost_low_usd", "cost_high_usd", "usd_per_mtok", "cash_usd",
    "amortised_usd", "exposure_usd", "unused_usd", "energy_kwh", "kgco2e",
    *(name.format(line.key) for line in BILL for name in ("{}_quantity", "{}_usd")),
)  # fmt: skip


def price_runs(factors: Columns) -> Columns:
    """Turn factors into hours, lines, totals, ranges, contract views, energy and carbon of every case."""
    return evaluate_columns(LINES, factors, CONSTANTS, KEPT)
