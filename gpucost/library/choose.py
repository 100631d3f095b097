"""`gpucost.choose(...)`: which GPU for this workload and this budget, for one workload or several together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from gpucost.arguments import flag_of, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FLAG, TABLE, USD, count, one_of
from gpucost.arguments.signature import absent, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered, framed, opened, question
from gpucost.ask.result import RankedResult, copied
from gpucost.errors import NothingFitsError, UsageError
from gpucost.options import OPTIONS
from gpucost.units import DAYS_PER_MONTH, MONTHS_PER_YEAR, format_count, parse_count

if TYPE_CHECKING:
    from gpucost.answers.combined import Assigned, Candidate, SameJob
    from gpucost.answers.common import StatedFact
    from gpucost.catalog import Catalog

_FILTERS = "gpu", "provider", "region", "option", "max_age", "strict_prices"
_PURPOSES = ("training", "fine-tuning", "serving", "research", "desk", "workstation")
_RUNS = ("training", "fine-tuning")  # purposes that end, so that they take days and not hours a month
_USUAL_TOKENS = {"training": 100e9, "fine-tuning": 100e6, "serving": 1e9}  # of a run; of a month
_CONSUMER = ("GeForce", "Radeon RX")  # how the names of such cards begin
_WORKSTATION = ("RTX", "Quadro", "Arc Pro", "Radeon PRO")
_CARDS = ("consumer", "workstation")
_DESK = (*_CARDS, "computer")
_BOUGHT = ("desk", "workstation")  # purposes for which cards are bought
_MOST_AT_A_DESK = 2  # cards that a case and a socket of a home or an office carry
_SETS = (4, 8)  # cards of one machine that is built of them
_MATRIX = ("fine-tuning", "training", "serving")  # by each of these model sizes
_SIZES = ("8b", "32b", "70b", "405b")
_MOST_RIVALS = 5  # as many as one screen shows below the advice
_OWN = "own"  # the provider of what a pool holds
_DATED_YEARS = 3  # after which a price to buy says nothing of today's
_TUNED_AT_A_DESK = 2048  # tokens of a sequence that is fine-tuned there
_FAR_LONGER = 3.0  # days on what is owned ÷ days rented, from which it is said
_HALF_A_CENT_USD = 0.005  # by which sums of the solver may differ
# What makers usually give, by kind of card: an assumption; a data-centre card is covered by the server's contract.
_WARRANTY = {"consumer": "3 y", "workstation": "3 y", "computer": "1 y", "data centre": "with its server"}


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceResult(RankedResult):
    """The GPUs that a workload could run on, the cheapest first, and what several workloads get together."""

    @property
    def rivals(self) -> list[Mapping[str, Any]]:
        """The same job on demand, on the recommended accelerator and on those that most sellers have."""
        return [*map(copied, self.payload["rivals"])]

    @property
    def assigned(self) -> list[Mapping[str, Any]]:
        """What each of several workloads gets."""
        return [*map(copied, self.payload["assigned"])]


@question(
    needs=[
        needs("hours_per_month", given("purpose", "research", "desk", "workstation"), given("workload")),
        needs("tokens", given("purpose", "training", "fine-tuning", "serving")),
        needs("model tokens purpose", absent("workload"), words="without --workload, which says it of each"),
        needs("model tokens purpose workload pool", absent("matrix", "True"), words="without --matrix"),
    ],
)
def choose(
    # the workload
    model: v.Model = "8b",
    *,
    purpose: Annotated[str, one_of(*_PURPOSES), "Purpose."] = "training",
    budget: Annotated[str | float | None, USD, "Budget, such as 2k, 50k or 1m.", detail(example="50k")] = None,
    tokens: Annotated[
        str | float | None,
        count(1e17, 1, metavar="TOKENS"),
        "Tokens of the run; serving: a month.",
        detail(usual="100b, 100m to fine-tune, 1b to serve"),
    ] = None,
    hours_per_month: Annotated[
        str | float, count(730, metavar="HOURS"), "Hours of use per month, for research and a desk."
    ] = 176.0,
    # or several of them, what is owned already, or a table of purposes and sizes
    workload: Annotated[
        Mapping[str, Any] | None,
        TABLE,
        "One of several workloads, such as chat='serving 8b 5b': purpose, model, tokens.",
        detail(example={"chat": "serving 8b 5b"}),
    ] = None,
    pool: Annotated[
        Mapping[str, Any] | None,
        TABLE,
        "Accelerators that you own, such as h100-sxm=8.",
        detail(example={"h100-sxm": "8"}),
    ] = None,
    matrix: Annotated[
        bool, FLAG, "A row to order for each purpose (fine-tuning, training, serving) and model size (8b to 405b)."
    ] = False,
    # the offers that it may run on
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> ChoiceResult:
    """Return which accelerators suit a workload and a budget, the cheapest first, or several workloads together.

    Which GPU for this workload and this budget: to rent and to buy, consumer cards beside data-centre ones; and what
    the same job costs on the accelerators that most sellers have.

    Several workloads are assigned together, so that all cost least, over what you own and what is for rent. A desk
    holds up to 2 cards, a workstation sets of 4 or 8.

    $ gpucost choose --purpose desk --budget 2k
    $ gpucost choose --purpose workstation --model 70b --budget 20k
    $ gpucost choose --matrix
    $ gpucost choose --purpose fine-tuning --model 70b --budget 50k
    $ gpucost choose --workload chat='serving 8b 5b' --workload tune='fine-tuning 70b' --pool h100-sxm=8
    """
    values = read(
        QUESTIONS["choose"],
        model=model,
        purpose=purpose,
        budget=budget,
        tokens=tokens,
        hours_per_month=hours_per_month,
        workload=workload,
        pool=pool,
        matrix=matrix,
        gpu=gpu,
        provider=provider,
        region=region,
        option=option,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    from gpucost.answers.common import cited
    from gpucost.market.facts import market_of
    from gpucost.market.supply import Providers

    facts, budget_usd = opened(values, catalog), values["budget"]
    workloads = _needs_of(values)
    filters = {name: values[name] for name in _FILTERS if values.get(name) is not None}
    # each workload is asked as its own question, so that `choose` agrees with `estimate` and `inference`
    answers = {need.name: _answers(facts, need, filters) for need in workloads}
    rows_by_need = {
        need.name: by_budget(_candidates(facts, need, answers[need.name]), budget_usd) for need in workloads
    }
    if values["matrix"]:
        # of each cell the first that can be ordered and stays; where there is none, the first of all
        for name, rows in rows_by_need.items():
            orderable = [
                row
                for row in rows
                if row["rent_usd"] is not None
                and not (row["purpose"] == "serving" and OPTIONS[row["option"] or "on_demand"].interruptible)
            ]
            rows_by_need[name] = orderable[:1] or rows[:1]
    if not all(rows_by_need.values()):
        empty = next(name for name, rows in rows_by_need.items() if not rows)
        flags = ", ".join(f"{flag_of(name)}={value}" for name, value in filters.items())
        with_filters, wider = (f" with {flags}", ", or widen these") if filters else ("", "")
        raise NothingFitsError(
            f"nothing on record suits {empty or workloads[0].purpose}{with_filters}."
            f" Try another model or purpose{wider}."
        )
    # several workloads share a pool, so they are assigned together; cells of the matrix are alternatives
    owned = pool_of(facts, values["pool"] or {})
    assigned = []
    if owned or (len(workloads) > 1 and not values["matrix"]):
        ways_by_need = {need.name: _ways_on_pool(facts, need, owned, rows_by_need[need.name]) for need in workloads}
        assigned = assign(rows_by_need, owned, ways_by_need)
    total_usd = sum(row["cost_usd"] for row in assigned) if assigned else None
    warnings = [*facts.taken(*(values["pool"] or ()))]
    # what is owned costs nothing here, and may take far longer than what is rented
    for way in assigned:
        rows = rows_by_need.get(way["workload"]) or next(iter(rows_by_need.values()))
        rented = next((row for row in rows if row["rent_usd"] is not None and row["days"]), None)
        days = way.get("days")
        if way["provider"] == _OWN and days and rented and rented["days"] and days > _FAR_LONGER * rented["days"]:
            warnings.append(
                f"{way['workload']} takes {days:,.1f} days on {way['gpus']} × {way['gpu']} of your own; rented for"
                f" {rented['rent_usd']:,.0f} USD, {rented['gpus']} × {rented['gpu']} take {rented['days']:,.1f}."
            )
    if total_usd is not None and budget_usd is not None and total_usd > budget_usd:
        warnings.append(
            f"The cheapest assignment costs {total_usd:,.0f} USD, over the budget of {budget_usd:,.0f} USD."
        )
    has_rivals = len(workloads) == 1 and workloads[0].purpose not in _BOUGHT
    sellers = Providers(facts.rows("providers"))

    def with_sellers(rows: Iterable[Any]) -> list[Any]:
        return [{**row, "seller": sellers.name(row["provider"])} for row in rows]

    if values["matrix"]:
        # how many cells were listed lately, and the ends of what they cost
        ready, listed_lately = _listed_lately(rows_by_need)
        low, high = (pick(listed_lately or ready, key=lambda row: row["rent_usd"] or 0) for pick in (min, max))
        lead = (
            f"{_ready(rows_by_need)} They cost from ${low['rent_usd']:,.0f} for {low['workload']} to"
            f" ${high['rent_usd']:,.0f} for {high['workload']}."
        )
    else:
        lead = _lead(workloads[0], rows_by_need, assigned, budget_usd)
    # the sources of what is advised: the first candidate of each workload
    source_ids = [id_ for rows in rows_by_need.values() for row in rows[:1] for id_ in row.get("source_ids") or ()]
    return ChoiceResult(
        {
            "kind": "choice",
            **framed(facts, values),
            "lead": lead,
            "budget_usd": budget_usd,
            "stated": _stated(workloads, rows_by_need, budget_usd, bool(values["matrix"])),
            "rows": with_sellers(row for rows in rows_by_need.values() for row in rows),
            "assigned": with_sellers(assigned),
            "total_usd": total_usd,
            "rivals": with_sellers(_rivals(facts, answers[workloads[0].name])) if has_rivals else [],
            "warnings": warnings,
            "sources": cited(market_of(facts).facts.sources, source_ids),
        }
    )


class Need(NamedTuple):
    """One workload: its name, what it is for, the model and how many tokens, or hours a month."""

    name: str
    purpose: str
    model: str
    tokens: float | None
    hours_per_month: float


def _needs_of(values: Mapping[str, Any]) -> list[Need]:
    """Return the workloads asked about: those named, else the one that the arguments describe.

    >>> _needs_of({"workload": {"chat": "serving 8b 5b"}, "matrix": False, "hours_per_month": 176.0})
    [Need(name='chat', purpose='serving', model='8b', tokens=5000000000.0, hours_per_month=176.0)]
    """
    hours = values["hours_per_month"]
    if values["matrix"]:
        return [Need(f"{purpose} {size}", purpose, size, None, hours) for purpose in _MATRIX for size in _SIZES]
    if not values["workload"]:
        return [Need("", values["purpose"], values["model"], values["tokens"], hours)]
    workloads = []
    for name, value in values["workload"].items():
        text = str(value)
        purpose, *others = text.split() or [""]
        if len(others) not in (1, 2) or purpose not in _PURPOSES:
            raise UsageError(
                f"--workload: {text!r} is not a workload. Write NAME='PURPOSE MODEL [TOKENS]' with a purpose of"
                f" {', '.join(_PURPOSES)}, such as chat='serving 8b 5b'."
            )
        tokens = parse_count(others[1], "--workload") if len(others) > 1 else None
        workloads.append(Need(name, purpose, others[0], tokens, hours))
    return workloads


def _candidates(catalog: "Catalog", need: Need, answers: Sequence[dict[str, Any]]) -> "list[Candidate]":
    """Return a row per accelerator in the order of the answer that it is of; what is only bought comes by its price."""
    from gpucost.physics.training.layouts import latest_year
    from gpucost.workloads.deployment import serving_speed, timed
    from gpucost.workloads.service import DEFAULT_OUTPUT_TOKENS, DEFAULT_PROMPT_TOKENS, Service
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    chips = {row["id"]: row for row in catalog.rows("accelerators")}
    has_sets = need.purpose == "workstation"  # of several sizes of one card
    rows = [
        _candidate(catalog, need, chips[row["gpu"]], row) for row in (answers if has_sets else _first_of_each(answers))
    ]
    if need.purpose not in _BOUGHT:
        return [{**row, "rank": rank} for rank, row in enumerate(rows, 1)]
    kinds, most = (_CARDS, max(_SETS)) if has_sets else (_DESK, _MOST_AT_A_DESK)
    rows = [row for row in rows if row["card"] in kinds and row["gpus"] <= most and row["buy_usd"]]
    rows.sort(key=lambda row: (row["buy_usd"] or 0, row["gpu"]))
    if not rows:
        return []
    # what is bought shows how fast it fine-tunes; what fits in memory alone, and in no layout, is left out
    architecture = catalog.architecture(need.model)
    sequence = _TUNED_AT_A_DESK if need.purpose == "desk" else None
    year = latest_year(catalog.as_of)
    workload = make_workload(architecture, method="qlora", latest_year=year, sequence_tokens=sequence)
    keys = [key_of(catalog, row["gpu"]) for row in rows]
    speeds = timed(catalog, workload, keys, [row["gpus"] for row in rows])
    timed_rows: list[Candidate] = []
    for row, key, fits, tokens_per_s in zip(rows, keys, speeds.fits, speeds.tokens_per_s_per_gpu, strict=True):
        if not fits:
            continue
        row["tokens_per_s"] = float(tokens_per_s) * row["gpus"]
        if need.purpose == "desk":  # where one person also asks it: one answer at a time, in int4
            service = Service(
                prompt_tokens=DEFAULT_PROMPT_TOKENS, output_tokens=DEFAULT_OUTPUT_TOKENS, precision="int4"
            )
            speed = serving_speed(catalog, architecture, key, service, row["gpus"], 1)
            row["answer_tokens_per_s"] = None if speed is None else speed.typical
        timed_rows.append(row)
    return timed_rows


def _answers(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ask the question that a purpose means; return gpu, gpus, seller, days and rent, best first."""
    tokens = need.tokens or _USUAL_TOKENS.get(need.purpose)
    stated = {"model": need.model, **filters}
    if need.purpose in _RUNS:
        method = {"method": "lora"} if need.purpose == "fine-tuning" else {}
        run = {**stated, **method, "tokens": tokens, "top": 0, "with_facts": False}
        return [
            {
                **row,
                "rent_usd": row["cost_usd"],
                **{f"rent_{end}_usd": row[f"cost_{end}_usd"] for end in ("low", "high")},
            }
            for row in answered("estimate", run, catalog).options
        ]
    if need.purpose == "serving":
        options = answered("inference", {**stated, "tokens_per_month": tokens, "top": 0}, catalog).options
        return [
            {
                **row,
                "days": None,
                "rent_usd": MONTHS_PER_YEAR * row["usd_per_month"],
                "rent_low_usd": MONTHS_PER_YEAR * row["usd_per_month_low"],
                "rent_high_usd": MONTHS_PER_YEAR * row["usd_per_month_high"],
                "budget_usd": MONTHS_PER_YEAR * row["budget_usd"],
            }
            for row in options
        ]
    # Research, a desk, a workstation: what holds the model, at the cheapest of the offers that may be meant.
    from gpucost.fitting.fit import best_plan, everywhere, read_job
    from gpucost.market.facts import FILTERS, market_of
    from gpucost.market.hires import cheapest_named
    from gpucost.market.table import ordered

    names = {name: filters.get(name) for name in FILTERS}
    allowed, hire_of = catalog.offer_filter(**names), cheapest_named(market_of(catalog), catalog, names)
    asks_for_offers = any(allowed[name] is not None for name in ("provider", "region", "option"))
    is_bought = need.purpose in _BOUGHT
    sequence = _TUNED_AT_A_DESK if need.purpose == "desk" else None
    rows: list[dict[str, Any]] = []
    for row in everywhere(catalog, need.model, method="qlora" if is_bought else "lora", sequence=sequence)["rows"]:
        if allowed["gpu"] is not None and row["gpu"] not in allowed["gpu"]:
            continue
        counts = [row["gpus"]]  # the fewest that hold it; of a workstation the sets that do
        if need.purpose == "workstation":
            plans = {
                gpus: best_plan(read_job(catalog, need.model, row["gpu"], gpus=gpus, method="qlora"))
                for gpus in _SETS
                if gpus >= row["gpus"]
            }
            counts = [gpus for gpus, plan in plans.items() if plan is not None and plan.fits]
        for gpus in counts:
            if (hire := hire_of(row["gpu"], gpus)) is not None:
                offer = hire.offer
                rent_usd = hire.usd(need.hours_per_month * MONTHS_PER_YEAR)
                rows.append(
                    {
                        **row,
                        "gpus": gpus,
                        "usd_per_gpu_hour": hire.usd_per_gpu_hour,
                        "price_observed_on": offer.observed_on.isoformat(),
                        "age_days": offer.age_days,
                        "price_book": offer.book,
                        "provider": offer.provider,
                        "option": offer.option,
                        "days": None,
                        "rent_usd": rent_usd,
                        "budget_usd": rent_usd * hire.budget_ratio,
                    }
                )
            elif not asks_for_offers or is_bought:  # which may be bought where nobody rents it out
                seller = "" if asks_for_offers else row["sold"]
                no_rent = {"option": None, "days": None, "rent_usd": None, "budget_usd": None}
                rows.append({**row, "gpus": gpus, "provider": seller, **no_rent})
    rows.sort(key=lambda row: str(row["gpu"]))  # of equal budgets the order of names, each time the same
    return ordered(rows, "budget_usd")


