"""From a claim to its verdict: read it, run the checks that it allows, say what would be true."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from gpucost.answers.checks import Audit, CheckRow
from gpucost.answers.common import frame
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.market.facts import Rentable, rentable
from gpucost.market.interruptions import EVALUATION_FRACTION
from gpucost.money.cashflow import annuity_usd, simple_payback_months
from gpucost.options import is_plain
from gpucost.physics.columns import PRECISIONS, VALUE_BYTES, code_of
from gpucost.physics.hardware import half_precision, peak, peak_share
from gpucost.physics.serving.roof import decode_roof
from gpucost.physics.training.layouts import latest_year
from gpucost.physics.training.memory_recipe import state_bytes
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB, GIB, HOURS_PER_DAY, HOURS_PER_MONTH, SECONDS_PER_DAY
from gpucost.workloads.deployment import ModelDeployment, deployed, offloaded, served, served_weights_gb, timed
from gpucost.workloads.service import Service
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import BEYOND_PEAK, Sizes, Workload, make_workload, sizes

# --- A claim, and one check of it: what was claimed, what it implies, what would be true, and the verdict.

POSSIBLE, IMPLAUSIBLE, IMPOSSIBLE, UNKNOWN = "possible", "implausible", "impossible", "unknown"
_ORDER = (POSSIBLE, UNKNOWN, IMPLAUSIBLE, IMPOSSIBLE)


class Claim(NamedTuple):
    """What someone says; None is not said."""

    model: str | None = None
    tokens: float | None = None
    gpu: str | None = None
    gpus: int | None = None
    days: float | None = None
    gpu_hours: float | None = None
    cost_usd: float | None = None
    precision: str | None = None
    method: str = "full"
    sequence_tokens: int | None = None
    fits: str | None = None
    weights_gb: float | None = None
    training_gb: float | None = None
    decode_tokens_per_s: float | None = None
    batch: int | None = None
    buy_usd: float | None = None
    rent_usd_per_month: float | None = None
    own_usd_per_month: float | None = None
    payback_months: float | None = None
    gpu_hours_per_month: float | None = None
    discount_fraction: float = 0.10


class Check(NamedTuple):
    """One check; `value` is what the claim says or implies, `low`, `typical` and `high` are what would be true."""

    name: str
    verdict: str
    value: float | None
    low: float | None
    typical: float | None
    high: float | None
    unit: str
    explanation: str


def amount(value: float, digits: int = 2) -> str:
    """Write an amount in words: whole where it has enough digits before the point, else to so many digits.

    >>> amount(1_285_000), amount(57.2), amount(4.73), amount(0.1234), amount(1.953125, 4)
    ('1,285,000', '57', '4.7', '0.12', '1.953')
    """
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of several verdicts.

    >>> worst(["possible", "impossible", "implausible"])
    'impossible'
    """
    return max(verdicts, key=_ORDER.index) if verdicts else UNKNOWN


# --- Claims about memory: the size of weights, of training states, and whether a model fits.

LEANEST_OPTIMIZER = "adamw-8bit-bf16"  # 16-bit weights and gradients, 8-bit moments, no master copy
_TOLERANCE = 0.10
STORED_FORMATS = {"fp4": "nvfp4"}
SERVED_FORMATS = {**STORED_FORMATS, "fp32": "bf16", "tf32": "bf16"}  # engines serve no 32-bit weights
FITTED_PROMPT_TOKENS, FITTED_OUTPUT_TOKENS = 1024.0, 256.0  # as `fit --serving` asks where nothing is said
_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)


def check_weights(claimed_gb: float, catalog: Catalog, workload: Workload, precision: str) -> Check:
    """Judge a claimed size of weights: from parameters × bytes to what a file holds, whose ends stay at 16 bits.

    70.6e9 parameters are 70.6 GB in FP8 and 282 GB in FP32; in 4 bits 35.3 GB, and 39.8 GB as AWQ files have them.
    """
    parameters = sizes(workload).parameters
    true = parameters * VALUE_BYTES[precision] / GB
    form = STORED_FORMATS.get(precision, precision)
    held = max(true, served_weights_gb(catalog, workload.architecture, form)) if VALUE_BYTES[precision] < 2 else true
    reason = f"{parameters:,.0f} parameters × {VALUE_BYTES[precision]:g} bytes in {precision} are {true:,.1f} GB."
    if held > true * 1.01:
        reason += f" With scales, and embeddings in 16 bits, engines hold {held:,.1f} GB."
    same = [name for name, size in VALUE_BYTES.items() if abs(parameters * size / GB / claimed_gb - 1) < _TOLERANCE]
    ok = true * (1 - _TOLERANCE) <= claimed_gb <= held * (1 + _TOLERANCE)
    if not ok and same:
        reason += f" {claimed_gb:g} GB is their size in {same[0]}."
    return Check("weights", POSSIBLE if ok else IMPOSSIBLE, claimed_gb, true, true, held * 1.05, "GB", reason)


