"""The bill of a training run as formulas: hours, interruptions, the purchase, the lines, their range, energy.

Engine, workbook, `--explain` and the documentation read these lines. Inputs are columns with one element per case;
the fleet (GPUs, nodes, layout, speed) is given, another one needs another search. The formulas stand in
training_bill.csv beside the module, as those of every bill do.

Four views of one purchase must not be mixed. Amortised: hours used × effective price. Exposure: everything the contract
obliges to pay, used or not. Unused: their difference. Cash: what has left the account when the run ends, upfront parts
and the instalments of each started month, due in arrears.
"""

from gpucost.answers.training import Contract, Interruptions, RunOutcome
from gpucost.formula.arrays import Columns, evaluate_columns
from gpucost.formula.language import Input, Line, read_inputs, read_tables
from gpucost.money import bill, energy, spot
from gpucost.units import HOURS_PER_DAY, HOURS_PER_MONTH, HOURS_PER_YEAR, SECONDS_PER_HOUR

_INPUTS, SPEED_INPUTS = read_inputs(__file__, "inputs", "speed inputs")
SPEED, TIME, _STRETCH, _STOPPED, PURCHASE, _ENDS, _ANSWERS = read_tables(
    __file__, "speed", "time", "stretch", "interruptions", "purchase", "ends", "answers"
)
INPUTS: tuple[Input, ...] = (*_INPUTS, *energy.INPUTS)
INPUT_NAMES = tuple(entry.name for entry in INPUTS)

RAMP_ENDS = 0.2, 4.0  # how much shorter and longer a start may be: an assumption

CONSTANTS = {
    "seconds_per_hour": SECONDS_PER_HOUR,
    "hours_per_day": HOURS_PER_DAY,
    "hours_per_month": HOURS_PER_MONTH,
    "hours_per_year": HOURS_PER_YEAR,
    "tokens_per_mtok": 1e6,
    "z90_ratio": 1.2816,  # standard deviations between the middle and the end of an 80 % range
    "ramp_low_ratio": RAMP_ENDS[0],
    "ramp_high_ratio": RAMP_ENDS[1],
    "slack_ratio": 1e-9,  # a run of 24.000000001 hours is one day, not two
    **energy.CONSTANTS,
    **spot.CONSTANTS,
}

# Where the speed is to be changed, it follows from the MFU: model FLOP per second ÷ dense peak.
SPEED_CONSTANTS = {"flop_per_tflop": 1e12}

# END is nothing, _low or _high. A gang of nodes stops when any of its nodes stops, so that rates add up.
_INTERRUPTIONS = (
    *(
        line._replace(name=line.name.replace("END", end), text=line.text.replace("END", end))
        for end in ("", "_low", "_high")
        for line in _STRETCH
    ),
    *_STOPPED,
)

_RUN_LINES = bill.items("training", "run")
_HOUR_LINES = (*_RUN_LINES, *bill.items("training", "hours"))
BILL = (*_HOUR_LINES, *bill.items("training", "services"))

# What is bought at either end of the range is rounded as the purchase is: a block of 24 hours is paid whole, and so is
# a term. A term that is owed in whole costs the same however long the run takes within it; beyond it another is owed.
_AT_ENDS = {"rounded_hours": "rounded_{}_hours", "terms": "terms_{}"}
_ROUNDED = tuple(
    line._replace(name=_AT_ENDS[line.name].format(end), text=line.text.replace("paid_hours", f"paid_{end}_hours"))
    for line in PURCHASE
    if line.name in _AT_ENDS
    for end in ("low", "high")
)

ANSWERS = (
    Line("cost_usd", bill.total(BILL), "the whole bill", group="answers"),
    Line("hours_cost_usd", bill.total(_HOUR_LINES), "of which GPU-hours", group="answers"),
    Line(
        "gpu_hours", " + ".join(f"{line.key}_quantity" for line in _RUN_LINES), "GPU-hours of the run", group="answers"
    ),
    *_ENDS,
    *_ROUNDED,
    *_ANSWERS,
    *energy.ENERGY,
)

LINES: tuple[Line, ...] = (*TIME, *_INTERRUPTIONS, *PURCHASE, *bill.formulas(BILL), *ANSWERS)

_BETWEEN = (  # of the lines what an answer is worked out from, under a name of its own
    "work_hours",
    "paid_hours",
    "checkpoint_hours",
    "interval_hours",
    "stretch_low_ratio",
    "stretch_high_ratio",
)
_ANSWERED = {name for part in (RunOutcome, Contract, Interruptions) for name in part.__annotations__}
KEPT = (
    *dict.fromkeys((*_BETWEEN, *(line.name for line in LINES if line.name in _ANSWERED))),
    *(name.format(line.key) for line in BILL for name in ("{}_quantity", "{}_usd")),
)


def price_runs(factors: Columns) -> Columns:
    """Turn factors into hours, lines, totals, ranges, contract views, energy and carbon of every case."""
    return evaluate_columns(LINES, factors, CONSTANTS, KEPT)