def _first_of_each(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row["gpu"], row)
    return list(first.values())


class Purchase(NamedTuple):
    """What accelerators cost to buy, and when that was seen."""

    usd: float | None = None
    seen: str | None = None  # year, month or day


def purchase(catalog: "Catalog", chip: Mapping[str, Any], gpus: int) -> Purchase:
    """Return what so many accelerators cost to buy, as they are sold; nothing where they are for rent alone.

    Cards and small computers are bought one by one. Modules (SXM, OAM, superchips) run in their servers only, so that
    whole servers count, at the quote that `tco` takes. Chips of a cloud are not sold at all. A price older than three
    years is none: nobody sells for it today.
    """
    from gpucost.ownership.offers import server_of

    form = str(chip["form_factor"])
    if form == "pod":
        return Purchase()
    if form.startswith("PCIe") or form == "SoC":
        street = [chip[f"street_{end}_usd"] for end in ("low", "high") if chip[f"street_{end}_usd"]]
        usd = sum(street) / len(street) if street else chip["launch_usd"]
        seen = chip["street_observed"] if street else f"launch {chip['year']}"
        price = Purchase(usd * gpus if usd else None, None if seen is None else str(seen))
    else:
        _, quote = server_of(catalog, catalog.accelerator(chip["id"]))
        if quote is None:
            return Purchase()
        server_usd = (quote["price_low_usd"] + (quote["price_high_usd"] or quote["price_low_usd"])) / 2
        price = Purchase(float(server_usd * ceil(gpus / quote["gpus"])), str(quote["price_observed"] or "") or None)
    year = (price.seen or "").removeprefix("launch ")[:4]
    is_dated = year.isdigit() and int(year) < catalog.as_of.year - _DATED_YEARS
    return Purchase() if is_dated else price


