"""From a training request to its answer: facts, cases, ranking, what a person asks next, payload."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from gpucost import __version__
from gpucost.answers.common import AssumedValue, BillLine, Budgeted, LayoutRow, cited, figures, finite, frame
from gpucost.answers.training import (
    Contract,
    Driver,
    Elsewhere,
    Estimate,
    Factors,
    Feeding,
    Interruptions,
    RankedOption,
    RunOutcome,
    Size,
    Speed,
    TrainingOption,
    WorkloadRow,
)
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.gate import beside
from gpucost.market import filters
from gpucost.market import interruptions as assume
from gpucost.market.embedded import embed
from gpucost.market.facts import CHOOSING, Facts, Market, make_market, market_of, with_offers
from gpucost.market.hires import cheapest
from gpucost.market.interruptions import failures_per_gpu_year, unmeasured
from gpucost.market.pools import pool_ends, read_pool
from gpucost.market.supply import Providers
from gpucost.market.table import OfferTable
from gpucost.market.terms import (
    ASSUMED_FORM,
    cluster,
    credited,
    doubted_price,
    large_order,
    old_price,
    seen,
    seller,
    unlisted,
)
from gpucost.market.terms import said as credits_said
from gpucost.money.training_bill import BILL
from gpucost.options import OPTIONS
from gpucost.physics.calibration import Calibration
from gpucost.physics.training.cases import PARTS
from gpucost.physics.training.grid import FOR_INFERENCE
from gpucost.physics.training.layouts import NO_BATCH, NO_PRECISION, NO_TRAINING, latest_year
from gpucost.training.cases import (
    Cases,
    Problem,
    evaluate,
    exclusion,
    lines_of,
    orderable,
    rank,
    rate_is_prior,
    too_bound,
    too_old,
)
from gpucost.training.offers import alternatives, by_region, fold, highlights, offer_rows, table_of
from gpucost.training.request import TrainingRequest
from gpucost.training.search import other_counts, search
from gpucost.types import Architecture, Offer
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR, counted, format_count
from gpucost.workloads import training
from gpucost.workloads.speeds import Speeds, speeds_of
from gpucost.workloads.training import (
    TYPICAL,
    Workload,
    class_of,
    make_workload,
    sizes,
    step_work,
    too_long,
    with_loading,
)
from gpucost.workloads.unsaid import ATTENTION, DISPATCHER, STACK, TRAINING, Unsaid, costliest

# --- The answer of a training estimate as a JSON-able payload; rendering needs nothing else.

_NOT_INCLUDED = (
    "data acquisition, cleaning and tokenisation",
    "staff, support plans and software licences",
    "trial runs and failed experiments, unless given as a share of the run",
    "reading the dataset in from elsewhere, and traffic between regions",
    "taxes, and discounts that you negotiated (a price book holds those)",
)


_NOT_INCLUDED_OF_ROLLOUTS = "reward models, verifiers and environments, and waiting for them"


def option(problem: Problem, facts: Facts, cases: Cases, case: int, rank: int) -> TrainingOption:
    """Return one option: who, where, how many, how fast, at what cost, with its bill and its factors."""
    number, terms = int(cases.offer[case]), problem.terms
    offer = problem.supply.offers[number]
    # the bill, with the source of each unit price and whether the seller states it
    origin = {
        "offer": (offer.source_id, True),
        "storage": (terms.storage_source_ids[number], bool(terms.storage_stated[number])),
        "egress": (terms.egress_source_ids[number], bool(terms.egress_stated[number])),
    }
    stated_by = {item.name: item.origin for item in BILL}
    lines: list[BillLine] = []
    for line in lines_of(cases.factors, cases.costs, case):
        source, stated = origin[stated_by[line["name"]]]
        note = line["note"] if stated else f"{line['note']}; typical price, as the provider publishes none"
        status: Literal["sourced", "assumed"] = "sourced" if stated else "assumed"
        lines.append({**line, "note": note, "source_id": source, "status": status})
    # the offer's source first, each once
    sources = dict.fromkeys([offer.source_id, *(line["source_id"] for line in lines)])
    size = problem.sizes[int(cases.request[case])]
    cost_usd = float(cases.costs.cost_usd[case])
    months = max(float(cases.costs.days[case]) / DAYS_PER_YEAR * MONTHS_PER_YEAR, 1e-6)
    paid = round(credited(facts.credits, offer, cost_usd, months, facts.as_of), 2)
    # seconds of one step by part; writing what is trained on, and scoring it, stand beside training
    parts = zip(PARTS, cases.speed.parts_s[case], strict=True)
    components = {name: float(seconds) for name, seconds in parts if seconds > 0}
    for name, seconds in (_rollout_phases(problem, cases, case) or {}).items():
        if name != "training":
            components[f"{name.replace(' ', '_')}_s"] = seconds
    return {
        "rank": rank,
        **seller(offer),
        "gpus": int(cases.gpus[case]),
        "nodes": int(cases.factors.nodes[case]),  # by the accelerators that one node of the chip holds
        "instances": int(cases.gpus[case]) // max(offer.gpus, 1),  # as the seller counts them
        **_speed(cases, case),
        **figures(RunOutcome, cases.costs, case),
        "usd_per_gpu_hour": float(terms.usd_per_gpu_hour[number]),
        **figures(Budgeted, cases.costs, case),
        **seen(offer, terms, number, paid),
        **figures(Contract, cases.costs, case),
        **interruptions(problem, cases, case),
        "components": components,
        "source_ids": [name for name in sources if name],
        "lines": lines,
        "notes": [
            *notes(problem, cases, case),
            *([credits_said(paid, cost_usd)] if paid else []),
        ],
        "factors": {**factors(cases, case), "model_flop_per_token": size.model_flop_per_token},
    }


_STRETCHED = (  # of the costs, what a what-if needs as a factor
    "checkpoint_hours",
    "interval_hours",
    "stretch_paid_ratio",
    "stretch_calendar_ratio",
    "stretch_low_ratio",
    "stretch_high_ratio",
    "stretch_spread_ratio",
)


def _speed(cases: Cases, case: int) -> Speed:
    speed, costs = cases.speed, cases.costs
    # hours of work ÷ hours paid: what the paid hours attain counts restarts and unused time as idle
    paid_share = costs.work_hours[case] * cases.gpus[case] / costs.gpu_hours[case]
    return {
        "layout": cast(LayoutRow, asdict(speed.layout.layout(case))),
        "memory_gb": float(speed.memory_gb[case]),
        "tokens_per_s_per_gpu": float(speed.tokens_per_s_per_gpu[case]),
        "tokens_per_s_per_gpu_low": float(speed.tokens_per_s_per_gpu_low[case]),
        "tokens_per_s_per_gpu_high": float(speed.tokens_per_s_per_gpu_high[case]),
        "mfu_fraction": float(speed.mfu_fraction[case]),
        "mfu_paid_fraction": float(speed.mfu_fraction[case] * paid_share),
        "speed_confidence": str(speed.confidence[case]),
    }


def _elsewhere(problem: Problem, cases: Cases, case: int) -> Elsewhere:
    """Return where else an option is sold, and for what."""
    offer = problem.supply.offers[int(cases.offer[case])]
    return {
        "region": offer.region or None,
        "offer_id": offer.offer_id,
        "usd_per_gpu_hour": float(problem.terms.usd_per_gpu_hour[int(cases.offer[case])]),
        "cost_usd": float(cases.costs.cost_usd[case]),
        "age_days": offer.age_days,
    }


def factors(cases: Cases, case: int) -> Factors:
    """Return every number that the bill follows from, with the speed's own factors."""
    row: Factors = {name: finite(value) for name, value in cases.factors.row(case).items()}
    row["mfu_fraction"] = finite(cases.speed.mfu_fraction[case])
    row["peak_tflops"] = finite(cases.speed.peak_tflops[case])
    return row | {name: finite(cases.costs[name][case]) for name in _STRETCHED}


