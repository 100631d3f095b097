"""The live model of a training run: from tokens, speed, price and interruptions to the bill, its range and carbon.

The formulas are those of the engine's bill, with the GPU count and the layout pinned; a test holds both equal.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.live import LiveInput, LiveLine, LiveModel, lines_of
from gpucost.units import HOURS_PER_DAY, HOURS_PER_MONTH, HOURS_PER_YEAR, SECONDS_PER_HOUR, unit_of

_NEWTON_STEPS = 6  # from the right of the root; each doubles the correct digits
_TINY = "tiny_ratio"

# name -> (group, description)
_INPUTS: dict[str, tuple[str, str]] = {
    "tokens": ("run", "trained tokens, epochs included"),
    "gpus": ("pinned: cluster and layout", "GPUs; another count needs a new layout search in Python"),
    "nodes": ("pinned: cluster and layout", "nodes"),
    "gpus_per_unit": ("pinned: cluster and layout", "GPUs in one unit of the offer"),
    "model_flop_per_token": ("run", "model FLOP per trained token"),
    "peak_tflops": ("run", "dense peak of one GPU in the precision used"),
    "mfu_fraction": ("run", "model FLOP per second ÷ dense peak"),
    "speed_low_ratio": ("run", "low end of the 80 % range of the speed ÷ typical"),
    "speed_high_ratio": ("run", "high end of the 80 % range of the speed ÷ typical"),
    "usd_per_gpu_hour": ("price", "price of one GPU for an hour"),
    "price_low_ratio": ("price", "low end ÷ price; below 1 where the price is old"),
    "price_high_ratio": ("price", "high end ÷ price; above 1 where the price is old"),
    "evaluation_fraction": ("run", "hours beside the steps (evaluations, stalls, slower phases), as a share of them"),
    "experiments_fraction": ("run", "trial runs before the run, as a share of it; off by default"),
    "ramp_hours": ("run", "start-up before the first step"),
    "restart_hours": ("interruptions", "from an interruption back to work, once capacity is there"),
    "wait_hours": ("interruptions", "until capacity is back; calendar time, not paid"),
    "checkpoint_gb": ("interruptions", "size of one checkpoint"),
    "checkpoint_write_gb_per_s": ("interruptions", "write bandwidth of the whole job"),
    "preemptions_per_node_hour": ("interruptions", "preemptions per node and hour"),
    "preemptions_per_node_hour_low": ("interruptions", "its low end"),
    "preemptions_per_node_hour_high": ("interruptions", "its high end"),
    "failures_per_gpu_year": ("interruptions", "hardware failures that stop the job, per GPU and year"),
    "failures_per_gpu_year_low": ("interruptions", "its low end"),
    "failures_per_gpu_year_high": ("interruptions", "its high end"),
    "term_months": ("terms", "length of the contract; 0 is none"),
    "take_or_pay": ("terms", "1 where the whole term is owed"),
    "charge_commitment": ("terms", "1 where the run pays for the hours that it leaves unused"),
    "minimum_hours": ("terms", "shortest purchase"),
    "billing_increment_hours": ("terms", "purchases are rounded up to this; 0 is by the second"),
    "upfront_usd": ("terms", "due at the start of a term, per unit"),
    "recurring_usd_per_hour": ("terms", "recurring part of the price, per unit"),
    "prepaid": ("terms", "1 where the whole purchase is paid at its start"),
    "dataset_gb": ("services", "the tokens on disk"),
    "checkpoints_gb": ("services", "kept checkpoints"),
    "storage_usd_per_gb_month": ("services", "price of storage"),
    "egress_gb": ("services", "data leaving"),
    "egress_usd_per_gb": ("services", "price of data leaving"),
    "rated_power_w": ("energy", "rated power of a server per GPU"),
    "power_fraction": ("energy", "mean draw ÷ rated power"),
    "pue_ratio": ("energy", "power of the building ÷ power of the equipment"),
    "grid_kgco2e_per_kwh": ("energy", "intensity of the grid, location-based"),
}
_CONSTANTS = (
    ("seconds_per_hour", SECONDS_PER_HOUR),
    ("hours_per_day", HOURS_PER_DAY),
    ("hours_per_month", HOURS_PER_MONTH),
    ("hours_per_year", HOURS_PER_YEAR),
    ("flop_per_tflop", 1e12),
    ("tokens_per_mtok", 1e6),
    ("w_per_kw", 1000.0),
    ("z90_ratio", 1.2816),
    (_TINY, 1e-12),
    ("slack_ratio", 1e-9),
    ("series_limit_ratio", 0.03),
)
_PINNED = ("gpus", "nodes", "gpus_per_unit")
SHOWN = (
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "days",
    "gpu_hours",
    "usd_per_mtok",
    "exposure_usd",
    "cash_usd",
    "energy_kwh",
    "kgco2e",
)


def training_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not options[0].get("factors"):
        return None
    option = options[0]
    factors: Mapping[str, float] = option["factors"]
    typical = factors["tokens_per_s_per_gpu"]
    values = {
        **{name: factors[name] for name in _INPUTS if name in factors},
        "mfu_fraction": typical * factors["model_flop_per_token"] / (factors["peak_tflops"] * 1e12),
        "speed_low_ratio": factors["tokens_per_s_per_gpu_low"] / typical,
        "speed_high_ratio": factors["tokens_per_s_per_gpu_high"] / typical,
    }
    derived = _derived()
    outcome = {**factors, **option, **(option.get("contract") or {})}
    return LiveModel(
        key=key,
        title=title,
        inputs=(*(_input(name, values, option) for name in _INPUTS), *_constants()),
        derived=tuple(derived),
        answer="cost_usd",
        shown=SHOWN,
        expected={
            line.name: outcome[line.name] for line in derived if isinstance(outcome.get(line.name), (int, float))
        },
    )


def _input(name: str, values: Mapping[str, float], option: Mapping[str, Any]) -> LiveInput:
    group, description = _INPUTS[name]
    value = values[name]
    ends: dict[str, tuple[float, float]] = {
        "mfu_fraction": (value * values["speed_low_ratio"], value * values["speed_high_ratio"]),
        "usd_per_gpu_hour": (value * 0.8, value * 1.2),
        "tokens": (value * 0.8, value * 1.2),
    }
    for rate in ("preemptions_per_node_hour", "failures_per_gpu_year"):
        ends[rate] = (values[rate + "_low"], values[rate + "_high"])
    if name in ("usd_per_gpu_hour",) and (values["price_low_ratio"], values["price_high_ratio"]) != (1.0, 1.0):
        ends[name] = (value * values["price_low_ratio"], value * values["price_high_ratio"])
    low, high = ends.get(name, (None, None))
    sources = option.get("source_ids") or [""]
    priced = name == "usd_per_gpu_hour"
    return LiveInput(
        name,
        value,
        unit_of(name),
        low,
        high,
        source_id=str(sources[0]) if priced else "",
        status="pinned" if name in _PINNED else "sourced" if priced else "",
        group=group,
        description=description,
    )


def _constants() -> list[LiveInput]:
    words = {_TINY: "below this exponent nothing interrupts", "slack_ratio": "24.000000001 hours are one day, not two"}
    words["series_limit_ratio"] = "below it the spread is taken from its series"
    words["z90_ratio"] = "standard deviations from the middle to the end of an 80 % range"
    return [
        LiveInput(name, value, unit_of(name), status="constant", group="constants", description=words.get(name, ""))
        for name, value in _CONSTANTS
    ]


_TIME = """
tokens_per_s_per_gpu: speed of one GPU
    mfu_fraction * peak_tflops * flop_per_tflop / model_flop_per_token