def _rivals(catalog: "Catalog", options: Sequence[dict[str, Any]]) -> "list[SameJob]":
    """Return the same job on demand on the accelerator that costs least, and on those that most sellers have.

    Like with like: each at its first offer on demand that one can count on, each with the count that needs least; what
    it needs more is no less than nothing, since both stand in the order of budgets.
    """
    from gpucost.market.budget import FRESH_DAYS, LIKELY

    alike = [row for row in options if row["rent_usd"] is not None and OPTIONS[row["option"]].family == "on demand"]
    # what somebody saw lately and what can probably be had and kept; where there is none, any of them
    counted_on = [
        row
        for row in alike
        if not OPTIONS[row["option"]].interruptible
        and (row.get("age_days") or 0) <= FRESH_DAYS
        and row.get("chance_available_fraction", 1.0) >= LIKELY
    ]
    if not alike:
        return []
    first = _first_of_each(counted_on or alike)
    sellers: dict[str, set[str]] = {}
    for offer in catalog.offers():
        sellers.setdefault(offer.gpu, set()).add(offer.provider)
    best, *others = first
    # the rivals are those that most sellers have, shown in the order of the answer
    most_sold = sorted(others, key=lambda row: -len(sellers.get(row["gpu"], ())))[:_MOST_RIVALS]
    shown = [best, *(row for row in others if row in most_sold)]
    return [
        {
            "gpu": row["gpu"],
            "gpus": int(row["gpus"]),
            "provider": row["provider"],
            "days": row["days"],
            "rent_usd": row["rent_usd"],
            "more_usd": row["budget_usd"] - best["budget_usd"],
            "more_days": None if row["days"] is None else row["days"] - best["days"],
            "price_observed_on": row.get("price_observed_on"),
            "sellers": len(sellers.get(row["gpu"], ())),
        }
        for row in shown
    ]


