"""`gpucost.audit(...)`: whether a claim is possible, and what would be true."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.arguments import by_field, flag_of, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import (
    DAYS,
    FLAG,
    GB_PER_S,
    SECONDS,
    USD,
    Span,
    count,
    one_of,
    positive_share,
    ranged,
    share,
    whole,
)
from gpucost.arguments.signature import detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered, opened, question
from gpucost.ask.result import Result

if TYPE_CHECKING:
    from gpucost.answers.checks import Audit
    from gpucost.catalog import Catalog


# Claims about an accelerator alone, without a model.
FIGURES = (
    "tflops",
    "bandwidth",
    "memory",
    "link",
    "power",
    "cores",
    "rent",
    "purchase",
    "all_reduce",
    "energy",
    "breakeven_hours",
)


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Result):
    """The verdict on a claim and the checks behind it."""

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The check that decides: the first whose verdict is that of the claim."""
        return next((row for row in self.options if row["verdict"] == self.verdict), None)

    @property
    def verdict(self) -> str:
        """`possible`, `implausible`, `impossible` or `unknown`."""
        return str(self.payload["verdict"])

    @property
    def exit_code(self) -> int:
        """5 where the claim is impossible."""
        return 0 if self.possible else 5

    @property
    def possible(self) -> bool:
        """Whether no check found the claim impossible."""
        return self.verdict != "impossible"


