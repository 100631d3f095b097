"""From a claim to its verdict: read it, run the checks that it allows, say what would be true."""

from typing import Any, cast

import numpy as np

from gpucost.answers.checks import Audit, CheckRow
from gpucost.answers.common import frame
from gpucost.arguments import by_field, read
from gpucost.catalog import Catalog
from gpucost.claims import memory, ownership, serving, training
from gpucost.claims.checks import Check, Claim, amount, worst
from gpucost.errors import UsageError
from gpucost.physics.columns import PRECISIONS, VALUE_BYTES, code_of
from gpucost.physics.hardware import half_precision
from gpucost.physics.training.layouts import latest_year
from gpucost.types import Accelerator
from gpucost.units import HOURS_PER_DAY
from gpucost.workloads.training import Sizes, Workload, make_workload, sizes

_FEWEST_DAYS = 2.0  # shorter runs are said in hours


def make_claim(**said: Any) -> Claim:
    """Read a claim from human quantities; takes the arguments of the question `audit`, None stands for not said."""
    values = by_field("audit", read("audit", said))
    hours = values.pop("hours")
    if hours is not None:
        values["days"] = hours / HOURS_PER_DAY
    del values["as_of"], values["known_as_of"]
    return Claim(**values)


def audit(claim: Claim, catalog: Catalog) -> Audit:
    """Run every check that a claim allows and return the verdict with what would be true."""
    notes: list[str] = []
    checks = [*ownership.check_payback(claim), *(_physical(claim, catalog, notes) if claim.model else [])]
    if not checks:
        raise UsageError(
            "nothing to audit: give --model, --gpu and --gpus with --tokens and --days or --cost, or --fits,"
            " --weights-gb, --tokens-per-s; or --buy with --rent-monthly."
        )
    verdict = worst([check.verdict for check in checks])
    said = {name: value for name, value in claim._asdict().items() if value is not None}
    return {
        "kind": "audit",
        **frame(said, catalog.as_of, catalog.version),
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
    for check in (one for one in checks if one.name in ("duration", "cost")):
        if check.low is not None and check.typical is not None and check.high is not None:
            unit, times = {"USD": "USD at the median price"}.get(check.unit, check.unit), 1.0
            if check.unit == "days" and check.typical < _FEWEST_DAYS:
                unit, times = "hours", HOURS_PER_DAY
            low, typical, high = (amount(times * value) for value in (check.low, check.typical, check.high))
            parts.append(f"About {typical} {unit} ({low} to {high}) would be true.")
    return " ".join(parts)


def _physical(claim: Claim, catalog: Catalog, notes: list[str]) -> list[Check]:
    """Run the checks that need the model: memory, serving speed, duration, price and cost."""
    assert claim.model is not None
    architecture = catalog.architecture(claim.model)
    if claim.model != architecture.name:
        notes.append(f"{claim.model} = {architecture.name}.")
    chip = _chip(claim, catalog, notes) if claim.gpu else None
    usual = "bf16" if chip is None else half_precision(chip)
    precision = claim.precision or usual
    code_of(precision, tuple(VALUE_BYTES), "--precision")
    workload = make_workload(
        architecture,
        tokens=claim.tokens or np.inf,
        sequence_tokens=claim.sequence_tokens,
        precision=precision if precision in PRECISIONS else usual,
        method=claim.method,
        latest_year=latest_year(catalog.as_of),
    )
    size = sizes(workload)
    checks = []
    if claim.weights_gb is not None:
        checks.append(memory.check_weights(claim.weights_gb, size, precision))
    if claim.training_gb is not None:
        checks.append(memory.check_training_memory(claim.training_gb, size, claim.method))
    if chip is None:
        return checks
    gpus = claim.gpus or 1
    if claim.gpus is None and (claim.days or claim.fits or claim.decode_tokens_per_s):
        notes.append(f"--gpus is not said: judged as 1 × {chip.id}.")
    if claim.fits == "training":
        checks.append(memory.check_fits_training(catalog, workload, size, chip, gpus))
    elif claim.fits == "serving":
        checks.append(memory.check_fits_serving(size, precision, chip, gpus))
    if claim.decode_tokens_per_s is not None:
        checks.append(serving.check_decode(claim.decode_tokens_per_s, size, precision, chip, gpus, claim.batch))
    return checks + (_run(claim, catalog, workload, size, chip, notes) if claim.tokens is not None else [])


def _chip(claim: Claim, catalog: Catalog, notes: list[str]) -> Accelerator:
    """Return the accelerator that a claim is judged by: the most favourable of those that its name may mean."""
    candidates = catalog.accelerators(claim.gpu)
    chip = training.most_favourable(candidates, claim.precision)
    if len(candidates) > 1:
        meant = ", ".join(item.id for item in candidates)
        notes.append(f"{claim.gpu} may mean {meant}; judged by {chip.id}, the most favourable.")
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
        gpus = training.best_count(catalog, workload, chip)
    speed = training.speed_of(catalog, workload, chip, gpus)
    if not counted and speed.fits[0]:
        notes.append(f"--gpus is not said: speed is that of {gpus} × {chip.id}, the count that needs fewest GPU-hours.")
    days = claim.days
    if days is None and claim.gpu_hours is not None:
        days = claim.gpu_hours / gpus / HOURS_PER_DAY
    checks = []
    if days is not None:
        lacking = counted and not speed.fits[0]
        offload = training.fitting_offload(catalog, workload, chip, gpus) if lacking else ""
        run = training.Run(claim.tokens, gpus, days, counted, offload)
        checks.append(training.check_time(workload, size, run, chip, speed, claim.precision is not None))
    if claim.cost_usd is not None:
        known = training.prices(catalog, chip)
        if days is not None:
            checks.append(training.check_price(gpus * days * HOURS_PER_DAY, claim.cost_usd, known, chip))
        cost = training.check_cost(claim.cost_usd, claim.tokens, speed, known)
        checks += [cost] if cost is not None else []
    return checks