def _candidate(catalog: "Catalog", need: Need, chip: Mapping[str, Any], row: Mapping[str, Any]) -> "Candidate":
    gpus, rent = int(row["gpus"]), row["rent_usd"]  # all of them, over all replicas
    price = purchase(catalog, chip, gpus)
    card, buy = _card_of(chip), price.usd
    # a rent is that of a run, or of a year: so many months stand against the price to buy
    months = row["days"] / DAYS_PER_MONTH if need.purpose in _RUNS and row["days"] else MONTHS_PER_YEAR
    link = f"PCIe {chip['pcie_gb_per_s']:,.0f}" if chip["pcie_gb_per_s"] else "none"
    if chip["scaleup_gb_per_s"]:
        link = f"{chip['scaleup_link']} {chip['scaleup_gb_per_s']:,.0f}"
    return {
        "workload": need.name,
        "purpose": need.purpose,
        "model": need.model,
        "gpu": chip["id"],
        "card": card,
        "memory_gib": chip["memory_gib"],
        "ecc": None if chip["ecc"] is None else bool(chip["ecc"]),
        "link": link,  # in GB/s per GPU and direction
        "warranty": _WARRANTY[card],
        "gpus": gpus,
        "provider": row["provider"],
        "option": row["option"],
        "term_months": int(row.get("term_months") or 0),
        "chance_available_fraction": row.get("chance_available_fraction"),
        "days": row["days"],
        "rent_usd": rent,
        "usd_per_gpu_hour": row.get("usd_per_gpu_hour") if rent is not None else None,
        "budget_usd": row.get("budget_usd") if rent is not None else None,
        "price_observed_on": row.get("price_observed_on"),
        "age_days": row.get("age_days") if rent is not None else None,
        "price_book": row.get("price_book") if rent is not None else None,
        "rent_low_usd": row.get("rent_low_usd") if rent is not None else None,
        "rent_high_usd": row.get("rent_high_usd") if rent is not None else None,
        "source_ids": list(row.get("source_ids") or ()),
        "buy_usd": buy,
        "buy_seen": price.seen if buy is not None else None,
        "breakeven_months": None if not rent or buy is None else buy / (rent / months),
        "within": "",
    }