work_hours: training steps alone
    tokens / (tokens_per_s_per_gpu * gpus) / seconds_per_hour
productive_hours: with the hours beside the steps
    work_hours * (1 + evaluation_fraction)
checkpoint_hours: writing one checkpoint
    checkpoint_gb / checkpoint_write_gb_per_s / seconds_per_hour
longest_interval_hours: no interval is longer than the run
    max(work_hours, checkpoint_hours)
"""
# Daly's stretch at one of three rates (END is nothing, _low or _high); the best interval by Newton's method on
# ln(1 - x) + x + rate * save = 0, from the right of the root.
_STRETCH_HEAD = """
stopsEND_per_hour: interruptions of the whole job
    preemptions_per_node_hourEND * nodes + failures_per_gpu_yearEND * gpus / hours_per_year
stopsEND_per_checkpoint_ratio: interruptions while one checkpoint is written
    stopsEND_per_hour * checkpoint_hours
intervalEND_x0: first guess of rate × best interval
    min((2 * stopsEND_per_checkpoint_ratio) ** (1 / 2), 1 - exp(-1 - stopsEND_per_checkpoint_ratio))
"""
_STRETCH_STEP = """
intervalEND_xNEW: Newton's step NEW
    where(intervalEND_xOLD > tiny_ratio, intervalEND_xOLD + (log(1 - max(intervalEND_xOLD, tiny_ratio)) +
        max(intervalEND_xOLD, tiny_ratio) + stopsEND_per_checkpoint_ratio) * (1 - max(intervalEND_xOLD,
        tiny_ratio)) / max(intervalEND_xOLD, tiny_ratio), intervalEND_xOLD)
