"""From a training request to its answer: facts, cases, ranking, what a person asks next, payload."""

from collections.abc import Mapping, Sequence
from datetime import date
from operator import attrgetter
from typing import Any, Literal, cast

import numpy as np
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from gpucost import __version__
from gpucost.answers.common import AssumedValue, BillLine, Excluded, LayoutRow, cited, figures, finite, frame
from gpucost.answers.training import (
    Alternative,
    Contract,
    Driver,
    Elsewhere,
    Estimate,
    Factors,
    Feeding,
    Highlight,
    Interruptions,
    RankedOption,
    RegionBest,
    RunOutcome,
    RunPoint,
    Size,
    Speed,
    TrainingOption,
    WorkloadRow,
)
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.gate import beside
from gpucost.market import facts as pool
from gpucost.market import interruptions as assume
from gpucost.market.facts import (
    OLD_PRICE,
    Facts,
    Market,
    asked_for,
    at_most,
    at_own_price,
    embed,
    make_market,
    market_of,
    no_price,
    outside_region,
    placeless,
    prices_not_used,
    said_of_larger,
    with_offers,
)
from gpucost.market.interruptions import failures_per_gpu_year, unmeasured
from gpucost.market.supply import left_out
from gpucost.market.terms import (
    ASSUMED_FORM,
    cluster,
    credited,
    doubted_price,
    old_price,
    quoted,
    seen,
    seller,
    unlisted,
)
from gpucost.market.terms import said as credits_said
from gpucost.market.tiers import confirm
from gpucost.money.training_bill import BILL
from gpucost.options import OPTIONS, is_plain
from gpucost.physics.calibration import Calibration
from gpucost.physics.training.cases import PARTS
from gpucost.physics.training.grid import FOR_INFERENCE
from gpucost.physics.training.layouts import NO_BATCH, NO_PRECISION, NO_TRAINING, latest_year
from gpucost.training.cases import (
    Cases,
    Problem,
    can_be_option,
    evaluate,
    exclusion,
    exclusions,
    front_of,
    lacking,
    lines_of,
    orderable,
    rank,
    rate_is_prior,
    too_bound,
    too_old,
    verified,
)
from gpucost.training.request import TrainingRequest
from gpucost.training.search import other_counts, search
from gpucost.types import Architecture, Offer
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR, counted, format_count
from gpucost.workloads import training
from gpucost.workloads.speeds import speeds_of
from gpucost.workloads.training import Workload, make_workload, sizes, step_work, too_long, with_loading

# --- The answer of a training estimate as a JSON-able payload; rendering needs nothing else.

NOT_INCLUDED = (
    "data acquisition, cleaning and tokenisation",
    "staff, support plans and software licences",
    "trial runs and failed experiments, unless given as a share of the run",
    "reading the dataset in from elsewhere, and traffic between regions",
    "taxes, and discounts that you negotiated (a price book holds those)",
)


NOT_INCLUDED_OF_ROLLOUTS = "reward models, verifiers and environments, and waiting for them"


def option(problem: Problem, facts: Facts, cases: Cases, case: int, rank: int) -> TrainingOption:
    """Return one option: who, where, how many, how fast, at what cost, with its bill and its factors."""
    lines = _lines(problem, cases, case)
    offer = problem.supply.offers[int(cases.offer[case])]
    sources = dict.fromkeys([offer.source_id, *(line["source_id"] for line in lines)])
    size = problem.sizes[int(cases.request[case])]
    paid = _credits(facts, cases, case, offer)
    return {
        "rank": rank,
        **seller(offer),
        "gpus": int(cases.gpus[case]),
        "nodes": int(cases.factors.nodes[case]),
        "instances": int(cases.gpus[case]) // max(offer.gpus, 1),
        **_speed(cases, case),
        **figures(RunOutcome, cases.costs, case),
        "usd_per_gpu_hour": float(problem.terms.usd_per_gpu_hour[int(cases.offer[case])]),
        **seen(offer, problem.terms, int(cases.offer[case]), paid, lacking(problem, cases, case)),
        **figures(Contract, cases.costs, case),
        **interruptions(problem, cases, case),
        "components": step_parts(problem, cases, case),
        "source_ids": [name for name in sources if name],
        "lines": lines,
        "notes": [
            *notes(problem, cases, case),
            *([credits_said(paid, float(cases.costs.cost_usd[case]))] if paid else []),
        ],
        "factors": {**factors(cases, case), "model_flop_per_token": size.model_flop_per_token},
    }


_STRETCHED = (
    "checkpoint_hours",
    "interval_hours",
    "stretch_paid_ratio",
    "stretch_calendar_ratio",
    "stretch_low_ratio",
    "stretch_high_ratio",
    "stretch_spread_ratio",
)


def _credits(facts: Facts, cases: Cases, case: int, offer: Offer) -> float:
    months = max(float(cases.costs.days[case]) / DAYS_PER_YEAR * MONTHS_PER_YEAR, 1e-6)
    return round(credited(facts.credits, offer, float(cases.costs.cost_usd[case]), months, facts.as_of), 2)


def _speed(cases: Cases, case: int) -> Speed:
    speed, costs = cases.speed, cases.costs
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