def check_training_memory(claimed_gb: float, sizes: Sizes, method: str) -> Check:
    """Judge a claimed total of training memory: states alone are 16 bytes per trained parameter, before activations."""
    parameters, trained = sizes.parameters, sizes.trained_parameters
    true = state_bytes(parameters, trained, method) / GB
    leanest = state_bytes(parameters, trained, method, LEANEST_OPTIMIZER) / GB if method == "full" else true
    reason = (
        f"Weights, gradients and AdamW states take {true:,.0f} GB in mixed precision (16 bytes per trained parameter),"
        " before activations."
    )
    if claimed_gb < leanest:
        verdict = IMPOSSIBLE
    elif claimed_gb < true * (1 - _TOLERANCE):
        verdict = IMPLAUSIBLE
        reason += f" Only pure 16-bit training with 8-bit states comes down to {leanest:,.0f} GB."
    else:
        verdict = POSSIBLE
    return Check("training memory", verdict, claimed_gb, true, true * 1.2, true * 2.0, "GB", reason)


def check_fits_training(
    catalog: Catalog, workload: Workload, sizes: Sizes, accelerator: Accelerator, gpus: int
) -> Check:
    """Judge whether training fits on a number of accelerators, and find the smallest number that it does fit on."""
    key = key_of(catalog, accelerator.id)
    counts = np.array(sorted({*_COUNTS, gpus}), np.int64)
    speeds = timed(catalog, workload, [key] * len(counts), counts.tolist())
    states = state_bytes(sizes.parameters, sizes.trained_parameters, workload.method) / GB
    have = gpus * accelerator.memory_gib * GIB / GB
    fitting = counts[speeds.fits]
    fewest = float(fitting[0]) if len(fitting) else None
    reason = (
        f"{workload.method} training of {workload.architecture.name} needs {states:,.0f} GB of states and {gpus} ×"
        f" {accelerator.id} hold {have:,.0f} GB."
    )
    if bool(speeds.fits[counts == gpus][0]):
        return Check("fits", POSSIBLE, float(gpus), fewest, fewest, None, "GPUs", f"{reason} It fits.")
    if states <= have:
        reason += " The states fit, activations beside them do not in any layout."
    if workload.offload == "none":
        reason += " Without offloading states to the host it does not fit."
    if fewest is not None:
        reason += f" The smallest of the usual counts that it fits on is {fewest:g}."
    return Check("fits", IMPOSSIBLE, float(gpus), fewest, fewest, None, "GPUs", reason)


def check_fits_serving(
    catalog: Catalog, architecture: Architecture, precision: str, accelerator: Accelerator, gpus: int
) -> Check:
    """Judge whether a model fits for serving, by the deployments that `fit --serving` finds; else by its weights."""
    form = SERVED_FORMATS.get(precision, precision)
    key = key_of(catalog, accelerator.id)
    asked = Service(prompt_tokens=FITTED_PROMPT_TOKENS, output_tokens=FITTED_OUTPUT_TOKENS, precision=form)
    plans = served(catalog, architecture, [key], asked)
    serving = plans.gpus[plans.serves]
    fewest = float(serving.min()) if len(serving) else None
    weights = served_weights_gb(catalog, architecture, form)
    have = gpus * accelerator.memory_gib * GIB / GB
    reason = f"Weights take {weights:,.1f} GB in {form} and {gpus} × {accelerator.id} hold {have:,.0f} GB."
    verdict = POSSIBLE if fewest is not None and fewest <= gpus else IMPLAUSIBLE if weights < have else IMPOSSIBLE
    if verdict != POSSIBLE and fewest is not None:
        reason += f" With room for the KV cache it takes {fewest:g}."
    return Check("fits", verdict, float(gpus), fewest, fewest, None, "GPUs", reason)


