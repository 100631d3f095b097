"""From a claim to its verdict: read it, run the checks that it allows, say what would be true."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpucost.claims import memory, ownership, serving, training
from gpucost.claims.checks import IMPOSSIBLE, Check, worst
from gpucost.engine.request import make_request
from gpucost.engine.workload import make_workload, sizes
from gpucost.errors import UsageError
from gpucost.schemas import SCHEMA_VERSION
from gpucost.units import HOURS_PER_DAY, parse_count, parse_days, parse_fraction, parse_usd

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

FITS = ("training", "serving")


@dataclass(frozen=True, slots=True)
class Claim:
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
    batch: int = 1
    buy_usd: float | None = None
    rent_usd_per_month: float | None = None
    own_usd_per_month: float | None = None
    payback_months: float | None = None
    gpu_hours_per_month: float | None = None
    discount_fraction: float = 0.10


def make_claim(
    *,
    days: str | float | None = None,
    hours: str | float | None = None,
    tokens: str | float | None = None,
    gpus: str | float | None = None,
    gpu_hours: str | float | None = None,
    cost: str | float | None = None,
    sequence: str | float | None = None,
    weights_gb: str | float | None = None,
    training_gb: str | float | None = None,
    tokens_per_s: str | float | None = None,
    batch: str | float = 1,
    buy: str | float | None = None,
    rent_monthly: str | float | None = None,
    own_monthly: str | float | None = None,
    payback_months: str | float | None = None,
    hours_per_month: str | float | None = None,
    discount: str | float = 0.10,
    **rest: Any,
) -> Claim:
    """Read a claim from human quantities."""

    def count(value: str | float | None, flag: str) -> float | None:
        return None if value is None else parse_count(value, flag)

    def usd(value: str | float | None, flag: str) -> float | None:
        return None if value is None else parse_usd(value, flag)

    whole = count(gpus, "--gpus")
    span = (
        parse_days(days, "--days")
        if days is not None
        else None
        if hours is None
        else parse_count(hours, "--hours") / HOURS_PER_DAY
    )
    length = count(sequence, "--sequence")
    return Claim(
        tokens=count(tokens, "--tokens"),
        gpus=None if whole is None else int(whole),
        days=span,
        gpu_hours=count(gpu_hours, "--gpu-hours"),
        cost_usd=usd(cost, "--cost"),
        sequence_tokens=None if length is None else int(length),
        weights_gb=count(weights_gb, "--weights-gb"),
        training_gb=count(training_gb, "--training-gb"),
        decode_tokens_per_s=count(tokens_per_s, "--tokens-per-s"),
        batch=int(parse_count(batch, "--batch")),
        buy_usd=usd(buy, "--buy"),
        rent_usd_per_month=usd(rent_monthly, "--rent-monthly"),
        own_usd_per_month=usd(own_monthly, "--own-monthly"),
        payback_months=count(payback_months, "--payback-months"),
        gpu_hours_per_month=count(hours_per_month, "--hours-per-month"),
        discount_fraction=parse_fraction(discount, "--discount"),
        **rest,
    )


def audit(claim: Claim, catalog: "Catalog") -> dict[str, Any]:
    """Run every check that a claim allows and return the verdict with what would be true."""
    notes: list[str] = []
    checks = [*_payback(claim), *(_physical(claim, catalog, notes) if claim.model else [])]
    if not checks:
        raise UsageError(
            "nothing to audit: give --model, --gpu and --gpus with --tokens and --days or --cost, or --fits, --weights-gb, --tokens-per-s; "
            "or --buy with --rent-monthly."
        )
    verdict = worst([check.verdict for check in checks])
    return {
        "kind": "audit",
        "schema_version": SCHEMA_VERSION,
        "request": {name: value for name, value in asdict(claim).items() if value is not None},
        "as_of": catalog.as_of.isoformat(),
        "catalog_version": catalog.version,
        "summary": _sentence(verdict, checks),
        "verdict": verdict,
        "checks": [check.as_dict() for check in checks],
        "notes": notes,
        "warnings": [],
        "sources": {},
    }


def _sentence(verdict: str, checks: list[Check]) -> str:
    worst_checks = [check for check in checks if check.verdict == verdict]
    parts = [f"{verdict.capitalize()}: {worst_checks[0].explanation}"]
    duration = next((check for check in checks if check.name == "duration"), None)
    cost = next((check for check in checks if check.name == "cost"), None)
    if duration is not None and duration.typical is not None:
        parts.append(f"About {duration.typical:,.0f} days ({duration.low:,.0f} to {duration.high:,.0f}) would be true.")
    if cost is not None and cost.typical is not None:
        parts.append(
            f"About {cost.typical:,.0f} USD at the median price ({cost.low:,.0f} to {cost.high:,.0f}) would be true."
        )
    return " ".join(parts)


def _payback(claim: Claim) -> list[Check]:
    if claim.buy_usd is None and claim.rent_usd_per_month is None:
        return []
    if claim.buy_usd is None or claim.rent_usd_per_month is None:
        raise UsageError("a payback claim needs both --buy and --rent-monthly.")
    return ownership.check_payback(
        ownership.PaybackClaim(
            buy_usd=claim.buy_usd,
            rent_usd_per_month=claim.rent_usd_per_month,
            own_usd_per_month=claim.own_usd_per_month or 0.0,
            payback_months=claim.payback_months,
            gpus=claim.gpus,
            gpu_hours_per_month=claim.gpu_hours_per_month,
            discount_fraction=claim.discount_fraction,
        )
    )


def _physical(claim: Claim, catalog: "Catalog", notes: list[str]) -> list[Check]:
    """Run the checks that need the model: memory, serving speed, duration, price and cost."""
    assert claim.model is not None
    architecture = catalog.architecture(claim.model)
    notes.append(f"{claim.model} = {architecture.name}.")
    precision = claim.precision or "bf16"
    tokens = claim.tokens or 1e12
    training_precision = precision if precision in ("bf16", "fp16", "fp8", "fp32", "tf32", "fp4") else "bf16"
    request = make_request(
        claim.model,
        tokens,
        sequence=claim.sequence_tokens,
        precision=training_precision,
        method=claim.method,
        gpus=claim.gpus or 8,
    )
    workload = make_workload(request, architecture)
    size = sizes(workload)
    checks = []
    if precision not in memory.WEIGHT_BYTES:
        raise UsageError(f"--precision: unknown {precision!r}. Choose one of {', '.join(memory.WEIGHT_BYTES)}.")
    if claim.weights_gb is not None:
        checks.append(memory.check_weights(claim.weights_gb, size, precision))
    if claim.training_gb is not None:
        checks.append(memory.check_training_memory(claim.training_gb, size, claim.method))
    if not claim.gpu:
        return checks
    candidates = catalog.accelerators(claim.gpu)
    chip = training.most_favourable(candidates, precision)
    if len(candidates) > 1:
        notes.append(
            f"{claim.gpu} may mean {', '.join(item.id for item in candidates)}; judged by {chip.id}, the most favourable."
        )
    gpus = claim.gpus or 1
    if claim.fits == "training":
        checks.append(memory.check_fits_training(catalog, workload, size, chip, gpus))
    elif claim.fits == "serving":
        checks.append(memory.check_fits_serving(size, precision, chip, gpus))
    if claim.decode_tokens_per_s is not None:
        checks.append(serving.check_decode(claim.decode_tokens_per_s, size, precision, chip, gpus, claim.batch))
    if claim.tokens is not None:
        checks += _run(claim, catalog, workload, size, chip, gpus)
    return checks


def _run(claim: Claim, catalog: "Catalog", workload: Any, size: Any, chip: Any, gpus: int) -> list[Check]:
    """Check duration, price and cost of a training run."""
    assert claim.tokens is not None
    days = (
        claim.days
        if claim.days is not None
        else None
        if claim.gpu_hours is None
        else claim.gpu_hours / gpus / HOURS_PER_DAY
    )
    if days is None and claim.cost_usd is None:
        return []
    speed = training.speed_of(catalog, workload, chip, gpus)
    checks = []
    if days is not None:
        checks.append(
            training.check_time(workload, size, claim.tokens, chip, gpus, days, speed, claim.precision is not None)
        )
    if claim.cost_usd is not None:
        known = training.prices(catalog, chip)
        if days is not None:
            checks.append(training.check_price(gpus * days * HOURS_PER_DAY, claim.cost_usd, known, chip))
        cost = training.check_cost(claim.cost_usd, claim.tokens, speed, known)
        checks += [cost] if cost is not None else []
    return checks


def is_impossible(payload: dict[str, Any]) -> bool:
    """Tell whether a verdict calls for the exit code of a failed check."""
    return bool(payload["verdict"] == IMPOSSIBLE)