def interruptions(problem: Problem, cases: Cases, case: int) -> Interruptions:
    """Return how interruptions lengthen the run: hours paid and calendar days apart, goodput, checkpoints."""
    costs, offer = cases.costs, int(cases.offer[case])
    return {
        "interruptions": float(costs.interruptions[case]),
        "interruption_rate_measured": bool(problem.terms.measured[offer]),
        "checkpoint_interval_hours": finite(costs.interval_hours[case]),
        "stretch_paid_ratio": float(costs.stretch_paid_ratio[case]),
        "stretch_paid_low_ratio": float(costs.stretch_low_ratio[case]),
        "stretch_paid_high_ratio": float(costs.stretch_high_ratio[case]),
        "stretch_calendar_ratio": float(costs.stretch_calendar_ratio[case]),
        "stretch_spread_ratio": float(costs.stretch_spread_ratio[case]),
        "goodput_fraction": float(costs.goodput_fraction[case]),
    }


def _rollout_phases(problem: Problem, cases: Cases, case: int) -> dict[str, float] | None:
    """Return the seconds of a step by phase where the model is trained on what it writes; else None."""
    workload = problem.workloads[int(cases.request[case])]
    if workload.rollouts is None:
        return None
    from gpucost.workloads.rollouts import phases_of, writer_of

    speed, gpus = cases.speed.take(np.array([case])), cases.gpus[case : case + 1]
    keys = [problem.supply.keys[int(problem.supply.key[cases.offer[case]])]]
    training_s = speed.parts_s.sum(axis=1)
    writer, recompute = writer_of(workload, keys, gpus, problem.calibration), speed.layout.recompute
    phases = phases_of(workload, writer, keys, gpus, training_s, speed.parts_s, recompute)
    return {
        "writing answers": float(phases.writing_s[0]),
        "scoring answers": float(phases.scoring_s[0]),
        "training": float(phases.training_s[0]),
        "handing weights over": float(phases.handing_s[0]),
    }


def notes(problem: Problem, cases: Cases, case: int) -> list[str]:
    """Return what a reader must know of one option."""
    terms, number = problem.terms, int(cases.offer[case])
    offer = problem.supply.offers[number]
    remarks = old_price(offer, terms, number)  # what concerns the price comes first
    if rate_is_prior(problem, number):
        remarks.append("interruption rate assumed: not measured for this product and region")
    if offer.gpu_assumed:
        remarks.append(ASSUMED_FORM)
    if offer.term_months and cases.factors.charge_commitment[case] > 0 and cases.costs.unused_usd[case] > 0:
        remarks.append(f"pays for the whole term of {offer.term_months} months, not only for the hours used")
    if cases.factors.nodes[case] > 1:
        remarks += large_order(offer, problem.terms, number, int(cases.gpus[case]))
        # a rack-wide NVLink has no network behind it on record
        if not problem.supply.keys[int(problem.supply.key[number])].system.scaleout_gb_per_s:
            remarks.append("several instances share one scale-up domain")
    rule = OPTIONS[offer.option]
    # ways to buy that few know: a booked window, and on-demand machines that may be taken back
    if rule.family == "scheduled" or (rule.family == "on demand" and rule.interruptible):
        remarks.append(f"{rule.label}: {rule.reference}")
    return [*remarks, *doubted_price(offer)]


