"""The cheapest mix of supplies for a demand by month, as a payload."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.common import cited, frame
from gpucost.catalog import Catalog
from gpucost.errors import CheckFailedError, UsageError
from gpucost.gate import repeated
from gpucost.limits import limit
from gpucost.market.terms import credited_by_month
from gpucost.money import mix as program
from gpucost.money.cashflow import monthly_rate
from gpucost.money.comparison import evaluate_months
from gpucost.money.mix import MixSupply, Team
from gpucost.money.price_paths import read_months
from gpucost.options import OPTIONS
from gpucost.ownership.alternatives import monthly, scalar
from gpucost.ownership.analysis import outcomes
from gpucost.ownership.answer import credits_said
from gpucost.ownership.assemble import OwnershipCase, assemble
from gpucost.ownership.offers import layered
from gpucost.ownership.plan import PlanFile
from gpucost.types import Offer
from gpucost.units import parse_fraction, share_in

# --- What capacity can be had, as supplies of the mix: owned servers from the plan, and rent by its terms.

Array = NDArray[np.float64]

OWN = "own"
_TAKEN = (OWN, "demand", "idle")  # what is bought, and the columns of a month
SHORTEST_OWNERSHIP_MONTHS = 12  # assumed: nobody buys servers to resell them within a year
SPOT_SHARE = 0.3  # assumed: of each month's demand, what spot may carry


class Rent(Struct, frozen=True):
    """One way to rent, as given or as found in the catalog."""

    name: str
    kind: str
    usd_per_gpu_hour: float
    term_months: int = 0
    max_gpus: float = np.inf
    max_share_fraction: float = 1.0
    unit_gpus: float = 1.0
    lead_time_months: int = 0
    upfront_fraction: float = 0.0
    stretch_ratio: float = 1.0
    note: str = ""
    source_id: str = ""
    offer: Offer | None = None  # of the catalog, where the price is one


def read_entries(entries: Sequence[Mapping[str, Any]]) -> list[Rent]:
    """Make the supplies of a plan, as they were read, each of a name of its own."""
    if len(entries) > (most := limit("limit_supplies")):
        raise UsageError(f"{len(entries):,} supplies; at most {most:,.0f}. The setting limit_supplies raises that.")
    rents = [_read_entry(entry) for entry in entries]
    names = [rent.name for rent in rents]
    taken = [(name, "names something else in every mix") for name in names if name in _TAKEN]
    for name, why in [*taken, *((name, "is given twice") for name in repeated(names))]:
        raise UsageError(f"supply {name!r} {why}. Give each supply a `name` of its own.")
    return rents


def _read_entry(entry: Mapping[str, Any]) -> Rent:
    rent = Rent(**{"name": entry["kind"], **entry})
    if OPTIONS[rent.kind].take_or_pay and rent.term_months < 1:
        raise UsageError(f"supply {rent.name!r}: {OPTIONS[rent.kind].label} needs term_months of at least 1.")
    if not OPTIONS[rent.kind].take_or_pay and (unheeded := [name for name in _OF_TERMS if getattr(rent, name)]):
        raise UsageError(
            f"supply {rent.name!r}: {OPTIONS[rent.kind].label} is paid by use and has no {unheeded[0]}. Leave it out,"
            " or give another `kind`."
        )
    return rent


_OF_TERMS = ("term_months", "upfront_fraction", "lead_time_months")  # what only a commitment has
_AS_CHOSEN = ("upfront_fraction", "stretch_ratio", "note", "source_id", "offer")


def from_market(case: OwnershipCase, spot_share: float, max_on_demand: float) -> list[Rent]:
    """Return the rental price of the case as on demand, and the catalog's other terms."""
    node = case.number("gpus_per_node")
    base, price = case.assumptions["rent_usd_per_gpu_hour"], case.number("rent_usd_per_gpu_hour")
    provenance: dict[str, Any] = {"note": base.note, "source_id": base.source_id, "offer": case.rent_offer}
    rents = [Rent("on_demand", "on_demand", price, max_gpus=max_on_demand, **provenance)]
    for choice in case.choices:
        spot = OPTIONS[choice.option].interruptible
        rent = Rent(choice.name, choice.option, choice.usd_per_gpu_hour, choice.term_months)
        chosen_terms = {name: getattr(choice, name) for name in _AS_CHOSEN}
        share, unit = (spot_share, 1.0) if spot else (1.0, node)
        rents.append(replace(rent, max_share_fraction=share, unit_gpus=unit, **chosen_terms))
    return rents