# --- Claims about payback: what buying saves each month against what it costs, and how busy the cluster would be.

_BUSY_FRACTION = 0.8
_MONTHS = 60  # over which owning and renting are compared


def check_payback(claim: Claim) -> list[Check]:
    """Judge what a claim says of payback: its arithmetic, how busy the cluster is, and what discounting does to it."""
    buy, rent, own_usd = claim.buy_usd, claim.rent_usd_per_month, claim.own_usd_per_month or 0.0
    if buy is None and rent is None:
        return []
    if buy is None or rent is None:
        raise UsageError("a payback claim needs both --buy and --rent-monthly.")
    checks = [_arithmetic(buy, rent, own_usd, claim.payback_months)]
    if claim.gpus and claim.gpu_hours_per_month:
        checks.append(_utilisation(claim.gpus, claim.gpu_hours_per_month))
    return [*checks, _discounted(buy, rent, own_usd, claim.discount_fraction)]


def _arithmetic(buy: float, rent: float, own_usd: float, claimed: float | None) -> Check:
    true = simple_payback_months(buy, rent, own_usd)
    reason = f"{buy:,.0f} USD ÷ ({rent:,.0f} − {own_usd:,.0f}) USD a month is {true:,.1f} months."
    if rent <= own_usd:
        reason, verdict = "Owning costs as much each month as renting: it never pays back.", IMPOSSIBLE
    else:
        verdict = POSSIBLE if claimed is None or abs(claimed / true - 1) <= _TOLERANCE else IMPOSSIBLE
    finite = true if np.isfinite(true) else None
    return Check("payback", verdict, claimed, finite, finite, finite, "months", reason)


def _utilisation(gpus: int, hours_per_month: float) -> Check:
    """Judge how many of the owned hours the claim uses; a cluster that stands idle is the wrong size."""
    used = hours_per_month / (gpus * HOURS_PER_MONTH)
    enough = int(np.ceil(hours_per_month / (HOURS_PER_MONTH * _BUSY_FRACTION) - 0.5))
    reason = (
        f"{hours_per_month:,.0f} of {gpus * HOURS_PER_MONTH:,.0f} hours a month is {used:.0%}; about"
        f" {max(enough, 1)} GPUs at 80 % do the same."
    )
    verdict = IMPOSSIBLE if used > 1 else POSSIBLE if used >= _BUSY_FRACTION / 2 else IMPLAUSIBLE
    return Check("utilisation", verdict, used, _BUSY_FRACTION / 2, _BUSY_FRACTION, 1.0, "fraction of one", reason)


def _discounted(buy: float, rent: float, own_usd: float, fraction: float) -> Check:
    renting, owning = (annuity_usd(monthly, _MONTHS, fraction) for monthly in (rent, own_usd))
    owning += buy
    reason = (
        f"At {fraction:.0%} a year over {_MONTHS} months, without resale, renting costs {renting:,.0f} USD and owning"
        f" {owning:,.0f} USD today: {'renting' if renting < owning else 'owning'} is cheaper."
    )
    verdict = POSSIBLE if owning <= renting else IMPLAUSIBLE
    return Check("present value", verdict, owning, None, renting, None, "USD", reason)


# --- Claims about serving speed: the bandwidth roof of decoding and the compute roof of batches.

_BEST_SHARE = 0.85  # of the roof, reached by the best engines
_USUAL_SHARE = 0.6
LARGEST_BATCH = 4096  # sequences; above it no engine is known to decode


def check_decode(
    claimed_tokens_per_s: float,
    architecture: Architecture,
    precision: str,
    accelerator: Accelerator,
    gpus: int,
    batch: int | None,
) -> Check:
    """Judge output tokens per second against the roof of decoding: the reading of the weights, and the peak.

    Without a stated batch the claim is judged by the batch that suits it best, and the answer says which it needs.
    """
    roofs = decode_roof(architecture, accelerator, precision, gpus)
    roof, roof_name = roofs.at(batch or LARGEST_BATCH)
    stated = f"at batch {batch}" if batch else "at any batch"
    reason = (
        f"{gpus} × {accelerator.id} can decode at most {roof:,.0f} tokens/s {stated} ({roof_name} roof,"
        f" {roofs.weights_gb:,.1f} GB of weights per step)."
    )
    needed = ceil(roofs.sequences_for(claimed_tokens_per_s / _BEST_SHARE))
    if batch is None and needed > 1:
        single, _ = roofs.at(1)
        reason += f" One sequence gets at most {single:,.0f}: the claim needs a batch of {needed:,} or more (--batch)."
    verdict = IMPLAUSIBLE if claimed_tokens_per_s > roof * _BEST_SHARE else POSSIBLE
    if claimed_tokens_per_s > roof:
        verdict = IMPOSSIBLE
    return Check(
        "decode speed", verdict, claimed_tokens_per_s, 0.0, roof * _USUAL_SHARE, roof, "tokens per second", reason
    )