"""
_STRETCH_TAIL = """
intervalEND_hours: work between two checkpoints
    where(stopsEND_per_hour > 0, min(intervalEND_x6 / max(stopsEND_per_hour, tiny_ratio * tiny_ratio),
        longest_interval_hours), longest_interval_hours)
raw_stretchEND_ratio: hours paid ÷ hours of work
    where(stopsEND_per_hour > tiny_ratio, exp(stopsEND_per_hour * restart_hours) * expm1(stopsEND_per_hour
        * (intervalEND_hours + checkpoint_hours)) / max(stopsEND_per_hour * intervalEND_hours, tiny_ratio *
        tiny_ratio), (intervalEND_hours + checkpoint_hours) / intervalEND_hours)
"""
_STRETCHED = """
stretch_paid_ratio: hours paid ÷ hours of work
    raw_stretch_ratio
stretch_low_ratio: at the low rates
    min(raw_stretch_low_ratio, stretch_paid_ratio)
stretch_high_ratio: at the high rates
    max(raw_stretch_high_ratio, stretch_paid_ratio)
paid_hours: hours paid
    productive_hours * stretch_paid_ratio + ramp_hours
stretch_calendar_ratio: calendar hours ÷ hours of work
    stretch_paid_ratio * (1 + stops_per_hour * wait_hours)
calendar_hours: from start to end
    productive_hours * stretch_calendar_ratio + ramp_hours
days: from start to end
    calendar_hours / hours_per_day
calendar_months: for storage
    calendar_hours / hours_per_month
"""
# Chance alone: the standard deviation of the hours paid, from the second moments of one segment.
_SPREAD = """
segment_hours: work and its checkpoint
    interval_hours + checkpoint_hours
segment_stops_ratio: interruptions per segment
    stops_per_hour * segment_hours
restart_stops_ratio: interruptions per restart
    stops_per_hour * restart_hours
segment_odds_ratio: failures per success
    expm1(segment_stops_ratio)
lost_hours: lost by a failure, mean (series where the closed form cancels)
    segment_hours * where(segment_stops_ratio < series_limit_ratio, 1 / 2 - segment_stops_ratio / 12 +
        segment_stops_ratio ** 3 / 720, 1 / max(segment_stops_ratio, tiny_ratio) - 1 /
        expm1(max(segment_stops_ratio, tiny_ratio)))