_ASSUMED = ("name", "value", "low", "high", "unit", "status", "source_id", "note")


# --- What a person asks next: other cluster sizes, other ways to buy, what dominates the cost.

Indices = NDArray[np.int64]

_SIZES_BELOW, _SIZES_ABOVE = 4, 16  # how many times smaller and larger than the chosen size
_SMALLEST_SHARE = 0.01  # of the cost: what is less stands in the bill alone

# What each part of a training step is, for a reader of the bill.
PART_NOTES = dict(beside(__file__, "parts")[1:])


def _scaling(problem: Problem, cases: Cases, best: int) -> list[Size]:
    """Return how cost and time trade off with the size of the cluster, on the offer of one case.

    Sizes are doublings of the unit, and halfway between where whole nodes are sold, from a quarter of the chosen one
    to sixteen times it; what has no layout is left out.
    """
    request, offer, chosen = int(cases.request[best]), int(cases.offer[best]), int(cases.gpus[best])
    supply = problem.supply
    unit, largest = int(supply.unit_gpus[offer]), int(supply.largest_gpus[offer])
    low = max(int(supply.minimum_gpus[offer]), unit)
    # within a quarter and sixteen times the chosen size, and what one order may hold
    low, largest = max(low, chosen // _SIZES_BELOW), min(largest, chosen * _SIZES_ABOVE)
    doubled = {unit * 2**j for j in range(32)}  # more than anyone sells
    whole_system = unit >= supply.keys[int(supply.key[offer])].system.gpus
    halfway = {count // 2 * 3 for count in doubled if count > unit} if whole_system else set()
    counts = np.array(sorted(count for count in doubled | halfway | {chosen} if low <= count <= largest), np.int64)
    tried = evaluate(problem, np.full(len(counts), request), np.full(len(counts), offer), counts)
    rows: list[Size] = []
    for row, count in enumerate(counts.tolist()):
        cost_usd = finite(tried.costs.cost_usd[row])
        if not tried.speed.fits[row] or cost_usd is None:
            continue
        rows.append(
            {
                "gpus": count,
                "nodes": int(tried.factors.nodes[row]),
                "days": finite(tried.costs.days[row]),
                "cost_usd": cost_usd,
                "cost_low_usd": finite(tried.costs.cost_low_usd[row]),
                "cost_high_usd": finite(tried.costs.cost_high_usd[row]),
                "mfu_fraction": finite(tried.speed.mfu_fraction[row]),
                "tokens_per_s_per_gpu": finite(tried.speed.tokens_per_s_per_gpu[row]),
                "chosen": count == chosen,
            }
        )
    return rows


def _drivers(cases: Cases, best: int, loading: Feeding | None, written: dict[str, float] | None = None) -> list[Driver]:
    """Return what dominates the cost: the lines of the bill, the steps' hours split by the parts of a step."""
    # the shares of a step's seconds: waiting for data first, then writing beside training, then training by part
    total = float(cases.costs.cost_usd[best])
    stall = loading["stall_fraction"] if loading else 0.0
    whole = sum(written.values()) if written else 1.0
    trained = written["training"] / whole if written else 1.0
    seconds = (1 - stall) * trained * cases.speed.parts_s[best] / cases.speed.parts_s[best].sum()
    beside = {name: (1 - stall) * part / whole for name, part in (written or {}).items() if name != "training"}
    rows: list[Driver] = []
    for line in lines_of(cases.factors, cases.costs, best):
        share = line["cost_usd"] / total if total else 0.0
        if line["name"] != "compute":
            rows.append({"name": line["name"], "share_fraction": share, "note": line["note"]})
            continue
        parts = zip((*PARTS, "loading_s", *beside), (*seconds, stall, *beside.values()), strict=True)
        for name, part in parts:
            label = name.removesuffix("_s").replace("_", " ")
            note = PART_NOTES.get(label, "")
            if part > 0:
                rows.append({"name": f"steps: {label}", "share_fraction": share * float(part), "note": note})
    rows.sort(key=lambda row: -row["share_fraction"])
    return [row for row in rows if row["share_fraction"] >= _SMALLEST_SHARE]


# --- From a request to its answer: facts, cases, ranking, follow-ups, payload.

_METHODS = {"full": "full training", "lora": "LoRA", "qlora": "QLoRA", "grpo": "GRPO"}
_SIZE_RULES = {
    "cost": "the cheapest clusters that meet it",
    "carbon": "the sizes with the least carbon",
    "time": "the fastest sizes",
    "pareto": "the best trade-offs between cost and time",
}

Flags = NDArray[np.bool_]


def estimate(request: TrainingRequest, catalog: Catalog, *, with_facts: bool = True) -> Estimate:
    """Answer a training request from a catalog; `with_facts` embeds what a rerun needs."""
    architecture = catalog.architecture(request.model)
    market, mask = select(request, catalog)
    try:
        result = answer_request(request, architecture, market, mask, _calibration_of(request, catalog))
    except NothingFitsError as error:
        raise _beside_larger(error, request, catalog) from None
    ahead = catalog.holding(request.gpu)
    if request.pool:
        ahead = [*_ended_pools(result["options"], pool_ends(request.pool), market, catalog.as_of), *ahead]
    result = {**result, "warnings": [*ahead, *result["warnings"]]}
    return {**result, "facts": embed(market.facts, mask, architecture)} if with_facts else result


def _calibration_of(request: TrainingRequest, catalog: Catalog) -> Calibration:
    """Return the calibration of a request; one that writes what it trains on asks for that of serving as well."""
    calibration = training_calibration(catalog)
    if request.written is None:
        return calibration
    if "writing_calibration" not in catalog.derived:  # one object, by whose identity requests are grouped
        catalog.derived["writing_calibration"] = replace(calibration, generation=serving_calibration(catalog))
    written: Calibration = catalog.derived["writing_calibration"]
    return written


def _beside_larger(error: NothingFitsError, request: TrainingRequest, catalog: Catalog) -> NothingFitsError:
    """Name what hosts so many accelerators, where one alone was asked for and its offers cannot."""
    # of several accelerators, or where something else is wrong, a larger machine is no answer
    if request.gpus is None or request.gpu is None or "," in request.gpu or "can host" not in str(error):
        return error
    larger = filters.history_of_larger(catalog, request.gpu, request.gpus, request.provider)
    return NothingFitsError(f"{error}{larger}").offering(**error.change).reaching(**error.nearest)


# --- The first options alone, of many requests: the rows of a sweep.


class FirstOption(NamedTuple):
    """The offer that leads an answer, and every number of its case by name."""

    offer: Offer
    numbers: dict[str, float]


class _PlacedRequest(NamedTuple):
    """A request at its place in the sweep, with what it is computed from."""

    place: int
    request: TrainingRequest
    architecture: Architecture
    market: Market
    mask: Flags


_LINES_AT_ONCE = 1 << 10  # pairs of a request and an offer, with some ten sizes each, at about a kilobyte
_OF_MARKET = (*CHOOSING, "pool", "pool_view")


def first_options(requests: Sequence[TrainingRequest], catalog: Catalog) -> list[FirstOption | GpuCostError]:
    """Return the first option of each request, or why it has none; those of one market are searched together."""
    rows: list[FirstOption | GpuCostError | None] = [None] * len(requests)
    markets: dict[tuple[Any, ...], tuple[Market, Flags]] = {}
    groups: dict[tuple[int, int], list[_PlacedRequest]] = {}
    for place, request in enumerate(requests):
        try:
            name = tuple(getattr(request, field) for field in _OF_MARKET)
            if name not in markets:  # making a market takes longer than searching it
                markets[name] = select(request, catalog)
            placed = _PlacedRequest(place, request, catalog.architecture(request.model), *markets[name])
        except GpuCostError as error:
            rows[place] = error
            continue
        # by identity: equal markets of one sweep are one object
        groups.setdefault((id(placed.market), id(_calibration_of(request, catalog))), []).append(placed)
    # parts of a group, so that the cases of one search stay within some 10 MB
    for group in groups.values():
        lines = np.cumsum([placed.mask.sum() for placed in group]) // _LINES_AT_ONCE
        for part in np.split(np.arange(len(group)), np.flatnonzero(np.diff(lines)) + 1):
            _put_first([group[number] for number in part], catalog, rows)
    return cast(list[FirstOption | GpuCostError], rows)


def _put_first(
    group: Sequence[_PlacedRequest], catalog: Catalog, rows: list[FirstOption | GpuCostError | None]
) -> None:
    """Put the first options of requests of one market; where one of them cannot be searched, each alone."""
    market, calibration = group[0].market, _calibration_of(group[0].request, catalog)
    requests = tuple(placed.request for placed in group)
    architectures, masks = tuple(placed.architecture for placed in group), tuple(placed.mask for placed in group)
    try:
        problem = make_problem(requests, architectures, market, masks, calibration)
        cases, chosen = search(problem, leading_only=True)
    except GpuCostError as error:
        if len(group) == 1:
            rows[group[0].place] = error
        else:  # one fault must not cost the others their rows
            for placed in group:
                _put_first([placed], catalog, rows)
        return
    for number, placed in enumerate(group):
        of_request = chosen[cases.request[chosen] == number]
        order = rank(problem, cases, number, of_request)
        if len(order):
            case = int(order[0])
            numbers = {**cases.factors.row(case), **cases.costs.row(case), "gpus": float(cases.gpus[case])}
            numbers["mfu_fraction"] = float(cases.speed.mfu_fraction[case])
            rows[placed.place] = FirstOption(problem.supply.offers[int(cases.offer[case])], numbers)
        else:
            refusal = _nothing(problem, cases, placed.request, of_request)
            if isinstance(refusal, NothingFitsError):
                refusal = _beside_larger(refusal, placed.request, catalog)
            rows[placed.place] = refusal


def _ended_pools(
    options: Sequence[Mapping[str, Any]], ends: Mapping[str, date], market: Market, today: date
) -> list[str]:
    """Say which pools end before a run on them does, and what the rest is expected to cost on the market."""
    rented = filters.usual(market) & np.array([offer.provider != "own" for offer in market.facts.offers], bool)
    sentences = []
    for row in options:
        parts = str(row.get("offer_id") or "").split("/")
        end = ends.get(parts[1]) if parts[0] == "own" and len(parts) > 1 else None
        if end is None:
            continue
        pool_days = (end - today).days + 1  # its last day counts
        if row["days"] <= pool_days:
            continue
        left = float(row["gpu_hours"]) * (1 - pool_days / row["days"])
        # at what the market asks today for as many, without one's own pools
        hire = cheapest(market, row["gpu"], int(row["gpus"]), rented)
        run = f"the {row['days']:,.0f} days of the run on it"
        text = f"{row['instance_type']} ends on {end}, after {pool_days} of {run}"
        if hire is None:
            sentences.append(f"{text}; nobody else is known to rent {row['gpu']} for the rest")
            continue
        price = hire.usd_per_gpu_hour
        sentences.append(
            f"{text}; the {left:,.0f} GPU-hours left cost about ${left * price:,.0f} on demand at"
            f" {hire.offer.provider}, ${price:.2f} each, instead of"
            f" ${left * row['usd_per_gpu_hour']:,.0f}"
        )
    return list(dict.fromkeys(sentences))  # several options may stand in one pool


def calibration_digest(calibration: Calibration) -> str:
    """Return a short hash of a calibration, so that a saved answer knows which one it was computed with."""
    from hashlib import sha256

    # everything that moves a prediction, in an order of its own
    pairs = sorted([*calibration.values.items(), *calibration.ranges.items()])
    generation = calibration.generation
    if generation is not None:
        pairs += sorted([*generation.values.items(), *generation.ranges.items()])
    runs = [f"{run.name}={run.ratio!r}@{run.configuration}" for run in calibration.runs]
    texts = [*(f"{name}={value!r}" for name, value in pairs), *runs, *map("=".join, calibration.stacks.items())]
    return sha256(";".join(texts).encode()).hexdigest()[:12]


def select(request: TrainingRequest, catalog: Catalog) -> tuple[Market, Flags]:
    """Return the market and the offers in it that a request looks at; the user's pools come on top."""
    market = filters.placeless(market_of(catalog), catalog, request)
    market = filters.at_own_price(market, catalog, request)
    mask = filters.asked_for(market, catalog, request)
    market = filters.at_most(market, request.max_gpus)
    if request.pool:
        offers, systems = read_pool(request.pool, catalog, market.facts.as_of, request.pool_view)
        market = filters.at_most(make_market(with_offers(market.facts, offers, systems)), request.max_gpus)
        mask = np.concatenate([mask, np.ones(len(offers), bool)])  # no filter leaves out what one has
    if not mask.any():
        if request.gpu is None or request.usd_per_gpu_hour is not None or catalog.offers(request.gpu):
            raise filters.no_price(market, catalog, request)
        # Nobody sells it. At any price of one chip the cheapest run is that of the fewest GPU-hours: an answer without
        # a price.
        run = estimate(replace(request, usd_per_gpu_hour=1.0), catalog, with_facts=False)["options"][0]
        effort = f"{run['days']:.3g} days and {run['gpu_hours']:,.0f} GPU-hours on {cluster(run)}"
        raise PriceMissingError(
            f"no seller is known for {run['gpu']} as of {catalog.as_of}: {effort}, at {run['mfu_fraction']:.0%} MFU."
            " --usd-per-gpu-hour PRICE sets the price."
        ).reaching(gpus=run["gpus"], days=run["days"])
    return market, mask


def workload_of(request: TrainingRequest, architecture: Architecture, day: date) -> Workload:
    """Return the physical side of a request of a day."""
    workload = make_workload(
        architecture,
        tokens=request.trained_tokens,
        sequence_tokens=request.sequence_tokens,
        global_batch=request.global_batch,
        precision=request.precision,
        method="full" if request.method == "grpo" else request.method,  # its training steps are those of all weights
        lora_rank=request.lora_rank,
        lora_targets=request.lora_targets,
        software=request.software,
        own_speed=request.own_speed,
        software_year=request.software_year,
        latest_year=latest_year(day),
        document_tokens=request.document_tokens,
        offload=request.offload,
        rollouts=request.written,
        flash=request.flash,
        dispatcher=request.dispatcher,
    )
    return with_loading(workload, request.data_flow, request.tokens)


def make_problem(
    requests: tuple[TrainingRequest, ...],
    architectures: tuple[Architecture, ...],
    market: Market,
    masks: tuple[Flags, ...],
    calibration: Calibration,
) -> Problem:
    """Join requests with a market."""
    workloads = tuple(
        workload_of(request, architecture, market.facts.as_of)
        for request, architecture in zip(requests, architectures, strict=True)
    )
    for request, workload, mask in zip(requests, workloads, masks, strict=True):
        if workload.own_speed is not None:  # against the peaks of the chips that are looked at
            # a speed of one's own must be possible on every chip that is looked at
            keys = np.unique(market.supply.key[mask])
            chips = [market.supply.keys[key].accelerator for key in keys]
            training.check(workload.own_speed, chips, request.gpus or 1, step_work(workload))
    return Problem(
        requests=requests,
        workloads=workloads,
        sizes=tuple(sizes(workload) for workload in workloads),
        supply=market.supply,
        terms=market.terms,
        failures_per_gpu_year=failures_per_gpu_year(market.book),
        masks=masks,
        calibration=calibration,
    )


def table_rows(request: TrainingRequest, catalog: Catalog) -> list[dict[str, Any]]:
    """Return the table of a request, a row for each offer: its rank and figures, or why it has no rank."""
    architecture = catalog.architecture(request.model)
    try:
        market, mask = select(request, catalog)
    except (NothingFitsError, PriceMissingError):  # nothing is on offer
        return []
    problem = make_problem((request,), (architecture,), market, (mask,), training_calibration(catalog))
    cases, chosen = search(problem)
    table = table_of(problem, market, cases, chosen)
    rows = []
    for line in table.lines:
        offer, case, gpus = problem.supply.offers[line.offer], line.case, int(cases.gpus[line.case])
        row: dict[str, Any] = {
            **table.row(line, offer, problem.terms, gpus),
            **seller(offer),
            **seen(offer, problem.terms, line.offer, 0.0),
            "instances": gpus // max(offer.gpus, 1),
        }
        if cases.speed.fits[case] and np.isfinite(cases.costs.cost_usd[case]):  # else there is nothing to tell
            row |= {**_speed(cases, case), **figures(RunOutcome, cases.costs, case)}
            row |= figures(Budgeted, cases.costs, case)
            row["interruptions"] = float(cases.costs.interruptions[case])
        rows.append(row)
    return rows


def answer_request(
    request: TrainingRequest, architecture: Architecture, market: Market, mask: Flags, calibration: Calibration
) -> Estimate:
    """Answer one request over a market; the same path serves a fresh estimate and a rerun."""
    problem = make_problem((request,), (architecture,), market, (mask,), calibration)
    cases, chosen = search(problem)
    table = table_of(problem, market, cases, chosen)
    if not table.options:
        raise _nothing(problem, cases, request, chosen)
    return payload(problem, market, cases, table, architecture)


def payload(problem: Problem, market: Market, cases: Cases, table: OfferTable, architecture: Architecture) -> Estimate:
    """Build the answer's payload."""
    request, facts, best = problem.requests[0], market.facts, table.lines[0].case
    groups = table.groups()
    # the first of each group as an option, and where else it is sold
    options: list[RankedOption] = [
        {
            **option(problem, facts, cases, group[0], rank),
            "also_in": [_elsewhere(problem, cases, case) for case in group[1:]],
        }
        for rank, group in enumerate(groups[: request.top or None], 1)
    ]
    headline, precision = lead(options[0], len(groups)), options[0]["layout"]["precision"]
    # What the first reads against what it is fed, where that was asked about.
    loading: Feeding | None = None
    workload = problem.workloads[int(cases.request[best])]
    if workload.loading is not None:
        # what it would read if it were never kept waiting
        first_request, gpus = np.zeros(1, np.int64), cases.gpus[best : best + 1]
        key, runs = problem.supply.key[cases.offer[best : best + 1]], (replace(workload, loading=None),)
        hungry = speeds_of(runs, problem.supply.keys, problem.calibration, first_request, key, gpus)
        loading = workload.loading.feeding(float(hungry.tokens_per_s_per_gpu[0] * gpus[0]), int(gpus[0]))
    written = _rollout_phases(problem, cases, best)
    # What the bill takes for granted beside the steps; what the request states is marked as stated.
    declared = {
        "ramp_hours": assume.RAMP_HOURS,
        "restart_hours": assume.RESTART_HOURS,
        "checkpoint_write_gb_per_s_per_node": assume.WRITE_GB_PER_S_PER_NODE,
        "checkpoints_kept": assume.CHECKPOINTS_KEPT,
        "state_bytes_per_parameter": assume.STATE_BYTES_PER_PARAMETER,
        "evaluation_fraction": assume.EVALUATION_FRACTION.stated(request.evaluation_fraction),
        "preemptions_per_node_hour_unmeasured": unmeasured(),
    }
    low, typical, high = problem.failures_per_gpu_year
    measured = (row["source_id"] for row in facts.assumptions if row["item"] == "job_interruptions_llama3")
    why = "unexpected interruptions by hardware and software faults"
    rows = [
        *((name, x.value, x.low, x.high, x.unit, "assumed", None, x.reason) for name, x in declared.items()),
        ("failures_per_gpu_year", typical, low, high, "per GPU-year", "sourced", next(measured, None), why),
    ]
    assumptions = [cast(AssumedValue, dict(zip(_ASSUMED, row, strict=True))) for row in rows]
    stated = statements(problem, request, architecture, precision, options[0], loading, cases.speed.take([best]))
    rollouts = problem.workloads[0].rollouts
    if rollouts is not None and written is not None:  # how much is written, and what a step's time goes to
        whole = sum(written.values())
        shares = ", ".join(f"{part / whole:.0%} {name}" for name, part in written.items() if part >= 0.005 * whole)
        sentence = (
            f"Each prompt of {rollouts.prompt_tokens:,.0f} tokens has {rollouts.answers} answers of"
            f" {rollouts.output_tokens:,.0f}, all written before they are trained on; a step is {shares}. No published"
            " step was fitted to: the range of writing is that of a server whose settings nobody chose."
        )
        stated.append(("Phases", sentence))
    # every source that a figure of the answer rests on
    ids = (
        [name for option in options for name in option["source_ids"]]
        + [row["source_id"] for row in assumptions]
        + [architecture.source_id]
    )
    # What a reader must know of the whole answer.
    notices = list(problem.workloads[0].architecture.warnings)
    if problem.workloads[0].rollouts is not None:
        from gpucost.workloads.rollouts import NOT_PRICED

        notices.insert(0, NOT_PRICED)
    number = int(cases.offer[best])
    notices += large_order(problem.supply.offers[number], problem.terms, number, int(cases.gpus[best]))
    if rate_is_prior(problem, number):
        notices.append("The top offer's interruption rate is assumed; the range covers it.")
    if problem.workloads[0].architecture.status == "synthesised":
        notices.append(
            f"{problem.workloads[0].architecture.name} is synthesised from its size; give a config.json for its exact"
            " dimensions."
        )
    notices += too_long(problem.workloads[0].architecture, problem.workloads[0].sequence_tokens)
    if cases.speed.confidence[best] == "low":
        notices.append(
            "Few measurements exist for the top offer's accelerator: its speed comes from the datasheet and has a wide"
            " range."
        )
    return {
        "kind": "estimate",
        "gpucost_version": __version__,
        **frame(request.to_dict(), facts.as_of, facts.catalog_version),
        "calibration": calibration_digest(problem.calibration),
        "headline": headline,
        "lead": " ".join([headline, *(sentence for _, sentence in stated)]),
        "stated": [{"label": label, "text": sentence.removeprefix(f"{label} ")} for label, sentence in stated],
        "workload": _workload_row(problem, architecture, precision),
        "highlights": highlights(problem, cases, table, Providers(facts.providers)),
        "options": options,
        "options_found": len(groups),
        "offers_found": len(table.options),
        "offers": offer_rows(problem, cases, table),
        "regions": by_region(problem, cases, table),
        "scaling": _scaling(problem, cases, best),
        "alternatives": alternatives(problem, cases, table),
        "drivers": _drivers(cases, best, loading, written),
        "assumptions": assumptions,
        "not_included": [*_NOT_INCLUDED, *([] if written is None else [_NOT_INCLUDED_OF_ROLLOUTS])],
        "warnings": [*notices, *filters.outside_region(facts.placeless)],
        "remarks": filters.prices_not_used(facts.ended),
        "sources": cited(facts.sources, ids),
        **({"loading": loading} if loading else {}),  # type: ignore[typeddict-item] # nothing more
    }


def _workload_row(problem: Problem, architecture: Architecture, precision: str) -> WorkloadRow:
    """Return what is trained, in numbers; the precision is that of the first option."""
    workload, size, request = problem.workloads[0], problem.sizes[0], problem.requests[0]
    return {
        "model": architecture.name,
        "model_status": architecture.status,
        "parameters": size.parameters,
        "active_parameters": size.active_parameters,
        "trained_parameters": size.trained_parameters,
        "trained_tokens": request.trained_tokens,
        "sequence_tokens": workload.sequence_tokens,
        "global_batch": workload.global_batch,
        "precision": precision,
        "method": request.method,
        "model_flop_per_token": size.model_flop_per_token,
        "model_flop": size.model_flop_per_token * request.trained_tokens,
    }


def lead(best: RankedOption, count: int) -> str:
    """Say the answer in a few sentences: what, where, for how much, at which price of which day."""
    place = f" in {best['region']}" if best["region"] else ""
    option = OPTIONS[best["option"]].label
    time = f"{best['days']:.1f} days" if best["days"] >= 1 else f"{best['days'] * 24:.1f} hours"
    digits = 0 if best["cost_usd"] >= 100 else 2  # cents say something of small runs alone
    cost, low, high = (f"{best[name]:,.{digits}f}" for name in ("cost_usd", "cost_low_usd", "cost_high_usd"))
    budget = f"{best['budget_usd']:,.{digits}f}"
    return (
        f"Budget {budget} USD: about {cost} USD ({low} to {high}) and {time} on"
        f" {cluster(best)} at {best['provider']}{place}, {option}: {best['gpu_hours']:,.0f} GPU-hours at"
        f" {best['usd_per_gpu_hour']:.2f} USD (seen {best['price_observed_on']}), {best['mfu_fraction']:.0%} MFU;"
        f" {counted(count, 'option')}."
        f"{unlisted(best['age_days'], best['price_book'])}"
    )


def statements(
    problem: Problem,
    request: TrainingRequest,
    architecture: Architecture,
    precision: str,
    best: RankedOption,
    loading: Feeding | None,
    speed: Speeds,
) -> list[tuple[str, str]]:
    """Say aloud what the request left open, each sentence under a label."""
    workload, size = problem.workloads[0], problem.sizes[0]
    name = architecture.name if architecture.name == request.model else f"{request.model} = {architecture.name}"
    origin = " (synthesised from its size)" if architecture.status == "synthesised" else ""
    trained = "" if request.trained_tokens == request.tokens else f" {format_count(request.trained_tokens)} tokens,"
    model = (
        f"{name}: {format_count(size.parameters)} parameters{origin}, {_METHODS[request.method]}, {precision};{trained}"
        f" {workload.global_batch:,} sequences of {workload.sequence_tokens:,} tokens per step."
    )
    lines = [("Model", model)]
    if request.deadline_days is None:
        count = "" if request.gpus is None else f"; {counted(request.gpus, 'accelerator')} as requested"
        lines.append(("Deadline", f"No deadline{count}."))
    else:
        deadline_source = "requested" if request.deadline_given else "assumed, --deadline"
        rule = _SIZE_RULES[request.optimize]
        if request.gpus is not None:
            rule = f"on {counted(request.gpus, 'accelerator')}"
        lines.append(("Deadline", f"Deadline {request.deadline_days:g} days ({deadline_source}): {rule}."))
    overhead = f"{request.evaluation_fraction:.0%} overhead outside training steps"
    if request.own_speed is not None:
        speed_used = (
            f"Uses your own speed: {best['mfu_fraction']:.1%} MFU in training steps,"
            f" {best['mfu_paid_fraction']:.1%} over the paid hours."
        )
        lines += [("Speed", speed_used), ("Assumes", f"Assumes {overhead}.")]
    else:
        lines.append(("Assumes", f"Assumes {request.software} software and {overhead} (--overhead)."))
        # what would narrow the range of speed most, where training steps set it and no price that moves is wider
        if loading is None and workload.rollouts is None and not OPTIONS[best["option"]].interruptible:
            calibration = problem.calibration
            point = best["tokens_per_s_per_gpu"]
            low, high = best["tokens_per_s_per_gpu_low"], best["tokens_per_s_per_gpu_high"]
            fused = float(speed.tokens_per_s_per_gpu_low_fused[0])
            plain = float(speed.tokens_per_s_per_gpu_high_plain[0])
            unsaid = [Unsaid(*ATTENTION, fused, high), Unsaid(*DISPATCHER, low, plain)]
            if class_of(workload.software, calibration.stacks) == TYPICAL:
                unsaid.append(STACK.unsaid(calibration.ranges, point, fused, plain, TRAINING))
            sentence = costliest(unsaid, point, low, high)
            if sentence:
                lines.append(("Range", sentence))
    return [*lines, ("Data", loading["said"])] if loading else lines


def _reached(cases: Cases, case: int) -> dict[str, float]:
    """Return what a refusal tells of the nearest answer."""
    costs = cases.costs
    return {
        "gpus": int(cases.gpus[case]),
        "days": float(costs.days[case]),
        "cost_usd": float(costs.cost_usd[case]),
    }


def _nothing(problem: Problem, cases: Cases, request: TrainingRequest, chosen: Indices) -> GpuCostError:
    """Return the error that says why no offer will do and what would.

    The refusal of a stated number of accelerators offers the nearest number that brings an answer; where none keeps
    the deadline and the budget, the nearest that can run it at all.
    """
    error, number = _refusal(problem, cases, request, chosen), int(cases.request[chosen[0]])
    request = problem.requests[number]
    if error.change or request.gpus is None:
        return error
    counts = other_counts(problem, number)
    free = replace(request, deadline_days=None, max_cost_usd=None)
    # first every count under all that was stated, then without deadline and budget
    for row in [replace(row, gpus=count) for row in (request, free) for count in counts]:
        question = replace(
            problem,
            requests=(row,),
            workloads=(problem.workloads[number],),
            sizes=(problem.sizes[number],),
            masks=(problem.masks[number],),
        )
        cases, chosen = search(question)
        order = rank(question, cases, 0, chosen)
        if len(order):
            nearest = _reached(cases, int(order[0]))
            costs = f"it costs {nearest['cost_usd']:,.2f} USD and takes {nearest['days']:,.1f} days"
            return type(error)(f"{error} On {row.gpus:,} {costs}.").offering(gpus=row.gpus).reaching(**nearest)
    return error


def _refusal(problem: Problem, cases: Cases, request: TrainingRequest, chosen: Indices) -> GpuCostError:
    """Return the error that says why no case of one request will do, and which of them is nearest to it."""
    number = int(cases.request[chosen[0]])
    # from what concerns every offer to what concerns the nearest one: prices, chips, memory, time, money
    usable = chosen[~too_old(problem, cases, request, chosen)]
    if not len(usable):
        newest = min(problem.supply.offers[int(offer)].age_days for offer in cases.offer[chosen])
        return PriceMissingError(
            f"every price is older than allowed; the newest is {newest} days old. Try --max-age {newest}d without"
            " --strict-prices."
        ).offering(max_age=f"{newest}d")
    if (cases.speed.reason[usable] == NO_TRAINING).all():
        gpu = problem.supply.offers[int(cases.offer[usable[0]])].gpu
        return NothingFitsError(f"{gpu} {FOR_INFERENCE}")
    if (cases.speed.reason[usable] == NO_PRECISION).all():
        precisions = " or ".join(name for name in ("bf16", "fp16", "fp32") if name != request.precision)
        return NothingFitsError(
            f"none of the accelerators on offer that day has {request.precision or '16-bit'} matrix units. Try"
            f" --precision {precisions}."
        )
    fitting = usable[cases.speed.fits[usable] & np.isfinite(cases.costs.cost_usd[usable])]
    if not len(fitting):
        # the largest cluster that could be ordered says best why not
        possible = usable[orderable(problem, cases, usable)]
        tried = possible if len(possible) else usable
        largest = int(tried[np.argmax(cases.gpus[tried])])
        model, idle = problem.workloads[number].architecture.name, cases.speed.reason[largest] == NO_BATCH
        return NothingFitsError(
            f"{model}: no offer can host this run: {exclusion(problem, cases, request, largest)}. Try"
            f" {'fewer accelerators or a larger --global-batch' if idle else 'more or larger accelerators'}."
        )
    # an offer that nobody could order is no reason to take more time, or to raise a budget to its price
    buyable = fitting[orderable(problem, cases, fitting) & ~too_bound(problem, cases, request, fitting)]
    timely = fitting if len(buyable) == 0 else buyable
    if request.deadline_days is not None:
        met = timely[cases.costs.days[timely] <= request.deadline_days]
        if len(buyable) and not len(met):  # all miss it: name the fastest, of equals the cheapest
            order = np.lexsort((cases.costs.cost_usd[buyable], cases.costs.days[buyable]))
            fastest = int(buyable[order[0]])
            days = float(cases.costs.days[fastest])
            late = NothingFitsError(
                f"no offer meets {request.deadline_days:g} days; the fastest takes {days:,.1f} days on"
                f" {int(cases.gpus[fastest])} × {problem.supply.offers[int(cases.offer[fastest])].gpu}. Try"
                f" --deadline {int(np.ceil(days))}d or more accelerators."
            )
            return late.offering(deadline=f"{int(np.ceil(days))}d").reaching(**_reached(cases, fastest))
        timely = met if len(met) else timely
    cheapest = int(timely[np.lexsort((cases.costs.days[timely], cases.costs.budget_usd[timely]))[0]])
    if len(buyable) and request.max_cost_usd is not None and cases.costs.budget_usd[cheapest] > request.max_cost_usd:
        offer = problem.supply.offers[int(cases.offer[cheapest])]
        options = counted(len(fold(problem, cases, timely)), "option")
        error = OverBudgetError(
            f"the lowest budget of {options} is {cases.costs.budget_usd[cheapest]:,.2f} USD ({offer.provider}"
            f" {offer.instance_type}, {int(cases.gpus[cheapest])} × {offer.gpu}), over the budget of"
            f" {request.max_cost_usd:,.2f} USD."
        )
        budget = int(np.ceil(cases.costs.budget_usd[cheapest]))
        return error.offering(budget=budget).reaching(**_reached(cases, cheapest))
    return NothingFitsError(f"no offer can be ordered for this run: {exclusion(problem, cases, request, cheapest)}.")