@question(
    # ways to claim the same duration, and the same use of what is bought
    exclusive=["days hours gpu_hours", "hours_per_month gpu_hours_per_month"],
    needs=[
        needs(
            "fits tokens_per_s weights_gb training_gb train_tokens_per_s mfu method sequence",
            given("model"),
            words="with --model: of which model",
        ),
        needs(
            # a figure of the chip itself is judged without a model
            "gpu",
            given("model"),
            *map(given, FIGURES),
            words="with --model, or with a figure of it: --tflops, --bandwidth, --memory, --rent and the like",
        ),
        needs("precision", given("model"), given("tflops"), words="with --model or --tflops"),
        needs(
            "tokens fits tokens_per_s train_tokens_per_s mfu", given("gpu"), words="with --gpu: on which accelerator"
        ),
        needs(
            "days hours gpu_hours", given("tokens"), given("energy"), words="with --tokens: of which run; or --energy"
        ),
        needs("cost", given("tokens"), words="with --tokens: of which run"),
        needs("sparse", given("tflops")),
        needs("one_way", given("link")),
        needs("payload", given("all_reduce")),
        needs("over_pcie", given("all_reduce"), given("link")),
        needs("provider option", given("rent")),
        needs(
            "tokens",
            given("days"),
            given("hours"),
            given("gpu_hours"),
            given("cost"),
            words="with --days, --hours, --gpu-hours or --cost: what is claimed of the run",
        ),
        needs("batch", given("tokens_per_s")),
        needs(
            "model",
            given("tokens"),
            given("fits"),
            given("tokens_per_s"),
            given("weights_gb"),
            given("training_gb"),
            given("train_tokens_per_s"),
            given("mfu"),
            words="with a claim about it: --tokens with --days, --cost and the like, or --fits, --tokens-per-s,"
            " --weights-gb, --training-gb, --train-tokens-per-s, --mfu",
        ),
        needs(
            "own_monthly payback_months discount hours_per_month gpu_hours_per_month",
            given("buy"),
            words="with --buy and --rent-monthly",
        ),
    ],
)
def audit(
    *,
    # a model, and a run that is claimed of it
    model: v.Model | None = None,
    tokens: Annotated[v.Tokens | None, "Tokens trained on."] = None,
    gpu: Annotated[
        v.OneGpu | None, "Accelerator; for a family, the most favourable variant is judged.", detail(example="h100")
    ] = None,
    gpus: v.Count | None = None,
    days: Annotated[
        str | float | None, ranged(DAYS), "Claimed duration; like other figures also a range: 7-10."
    ] = None,
    hours: Annotated[str | float | None, ranged(count(1e9, metavar="HOURS")), "Claimed duration in hours."] = None,
    gpu_hours: Annotated[str | float | None, ranged(count(1e12, metavar="HOURS")), "Claimed accelerator-hours."] = None,
    cost: Annotated[str | float | None, ranged(USD), "Claimed cost of the run.", detail(field="cost_usd")] = None,
    precision: Annotated[
        str | None,
        one_of("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4", "mxfp4", "nvfp4", "gguf"),
        "Precision claimed.",
        detail(usual="as published; training in 16 bits", example="bf16"),
    ] = None,
    method: v.Method = "full",
    sequence: v.SequenceTokens | None = None,
    # its memory
    fits: Annotated[str | None, one_of("training", "serving"), "Claim: the model fits on these accelerators."] = None,
    weights_gb: Annotated[str | float | None, ranged(count(1e12, metavar="GB")), "Claimed size of the weights."] = None,
    training_gb: Annotated[
        str | float | None, ranged(count(1e12, metavar="GB")), "Claimed total memory of training."
    ] = None,
    # its speed in serving
    tokens_per_s: Annotated[
        str | float | None,
        ranged(count(1e12)),
        "Claimed output tokens per second in serving, over all accelerators.",
        detail(field="decode_tokens_per_s"),
    ] = None,
    batch: Annotated[
        str | int | None, whole(), "Sequences decoded at once, for tokens_per_s.", detail(usual="the most favourable")
    ] = None,
    # buying against renting
    buy: Annotated[str | float | None, USD, "Claimed price of buying.", detail(field="buy_usd")] = None,
    rent_monthly: Annotated[
        str | float | None, USD, "Claimed rent per month.", detail(field="rent_usd_per_month")
    ] = None,
    own_monthly: Annotated[
        str | float | None, USD, "Claimed running cost of owning per month.", detail(field="own_usd_per_month")
    ] = None,
    payback_months: Annotated[
        str | float | None, ranged(count(10_000)), "Claimed months until the purchase pays back."
    ] = None,
    hours_per_month: Annotated[
        v.HoursPerMonth | None, "Hours a month that each GPU is needed; shows how busy the gpus would be."
    ] = None,
    gpu_hours_per_month: Annotated[
        v.GpuHoursPerMonth | None, "GPU-hours needed a month, of all GPUs together; shows how busy the gpus would be."
    ] = None,
    breakeven_hours: Annotated[
        str | float | None,
        ranged(count(1e6, metavar="HOURS")),
        "Claimed hours a month of each GPU above which buying is cheaper than renting.",
    ] = None,
    # the data sheet of an accelerator
    tflops: Annotated[str | float | None, ranged(count(1e12)), "Claimed peak in TFLOP/s."] = None,
    sparse: Annotated[bool, FLAG, "The peak is said to be with sparsity."] = False,
    bandwidth: Annotated[
        str | float | None, ranged(GB_PER_S), "Claimed memory bandwidth.", detail(field="bandwidth_gb_per_s")
    ] = None,
    memory: Annotated[
        str | float | None, count(1e12, metavar="GB"), "Claimed memory.", detail(field="memory_gb")
    ] = None,
    link: Annotated[
        str | float | None, GB_PER_S, "Claimed speed of the links of one accelerator.", detail(field="link_gb_per_s")
    ] = None,
    one_way: Annotated[bool, FLAG, "The link is said to be counted in one direction."] = False,
    over_pcie: Annotated[bool, FLAG, "The claim is about PCIe."] = False,
    power: Annotated[
        str | float | None,
        ranged(count(1e12, metavar="WATTS")),
        "Claimed power, of --gpus accelerators or their server.",
        detail(field="power_w"),
    ] = None,
    cores: Annotated[str | float | None, count(1e9), "Claimed number of FP32 cores."] = None,
    # its prices
    rent: Annotated[
        str | float | None, ranged(USD), "Claimed price of a GPU-hour.", detail(field="rent_usd_per_gpu_hour")
    ] = None,
    provider: v.Provider | None = None,
    option: v.Option | None = None,
    purchase: Annotated[
        str | float | None, ranged(USD), "Claimed price to buy --gpus accelerators.", detail(field="purchase_usd")
    ] = None,
    # a collective operation
    all_reduce: Annotated[
        str | float | None, SECONDS, "Claimed time of an all-reduce.", detail(field="all_reduce_s")
    ] = None,
    payload: Annotated[
        str | float | None, count(1e9, metavar="GB"), "What is reduced.", detail(field="payload_gb")
    ] = None,
    # its speed in training
    train_tokens_per_s: Annotated[
        str | float | None,
        ranged(count(1e12)),
        "Claimed tokens per second in training, over all accelerators.",
        detail(field="training_tokens_per_s"),
    ] = None,
    mfu: Annotated[
        str | float | None,
        ranged(positive_share(100.0)),
        "Claimed share of the dense peak that training uses.",
        detail(field="mfu_fraction"),
    ] = None,
    # what it draws
    energy: Annotated[
        str | float | None, ranged(count(1e12, metavar="KWH")), "Claimed energy.", detail(field="energy_kwh")
    ] = None,
    carbon: Annotated[
        str | float | None, count(1e15, metavar="KG"), "Claimed kg of CO2e, of --energy.", detail(field="kgco2e")
    ] = None,
    # the rate of present values, and the day of the prices
    discount: Annotated[
        str | float, share(), "Annual rate for the present value.", detail(field="discount_fraction")
    ] = "10%",
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> AuditResult:
    """Return whether a claim is possible, and what would be true.

    Say whether a claim is possible, what it implies and what would be true; exit code 5 if it is impossible.

    $ gpucost audit --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --days 8 --cost 6291
    $ gpucost audit --model 70b --gpu h100-sxm --gpus 8 --fits training
    $ gpucost audit --gpu h100-sxm --precision fp8 --tflops 3958
    $ gpucost audit --buy 800k --rent-monthly 20k --own-monthly 5k --gpus 80 --gpu-hours-per-month 10000
    """
    values = read(
        QUESTIONS["audit"],
        model=model,
        tokens=tokens,
        gpu=gpu,
        gpus=gpus,
        days=days,
        hours=hours,
        gpu_hours=gpu_hours,
        cost=cost,
        precision=precision,
        method=method,
        sequence=sequence,
        fits=fits,
        weights_gb=weights_gb,
        training_gb=training_gb,
        tokens_per_s=tokens_per_s,
        batch=batch,
        buy=buy,
        rent_monthly=rent_monthly,
        own_monthly=own_monthly,
        payback_months=payback_months,
        breakeven_hours=breakeven_hours,
        hours_per_month=hours_per_month,
        gpu_hours_per_month=gpu_hours_per_month,
        tflops=tflops,
        sparse=sparse,
        bandwidth=bandwidth,
        memory=memory,
        link=link,
        one_way=one_way,
        over_pcie=over_pcie,
        power=power,
        cores=cores,
        rent=rent,
        provider=provider,
        option=option,
        purchase=purchase,
        all_reduce=all_reduce,
        payload=payload,
        train_tokens_per_s=train_tokens_per_s,
        mfu=mfu,
        energy=energy,
        carbon=carbon,
        discount=discount,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    facts = opened(values, catalog)
    # the figures of a range are judged together at their middles, their lower and their upper ends
    spans = {name: value for name, value in values.items() if isinstance(value, Span)}
    if not spans:
        return AuditResult(_audited(facts, values))
    points = zip(*(span.points for span in spans.values()), strict=True)
    answers = [_audited(facts, {**values, **dict(zip(spans, point, strict=True))}) for point in points]
    from gpucost.claims.audit import VERDICTS

    # a claim of a range is as possible as its most favourable point
    best = min(answers, key=lambda answer: VERDICTS.index(answer["verdict"]))
    middle, low, high = (answer["verdict"] for answer in answers)
    ranges = ", ".join(f"{flag_of(name)} {span.low:,.6g} to {span.high:,.6g}" for name, span in spans.items())
    note = f"Judged as a range, {ranges}: {low} at the low end, {middle} in the middle, {high} at the high end."
    return AuditResult({**best, "notes": [note, *best["notes"]]})


def _audited(facts: "Catalog", values: Mapping[str, Any]) -> "Audit":
    """Judge a claim whose figures are one number each."""
    from gpucost.claims import audit as judge
    from gpucost.claims import make_claim
    from gpucost.claims.audit import Check, break_even_verdict, prices
    from gpucost.claims.figures import Stated, check_stated
    from gpucost.workloads.speeds import key_of

    fields = by_field(QUESTIONS["audit"], values)
    claim = make_claim(fields)
    notes = facts.holding(claim.gpu)
    # a machine that is named says how many it holds
    claim = claim._replace(gpus=claim.gpus or facts.gpus_in(claim.gpu))
    if values["hours_per_month"] is not None:
        claim = claim._replace(gpu_hours_per_month=values["hours_per_month"] * (claim.gpus or 1))
    figures = Stated(**{name: fields[name] for name in Stated._fields})
    checks = check_stated(figures, claim, facts, notes)
    if values["breakeven_hours"] is not None:
        # from how many hours a month buying is cheaper, by what `tco` says: at a dearer rent few, else many
        accelerator = key_of(facts, claim.gpu).accelerator
        gpus = claim.gpus or facts.default_system(str(claim.gpu)).gpus
        known = prices(facts, accelerator, gpus)
        rent = values["rent"]
        if rent is None and known is not None:
            rent = known.typical

        def breakeven_hours(ratio: float) -> float | None:
            stated = {"gpu": accelerator.id, "gpus": gpus, "draws": 0}  # the risk of owning is not asked for
            if rent is not None:
                stated["rent"] = rent * ratio
            hours: float | None = answered("tco", stated, facts).payload["breakeven"]["hours_per_gpu_month"]
            return hours

        few, usual, many = map(breakeven_hours, (1 + _RENTS_DIFFER, 1.0, 1 - _RENTS_DIFFER))
        claimed = values["breakeven_hours"]
        verdict, reason = break_even_verdict(claimed, few, usual, many)
        at = "" if rent is None else f" against {rent:.2f} USD a GPU-hour"
        text = f"{gpus} × {accelerator.id}{at}: {reason}"
        checks.append(Check("break-even", verdict, claimed, few, usual, many, "hours", text))
    return judge(claim, facts, checks, notes)


_RENTS_DIFFER = 0.25  # between sellers of one accelerator, as a claim that names none may mean
