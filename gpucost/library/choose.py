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
    from gpucost.market.supply import Key
    from gpucost.types import Architecture

_LISTED = "gpu", "provider", "region", "option", "max_age", "strict_prices"
PURPOSES = ("training", "fine-tuning", "serving", "research", "desk", "workstation")
USUAL_TOKENS = {"training": 100e9, "fine-tuning": 100e6, "serving": 1e9}  # of a run; of a month
_CONSUMER = ("GeForce", "Radeon RX")
_WORKSTATION = ("RTX", "Quadro", "Arc Pro", "Radeon PRO")
_CARDS = ("consumer", "workstation")
_DESK = (*_CARDS, "computer")
_BOUGHT = ("desk", "workstation")  # purposes for which cards are bought
_MOST_AT_A_DESK = 2
_SETS = (4, 8)  # cards of one machine that is built of them
_MATRIX = ("fine-tuning", "training", "serving")  # by each of these model sizes
_SIZES = ("8b", "32b", "70b", "405b")
_MOST_RIVALS = 5
OWN = "own"
_DATED_YEARS = 3  # after which a price to buy says nothing of today's
_TUNED_AT_A_DESK = 2048  # tokens of a sequence that is fine-tuned there
_FAR_LONGER = 3.0  # days on what is owned ÷ days rented, from which it is said
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
    model: v.Model = "8b",
    *,
    purpose: Annotated[str, one_of(*PURPOSES), "Purpose."] = "training",
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

    facts, most = opened(values, catalog), values["budget"]
    workloads = needs_of(values)
    first = workloads[0]
    filters = {name: values[name] for name in _LISTED if values.get(name) is not None}
    answers = {need.name: list(_answers(facts, need, filters)) for need in workloads}
    rows_by_need = {need.name: judged(candidates(facts, need, answers[need.name]), most) for need in workloads}
    if values["matrix"]:
        rows_by_need = {name: _to_order(rows) for name, rows in rows_by_need.items()}
    if not all(rows_by_need.values()):
        empty = next(name for name, rows in rows_by_need.items() if not rows)
        asked_for = ", ".join(f"{flag_of(name)}={value}" for name, value in filters.items())
        asked_for = f" with {asked_for}" if filters else ""
        wider = ", or widen these" if filters else ""
        raise NothingFitsError(
            f"nothing on record suits {empty or workloads[0].purpose}{asked_for}. Try another model or purpose{wider}."
        )
    owned = pool_of(facts, values["pool"] or {})
    together = owned or (len(workloads) > 1 and not values["matrix"])
    own = {need.name: on_own(facts, need, owned, rows_by_need[need.name]) for need in workloads}
    assigned = assign(rows_by_need, owned, own) if together else []
    total = sum(row["cost_usd"] for row in assigned) if assigned else None
    notes = [*facts.taken(*(values["pool"] or ())), *_long(assigned, rows_by_need)]
    if total is not None and most is not None and total > most:
        notes.append(f"The cheapest assignment costs {total:,.0f} USD, over the budget of {most:,.0f} USD.")
    alone = len(workloads) == 1 and first.purpose not in _BOUGHT
    sellers = Providers(facts.rows("providers"))

    def named(rows: Iterable[Any]) -> list[Any]:
        return [{**row, "seller": sellers.name(row["provider"])} for row in rows]

    return ChoiceResult(
        {
            "kind": "choice",
            **framed(facts, values),
            "lead": lead_of_matrix(rows_by_need) if values["matrix"] else lead(workloads, rows_by_need, assigned, most),
            "budget_usd": most,
            "stated": stated(workloads, rows_by_need, most, bool(values["matrix"])),
            "rows": named(row for rows in rows_by_need.values() for row in rows),
            "assigned": named(assigned),
            "total_usd": total,
            "rivals": named(rivals(facts, answers[first.name])) if alone else [],
            "warnings": notes,
            "sources": cited(market_of(facts).facts.sources, _sources(rows_by_need)),
        }
    )


def _sources(rows_by_need: "Mapping[str, Sequence[Candidate]]") -> list[str]:
    """Return the sources of the first candidate of each workload."""
    return [id_ for rows in rows_by_need.values() for row in rows[:1] for id_ in row.get("source_ids") or ()]