# --- Claims about training runs: time, speed and cost against physics and prices.

_TRAINING_PRECISIONS = ("bf16", "fp16", "fp8")
_CHEAPEST_PLAUSIBLE, _DEAREST_PLAUSIBLE = 0.7, 1.5  # of the lowest and highest known price
_DOUBLINGS = 12  # of a node, that are tried where a claim names no number of accelerators
# Hours of a whole run against the slow end of its steps with the usual overhead: restarts, evaluation and idle time
# that nobody states. Of the 25 runs of docs/published-runs.md three took longer than that end, the longest 1.8 times.
WHOLE_RUN_RATIO = 2.0
END_TO_END_HOURS_RATIO = 1 + EVALUATION_FRACTION.value  # hours of whole runs ÷ those of their steps


class ClaimedRun(NamedTuple):
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


def fastest_trainer(
    catalog: Catalog, workload: Workload, candidates: list[Accelerator], precision: str | None, gpus: int
) -> Accelerator:
    """Return the candidate that trains a workload fastest in its node, by the same speeds as every other question.

    The peaks of a card and of a module may be equal where their links are not: A100 40GB as PCIe and as SXM.
    """

    def speed(item: Accelerator) -> float:
        chosen = replace(workload, precision=precision or half_precision(item))
        found = deployment_of(catalog, chosen, item, gpus)
        return found.tokens_per_s_per_gpu if found.fits else 0.0

    speeds = {item.id: speed(item) for item in candidates}
    best = max(speeds.values())
    return most_favourable([item for item in candidates if speeds[item.id] == best], precision)


def deployment_of(catalog: Catalog, workload: Workload, accelerator: Accelerator, gpus: int) -> ModelDeployment:
    """Return the fastest deployment on the accelerator's usual node."""
    return deployed(catalog, workload, key_of(catalog, accelerator.id), gpus)


def fitting_offload(catalog: Catalog, workload: Workload, accelerator: Accelerator, gpus: int) -> str:
    """Return how much must lie in the host's memory for a run that does not fit without; nothing where none helps."""
    return offloaded(catalog, workload, key_of(catalog, accelerator.id), gpus)


def best_count(catalog: Catalog, workload: Workload, accelerator: Accelerator) -> int:
    """Return how many of an accelerator, in doublings of its usual node, need the fewest hours of them for a run."""
    key = key_of(catalog, accelerator.id)
    counts = key.system.gpus * 2 ** np.arange(_DOUBLINGS + 1)
    speeds = timed(catalog, workload, [key] * len(counts), counts.tolist())
    return int(counts[np.argmax(np.where(speeds.fits, speeds.tokens_per_s_per_gpu, 0.0))])


def implied_mfu(flop: float, accelerator: Accelerator, precision: str, gpus: int, seconds: float) -> float | None:
    """Return the share of the dense peak that doing `flop` in that time needs: FLOP ÷ (accelerators × peak × s).

    8.03e9 parameters × 6 × 100e9 tokens in 8 days on 8 A100 at 312 TFLOPS: 4.82e21 ÷ 1.73e21 = 279 %.
    """
    share = peak_share(accelerator, precision, flop / (gpus * seconds))
    return None if np.isnan(share) else share