def _card_of(chip: Mapping[str, Any]) -> str:
    """Say for whom a card is made: consumer, workstation, data centre, or a computer of its own.

    >>> _card_of({"name": "GeForce RTX 4090", "form_factor": "PCIe"}), _card_of({"name": "H100", "form_factor": "SXM5"})
    ('consumer', 'data centre')
    """
    name, form = str(chip["name"]), str(chip["form_factor"])
    if name.startswith(_CONSUMER):
        return "consumer"
    if name.startswith(_WORKSTATION) and "Server" not in name:
        return "workstation"
    return "computer" if form == "SoC" else "data centre"


def by_budget(rows: "Sequence[Candidate]", budget: float | None) -> "list[Candidate]":
    """Say of each candidate what the budget reaches; that comes first, of sets of cards the fastest."""
    if budget is None:
        return list(rows)
    candidates: list[Candidate] = []
    for row in rows:
        ways = {"rent": row["rent_usd"], "buy": row["buy_usd"]}
        within = " or ".join(way for way, cost in ways.items() if cost is not None and cost <= budget)
        candidates.append({**row, "within": within or "neither"})

    def place(row: "Candidate") -> tuple[bool, bool, float]:
        only_rented = row["purpose"] in _BOUGHT and "buy" not in row["within"]
        return row["within"] == "neither", only_rented, -(row.get("tokens_per_s") or 0.0)

    return sorted(candidates, key=place)  # of equal places the order of costs stays