class Need(NamedTuple):
    """One workload: its name, what it is for, the model and how many tokens, or hours a month."""

    name: str
    purpose: str
    model: str
    tokens: float | None
    hours_per_month: float


def need_of(name: str, text: str, hours: float) -> Need:
    """Read a workload written PURPOSE MODEL [TOKENS].

    >>> need_of("chat", "serving 8b 5b", 176.0)
    Need(name='chat', purpose='serving', model='8b', tokens=5000000000.0, hours_per_month=176.0)
    """
    parts = text.split()
    if len(parts) not in (2, 3) or parts[0] not in PURPOSES:
        raise UsageError(
            f"--workload: {text!r} is not a workload. Write NAME='PURPOSE MODEL [TOKENS]' with a purpose of"
            f" {', '.join(PURPOSES)}, such as chat='serving 8b 5b'."
        )
    return Need(name, parts[0], parts[1], parse_count(parts[2], "--workload") if len(parts) > 2 else None, hours)


def candidates(catalog: "Catalog", need: Need, answers: Iterable[dict[str, Any]]) -> "list[Candidate]":
    """Return a row per accelerator in the order of the answer that it is of; what is only bought comes by its price."""
    facts = {row["id"]: row for row in catalog.rows("accelerators")}
    several = need.purpose == "workstation"  # sets of several sizes of one card
    rows = [_row(catalog, need, facts[row["gpu"]], row) for row in (answers if several else _first_of_each(answers))]
    if need.purpose in _BOUGHT:
        kinds, most = (_CARDS, max(_SETS)) if several else (_DESK, _MOST_AT_A_DESK)
        rows = [row for row in rows if row["card"] in kinds and row["gpus"] <= most and row["buy_usd"]]
        rows.sort(key=lambda row: (row["buy_usd"] or 0, row["gpu"]))
        return _with_speeds(catalog, need, rows)
    return [{**row, "rank": rank} for rank, row in enumerate(rows, 1)]  # in the order of the answer that they are of


def _with_speeds(catalog: "Catalog", need: Need, rows: "Sequence[Candidate]") -> "list[Candidate]":
    """Return cards with the speed at which they fine-tune, at a desk also with that of one answer in int4.

    What fits in memory alone and cannot is left out.
    """
    from gpucost.physics.training.layouts import latest_year
    from gpucost.workloads.deployment import timed
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    if not rows:
        return []
    architecture = catalog.architecture(need.model)
    sequence = _TUNED_AT_A_DESK if need.purpose == "desk" else None
    year = latest_year(catalog.as_of)
    workload = make_workload(architecture, method="qlora", latest_year=year, sequence_tokens=sequence)
    counts = [row["gpus"] for row in rows]
    speeds = timed(catalog, workload, [key_of(catalog, row["gpu"]) for row in rows], counts)
    found = zip(rows, speeds.fits, speeds.tokens_per_s_per_gpu, strict=True)
    timed_rows: list[Candidate] = [
        {**row, "tokens_per_s": float(each) * row["gpus"]} for row, fits, each in found if fits
    ]
    if need.purpose == "desk":
        return [{**row, "answer_tokens_per_s": _answering(catalog, architecture, row)} for row in timed_rows]
    return timed_rows


def _answering(catalog: "Catalog", architecture: "Architecture", row: "Candidate") -> float | None:
    """Return the output tokens per second of one answer in int4; None where the cards do not hold it."""
    from gpucost.workloads.deployment import serving_speed
    from gpucost.workloads.service import DEFAULT_OUTPUT_TOKENS, DEFAULT_PROMPT_TOKENS, Service
    from gpucost.workloads.speeds import key_of

    service = Service(prompt_tokens=DEFAULT_PROMPT_TOKENS, output_tokens=DEFAULT_OUTPUT_TOKENS, precision="int4")
    speed = serving_speed(catalog, architecture, key_of(catalog, row["gpu"]), service, row["gpus"], 1)
    return None if speed is None else speed.typical


def may_go(row: "Candidate") -> bool:
    """Tell whether a candidate serves on what may be taken away: what stays comes first, as in `inference`."""
    return row["purpose"] == "serving" and OPTIONS[row["option"] or "on_demand"].interruptible


