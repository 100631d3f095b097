"""`gpucost.audit(...)`: whether a claim is possible, and what would be true."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.arguments import by_field, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import DAYS, USD, count, one_of, share, whole
from gpucost.arguments.signature import detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import opened, question
from gpucost.ask.result import Result

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


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
    exclusive=["days hours gpu_hours"],
    needs=[
        needs("gpu fits tokens_per_s weights_gb training_gb method sequence precision", given("model")),
        needs("tokens fits tokens_per_s", given("gpu")),
        needs("days hours gpu_hours cost", given("tokens"), words="with --tokens: of which run"),
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
            words="with a claim about it: --tokens with --days, --cost and the like, or --fits, --tokens-per-s,"
            " --weights-gb, --training-gb",
        ),
        needs(
            "own_monthly payback_months discount hours_per_month", given("buy"), words="with --buy and --rent-monthly"
        ),
    ],
)
def audit(
    *,
    model: v.Model | None = None,
    tokens: Annotated[v.Tokens | None, "Tokens trained on."] = None,
    gpu: Annotated[
        v.OneGpu | None, "Accelerator; a family is judged as its most favourable variant.", detail(example="h100")
    ] = None,
    gpus: v.Count | None = None,
    days: Annotated[str | float | None, DAYS, "Claimed duration."] = None,
    hours: Annotated[str | float | None, count(1e9, metavar="HOURS"), "Claimed duration in hours."] = None,
    gpu_hours: Annotated[str | float | None, count(1e12, metavar="HOURS"), "Claimed accelerator-hours."] = None,
    cost: Annotated[str | float | None, USD, "Claimed cost of the run.", detail(field="cost_usd")] = None,
    precision: Annotated[
        str | None,
        one_of("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"),
        "Precision claimed.",
        detail(usual="bf16, or fp16 on chips without it", example="bf16"),
    ] = None,
    method: v.Method = "full",
    sequence: v.SequenceTokens | None = None,
    fits: Annotated[str | None, one_of("training", "serving"), "Claim: it fits on these accelerators."] = None,
    weights_gb: Annotated[str | float | None, count(1e12, metavar="GB"), "Claimed size of the weights."] = None,
    training_gb: Annotated[str | float | None, count(1e12, metavar="GB"), "Claimed memory of training in all."] = None,
    tokens_per_s: Annotated[
        str | float | None,
        count(1e12),
        "Claimed output tokens per second in serving, over all accelerators.",
        detail(field="decode_tokens_per_s"),
    ] = None,
    batch: Annotated[
        str | int | None, whole(), "Sequences decoded at once, for tokens_per_s.", detail(usual="the most favourable")
    ] = None,
    buy: Annotated[str | float | None, USD, "Claimed price of buying.", detail(field="buy_usd")] = None,
    rent_monthly: Annotated[
        str | float | None, USD, "Claimed rent per month.", detail(field="rent_usd_per_month")
    ] = None,
    own_monthly: Annotated[
        str | float | None, USD, "Claimed running cost of owning per month.", detail(field="own_usd_per_month")
    ] = None,
    payback_months: Annotated[str | float | None, count(10_000), "Claimed months until buying pays back."] = None,
    hours_per_month: Annotated[
        str | float | None,
        count(1e12, metavar="HOURS"),
        "Accelerator-hours needed per month, for how busy the gpus would be.",
        detail(field="gpu_hours_per_month"),
    ] = None,
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
    $ gpucost audit --buy 800k --rent-monthly 20k --own-monthly 5k --gpus 80 --hours-per-month 10000
    """
    values = read(QUESTIONS["audit"], locals())
    from gpucost.claims import audit as judge
    from gpucost.claims import make_claim

    return AuditResult(judge(make_claim(by_field(QUESTIONS["audit"], values)), opened(values, catalog)))
