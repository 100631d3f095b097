"""`gpucost.tco(...)` and `gpucost.mix(...)`: own or rent as a finance team would compute it, and the cheapest mix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from gpucost.arguments import Question, by_field, read_stated, refuse_idle
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import (
    DEMAND,
    FILE,
    FLAG,
    RENTS,
    USD,
    USE_PATH,
    Kind,
    count,
    named,
    one_of,
    plain,
    share,
    whole,
)
from gpucost.arguments.signature import absent, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import question
from gpucost.ask.result import Result, copied
from gpucost.errors import UsageError
from gpucost.units import HOURS_PER_MONTH

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.ownership.assemble import OwnershipCase
    from gpucost.ownership.plan import Given, PlanFile
    from gpucost.render.document import Document

_MONTHS = 36  # of a mix, with a constant demand
_PRICE_FILTERS = ("provider", "option", "region")  # by which the market's rental price is looked up
# What of a mix is no input of the plan of ownership.
_LIMITS = ("budget_usd", "max_owned_gpus", "max_on_demand", "spot_share", "own", "life_months", "gap", "time_limit_s")


@dataclass(frozen=True, slots=True, repr=False)
class TcoResult(Result):
    """Cash flows, present values, break-even and risk of owning against renting."""

    @property
    def best(self) -> Mapping[str, Any]:
        """The way to have the cluster that costs least in present value."""
        return min(self.options, key=lambda way: float(way["npv_usd"]))

    def _always(self) -> list[str]:
        from gpucost.money.comparison import OWN_LINES, RENT_LINES

        return [line.name for line in (*OWN_LINES, *RENT_LINES)]

    def _usual(self, plain: Sequence[str]) -> list[str]:
        """Return every column: without some of its lines a total would not add up."""
        return [*plain]

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The lines of both sides with totals and present values."""
        return [*map(copied, self.payload["lines"])]

    @property
    def assumptions(self) -> list[Mapping[str, Any]]:
        """Every input with value, range, status and source."""
        return [*map(copied, self.payload["assumptions"])]

    def explanation(self) -> "Document":
        """Return the document with every formula and its numbers, and the inputs with their sources."""
        from gpucost.render.tco import explanation_document

        return explanation_document(self.payload)

    def to_plan(self) -> str:
        """Return the effective inputs as a plan file; reading it back gives the same answer."""
        from gpucost.ownership.plan import write_plan

        return write_plan(self.payload["assumptions"], self.payload["settings"], self.payload["model"]["tables"])