def elsewhere(problem: Problem, cases: Cases, case: int) -> Elsewhere:
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


def feeding(problem: Problem, cases: Cases, case: int) -> Feeding | None:
    """Return what a case reads against what it is fed, where that was asked about."""
    workload = problem.workloads[int(cases.request[case])]
    if workload.loading is None:
        return None
    first_offer, gpus = np.zeros(1, np.int64), cases.gpus[case : case + 1]
    key = problem.supply.key[cases.offer[case : case + 1]]
    hungry = speeds_of(
        (replace(workload, loading=None),), problem.supply.keys, problem.calibration, first_offer, key, gpus
    )
    return workload.loading.feeding(float(hungry.tokens_per_s_per_gpu[0] * gpus[0]), int(gpus[0]))


def rollout_phases(problem: Problem, cases: Cases, case: int) -> dict[str, float] | None:
    """Return the seconds of a step by phase where the model is trained on what it writes; else None."""
    workload = problem.workloads[int(cases.request[case])]
    if workload.rollouts is None:
        return None
    from gpucost.workloads.rollouts import phases_of, writer_of

    speed, gpus = cases.speed.take(np.array([case])), cases.gpus[case : case + 1]
    keys = [problem.supply.keys[int(problem.supply.key[cases.offer[case]])]]
    training_s = speed.parts_s.sum(axis=1)
    writer, recompute = writer_of(workload, keys, gpus, problem.calibration), speed.layout.recompute
    found = phases_of(workload, writer, keys, gpus, training_s, speed.parts_s, recompute)
    return {
        "writing answers": float(found.writing_s[0]),
        "scoring answers": float(found.scoring_s[0]),
        "training": float(found.training_s[0]),
        "handing weights over": float(found.handing_s[0]),
    }


def _phases_said(problem: Problem, written: dict[str, float] | None) -> list[str]:
    """Say how much is written and what a step's time goes to."""
    rollouts = problem.workloads[0].rollouts
    if rollouts is None or written is None:
        return []
    whole = sum(written.values())
    shares = ", ".join(f"{part / whole:.0%} {name}" for name, part in written.items() if part >= 0.005 * whole)
    return [
        f"Each prompt of {rollouts.prompt_tokens:,.0f} tokens has {rollouts.answers} answers of"
        f" {rollouts.output_tokens:,.0f}, all written before they are trained on; a step is {shares}. No published step"
        " was fitted to: the range of writing is that of a server whose settings nobody chose."
    ]


def step_parts(problem: Problem, cases: Cases, case: int) -> dict[str, float]:
    """Return the seconds of one step by part; what is written to be trained on, and scored, stands beside training."""
    values = cases.speed.parts_s[case]
    parts = {name: float(value) for name, value in zip(PARTS, values, strict=True) if value > 0}
    beside = rollout_phases(problem, cases, case) or {}
    return parts | {f"{name.replace(' ', '_')}_s": part for name, part in beside.items() if name != "training"}


def _lines(problem: Problem, cases: Cases, case: int) -> list[BillLine]:
    """Return the bill with the source of each unit price and whether the seller states it."""
    offer, terms = int(cases.offer[case]), problem.terms
    origin = {
        "offer": (problem.supply.offers[offer].source_id, True),
        "storage": (terms.storage_source_ids[offer], bool(terms.storage_stated[offer])),
        "egress": (terms.egress_source_ids[offer], bool(terms.egress_stated[offer])),
    }
    stated_by = {item.name: item.origin for item in BILL}
    rows: list[BillLine] = []
    for line in lines_of(cases.factors, cases.costs, case):
        source, stated = origin[stated_by[line["name"]]]
        note = line["note"] if stated else f"{line['note']}; typical price, as the provider publishes none"
        status: Literal["sourced", "assumed"] = "sourced" if stated else "assumed"
        rows.append({**line, "note": note, "source_id": source, "status": status})
    return rows


def notes(problem: Problem, cases: Cases, case: int) -> list[str]:
    """Return what a reader must know of one option."""
    terms, number = problem.terms, int(cases.offer[case])
    offer = problem.supply.offers[number]
    remarks = old_price(offer, terms, number)
    if rate_is_prior(problem, number):
        remarks.append("interruption rate assumed: not measured for this product and region")
    if offer.gpu_assumed:
        remarks.append(ASSUMED_FORM)
    if offer.term_months and cases.factors.charge_commitment[case] > 0 and cases.costs.unused_usd[case] > 0:
        remarks.append(f"pays for the whole term of {offer.term_months} months, not only for the hours used")
    if cases.factors.nodes[case] > 1:
        if offer.maximum_units is None:
            remarks.append("largest order unknown: confirm the capacity")
        if not problem.supply.keys[int(problem.supply.key[number])].system.scaleout_gb_per_s:
            remarks.append("several instances share one scale-up domain")
    rule = OPTIONS[offer.option]
    if rule.family == "scheduled" or (rule.family == "on demand" and rule.interruptible):
        remarks.append(f"{rule.label}: {rule.reference}")
    return [*remarks, *doubted_price(offer)]


