"""The bill of a month of serving as formulas: load, lines, the price of tokens, the hosted price beside it, energy.

Engine, workbook, `--explain` and the documentation read these lines. Inputs are columns with one element per case;
the fleet (replicas, their layout, the hours paid) is given, another load may need another one.
"""

from gpucost.formula.arrays import Columns, evaluate_columns
from gpucost.formula.language import Input, Line, read_inputs, read_lines
from gpucost.money import bill, energy
from gpucost.money.bill import BillItem
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

# What the engine sizes a fleet for; a workbook asks for tokens or for a utilisation instead.
DEMANDED = "demanded_tokens"
DEMAND_INPUTS = read_inputs("""
demand
    demand_basis: tokens: the load is given; utilisation: the replicas are used to a stated share
    tokens_per_month: input and output tokens of a month
    utilisation_fraction: share of the serving replicas' time that is used (demand_basis = utilisation)
""")
HOSTED_INPUTS = read_inputs("""
price
    api_usd_per_mtok: blended price of the hosted API that it is compared with
""")
INPUTS: tuple[Input, ...] = (
    *read_inputs("""
demand
    prompt_tokens: input tokens per request
    output_tokens: output tokens per request
price
    usd_per_gpu_hour: price of one GPU for an hour
speed
    replica_output_tokens_per_s: output tokens per second of one replica, prompts served beside them
    prompt_time_fraction: share of a replica's time that goes to prompts
    low_ratio: low end of the price per token ÷ typical
    high_ratio: high end of the price per token ÷ typical
pinned: fleet and layout
    replica_gpus: GPUs of one replica
    serving_replicas: replicas on average over the month, redundant ones left out
    gpu_hours: GPU-hours paid in a month
    spare_gpu_hours: GPU-hours of redundant replicas in a month
"""),
    *energy.INPUTS,
    Input("idle_power_fraction", "energy", "mean draw ÷ rated power while idle"),
)
INPUT_NAMES = tuple(entry.name for entry in INPUTS)
CONSTANTS = {
    "seconds_per_hour": SECONDS_PER_HOUR,
    "hours_per_month": HOURS_PER_MONTH,
    "tokens_per_mtok": 1e6,
    **energy.CONSTANTS,
}

CAPACITY = read_lines(
    """
output_share_fraction: share of the tokens that is output
    output_tokens / (prompt_tokens + output_tokens)
capacity_tokens: what the replicas serve in a month at most
    replica_output_tokens_per_s / output_share_fraction * serving_replicas * seconds_per_hour * hours_per_month
""",
    "load",
)
DEMAND = read_lines(
    f"""
{DEMANDED}: what is asked for
    where(demand_basis == 'tokens', tokens_per_month, utilisation_fraction * capacity_tokens)
""",
    "load",
)
LOAD = read_lines(
    f"""
carried_tokens: what is served in a month
    min({DEMANDED}, capacity_tokens)
busy_gpu_hours: hours at work
    carried_tokens * output_share_fraction / (replica_output_tokens_per_s * seconds_per_hour) * replica_gpus
redundant_gpu_hours: hours of redundant replicas
    min(spare_gpu_hours, gpu_hours - busy_gpu_hours)
idle_gpu_hours: hours paid and not used
    max(gpu_hours - busy_gpu_hours - redundant_gpu_hours, 0)
utilisation_of_paid_fraction: busy share of the paid hours
    busy_gpu_hours / gpu_hours
""",
    "load",
)

BILL = tuple(
    BillItem(name, quantity, "GPU-hour", "usd_per_gpu_hour")
    for name, quantity in (
        ("serving requests", "busy_gpu_hours"),
        ("idle capacity", "idle_gpu_hours"),
        ("redundant replicas", "redundant_gpu_hours"),
    )
)

_PER_MTOK = dict.fromkeys(
    ("usd_per_mtok_low", "usd_per_mtok_high", "usd_per_mtok_input", "usd_per_mtok_output"), "USD per million tokens"
)
_PER_MONTH = dict.fromkeys(("usd_per_month_low", "usd_per_month_high"), "USD per month")
ANSWERS = (
    *read_lines(
        f"""
usd_per_month: the whole bill
    {bill.total(BILL)}
usd_per_month_low: low end of the 80 % range
    usd_per_month * low_ratio
usd_per_month_high: high end of the 80 % range
    usd_per_month * high_ratio
usd_per_mtok: blended
    usd_per_month / carried_tokens * tokens_per_mtok
usd_per_mtok_low: low end of the 80 % range
    usd_per_mtok * low_ratio
usd_per_mtok_high: high end of the 80 % range
    usd_per_mtok * high_ratio
usd_per_mtok_input: input tokens, by the time that prompts take
    usd_per_mtok * prompt_time_fraction / (1 - output_share_fraction)
usd_per_mtok_output: output tokens, by the time that they take
    usd_per_mtok * (1 - prompt_time_fraction) / output_share_fraction
drawn_gpu_hours: GPU-hours at rated power
    busy_gpu_hours * power_fraction + max(gpu_hours - busy_gpu_hours, 0) * idle_power_fraction
""",
        "answers",
        {**_PER_MTOK, **_PER_MONTH},
    ),
    *energy.ENERGY,
)
HOSTED = read_lines(
    """
api_usd_per_month: the same tokens from the API
    carried_tokens / tokens_per_mtok * api_usd_per_mtok
saving_usd_per_month: what self-hosting saves in a month
    api_usd_per_month - usd_per_month
breakeven_tokens: tokens of a month at which this fleet costs what the API costs
    usd_per_month / api_usd_per_mtok * tokens_per_mtok
breakeven_fraction: the same as a share of the capacity; above 1 is never
    breakeven_tokens / capacity_tokens
""",
    "answers",
)

LINES: tuple[Line, ...] = (*CAPACITY, *LOAD, *bill.formulas(BILL), *ANSWERS)
WITH_DEMAND: tuple[Line, ...] = (*CAPACITY, *DEMAND, *LINES[len(CAPACITY) :])
_NAMES = tuple(line.name for line in LINES)


def price_months(factors: Columns) -> Columns:
    """Turn factors and the tokens asked for into the load, the lines, the price of tokens, energy and carbon."""
    return evaluate_columns(LINES, factors, CONSTANTS, _NAMES)
