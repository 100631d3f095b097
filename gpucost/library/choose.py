"""`gpucost.choose(...)`: which GPU for this workload and this budget, for one workload or several together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from gpucost.arguments import flag_of, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import TABLE, USD, count, one_of
from gpucost.arguments.signature import absent, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answer, framed, opened, question
from gpucost.ask.result import RankedResult, copied
from gpucost.errors import NothingFitsError, UsageError
from gpucost.limits import limit
from gpucost.options import OPTIONS
from gpucost.units import DAYS_PER_MONTH, MONTHS_PER_YEAR, parse_count

if TYPE_CHECKING:
    from gpucost.answers.combined import Assigned, Candidate
    from gpucost.catalog import Catalog

_LISTED = "gpu", "provider", "region", "option", "max_age", "strict_prices"
PURPOSES = ("training", "fine-tuning", "serving", "research", "desk")
USUAL_TOKENS = {"training": 100e9, "fine-tuning": 100e6, "serving": 1e9}  # of a run; of a month
_CONSUMER = ("GeForce", "Radeon RX")
_WORKSTATION = ("RTX", "Quadro", "Arc Pro", "Radeon PRO")
_DESK = ("consumer", "workstation", "computer")
_MOST_AT_A_DESK = 2
# What makers usually give, by kind of card: an assumption; a data-centre card is covered by the server's contract.
_WARRANTY = {"consumer": "3 y", "workstation": "3 y", "computer": "1 y", "data centre": "with its server"}


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceResult(RankedResult):
    """The GPUs that a workload could run on, the cheapest first, and what several workloads get together."""

    @property
    def assigned(self) -> list[Mapping[str, Any]]:
        """What each of several workloads gets."""
        return [*map(copied, self.payload["assigned"])]


@question(
    needs=[
        needs("hours_per_month", given("purpose", "research", "desk"), given("workload")),
        needs("tokens", given("purpose", "training", "fine-tuning", "serving")),
        needs("model tokens purpose", absent("workload"), words="without --workload, which says it of each"),
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
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> ChoiceResult:
    """Return which accelerators suit a workload and a budget, the cheapest first, or several workloads together.

    Which GPU for this workload and this budget: to rent and to buy, consumer cards beside data-centre ones.

    Several workloads are assigned together, so that all cost least, over what you own and what is for rent.

    $ gpucost choose --purpose desk --budget 2k
    $ gpucost choose --purpose fine-tuning --model 70b --budget 50k
    $ gpucost choose --workload chat='serving 8b 5b' --workload tune='fine-tuning 70b' --pool h100-sxm=8
    """
    values = read(QUESTIONS["choose"], locals())
    facts, most = opened(values, catalog), values["budget"]
    workloads = needs_of(values)
    filters = {name: values[name] for name in _LISTED if values.get(name) is not None}
    rows_by_need = {need.name: judged(candidates(facts, need, filters), most) for need in workloads}
    if not all(rows_by_need.values()):
        empty = next(name for name, rows in rows_by_need.items() if not rows)
        asked_for = ", ".join(f"{flag_of(name)} {value}" for name, value in filters.items())
        asked_for = f" with {asked_for}" if filters else ""
        wider = ", or widen these" if filters else ""
        raise NothingFitsError(
            f"nothing on record suits {empty or workloads[0].purpose}{asked_for}. Try another model or purpose{wider}."
        )
    owned = pool_of(facts, values["pool"] or {})
    assigned = assign(rows_by_need, owned) if len(workloads) > 1 or owned else []
    total = sum(row["cost_usd"] for row in assigned) if assigned else None
    notes = facts.taken(*(values["pool"] or ()))
    if total is not None and most is not None and total > most:
        notes.append(f"The cheapest assignment costs {total:,.0f} USD, over the budget of {most:,.0f} USD.")
    return ChoiceResult(
        {
            "kind": "choice",
            **framed(facts, values),
            "lead": lead(workloads, rows_by_need, assigned, most),
            "budget_usd": most,
            "rows": [row for rows in rows_by_need.values() for row in rows],
            "assigned": assigned,
            "total_usd": total,
            "warnings": notes,
            "sources": {},
        }
    )


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


def candidates(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> "list[Candidate]":
    """Return a row per accelerator, the cheapest to rent first; what is only bought comes by its price."""
    facts = {row["id"]: row for row in catalog.rows("accelerators")}
    rows = [_row(catalog, need, facts[row["gpu"]], row) for row in _first_of_each(_answers(catalog, need, filters))]
    if need.purpose == "desk":
        rows = [row for row in rows if row["card"] in _DESK and row["gpus"] <= _MOST_AT_A_DESK and row["buy_usd"]]
        return sorted(rows, key=lambda row: (row["buy_usd"] or 0, row["gpu"]))
    return sorted(rows, key=_rank)


def _rank(row: "Candidate") -> tuple[bool, bool, bool, float, str]:
    """Order as the questions do: what one can order first, then what stays, then the cheapest."""
    cost = row["rent_usd"] or row["buy_usd"] or 0
    return row["rent_usd"] is None, bool(row.get("missing")), may_go(row), cost, row["gpu"]


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
        return [{**row, "rent_usd": row["cost_usd"]} for row in answer("estimate", run, catalog).options]
    if need.purpose == "serving":
        options = answer("inference", {**stated, "tokens_per_month": tokens, "top": 0}, catalog).options
        return [{**row, "days": None, "rent_usd": MONTHS_PER_YEAR * row["usd_per_month"]} for row in options]
    return _held(catalog, need, filters)


def _held(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield what holds a model, at the cheapest offer of those asked for; without an offer, where any may be meant."""
    from gpucost.fitting.fit import everywhere
    from gpucost.market.facts import FILTERS, cheapest_named, market_of

    named = {name: filters.get(name) for name in FILTERS}
    wanted, hire_of = catalog.offer_filter(**named), cheapest_named(market_of(catalog), catalog, named)
    placed = any(wanted[name] is not None for name in ("provider", "region", "option"))
    for row in everywhere(catalog, need.model, method="qlora" if need.purpose == "desk" else "lora")["rows"]:
        if wanted["gpu"] is not None and row["gpu"] not in wanted["gpu"]:
            continue
        if (hire := hire_of(row["gpu"], row["gpus"])) is not None:
            offer = hire.offer
            yield {
                **row,
                "usd_per_gpu_hour": hire.usd_per_gpu_hour,
                "quoted_usd_per_gpu_hour": offer.usd_per_gpu_hour,
                "price_observed_on": offer.observed_on.isoformat(),
                "age_days": offer.age_days,
                "price_book": offer.book,
                "missing": list(hire.missing),
                "provider": offer.provider,
                "option": offer.option,
                "days": None,
                "rent_usd": hire.usd(need.hours_per_month * MONTHS_PER_YEAR),
            }
        elif not placed or need.purpose == "desk":  # which may be bought where nobody rents it out
            sold = "" if placed else row["sold"]
            yield {**row, "provider": sold, "option": None, "days": None, "rent_usd": None}