def _answers(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Ask the question that a purpose means; yield gpu, gpus, seller, days and rent."""
    tokens = need.tokens or USUAL_TOKENS.get(need.purpose)
    stated = {"model": need.model, **{name: value for name, value in filters.items() if value is not None}}
    if need.purpose in ("training", "fine-tuning"):
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
    from gpucost.market.table import ordered

    held = sorted(_held(catalog, need, filters), key=lambda row: str(row["gpu"]))
    return ordered(held, "budget_usd")


def _held(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield what holds a model, at the cheapest offer of those asked for; without an offer, where any may be meant."""
    from gpucost.fitting.fit import everywhere
    from gpucost.market.facts import FILTERS, market_of
    from gpucost.market.hires import cheapest_named

    named = {name: filters.get(name) for name in FILTERS}
    wanted, hire_of = catalog.offer_filter(**named), cheapest_named(market_of(catalog), catalog, named)
    placed = any(wanted[name] is not None for name in ("provider", "region", "option"))
    bought = need.purpose in _BOUGHT
    sequence = _TUNED_AT_A_DESK if need.purpose == "desk" else None
    for row in everywhere(catalog, need.model, method="qlora" if bought else "lora", sequence=sequence)["rows"]:
        if wanted["gpu"] is not None and row["gpu"] not in wanted["gpu"]:
            continue
        for gpus in _sets(catalog, need, row):
            if (hire := hire_of(row["gpu"], gpus)) is not None:
                offer = hire.offer
                yield {
                    **row,
                    "gpus": gpus,
                    "usd_per_gpu_hour": hire.usd_per_gpu_hour,
                    "price_observed_on": offer.observed_on.isoformat(),
                    "age_days": offer.age_days,
                    "price_book": offer.book,
                    "provider": offer.provider,
                    "option": offer.option,
                    "days": None,
                    "rent_usd": (rent := hire.usd(need.hours_per_month * MONTHS_PER_YEAR)),
                    "budget_usd": rent * hire.budget_ratio,
                }
            elif not placed or bought:  # which may be bought where nobody rents it out
                sold = "" if placed else row["sold"]
                yield {
                    **row,
                    "gpus": gpus,
                    "provider": sold,
                    "option": None,
                    "days": None,
                    "rent_usd": None,
                    "budget_usd": None,
                }


def _sets(catalog: "Catalog", need: Need, row: Mapping[str, Any]) -> Sequence[int]:
    """Return the counts of an accelerator that are of interest: the fewest, or the sets of a workstation that fit."""
    if need.purpose != "workstation":
        return [row["gpus"]]
    from gpucost.fitting.fit import best_plan, read_job

    held = []
    for gpus in (size for size in _SETS if size >= row["gpus"]):
        plan = best_plan(read_job(catalog, need.model, row["gpu"], gpus=gpus, method="qlora"))
        held += [gpus] if plan is not None and plan.fits else []
    return held


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
        bought = Purchase(usd * gpus if usd else None, None if seen is None else str(seen))
    else:
        _, quote = server_of(catalog, catalog.accelerator(chip["id"]))
        if quote is None:
            return Purchase()
        server = (quote["price_low_usd"] + (quote["price_high_usd"] or quote["price_low_usd"])) / 2
        bought = Purchase(float(server * ceil(gpus / quote["gpus"])), str(quote["price_observed"] or "") or None)
    year = (bought.seen or "").removeprefix("launch ")[:4]
    dated = year.isdigit() and int(year) < catalog.as_of.year - _DATED_YEARS
    return Purchase() if dated else bought


def _to_order(rows: "Sequence[Candidate]") -> "list[Candidate]":
    """Return the first candidate that can be ordered and stays; where there is none, the first of all."""
    ready = [row for row in rows if row["rent_usd"] is not None and not may_go(row)]
    return list(ready[:1] or rows[:1])


def _counted_on(row: Mapping[str, Any]) -> bool:
    """Tell whether somebody saw an offer lately, and it can probably be had and kept."""
    from gpucost.market.budget import FRESH_DAYS, LIKELY

    stays = not OPTIONS[row["option"]].interruptible
    return stays and (row.get("age_days") or 0) <= FRESH_DAYS and row.get("chance_available_fraction", 1.0) >= LIKELY


def rivals(catalog: "Catalog", options: Sequence[dict[str, Any]]) -> "list[SameJob]":
    """Return the same job on demand on the accelerator that costs least, and on those that most sellers have.

    Like with like: each at its first offer on demand that one can count on, each with the count that needs least; what
    it needs more is no less than nothing, since both stand in the order of budgets.
    """
    alike = [row for row in options if row["rent_usd"] is not None and OPTIONS[row["option"]].family == "on demand"]
    alike = [row for row in alike if _counted_on(row)] or alike
    if not alike:
        return []
    first = _first_of_each(alike)
    sellers: dict[str, set[str]] = {}
    for offer in catalog.offers():
        sellers.setdefault(offer.gpu, set()).add(offer.provider)
    best, *others = first
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


def _row(catalog: "Catalog", need: Need, chip: Mapping[str, Any], row: Mapping[str, Any]) -> "Candidate":
    gpus, rent = int(row["gpus"]), row["rent_usd"]  # all of them, over all replicas
    bought = purchase(catalog, chip, gpus)
    buy = bought.usd
    runs = need.purpose in ("training", "fine-tuning")
    months = row["days"] / DAYS_PER_MONTH if runs and row["days"] else MONTHS_PER_YEAR
    return {
        "workload": need.name,
        "purpose": need.purpose,
        "model": need.model,
        "gpu": chip["id"],
        "card": card_of(chip),
        "memory_gib": chip["memory_gib"],
        "ecc": None if chip["ecc"] is None else bool(chip["ecc"]),
        "link": link_of(chip),
        "warranty": _WARRANTY[card_of(chip)],
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
        "buy_seen": bought.seen if buy is not None else None,
        "breakeven_months": None if not rent or buy is None else buy / (rent / months),
        "within": "",
    }


def card_of(chip: Mapping[str, Any]) -> str:
    """Say for whom a card is made: consumer, workstation, data centre, or a computer of its own.

    >>> card_of({"name": "GeForce RTX 4090", "form_factor": "PCIe"}), card_of({"name": "H100", "form_factor": "SXM5"})
    ('consumer', 'data centre')
    """
    name, form = str(chip["name"]), str(chip["form_factor"])
    if name.startswith(_CONSUMER):
        return "consumer"
    if name.startswith(_WORKSTATION) and "Server" not in name:
        return "workstation"
    return "computer" if form == "SoC" else "data centre"


def link_of(chip: Mapping[str, Any]) -> str:
    """Return what connects accelerators: a link of their own, else PCIe, in GB/s per GPU and direction."""
    if chip["scaleup_gb_per_s"]:
        return f"{chip['scaleup_link']} {chip['scaleup_gb_per_s']:,.0f}"
    return f"PCIe {chip['pcie_gb_per_s']:,.0f}" if chip["pcie_gb_per_s"] else "none"


def needs_of(values: Mapping[str, Any]) -> list[Need]:
    """Return the workloads asked about: those named, else the one that the arguments describe."""
    hours = values["hours_per_month"]
    if values["matrix"]:
        return [Need(f"{purpose} {size}", purpose, size, None, hours) for purpose in _MATRIX for size in _SIZES]
    if values["workload"]:
        return [need_of(name, str(text), hours) for name, text in values["workload"].items()]
    return [Need("", values["purpose"], values["model"], values["tokens"], hours)]


def judged(rows: "Sequence[Candidate]", budget: float | None) -> "list[Candidate]":
    """Say of each candidate what the budget reaches; that comes first, of sets of cards the fastest."""
    if budget is None:
        return list(rows)
    judged_rows: list[Candidate] = []
    for row in rows:
        ways = {"rent": row["rent_usd"], "buy": row["buy_usd"]}
        within = " or ".join(way for way, cost in ways.items() if cost is not None and cost <= budget)
        judged_rows.append({**row, "within": within or "neither"})

    def place(row: "Candidate") -> tuple[bool, bool, float]:
        rented = row["purpose"] in _BOUGHT and "buy" not in row["within"]  # where cards are bought
        return row["within"] == "neither", rented, -(row.get("tokens_per_s") or 0.0)  # for the same budget the fastest

    return sorted(judged_rows, key=place)


def pool_of(catalog: "Catalog", pool: Mapping[str, Any]) -> dict[str, int]:
    """Return how many accelerators of each kind are owned already."""
    from gpucost.arguments.kinds import once, whole

    read = whole().read
    return once([(catalog.accelerator(name).id, read(count, "--pool")) for name, count in pool.items()], "--pool")


def on_own(catalog: "Catalog", need: Need, pool: Mapping[str, int], rows: "Sequence[Candidate]") -> "list[Assigned]":
    """Return the ways in which a workload runs on what is owned: how many of each kind, and the days of a run.

    A run may take the fewest that hold it, or more of them and be done sooner; a service takes the fewest that carry
    its load; what holds a model for research or a desk takes the fewest that do.
    """
    from gpucost.workloads.speeds import key_of

    ways: list[Assigned] = []
    for gpu, most in pool.items():
        key = key_of(catalog, gpu)
        if need.purpose in ("training", "fine-tuning"):
            ways += _runs(catalog, need, key, most)
        elif need.purpose == "serving":
            from gpucost.ask.inference import request_of
            from gpucost.serving.run import fewest_for_load

            tokens = need.tokens or USUAL_TOKENS["serving"]
            request = request_of(catalog, model=need.model, tokens_per_month=tokens)
            if (found := fewest_for_load(catalog, request, key, most)) is not None:
                ways.append(_on_own(need, gpu, int(found.accelerators), None))
        else:
            ways += [_on_own(need, gpu, row["gpus"], None) for row in rows if row["gpu"] == gpu and row["gpus"] <= most]
    return ways


def _runs(catalog: "Catalog", need: Need, key: "Key", most: int) -> "list[Assigned]":
    """Return the counts of owned accelerators that hold a run, doublings and all of them, with its days."""
    from gpucost.market.interruptions import EVALUATION_FRACTION
    from gpucost.physics.training.layouts import latest_year
    from gpucost.workloads.deployment import timed, training_deployment
    from gpucost.workloads.training import make_workload

    if not key.accelerator.trains:
        return []
    tokens = need.tokens or USUAL_TOKENS[need.purpose]
    method = "lora" if need.purpose == "fine-tuning" else "full"
    architecture, year = catalog.architecture(need.model), latest_year(catalog.as_of)
    workload = make_workload(architecture, tokens=tokens, method=method, latest_year=year)
    counts = sorted({*(1 << power for power in range(most.bit_length())), most})
    speeds = timed(catalog, workload, [key] * len(counts), counts)
    found = [training_deployment(workload, speeds, row, key, gpus) for row, gpus in enumerate(counts)]
    whole = 1 + EVALUATION_FRACTION.value  # of a run ÷ its steps
    return [
        _on_own(need, key.accelerator.id, int(one.accelerators), one.days(tokens)[1] * whole)
        for one in found
        if one.fits
    ]


def _on_own(need: Need, gpu: str, gpus: int, days: float | None) -> "Assigned":
    name = need.name or need.purpose
    return {"workload": name, "gpu": gpu, "gpus": gpus, "provider": OWN, "cost_usd": 0.0, "days": days}


def assign(
    rows_by_need: "Mapping[str, Sequence[Candidate]]",
    pool: Mapping[str, int],
    own: "Mapping[str, Sequence[Assigned]]",
) -> "list[Assigned]":
    """Give each workload one way to run so that all together cost least: owned ones cost nothing, and run out.

    Of assignments that cost the same, that whose runs take the fewest days in all.
    """
    import numpy as np

    from gpucost.money.mix import milp

    ways: list[tuple[str, Assigned]] = []
    for name, rows in rows_by_need.items():
        ways += [(name, way) for way in own.get(name, ()) if way["gpus"] <= pool.get(way["gpu"], 0)]
        rented = [row for row in rows if row["rent_usd"] is not None]
        if rented:
            first = min(rented, key=lambda row: row.get("rank", 0))
            ways.append((name, _assigned(first, first["provider"], first["rent_usd"] or 0.0)))
    if {name for name, _ in ways} < set(rows_by_need):
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    costs = np.array([way["cost_usd"] for _, way in ways])
    days = np.array([way.get("days") or 0.0 for _, way in ways])
    one_each = [[float(name == need_name) for need_name, _ in ways] for name in rows_by_need]
    taken = [[way["gpus"] * float(way["provider"] == OWN and way["gpu"] == gpu) for _, way in ways] for gpu in pool]
    most = np.array([1.0] * len(rows_by_need) + [float(count) for count in pool.values()])
    least = np.array([1.0] * len(rows_by_need) + [0.0] * len(pool))

    def solved(goal: Any, rows: Sequence[Any], low: Any, high: Any) -> Any:
        return milp(goal, integrality=np.ones(len(ways)), bounds=(0, 1), constraints=(np.array(rows), low, high))

    best = solved(costs, [*one_each, *taken], least, most)
    if best.x is None:
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    if pool:
        cheapest = float(costs @ np.round(best.x))
        bound = (np.append(least, 0.0), np.append(most, cheapest + 0.005))
        sooner = solved(days, [*one_each, *taken, costs], *bound)
        best = best if sooner.x is None else sooner
    return [way for (_, way), share in zip(ways, best.x, strict=True) if share > 0.5]


def _assigned(row: "Candidate", provider: str, cost_usd: float) -> "Assigned":
    name = row["workload"] or row["purpose"]
    return {
        "workload": name,
        "gpu": row["gpu"],
        "gpus": row["gpus"],
        "provider": provider,
        "cost_usd": cost_usd,
        "days": row.get("days"),
    }


def _long(assigned: "Sequence[Assigned]", rows_by_need: "Mapping[str, Sequence[Candidate]]") -> list[str]:
    """Say which runs take far longer on what is owned than rented."""
    notes = []
    for way in assigned:
        rows = rows_by_need.get(way["workload"]) or next(iter(rows_by_need.values()))
        rented = next((row for row in rows if row["rent_usd"] is not None and row["days"]), None)
        days = way.get("days")
        if way["provider"] == OWN and days and rented and rented["days"] and days > _FAR_LONGER * rented["days"]:
            notes.append(
                f"{way['workload']} takes {days:,.1f} days on {way['gpus']} × {way['gpu']} of your own; rented for"
                f" {rented['rent_usd']:,.0f} USD, {rented['gpus']} × {rented['gpu']} take {rented['days']:,.1f}."
            )
    return notes


def lead_of_matrix(rows_by_need: "Mapping[str, Sequence[Candidate]]") -> str:
    """Say how many cells of the matrix were listed lately, and the ends of what they cost."""
    ready, sure = _listed_lately(rows_by_need)
    low, high = (pick(sure or ready, key=lambda row: row["rent_usd"] or 0) for pick in (min, max))
    return (
        f"{_ready(rows_by_need)} They cost from ${low['rent_usd']:,.0f} for {low['workload']} to"
        f" ${high['rent_usd']:,.0f} for {high['workload']}."
    )


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


def lead(
    needs: Sequence[Need],
    rows_by_need: "Mapping[str, Sequence[Candidate]]",
    assigned: "Sequence[Assigned]",
    budget: float | None,
) -> str:
    """Say what to take."""
    from gpucost.market.terms import unlisted

    if assigned:
        parts = [f"{row['workload']} on {row['gpus']} × {row['gpu']} ({row['provider']})" for row in assigned]
        return f"{'; '.join(parts)}: {sum(row['cost_usd'] for row in assigned):,.0f} USD in all."
    need, first = needs[0], next(iter(rows_by_need.values()))[0]
    time = f" and {first['days']:.1f} days" if first["days"] else ""
    span = "" if need.purpose in ("training", "fine-tuning") else " a year"
    rent = "" if first["rent_usd"] is None else f"rent for {first['rent_usd']:,.0f} USD{span}{time}"
    buy = "" if first["buy_usd"] is None else f"buy for about {first['buy_usd']:,.0f} USD"
    if budget is not None and first["within"] != "neither":  # of a budget, what it reaches
        rent, buy = (text if way in first["within"] else "" for way, text in (("rent", rent), ("buy", buy)))
    ways = " or ".join(part for part in ((buy, rent) if need.purpose in _BOUGHT else (rent, buy)) if part)
    price = first.get("usd_per_gpu_hour")
    hour = ""
    if price is not None and rent and need.purpose not in _BOUGHT:
        hour = f" The GPU-hour: {price:.2f} USD, at {first['provider']}."
    if rent and need.purpose not in _BOUGHT:
        hour += unlisted(first.get("age_days"), first.get("price_book") or "")
    reach = "" if budget is None else f" {_reached(next(iter(rows_by_need.values())))} fit your budget."
    uses = {"desk": "a desk with", "research": "research on", "workstation": "a workstation with"}
    use = uses.get(need.purpose, f"{need.purpose} of")
    return f"For {use} {need.model}: {first['gpus']} × {first['gpu']}, {ways}.{hour}{_speed(first)}{reach}"


def _reached(rows: "Sequence[Candidate]") -> str:
    """Say how many types of GPU a budget reaches."""
    reached = len({row["gpu"] for row in rows if row["within"] != "neither"})
    types = len({row["gpu"] for row in rows})
    return f"{f'All {types}' if reached == types else f'{reached} of {types}'} GPU types"


_JOBS = {  # by purpose: what is asked about, and the option that states its size
    "training": ("full training on {tokens} tokens", "tokens"),
    "fine-tuning": ("LoRA on {tokens} tokens", "tokens"),
    "serving": ("serving {tokens} tokens a month", "tokens"),
    "research": ("research in LoRA, {hours:g} hours a month", "hours-per-month"),
    "desk": ("QLoRA on sequences of {sequence:,} tokens, answers in int4; {hours:g} hours a month", "hours-per-month"),
    "workstation": ("QLoRA, {hours:g} hours a month", "hours-per-month"),
}


def stated(
    needs: Sequence[Need], rows_by_need: "Mapping[str, Sequence[Candidate]]", budget: float | None, matrix: bool
) -> "list[StatedFact]":
    """Return what a choice takes as given: the jobs, how long they may take, and what the budget reaches."""
    from gpucost.training.request import DEFAULT_DEADLINE_DAYS

    runs = any(need.purpose in ("training", "fine-tuning") for need in needs)
    limit = f"{DEFAULT_DEADLINE_DAYS:g} days"
    if matrix:
        jobs = dict.fromkeys(_job(need) for need in needs)
        return [
            {"label": "Ready", "text": _ready(rows_by_need)},
            {"label": "Assumes", "text": f"{'; '.join(jobs)}; runs within {limit}."},
        ]
    if len(needs) > 1 or needs[0].name:
        jobs_text = "; ".join(f"{need.name}: {_job(need)}" for need in needs)
    else:
        jobs_text = f"{_job(needs[0])} (--{_JOBS[needs[0].purpose][1]})"
    facts: list[StatedFact] = [{"label": "Assumes", "text": f"{jobs_text}."}]
    if runs:
        facts.append({"label": "Deadline", "text": f"{limit}; for another one: gpucost estimate --deadline."})
    if budget is not None and len(needs) == 1:
        facts.append({"label": "Budget", "text": f"{_reached(next(iter(rows_by_need.values())))} fit ${budget:,.0f}."})
    return facts


def _job(need: Need) -> str:
    tokens = need.tokens or USUAL_TOKENS.get(need.purpose) or 0.0
    return _JOBS[need.purpose][0].format(
        tokens=format_count(tokens), hours=need.hours_per_month, sequence=_TUNED_AT_A_DESK
    )


def _speed(row: "Candidate") -> str:
    """Say what cards that are bought do, and how fast."""
    if not row.get("tokens_per_s"):
        return ""
    length = f" at {_TUNED_AT_A_DESK:,} tokens" if row["purpose"] == "desk" else ""
    answers = row.get("answer_tokens_per_s")
    told = f"; an answer in int4 comes at {answers:,.0f} a second" if answers else ""
    return f" QLoRA{length}: {row['tokens_per_s']:,.0f} tokens a second{told}."