def excluded(problem: Problem, cases: Cases, number: int, left: Any) -> list[Excluded]:
    """Return the offers that are no option, each with the reason; equal reasons of one product are one entry."""
    request, offers = problem.requests[number], problem.supply.offers
    of_offers = [offers[offer] for offer in cases.offer[left].tolist()]
    return left_out(zip(of_offers, exclusions(problem, cases, request, left), strict=True))


_ASSUMED = ("name", "value", "low", "high", "unit", "status", "source_id", "note")


def assumption_rows(facts: Facts, problem: Problem) -> list[AssumedValue]:
    """Return what was assumed about the run beside its steps, each with its range and where it comes from."""
    declared = {
        "ramp_hours": assume.RAMP_HOURS,
        "restart_hours": assume.RESTART_HOURS,
        "checkpoint_write_gb_per_s_per_node": assume.WRITE_GB_PER_S_PER_NODE,
        "checkpoints_kept": assume.CHECKPOINTS_KEPT,
        "state_bytes_per_parameter": assume.STATE_BYTES_PER_PARAMETER,
        "evaluation_fraction": assume.EVALUATION_FRACTION.stated(problem.requests[0].evaluation_fraction),
        "preemptions_per_node_hour_unmeasured": unmeasured(),
    }
    low, typical, high = problem.failures_per_gpu_year
    measured = (row["source_id"] for row in facts.assumptions if row["item"] == "job_interruptions_llama3")
    why = "unexpected interruptions by hardware and software faults"
    rows = [
        *((name, x.value, x.low, x.high, x.unit, "assumed", None, x.reason) for name, x in declared.items()),
        ("failures_per_gpu_year", typical, low, high, "per GPU-year", "sourced", next(measured, None), why),
    ]
    return [cast(AssumedValue, dict(zip(_ASSUMED, row, strict=True))) for row in rows]


# --- What a person asks next: other cluster sizes, other ways to buy, what dominates the cost.

Indices = NDArray[np.int64]

_SIZES_BELOW, _SIZES_ABOVE = 4, 16  # how many times smaller and larger than the chosen size
_SMALLEST_SHARE = 0.01

# What each part of a training step is, for a reader of the bill.
PART_NOTES = dict(beside(__file__, "parts")[1:])


