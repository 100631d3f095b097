"""From rates to a bill: the arithmetic of one run's money, over arrays with one element per case.

Everything that a bill follows from is a column of `Factors`; `price_runs` turns factors into hours, lines and
totals. A workbook, a rerun and a what-if recompute an answer from its factors through the same function.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.money import bill, energy, rates, spot
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

P90_SIGMA = 1.2816  # standard deviations between the middle and the end of an 80 % range


class Factors(NamedTuple):
    """What a bill follows from, one element per case; `low` and `high` bound an 80 % range."""

    tokens: Floats  # trained tokens, epochs included
    gpus: Floats
    nodes: Floats
    gpus_per_unit: Floats  # accelerators in one unit of the offer
    tokens_per_s_per_gpu: Floats
    tokens_per_s_per_gpu_low: Floats
    tokens_per_s_per_gpu_high: Floats
    usd_per_gpu_hour: Floats
    price_low_ratio: Floats  # 1 unless the price is old
    price_high_ratio: Floats
    # the run beside the training steps
    evaluation_fraction: Floats
    experiments_fraction: Floats
    ramp_hours: Floats
    restart_hours: Floats
    wait_hours: Floats
    checkpoint_gb: Floats
    checkpoint_write_gb_per_s: Floats  # of the whole job
    preemptions_per_node_hour: Floats
    preemptions_per_node_hour_low: Floats
    preemptions_per_node_hour_high: Floats
    failures_per_gpu_year: Floats
    failures_per_gpu_year_low: Floats
    failures_per_gpu_year_high: Floats
    # terms of the purchase
    term_months: Floats
    take_or_pay: Floats  # 1 or 0
    charge_commitment: Floats  # 1 when the run pays for what it leaves unused
    minimum_hours: Floats
    billing_increment_hours: Floats
    upfront_usd: Floats
    recurring_usd_per_hour: Floats
    prepaid: Floats  # 1 or 0
    # services
    dataset_gb: Floats
    checkpoints_gb: Floats
    storage_usd_per_gb_month: Floats
    egress_gb: Floats
    egress_usd_per_gb: Floats
    # energy
    rated_power_w: Floats
    power_fraction: Floats
    pue_ratio: Floats
    grid_kgco2e_per_kwh: Floats

    def take(self, index: Any) -> "Factors":
        """Return the cases at `index`."""
        return Factors(*(column[index] for column in self))

    def row(self, index: int) -> dict[str, float]:
        """Return one case as plain numbers."""
        return {name: float(column[index]) for name, column in zip(self._fields, self, strict=True)}


# name, unit, source of the unit price, what it is
LINES = (
    ("compute", "GPU-hour", "offer", "training steps"),
    ("evaluation", "GPU-hour", "offer", "evaluations, data stalls and slower phases beside the steps"),
    ("failed and repeated work", "GPU-hour", "offer", "work lost to interruptions, restarts and checkpoint writes"),
    ("idle and ramp", "GPU-hour", "offer", "start-up, and hours rounded up to what can be bought"),
    ("unused commitment", "GPU-hour", "offer", "hours owed under the term and not used"),
    ("experiments", "GPU-hour", "offer", "trial runs before the run, when asked for"),
    ("dataset storage", "GB-month", "storage", "the tokens, while the run lasts"),
    ("checkpoint storage", "GB-month", "storage", "kept checkpoints, while the run lasts"),
    ("egress", "GB", "egress", "the final weights, out once"),
)
LINE_NAMES = tuple(line[0] for line in LINES)
_RUN_LINES = 4  # the first lines are hours of the run itself
_GPU_HOUR_LINES = 6


class Costs(NamedTuple):
    """What the factors lead to; `quantities`, `unit_prices_usd` and `costs_usd` have one row per line of `LINES`."""

    work_hours: Floats
    paid_hours: Floats
    calendar_days: Floats
    gpu_hours: Floats
    checkpoint_hours: Floats
    interval_hours: Floats
    interruptions: Floats
    stretch_paid_ratio: Floats
    stretch_calendar_ratio: Floats
    stretch_low_ratio: Floats
    stretch_high_ratio: Floats
    stretch_spread_ratio: Floats
    goodput_fraction: Floats
    quantities: Floats
    unit_prices_usd: Floats
    costs_usd: Floats
    cost_usd: Floats
    cost_low_usd: Floats
    cost_high_usd: Floats
    days_low: Floats
    days_high: Floats
    usd_per_mtok: Floats
    cash_usd: Floats
    amortised_usd: Floats
    exposure_usd: Floats
    unused_usd: Floats
    energy_kwh: Floats
    kgco2e: Floats

    def bill(self, index: int) -> list[dict[str, Any]]:
        """Return the lines of one case; lines of nothing are left out."""
        rows = []
        for line, (name, unit, _, note) in enumerate(LINES):
            if self.quantities[line, index] > 0:
                rows.append(
                    {
                        "name": name,
                        "quantity": float(self.quantities[line, index]),
                        "unit": unit,
                        "unit_price_usd": float(self.unit_prices_usd[line, index]),
                        "cost_usd": float(self.costs_usd[line, index]),
                        "note": note,
                    }
                )
        return rows


class _Interruptions(NamedTuple):
    """How interruptions lengthen the runs, at the typical rate and at its two ends."""

    checkpoint_hours: Floats
    interval_hours: Floats
    rate_per_hour: Floats
    paid_ratio: Floats
    low_ratio: Floats
    high_ratio: Floats
    spread_ratio: Floats


def _rate_per_hour(f: Factors, preemptions: Floats, failures: Floats) -> Floats:
    return spot.gang_rate_per_hour(preemptions, f.nodes) + spot.rate_from_gpu_years(failures, f.gpus)


def _interruptions(f: Factors, work_hours: Floats) -> _Interruptions:
    """Choose the best interval at each rate and return the stretches; without interruptions nothing is saved."""
    save = f.checkpoint_gb / f.checkpoint_write_gb_per_s / SECONDS_PER_HOUR

    def stretch(preemptions: Floats, failures: Floats) -> tuple[Floats, Floats, Floats]:
        rate = _rate_per_hour(f, preemptions, failures)
        interval = np.minimum(spot.optimal_interval_hours(rate, save), np.maximum(work_hours, save))
        return rate, interval, spot.stretch_ratio(rate, interval, save, f.restart_hours)

    rate, interval, typical = stretch(f.preemptions_per_node_hour, f.failures_per_gpu_year)
    low = stretch(f.preemptions_per_node_hour_low, f.failures_per_gpu_year_low)[2]
    high = stretch(f.preemptions_per_node_hour_high, f.failures_per_gpu_year_high)[2]
    spread = spot.stretch_spread_ratio(rate, interval, save, f.restart_hours, work_hours)
    return _Interruptions(save, interval, rate, typical, np.minimum(low, typical), np.maximum(high, typical), spread)


def _purchase(f: Factors, paid_hours: Floats) -> rates.Purchase:
    return rates.purchase(
        paid_hours,
        f.gpus / f.gpus_per_unit,
        f.usd_per_gpu_hour * f.gpus_per_unit,
        term_months=f.term_months,
        take_or_pay=f.take_or_pay > 0,
        minimum_hours=f.minimum_hours,
        increment_hours=f.billing_increment_hours,
        upfront_usd=f.upfront_usd,
        recurring_usd_per_hour=f.recurring_usd_per_hour,
        prepaid=f.prepaid > 0,
    )


def _quantities(
    f: Factors, work_hours: Floats, stops: _Interruptions, bought: rates.Purchase, months: Floats
) -> Floats:
    """Return the quantity of every line, one row per line of `LINES`."""
    productive = work_hours * (1 + f.evaluation_fraction)
    paid = productive * stops.paid_ratio + f.ramp_hours
    bound = (f.take_or_pay > 0) & (bought.terms > 0)
    beyond = np.maximum(bought.billed_hours - paid, 0.0)
    return np.stack(
        (
            f.gpus * work_hours,
            f.gpus * work_hours * f.evaluation_fraction,
            f.gpus * productive * (stops.paid_ratio - 1),
            f.gpus * (f.ramp_hours + np.where(bound, 0.0, beyond)),
            f.gpus * np.where(bound & (f.charge_commitment > 0), beyond, 0.0),
            f.gpus * work_hours * f.experiments_fraction,
            f.dataset_gb * months,
            f.checkpoints_gb * months,
            f.egress_gb,
        )
    )


def _cost_range(f: Factors, stops: _Interruptions, owed: Flags, costs: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Return low and high: independent shares of speed, price age, interruption rate and chance, added in squares.

    A term that is owed in whole costs the same however long the run takes: only its price is uncertain.
    """
    hours_usd = bill.total_usd(costs[:_GPU_HOUR_LINES])
    fast, slow = _pace(f, stops)
    chance = np.log1p(P90_SIGMA * stops.spread_ratio / stops.paid_ratio)
    moves = np.where(owed, 0.0, 1.0)
    up = np.sqrt(np.log(f.price_high_ratio) ** 2 + moves * (np.log(slow) ** 2 + chance**2))
    down = np.sqrt(np.log(f.price_low_ratio) ** 2 + moves * (np.log(fast) ** 2 + chance**2))
    rest = total - hours_usd
    low, high = bill.round_cents(hours_usd * np.exp(-down) + rest), bill.round_cents(hours_usd * np.exp(up) + rest)
    return np.minimum(low, total), np.maximum(high, total)