lost_square: and mean square, hours²
    segment_hours ** 2 * where(segment_stops_ratio < series_limit_ratio, 1 / 3 - segment_stops_ratio / 12 +
        segment_stops_ratio ** 2 / 360 + segment_stops_ratio ** 3 / 720 - segment_stops_ratio ** 4 / 15120, 2
        / max(segment_stops_ratio, tiny_ratio) ** 2 - (1 + 2 / max(segment_stops_ratio, tiny_ratio)) /
        expm1(max(segment_stops_ratio, tiny_ratio)))
again_hours: lost to failed restarts, mean
    restart_hours * where(restart_stops_ratio > tiny_ratio, expm1(restart_stops_ratio) /
        max(restart_stops_ratio, tiny_ratio), 1)
again_square: and mean square, hours²
    restart_hours ** 2 * where(restart_stops_ratio < series_limit_ratio, restart_stops_ratio / 3 +
        restart_stops_ratio ** 2 / 3 + restart_stops_ratio ** 3 * 11 / 60 + restart_stops_ratio ** 4 * 13 /
        180, (exp(2 * restart_stops_ratio) - 1 - 2 * restart_stops_ratio * exp(restart_stops_ratio)) /
        max(restart_stops_ratio, tiny_ratio) ** 2) + again_hours ** 2
segment_mean_hours: one segment, mean
    segment_hours + segment_odds_ratio * (lost_hours + again_hours)
segment_square: and mean square, hours²
    segment_hours ** 2 + segment_odds_ratio * (lost_square + 2 * lost_hours * again_hours + again_square + 2 *
        (lost_hours + again_hours) * segment_mean_hours)
stretch_spread_ratio: standard deviation ÷ hours of work
    where(stops_per_hour > tiny_ratio, max(segment_square - segment_mean_hours ** 2, 0) ** (1 / 2) *
        (work_hours / interval_hours) ** (1 / 2) / work_hours, 0)
"""
_PURCHASE = """
term_hours: hours of one term
    term_months * hours_per_month
terms: consecutive contracts
    where(term_hours > 0, ceil(paid_hours / where(term_hours > 0, term_hours, 1) - slack_ratio), 0)
bound: 1 where whole terms are owed
    where(take_or_pay > 0, where(terms > 0, 1, 0), 0)
rounded_hours: rounded up to what can be bought
    max(where(billing_increment_hours > 0, ceil(paid_hours / where(billing_increment_hours > 0,
        billing_increment_hours, 1) - slack_ratio) * where(billing_increment_hours > 0,
        billing_increment_hours, 1), paid_hours), minimum_hours)
billed_hours: hours owed per unit
    where(bound > 0, terms * term_hours, rounded_hours)
beyond_hours: owed and not used
    max(billed_hours - paid_hours, 0)
exposure_usd: everything that the contract obliges to pay
    gpus * billed_hours * usd_per_gpu_hour
months_due: instalments due by the end of the run
    min(ceil(paid_hours / hours_per_month - slack_ratio), terms * term_months)
cash_usd: paid by the end of the run
    where(bound > 0, where(prepaid > 0, exposure_usd, gpus / gpus_per_unit * (terms * upfront_usd + months_due
        * hours_per_month * recurring_usd_per_hour)), exposure_usd)
amortised_usd: hours used × effective price
    gpus * paid_hours * usd_per_gpu_hour
unused_usd: commitment that the run leaves idle
    exposure_usd - amortised_usd
"""
_TOTALS = """
range_up_ratio: independent shares, added in squares
    exp((log(price_high_ratio) ** 2 + where(bound * charge_commitment > 0, 0, 1) * (log(1 / speed_low_ratio)
        ** 2 + log(stretch_high_ratio / stretch_paid_ratio) ** 2 + log(1 + z90_ratio * stretch_spread_ratio /
        stretch_paid_ratio) ** 2)) ** (1 / 2))
range_down_ratio: independent shares, added in squares
    exp(0 - (log(price_low_ratio) ** 2 + where(bound * charge_commitment > 0, 0, 1) * (log(speed_high_ratio)
        ** 2 + log(stretch_paid_ratio / stretch_low_ratio) ** 2 + log(1 + z90_ratio * stretch_spread_ratio /
        stretch_paid_ratio) ** 2)) ** (1 / 2))