@question(
    # ways to say the same use, the same length, the same measured speed
    exclusive=["utilisation hours_per_month gpu_hours_per_month", "years months", "mfu tokens_per_s_per_gpu step_time"],
    needs=[
        needs("provider option region", absent("rent"), words="without a price by --rent, which is the rental price"),
        needs("region", given("provider"), words="with --provider: it is the region of a price"),
        needs("prompt_tokens output_tokens", given("tokens_per_month")),
        needs(
            "mfu step_time tokens runs_per_year",
            given("model"),
            words="with --model, such as --model 8b: say of which model",
        ),
        needs(
            "mfu step_time",
            absent("tokens_per_month"),
            words="without --tokens-per-month: a serving load takes --tokens-per-s-per-gpu",
        ),
        needs(
            "tokens runs_per_year",
            absent("tokens_per_month"),
            words="without --tokens-per-month: one workload sets the use",
        ),
    ],
)
def tco(
    # the cluster, and how much it is used
    gpu: Annotated[v.OneGpu | None, "Accelerator to own, such as h100-sxm."] = None,
    gpus: Annotated[v.Gpus | None, "Number of GPUs."] = None,
    *,
    utilisation: Annotated[
        str | float | None,
        share(),
        "Share of owned hours that are allocated, such as 70%; for a workload the maximum.",
        detail(example="70%", field="utilisation_fraction"),
    ] = None,
    hours_per_month: Annotated[v.HoursPerMonth | None, "Instead of a utilisation: hours a month of each GPU."] = None,
    gpu_hours_per_month: Annotated[
        v.GpuHoursPerMonth | None, "Instead of a utilisation: GPU-hours a month, of all GPUs together."
    ] = None,
    years: v.Years | None = None,
    months: Annotated[
        str | int | None, whole(1, 1200), "Length of the comparison in months.", detail(example=48)
    ] = None,
    # the rent that owning is compared with
    rent: Annotated[
        str | float | Sequence[str | float] | Mapping[str, str] | None,
        RENTS,
        "Rental price per GPU-hour, or quotes: acme=2.46/h, 12 months, take-or-pay, or a .csv or .xlsx of them; may "
        "be repeated.",
        detail(usual="the market's", example=2.35),
    ] = None,
    provider: Annotated[v.Provider | None, "Take the rental price of this provider from the catalog."] = None,
    region: Annotated[v.Region | None, "The provider's region."] = None,
    option: Annotated[v.Option | None, "The provider's purchase option: on_demand, reserved, spot …"] = None,
    rent_path: Annotated[
        str | None,
        one_of("flat", "decline", "observed_v", "curve"),
        "Path of the rental price.",
        detail(usual="flat", example="decline"),
    ] = None,
    rent_curve: Annotated[
        str | None, FILE, "CSV of rental prices: month, usd_per_gpu_hour.", detail(example="curve.csv")
    ] = None,
    # money, tax and place
    wacc: v.Wacc | None = None,
    tax: Annotated[
        str | float | None,
        share(),
        "Income tax; cash flows are then after tax.",
        detail(example="25%", field="tax_rate_fraction"),
    ] = None,
    tax_regime: Annotated[
        str | None,
        named("COUNTRY", "tax regimes", "us"),
        "Tax law of a country (de, ie, sg, uk, us): rate, depreciation, loss limits; cash flows are then after tax.",
        detail(example="us"),
    ] = None,
    site: Annotated[
        str | None,
        named("SITE", "sites"),
        "Colocation, sales and property tax of a region, such as us_virginia, germany.",
        detail(example="us_virginia"),
    ] = None,
    use_path: Annotated[
        str | None,
        USE_PATH,
        "How use changes relative to the utilisation: ramp 20% over 6 months; from month 25: 120%; "
        "seasons and 12 shares; or a CSV of month and use.",
        detail(example="ramp 20% over 6 months"),
    ] = None,
    refresh_gpu: Annotated[
        str | None,
        named("GPU", "accelerators"),
        "Newer chip at a replacement (refresh_month), with its speed.",
        detail(example="b200"),
    ] = None,
    profile: Annotated[
        str | None,
        one_of("desk", "lab", "colocation", "own"),
        "Where the hardware stands and who runs it.",
        detail(usual="by the number and form of the GPUs", example="colocation"),
    ] = None,
    # how it is paid, and when it comes
    financing: Annotated[
        str | None,
        one_of("cash", "loan", "lease", "operating_lease"),
        "How the purchase is paid.",
        detail(usual="cash", example="loan"),
    ] = None,
    lead_time: v.LeadTime | None = None,
    electricity_region: Annotated[
        str | None,
        named("REGION", "electricity"),
        "Region whose electricity tariff counts, from the energy table, such as us_texas.",
        detail(example="us_texas"),
    ] = None,
    grid_region: Annotated[
        str | None,
        named("REGION", "grid_carbon"),
        "Grid whose carbon intensity counts, from the energy table, such as france.",
        detail(example="france"),
    ] = None,
    # a workload, which sets the use and the cost per token
    model: Annotated[v.Model | None, "Model of the workload that sets utilisation and cost per token."] = None,
    tokens: Annotated[v.Tokens | None, "Tokens of one training run."] = None,
    mfu: Annotated[v.Mfu | None, "Use your measured training MFU, e.g. 35%.", detail(field="")] = None,
    tokens_per_s_per_gpu: Annotated[
        v.TokensPerSPerGpu | None,
        "Use your measured speed: tokens per second per accelerator; for serving, prompt and reply together.",
    ] = None,
    step_time: Annotated[
        v.StepTime | None, "Use your measured seconds per training step on the gpus.", detail(field="")
    ] = None,
    runs_per_year: Annotated[
        str | float | None, plain(0, 1e6), "Training runs per year.", detail(usual="1", example=4)
    ] = None,
    tokens_per_month: Annotated[
        str | float | None,
        count(1e18, metavar="TOKENS"),
        "Tokens to serve per month, prompt and reply together.",
        detail(example="5b"),
    ] = None,
    prompt_tokens: Annotated[
        str | float | None,
        count(16_777_216, 1, metavar="TOKENS"),
        "Prompt of a request, for a serving load.",
        detail(example=1000),
    ] = None,
    output_tokens: Annotated[
        str | float | None,
        count(16_777_216, 1, metavar="TOKENS"),
        "Reply of a request, for a serving load.",
        detail(example=250),
    ] = None,
    api_price: Annotated[
        str | float | None,
        USD,
        "Price of a hosted API per million tokens, for the same tokens.",
        detail(example=0.9, field="api_usd_per_mtok"),
    ] = None,
    # how the result is shown
    currency: Annotated[
        str | None, named("CODE", "currencies"), "Show the result in this currency as well.", detail(example="EUR")
    ] = None,
    # a plan with any other input
    plan: v.PlanSource | None = None,
    set: v.Inputs | None = None,
    # the risk
    draws: Annotated[
        str | int | None, whole(0), "Monte Carlo draws; 0 turns it off.", detail(usual="1000", example=1000)
    ] = None,
    seed: Annotated[
        str | int | None, whole(0, 4_294_967_295), "Seed of the draws.", detail(usual="1", example=1)
    ] = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> TcoResult:
    """Return owning a cluster compared with renting the same productive hours.

    Own a cluster or rent the same productive hours: cash flows, NPV, break-even, risk.

    $ gpucost tco --gpu h100-sxm --gpus 64 --utilisation 70% --years 4 --rent 2.35
    $ gpucost tco --gpu h100-sxm --gpus 64 --provider crusoe --lead-time 36w --set pue_ratio=1.2
    $ gpucost tco --gpu rtx-4090 --gpus 2 --hours-per-month 100
    $ gpucost tco --gpu h100-sxm --gpus 64 --print-plan -o plan.toml
    """
    from gpucost.ownership.answer import answer as compare_ownership

    facts, file, flags, special, arguments = _read_comparison(
        catalog,
        gpu=gpu,
        gpus=gpus,
        utilisation=utilisation,
        hours_per_month=hours_per_month,
        gpu_hours_per_month=gpu_hours_per_month,
        years=years,
        months=months,
        rent=rent,
        provider=provider,
        region=region,
        option=option,
        rent_path=rent_path,
        rent_curve=rent_curve,
        wacc=wacc,
        tax=tax,
        tax_regime=tax_regime,
        site=site,
        use_path=use_path,
        refresh_gpu=refresh_gpu,
        profile=profile,
        financing=financing,
        lead_time=lead_time,
        electricity_region=electricity_region,
        grid_region=grid_region,
        model=model,
        tokens=tokens,
        mfu=mfu,
        tokens_per_s_per_gpu=tokens_per_s_per_gpu,
        step_time=step_time,
        runs_per_year=runs_per_year,
        tokens_per_month=tokens_per_month,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        api_price=api_price,
        currency=currency,
        plan=plan,
        set=set,
        draws=draws,
        seed=seed,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    request = _repeatable(arguments, rent)
    # The answer's own request names the cluster, also where a plan or the model of a workload decides it. A plan has
    # values with ranges, an argument a plain one.
    for name in ("gpus", "gpu"):
        stated = flags.get(name) or file.inputs.get(name) or file.special.get(name)
        if name not in request and stated:
            value = getattr(stated, "value", stated)
            request[name] = int(value) if isinstance(value, float) else value
    if machine := facts.machine(request.get("gpu")):  # the answer counts accelerators, not machines
        request["gpu"] = machine.accelerator_id
        if machine.gpus:
            request.setdefault("gpus", machine.gpus)
    return TcoResult(compare_ownership(facts, file, flags, special, request))


class _Comparison(NamedTuple):
    """What the engine of ownership takes, as arguments of `tco` state it."""

    facts: "Catalog"
    file: "PlanFile"
    flags: dict[str, Any]  # inputs of the plan; they win over the file's
    special: dict[str, Any]  # arguments that are no inputs (`plan.SPECIAL`): the GPU, the provider, a model …
    arguments: dict[str, Any]  # all of them as they were read


def _read_comparison(catalog: "Catalog | None", /, **stated: Any) -> _Comparison:
    from gpucost.catalog.shared import shared_catalog
    from gpucost.ownership.assemble import inputs_of

    question_ = QUESTIONS["tco"]
    arguments = read_stated(question_, **stated)
    # hours of use become the share of hours that the engine takes
    hours = arguments.pop("hours_per_month", None)
    hours_of_all = arguments.pop("gpu_hours_per_month", None)
    if hours_of_all is not None:
        if "gpus" not in arguments:
            raise UsageError("--gpu-hours-per-month: of how many GPUs? Add --gpus.")
        hours = hours_of_all / arguments["gpus"]
        if hours > HOURS_PER_MONTH:
            raise UsageError(
                f"--gpu-hours-per-month: {hours_of_all:,.0f} are {hours:,.0f} hours of each of {arguments['gpus']:,}"
                f" GPUs; a month has {HOURS_PER_MONTH:,.0f}. Add GPUs."
            )
    if hours is not None:
        arguments["utilisation"] = hours / HOURS_PER_MONTH
    # a plan may say the rest, so only what a rent that is stated here leaves no use for is refused
    if "rent" in arguments:
        refuse_idle(
            question_, {name: arguments[name] for name in (*_PRICE_FILTERS, "rent") if name in arguments}, arguments
        )
    special, flags = _split_special(question_, arguments)
    facts = catalog or shared_catalog(special.pop("as_of", None), special.pop("known_as_of", None))
    file = plan_of(facts, arguments.get("plan"))
    # a workload (model, tokens, runs per year) becomes inputs: the use, and the cost per token
    workload = {**file.special, **special}
    refuse_idle(question_, workload, workload)
    if workload.get("model") or workload.get("tokens_per_month") is not None:
        inputs = {**{name: entry.value for name, entry in file.inputs.items()}, **flags}
        flags = {**flags, **inputs_of(facts, workload, inputs, _serving_speed)}
    return _Comparison(facts, file, flags, special, arguments)


def case_of(stated: Mapping[str, Any], catalog: "Catalog") -> "OwnershipCase":
    """Return the case that arguments of `tco` describe, as a sweep works on many of them."""
    from gpucost.ownership.assemble import assemble

    facts, file, flags, special, _ = _read_comparison(catalog, **stated)
    return assemble(facts, file, flags, special)


@dataclass(frozen=True, slots=True, repr=False)
class MixResult(Result):
    """What to own, reserve and rent, and when."""

    @property
    def options(self) -> list[Mapping[str, Any]]:
        """The mix, and beside it each way to carry the demand alone."""
        mixed = {"option": "mix", "cost_usd": self.payload["cost_usd"], "note": ""}
        return [mixed, *map(copied, self.payload["pure"])]

    @property
    def best(self) -> Mapping[str, Any]:
        """The mix: what it costs."""
        return self.options[0]


@question(
    # the demand is a curve, or one number with its growth
    exclusive=["demand constant"],
    needs=[
        needs("growth months", given("constant")),
        needs("provider", absent("rent"), words="without --rent, which is the price"),
        needs(
            "budget max_owned life_months lead_time",
            absent("own", "False"),
            words="where owning is allowed: --no-own leaves it out",
        ),
    ],
)
def mix(
    # the demand: a file, or a constant
    demand: Annotated[
        str | Sequence[float] | None,
        DEMAND,
        "CSV with the columns month and gpus; in the library also GPUs by month.",
        detail(example="demand.csv", place=True),
    ] = None,
    *,
    constant: Annotated[
        str | float | None,
        plain(0, 1e6, metavar="GPUS"),
        "Instead of a file: this many GPUs in every month.",
        detail(example=64),
    ] = None,
    growth: Annotated[
        str | float | None,
        share(100, -0.999),
        "Yearly growth of the constant, such as 20%.",
        detail(usual="0%", example="20%"),
    ] = None,
    months: Annotated[str | int, whole(1, 120), "Length, with constant."] = _MONTHS,
    # the ways to carry it, and their prices
    gpu: v.OneGpu | None = None,
    rent: Annotated[v.Rent | None, "On-demand price per GPU-hour."] = None,
    provider: Annotated[v.Provider | None, "Take prices and terms of this provider from the catalog."] = None,
    # what bounds them
    budget: Annotated[
        str | float | None,
        plain(0, 1e15, metavar="USD"),
        "Most capital to spend on owned servers.",
        detail(example=2000000, field="budget_usd"),
    ] = None,
    max_owned: Annotated[
        str | float | None,
        plain(0, 1e9, metavar="GPUS"),
        "Most GPUs to own.",
        detail(example=64, field="max_owned_gpus"),
    ] = None,
    max_on_demand: Annotated[
        str | float | None, plain(0, 1e9, metavar="GPUS"), "Most GPUs available on demand.", detail(example=32)
    ] = None,
    spot_share: Annotated[
        str | float | None,
        share(),
        "Share of each month's demand that spot may carry.",
        detail(usual="30%", example="30%"),
    ] = None,
    own: Annotated[
        bool | None,
        FLAG,
        "Allow owning; otherwise everything is rented.",
        detail(usual="yes", example=True),
    ] = None,
    life_months: Annotated[
        str | int | None, whole(1, 1200), "Life of owned servers.", detail(usual="60", example=60)
    ] = None,
    lead_time: Annotated[v.LeadTime | None, "Time from order to use, such as 36w."] = None,
    wacc: v.Wacc | None = None,
    # when the search stops
    gap: Annotated[
        str | float | None,
        share(),
        "Stop when no mix can be cheaper by more than this share.",
        detail(usual="0.01%", example="1%"),
    ] = None,
    time_limit: Annotated[
        str | float | None,
        plain(0.001, 86_400, metavar="SECONDS"),
        "Also stop after this time; the result then depends on the speed of the machine.",
        detail(example=60, field="time_limit_s"),
    ] = None,
    # a plan with any other input
    plan: Annotated[
        v.PlanSource | None, "TOML file with any input by name, and [[supply]] entries; elsewhere also a table."
    ] = None,
    set: v.Inputs | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> MixResult:
    """Return the cheapest mix of owned, reserved, on-demand and spot capacity for a demand.

    Find the cheapest combination of capacity for a demand by month (a CSV with the columns month and gpus).

    $ gpucost mix demand.csv --gpu h100-sxm --lead-time 36w
    $ gpucost mix --constant 64 --growth 50% --months 36 --gpu h100-sxm --budget 2000000
    """
    import numpy as np

    from gpucost.arguments.kinds import numbers
    from gpucost.catalog.shared import shared_catalog
    from gpucost.ownership.mix import answer as plan_mix
    from gpucost.ownership.mix import demand_of

    question_ = QUESTIONS["mix"]
    stated = read_stated(
        question_,
        demand=demand,
        constant=constant,
        growth=growth,
        months=months,
        gpu=gpu,
        rent=rent,
        provider=provider,
        budget=budget,
        max_owned=max_owned,
        max_on_demand=max_on_demand,
        spot_share=spot_share,
        own=own,
        life_months=life_months,
        lead_time=lead_time,
        wacc=wacc,
        gap=gap,
        time_limit=time_limit,
        plan=plan,
        set=set,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    # unlike in `tco`, everything that a mix takes is said here or nowhere
    refuse_idle(question_, stated, stated)
    special, by_name = _split_special(question_, stated)
    facts = catalog or shared_catalog(special.pop("as_of", None), special.pop("known_as_of", None))
    demand_source = by_name.pop("demand", None)
    constant_gpus = by_name.pop("constant", None)
    growth_fraction = by_name.pop("growth", None)
    month_count = by_name.pop("months", None)
    if month_count is None:
        month_count = _MONTHS
    is_list = demand_source is not None and not isinstance(demand_source, str)
    if is_list:  # GPUs by month, from Python
        try:
            curve = numbers(demand_source)
        except (TypeError, ValueError, OverflowError):
            curve = np.zeros(0)
        if curve.ndim != 1 or curve.size == 0 or not np.isfinite(curve).all() or curve.min() < 0 or curve.max() <= 0:
            raise UsageError("demand: expected GPUs by month, none negative or missing, and not all zero.")
    else:
        curve = demand_of(demand_source, constant_gpus, growth_fraction, month_count)
    # the engine of a mix takes its limits apart from the inputs of the plan
    all_names = by_name | special
    limits = {name: all_names[name] for name in _LIMITS if name in all_names}
    flags = {name: value for name, value in by_name.items() if name not in _LIMITS}
    special = {name: value for name, value in special.items() if name not in _LIMITS}
    request = _repeatable(stated, rent)
    if constant_gpus is not None:
        request["months"] = month_count
    if is_list:
        request["demand"] = curve.tolist()
    return MixResult(plan_mix(facts, plan_of(facts, stated.get("plan")), flags, special, curve, limits, request))


@cache
def plan_kinds() -> tuple[tuple[str, Kind], ...]:
    """Return the kinds of what a plan may say under the name of an argument of `tco` or `mix`."""
    arguments = [argument for question_name in ("tco", "mix") for argument in QUESTIONS[question_name].arguments]
    kinds = {name: argument.kind for argument in arguments for name in (argument.name, argument.field) if name}
    return (*kinds.items(), ("quote", RENTS))  # a plan has the market's price in a row of its own


def _split_special(question_: Question, stated: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide arguments into special names, dates among them, and inputs of the plan; each may be stated once."""
    from gpucost.ownership.plan import SPECIAL, once
    from gpucost.ownership.plan import special_value as read_special

    by_name = by_field(question_, stated)
    by_name.pop("plan", None)
    inputs = by_name.pop("set", {})
    # a price without a name is the rent; the others are quotes, which are compared with it
    rents = by_name.get("rent")
    if isinstance(rents, dict):
        price = rents.get("")
        quotes = {name: terms for name, terms in rents.items() if name}
        by_name |= {"rent_usd_per_gpu_hour": price, "quote": quotes or None}
        by_name = {name: value for name, value in by_name.items() if value is not None and name != "rent"}
    twice = sorted(set(inputs) & set(by_name))
    if twice:
        raise UsageError(f"{twice[0]} is given twice: as an argument and by --set. Keep one.")
    by_name |= {name: read_special(name, value, "--set", plan_kinds()) for name, value in inputs.items()}
    special = {name: value for name, value in by_name.items() if name in SPECIAL or name in ("as_of", "known_as_of")}
    inputs = {name: value for name, value in by_name.items() if name not in special}
    # an input and an argument may be two names of one thing
    once(inputs, special, "the request")
    return special, inputs


def _repeatable(stated: Mapping[str, Any], rent: Any) -> dict[str, Any]:
    """Return the arguments as they were read, so that they can be asked again; quotes as they were written."""
    request = dict(stated)
    # quotes were read into terms; the text of each is what a person can ask again
    rents = request.get("rent")
    if isinstance(rents, dict):
        request["rent"] = rents[""] if list(rents) == [""] else rent
    return request


def plan_of(catalog: "Catalog", plan: "str | Mapping[str, Any] | None") -> "PlanFile":
    """Read a plan from a file or a mapping."""
    from gpucost.ownership.assemble import registry_of
    from gpucost.ownership.plan import PlanFile, plan_from_mapping, read_plan

    if plan is None:
        return PlanFile()
    names = registry_of(catalog).names
    if isinstance(plan, Mapping):
        return plan_from_mapping(plan, names, plan_kinds())
    return read_plan(plan, names, plan_kinds())


def _serving_speed(catalog: "Catalog", workload: Mapping[str, Any]) -> "tuple[Given, float]":
    """Return tokens per second and GPU (prompt and reply together) of the cheapest deployment, and GPUs per server."""
    from gpucost.ask.inference import request_of
    from gpucost.ownership.plan import Given
    from gpucost.serving.run import infer

    if not workload.get("model") or not workload.get("gpu"):
        raise UsageError("a serving load needs --model and --gpu, or tokens_per_s_per_gpu, beside tokens_per_month.")
    # the service's own defaults hold for lengths that are not stated
    lengths = {name: workload[name] for name in ("prompt_tokens", "output_tokens") if name in workload}
    gpu = catalog.accelerator(str(workload["gpu"])).id
    best = infer(request_of(catalog, model=str(workload["model"]), gpu=gpu, **lengths), catalog)["options"][0]
    speed, factors = float(best["tokens_per_s_per_gpu"]), cast(dict[str, float], best["factors"])
    source = (
        f"{workload['model']} on {best['gpu']} × {factors['replica_gpus']:g}, {best['precision']}, {best['engine']}"
    )
    ends = (speed * factors["speed_low_ratio"], speed * factors["speed_high_ratio"])
    server = catalog.default_system(gpu)
    # a server is bought whole, also where a replica takes less of it
    return Given(speed, *ends, source, "derived"), max(float(factors["replica_gpus"]), float(server.gpus))