def _pace(f: Factors, stops: _Interruptions) -> tuple[Floats, Floats]:
    """Return how much shorter and longer a run may be: shares of speed and interruptions, added in squares."""
    speed = f.tokens_per_s_per_gpu
    fast = np.hypot(np.log(f.tokens_per_s_per_gpu_high / speed), np.log(stops.paid_ratio / stops.low_ratio))
    slow = np.hypot(np.log(speed / f.tokens_per_s_per_gpu_low), np.log(stops.high_ratio / stops.paid_ratio))
    return np.exp(fast), np.exp(slow)


def _unit_prices(f: Factors) -> Floats:
    services = (f.storage_usd_per_gb_month, f.storage_usd_per_gb_month, f.egress_usd_per_gb)
    return np.stack((*(f.usd_per_gpu_hour,) * _GPU_HOUR_LINES, *services))


def price_runs(f: Factors) -> Costs:
    """Turn factors into hours, lines, totals, ranges, contract views, energy and carbon.

    hours = tokens ÷ (tokens/s/GPU × GPUs × 3,600), × (1 + evaluation) × stretch + ramp; each line is quantity × unit
    price to the cent and the total is the sum of the rounded lines.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        work_hours = f.tokens / (f.tokens_per_s_per_gpu * f.gpus) / SECONDS_PER_HOUR
        stops = _interruptions(f, work_hours)
        productive = work_hours * (1 + f.evaluation_fraction)
        paid_hours = productive * stops.paid_ratio + f.ramp_hours
        calendar = spot.calendar_ratio(stops.paid_ratio, stops.rate_per_hour, f.wait_hours)
        calendar_hours = productive * calendar + f.ramp_hours
        bought = _purchase(f, paid_hours)
        quantities = _quantities(f, work_hours, stops, bought, calendar_hours / HOURS_PER_MONTH)
        unit_prices = _unit_prices(f)
        costs = bill.line_cost_usd(quantities, unit_prices)
        total = bill.total_usd(costs)
        owed = (f.take_or_pay > 0) & (bought.terms > 0) & (f.charge_commitment > 0)
        low, high = _cost_range(f, stops, owed, costs, total)
        fast, slow = _pace(f, stops)
        gpu_hours = quantities[:_RUN_LINES].sum(axis=0)
        used_kwh = energy.energy_kwh(f.gpus * paid_hours, f.rated_power_w, f.power_fraction, f.pue_ratio)
    return Costs(
        work_hours=work_hours,
        paid_hours=paid_hours,
        calendar_days=calendar_hours / 24,
        gpu_hours=gpu_hours,
        checkpoint_hours=stops.checkpoint_hours,
        interval_hours=stops.interval_hours,
        interruptions=stops.rate_per_hour * paid_hours,
        stretch_paid_ratio=stops.paid_ratio,
        stretch_calendar_ratio=calendar,
        stretch_low_ratio=stops.low_ratio,
        stretch_high_ratio=stops.high_ratio,
        stretch_spread_ratio=stops.spread_ratio,
        goodput_fraction=spot.goodput_fraction(stops.paid_ratio),
        quantities=quantities,
        unit_prices_usd=unit_prices,
        costs_usd=costs,
        cost_usd=total,
        cost_low_usd=low,
        cost_high_usd=high,
        days_low=calendar_hours / 24 / fast,
        days_high=calendar_hours / 24 * slow,
        usd_per_mtok=total / (f.tokens / 1e6),
        cash_usd=bought.cash_usd,
        amortised_usd=bought.amortised_usd,
        exposure_usd=bought.exposure_usd,
        unused_usd=bought.unused_usd,
        energy_kwh=used_kwh,
        kgco2e=energy.carbon_kgco2e(used_kwh, f.grid_kgco2e_per_kwh),
    )


def factors_from(mapping: Mapping[str, float]) -> Factors:
    """Build the factors of one case from plain numbers; keys that are not factors are ignored."""
    return Factors(*(np.array([float(mapping[name])]) for name in Factors._fields))


def recompute(factors: Mapping[str, float], **changes: float) -> dict[str, Any]:
    """Recompute the money of one answer from its factors, some of them changed by name.

    Cluster and layout stay as they are; the low and high speeds move with the typical one.
    """
    case = factors_from(factors)
    if "tokens_per_s_per_gpu" in changes:
        moved = changes["tokens_per_s_per_gpu"] / case.tokens_per_s_per_gpu
        case = case._replace(
            tokens_per_s_per_gpu_low=case.tokens_per_s_per_gpu_low * moved,
            tokens_per_s_per_gpu_high=case.tokens_per_s_per_gpu_high * moved,
        )
    case = case._replace(**{name: np.array([float(value)]) for name, value in changes.items()})
    return outcome(price_runs(case), 0)


def outcome(costs: Costs, index: int) -> dict[str, Any]:
    """Return one case's outcome as plain numbers and lines."""
    numbers = {
        name: float(column[index])
        for name, column in zip(Costs._fields, costs, strict=True)
        if name not in ("quantities", "unit_prices_usd", "costs_usd")
    }
    return {**numbers, "days": numbers["calendar_days"], "lines": costs.bill(index)}