def check_time(
    workload: Workload, sizes: Sizes, run: ClaimedRun, found: ModelDeployment, precision_stated: bool
) -> Check:
    """Judge a claimed duration by the MFU that it implies."""
    tokens, gpus, days, counted, _ = run
    accelerator = found.key.accelerator
    unit, of_day = run.unit
    flop, seconds = sizes.model_flop_per_token * tokens, days * SECONDS_PER_DAY
    precision = workload.precision_on(accelerator)
    implied = implied_mfu(flop, accelerator, precision, gpus, seconds)
    low, typical, high = (None if end is None else end * of_day for end in true_days(tokens, found))
    claimed = days * of_day
    if implied is None:
        reason = f"{accelerator.id} has no {precision} matrix units; name another --precision."
        return Check("duration", IMPOSSIBLE, claimed, low, typical, high, unit, reason)
    work = f"{flop:.3g} FLOP in {amount(claimed, 4)} {unit} {f'on {gpus} ×' if counted else 'of'} {accelerator.id}"
    reason = f"{work} need {implied:.0%} of the dense {precision} peak."
    verdict = POSSIBLE
    fastest = _fastest_precision(accelerator, precision, precision_stated)
    at_best = implied_mfu(flop, accelerator, fastest, gpus, seconds) or implied
    if implied > 1 and (fastest == precision or at_best > 1):
        verdict, reason = IMPOSSIBLE, reason + f" {BEYOND_PEAK}"
    elif implied > 1:
        verdict, reason = IMPLAUSIBLE, f"{reason} Impossible in {precision}; in {fastest} it is {at_best:.0%}."
    elif low is not None and claimed < low:
        verdict, reason = IMPLAUSIBLE, f"{reason} No measured software comes near this."
    elif high is not None and claimed > high * WHOLE_RUN_RATIO:
        verdict, reason = IMPLAUSIBLE, f"{reason} Usual software needs less time."
    elif high is not None and claimed > high:
        reason += (
            f" Its steps with the usual overhead end within {amount(high, 3)} {unit}; hours of a whole run also hold"
            " restarts, evaluation and idle time, which can be as much again."
        )
    if high is not None:
        high *= WHOLE_RUN_RATIO
    if typical is None and run.offload:
        verdict = worst([verdict, IMPLAUSIBLE])
        reason = (
            f"{reason} The run fits in the memory of {gpus} only with the host's beside it (--offload {run.offload})."
        )
    elif typical is None and counted:
        verdict, reason = IMPOSSIBLE, f"{reason} The run does not fit in the memory of {gpus}."
    elif typical is None:
        verdict, reason = (
            worst([verdict, IMPLAUSIBLE]),
            f"{reason} No usual number of them holds the run in its memory.",
        )
    return Check("duration", verdict, claimed, low, typical, high, unit, reason)


def _fastest_precision(accelerator: Accelerator, precision: str, precision_stated: bool) -> str:
    """Return the precision by which a claim is judged impossible: the stated one, else the chip's fastest."""
    if precision_stated:
        return precision
    return max(_TRAINING_PRECISIONS, key=lambda name: np.nan_to_num(peak(accelerator, name).tflops))


def true_days(tokens: float, found: ModelDeployment) -> tuple[float | None, float | None, float | None]:
    """Return the days that a run takes, low, typical and high, with the usual end-to-end overhead."""
    if not found.fits:
        return None, None, None
    low, typical, high = (days * END_TO_END_HOURS_RATIO for days in found.days(tokens))
    return low, typical, high


class HourlyPrices(NamedTuple):
    """What an accelerator-hour is expected to cost today: the lowest, the first on demand, the highest."""

    low: float
    typical: float
    high: float
    first: Rentable


def prices(catalog: Catalog, accelerator: Accelerator, gpus: int) -> HourlyPrices | None:
    """Return the prices of so many of an accelerator without a term; None where none is known.

    A quote far below its peers is probably an error, and makes no claim plausible while others are known.
    """
    found = rentable(catalog, accelerator.id, gpus, lambda offer: not offer.term_months)
    if not found:
        return None
    kept = [entry for entry in found if not entry.is_far] or found
    today = sorted(entry.usd_per_gpu_hour for entry in kept)
    first = next((entry for entry in found if is_plain(entry.offer.option)), found[0])
    return HourlyPrices(today[0], first.usd_per_gpu_hour, today[-1], first)


def check_price(gpu_hours: float, cost_usd: float, known: HourlyPrices | None, accelerator: Accelerator) -> Check:
    """Judge a claimed cost by the price per accelerator-hour that it implies."""
    implied = cost_usd / gpu_hours
    reason = f"{cost_usd:,.0f} USD for {gpu_hours:,.0f} accelerator-hours is {implied:.2f} USD an hour."
    if known is None:
        reason += f" No price of {accelerator.id} is known."
        return Check("price", UNKNOWN, implied, None, None, None, "USD per GPU-hour", reason)
    ok = known.low * _CHEAPEST_PLAUSIBLE <= implied <= known.high * _DEAREST_PLAUSIBLE
    what = "The lowest that nobody verified is" if known.first.missing else "The first that one can order on demand is"
    reason += f" Prices expected today run from {known.low:.2f} to {known.high:.2f}."
    reason += f" {what} {known.first.told()}, at {known.first.offer.provider}."
    verdict = POSSIBLE if ok else IMPLAUSIBLE
    return Check("price", verdict, implied, known.low, known.typical, known.high, "USD per GPU-hour", reason)


