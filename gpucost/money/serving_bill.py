"""The bill of a month of serving as formulas: load, lines, the price of tokens, the hosted price beside it, energy.

Engine, workbook, `--explain` and the documentation read these lines. Inputs are columns with one element per case;
the fleet (replicas, their layout, the hours paid) is given, another load may need another one.
"""

from gpucost.formula.arrays import Columns, evaluate_columns
from gpucost.formula.language import Input, Line, read_inputs, read_tables
from gpucost.money import bill, energy
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

# What the engine sizes a fleet for; a workbook asks for tokens or for a utilisation instead.
DEMANDED = "demanded_tokens"
DEMAND_INPUTS, HOSTED_INPUTS, _INPUTS = read_inputs(__file__, "demand inputs", "hosted inputs", "inputs")
CAPACITY, DEMAND, LOAD, _ANSWERS, HOSTED = read_tables(__file__, "capacity", "demand", "load", "answers", "hosted")
INPUTS: tuple[Input, ...] = (
    *_INPUTS,
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


BILL = bill.items("serving", "run")
ANSWERS = (
    Line("usd_per_month", bill.total(BILL), "the whole bill", group="answers"),
    *_ANSWERS,
    *energy.ENERGY,
)

LINES: tuple[Line, ...] = (*CAPACITY, *LOAD, *bill.formulas(BILL), *ANSWERS)
WITH_DEMAND: tuple[Line, ...] = (*CAPACITY, *DEMAND, *LINES[len(CAPACITY) :])
_NAMES = tuple(line.name for line in LINES)


def price_months(factors: Columns) -> Columns:
    """Turn factors and the tokens asked for into the load, the lines, the price of tokens, energy and carbon."""
    return evaluate_columns(LINES, factors, CONSTANTS, _NAMES)