def pool_of(catalog: "Catalog", pool: Mapping[str, Any]) -> dict[str, int]:
    """Return how many accelerators of each kind are owned already."""
    from gpucost.arguments.kinds import once, whole

    number = whole()
    return once(
        [(catalog.accelerator(name).id, number.read(value, "--pool")) for name, value in pool.items()], "--pool"
    )


def _ways_on_pool(
    catalog: "Catalog", need: Need, pool: Mapping[str, int], rows: "Sequence[Candidate]"
) -> "list[Assigned]":
    """Return the ways in which a workload runs on what is owned: how many of each kind, and the days of a run.

    A run may take the fewest that hold it, or more of them and be done sooner; a service takes the fewest that carry
    its load; what holds a model for research or a desk takes the fewest that do.
    """
    from gpucost.ask.inference import request_of
    from gpucost.market.interruptions import EVALUATION_FRACTION
    from gpucost.physics.training.layouts import latest_year
    from gpucost.serving.run import fewest_for_load
    from gpucost.workloads.deployment import timed, training_deployment
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    ways: list[tuple[str, int, float | None]] = []  # accelerator, count, days
    for gpu, most in pool.items():
        key = key_of(catalog, gpu)
        if need.purpose in _RUNS:
            if not key.accelerator.trains:
                continue
            tokens = need.tokens or _USUAL_TOKENS[need.purpose]
            method = "lora" if need.purpose == "fine-tuning" else "full"
            architecture, year = catalog.architecture(need.model), latest_year(catalog.as_of)
            workload = make_workload(architecture, tokens=tokens, method=method, latest_year=year)
            counts = sorted({*(1 << power for power in range(most.bit_length())), most})  # doublings, and all of them
            speeds = timed(catalog, workload, [key] * len(counts), counts)
            days_of_run_ratio = 1 + EVALUATION_FRACTION.value  # of a whole run ÷ its steps
            for row, gpus in enumerate(counts):
                run = training_deployment(workload, speeds, row, key, gpus)
                if run.fits:
                    ways.append((key.accelerator.id, int(run.accelerators), run.days(tokens)[1] * days_of_run_ratio))
        elif need.purpose == "serving":
            tokens = need.tokens or _USUAL_TOKENS["serving"]
            request = request_of(catalog, model=need.model, tokens_per_month=tokens)
            if (service := fewest_for_load(catalog, request, key, most)) is not None:
                ways.append((gpu, int(service.accelerators), None))
        else:
            ways += [(gpu, row["gpus"], None) for row in rows if row["gpu"] == gpu and row["gpus"] <= most]
    name = need.name or need.purpose
    return [
        {"workload": name, "gpu": gpu, "gpus": gpus, "provider": _OWN, "cost_usd": 0.0, "days": days}
        for gpu, gpus, days in ways
    ]


