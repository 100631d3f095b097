"""`gpucost.audit(...)`: whether a claim is possible, and what would be true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.arguments import by_field, flag_of, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import DAYS, FILE, FLAG, GB_PER_S, SECONDS, USD, count, one_of, share, whole
from gpucost.arguments.signature import detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import opened, question
from gpucost.ask.result import Result
from gpucost.errors import NothingFitsError, PriceMissingError, UsageError

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.claims.figures import TokenPrice
    from gpucost.types import Accelerator


# figures that are of an accelerator alone
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
    exclusive=["days hours gpu_hours"],
    needs=[
        needs("fits tokens_per_s weights_gb training_gb train_tokens_per_s method sequence", given("model")),
        needs(
            "gpu",
            given("model"),
            *map(given, FIGURES),
            words="with --model, or with a figure of it: --tflops, --bandwidth, --memory, --rent and the like",
        ),
        needs("precision", given("model"), given("tflops"), words="with --model or --tflops"),
        needs("tokens fits tokens_per_s train_tokens_per_s", given("gpu")),
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
            words="with a claim about it: --tokens with --days, --cost and the like, or --fits, --tokens-per-s,"
            " --weights-gb, --training-gb, --train-tokens-per-s",
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
        v.OneGpu | None, "Accelerator; for a family, the most favourable variant is judged.", detail(example="h100")
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
    fits: Annotated[str | None, one_of("training", "serving"), "Claim: the model fits on these accelerators."] = None,
    weights_gb: Annotated[str | float | None, count(1e12, metavar="GB"), "Claimed size of the weights."] = None,
    training_gb: Annotated[str | float | None, count(1e12, metavar="GB"), "Claimed total memory of training."] = None,
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
    payback_months: Annotated[str | float | None, count(10_000), "Claimed months until the purchase pays back."] = None,
    hours_per_month: Annotated[
        str | float | None,
        count(1e12, metavar="HOURS"),
        "Accelerator-hours needed per month; shows how busy the gpus would be.",
        detail(field="gpu_hours_per_month"),
    ] = None,
    tflops: Annotated[str | float | None, count(1e12), "Claimed peak in TFLOP/s."] = None,
    sparse: Annotated[bool, FLAG, "The peak is said to be with sparsity."] = False,
    bandwidth: Annotated[
        str | float | None, GB_PER_S, "Claimed memory bandwidth.", detail(field="bandwidth_gb_per_s")
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
        count(1e12, metavar="WATTS"),
        "Claimed power, of --gpus accelerators or their server.",
        detail(field="power_w"),
    ] = None,
    cores: Annotated[str | float | None, count(1e9), "Claimed number of FP32 cores."] = None,
    rent: Annotated[
        str | float | None, USD, "Claimed price of a GPU-hour.", detail(field="rent_usd_per_gpu_hour")
    ] = None,
    provider: v.Provider | None = None,
    option: v.Option | None = None,
    purchase: Annotated[
        str | float | None, USD, "Claimed price to buy --gpus accelerators.", detail(field="purchase_usd")
    ] = None,
    all_reduce: Annotated[
        str | float | None, SECONDS, "Claimed time of an all-reduce.", detail(field="all_reduce_s")
    ] = None,
    payload: Annotated[
        str | float | None, count(1e9, metavar="GB"), "What is reduced.", detail(field="payload_gb")
    ] = None,
    train_tokens_per_s: Annotated[
        str | float | None,
        count(1e12),
        "Claimed tokens per second in training, over all accelerators.",
        detail(field="training_tokens_per_s"),
    ] = None,
    energy: Annotated[
        str | float | None, count(1e12, metavar="KWH"), "Claimed energy.", detail(field="energy_kwh")
    ] = None,
    carbon: Annotated[
        str | float | None, count(1e15, metavar="KG"), "Claimed kg of CO2e, of --energy.", detail(field="kgco2e")
    ] = None,
    text: Annotated[
        str | None,
        FILE,
        "Judge each figure in the sentences of FILE; no other option goes with it but the days.",
        detail(example="article.txt"),
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
    $ gpucost audit --gpu h100-sxm --precision fp8 --tflops 3958
    $ gpucost audit --text article.txt
    $ gpucost audit --buy 800k --rent-monthly 20k --own-monthly 5k --gpus 80 --hours-per-month 10000
    """
    stated = locals()
    values = read(QUESTIONS["audit"], stated)
    facts = opened(values, catalog)
    if text is not None:
        from gpucost.claims.sentences import audit_text
        from gpucost.gate import read_text

        _alone(stated)
        return AuditResult(audit_text(read_text(values["text"]), facts, _token_price))
    from gpucost.claims import audit as judge
    from gpucost.claims import make_claim
    from gpucost.claims.figures import Stated, check_stated

    fields = by_field(QUESTIONS["audit"], values)
    claim, notes = make_claim(fields), list[str]()
    figures = Stated(**{name: fields[name] for name in Stated._fields})
    return AuditResult(judge(claim, facts, check_stated(figures, claim, facts, notes), notes))


def _token_price(catalog: "Catalog", model: str, chips: "Sequence[Accelerator]", hosted: bool) -> "TokenPrice | None":
    """Return what `inference` finds a million tokens to cost: on full machines of some accelerators, or at hosts."""
    from gpucost.ask.inference import request_of
    from gpucost.claims.figures import TokenPrice
    from gpucost.serving.run import infer

    named = {"gpu": ",".join(chip.id for chip in chips)} if chips else {}
    try:
        answer = infer(request_of(catalog, model=model, top=0, **named), catalog)
    except (NothingFitsError, PriceMissingError):
        return None
    if hosted:
        listed = [row for row in answer["api"] if row["same_model"]]
        if not listed:
            return None
        ends = [price for row in listed for price in (row["usd_per_mtok_input"], row["usd_per_mtok_output"])]
        first = listed[0]
        return TokenPrice(min(ends), first["usd_per_mtok"], max(ends), f"{first['provider']}, prompt and output mixed")
    rows = [row for row in answer["options"] if not row["missing"]] or answer["options"]
    low, high = min(row["usd_per_mtok_low"] for row in rows), max(row["usd_per_mtok_high"] for row in rows)
    first_row = rows[0]
    where = f"{first_row['gpus']} × {first_row['gpu']} at {first_row['provider']}, always full"
    return TokenPrice(low, first_row["usd_per_mtok"], high, where)


def _alone(stated: Mapping[str, Any]) -> None:
    """Refuse what would be ignored beside a text."""
    for argument in QUESTIONS["audit"].arguments:
        if argument.name in ("text", "as_of", "known_as_of") or stated[argument.name] in (None, argument.default):
            continue
        raise UsageError(f"{flag_of(argument.name)}: not with --text, whose sentences say what is claimed.")
