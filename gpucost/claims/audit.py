"""From a claim to its verdict: read it, run the checks that it allows, say what would be true."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from gpucost.answers.checks import Audit, CheckRow
from gpucost.answers.common import frame
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.market.budget import LIKELY
from gpucost.market.hires import Rentable, rentable
from gpucost.market.interruptions import EVALUATION_FRACTION
from gpucost.money.cashflow import annuity_usd, simple_payback_months
from gpucost.options import is_plain
from gpucost.physics.columns import PRECISIONS, VALUE_BYTES
from gpucost.physics.hardware import half_precision, peak, peak_share
from gpucost.physics.serving.cases import FORMATS, native_format
from gpucost.physics.serving.roof import decode_roof
from gpucost.physics.training.layouts import latest_year
from gpucost.physics.training.memory_recipe import state_bytes
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB, GIB, GIGA, HOURS_PER_DAY, HOURS_PER_MONTH, SECONDS_PER_DAY, TERA
from gpucost.workloads.deployment import (
    ModelDeployment,
    deployed,
    offloaded,
    served,
    served_weights_gb,
    serving_speed,
    timed,
)
from gpucost.workloads.service import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    USUAL_TPOT_MS,
    USUAL_TTFT_MS,
    Service,
)
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import BEYOND_PEAK, Sizes, Workload, make_workload, sizes

# --- A claim, and one check of it: what was claimed, what it implies, what would be true, and the verdict.

POSSIBLE, IMPLAUSIBLE, IMPOSSIBLE, UNKNOWN = "possible", "implausible", "impossible", "unknown"
VERDICTS = (POSSIBLE, UNKNOWN, IMPLAUSIBLE, IMPOSSIBLE)  # from the best to the worst


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
    return max(verdicts, key=VERDICTS.index) if verdicts else UNKNOWN


# --- Claims about memory: the size of weights, of training states, and whether a model fits.

_LEANEST_OPTIMIZER = "adamw-8bit-bf16"  # 16-bit weights and gradients, 8-bit moments, no master copy
_TOLERANCE = 0.10  # claims are rounded, and told in GB or GiB, which differ by 7 %
_STORED_FORMATS = {"fp4": "nvfp4"}
_SERVED_FORMATS = {**_STORED_FORMATS, "fp32": "bf16", "tf32": "bf16"}  # engines serve no 32-bit weights
_SHORT_TOKENS = 128.0  # prompt and output of requests by which the highest throughputs are quoted
# of accelerators, in which the fewest that a training fits on are looked for
_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)


def _form_of(architecture: Architecture, precision: str | None, chip: Accelerator) -> str:
    """Return the format that an engine holds weights in: the one claimed, else as `inference` serves them on a chip."""
    if precision is None:
        return _usual_service("auto").written_in(architecture, chip)
    return _SERVED_FORMATS.get(precision, precision)


def value_bytes(precision: str) -> float:
    """Return the bytes of a value, in a format of engines with its scales."""
    return VALUE_BYTES.get(precision) or FORMATS[precision].weight_bytes


def _check_fits_training(
    catalog: Catalog, workload: Workload, sizes: Sizes, accelerator: Accelerator, gpus: int
) -> Check:
    """Judge whether training fits on a number of accelerators, and find the smallest number that it does fit on."""
    key = key_of(catalog, accelerator.id)
    # Counts that machines come in, with the one that is claimed among them.
    counts = np.array(sorted({*_COUNTS, gpus}), np.int64)
    speeds = timed(catalog, workload, [key] * len(counts), counts.tolist())
    states = state_bytes(sizes.parameters, sizes.trained_parameters, workload.method) / GB
    memory_gb = gpus * accelerator.memory_gib * GIB / GB
    fitting = counts[speeds.fits]
    fewest = float(fitting[0]) if len(fitting) else None
    reason = (
        f"{workload.method} training of {workload.architecture.name} needs {states:,.0f} GB of states and {gpus} ×"
        f" {accelerator.id} hold {memory_gb:,.0f} GB."
    )
    if bool(speeds.fits[counts == gpus][0]):
        return Check("fits", POSSIBLE, float(gpus), fewest, fewest, None, "GPUs", f"{reason} It fits.")
    if states <= memory_gb:
        reason += " The states fit, activations beside them do not in any layout."
    if workload.offload == "none":
        reason += " Without offloading states to the host it does not fit."
    if fewest is not None:
        reason += f" The smallest of the usual counts that it fits on is {fewest:g}."
    return Check("fits", IMPOSSIBLE, float(gpus), fewest, fewest, None, "GPUs", reason)


def _usual_service(form: str) -> Service:
    """Return requests of the lengths that `inference` and `fit --serving` assume."""
    return Service(prompt_tokens=DEFAULT_PROMPT_TOKENS, output_tokens=DEFAULT_OUTPUT_TOKENS, precision=form)


def _weights_fit(
    catalog: Catalog, architecture: Architecture, form: str, accelerator: Accelerator, gpus: int, *, stated: bool
) -> tuple[bool, str]:
    """Return whether so many accelerators hold the weights at all, and the sentence that says so."""
    weights, memory_gb = served_weights_gb(catalog, architecture, form), gpus * accelerator.memory_gib * GIB / GB
    origin = "published" if form == native_format(architecture) else "usually served"
    format_text = form if stated else f"{form}, as {origin},"
    machine = f"{gpus} × {accelerator.id} hold{'s' if gpus == 1 else ''}"
    return weights < memory_gb, f"Weights take {weights:,.1f} GB in {format_text} and {machine} {memory_gb:,.0f} GB."


# --- Claims about payback: what buying saves each month against what it costs, and how busy the cluster would be.

_BUSY_FRACTION = 0.8  # of its hours, at which a cluster has the right size; below half of it, it is the wrong size
_MONTHS = 60  # over which owning and renting are compared


def _check_payback(claim: Claim) -> list[Check]:
    """Judge what a claim says of payback: its arithmetic, how busy the cluster is, and what discounting does to it."""
    buy, rent, own_usd = claim.buy_usd, claim.rent_usd_per_month, claim.own_usd_per_month or 0.0
    if buy is None and rent is None:
        return []
    if buy is None or rent is None:
        raise UsageError("a payback claim needs both --buy and --rent-monthly.")
    claimed = claim.payback_months
    true = simple_payback_months(buy, rent, own_usd)
    if rent <= own_usd:
        reason, verdict = "Owning costs as much each month as renting: it never pays back.", IMPOSSIBLE
    else:
        reason = f"{buy:,.0f} USD ÷ ({rent:,.0f} − {own_usd:,.0f}) USD a month is {true:,.1f} months."
        verdict = POSSIBLE if claimed is None or abs(claimed / true - 1) <= _TOLERANCE else IMPOSSIBLE
    finite = true if np.isfinite(true) else None
    checks = [Check("payback", verdict, claimed, finite, finite, finite, "months", reason)]

    # how many of the owned hours the claim uses
    if claim.gpus and claim.gpu_hours_per_month:
        hours, owned_hours = claim.gpu_hours_per_month, claim.gpus * HOURS_PER_MONTH
        used = hours / owned_hours
        enough = int(np.ceil(hours / (HOURS_PER_MONTH * _BUSY_FRACTION) - 0.5))  # to the nearest: "about"
        reason = (
            f"{hours:,.0f} of {owned_hours:,.0f} hours a month is {used:.0%};"
            f" about {max(enough, 1)} GPUs at 80 % do the same."
        )
        verdict = POSSIBLE if used >= _BUSY_FRACTION / 2 else IMPLAUSIBLE
        if used > 1:
            verdict = IMPOSSIBLE
        least = _BUSY_FRACTION / 2
        checks.append(Check("utilisation", verdict, used, least, _BUSY_FRACTION, 1.0, "fraction of one", reason))

    fraction = claim.discount_fraction
    renting, owning = (annuity_usd(monthly, _MONTHS, fraction) for monthly in (rent, own_usd))
    owning += buy
    reason = (
        f"At {fraction:.0%} a year over {_MONTHS} months, without resale, renting costs {renting:,.0f} USD and owning"
        f" {owning:,.0f} USD today: {'renting' if renting < owning else 'owning'} is cheaper."
    )
    verdict = POSSIBLE if owning <= renting else IMPLAUSIBLE
    return [*checks, Check("present value", verdict, owning, None, renting, None, "USD", reason)]


def break_even_verdict(claimed: float, few: float | None, usual: float | None, many: float | None) -> tuple[str, str]:
    """Judge hours a month from which buying is cheaper, by those of a dearer, the usual and a cheaper rent.

    None: it never is. A month has 730 hours.

    >>> break_even_verdict(100, 357, 446, None)[0], break_even_verdict(500, 357, 446, None)[0]
    ('implausible', 'possible')
    """
    at_usual, at_dearer, at_cheaper = (
        "never" if hours is None else f"from {hours:,.0f} hours a month" for hours in (usual, few, many)
    )
    reason = f"buying is cheaper {at_usual}; at a rent a quarter dearer {at_dearer}, a quarter cheaper {at_cheaper}."
    if claimed > HOURS_PER_MONTH:
        return IMPOSSIBLE, f"a month has {HOURS_PER_MONTH:,.0f} hours; {reason}"
    lowest = few if few is not None else np.inf
    highest = many if many is not None else HOURS_PER_MONTH
    near = lowest * (1 - _TOLERANCE) <= claimed <= highest * (1 + _TOLERANCE)
    return POSSIBLE if near else IMPLAUSIBLE, reason


# --- Claims about serving speed: what engines reach, as `inference` says, below the roofs of bandwidth and compute.

_LARGEST_BATCH = 4096  # sequences; above it no engine is known to decode


def _check_decode(
    claimed_tokens_per_s: float,
    catalog: Catalog,
    architecture: Architecture,
    precision: str | None,
    accelerator: Accelerator,
    gpus: int,
    batch: int | None,
) -> Check:
    """Judge output tokens per second by the speed of every other question, and by the roof that nothing exceeds.

    The slow end is a server as it comes at the usual lengths of requests; the fast end short requests in offline
    batches, or more where somebody measured more on the same chip.
    """
    form, unit = _form_of(architecture, precision, accelerator), "tokens per second"
    usual, key = _usual_service(form), key_of(catalog, accelerator.id)
    # Without a batch as users accept it, as `inference` does; what keeps no such latency is judged without.
    speed = None
    if not batch:
        accepted = replace(usual, ttft_ms=USUAL_TTFT_MS, tpot_ms=USUAL_TPOT_MS)
        speed = serving_speed(catalog, architecture, key, accepted, gpus, batch)
    speed = speed or serving_speed(catalog, architecture, key, usual, gpus, batch)
    if speed is None:
        holds, reason = _weights_fit(catalog, architecture, form, accelerator, gpus, stated=precision is not None)
        together = f" with {batch:,} sequences at once" if batch and holds else ""
        verdict = IMPLAUSIBLE if holds else IMPOSSIBLE
        reason = f"{reason} It does not fit{together}."
        return Check("decode speed", verdict, claimed_tokens_per_s, None, None, None, unit, reason)
    short = replace(usual, prompt_tokens=_SHORT_TOKENS, output_tokens=_SHORT_TOKENS, server="offline")
    fastest = serving_speed(catalog, architecture, key, short, gpus, batch) or speed
    roofs = decode_roof(architecture, accelerator, form, gpus)
    roof, roof_name = roofs.at(batch or _LARGEST_BATCH)
    high = min(max(speed.high, fastest.high), roof)
    at = f"at batch {batch:,}" if batch else "as usually served"
    reason = (
        f"{architecture.name} on {gpus} × {accelerator.id} in {form}: about {amount(speed.typical)} output tokens/s"
        f" {at}, {amount(fastest.typical)} in offline batches of short requests; the {roof_name} roof is {roof:,.0f}."
    )
    single, _ = roofs.at(1)
    if batch is None and claimed_tokens_per_s > single:
        reason += f" One sequence gets at most {single:,.0f} (--batch)."
    verdict = POSSIBLE
    if claimed_tokens_per_s > roof:
        verdict = IMPOSSIBLE
    elif claimed_tokens_per_s > high:
        # what somebody measured is possible: the highest rate of work on this chip, in tokens of this model; at a batch
        # that is named, the range and the roof hold alone
        rates = [
            row["highest_gflop_per_s_per_gpu"] or 0.0
            for row in catalog.rows("measured_chips")
            if row["kind"] == "serving" and row["accelerator_id"] == key.accelerator.id
        ]
        measured = max(rates, default=0.0) * GIGA / roofs.flop_per_token * gpus
        if batch or claimed_tokens_per_s > measured:
            verdict = IMPLAUSIBLE
    low = min(speed.low, fastest.low)
    return Check("decode speed", verdict, claimed_tokens_per_s, low, speed.typical, high, unit, reason)


# --- Claims about training runs: time, speed and cost against physics and prices.

_TRAINING_PRECISIONS = ("bf16", "fp16", "fp8")
_CHEAPEST_PLAUSIBLE, _DEAREST_PLAUSIBLE = 0.7, 1.5  # of the lowest and highest known price
_DOUBLINGS = 12  # of a node, that are tried where a claim names no number of accelerators
# Hours of a whole run against the slow end of its steps with the usual overhead: restarts, evaluation and idle time
# that nobody states. Of the 25 runs of docs/published-runs.md three took longer than that end, the longest 1.8 times.
WHOLE_RUN_RATIO = 2.0
_ROUNDED = 0.02  # by which a figure may be rounded when it is quoted
_END_TO_END_HOURS_RATIO = 1 + EVALUATION_FRACTION.value  # hours of whole runs ÷ those of their steps


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


def deployment_of(catalog: Catalog, workload: Workload, accelerator: Accelerator, gpus: int) -> ModelDeployment:
    """Return the fastest deployment on the accelerator's usual node."""
    return deployed(catalog, workload, key_of(catalog, accelerator.id), gpus)


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