def services_usd(case: OwnershipCase) -> float:
    """Return what a rented GPU needs a month beside its price: storage, data leaving, licences, people."""
    number = case.number
    stored = case.assumptions["storage_basis"].value != "none"
    storage = number("storage_gib_per_gpu") * number("storage_usd_per_gib_month") if stored else 0.0
    egress = number("egress_gb_per_gpu_month") * number("rent_egress_usd_per_gb")
    fte = number("rent_staff_ratio") * number("staff_fte_per_1000_gpus") / 1000
    return storage + egress + number("licence_usd_per_gpu_year") / 12 + fte * number("staff_usd_per_fte_year") / 12


def monthly_usd(case: OwnershipCase, rent: Rent, months: int) -> Array:
    """Return what a GPU rented in each month costs, on the case's path of prices."""
    path = case.rent_path()[:months]
    path = path * (1 - case.number("rent_decline_fraction")) ** (np.arange(months) / 12)
    return np.asarray(rent.usd_per_gpu_hour * case.number("hours_per_month") * path, dtype=np.float64)


def rented(case: OwnershipCase, rent: Rent, demand: Array, rate: float) -> MixSupply:
    """Return a way to rent as a supply; prices follow the case's path, a reservation keeps its price for the term."""
    months = demand.size
    month = np.arange(months)
    discount = (1 + rate) ** -(month + 1.0)
    share = rent.max_share_fraction * demand if rent.max_share_fraction < 1 else np.full(months, np.inf)
    limit = np.minimum(float(rent.max_gpus), share).astype(np.float64)
    hourly = monthly_usd(case, rent, months)
    extra: Array = np.asarray(services_usd(case) * discount, dtype=np.float64)
    if not OPTIONS[rent.kind].take_or_pay:
        return MixSupply(rent.name, False, hourly * rent.stretch_ratio * discount + extra, limit)
    unit = np.array([_reservation(case, rent, hourly[k] * rent.unit_gpus, k, months, rate) for k in range(months)])
    wait, term = int(rent.lead_time_months), int(rent.term_months)
    return MixSupply(rent.name, True, extra, limit, rent.unit_gpus, unit, np.zeros(months), wait, term)


def _reservation(case: OwnershipCase, rent: Rent, monthly_usd: float, signed: int, months: int, rate: float) -> float:
    """Return the present value of one reservation; what runs beyond the horizon is due at its end."""
    start = signed + int(rent.lead_time_months)
    inside = max(0, min(rent.term_months, months - start))
    paid = ((1 + rate) ** -(start + 1.0 + np.arange(inside))).sum() * monthly_usd * (1 - rent.upfront_fraction)
    upfront = rent.upfront_fraction * monthly_usd * rent.term_months * (1 + rate) ** -start
    beyond = (rent.term_months - inside) * monthly_usd * (1 - rent.upfront_fraction)
    return float(paid + upfront + beyond * case.number("rent_cancellation_fraction") * (1 + rate) ** -months)


# servers that stand idle, without people: what their use and their team add is apart
_BARE = {
    "utilisation_fraction": 0.0,
    "staff_minimum_fte": 0.0,
    "staff_fte_per_1000_gpus": 0.0,
    "lead_time_months": 0.0,
    "refresh_month": 0.0,
}


def server_cash(case: OwnershipCase, gpus: Array, lead_months: int, life_months: int) -> Array:
    """Return the cash of GPUs by the month of their order, at the start and at the end of each month: idle servers."""
    months = gpus.size
    cash_by_month = np.zeros(months + 1)
    for k in np.nonzero(gpus)[0].tolist():
        served = min(life_months, max(1, months - k - lead_months))
        values = {**case.values(), **_BARE, "gpus": float(gpus.sum()), "months": float(served)}
        cash = monthly(evaluate_months(values, case.tables, served), "own_total_usd")[: served + 1]
        cash_by_month[k + lead_months : k + lead_months + served + 1] += cash * gpus[k] / gpus.sum()
    return cash_by_month