def check_cost(cost_usd: float, tokens: float, found: ModelDeployment, known: HourlyPrices | None) -> Check | None:
    """Judge a claimed cost by the hours that the run really takes and the prices that are expected today."""
    low_days, typical_days, high_days = true_days(tokens, found)
    if known is None or low_days is None or typical_days is None or high_days is None:
        return None
    of_day = int(found.accelerators) * HOURS_PER_DAY  # accelerator-hours
    low, high = low_days * of_day * known.low, high_days * of_day * known.high
    hours = typical_days * of_day
    verdict = POSSIBLE if low <= cost_usd <= high else IMPLAUSIBLE
    reason = f"The run takes about {hours:,.0f} accelerator-hours, whatever the cluster."
    if cost_usd < low:
        reason += (
            f" Even the cheapest known hour ({known.low:.2f} USD) on the fastest software costs more than claimed."
        )
        verdict = IMPOSSIBLE if cost_usd < low / 1.5 else IMPLAUSIBLE
    return Check("cost", verdict, cost_usd, low, hours * known.typical, high, "USD", reason)


_FEWEST_DAYS = 2.0  # shorter runs are said in hours


def make_claim(asked: Mapping[str, Any]) -> Claim:
    """Make a claim of the arguments of `audit`, read and under the names of its fields; None stands for not said."""
    values = {name: value for name, value in asked.items() if name in Claim._fields}
    if asked["hours"] is not None:
        values["days"] = asked["hours"] / HOURS_PER_DAY
    return Claim(**values)


def run_checks(claim: Claim, catalog: Catalog, candidates: list[Accelerator]) -> list[Check]:
    """Run the checks of a run on the most favourable of some accelerators."""
    return _physical(claim, catalog, [], candidates)


def audit(claim: Claim, catalog: Catalog, stated: Sequence[Check] = (), notes: Sequence[str] = ()) -> Audit:
    """Run every check that a claim allows and return the verdict with what would be true.

    `stated` are the checks of figures that it states one by one.
    """
    notes = list(notes)
    alone = claim.tokens is None and claim.fits is None and claim.decode_tokens_per_s is None
    sizes_alone = alone and claim.weights_gb is None and claim.training_gb is None
    physical = [] if claim.model is None or (stated and sizes_alone) else _physical(claim, catalog, notes)
    checks = [*stated, *check_payback(claim), *physical]
    if not checks:
        raise UsageError(
            "nothing to audit: give --model, --gpu and --gpus with --tokens and --days or --cost, or --fits,"
            " --weights-gb, --tokens-per-s; or --buy with --rent-monthly."
        )
    verdict = worst([check.verdict for check in checks])
    claim_values = {name: value for name, value in claim._asdict().items() if value is not None}
    return {
        "kind": "audit",
        **frame(claim_values, catalog.as_of, catalog.version),
        "lead": _sentence(verdict, checks),
        "verdict": verdict,
        "checks": [cast(CheckRow, check._asdict()) for check in checks],
        "notes": notes,
        "warnings": [],
        "sources": {},
    }


def _sentence(verdict: str, checks: list[Check]) -> str:
    worst_checks = [check for check in checks if check.verdict == verdict]
    parts = [f"{verdict.capitalize()}: {worst_checks[0].explanation}"]
    for check in (candidate for candidate in checks if candidate.name in ("duration", "cost")):
        if check.low is not None and check.typical is not None and check.high is not None:
            unit, times = {"USD": "USD at the price expected today"}.get(check.unit, check.unit), 1.0
            if check.unit == "days" and check.typical < _FEWEST_DAYS:
                unit, times = "hours", HOURS_PER_DAY
            low, typical, high = (amount(times * value) for value in (check.low, check.typical, check.high))
            parts.append(f"Likely: about {typical} {unit} ({low} to {high}).")
    return " ".join(parts)


