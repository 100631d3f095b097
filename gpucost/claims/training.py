"""Claims about training runs: time, speed and cost against physics and prices."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, UNKNOWN, Check, amount, worst
from gpucost.market.assumptions import EVALUATION_FRACTION
from gpucost.physics.hardware import half_precision, peak
from gpucost.types import Accelerator
from gpucost.units import HOURS_PER_DAY, SECONDS_PER_DAY, TERA
from gpucost.words import OFFLOADS
from gpucost.workloads.own_speed import BEYOND_PEAK
from gpucost.workloads.speeds import Speeds, key_of, search_layouts
from gpucost.workloads.training import Sizes, Workload

_TRAINING_PRECISIONS = ("bf16", "fp16", "fp8")
_CHEAPEST_PLAUSIBLE, _DEAREST_PLAUSIBLE = 0.7, 1.5  # of the lowest and highest known price
_DOUBLINGS = 12  # of a node, that are tried where a claim names no number of accelerators
END_TO_END_HOURS_RATIO = 1 + EVALUATION_FRACTION.value  # hours of whole runs ÷ those of their steps


class Run(NamedTuple):
    """A claimed run; where no number of accelerators is claimed, its days are those of the number it is judged by."""

    tokens: float
    gpus: int
    days: float
    counted: bool  # whether a number of accelerators is claimed
    offload: str = ""  # with which it fits where it does not without

    @property
    def unit(self) -> tuple[str, float]:
        """The unit that the run is claimed in, and how many of it one day is."""
        return ("days", 1.0) if self.counted else ("GPU-hours", self.gpus * HOURS_PER_DAY)


def most_favourable(candidates: list[Accelerator], precision: str | None) -> Accelerator:
    """Return the candidate that makes a claim easiest: highest peak, most memory, fastest memory and links."""

    def order(item: Accelerator) -> tuple[float, float, float, float, str]:
        fastest = float(np.nan_to_num(peak(item, precision or half_precision(item)).tflops))
        return -fastest, -item.memory_gib, -item.hbm_gb_per_s, -item.scaleup_gb_per_s, item.id

    return min(candidates, key=order)


def speed_of(catalog: Catalog, workload: Workload, accelerator: Accelerator, gpus: int) -> Speeds:
    """Return the best layout's speed on the accelerator's usual node."""
    return search_layouts(workload, [key_of(catalog, accelerator.id)], np.array([gpus]), training_calibration(catalog))


def fitting_offload(catalog: Catalog, workload: Workload, accelerator: Accelerator, gpus: int) -> str:
    """Return how much must lie in the host's memory for a run that does not fit without; nothing where none helps."""
    more = OFFLOADS[OFFLOADS.index(workload.offload) + 1 :]
    tried = ((name, speed_of(catalog, replace(workload, offload=name), accelerator, gpus)) for name in more)
    return next((name for name, speed in tried if speed.fits[0]), "")


def best_count(catalog: Catalog, workload: Workload, accelerator: Accelerator) -> int:
    """Return how many of an accelerator, in doublings of its usual node, need the fewest hours of them for a run."""
    key = key_of(catalog, accelerator.id)
    counts = key.system.gpus * 2 ** np.arange(_DOUBLINGS + 1)
    found = search_layouts(workload, [key] * len(counts), counts, training_calibration(catalog))
    return int(counts[np.argmax(np.where(found.fits, found.tokens_per_s_per_gpu, 0.0))])


def implied_mfu(flop: float, accelerator: Accelerator, precision: str, gpus: int, seconds: float) -> float | None:
    """Return the share of the dense peak that doing `flop` in that time needs: FLOP ÷ (accelerators × peak × s).

    8.03e9 parameters × 6 × 100e9 tokens in 8 days on 8 A100 at 312 TFLOPS: 4.82e21 ÷ 1.73e21 = 279 %.
    """
    dense = peak(accelerator, precision).tflops
    return None if np.isnan(dense) else flop / (gpus * dense * TERA * seconds)


