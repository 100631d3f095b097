"""From a request to its answer: facts, cases, ranking, follow-ups, payload."""

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost import __version__
from gpucost.answers.common import cited, frame
from gpucost.answers.speed import Feeding
from gpucost.answers.training import Estimate, RankedOption
from gpucost.answers.training import Workload as WorkloadRow
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.market import pool
from gpucost.market.assumptions import failures_per_gpu_year
from gpucost.market.embedding import embed
from gpucost.market.facts import (
    OLD_PRICE,
    Market,
    asked_for,
    make_market,
    market_of,
    no_price,
    not_offered,
    placeless,
    with_offers,
)
from gpucost.options import OPTIONS
from gpucost.physics.calibration import Calibration
from gpucost.physics.training.layouts import NO_BATCH, NO_PRECISION, latest_year
from gpucost.training import answer, followups
from gpucost.training.cases import Cases, Problem
from gpucost.training.rank import can_be_option, exclusion, orderable, rank, rate_is_prior, too_old
from gpucost.training.request import TrainingRequest
from gpucost.training.search import search
from gpucost.types import Architecture
from gpucost.units import counted, format_count
from gpucost.workloads import own_speed
from gpucost.workloads.training import Workload, make_workload, sizes, step_work, too_long, with_loading

_SIZE_RULES = {
    "cost": "the cheapest clusters that meet it",
    "carbon": "the sizes with the least carbon",
    "time": "the fastest sizes",
    "pareto": "sizes that no other one beats in both cost and time",
}

_PRODUCT = ("provider", "instance_type", "gpu", "option", "tier", "term_months", "payment")  # the same wherever sold

Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


def estimate(request: TrainingRequest, catalog: Catalog, *, with_facts: bool = True) -> Estimate:
    """Answer a training request from a catalog; `with_facts` embeds what a rerun needs."""
    architecture = catalog.architecture(request.model)
    market, mask = select(request, catalog)
    found = answer_request(request, architecture, market, mask, training_calibration(catalog))
    return {**found, "facts": embed(market.facts, mask, architecture)} if with_facts else found


def calibration_digest(calibration: Calibration) -> str:
    """Return a short hash of a calibration, so that a saved answer knows which one it was computed with."""
    from hashlib import sha256

    pairs = sorted([*calibration.values.items(), *calibration.ranges.items()])
    own = [f"{run.name}={run.ratio!r}@{run.configuration}" for run in calibration.runs]
    told = [*(f"{name}={value!r}" for name, value in pairs), *own, *map("=".join, calibration.stacks.items())]
    return sha256(";".join(told).encode()).hexdigest()[:12]


def select(request: TrainingRequest, catalog: Catalog) -> tuple[Market, Flags]:
    """Return the market and the offers in it that a request looks at; the user's pools come on top."""
    market = placeless(market_of(catalog), catalog, request)
    mask = asked_for(market, catalog, request)
    if request.pool:
        offers, systems = pool.read_pool(request.pool, catalog, market.facts.as_of, request.pool_view)
        market = make_market(with_offers(market.facts, offers, systems))
        mask = np.concatenate([mask, np.ones(len(offers), bool)])
    if not mask.any():
        raise no_price(market, catalog, request)
    return market, mask


def workload_of(request: TrainingRequest, architecture: Architecture, day: date) -> Workload:
    """Return the physical side of a request of a day."""
    workload = make_workload(
        architecture,
        tokens=request.trained_tokens,
        sequence_tokens=request.sequence_tokens,
        global_batch=request.global_batch,
        precision=request.precision,
        method=request.method,
        lora_rank=request.lora_rank,
        lora_targets=request.lora_targets,
        software=request.software,
        own_speed=request.own_speed,
        software_year=request.software_year,
        latest_year=latest_year(day),
        document_tokens=request.document_tokens,
        offload=request.offload,
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
            own_speed.check(workload.own_speed, chips, request.gpus or 1, step_work(workload))
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
    loading = answer.feeding(problem, cases, int(order[0]))
    assumptions = answer.assumption_rows(facts, problem)
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
        "lead": " ".join([headline, *said(problem, request, architecture, precision, options[0], loading)]),
        "workload": workload_row(problem, architecture, precision),
        "highlights": followups.highlights(problem, cases, order),
        "options": options,
        "options_found": len(groups),
        "offers_found": len(order),
        "scaling": followups.scaling(problem, cases, int(order[0])),
        "alternatives": followups.alternatives(problem, cases, order),
        "drivers": followups.drivers(cases, int(order[0]), loading),
        "excluded": answer.excluded(problem, cases, 0, judged[~can_be_option(problem, cases, request, judged)]),
        "assumptions": assumptions,
        "not_included": list(answer.NOT_INCLUDED),
        "warnings": [*warnings(problem, cases, int(order[0])), *not_offered(facts.ended, facts.placeless)],
        "sources": cited(facts.sources, ids),
        **({"loading": loading} if loading else {}),  # type: ignore[typeddict-item] # nothing more
    }


