"""The answer of a training estimate as a JSON-able payload; rendering needs nothing else."""

from dataclasses import asdict, replace
from typing import Any, Literal, cast

import numpy as np

from gpucost.answers.common import Assumed, BillLine, Excluded, LayoutRow, figures, finite
from gpucost.answers.speed import Feeding
from gpucost.answers.training import Contract, Elsewhere, Factors, Interruptions, Outcome, Speed, TrainingOption
from gpucost.market import assumptions as assume
from gpucost.market.credits import credited, said
from gpucost.market.facts import Facts
from gpucost.market.interruptions import unmeasured
from gpucost.market.sellers import ASSUMED_FORM, doubted_price, old_price, seen, seller
from gpucost.market.supply import left_out
from gpucost.money.training_bill import BILL
from gpucost.options import OPTIONS
from gpucost.physics.training.structs import PARTS
from gpucost.training.cases import Cases, Problem
from gpucost.training.costing import lines_of
from gpucost.training.rank import exclusion, rate_is_prior
from gpucost.types import Offer
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR
from gpucost.workloads.speeds import speeds_of

NOT_INCLUDED = (
    "data acquisition, cleaning and tokenisation",
    "staff, support plans and software licences",
    "trial runs and failed experiments (--experiments adds them as a share of the run)",
    "reading the dataset in from elsewhere, and traffic between regions",
    "taxes, and discounts that you negotiated (a price book holds those)",
)


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
        **_speed(cases, case),
        **figures(Outcome, cases.costs, case),
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
        **seen(offer, problem.terms, int(cases.offer[case]), paid),
        **figures(Contract, cases.costs, case),
        **interruptions(problem, cases, case),
        "components": step_parts(cases, case),
        "source_ids": [name for name in sources if name],
        "lines": lines,
        "notes": [*notes(problem, cases, case), *([said(paid, float(cases.costs.cost_usd[case]))] if paid else [])],
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
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
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
    one, gpus = np.zeros(1, np.int64), cases.gpus[case : case + 1]
    key = problem.supply.key[cases.offer[case : case + 1]]
    hungry = speeds_of((replace(workload, loading=None),), problem.supply.keys, problem.calibration, one, key, gpus)
    return workload.loading.feeding(float(hungry.tokens_per_s_per_gpu[0] * gpus[0]), int(gpus[0]))


def step_parts(cases: Cases, case: int) -> dict[str, float]:
    """Return the seconds of one training step by part."""
    values = cases.speed.parts_s[case]
    return {name: float(value) for name, value in zip(PARTS, values, strict=True) if value > 0}


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
        note = line["note"] if stated else f"{line['note']}; typical price, the provider states none"
        status: Literal["sourced", "assumed"] = "sourced" if stated else "assumed"
        rows.append({**line, "note": note, "source_id": source, "status": status})
    return rows


def notes(problem: Problem, cases: Cases, case: int) -> list[str]:
    """Return what a reader must know of one option."""
    terms, number = problem.terms, int(cases.offer[case])
    offer = problem.supply.offers[number]
    found = old_price(offer, terms, number)
    if rate_is_prior(problem, number):
        found.append("interruption rate not measured for this product and region: a prior, and its range (--explain)")
    if offer.gpu_assumed:
        found.append(ASSUMED_FORM)
    if offer.term_months and cases.factors.charge_commitment[case] > 0 and cases.costs.unused_usd[case] > 0:
        found.append(
            f"pays for the whole term of {offer.term_months} months; --commitment used counts the hours of the run only"
        )
    if cases.factors.nodes[case] > 1:
        if offer.maximum_units is None:
            found.append("the largest order is not stated: confirm the capacity")
        if not problem.supply.keys[int(problem.supply.key[number])].system.scaleout_gb_per_s:
            found.append("several instances within one scale-up domain")
    rule = OPTIONS[offer.option]
    if rule.family == "scheduled" or (rule.family == "on demand" and rule.interruptible):
        found.append(f"{rule.label}: {rule.reference}")
    return [*found, *doubted_price(offer)]


def excluded(problem: Problem, cases: Cases, number: int, left: Any) -> list[Excluded]:
    """Return the offers that are no option, each with the reason; equal reasons of one product are one entry."""
    request, offers = problem.requests[number], problem.supply.offers
    return left_out((offers[int(cases.offer[case])], exclusion(problem, cases, request, int(case))) for case in left)


_ASSUMED = ("name", "value", "low", "high", "unit", "status", "source_id", "note")


def assumption_rows(facts: Facts, problem: Problem) -> list[Assumed]:
    """Return what was assumed about the run beside its steps, each with its range and where it comes from."""
    own = {
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
        *((name, x.value, x.low, x.high, x.unit, "assumed", None, x.reason) for name, x in own.items()),
        ("failures_per_gpu_year", typical, low, high, "per GPU-year", "sourced", next(measured, None), why),
    ]
    return [cast(Assumed, dict(zip(_ASSUMED, row, strict=True))) for row in rows]