class Record(NamedTuple):
    """The most that somebody measured of training on a chip: the share of a peak, and the sentence that says so."""

    share: float
    sentence: str


def record_of(
    catalog: Catalog, architecture: Architecture, accelerator: Accelerator, precision: str, *, stated: bool
) -> Record | None:
    """Return the highest speed measured on a chip of a model of its kind, as a share of the peak at a precision.

    Dense models are held to dense ones, mixtures of experts to mixtures; a claim that names no precision to what was
    measured in 16 bits and in the format that the model was published in.
    """
    # What was measured in 16 bits is a floor for every precision below them.
    formats = {"bf16", "fp16", precision, *(() if stated else (native_format(architecture),))}
    rows = [
        row
        for row in catalog.rows("training_records")
        if row["accelerator_id"] == accelerator.id
        and row["experts"] == bool(architecture.experts)
        and row["precision"] in formats
    ]
    if not rows:
        return None
    best = max(rows, key=lambda row: row["model_tflops_per_gpu"])
    share = peak_share(accelerator, precision, best["model_tflops_per_gpu"] * TERA)
    source = catalog.source(best["source_id"])["title"]
    sentence = f"{best['model']} on {best['gpus']:,} of them in {best['precision']} reached {share:.0%} ({source})."
    return Record(share * (1 + _ROUNDED), sentence)