def owned(case: OwnershipCase, demand: Array, rate: float, life_months: int, max_gpus: float) -> tuple[MixSupply, Team]:
    """Return owned servers as a supply: purchase, fixed costs and resale per server; energy by use; people apart."""
    months, node = demand.size, case.number("gpus_per_node")
    lead = int(np.ceil(case.number("lead_time_months")))
    size = float(np.ceil(max(demand.max(), 1) / node) * node)
    bare = {"gpus": size, **_BARE}
    served = np.arange(1, min(life_months, months) + 1, dtype=np.float64)
    worth = outcomes(case, {**bare, "months": served}).own_usd / size * node
    years = [min(life_months, max(1, months - k - lead)) for k in range(months)]
    unit = np.array([worth[min(y, worth.size) - 1] * (1 + rate) ** -(k + lead) for k, y in enumerate(years)])
    busy_month = evaluate_months({**case.values(), **bare, "utilisation_fraction": 1.0, "months": 1.0}, case.tables, 1)
    idle = evaluate_months({**case.values(), **bare, "months": 1.0}, case.tables, 1)
    drawn = float(monthly(busy_month, "energy_kwh")[1] - monthly(idle, "energy_kwh")[1])
    energy = drawn / size * scalar(busy_month, "metered_ratio")
    month = np.arange(months)
    discount = (1 + rate) ** -(month + 1.0)
    rises = (1 + case.number("electricity_escalation_fraction")) ** (month // 12)
    use = energy * case.number("electricity_usd_per_kwh") * rises * discount
    capital = np.full(months, scalar(busy_month, "capex_usd") / size * node)
    fewest = min(SHORTEST_OWNERSHIP_MONTHS, max(1, months - lead))
    supply = MixSupply(OWN, True, use, np.full(months, max_gpus), node, unit, capital, lead, life_months, fewest)
    raised = (1 + case.number("staff_escalation_fraction")) ** (month // 12)
    pay = case.number("staff_usd_per_fte_year") / 12 * raised * discount
    return supply, Team(OWN, case.number("staff_minimum_fte"), case.number("staff_fte_per_1000_gpus") / 1000, pay)


# --- The cheapest mix for a demand by month, as a payload.

MOST_MONTHS = 120
PROVEN_GAP_FRACTION = 1e-4  # searched for unless another is asked for
SAID_GAP_FRACTION, REFUSED_GAP_FRACTION = 0.01, 0.05  # said before all else; refused unless it was asked for


def demand_of(source: str | Path | None, constant: float | None, growth: float | str | None, months: int) -> Array:
    """Return the GPUs that are in use on average in each month: from a CSV, or a level that grows by a share a year."""
    if source is not None and constant is not None:
        raise UsageError(f"the demand is given twice: by {source} and as constant {constant:g}. Give one of them.")
    if source is not None:
        values = read_months(source, "gpus", zero_allowed=True)
    elif constant is not None:
        text = str(growth or 0).strip()
        try:
            yearly = share_in(text)
        except ValueError:
            raise UsageError(f"growth: cannot read {growth!r}. Write 20% or 0.2.") from None
        if yearly <= -1 or constant < 0:
            raise UsageError("a demand cannot be negative: give constant of at least 0 and growth above -100%.")
        values = constant * (1 + yearly) ** (np.arange(months) / 12)
    else:
        raise UsageError("no demand: give a CSV with the columns month and gpus, or --constant 64 (and --growth 20%).")
    if values.size > MOST_MONTHS:
        raise UsageError(f"the demand covers {values.size} months; at most {MOST_MONTHS} can be planned at once.")
    if values.max() <= 0:
        raise UsageError("the demand is zero in every month: nothing to plan.")
    return values


def answer(
    catalog: Catalog,
    plan: PlanFile,
    flags: Mapping[str, Any],
    special: Mapping[str, Any],
    demand: Array,
    limits: Mapping[str, Any],
    request: Mapping[str, Any],
) -> shape.Mix:
    """Find the cheapest mix and explain it."""
    peak = float(np.ceil(max(demand.max(), 1.0)))
    case = assemble(catalog, plan, {"gpus": peak, **flags, "months": float(demand.size)}, special)
    problem, rents = problem_of(case, demand, limits)
    solved, pure = _searched(problem, limits)
    ids = {entry.source_id for entry in case.assumptions.values()} | {rent.source_id for rent in rents}
    best = min((cost for cost in pure.values() if cost is not None), default=None)
    plan_ = plan_rows(problem, solved)
    paid = _paid(case, solved, rents)
    saving = None if best is None else max(0.0, best - solved.cost_usd)  # the search takes the single option too
    return {
        "kind": "mix",
        **frame(request, catalog.as_of, catalog.version),
        "lead": lead(problem, solved, plan_, saving),
        "said": [EXPLAINED],
        "cost_usd": solved.cost_usd,
        "plan": plan_,
        "pure": pure_rows(problem, pure),
        "best_pure_usd": best,
        "saving_usd": saving,
        "months": month_rows(problem, solved, rate_of(case)),
        "cash_by_month": cash_rows(case, problem, solved),
        "marginal_values": marginal_rows(solved),
        "gap_fraction": solved.gap_fraction,
        "supplies": paid,
        "assumptions": [entry.as_dict() for entry in case.assumptions.values()],
        "warnings": [text for text in case.warnings if "whole servers" not in text]
        + _unproven(solved)
        + credits_said(paid, "what it is rented for"),
        "sources": cited({name: catalog.source(name) for name in ids if name}, sorted(ids)),
    }


EXPLAINED = (
    "Present values; whole units are optimal within the stated gap. Marginal values are those of the linear program "
    "with the whole numbers fixed at the optimum: what one more GPU of demand costs, or one more GPU of capacity "
    "saves, in that month, without signing other units."
)


def _searched(
    problem: program.MixProblem, limits: Mapping[str, Any]
) -> tuple[program.Solution, dict[str, float | None]]:
    """Search to the gap asked for; a mix that may be much too dear is refused."""
    gap_text = limits.get("gap")
    gap = PROVEN_GAP_FRACTION if gap_text is None else parse_fraction(gap_text, "gap")
    limit_s = limits.get("time_limit_s")
    if limit_s is not None and not 0 < float(limit_s) < np.inf:
        raise UsageError(f"time_limit_s = {limit_s!r} must be positive. Leave it out for no time limit.")
    seconds = None if limit_s is None else float(limit_s)
    solved, pure = program.cheapest(problem, gap, seconds)
    if gap < PROVEN_GAP_FRACTION < solved.gap_fraction:  # a proof that is out of reach may cost the mix itself
        usual, _ = program.cheapest(problem, PROVEN_GAP_FRACTION, seconds)
        solved = min(solved, usual, key=lambda solution: solution.gap_fraction)
    if solved.gap_fraction > max(REFUSED_GAP_FRACTION, gap):
        raise CheckFailedError(
            f"the search ended{'' if seconds else f' after {program.MOST_NODES} branches'}, and a mix"
            f" {solved.gap_fraction:.1%} cheaper may exist: too large a gap to act on."
            f" {'Give a longer --time-limit, or accept' if seconds else 'Accept'} it with"
            f" --gap {np.ceil(solved.gap_fraction * 100):g}%, or ask for fewer months or supplies."
        )
    return solved, pure


def _unproven(solved: program.Solution) -> list[str]:
    if solved.gap_fraction <= PROVEN_GAP_FRACTION:
        return []
    return [f"the search stopped at its limit: a cheaper mix may exist, by at most {solved.gap_fraction:.2%}"]


def rate_of(case: OwnershipCase) -> float:
    """Return the monthly rate at which the mix is discounted."""
    nominal = case.assumptions["wacc_convention"].value == "nominal"
    return monthly_rate(np.array(case.number("wacc_fraction")), nominal).item()


def problem_of(case: OwnershipCase, demand: Array, limits: Mapping[str, Any]) -> tuple[program.MixProblem, list[Rent]]:
    """Turn a case and a demand into the program."""
    rate = rate_of(case)
    entries = case.special.get("supply")
    asked_share = limits.get("spot_share")
    share = parse_fraction(SPOT_SHARE if asked_share is None else asked_share, "spot share")
    most = limits.get("max_on_demand")
    most_gpus = np.inf if most is None else float(most)
    read = read_entries(entries or ())
    rents = read or from_market(case, share, most_gpus)
    supplies = [rented(case, rent, demand, rate) for rent in rents]
    team = None
    if limits.get("own", case.special.get("own", True)):
        most_owned = limits.get("max_owned_gpus", case.special.get("max_owned_gpus"))
        life = int(limits.get("life_months") or 60)
        supply, team = owned(case, demand, rate, life, np.inf if most_owned is None else float(most_owned))
        supplies.insert(0, supply)
    budget = limits.get("budget_usd", case.special.get("budget_usd"))
    if budget is not None and float(budget) < 0:
        raise UsageError(f"budget_usd = {budget!r} must not be negative.")
    return program.MixProblem(demand, tuple(supplies), None if budget is None else float(budget), team), rents


def pure_rows(problem: program.MixProblem, pure: Mapping[str, float | None]) -> list[shape.Pure]:
    """Return what each way alone would cost, or why it cannot carry the demand."""
    return [
        {"option": name, "cost_usd": cost, "note": "" if cost is not None else _cannot(problem, name)}
        for name, cost in pure.items()
    ]


def plan_rows(problem: program.MixProblem, solved: program.Solution) -> list[shape.PlanRow]:
    """Return what to sign, and when: one row per signing, one per supply for its use, one for the people."""
    rows: list[shape.PlanRow] = []
    people = sum(solved.fixed_usd.values())
    for supply in problem.supplies:
        if supply.committed:
            signed = solved.units[supply.name]
            rows += [_signing(problem, supply, k, float(signed[k])) for k in np.nonzero(signed)[0].tolist()]
            people -= float(np.dot(supply.unit_usd, signed))
        used = solved.used_gpus[supply.name] > program.TOLERANCE
        if used.any():
            name = f"use of {supply.name}" if supply.committed else supply.name
            peak, first = float(solved.used_gpus[supply.name].max()), int(np.argmax(used)) + 1
            rows.append(_row(name, solved.use_usd[supply.name], gpus=peak, from_month=first, months=int(used.sum())))
    if people > program.TOLERANCE:
        rows.append(_row("people who run the owned servers", people))
    return rows


def _signing(problem: program.MixProblem, supply: program.MixSupply, k: int, units: float) -> shape.PlanRow:
    return _row(
        supply.name,
        units * float(supply.unit_usd[k]),
        gpus=units * supply.unit_gpus,
        from_month=k + 1 + supply.lead_months,
        signed_in_month=k + 1,
        months=min(supply.term_months, problem.months - k - supply.lead_months),
        capital_usd=units * float(supply.unit_capital_usd[k]),
    )


def _row(
    option: str,
    cost_usd: float,
    *,
    gpus: float | None = None,
    from_month: int | None = None,
    signed_in_month: int | None = None,
    months: int | None = None,
    capital_usd: float = 0.0,
) -> shape.PlanRow:
    return {
        "option": option,
        "gpus": gpus,
        "from_month": from_month,
        "signed_in_month": signed_in_month,
        "months": months,
        "cost_usd": cost_usd,
        "capital_usd": capital_usd,
    }


def month_rows(problem: program.MixProblem, solved: program.Solution, rate: float) -> list[shape.MixMonth]:
    """Return demand, use and idle commitments by month, and what one more GPU of demand would cost then."""
    demand_value = solved.marginal["demand"]
    rows = []
    for month in range(problem.months):
        used = {f"{s.name}_gpus": float(solved.used_gpus[s.name][month]) for s in problem.supplies}
        idle = sum(float(held[month] - solved.used_gpus[name][month]) for name, held in solved.capacity_gpus.items())
        value = float(np.asarray(demand_value)[month]) * (1 + rate) ** (month + 1)
        row = {"month": month + 1, "demand_gpus": float(problem.demand_gpus[month]), **used}
        rows.append(cast(shape.MixMonth, row | {"idle_gpus": idle, "marginal_usd_per_gpu_month": value}))
    return rows


def cash_rows(case: OwnershipCase, problem: program.MixProblem, solved: program.Solution) -> list[shape.MixCash]:
    """Return the cash beside rent by month: servers from order to sale, energy by use, people, services of rent."""
    ratio = (1 + rate_of(case)) ** (np.arange(problem.months) + 1.0)  # present values to the money of their month
    servers, energy, people = np.zeros(problem.months + 1), np.zeros(problem.months), np.zeros(problem.months)
    for supply in (entry for entry in problem.supplies if entry.name == OWN):
        orders = solved.units[supply.name] * supply.unit_gpus
        servers = server_cash(case, orders, supply.lead_months, supply.term_months)
        energy = solved.used_gpus[supply.name] * supply.use_usd * ratio
        if problem.team:
            people = program.team_fte(problem.team, supply, solved.units[supply.name]) * problem.team.fte_usd * ratio
    rented = sum(solved.used_gpus[supply.name] for supply in problem.supplies if supply.name != OWN)
    paid = np.column_stack((energy, people, rented * np.full(problem.months, services_usd(case))))
    rows = zip(servers.tolist(), [[0.0] * 3, *paid.tolist()], strict=True)
    return [
        {
            "month": month,
            "servers_usd": bought,
            "energy_usd": energy_usd,
            "people_usd": people_usd,
            "services_usd": services_usd,
        }
        for month, (bought, (energy_usd, people_usd, services_usd)) in enumerate(rows)
    ]


def marginal_rows(solved: program.Solution) -> list[shape.Marginal]:
    """Return the constraints that bind, with the largest value of each and where it stands."""
    notes = {
        "demand": "one more GPU of demand costs at most, in month {}",
        "capacity": "one more GPU would save at most, in month {}",
        "limit": "one GPU more would save at most, in month {}",
    }
    rows: list[shape.Marginal] = []
    for name, values in solved.marginal.items():
        series = np.asarray(values)
        if series.size and float(series.max()) > program.TOLERANCE:
            at = int(series.argmax()) + 1
            note, months = notes[name.split()[-1]].format(at), int((series > program.TOLERANCE).sum())
            worth = float(series.max())
            rows.append({"constraint": name, "usd_per_gpu_month": worth, "months_binding": months, "note": note})
    return rows


def _cannot(problem: program.MixProblem, name: str) -> str:
    supply = next(entry for entry in problem.supplies if entry.name == name)
    if supply.lead_months:
        return f"cannot carry the demand alone: nothing works before month {supply.lead_months + 1}"
    return "cannot carry the demand alone: its limit is below the demand, or the budget too small"


def _paid(case: OwnershipCase, solved: program.Solution, rents: list[Rent]) -> list[shape.SupplyRow]:
    """Return the ways to rent with the layers of their prices, and what the same credits pay of each in this mix."""
    priced_rents = [rent for rent in rents if rent.offer]
    gpus = [solved.capacity_gpus.get(rent.name, solved.used_gpus[rent.name]) for rent in priced_rents]
    bills = [
        held * monthly_usd(case, rent, held.size) * rent.stretch_ratio
        for rent, held in zip(priced_rents, gpus, strict=True)
    ]
    offers = [rent.offer for rent in priced_rents if rent.offer]
    paid = credited_by_month(case.credits, offers, np.array(bills), case.as_of) if case.credits and priced_rents else ()
    drawn = dict(zip((rent.name for rent in priced_rents), zip_longest(bills, paid, fillvalue=0.0), strict=True))
    return [_supply_row(rent, *drawn.get(rent.name, (0.0, 0.0))) for rent in rents]


def _supply_row(rent: Rent, bill: Any, credits_usd: float) -> shape.SupplyRow:
    row = {name: getattr(rent, name) for name in rent.__struct_fields__ if name != "offer"}
    row["max_gpus"] = None if np.isinf(rent.max_gpus) else rent.max_gpus
    return cast(shape.SupplyRow, {**row, **layered(rent.offer, float(np.sum(bill)), credits_usd)})


def lead(problem: program.MixProblem, solved: program.Solution, plan: list[shape.PlanRow], saving: float | None) -> str:
    """Say the plan in one or two sentences; a wide gap comes first."""
    parts: dict[str, float] = {}
    for row in plan:
        if row["signed_in_month"] is not None and row["gpus"] is not None:
            parts[row["option"]] = parts.get(row["option"], 0.0) + row["gpus"]
    kinds = {name: "owned" if name == "own" else f"of {name.replace('_', ' ')}" for name in parts}
    signed = ", ".join(f"{gpus:g} GPUs {kinds[name]} in all" for name, gpus in parts.items()) or "nothing committed"
    wide = solved.gap_fraction > SAID_GAP_FRACTION
    text = f"Not proven: a mix up to {solved.gap_fraction:.1%} cheaper may exist. " if wide else ""
    text += f"{'This' if wide else 'The cheapest'} mix for {problem.months} months costs ${solved.cost_usd:,.0f}"
    text += f" (present value): {signed}."
    if saving is not None:
        text += f" That is ${saving:,.0f} less than" if saving >= 0.5 else " That equals"
        text += " the best single option."
    return text
