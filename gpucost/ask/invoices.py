"""`gpucost.reconcile(...)`, `commit(...)`, `export(...)`: invoices against plans, commitments, answers as invoices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.arguments import read, read_list
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import DEMAND, FILE, SAVED_PLAN, TABLE, USD_PER_GPU_HOUR, named, one_of, share, whole
from gpucost.arguments.signature import absent, arguments_of, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import framed, opened, question
from gpucost.ask.result import Result, copied
from gpucost.errors import PriceMissingError, UsageError
from gpucost.gate import shown
from gpucost.options import OPTIONS, is_plain
from gpucost.units import months_after

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_FORMS = (".csv", ".parquet")


@dataclass(frozen=True, slots=True, repr=False)
class ReconcileResult(Result):
    """An invoice against a plan: the parts of the difference, what is unmatched, and what each tag bears."""

    @property
    def parts(self) -> list[Mapping[str, Any]]:
        """The parts of the difference; billed and effective each add up to it."""
        return [*map(copied, self.payload["parts"])]

    def _rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.payload["parts"] or self.payload["showback"]]


@question(
    needs=[
        needs("rank side start done", given("estimate")),
        needs("rate budget_rate", given("estimate"), given("showback")),
        needs("idle_by", given("showback")),
    ],
)
def reconcile(
    # the invoice, and what was planned
    invoice: Annotated[
        str, FILE, "FOCUS 1.x file: .csv, .parquet or .json, also .gz.", detail(example="invoice.csv", place=True)
    ],
    estimate: Annotated[
        str | Mapping[str, Any] | None,
        SAVED_PLAN,
        "Saved answer (.json), or a FOCUS file of what was planned; in the library also a payload.",
        detail(example="saved.json"),
    ] = None,
    *,
    start: v.Start | None = None,
    rank: v.Rank = 1,
    side: v.Side | None = None,
    done: Annotated[
        str | float | None,
        share(100),
        "Work done, as a share of what was planned for the time: splits quantity from efficiency.",
        detail(example="95%"),
    ] = None,
    # names and currencies that differ between the two
    map: Annotated[
        str | None,
        FILE,
        "CSV with the columns invoice and estimate: the names of one product in each.",
        detail(example="map.csv"),
    ] = None,
    rate: Annotated[
        Mapping[str, Any] | None,
        TABLE,
        "USD per unit of a currency, as paid.",
        detail(usual="the catalog's at the end of each month", example={"EUR": "1.08"}),
    ] = None,
    budget_rate: Annotated[
        Mapping[str, Any] | None,
        TABLE,
        "USD per unit of a currency, as planned.",
        detail(usual="the catalog's on the plan's day", example={"EUR": "1.10"}),
    ] = None,
    # who bears it
    showback: Annotated[
        str | None, named("TAG"), "Show the effective cost per value of this tag.", detail(example="team")
    ] = None,
    idle_by: Annotated[
        str, one_of("cost", "quantity", "even"), "How the cost of unused commitments is shared among the tags."
    ] = "cost",
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> ReconcileResult:
    """Return why an invoice differs from a plan, in parts that add up, or what each value of a tag bears.

    Hold an invoice against what was planned: price, mix, quantity, efficiency, use of commitments, exchange rate.

    The parts add up to the difference, as billed and as used. Unmatched charges are shown with the reason.

    $ gpucost reconcile invoice.csv --estimate saved.json
    $ gpucost reconcile invoice.parquet --estimate plan.csv --done 95% --map map.csv
    $ gpucost reconcile invoice.csv --showback team --idle-by cost
    """
    values = read(
        QUESTIONS["reconcile"],
        invoice=invoice,
        estimate=estimate,
        start=start,
        rank=rank,
        side=side,
        done=done,
        map=map,
        rate=rate,
        budget_rate=budget_rate,
        showback=showback,
        idle_by=idle_by,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    facts = opened(values, catalog)
    from gpucost.answers.saved import reading
    from gpucost.catalog.shared import shared_catalog
    from gpucost.invoices.outlook import beside
    from gpucost.invoices.reading import read_charges
    from gpucost.invoices.reconciliation import Hardware, InvoiceQuestion, period_of, planned, read_map, reconciled
    from gpucost.market.exchange import newest_rate

    charges = read_charges(values["invoice"], values["showback"])
    plan = plan_of(values["estimate"])
    # a plan may be a file that somebody else wrote
    with reading("the plan"):
        start_moment = datetime.fromisoformat(values["start"]) if values["start"] else None
        expected = planned(plan, charges, start_moment, values["rank"], values["side"])
    budget, paid = _rates(values["budget_rate"], "--budget-rate"), _rates(values["rate"], "--rate")
    billed = {charge.currency for charge in [*charges, *expected]}
    idle = sorted({*budget, *paid} - billed)  # rates of currencies in which nothing is charged
    paid_on: dict[str, str] = {}
    # a currency of the bill without a stated rate takes the catalog's: planned, that of the plan's day, and paid, that
    # of the end of the month of the charge
    if not billed <= {"USD", *(budget.keys() & paid.keys())}:
        planned_on = plan["as_of"] if isinstance(plan, Mapping) else f"{period_of(charges)[0]:%Y-%m-%d}"
        budget = {**shared_catalog(min(planned_on, facts.as_of.isoformat())).exchange_rates, **budget}
        for money in {charge.money for charge in [*charges, *expected]} - {"USD"}:
            code, _, month = money.partition(" ")  # such as "EUR 2026-11"
            row = newest_rate(facts, code, months_after(date.fromisoformat(f"{month}-01"), 1) - timedelta(days=1))
            if row and code not in paid:
                paid[money], paid_on[money] = float(row["usd_per_unit"]), f"{row['on']}"
    terms = InvoiceQuestion(
        values["showback"],
        values["idle_by"],
        values["done"],
        read_map(values["map"]),
        {"USD": 1.0, **budget},
        {"USD": 1.0, **paid},
        paid_on,
        Hardware(facts),
    )
    # an answer that was handed over has no file's name: its request keeps what kind of answer it was
    if isinstance(plan, Mapping):
        values["estimate"] = values["estimate"] if isinstance(values["estimate"], str) else f"{plan['kind']}"
    answer, outlook = reconciled(framed(facts, values), charges, expected, terms), beside(charges, expected, terms)
    notes = [f"No charge is in {code}: its rate changes nothing." for code in idle]
    notes += [
        f"{row['currency']} of {row['month']} at {row['paid_usd_per_unit']:.5g} USD, the rate of {row['paid_rate_on']}."
        for row in answer["currencies"]
        if "paid_rate_on" in row
    ]
    return ReconcileResult({**answer, **outlook, "warnings": [*notes, *answer["warnings"]]})


def plan_of(plan: Any) -> str | Mapping[str, Any] | None:
    """Return a saved answer, or the name of a FOCUS file."""
    from gpucost.answers.saved import checked, read_answer
    from gpucost.render.json import plain

    if isinstance(plan, str):
        return read_answer(plan) if plan.lower().endswith(".json") else plan
    if plan is None:
        return None
    if not isinstance(plan, Mapping) or not isinstance(plan.get("kind"), str):
        raise UsageError("--estimate: this mapping is not an answer: it has no `kind`.")
    return checked(plain(plan), "--estimate")


def _rates(stated: Mapping[str, Any] | None, flag: str) -> dict[str, float]:
    """Read USD per unit by currency, a code of three letters."""
    from gpucost.arguments.kinds import once, plain

    rate = plain(1e-9, 1e9)
    # upper case first: eur and EUR are one currency given twice
    rates = once([(str(code).upper(), rate.read(value, flag)) for code, value in (stated or {}).items()], flag)
    for code in rates:
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise UsageError(f"{flag}: {shown(code)} is not a currency. Write a three-letter code, such as EUR=1.1.")
        if code == "USD":
            raise UsageError(
                f"{flag}: a rate is the USD price of one unit of another currency, such as EUR=1.1; leave USD out."
            )
    return rates


def export(
    saved: str | Mapping[str, Any] | Result,
    path: str,
    *,
    start: v.FirstDay | None = None,
    rank: v.Rank = 1,
    side: v.Side | None = None,
    tag: v.Tags | None = None,
) -> int:
    """Write a saved answer as FOCUS rows to a .csv or .parquet file and return how many; see docs/reconcile.md."""
    import json

    from gpucost.answers.saved import reading
    from gpucost.invoices.reading import write_rows
    from gpucost.invoices.rows import focus_rows
    from gpucost.store.files import replacing

    # a fresh answer exports as a saved one does
    saved = saved.payload if isinstance(saved, Result) else saved
    values = read_list(arguments_of(export), {"start": start, "rank": rank, "side": side, "tag": tag})
    path = FILE.read(path, "-o")
    form = next((form for form in _FORMS if path.lower().endswith(form)), None)
    if form is None:
        raise UsageError(f"cannot tell the format of {shown(path)} from its name: {' or '.join(_FORMS)}.")
    plan = plan_of(saved if isinstance(saved, Mapping) else FILE.read(saved, "saved"))
    if not isinstance(plan, Mapping):
        raise UsageError(f"{shown(plan)} is not a saved answer: save one with --format json -o FILE.json.")
    begin = datetime.fromisoformat(values["start"] or str(plan["as_of"]))
    tags = json.dumps({name: str(value) for name, value in (values["tag"] or {}).items()}, sort_keys=True)
    with reading("the answer"):
        rows: Sequence[Mapping[str, Any]] = focus_rows(plan, begin, values["rank"], values["side"], tags)
    with replacing(path) as temporary:  # a file that was there before stays until all rows are written
        write_rows(rows, str(temporary), form[1:])
    return len(rows)


@dataclass(frozen=True, slots=True, repr=False)
class CommitResult(Result):
    """How much to commit, its regret, the bill under one's agreements, and the ladder of commitments."""

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The level that is advised."""
        return next((level for level in self.options if level["gpus"] == self.gpus), None)

    @property
    def gpus(self) -> float:
        """The GPUs to commit in all."""
        return float(self.payload["advised_gpus"])


@question(
    needs=[
        needs(
            "gpu provider region",
            absent("on_demand"),
            absent("committed"),
            words="where a price is looked up: --on-demand and --committed say both",
        ),
    ],
)
def commit(
    # the use so far
    usage: Annotated[
        str | Sequence[float],
        DEMAND,
        "CSV with time and gpus (or gpu_hours) by hour or day; in the library also GPUs by hour.",
        detail(example="usage.csv", place=True),
    ],
    *,
    # its prices: looked up, or stated
    gpu: Annotated[v.OneGpu | None, "GPU whose prices are looked up where none are given."] = None,
    provider: Annotated[v.Provider | None, "Look up prices at this provider."] = None,
    region: v.Region | None = None,
    on_demand: Annotated[
        str | float | None,
        USD_PER_GPU_HOUR,
        "Price per GPU-hour without a commitment.",
        detail(usual="the cheapest on record", example=3.99),
    ] = None,
    committed: Annotated[
        str | float | None,
        USD_PER_GPU_HOUR,
        "Price per GPU-hour under a commitment.",
        detail(usual="the cheapest of the term on record", example=2.1),
    ] = None,
    # the commitment
    term: Annotated[str | int, whole(1, 120, metavar="MONTHS"), "Months of a commitment."] = 12,
    step: Annotated[str | int, whole(1, 100_000, metavar="GPUS"), "GPUs of the smallest commitment."] = 1,
    rungs: Annotated[
        str | int,
        whole(1, 24),
        "Number of purchases over which to spread the commitment, so that not everything ends at once.",
    ] = 1,
    agreements: Annotated[
        str | None,
        FILE,
        "CSV of current agreements: name, kind (contract, reservation, savings_plan, private, credit, annual), "
        "start, end and their figures; or FOCUS 1.3's Contract Commitment dataset.",
        detail(example="agreements.csv"),
    ] = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> CommitResult:
    """Return how much to commit for `usage`, and what the agreements that hold make of it.

    How much to commit for a history of use, with the regret at a low and a high demand; the bill under the agreements
    that hold, the ladder of commitments and when they end.

    $ gpucost commit usage.csv --on-demand 3.99 --committed 2.10 --term 12 --step 8
    $ gpucost commit usage.csv --gpu h100-sxm --provider aws --rungs 4 --agreements agreements.csv
    """
    values = read(
        QUESTIONS["commit"],
        usage=usage,
        gpu=gpu,
        provider=provider,
        region=region,
        on_demand=on_demand,
        committed=committed,
        term=term,
        step=step,
        rungs=rungs,
        agreements=agreements,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    facts = opened(values, catalog)
    from gpucost.answers.common import cited
    from gpucost.invoices.commitment import CommitTerms, OpenTerms, read_agreements, refuse, usage_of
    from gpucost.invoices.commitment import committed as advised
    from gpucost.market.exchange import usd_per_unit

    used_gpus, notes = usage_of(values["usage"], facts.as_of)
    prices = {"on_demand": values["on_demand"], "committed": values["committed"]}
    # a price that is not stated is that of the cheapest offer on record
    looked_up = []
    for name, price in prices.items():
        if price is not None:
            continue
        flag, term_months = f"--{name.replace('_', '-')}", values["term"] if name == "committed" else 0
        if values["gpu"] is None:
            raise UsageError(
                f"{flag} is missing: give the price per GPU-hour, or --gpu (and --provider) to look it up."
            )
        offers = [
            offer
            for offer in facts.offers(values["gpu"], values["provider"], values["region"])  # the cheapest first
            if offer.term_months == term_months
            and (OPTIONS[offer.option].family == "committed" if term_months else is_plain(offer.option))
        ]
        if not offers:
            offer_kind = f"a commitment of {term_months} months" if term_months else "an offer on demand"
            raise PriceMissingError(f"no price of {offer_kind} for {values['gpu']} is on record: give it with {flag}.")
        looked_up.append(offers[0])
        prices[name] = offers[0].usd_per_gpu_hour
    price_notes = [
        f"{offer.provider} {offer.instance_type} in {offer.region or offer.region_scope}, "
        f"{OPTIONS[offer.option].label}: {offer.usd_per_gpu_hour:,.4g} USD per GPU-hour, of {offer.observed_on}"
        for offer in looked_up
    ]
    source_ids = [offer.source_id for offer in looked_up]
    sources = cited({source_id: facts.source(source_id) for source_id in source_ids}, source_ids)
    decision = CommitTerms(
        float(prices["on_demand"]),
        float(prices["committed"]),
        values["term"],
        float(values["step"]),
        values["rungs"],
        price_notes,
        sources,
    )
    refuse(decision)
    if not isinstance(values["usage"], str):  # so that its request can be saved
        values["usage"] = [float(value) for value in values["usage"]]

    def gpus_of_instance(text: str) -> int:
        # those of the first instance type of the catalog that the text of an agreement names; 0 where it names none
        gpus_by_type = {offer.instance_type.lower(): offer.gpus for offer in facts.offers() if offer.instance_type}
        for word in text.replace("/", " ").split():
            if gpus := gpus_by_type.get(word.strip(".,;:()").lower()):
                return gpus
        return 0

    left_open = OpenTerms(decision.committed_price, lambda code: usd_per_unit(facts, code), gpus_of_instance)
    agreements_read, more = read_agreements(values["agreements"], left_open)
    answer = advised(framed(facts, values), used_gpus, [*notes, *more], agreements_read, decision)
    return CommitResult(answer)