def _check_time(
    workload: Workload,
    sizes: Sizes,
    run: ClaimedRun,
    deployment: ModelDeployment,
    precision_stated: bool,
    record: Record | None = None,
) -> Check:
    """Judge a claimed duration by the MFU that it implies; what somebody measured on the chip is possible."""
    tokens, gpus, days, counted, offload = run
    accelerator = deployment.key.accelerator
    unit, of_day = run.unit
    flop, seconds = sizes.model_flop_per_token * tokens, days * SECONDS_PER_DAY
    precision = workload.precision_on(accelerator)
    implied = implied_mfu(flop, accelerator, precision, gpus, seconds)
    low, typical, high = (None if end is None else end * of_day for end in _true_days(tokens, deployment))
    claimed = days * of_day
    if implied is None:
        reason = f"{accelerator.id} has no {precision} matrix units; name another --precision."
        return Check("duration", IMPOSSIBLE, claimed, low, typical, high, unit, reason)
    work = f"{flop:.3g} FLOP in {amount(claimed, 4)} {unit} {f'on {gpus} ×' if counted else 'of'} {accelerator.id}"
    reason = f"{work} need {implied:.0%} of the dense {precision} peak."
    verdict = POSSIBLE
    # A claim that names no precision is impossible only where it is at the chip's fastest.
    fastest = precision
    if not precision_stated:
        fastest = max(_TRAINING_PRECISIONS, key=lambda name: np.nan_to_num(peak(accelerator, name).tflops))
    at_best = implied_mfu(flop, accelerator, fastest, gpus, seconds) or implied
    if implied > 1 and (fastest == precision or at_best > 1):
        verdict, reason = IMPOSSIBLE, reason + f" {BEYOND_PEAK}"
    elif implied > 1:
        verdict, reason = IMPLAUSIBLE, f"{reason} Impossible in {precision}; in {fastest} it is {at_best:.0%}."
    elif low is not None and claimed < low:
        verdict, reason = faster_than_usual(implied, record, reason)
    elif high is not None and claimed > high * WHOLE_RUN_RATIO:
        verdict, reason = IMPLAUSIBLE, f"{reason} Usual software needs less time."
    elif high is not None and claimed > high:
        reason += (
            f" Its steps with the usual overhead end within {amount(high, 3)} {unit}; hours of a whole run also hold"
            " restarts, evaluation and idle time, which can be as much again."
        )
    if high is not None:
        high *= WHOLE_RUN_RATIO
    # No time is known of what does not fit: a number that is claimed is refuted by it, one that is not is doubted.
    if typical is None and offload:
        verdict = worst([verdict, IMPLAUSIBLE])
        reason += f" The run fits in the memory of {gpus} only with the host's beside it (--offload {offload})."
    elif typical is None and counted:
        verdict, reason = IMPOSSIBLE, f"{reason} The run does not fit in the memory of {gpus}."
    elif typical is None:
        verdict = worst([verdict, IMPLAUSIBLE])
        reason += " No usual number of them holds the run in its memory."
    return Check("duration", verdict, claimed, low, typical, high, unit, reason)