def _first_of_each(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row["gpu"], row)
    return list(first.values())


def purchase_usd(catalog: "Catalog", chip: Mapping[str, Any], gpus: int) -> float | None:
    """Return what so many accelerators cost to buy, as they are sold; None where they are for rent alone.

    Cards and small computers are bought one by one. Modules (SXM, OAM, superchips) run in their servers only, so that
    whole servers count, at the quote that `tco` takes. Chips of a cloud are not sold at all.
    """
    from gpucost.ownership.offers import server_of

    form = str(chip["form_factor"])
    if form == "pod":
        return None
    if form.startswith("PCIe") or form == "SoC":
        street = [chip[f"street_{end}_usd"] for end in ("low", "high") if chip[f"street_{end}_usd"]]
        price = sum(street) / len(street) if street else chip["launch_usd"]
        return price * gpus if price else None
    _, quote = server_of(catalog, catalog.accelerator(chip["id"]))
    if quote is None:
        return None
    server = (quote["price_low_usd"] + (quote["price_high_usd"] or quote["price_low_usd"])) / 2
    return float(server * ceil(gpus / quote["gpus"]))


def _row(catalog: "Catalog", need: Need, chip: Mapping[str, Any], row: Mapping[str, Any]) -> "Candidate":
    gpus, rent = int(row["gpus"]), row["rent_usd"]  # all of them, over all replicas
    buy = purchase_usd(catalog, chip, gpus)
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
        "days": row["days"],
        "rent_usd": rent,
        "usd_per_gpu_hour": row.get("usd_per_gpu_hour") if rent is not None else None,
        "quoted_usd_per_gpu_hour": row.get("quoted_usd_per_gpu_hour") if rent is not None else None,
        "price_observed_on": row.get("price_observed_on"),
        "age_days": row.get("age_days") if rent is not None else None,
        "price_book": row.get("price_book") if rent is not None else None,
        "missing": row.get("missing") or [],
        "buy_usd": buy,
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
    if values["workload"]:
        count, most = len(values["workload"]), limit("limit_workloads")
        if count > most:
            raise UsageError(f"--workload: {count:,}; at most {most:,.0f}. The setting limit_workloads raises that.")
        return [need_of(name, str(text), hours) for name, text in values["workload"].items()]
    return [Need("", values["purpose"], values["model"], values["tokens"], hours)]