def check_time(
    workload: Workload, sizes: Sizes, run: Run, accelerator: Accelerator, speed: Speeds, given: bool
) -> Check:
    """Judge a claimed duration by the MFU that it implies."""
    tokens, gpus, days, counted, _ = run
    unit, of_day = run.unit
    flop, seconds = sizes.model_flop_per_token * tokens, days * SECONDS_PER_DAY
    precision = workload.precision_on(accelerator)
    implied = implied_mfu(flop, accelerator, precision, gpus, seconds)
    low, typical, high = (None if found is None else found * of_day for found in true_days(tokens, gpus, speed))
    claimed = days * of_day
    if implied is None:
        words = f"{accelerator.id} has no {precision} matrix units; name another --precision."
        return Check("duration", IMPOSSIBLE, claimed, low, typical, high, unit, words)
    work = f"{flop:.3g} FLOP in {amount(claimed, 4)} {unit} {f'on {gpus} ×' if counted else 'of'} {accelerator.id}"
    words = f"{work} need {implied:.0%} of the dense {precision} peak."
    verdict = POSSIBLE
    fastest = _fastest_precision(accelerator, precision, given)
    at_best = implied_mfu(flop, accelerator, fastest, gpus, seconds) or implied
    if implied > 1 and (fastest == precision or at_best > 1):
        verdict, words = IMPOSSIBLE, words + f" {BEYOND_PEAK}"
    elif implied > 1:
        verdict, words = IMPLAUSIBLE, f"{words} Impossible in {precision}; in {fastest} it is {at_best:.0%}."
    elif low is not None and high is not None and not low <= claimed <= high:
        verdict = IMPLAUSIBLE
        words += " No measured software comes near it." if claimed < low else " Usual software needs less time."
    if typical is None and run.offload:
        verdict = worst([verdict, IMPLAUSIBLE])
        words = (
            f"{words} The run fits in the memory of {gpus} only with the host's beside it (--offload {run.offload})."
        )
    elif typical is None and counted:
        verdict, words = IMPOSSIBLE, f"{words} The run does not fit in the memory of {gpus}."
    elif typical is None:
        verdict, words = worst([verdict, IMPLAUSIBLE]), f"{words} No usual number of them holds the run in its memory."
    return Check("duration", verdict, claimed, low, typical, high, unit, words)


def _fastest_precision(accelerator: Accelerator, precision: str, given: bool) -> str:
    """Return the precision by which a claim is judged impossible: the stated one, else the chip's fastest."""
    if given:
        return precision
    return max(_TRAINING_PRECISIONS, key=lambda name: np.nan_to_num(peak(accelerator, name).tflops))


def true_days(tokens: float, gpus: int, speed: Speeds) -> tuple[float | None, float | None, float | None]:
    """Return the days that a run takes, low, typical and high, with the usual end-to-end overhead."""
    if not speed.fits[0]:
        return None, None, None
    rates = (speed.tokens_per_s_per_gpu_high, speed.tokens_per_s_per_gpu, speed.tokens_per_s_per_gpu_low)
    low, typical, high = (tokens / (float(rate[0]) * gpus) / SECONDS_PER_DAY * END_TO_END_HOURS_RATIO for rate in rates)
    return low, typical, high


def prices(catalog: Catalog, accelerator: Accelerator) -> list[float]:
    """Return what an hour of the accelerator costs across offers, cheapest first."""
    return sorted(offer.usd_per_gpu_hour for offer in catalog.offers(accelerator.id) if not offer.term_months)


def check_price(gpu_hours: float, cost_usd: float, known: list[float], accelerator: Accelerator) -> Check:
    """Judge a claimed cost by the price per accelerator-hour that it implies."""
    implied = cost_usd / gpu_hours
    words = f"{cost_usd:,.0f} USD for {gpu_hours:,.0f} accelerator-hours is {implied:.2f} USD an hour."
    if not known:
        words += f" No price of {accelerator.id} is known."
        return Check("price", UNKNOWN, implied, None, None, None, "USD per GPU-hour", words)
    low, high, middle = known[0], known[-1], float(np.median(known))
    ok = low * _CHEAPEST_PLAUSIBLE <= implied <= high * _DEAREST_PLAUSIBLE
    words += f" Known prices run from {low:.2f} to {high:.2f}, median {middle:.2f}."
    return Check("price", POSSIBLE if ok else IMPLAUSIBLE, implied, low, middle, high, "USD per GPU-hour", words)


def check_cost(cost_usd: float, tokens: float, speed: Speeds, known: list[float]) -> Check | None:
    """Judge a claimed cost by the hours that the run really takes and the prices that are known."""
    low_days, typical_days, high_days = true_days(tokens, 1, speed)
    if not known or low_days is None or typical_days is None or high_days is None:
        return None
    low, high = low_days * HOURS_PER_DAY * known[0], high_days * HOURS_PER_DAY * known[-1]
    hours = typical_days * HOURS_PER_DAY
    typical = hours * float(np.median(known))
    verdict = POSSIBLE if low <= cost_usd <= high else IMPLAUSIBLE
    words = f"The run takes about {hours:,.0f} accelerator-hours, whatever the cluster."
    if cost_usd < low:
        words += f" Even the cheapest known hour ({known[0]:.2f} USD) on the fastest software costs more than claimed."
        verdict = IMPOSSIBLE if cost_usd < low / 1.5 else IMPLAUSIBLE
    return Check("cost", verdict, cost_usd, low, typical, high, "USD", words)