def faster_than_usual(implied: float, record: Record | None, reason: str) -> tuple[str, str]:
    """Judge a speed above the range of usual software by the most that somebody measured."""
    if record is not None and implied <= record.share:
        return POSSIBLE, f"{reason} That is faster than usual software, and was done: {record.sentence}"
    best = "" if record is None else f" The most measured: {record.sentence}"
    return IMPLAUSIBLE, f"{reason} No measured software comes near this.{best}"


def _true_days(tokens: float, deployment: ModelDeployment) -> tuple[float | None, float | None, float | None]:
    """Return the days that a run takes, low, typical and high, with the usual end-to-end overhead."""
    if not deployment.fits:
        return None, None, None
    low, typical, high = (days * _END_TO_END_HOURS_RATIO for days in deployment.days(tokens))
    return low, typical, high


class HourlyPrices(NamedTuple):
    """What an accelerator-hour is expected to cost today: the lowest, the first on demand, the highest."""

    low: float
    typical: float
    high: float
    first: Rentable


def prices(catalog: Catalog, accelerator: Accelerator, gpus: int) -> HourlyPrices | None:
    """Return the prices of so many of an accelerator without a term; None where none is known.

    A quote that is probably gone makes no claim plausible while others are known.
    """
    offers = rentable(catalog, accelerator.id, gpus, lambda offer: not offer.term_months)
    if not offers:
        return None
    likely = [entry for entry in offers if entry.chance >= LIKELY] or offers
    today = sorted(entry.usd_per_gpu_hour for entry in likely)
    first = next((entry for entry in offers if is_plain(entry.offer.option)), offers[0])
    return HourlyPrices(today[0], first.usd_per_gpu_hour, today[-1], first)