def assign(
    rows_by_need: "Mapping[str, Sequence[Candidate]]",
    pool: Mapping[str, int],
    ways_on_pool: "Mapping[str, Sequence[Assigned]]",
) -> "list[Assigned]":
    """Give each workload one way to run so that all together cost least: owned ones cost nothing, and run out.

    Of assignments that cost the same, that whose runs take the fewest days in all.
    """
    import numpy as np

    from gpucost.money.mix import milp

    ways: list[tuple[str, Assigned]] = []
    for name, rows in rows_by_need.items():
        ways += [(name, way) for way in ways_on_pool.get(name, ()) if way["gpus"] <= pool.get(way["gpu"], 0)]
        rented = [row for row in rows if row["rent_usd"] is not None]
        if rented:
            # rented machines do not run out, so of them only the one that ranks first can be part of the cheapest
            first = min(rented, key=lambda row: row.get("rank", 0))
            way: Assigned = {
                "workload": first["workload"] or first["purpose"],
                "gpu": first["gpu"],
                "gpus": first["gpus"],
                "provider": first["provider"],
                "cost_usd": first["rent_usd"] or 0.0,
                "days": first.get("days"),
            }
            ways.append((name, way))
    if {name for name, _ in ways} < set(rows_by_need):
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    # one variable for each way, 0 or 1: each workload takes one, and those on the pool take no more than there is
    costs = np.array([way["cost_usd"] for _, way in ways])
    days = np.array([way.get("days") or 0.0 for _, way in ways])
    one_each = [[float(name == need_name) for need_name, _ in ways] for name in rows_by_need]
    owned_gpus = [
        [way["gpus"] * float(way["provider"] == _OWN and way["gpu"] == gpu) for _, way in ways] for gpu in pool
    ]
    most = np.array([1.0] * len(rows_by_need) + [float(count) for count in pool.values()])
    least = np.array([1.0] * len(rows_by_need) + [0.0] * len(pool))

    def solved(goal: Any, rows: Sequence[Any], low: Any, high: Any) -> Any:
        return milp(goal, integrality=np.ones(len(ways)), bounds=(0, 1), constraints=(np.array(rows), low, high))

    best = solved(costs, [*one_each, *owned_gpus], least, most)
    if best.x is None:
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    # among equal costs the fastest: the same problem once more, with the cost bounded by that of the first
    if pool:
        cheapest = float(costs @ np.round(best.x))
        bound = (np.append(least, 0.0), np.append(most, cheapest + _HALF_A_CENT_USD))
        sooner = solved(days, [*one_each, *owned_gpus, costs], *bound)
        best = best if sooner.x is None else sooner
    return [way for (_, way), share in zip(ways, best.x, strict=True) if share > 0.5]  # the solver's 1 may be 0.9999


def _listed_lately(
    rows_by_need: "Mapping[str, Sequence[Candidate]]",
) -> "tuple[list[Candidate], list[Candidate]]":
    """Return what is for rent, and of that, what somebody listed lately."""
    from gpucost.market.terms import is_unlisted

    ready = [row for rows in rows_by_need.values() for row in rows if row["rent_usd"] is not None]
    return ready, [row for row in ready if not is_unlisted(row.get("age_days"), row.get("price_book") or "")]


def _ready(rows_by_need: "Mapping[str, Sequence[Candidate]]") -> str:
    from gpucost.market.terms import LISTED_DAYS

    ready, sure = _listed_lately(rows_by_need)
    first = "" if len(sure) == len(ready) else ": check the others first"
    return f"{len(sure)} of {len(rows_by_need)} were listed in the last {LISTED_DAYS} days{first}."