def scaling(problem: Problem, cases: Cases, best: int) -> list[Size]:
    """Return how cost and time trade off with the size of the cluster, on the offer of one case.

    Sizes are doublings of the unit, and halfway between where whole nodes are sold, from a quarter of the chosen one
    to sixteen times it; what has no layout is left out.
    """
    request, offer, chosen = int(cases.request[best]), int(cases.offer[best]), int(cases.gpus[best])
    supply = problem.supply
    unit, largest = int(supply.unit_gpus[offer]), int(supply.largest_gpus[offer])
    low = max(int(supply.minimum_gpus[offer]), unit)
    low, largest = max(low, chosen // _SIZES_BELOW), min(largest, chosen * _SIZES_ABOVE)
    doubled = {unit * 2**j for j in range(32)}
    whole_system = unit >= supply.keys[int(supply.key[offer])].system.gpus
    halfway = {count // 2 * 3 for count in doubled if count > unit} if whole_system else set()
    counts = np.array(sorted(count for count in doubled | halfway | {chosen} if low <= count <= largest), np.int64)
    tried = evaluate(problem, np.full(len(counts), request), np.full(len(counts), offer), counts)
    rows = [_size(tried, row, int(count) == chosen) for row, count in enumerate(counts)]
    return [row for row in rows if row["cost_usd"] is not None]


def _size(cases: Cases, case: int, chosen: bool) -> Size:
    """Return one size of cluster: what it costs, how long it takes, how well it runs."""
    costs, speed, fits = cases.costs, cases.speed, bool(cases.speed.fits[case])
    return {
        "gpus": int(cases.gpus[case]),
        "nodes": int(cases.factors.nodes[case]),
        "days": finite(costs.days[case]),
        "cost_usd": finite(costs.cost_usd[case]) if fits else None,
        "cost_low_usd": finite(costs.cost_low_usd[case]),
        "cost_high_usd": finite(costs.cost_high_usd[case]),
        "mfu_fraction": finite(speed.mfu_fraction[case]),
        "tokens_per_s_per_gpu": finite(speed.tokens_per_s_per_gpu[case]),
        "chosen": chosen,
    }


def alternatives(problem: Problem, cases: Cases, order: Indices) -> list[Alternative]:
    """Return the cheapest option of each way to buy the accelerator of the first option, and what it saves.

    Where the first option can be ordered as it stands, so can these.
    """
    gpu = problem.supply.offers[int(cases.offer[order[0]])].gpu
    sure = verified(problem, cases, order)
    cheapest: dict[tuple[Any, ...], int] = {}
    for case in order[sure] if sure[0] else order:
        offer = problem.supply.offers[int(cases.offer[case])]
        if offer.gpu == gpu:
            name = (offer.option, offer.term_months, offer.payment)
            if name not in cheapest or cases.costs.cost_usd[case] < cases.costs.cost_usd[cheapest[name]]:
                cheapest[name] = int(case)
    plain = [case for name, case in cheapest.items() if is_plain(name[0])]
    base = min((float(cases.costs.cost_usd[case]) for case in plain), default=None)
    rows = [_alternative(problem, cases, case, base) for case in cheapest.values()]
    return sorted(rows, key=lambda row: row["cost_usd"])


def _alternative(problem: Problem, cases: Cases, case: int, base: float | None) -> Alternative:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    cost, amortised = float(costs.cost_usd[case]), float(costs.amortised_usd[case])
    return {
        "option": offer.option,
        "term_months": offer.term_months,
        "payment": offer.payment,
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region or None,
        "gpu": offer.gpu,
        "gpus": int(cases.gpus[case]),
        "days": float(costs.days[case]),
        "cost_usd": cost,
        "cost_low_usd": float(costs.cost_low_usd[case]),
        "cost_high_usd": float(costs.cost_high_usd[case]),
        "saving_usd": None if base is None else base - cost,
        "saving_fraction": 1 - cost / base if base else None,
        "amortised_usd": amortised,
        "exposure_usd": float(costs.exposure_usd[case]),
        "note": _alternative_note(problem, cases, case),
    }


def _alternative_note(problem: Problem, cases: Cases, case: int) -> str:
    offer = problem.supply.offers[int(cases.offer[case])]
    if rate_is_prior(problem, int(cases.offer[case])):
        return "interruption rate assumed"
    if offer.term_months:
        return f"pays for {offer.term_months} months; the hours used cost {cases.costs.amortised_usd[case]:,.0f} USD"
    return ""


UNVERIFIED = "unverified"


def highlights(problem: Problem, cases: Cases) -> list[Highlight]:
    """Return the best option of each kind; an option that is best in several ways stands there once, under the first.

    Kinds: the cheapest; the cheapest that stays until it is given back; the fastest; the cheapest for a term and in a
    booked window, of those that one can order; last the lowest quote of the others, which nobody verified. Where one
    can order none, the kinds are of all. They hold for every size of every offer, whatever was ranked by.
    """
    terms, costs, offers = problem.terms, cases.costs, problem.supply.offers
    every = np.arange(len(cases))
    every = every[can_be_option(problem, cases, problem.requests[0], every)]
    sure = verified(problem, cases, every)
    leading = every[sure] if sure.any() else every
    age = terms.age_days[cases.offer[leading]]
    by_cost = leading[np.lexsort((cases.offer[leading], age, cases.gpus[leading], costs.cost_usd[leading]))]
    of = cases.offer[by_cost]
    stays = np.array([is_plain(offer.option) for offer in offers], bool)[of]
    family = np.array([OPTIONS[offer.option].family for offer in offers])[of]
    kinds = {
        "cheapest": by_cost,
        "on demand": by_cost[stays],
        "fastest": by_cost[np.argsort(costs.days[by_cost], kind="stable")],
        "committed": by_cost[family == "committed"],
        "capacity block": by_cost[family == "scheduled"],
    }
    chosen: dict[int, str] = {}
    for kind, candidates in kinds.items():
        if len(candidates):
            chosen.setdefault(int(candidates[0]), kind)
    unsure = every[~sure] if sure.any() else every[:0]
    quoted = costs.cost_usd[unsure] * terms.quoted_usd_per_gpu_hour[cases.offer[unsure]]
    quoted /= terms.usd_per_gpu_hour[cases.offer[unsure]]
    if len(unsure) and quoted.min() < costs.cost_usd[by_cost[0]]:
        chosen.setdefault(int(unsure[np.argmin(quoted)]), UNVERIFIED)
    return [_highlight(problem, cases, case, kind) for case, kind in chosen.items()]


def _highlight(problem: Problem, cases: Cases, case: int, kind: str) -> Highlight:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    return {
        "kind": kind,
        "provider": offer.provider,
        "region": offer.region or None,
        "instance_type": offer.instance_type,
        "option": offer.option,
        "term_months": offer.term_months,
        "gpu": offer.gpu,
        "gpus": int(cases.gpus[case]),
        "instances": int(cases.gpus[case]) // max(offer.gpus, 1),
        "days": float(costs.days[case]),
        "gpu_hours": float(costs.gpu_hours[case]),
        "usd_per_gpu_hour": float(problem.terms.usd_per_gpu_hour[int(cases.offer[case])]),
        "quoted_usd_per_gpu_hour": offer.usd_per_gpu_hour,
        "mfu_fraction": float(cases.speed.mfu_fraction[case]),
        "cost_usd": float(costs.cost_usd[case]),
        "cost_low_usd": float(costs.cost_low_usd[case]),
        "cost_high_usd": float(costs.cost_high_usd[case]),
        "price_observed_on": offer.observed_on.isoformat(),
        "age_days": offer.age_days,
        "missing": lacking(problem, cases, case),
        "confirm": confirm(problem.supply, problem.terms, int(cases.offer[case]), int(cases.gpus[case])),
    }


_MOST_POINTS = 2000


def points(problem: Problem, cases: Cases, groups: list[list[int]]) -> list[RunPoint]:
    """Return every option as a point of cost against days, and what stands on the front beside them.

    The front is of all sizes of the offers that one can order: none of them is both cheaper and faster than one on it.
    """
    firsts = np.array([group[0] for group in groups[:_MOST_POINTS]], np.int64)
    every = np.arange(len(cases))
    every = every[can_be_option(problem, cases, problem.requests[0], every)]
    sure = verified(problem, cases, every)
    leading = every[sure] if sure.any() else every
    front = set(
        front_of(cases, leading[np.lexsort((cases.costs.days[leading], cases.costs.cost_usd[leading]))]).tolist()
    )
    shown = np.array([*firsts, *sorted(front - set(firsts.tolist()))], np.int64)
    complete = verified(problem, cases, shown)
    return [
        _point(problem, cases, int(case), bool(ok), int(case) in front)
        for case, ok in zip(shown, complete, strict=True)
    ]


def _point(problem: Problem, cases: Cases, case: int, can_be_ordered: bool, front: bool) -> RunPoint:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    return {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region or None,
        "option": offer.option,
        "term_months": offer.term_months,
        "gpu": offer.gpu,
        "gpus": int(cases.gpus[case]),
        "age_days": offer.age_days,
        "orderable": can_be_ordered,
        "front": front,
        "days": float(costs.days[case]),
        "cost_usd": float(costs.cost_usd[case]),
        "cost_low_usd": float(costs.cost_low_usd[case]),
        "cost_high_usd": float(costs.cost_high_usd[case]),
    }


def by_region(problem: Problem, cases: Cases, order: Indices) -> list[RegionBest]:
    """Return the cheapest offer of each region, of those that one can order where it has such, cheapest first."""
    complete = verified(problem, cases, order)
    best: dict[str, tuple[tuple[bool, float], int, bool]] = {}
    counts: dict[str, int] = {}
    for case, ok in zip(order.tolist(), complete.tolist(), strict=True):
        region = problem.supply.offers[int(cases.offer[case])].region
        counts[region] = counts.get(region, 0) + 1
        key = (not ok, float(cases.costs.cost_usd[case]))
        if region not in best or key < best[region][0]:
            best[region] = (key, case, ok)
    ranked = sorted(best.items(), key=lambda item: (item[1][0], item[0]))
    return [{**_point(problem, cases, case, ok, False), "offers": counts[region]} for region, (_, case, ok) in ranked]


def drivers(cases: Cases, best: int, loading: Feeding | None, written: dict[str, float] | None = None) -> list[Driver]:
    """Return what dominates the cost: the lines of the bill, the steps' hours split by the parts of a step."""
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
        named = zip((*PARTS, "loading_s", *beside), (*seconds, stall, *beside.values()), strict=True)
        for name, part in named:
            if part > 0:
                label = name.removesuffix("_s").replace("_", " ")
                rows.append(
                    {
                        "name": f"steps: {label}",
                        "share_fraction": share * float(part),
                        "note": PART_NOTES.get(label, ""),
                    }
                )
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

# what is the same wherever it is sold
_product_of = attrgetter("provider", "instance_type", "gpu", "option", "tier", "term_months", "payment")

Flags = NDArray[np.bool_]


def estimate(request: TrainingRequest, catalog: Catalog, *, with_facts: bool = True) -> Estimate:
    """Answer a training request from a catalog; `with_facts` embeds what a rerun needs."""
    architecture = catalog.architecture(request.model)
    market, mask = select(request, catalog)
    calibration = training_calibration(catalog)
    if request.written is not None:
        calibration = replace(calibration, generation=serving_calibration(catalog))
    try:
        result = answer_request(request, architecture, market, mask, calibration)
    except NothingFitsError as error:
        if request.gpus is None or request.gpu is None or "," in request.gpu or "can host" not in str(error):
            raise
        larger = said_of_larger(catalog, request.gpu, request.gpus, request.provider)
        longer = NothingFitsError(f"{error}{larger}")
        raise longer.offering(**error.change).reaching(**error.nearest) from None
    if request.pool:
        ends = pool.pool_ends(request.pool)
        result = {
            **result,
            "warnings": [*_ended_pools(result["options"], ends, market, catalog.as_of), *result["warnings"]],
        }
    return {**result, "facts": embed(market.facts, mask, architecture)} if with_facts else result


def _ended_pools(
    options: Sequence[Mapping[str, Any]], ends: Mapping[str, date], market: Market, today: date
) -> list[str]:
    """Say which pools end before a run on them does, and what the rest is expected to cost on the market."""
    rented = pool.usual(market) & np.array([offer.provider != "own" for offer in market.facts.offers], bool)
    said = []
    for row in options:
        parts = str(row.get("offer_id") or "").split("/")
        end = ends.get(parts[1]) if parts[0] == "own" and len(parts) > 1 else None
        if end is None or row["days"] <= (held := (end - today).days + 1):
            continue
        left = float(row["gpu_hours"]) * (1 - held / row["days"])
        hire = pool.cheapest(market, row["gpu"], int(row["gpus"]), rented)
        text = f"{row['instance_type']} ends on {end}, after {held} of the {row['days']:,.0f} days of the run on it"
        if hire is None:
            said.append(f"{text}; nobody else is known to rent {row['gpu']} for the rest")
            continue
        price = hire.usd_per_gpu_hour
        said.append(
            f"{text}; the {left:,.0f} GPU-hours left cost about ${left * price:,.0f} on demand at"
            f" {hire.offer.provider}, ${price:.2f} each as expected today, instead of"
            f" ${left * row['usd_per_gpu_hour']:,.0f}"
        )
    return list(dict.fromkeys(said))


def calibration_digest(calibration: Calibration) -> str:
    """Return a short hash of a calibration, so that a saved answer knows which one it was computed with."""
    from hashlib import sha256

    pairs = sorted([*calibration.values.items(), *calibration.ranges.items()])
    if (generation := calibration.generation) is not None:
        pairs += sorted([*generation.values.items(), *generation.ranges.items()])
    runs = [f"{run.name}={run.ratio!r}@{run.configuration}" for run in calibration.runs]
    texts = [*(f"{name}={value!r}" for name, value in pairs), *runs, *map("=".join, calibration.stacks.items())]
    return sha256(";".join(texts).encode()).hexdigest()[:12]


def select(request: TrainingRequest, catalog: Catalog) -> tuple[Market, Flags]:
    """Return the market and the offers in it that a request looks at; the user's pools come on top."""
    market = at_own_price(placeless(market_of(catalog), catalog, request), catalog, request)
    mask = asked_for(market, catalog, request)
    market = at_most(market, request.max_gpus)
    if request.pool:
        offers, systems = pool.read_pool(request.pool, catalog, market.facts.as_of, request.pool_view)
        market = at_most(make_market(with_offers(market.facts, offers, systems)), request.max_gpus)
        mask = np.concatenate([mask, np.ones(len(offers), bool)])
    if not mask.any():
        raise priceless(request, catalog) or no_price(market, catalog, request)
    return market, mask


def priceless(request: TrainingRequest, catalog: Catalog) -> PriceMissingError | None:
    """Return the error that says how long a run takes on an accelerator that nobody sells; None where it is sold."""
    if request.gpu is None or request.usd_per_gpu_hour is not None or catalog.offers(request.gpu):
        return None
    run = estimate(replace(request, usd_per_gpu_hour=1.0), catalog, with_facts=False)["options"][0]
    effort = f"{run['days']:.3g} days and {run['gpu_hours']:,.0f} GPU-hours on {cluster(run)}"
    return PriceMissingError(
        f"no seller is known for {run['gpu']} as of {catalog.as_of}: {effort}, at {run['mfu_fraction']:.0%} MFU."
        " --usd-per-gpu-hour PRICE sets the price."
    )


def workload_of(request: TrainingRequest, architecture: Architecture, day: date) -> Workload:
    """Return the physical side of a request of a day."""
    workload = make_workload(
        architecture,
        tokens=request.trained_tokens,
        sequence_tokens=request.sequence_tokens,
        global_batch=request.global_batch,
        precision=request.precision,
        method="full" if request.method == "grpo" else request.method,
        lora_rank=request.lora_rank,
        lora_targets=request.lora_targets,
        software=request.software,
        own_speed=request.own_speed,
        software_year=request.software_year,
        latest_year=latest_year(day),
        document_tokens=request.document_tokens,
        offload=request.offload,
        rollouts=request.written,
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
        if workload.own_speed is not None:
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
        measured=market.measured["training"] | all(workload.own_speed is not None for workload in workloads),
    )


def answer_request(
    request: TrainingRequest, architecture: Architecture, market: Market, mask: Flags, calibration: Calibration
) -> Estimate:
    """Answer one request over a market; the same path serves a fresh estimate and a rerun."""
    problem = make_problem((request,), (architecture,), market, (mask,), calibration)
    cases, judged = search(problem)
    pool_of = np.arange(len(cases)) if request.optimize == "pareto" else judged
    order = rank(problem, cases, 0, pool_of)
    if not len(order):
        raise nothing(problem, cases, request, judged)
    return payload(problem, market, cases, judged, order, architecture)


def payload(
    problem: Problem, market: Market, cases: Cases, judged: Indices, order: Indices, architecture: Architecture
) -> Estimate:
    """Build the answer's payload."""
    request, facts = problem.requests[0], market.facts
    groups = fold(problem, cases, order)
    options = _ranked(problem, market, cases, groups[: request.top or None])
    headline, precision = lead(options[0], len(groups)), options[0]["layout"]["precision"]
    loading = feeding(problem, cases, int(order[0]))
    written = rollout_phases(problem, cases, int(order[0]))
    assumptions = assumption_rows(facts, problem)
    ids = (
        [name for option in options for name in option["source_ids"]]
        + [row["source_id"] for row in assumptions]
        + [architecture.source_id]
    )
    return {
        "kind": "estimate",
        "gpucost_version": __version__,
        **frame(request.to_dict(), facts.as_of, facts.catalog_version),
        "calibration": calibration_digest(problem.calibration),
        "headline": headline,
        "lead": " ".join(
            [
                headline,
                *said(problem, request, architecture, precision, options[0], loading),
                *_phases_said(problem, written),
            ]
        ),
        "workload": workload_row(problem, architecture, precision),
        "highlights": highlights(problem, cases),
        "options": options,
        "options_found": len(groups),
        "offers_found": len(order),
        "points": points(problem, cases, groups),
        "by_region": by_region(problem, cases, order),
        "scaling": scaling(problem, cases, int(order[0])),
        "alternatives": alternatives(problem, cases, order),
        "drivers": drivers(cases, int(order[0]), loading, written),
        "excluded": excluded(problem, cases, 0, judged[~can_be_option(problem, cases, request, judged)]),
        "assumptions": assumptions,
        "not_included": [*NOT_INCLUDED, *([] if written is None else [NOT_INCLUDED_OF_ROLLOUTS])],
        "warnings": [*warnings(problem, cases, int(order[0])), *outside_region(facts.placeless)],
        "remarks": prices_not_used(facts.ended),
        "sources": cited(facts.sources, ids),
        **({"loading": loading} if loading else {}),  # type: ignore[typeddict-item] # nothing more
    }


def _ranked(problem: Problem, market: Market, cases: Cases, groups: list[list[int]]) -> list[RankedOption]:
    """Return the first of each group as an option, and where else it is sold."""
    return [
        {
            **option(problem, market.facts, cases, group[0], rank),
            "also_in": [elsewhere(problem, cases, case) for case in group[1:]],
        }
        for rank, group in enumerate(groups, 1)
    ]


def fold(problem: Problem, cases: Cases, order: Indices) -> list[list[int]]:
    """Put offers that differ in their region only behind the first of them, unless all are asked for."""
    groups: dict[Any, list[int]] = {}
    keys = order if problem.requests[0].all_regions else cases.gpus[order]
    for case, key, offer in zip(order.tolist(), keys.tolist(), cases.offer[order].tolist(), strict=True):
        groups.setdefault((key, _product_of(problem.supply.offers[offer])), []).append(case)
    return list(groups.values())


def workload_row(problem: Problem, architecture: Architecture, precision: str) -> WorkloadRow:
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
    where = f" in {best['region']}" if best["region"] else ""
    option = OPTIONS[best["option"]].label
    time = f"{best['days']:.1f} days" if best["days"] >= 1 else f"{best['days'] * 24:.1f} hours"
    digits = 0 if best["cost_usd"] >= 100 else 2
    cost, low, high = (f"{best[name]:,.{digits}f}" for name in ("cost_usd", "cost_low_usd", "cost_high_usd"))
    unsure = "; ".join(best["missing"])
    return (
        f"{'Lowest quoted, unverified: about' if unsure else 'About'} {cost} USD ({low} to {high}) and {time} on"
        f" {cluster(best)} at {best['provider']}{where}, {option}: {best['gpu_hours']:,.0f} GPU-hours at"
        f" {best['usd_per_gpu_hour']:.2f} USD{quoted(best)}, {best['mfu_fraction']:.0%} MFU;"
        f" {counted(count, 'option')}.{f' Missing: {unsure}.' if unsure else ''}"
        f"{unlisted(best['age_days'], best['price_book'])}"
    )


def said(
    problem: Problem,
    request: TrainingRequest,
    architecture: Architecture,
    precision: str,
    best: RankedOption,
    loading: Feeding | None,
) -> list[str]:
    """Say aloud what the request left open."""
    workload, size = problem.workloads[0], problem.sizes[0]
    name = architecture.name if architecture.name == request.model else f"{request.model} = {architecture.name}"
    origin = " (synthesised from its size)" if architecture.status == "synthesised" else ""
    lines = [
        f"{name}: {format_count(size.parameters)} parameters{origin}, {_METHODS[request.method]}, {precision};"
        f" {format_count(request.trained_tokens)} tokens, {workload.global_batch:,} sequences of"
        f" {workload.sequence_tokens:,} per step."
    ]
    if request.deadline_days is None:
        lines.append(
            "No deadline."
            if request.gpus is None
            else f"No deadline; {counted(request.gpus, 'accelerator')} as requested."
        )
    else:
        deadline_source = "requested" if request.deadline_given else "assumed"
        rule = (
            f"on {counted(request.gpus, 'accelerator')}" if request.gpus is not None else _SIZE_RULES[request.optimize]
        )
        lines.append(f"Deadline {request.deadline_days:g} days ({deadline_source}): {rule}.")
    overhead = f"{request.evaluation_fraction:.0%} overhead outside training steps"
    if request.own_speed is not None:
        lines.append(
            f"Uses your own speed: {best['mfu_fraction']:.1%} MFU in training steps,"
            f" {best['mfu_paid_fraction']:.1%} over the paid hours. Assumes {overhead}."
        )
    else:
        lines.append(f"Assumes {request.software} software and {overhead}.")
    return [*lines, loading["said"]] if loading else lines


def warnings(problem: Problem, cases: Cases, first: int) -> list[str]:
    """Return what a reader must know of the whole answer."""
    notices = list(problem.workloads[0].architecture.warnings)
    if problem.terms.stale[cases.offer[first]]:
        notices.append(OLD_PRICE)
    if rate_is_prior(problem, int(cases.offer[first])):
        notices.append("The top offer's interruption rate is assumed; the range covers it.")
    if problem.workloads[0].architecture.status == "synthesised":
        notices.append(
            f"{problem.workloads[0].architecture.name} is synthesised from its size; give a config.json for its exact"
            " dimensions."
        )
    notices += too_long(problem.workloads[0].architecture, problem.workloads[0].sequence_tokens)
    if cases.speed.confidence[first] == "low":
        notices.append(
            "Few measurements exist for the top offer's accelerator: its speed comes from the datasheet and has a wide"
            " range."
        )
    return notices


def _too_slow(problem: Problem, cases: Cases, deadline_days: float, fitting: Indices) -> NothingFitsError:
    """Return the error that names the fastest of cases that all miss a deadline, of equals the cheapest."""
    fastest = int(fitting[np.lexsort((cases.costs.cost_usd[fitting], cases.costs.days[fitting]))[0]])
    days = float(cases.costs.days[fastest])
    error = NothingFitsError(
        f"no offer meets {deadline_days:g} days; the fastest takes {days:,.1f} days on {int(cases.gpus[fastest])} ×"
        f" {problem.supply.offers[int(cases.offer[fastest])].gpu}. Try --deadline {int(np.ceil(days))}d or more"
        " accelerators."
    )
    return error.offering(deadline=f"{int(np.ceil(days))}d").reaching(**reached(cases, fastest))


def reached(cases: Cases, case: int) -> dict[str, float]:
    """Return what a refusal tells of the nearest answer."""
    costs = cases.costs
    return {
        "gpus": int(cases.gpus[case]),
        "days": float(costs.days[case]),
        "cost_usd": float(costs.cost_usd[case]),
    }


def _cannot_host(problem: Problem, cases: Cases, request: TrainingRequest, case: int, model: str) -> NothingFitsError:
    """Return the error that says why the largest cluster cannot run it, and what to try."""
    idle = cases.speed.reason[case] == NO_BATCH
    return NothingFitsError(
        f"{model}: no offer can host this run: {exclusion(problem, cases, request, case)}. Try"
        f" {'fewer accelerators or a larger --global-batch' if idle else 'more or larger accelerators'}."
    )


def _with_another_count(error: GpuCostError, problem: Problem, number: int) -> GpuCostError:
    """Have the refusal of a given number of accelerators offer the nearest number that brings an answer."""
    request = problem.requests[number]
    for count in other_counts(problem, number) if request.gpus is not None else ():
        asked = replace(
            problem,
            requests=(replace(request, gpus=count),),
            workloads=(problem.workloads[number],),
            sizes=(problem.sizes[number],),
            masks=(problem.masks[number],),
        )
        cases, judged = search(asked)
        order = rank(asked, cases, 0, judged)
        if len(order):
            nearest = reached(cases, int(order[0]))
            said = f"On {count:,} it costs {nearest['cost_usd']:,.2f} USD and takes {nearest['days']:,.1f} days."
            return type(error)(f"{error} {said}").offering(gpus=count).reaching(**nearest)
    return error


def nothing(problem: Problem, cases: Cases, request: TrainingRequest, judged: Indices) -> GpuCostError:
    """Return the error that says why no offer will do and what would."""
    error = refusal(problem, cases, request, judged)
    return error if error.change else _with_another_count(error, problem, int(cases.request[judged[0]]))


def refusal(problem: Problem, cases: Cases, request: TrainingRequest, judged: Indices) -> GpuCostError:
    """Return the error that says why no case of one request will do, and which of them is nearest to it."""
    number = int(cases.request[judged[0]])
    usable = judged[~too_old(problem, cases, request, judged)]
    if not len(usable):
        newest = min(problem.supply.offers[int(offer)].age_days for offer in cases.offer[judged])
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
        possible = usable[orderable(problem, cases, usable)]
        named = possible if len(possible) else usable
        largest = int(named[np.argmax(cases.gpus[named])])
        model = problem.workloads[number].architecture.name
        return _cannot_host(problem, cases, request, largest, model)
    # an offer that nobody could order is no reason to take more time, or to raise a budget to its price
    buyable = fitting[orderable(problem, cases, fitting) & ~too_bound(problem, cases, request, fitting)]
    timely = fitting if len(buyable) == 0 else buyable
    if request.deadline_days is not None:
        met = timely[cases.costs.days[timely] <= request.deadline_days]
        if len(buyable) and not len(met):
            return _too_slow(problem, cases, request.deadline_days, buyable)
        timely = met if len(met) else timely
    cheapest = int(timely[np.lexsort((cases.costs.days[timely], cases.costs.cost_usd[timely]))[0]])
    if len(buyable) and request.max_cost_usd is not None and cases.costs.cost_usd[cheapest] > request.max_cost_usd:
        offer = problem.supply.offers[int(cases.offer[cheapest])]
        options = counted(len(fold(problem, cases, timely)), "option")
        error = OverBudgetError(
            f"the cheapest of {options} costs {cases.costs.cost_usd[cheapest]:,.2f} USD ({offer.provider}"
            f" {offer.instance_type}, {int(cases.gpus[cheapest])} × {offer.gpu}), over the budget of"
            f" {request.max_cost_usd:,.2f} USD."
        )
        budget = int(np.ceil(cases.costs.cost_usd[cheapest]))
        return error.offering(budget=budget).reaching(**reached(cases, cheapest))
    return NothingFitsError(f"no offer can be ordered for this run: {exclusion(problem, cases, request, cheapest)}.")