_FEWEST_DAYS = 2.0  # shorter runs are told in hours


def make_claim(arguments: Mapping[str, Any]) -> Claim:
    """Make a claim of the arguments of `audit`, read and under the names of its fields; None stands for not said."""
    values = {name: value for name, value in arguments.items() if name in Claim._fields}
    if arguments["hours"] is not None:
        values["days"] = arguments["hours"] / HOURS_PER_DAY
    return Claim(**values)


def audit(claim: Claim, catalog: Catalog, stated: Sequence[Check] = (), notes: Sequence[str] = ()) -> Audit:
    """Run every check that a claim allows and return the verdict with what would be true.

    `stated` are the checks of figures that it states one by one.
    """
    notes = list(notes)
    alone = claim.tokens is None and claim.fits is None and claim.decode_tokens_per_s is None
    # What a claim is checked for hangs on what it states: a model alone claims nothing.
    sizes_alone = alone and claim.weights_gb is None and claim.training_gb is None
    # a model beside figures that are stated alone says what those are of; nothing of it is claimed
    physical = [] if claim.model is None or (stated and sizes_alone) else _physical(claim, catalog, notes)
    checks = [*stated, *_check_payback(claim), *physical]
    if not checks:
        raise UsageError(
            "nothing to audit: give --model, --gpu and --gpus with --tokens and --days or --cost, or --fits,"
            " --weights-gb, --tokens-per-s; or --buy with --rent-monthly."
        )
    verdict = worst([check.verdict for check in checks])
    # The lead is the first of the worst checks, then what is likely.
    lead = [f"{verdict.capitalize()}: {next(check for check in checks if check.verdict == verdict).explanation}"]
    for check in checks:
        if check.name not in ("duration", "cost") or check.low is None or check.typical is None or check.high is None:
            continue
        unit, times = {"USD": "USD at today's price"}.get(check.unit, check.unit), 1.0
        if check.unit == "days" and check.typical < _FEWEST_DAYS:
            unit, times = "hours", HOURS_PER_DAY
        low, typical, high = (amount(times * value) for value in (check.low, check.typical, check.high))
        lead.append(f"Likely: about {typical} {unit} ({low} to {high}).")
    claim_values = {name: value for name, value in claim._asdict().items() if value is not None}
    return {
        "kind": "audit",
        **frame(claim_values, catalog.as_of, catalog.version),
        "lead": " ".join(lead),
        "verdict": verdict,
        "checks": [cast(CheckRow, check._asdict()) for check in checks],
        "notes": notes,
        "warnings": [],
        "sources": {},
    }