def judged(rows: "Sequence[Candidate]", budget: float | None) -> "list[Candidate]":
    """Say of each candidate what the budget reaches; what it reaches comes first."""
    if budget is None:
        return list(rows)
    judged_rows: list[Candidate] = []
    for row in rows:
        ways = {"rent": row["rent_usd"], "buy": row["buy_usd"]}
        within = " or ".join(way for way, cost in ways.items() if cost is not None and cost <= budget)
        judged_rows.append({**row, "within": within or "neither"})
    return sorted(judged_rows, key=lambda row: row["within"] == "neither")


def pool_of(catalog: "Catalog", pool: Mapping[str, Any]) -> dict[str, int]:
    """Return how many accelerators of each kind are owned already."""
    from gpucost.arguments.kinds import once, whole

    read = whole().read
    return once([(catalog.accelerator(name).id, read(count, "--pool")) for name, count in pool.items()], "--pool")


def assign(rows_by_need: "Mapping[str, Sequence[Candidate]]", pool: Mapping[str, int]) -> "list[Assigned]":
    """Give each workload one candidate so that all together cost least: owned ones cost nothing, and run out."""
    import numpy as np

    from gpucost.money.mix import milp

    ways: list[tuple[str, Assigned]] = []
    for name, rows in rows_by_need.items():
        ways += [(name, _assigned(row, "own", 0.0)) for row in rows if pool.get(row["gpu"], 0) >= row["gpus"]]
        rented = [
            (bool(row.get("missing")), may_go(row), row["rent_usd"], at)  # what one can order first
            for at, row in enumerate(rows)
            if row["rent_usd"] is not None
        ]
        for *_, cost, at in sorted(rented)[:1]:
            ways.append((name, _assigned(rows[at], rows[at]["provider"], cost)))
    if {name for name, _ in ways} < set(rows_by_need):
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    one_each = [[float(name == need_name) for need_name, _ in ways] for name in rows_by_need]
    taken = [[way["gpus"] * float(way["provider"] == "own" and way["gpu"] == gpu) for _, way in ways] for gpu in pool]
    most = np.array([1.0] * len(rows_by_need) + [float(count) for count in pool.values()])
    least = np.array([1.0] * len(rows_by_need) + [0.0] * len(pool))
    best = milp(
        np.array([way["cost_usd"] for _, way in ways]),
        integrality=np.ones(len(ways)),
        bounds=(0, 1),
        constraints=(np.array([*one_each, *taken]), least, most),
    )
    if best.x is None:
        raise UsageError("--pool: neither the pool nor rented machines suit every workload.")
    return [way for (_, way), share in zip(ways, best.x, strict=True) if share > 0.5]


def _assigned(row: "Candidate", provider: str, cost_usd: float) -> "Assigned":
    name = row["workload"] or row["purpose"]
    return {"workload": name, "gpu": row["gpu"], "gpus": row["gpus"], "provider": provider, "cost_usd": cost_usd}


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
    ways = " or ".join(part for part in ((buy, rent) if need.purpose == "desk" else (rent, buy)) if part)
    price, quoted = first.get("usd_per_gpu_hour"), first.get("quoted_usd_per_gpu_hour")
    hour = ""
    if price is not None and rent and need.purpose != "desk":
        hour = f" The GPU-hour: {price:.2f} USD"
        if quoted is not None and f"{quoted:.2f}" != f"{price:.2f}":
            hour += f" expected today (quoted {quoted:.2f} on {first['price_observed_on']})"
        hour += f", at {first['provider']}."
    if rent and first.get("missing") and need.purpose != "desk":
        hour += f" Nobody verified that offer: {'; '.join(first['missing'])}."
    if rent and need.purpose != "desk":
        hour += unlisted(first.get("age_days"), first.get("price_book") or "")
    reach = ""
    if budget is not None:
        reached = sum(row["within"] != "neither" for row in next(iter(rows_by_need.values())))
        types = len(next(iter(rows_by_need.values())))
        share = f"All {types}" if reached == types else f"{reached} of {types}"
        reach = f" {share} GPU types fit your budget."
    use = {"desk": "a desk with", "research": "research on"}.get(need.purpose, f"{need.purpose} of")
    return f"For {use} {need.model}: {first['gpus']} × {first['gpu']}, {ways}.{hour}{reach}"