def _ranked(problem: Problem, market: Market, cases: Cases, groups: list[list[int]]) -> list[RankedOption]:
    """Return the first of each group as an option, and where else it is sold."""
    return [
        {
            **answer.option(problem, market.facts, cases, group[0], place),
            "also_in": [answer.elsewhere(problem, cases, case) for case in group[1:]],
        }
        for place, group in enumerate(groups, 1)
    ]


def fold(problem: Problem, cases: Cases, order: Indices) -> list[list[int]]:
    """Put offers that differ in their region only behind the first of them, unless all are asked for."""
    groups: dict[Any, list[int]] = {}
    for case in order:
        offer = problem.supply.offers[int(cases.offer[case])]
        place = int(case) if problem.requests[0].all_regions else int(cases.gpus[case])
        name = place, *(getattr(offer, field) for field in _PRODUCT)
        groups.setdefault(name, []).append(int(case))
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
        "method": workload.method,
        "model_flop_per_token": size.model_flop_per_token,
        "model_flop": size.model_flop_per_token * request.trained_tokens,
    }


def lead(best: RankedOption, count: int) -> str:
    """Say the answer in one sentence."""
    where = f" in {best['region']}" if best["region"] else ""
    option = OPTIONS[best["option"]].label
    time = f"{best['days']:.1f} days" if best["days"] >= 1 else f"{best['days'] * 24:.1f} hours"
    digits = 0 if best["cost_usd"] >= 100 else 2
    cost, low, high = (f"{best[name]:,.{digits}f}" for name in ("cost_usd", "cost_low_usd", "cost_high_usd"))
    return (
        f"About {cost} USD ({low} to {high}) and {time} on {best['gpus']:,} × {best['gpu']} at"
        f" {best['provider']}{where}, {option}; {counted(count, 'option')}."
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
    made = ", synthesised from its size" if architecture.status == "synthesised" else ""
    lines = [
        f"{name}: {format_count(size.parameters)} parameters{made}; {format_count(request.trained_tokens)} tokens,"
        f" sequences of {workload.sequence_tokens:,}, {workload.global_batch:,} per step, {precision},"
        f" {workload.method}."
    ]
    if request.deadline_days is None:
        lines.append(
            "No deadline." if request.gpus is None else f"{counted(request.gpus, 'accelerator')} as asked; no deadline."
        )
    else:
        asked = "asked for" if request.deadline_given else "assumed"
        rule = (
            f"on {counted(request.gpus, 'accelerator')}" if request.gpus is not None else _SIZE_RULES[request.optimize]
        )
        lines.append(f"Deadline {request.deadline_days:g} days ({asked}): {rule}.")
    beside = f"{request.evaluation_fraction:.0%} beside the steps"
    stack = f"Software {request.software}"
    if request.own_speed is not None:
        whole = f"{best['mfu_fraction']:.1%} MFU over the steps, {best['mfu_paid_fraction']:.1%} over the paid hours"
        stack = f"Your own speed ({request.own_speed.flag}), {whole}"
    lines.append(f"{stack}; with {beside}, interruptions, start-up.")
    return [*lines, loading["said"]] if loading else lines


def warnings(problem: Problem, cases: Cases, first: int) -> list[str]:
    """Return what a reader must know of the whole answer."""
    found = list(problem.workloads[0].architecture.warnings)
    if problem.terms.stale[cases.offer[first]]:
        found.append(OLD_PRICE)
    if rate_is_prior(problem, int(cases.offer[first])):
        found.append("Nobody measured the first offer's interruptions: a prior, within the range.")
    if problem.workloads[0].architecture.status == "synthesised":
        found.append(
            f"{problem.workloads[0].architecture.name} is synthesised from its size alone; give a config.json for its"
            " true dimensions."
        )
    found += too_long(problem.workloads[0].architecture, problem.workloads[0].sequence_tokens)
    if cases.speed.confidence[first] == "low":
        found.append(
            "The first option's accelerator is little measured; its speed rests on its data sheet and has a wide range."
        )
    return found


def _too_slow(problem: Problem, cases: Cases, deadline_days: float, fitting: Indices) -> NothingFitsError:
    """Return the error that names the fastest of cases that all miss a deadline."""
    fastest = int(fitting[np.argmin(cases.costs.days[fitting])])
    days = float(cases.costs.days[fastest])
    return NothingFitsError(
        f"no offer meets {deadline_days:g} days; the fastest takes {days:,.1f} days on {int(cases.gpus[fastest])} ×"
        f" {problem.supply.offers[int(cases.offer[fastest])].gpu}. Try --deadline {int(np.ceil(days))}d or more"
        " accelerators."
    )


def _cannot_host(problem: Problem, cases: Cases, request: TrainingRequest, case: int, model: str) -> NothingFitsError:
    """Return the error that says why the largest cluster cannot run it, and what to try."""
    idle = cases.speed.reason[case] == NO_BATCH
    return NothingFitsError(
        f"{model}: no offer can host this run: {exclusion(problem, cases, request, case)}. Try"
        f" {'fewer accelerators or a larger --global-batch' if idle else 'more or larger accelerators'}."
    )


def nothing(problem: Problem, cases: Cases, request: TrainingRequest, judged: Indices) -> GpuCostError:
    """Return the error that says why no offer will do and what would."""
    number = int(cases.request[judged[0]]) if len(judged) else 0
    usable = judged[~too_old(problem, cases, request, judged)]
    if not len(usable):
        newest = min(problem.supply.offers[int(offer)].age_days for offer in cases.offer[judged])
        return PriceMissingError(
            f"every price is older than allowed; the newest is {newest} days old. Try --max-age {newest}d without"
            " --strict-prices."
        )
    if (cases.speed.reason[usable] == NO_PRECISION).all():
        others = " or ".join(name for name in ("bf16", "fp16", "fp32") if name != request.precision)
        return NothingFitsError(
            f"none of the accelerators on offer that day has {request.precision or '16-bit'} matrix units. Try"
            f" --precision {others}."
        )
    fitting = usable[cases.speed.fits[usable] & np.isfinite(cases.costs.cost_usd[usable])]
    if not len(fitting):
        possible = usable[orderable(problem, cases, usable)]
        named = possible if len(possible) else usable
        largest = int(named[np.argmax(cases.gpus[named])])
        return _cannot_host(problem, cases, request, largest, problem.workloads[number].architecture.name)
    if request.deadline_days is not None:
        timely = fitting[cases.costs.days[fitting] <= request.deadline_days]
        if not len(timely):
            return _too_slow(problem, cases, request.deadline_days, fitting)
        fitting = timely
    cheapest = int(fitting[np.argmin(cases.costs.cost_usd[fitting])])
    if request.max_cost_usd is not None and cases.costs.cost_usd[cheapest] > request.max_cost_usd:
        offer = problem.supply.offers[int(cases.offer[cheapest])]
        options = counted(len(fold(problem, cases, fitting)), "option")
        return OverBudgetError(
            f"the cheapest of {options} costs {cases.costs.cost_usd[cheapest]:,.2f} USD ({offer.provider}"
            f" {offer.instance_type}, {int(cases.gpus[cheapest])} × {offer.gpu}), over the budget of"
            f" {request.max_cost_usd:,.2f} USD."
        )
    return NothingFitsError(f"no offer can be ordered for this run: {exclusion(problem, cases, request, cheapest)}.")
