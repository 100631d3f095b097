"""The live model of a training run: from tokens, speed, price and interruptions to the bill, its range and carbon.

The formulas are those of the engine's bill, with the GPU count and the layout pinned; a test holds both equal.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.live import LiveInput, LiveLine, LiveModel
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
    "evaluation_fraction": ("run", "evaluations during the run, as a share of the training steps"),
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


def _derived() -> list[LiveLine]:
    return [*_time(), *_stretches(), *_purchase(), *_bill(), *_totals()]


def _lines(group: str, *rows: tuple[str, str, str]) -> list[LiveLine]:
    return [LiveLine(name, text, unit_of(name), description, group=group) for name, text, description in rows]


def _time() -> list[LiveLine]:
    return _lines(
        "time",
        (
            "tokens_per_s_per_gpu",
            "mfu_fraction * peak_tflops * flop_per_tflop / model_flop_per_token",
            "speed of one GPU",
        ),
        ("work_hours", "tokens / (tokens_per_s_per_gpu * gpus) / seconds_per_hour", "training steps alone"),
        ("productive_hours", "work_hours * (1 + evaluation_fraction)", "with evaluations"),
        ("checkpoint_hours", "checkpoint_gb / checkpoint_write_gb_per_s / seconds_per_hour", "writing one checkpoint"),
        ("longest_interval_hours", "max(work_hours, checkpoint_hours)", "no interval is longer than the run"),
    )


def _stretches() -> list[LiveLine]:
    lines = []
    for end in ("", "_low", "_high"):
        lines += _stretch(end)
    return [
        *lines,
        *_lines(
            "interruptions",
            ("stretch_paid_ratio", "raw_stretch_ratio", "hours paid ÷ hours of work"),
            ("stretch_low_ratio", "min(raw_stretch_low_ratio, stretch_paid_ratio)", "at the low rates"),
            ("stretch_high_ratio", "max(raw_stretch_high_ratio, stretch_paid_ratio)", "at the high rates"),
            ("paid_hours", "productive_hours * stretch_paid_ratio + ramp_hours", "hours paid"),
            (
                "stretch_calendar_ratio",
                "stretch_paid_ratio * (1 + stops_per_hour * wait_hours)",
                "calendar hours ÷ hours of work",
            ),
            ("calendar_hours", "productive_hours * stretch_calendar_ratio + ramp_hours", "from start to end"),
            ("days", "calendar_hours / hours_per_day", "from start to end"),
            ("calendar_months", "calendar_hours / hours_per_month", "for storage"),
            *_spread(),
        ),
    ]


def _stretch(end: str) -> list[LiveLine]:
    """Daly's stretch at one of three rates; the best interval by Newton's method on ln(1-x) + x + rate*save = 0."""
    rate, load = f"stops{end}_per_hour", f"stops{end}_per_checkpoint_ratio"
    x = f"interval{end}_x"
    rows = [
        (
            rate,
            f"preemptions_per_node_hour{end} * nodes + failures_per_gpu_year{end} * gpus / hours_per_year",
            "interruptions of the whole job",
        ),
        (load, f"{rate} * checkpoint_hours", "interruptions while one checkpoint is written"),
        (f"{x}0", f"min((2 * {load}) ** (1 / 2), 1 - exp(-1 - {load}))", "first guess of rate × best interval"),
    ]
    for step in range(1, _NEWTON_STEPS + 1):
        old = f"{x}{step - 1}"
        safe = f"max({old}, {_TINY})"
        update = f"{old} + (log(1 - {safe}) + {safe} + {load}) * (1 - {safe}) / {safe}"
        rows.append((f"{x}{step}", f"where({old} > {_TINY}, {update}, {old})", f"Newton's step {step}"))
    best = f"{x}{_NEWTON_STEPS}"
    tau = f"interval{end}_hours"
    rows += [
        (tau, f"where({rate} > 0, min({best} / max({rate}, {_TINY} * {_TINY}), longest_interval_hours), longest_interval_hours)", "work between two checkpoints"),
        (f"raw_stretch{end}_ratio", f"where({rate} > {_TINY}, exp({rate} * restart_hours) * expm1({rate} * ({tau} + checkpoint_hours)) / max({rate} * {tau}, {_TINY} * {_TINY}), ({tau} + checkpoint_hours) / {tau})", "hours paid ÷ hours of work"),
    ]  # fmt: skip
    return _lines("interruptions", *rows)


def _spread() -> list[tuple[str, str, str]]:
    """Chance alone: the standard deviation of the hours paid, from the second moments of one segment."""
    u, v = "segment_stops_ratio", "restart_stops_ratio"
    return [
        ("segment_hours", "interval_hours + checkpoint_hours", "work and its checkpoint"),
        (u, "stops_per_hour * segment_hours", "interruptions per segment"),
        (v, "stops_per_hour * restart_hours", "interruptions per restart"),
        ("segment_odds_ratio", f"expm1({u})", "failures per success"),
        ("lost_hours", f"segment_hours * where({u} < series_limit_ratio, 1 / 2 - {u} / 12 + {u} ** 3 / 720, 1 / max({u}, tiny_ratio) - 1 / expm1(max({u}, tiny_ratio)))", "lost by a failure, mean (series where the closed form cancels)"),
        ("lost_square", f"segment_hours ** 2 * where({u} < series_limit_ratio, 1 / 3 - {u} / 12 + {u} ** 2 / 360 + {u} ** 3 / 720 - {u} ** 4 / 15120, 2 / max({u}, tiny_ratio) ** 2 - (1 + 2 / max({u}, tiny_ratio)) / expm1(max({u}, tiny_ratio)))", "and mean square, hours²"),
        ("again_hours", f"restart_hours * where({v} > tiny_ratio, expm1({v}) / max({v}, tiny_ratio), 1)", "lost to failed restarts, mean"),
        ("again_square", f"restart_hours ** 2 * where({v} < series_limit_ratio, {v} / 3 + {v} ** 2 / 3 + {v} ** 3 * 11 / 60 + {v} ** 4 * 13 / 180, (exp(2 * {v}) - 1 - 2 * {v} * exp({v})) / max({v}, tiny_ratio) ** 2) + again_hours ** 2", "and mean square, hours²"),
        ("segment_mean_hours", "segment_hours + segment_odds_ratio * (lost_hours + again_hours)", "one segment, mean"),
        ("segment_square", "segment_hours ** 2 + segment_odds_ratio * (lost_square + 2 * lost_hours * again_hours + again_square + 2 * (lost_hours + again_hours) * segment_mean_hours)", "and mean square, hours²"),
        ("stretch_spread_ratio", "where(stops_per_hour > tiny_ratio, max(segment_square - segment_mean_hours ** 2, 0) ** (1 / 2) * (work_hours / interval_hours) ** (1 / 2) / work_hours, 0)", "standard deviation ÷ hours of work"),
    ]  # fmt: skip


def _purchase() -> list[LiveLine]:
    step = "where(billing_increment_hours > 0, billing_increment_hours, 1)"
    return _lines(
        "purchase",
        ("term_hours", "term_months * hours_per_month", "hours of one term"),
        ("terms", "where(term_hours > 0, ceil(paid_hours / where(term_hours > 0, term_hours, 1) - slack_ratio), 0)", "consecutive contracts"),
        ("bound", "where(take_or_pay > 0, where(terms > 0, 1, 0), 0)", "1 where whole terms are owed"),
        ("rounded_hours", f"max(where(billing_increment_hours > 0, ceil(paid_hours / {step} - slack_ratio) * {step}, paid_hours), minimum_hours)", "rounded up to what can be bought"),
        ("billed_hours", "where(bound > 0, terms * term_hours, rounded_hours)", "hours owed per unit"),
        ("beyond_hours", "max(billed_hours - paid_hours, 0)", "owed and not used"),
        ("exposure_usd", "gpus * billed_hours * usd_per_gpu_hour", "everything that the contract obliges to pay"),
        ("months_due", "min(ceil(paid_hours / hours_per_month - slack_ratio), terms * term_months)", "instalments due by the end of the run"),
        ("cash_usd", "where(bound > 0, where(prepaid > 0, exposure_usd, gpus / gpus_per_unit * (terms * upfront_usd + months_due * hours_per_month * recurring_usd_per_hour)), exposure_usd)", "paid by the end of the run"),
        ("amortised_usd", "gpus * paid_hours * usd_per_gpu_hour", "hours used × effective price"),
        ("unused_usd", "exposure_usd - amortised_usd", "commitment that the run leaves idle"),
    )  # fmt: skip


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


def _totals() -> list[LiveLine]:
    def total(names: tuple[str, ...], what: str) -> str:
        return " + ".join(f"{name}_{what}" for name in names)

    slow, fast = "log(1 / speed_low_ratio) ** 2", "log(speed_high_ratio) ** 2"
    chance = "log(1 + z90_ratio * stretch_spread_ratio / stretch_paid_ratio) ** 2"
    moves = (
        "where(bound * charge_commitment > 0, 0, 1)"  # a term that is owed in whole costs the same however long the run
    )
    more, less = "log(stretch_high_ratio / stretch_paid_ratio) ** 2", "log(stretch_paid_ratio / stretch_low_ratio) ** 2"
    return _lines(
        "answers",
        ("cost_usd", total(tuple(_BILL), "cost_usd"), "the whole bill"),
        ("hours_cost_usd", total(_HOUR_LINES, "cost_usd"), "of which GPU-hours"),
        ("range_up_ratio", f"exp((log(price_high_ratio) ** 2 + {moves} * ({slow} + {more} + {chance})) ** (1 / 2))", "independent shares, added in squares"),
        ("range_down_ratio", f"exp(0 - (log(price_low_ratio) ** 2 + {moves} * ({fast} + {less} + {chance})) ** (1 / 2))", "independent shares, added in squares"),
        ("cost_low_usd", "min(round_cents(hours_cost_usd * range_down_ratio + cost_usd - hours_cost_usd), cost_usd)", "low end of the 80 % range"),
        ("cost_high_usd", "max(round_cents(hours_cost_usd * range_up_ratio + cost_usd - hours_cost_usd), cost_usd)", "high end of the 80 % range"),
        ("gpu_hours", total(_RUN_LINES, "quantity"), "GPU-hours of the run"),
        ("usd_per_mtok", "cost_usd / (tokens / tokens_per_mtok)", "per million trained tokens"),
        ("energy_kwh", "gpus * paid_hours * rated_power_w * power_fraction * pue_ratio / w_per_kw", "at the meter of the building"),
        ("kgco2e", "energy_kwh * grid_kgco2e_per_kwh", "location-based"),
    )  # fmt: skip