cost_low_usd: low end of the 80 % range
    min(round_cents(hours_cost_usd * range_down_ratio + cost_usd - hours_cost_usd), cost_usd)
cost_high_usd: high end of the 80 % range
    max(round_cents(hours_cost_usd * range_up_ratio + cost_usd - hours_cost_usd), cost_usd)
gpu_hours: GPU-hours of the run
    compute_quantity + evaluation_quantity + failed_work_quantity + idle_quantity
usd_per_mtok: per million trained tokens
    cost_usd / (tokens / tokens_per_mtok)
energy_kwh: at the meter of the building
    gpus * paid_hours * rated_power_w * power_fraction * pue_ratio / w_per_kw
kgco2e: location-based
    energy_kwh * grid_kgco2e_per_kwh
"""


def _derived() -> list[LiveLine]:
    stretches = [line for end in ("", "_low", "_high") for line in _stretch(end)]
    purchase = lines_of("purchase", _PURCHASE)
    interruptions = [*stretches, *lines_of("interruptions", _STRETCHED + _SPREAD)]
    return [*lines_of("time", _TIME), *interruptions, *purchase, *_bill(), *_sums(), *lines_of("answers", _TOTALS)]


def _stretch(end: str) -> list[LiveLine]:
    steps = [
        _STRETCH_STEP.replace("NEW", str(step)).replace("OLD", str(step - 1)) for step in range(1, _NEWTON_STEPS + 1)
    ]
    return lines_of("interruptions", "".join((_STRETCH_HEAD, *steps, _STRETCH_TAIL)).replace("END", end))


# line of the bill -> (quantity, unit, price)
_BILL = {
    "compute": ("gpus * work_hours", "GPU-hour", "usd_per_gpu_hour"),
    "evaluation": ("gpus * work_hours * evaluation_fraction", "GPU-hour", "usd_per_gpu_hour"),
    "failed_work": ("gpus * productive_hours * (stretch_paid_ratio - 1)", "GPU-hour", "usd_per_gpu_hour"),
    "idle": ("gpus * (ramp_hours + where(bound > 0, 0, beyond_hours))", "GPU-hour", "usd_per_gpu_hour"),
    "unused_commitment": (
        "gpus * where(bound * charge_commitment > 0, beyond_hours, 0)",
        "GPU-hour",
        "usd_per_gpu_hour",
    ),
    "experiments": ("gpus * work_hours * experiments_fraction", "GPU-hour", "usd_per_gpu_hour"),
    "dataset_storage": ("dataset_gb * calendar_months", "GB-month", "storage_usd_per_gb_month"),
    "checkpoint_storage": ("checkpoints_gb * calendar_months", "GB-month", "storage_usd_per_gb_month"),
    "egress": ("egress_gb * 1", "GB", "egress_usd_per_gb"),
}
_RUN_LINES = ("compute", "evaluation", "failed_work", "idle")
_HOUR_LINES = (*_RUN_LINES, "unused_commitment", "experiments")


def _bill() -> list[LiveLine]:
    lines = []
    for name, (quantity, unit, price) in _BILL.items():
        words = name.replace("_", " ")
        lines.append(LiveLine(f"{name}_quantity", quantity, unit, f"{words}: quantity", group="bill"))
        lines.append(
            LiveLine(
                f"{name}_cost_usd",
                f"round_cents({name}_quantity * {price})",
                "USD",
                f"{words}: cost, to the cent",
                group="bill",
            )
        )
    return lines


def _sums() -> list[LiveLine]:
    def total(names: tuple[str, ...], what: str) -> str:
        return " + ".join(f"{name}_{what}" for name in names)

    return [
        LiveLine("cost_usd", total(tuple(_BILL), "cost_usd"), "USD", "the whole bill", group="answers"),
        LiveLine("hours_cost_usd", total(_HOUR_LINES, "cost_usd"), "USD", "of which GPU-hours", group="answers"),
    ]