def _physical(claim: Claim, catalog: Catalog, notes: list[str]) -> list[Check]:
    """Run the checks that need the model: memory, serving speed, duration, price and cost."""
    assert claim.model is not None
    architecture = catalog.architecture(claim.model)
    if claim.model != architecture.name:
        notes.append(f"{claim.model} = {architecture.name}.")
    trained_in = claim.precision if claim.precision in PRECISIONS else None
    workload = make_workload(
        architecture,
        tokens=claim.tokens or np.inf,
        sequence_tokens=claim.sequence_tokens,
        precision=trained_in,
        method=claim.method,
        latest_year=latest_year(catalog.as_of),
    )
    # A name may mean several accelerators: the claim is judged by the most favourable of them.
    candidates = catalog.accelerators(claim.gpu) if claim.gpu else []
    chip = candidates[0] if candidates else None
    if len(candidates) > 1:
        if claim.tokens is None:
            chip = most_favourable(candidates, claim.precision)
        else:
            # The one that trains fastest in its node: peaks of a card and of a module may be equal where their links
            # are not, as of the A100 40GB as PCIe and as SXM.
            speeds = {}
            for item in candidates:
                of_chip = replace(workload, precision=trained_in or half_precision(item))
                deployment = deployment_of(catalog, of_chip, item, claim.gpus or 8)  # a usual node has 8
                speeds[item.id] = deployment.tokens_per_s_per_gpu if deployment.fits else 0.0
            fastest = [item for item in candidates if speeds[item.id] == max(speeds.values())]
            chip = most_favourable(fastest, trained_in)
        candidate_ids = ", ".join(item.id for item in candidates)
        notes.append(f"{claim.gpu} may mean {candidate_ids}; judged as {chip.id}, the most favourable.")
    usual = "bf16" if chip is None else half_precision(chip)
    workload = replace(workload, precision=trained_in or usual)
    size = sizes(workload)
    checks = []
    if claim.weights_gb is not None:
        # From parameters × bytes to what a file holds, whose ends stay at 16 bits: 70.6e9 parameters are 70.6 GB in FP8
        # and 282 GB in FP32; in 4 bits 35.3 GB, and 39.8 GB as AWQ files have them.
        precision = claim.precision or native_format(workload.architecture)
        bytes_per_value = value_bytes(precision)
        true_gb = size.parameters * bytes_per_value / GB
        # Below 16 bits a file holds more than parameters × bytes: scales, and layers that stay at 16.
        engine_gb = true_gb
        if bytes_per_value < 2:
            stored_format = _STORED_FORMATS.get(precision, precision)
            engine_gb = max(true_gb, served_weights_gb(catalog, workload.architecture, stored_format))
        format_text = f"{precision}{'' if claim.precision else ', as published,'}"
        reason = (
            f"{size.parameters:,.0f} parameters × {bytes_per_value:g} bytes in {format_text} are {true_gb:,.1f} GB."
        )
        if engine_gb > true_gb * 1.01:
            reason += f" With scales, and embeddings in 16 bits, engines hold {engine_gb:,.1f} GB."
        verdict = POSSIBLE
        if not true_gb * (1 - _TOLERANCE) <= claim.weights_gb <= engine_gb * (1 + _TOLERANCE):
            verdict = IMPOSSIBLE
            for name, bytes_in_format in VALUE_BYTES.items():
                if abs(size.parameters * bytes_in_format / GB / claim.weights_gb - 1) < _TOLERANCE:
                    reason += f" {claim.weights_gb:g} GB is their size in {name}."
                    break
        checks.append(Check("weights", verdict, claim.weights_gb, true_gb, true_gb, engine_gb * 1.05, "GB", reason))
    if claim.training_gb is not None:
        true_gb = state_bytes(size.parameters, size.trained_parameters, claim.method) / GB
        leanest_gb = true_gb  # adapters' states are small: a leaner optimizer changes nothing that a claim could show
        if claim.method == "full":
            leanest_gb = state_bytes(size.parameters, size.trained_parameters, "full", _LEANEST_OPTIMIZER) / GB
        reason = (
            f"Weights, gradients and AdamW states take {true_gb:,.0f} GB in mixed precision (16 bytes per trained"
            " parameter), before activations."
        )
        verdict = POSSIBLE
        if claim.training_gb < leanest_gb:
            verdict = IMPOSSIBLE
        elif claim.training_gb < true_gb * (1 - _TOLERANCE):
            verdict = IMPLAUSIBLE
            reason += f" Only pure 16-bit training with 8-bit states comes down to {leanest_gb:,.0f} GB."
        # Activations, which a claim may count too, are assumed to add from a fifth to as much again.
        low, high = true_gb * 1.2, true_gb * 2.0
        checks.append(Check("training memory", verdict, claim.training_gb, true_gb, low, high, "GB", reason))
    if chip is None:
        return checks
    gpus = claim.gpus or 1
    if claim.gpus is None and (claim.days or claim.fits or claim.decode_tokens_per_s):
        notes.append(f"Number of GPUs not given: judged as 1 × {chip.id}.")
    if claim.fits == "training":
        checks.append(_check_fits_training(catalog, workload, size, chip, gpus))
    elif claim.fits == "serving":
        # By the deployments that `fit --serving` finds; else by the weights alone.
        form = _form_of(architecture, claim.precision, chip)
        plans = served(catalog, architecture, [key_of(catalog, chip.id)], _usual_service(form))
        serving = plans.gpus[plans.serves]
        fewest = float(serving.min()) if len(serving) else None  # of any layout that serves at all
        holds, reason = _weights_fit(catalog, architecture, form, chip, gpus, stated=claim.precision is not None)
        if fewest is not None and fewest <= gpus:
            verdict = POSSIBLE
        else:
            verdict = IMPLAUSIBLE if holds else IMPOSSIBLE  # weights alone may be served with a short context
            if fewest is not None:
                reason += f" With room for the KV cache it takes {fewest:g}."
        checks.append(Check("fits", verdict, float(gpus), fewest, fewest, None, "GPUs", reason))
    if claim.decode_tokens_per_s is not None:
        rate = claim.decode_tokens_per_s
        checks.append(_check_decode(rate, catalog, architecture, claim.precision, chip, gpus, claim.batch))
    return checks + (_run(claim, catalog, workload, size, chip, notes) if claim.tokens is not None else [])


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
    deployment = deployment_of(catalog, workload, chip, gpus)
    if not counted and deployment.fits:
        notes.append(f"Number of GPUs not given: speed of {gpus} × {chip.id}, the count with the fewest GPU-hours.")
    days = claim.days
    if days is None and claim.gpu_hours is not None:
        days = claim.gpu_hours / gpus / HOURS_PER_DAY
    checks = []
    if days is not None:
        # what does not fit may do with the host's memory beside that of so many; where no number is named, another fits
        lacking = counted and not deployment.fits
        offload = offloaded(catalog, workload, key_of(catalog, chip.id), gpus) if lacking else ""
        run = ClaimedRun(claim.tokens, gpus, days, counted, offload)
        stated = claim.precision is not None
        record = record_of(catalog, workload.architecture, chip, workload.precision_on(chip), stated=stated)
        checks.append(_check_time(workload, size, run, deployment, stated, record))
    if claim.cost_usd is not None:
        known_prices = prices(catalog, chip, gpus)
        if days is not None:
            # the price of an hour that the claim implies
            gpu_hours, unit = gpus * days * HOURS_PER_DAY, "USD per GPU-hour"
            implied = claim.cost_usd / gpu_hours
            reason = f"{claim.cost_usd:,.0f} USD for {gpu_hours:,.0f} accelerator-hours is {implied:.2f} USD an hour."
            if known_prices is None:
                reason += f" No price of {chip.id} is known."
                checks.append(Check("price", UNKNOWN, implied, None, None, None, unit, reason))
            else:
                low, typical, high, first = known_prices
                ok = low * _CHEAPEST_PLAUSIBLE <= implied <= high * _DEAREST_PLAUSIBLE
                reason += f" Prices run from {low:.2f} to {high:.2f}."
                reason += f" The first that one can order on demand is {first.price_text()}, at {first.offer.provider}."
                verdict = POSSIBLE if ok else IMPLAUSIBLE
                checks.append(Check("price", verdict, implied, low, typical, high, unit, reason))
        # The cost by the hours that the run really takes and the prices of the day, whatever the claim says of either.
        low_days, typical_days, high_days = _true_days(claim.tokens, deployment)
        if known_prices is None or low_days is None or typical_days is None or high_days is None:
            return checks
        of_day = int(deployment.accelerators) * HOURS_PER_DAY  # accelerator-hours
        hours = typical_days * of_day
        typical = hours * known_prices.typical
        # Speed and price are seldom at their ends at once: their logarithms add up as squares.
        below, above = (
            float(np.exp(np.hypot(np.log(some_days / typical_days), np.log(price / known_prices.typical))))
            for some_days, price in ((low_days, known_prices.low), (high_days * WHOLE_RUN_RATIO, known_prices.high))
        )
        low, high = typical / below, typical * above
        verdict = POSSIBLE if low <= claim.cost_usd <= high else IMPLAUSIBLE
        reason = f"The run takes about {hours:,.0f} accelerator-hours, whatever the cluster."
        if claim.cost_usd < low:
            cheapest_usd = hours * known_prices.low
            reason += f" At the cheapest known hour ({known_prices.low:.2f} USD) that is {amount(cheapest_usd)} USD."
            # A third below the fastest run at the cheapest known hour no discount is assumed to reach.
            if claim.cost_usd < low_days * of_day * known_prices.low / 1.5:
                verdict = IMPOSSIBLE
        checks.append(Check("cost", verdict, claim.cost_usd, low, typical, high, "USD", reason))
    return checks