def _physical(
    claim: Claim, catalog: Catalog, notes: list[str], candidates: list[Accelerator] | None = None
) -> list[Check]:
    """Run the checks that need the model: memory, serving speed, duration, price and cost."""
    assert claim.model is not None
    architecture = catalog.architecture(claim.model)
    if claim.model != architecture.name:
        notes.append(f"{claim.model} = {architecture.name}.")
    code_of(claim.precision or "bf16", tuple(VALUE_BYTES), "--precision")
    trained_in = claim.precision if claim.precision in PRECISIONS else None
    workload = make_workload(
        architecture,
        tokens=claim.tokens or np.inf,
        sequence_tokens=claim.sequence_tokens,
        precision=trained_in,
        method=claim.method,
        latest_year=latest_year(catalog.as_of),
    )
    if candidates is None and claim.gpu:
        candidates = catalog.accelerators(claim.gpu)
    chip = _chip(claim, catalog, workload, notes, candidates) if candidates else None
    usual = "bf16" if chip is None else half_precision(chip)
    precision = claim.precision or usual
    workload = replace(workload, precision=trained_in or usual)
    size = sizes(workload)
    checks = []
    if claim.weights_gb is not None:
        checks.append(check_weights(claim.weights_gb, catalog, workload, precision))
    if claim.training_gb is not None:
        checks.append(check_training_memory(claim.training_gb, size, claim.method))
    if chip is None:
        return checks
    gpus = claim.gpus or 1
    if claim.gpus is None and (claim.days or claim.fits or claim.decode_tokens_per_s):
        notes.append(f"Number of GPUs not given: judged as 1 × {chip.id}.")
    if claim.fits == "training":
        checks.append(check_fits_training(catalog, workload, size, chip, gpus))
    elif claim.fits == "serving":
        checks.append(check_fits_serving(catalog, architecture, precision, chip, gpus))
    if claim.decode_tokens_per_s is not None:
        checks.append(check_decode(claim.decode_tokens_per_s, architecture, precision, chip, gpus, claim.batch))
    return checks + (_run(claim, catalog, workload, size, chip, notes) if claim.tokens is not None else [])


def _chip(
    claim: Claim, catalog: Catalog, workload: Workload, notes: list[str], candidates: list[Accelerator]
) -> Accelerator:
    """Return the accelerator that a claim is judged by: the most favourable of those that its name may mean."""
    if len(candidates) == 1:
        return candidates[0]
    if claim.tokens is None:
        chip = most_favourable(candidates, claim.precision)
    else:
        trained_in = claim.precision if claim.precision in PRECISIONS else None
        chip = fastest_trainer(catalog, workload, candidates, trained_in, claim.gpus or 8)
    meant = ", ".join(item.id for item in candidates)
    notes.append(f"{claim.gpu} may mean {meant}; judged as {chip.id}, the most favourable.")
    return chip


def _run(
    claim: Claim, catalog: Catalog, workload: Workload, size: Sizes, chip: Accelerator, notes: list[str]
) -> list[Check]:
    """Check duration, price and cost of a training run; GPU-hours or a cost alone claim no number of accelerators."""
    assert claim.tokens is not None
    if claim.days is None and claim.gpu_hours is None and claim.cost_usd is None:
        return []
    counted = claim.gpus is not None or claim.days is not None
    gpus = claim.gpus or 1
    if not counted:
        gpus = best_count(catalog, workload, chip)
    found = deployment_of(catalog, workload, chip, gpus)
    if not counted and found.fits:
        notes.append(f"Number of GPUs not given: speed of {gpus} × {chip.id}, the count with the fewest GPU-hours.")
    days = claim.days
    if days is None and claim.gpu_hours is not None:
        days = claim.gpu_hours / gpus / HOURS_PER_DAY
    checks = []
    if days is not None:
        lacking = counted and not found.fits
        offload = fitting_offload(catalog, workload, chip, gpus) if lacking else ""
        run = ClaimedRun(claim.tokens, gpus, days, counted, offload)
        checks.append(check_time(workload, size, run, found, claim.precision is not None))
    if claim.cost_usd is not None:
        known_prices = prices(catalog, chip, gpus)
        if days is not None:
            checks.append(check_price(gpus * days * HOURS_PER_DAY, claim.cost_usd, known_prices, chip))
        cost = check_cost(claim.cost_usd, claim.tokens, found, known_prices)
        checks += [cost] if cost is not None else []
    return checks