def _lead(
    need: Need,
    rows_by_need: "Mapping[str, Sequence[Candidate]]",
    assigned: "Sequence[Assigned]",
    budget: float | None,
) -> str:
    """Say what to take."""
    from gpucost.market.terms import unlisted

    if assigned:
        parts = [f"{row['workload']} on {row['gpus']} × {row['gpu']} ({row['provider']})" for row in assigned]
        return f"{'; '.join(parts)}: {sum(row['cost_usd'] for row in assigned):,.0f} USD in all."
    rows = next(iter(rows_by_need.values()))
    first = rows[0]
    # what it costs: to rent, to buy, or of a budget what it reaches
    time = f" and {first['days']:.1f} days" if first["days"] else ""
    span = "" if need.purpose in _RUNS else " a year"
    rent = "" if first["rent_usd"] is None else f"rent for {first['rent_usd']:,.0f} USD{span}{time}"
    buy = "" if first["buy_usd"] is None else f"buy for about {first['buy_usd']:,.0f} USD"
    if budget is not None and first["within"] != "neither":
        rent, buy = (text if way in first["within"] else "" for way, text in (("rent", rent), ("buy", buy)))
    ways = " or ".join(part for part in ((buy, rent) if need.purpose in _BOUGHT else (rent, buy)) if part)
    # at whose price, and whether anybody listed it lately
    hour = ""
    if rent and need.purpose not in _BOUGHT:
        price = first.get("usd_per_gpu_hour")
        if price is not None:
            hour = f" The GPU-hour: {price:.2f} USD, at {first['provider']}."
        hour += unlisted(first.get("age_days"), first.get("price_book") or "")
    # how fast cards that are bought are
    speed = ""
    if first.get("tokens_per_s"):
        length = f" at {_TUNED_AT_A_DESK:,} tokens" if need.purpose == "desk" else ""
        answers = first.get("answer_tokens_per_s")
        answering = f"; an answer in int4 comes at {answers:,.0f} a second" if answers else ""
        speed = f" QLoRA{length}: {first['tokens_per_s']:,.0f} tokens a second{answering}."
    reach = "" if budget is None else f" {_reached(rows)} fit your budget."
    uses = {"desk": "a desk with", "research": "research on", "workstation": "a workstation with"}
    use = uses.get(need.purpose, f"{need.purpose} of")
    return f"For {use} {need.model}: {first['gpus']} × {first['gpu']}, {ways}.{hour}{speed}{reach}"


def _reached(rows: "Sequence[Candidate]") -> str:
    """Say how many types of GPU a budget reaches."""
    types = len({row["gpu"] for row in rows})
    reached = len({row["gpu"] for row in rows if row["within"] != "neither"})
    return f"All {types} GPU types" if reached == types else f"{reached} of {types} GPU types"


# By purpose: what is asked about, and the option that states its size.
_JOBS = {
    "training": ("full training on {tokens} tokens", "tokens"),
    "fine-tuning": ("LoRA on {tokens} tokens", "tokens"),
    "serving": ("serving {tokens} tokens a month", "tokens"),
    "research": ("research in LoRA, {hours:g} hours a month", "hours-per-month"),
    "desk": ("QLoRA on sequences of {sequence:,} tokens, answers in int4; {hours:g} hours a month", "hours-per-month"),
    "workstation": ("QLoRA, {hours:g} hours a month", "hours-per-month"),
}


def _stated(
    needs: Sequence[Need], rows_by_need: "Mapping[str, Sequence[Candidate]]", budget: float | None, matrix: bool
) -> "list[StatedFact]":
    """Return what a choice takes as given: the jobs, how long they may take, and what the budget reaches."""
    from gpucost.training.request import DEFAULT_DEADLINE_DAYS

    limit = f"{DEFAULT_DEADLINE_DAYS:g} days"
    if matrix:
        jobs = dict.fromkeys(_job(need) for need in needs)  # each once: the sizes of a purpose share it
        return [
            {"label": "Ready", "text": _ready(rows_by_need)},
            {"label": "Assumes", "text": f"{'; '.join(jobs)}; runs within {limit}."},
        ]
    if len(needs) > 1 or needs[0].name:
        jobs_text = "; ".join(f"{need.name}: {_job(need)}" for need in needs)
    else:
        jobs_text = f"{_job(needs[0])} (--{_JOBS[needs[0].purpose][1]})"
    facts: list[StatedFact] = [{"label": "Assumes", "text": f"{jobs_text}."}]
    if any(need.purpose in _RUNS for need in needs):
        facts.append({"label": "Deadline", "text": f"{limit}; for another one: gpucost estimate --deadline."})
    if budget is not None and len(needs) == 1:
        facts.append({"label": "Budget", "text": f"{_reached(next(iter(rows_by_need.values())))} fit ${budget:,.0f}."})
    return facts


def _job(need: Need) -> str:
    tokens = need.tokens or _USUAL_TOKENS.get(need.purpose) or 0.0
    return _JOBS[need.purpose][0].format(
        tokens=format_count(tokens), hours=need.hours_per_month, sequence=_TUNED_AT_A_DESK
    )
