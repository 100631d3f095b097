"""The cheapest mix of supplies for a demand by month, as a payload."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.common import cited, frame
from gpucost.catalog import Catalog
from gpucost.errors import CheckFailedError, NothingFitsError, UsageError
from gpucost.gate import repeated
from gpucost.market.contract_ends import months_until
from gpucost.market.supply import Providers
from gpucost.market.terms import credited_by_month
from gpucost.money import mix as program
from gpucost.money.mix import Crew, MixSupply, Team
from gpucost.money.price_paths import read_months
from gpucost.options import OPTIONS
from gpucost.ownership import fleet
from gpucost.ownership.alternatives import contract_end, price_by_use, scalar
from gpucost.ownership.answer import credit_remarks, ending_warnings
from gpucost.ownership.assemble import OwnershipCase, assemble
from gpucost.ownership.fleet import ChosenMix, Ledger, Rent, Rented
from gpucost.ownership.offers import layered
from gpucost.ownership.plan import PlanFile
from gpucost.ownership.statements import exchange_rates, worth_in_currency
from gpucost.units import parse_fraction, share_in

# --- What capacity can be had, as supplies of the mix: owned servers from the plan, and rent by its terms.

Array = NDArray[np.float64]

OWN, BRIDGE = "own", "bridge"
_RESERVED_NAMES = (OWN, BRIDGE, "demand", "idle")  # what is bought, and the columns of a month
_SHORTEST_OWNERSHIP_MONTHS = 12  # assumed: nobody buys servers to resell them within a year
_SPOT_SHARE = 0.3  # assumed: of each month's demand, what spot may carry


def read_entries(case: OwnershipCase) -> list[Rent]:
    """Make the supplies of a plan, as they were read, each of a name of its own."""
    rents: list[Rent] = []
    for entry in case.special.get("supply") or ():
        terms = {key: value for key, value in entry.items() if key not in ("valid_until", "renewal_usd_per_gpu_hour")}
        rent = Rent(**{"name": entry["kind"], **terms})
        # When its price ends, and what follows: the stated renewal, else rent by use at its price; a contract without a
        # renewal ends with its price.
        until, renewal = entry.get("valid_until"), entry.get("renewal_usd_per_gpu_hour")
        if until is not None:
            day = date.fromisoformat(str(until))
            if day < case.start:
                raise UsageError(f"supply {rent.name!r}: it ends on {day}, before the plan begins on {case.start}.")
            rent = replace(rent, until_months=months_until(day, case.start))
            if renewal is not None:
                usd = float(renewal)
                rent = replace(rent, after_usd_per_gpu_hour=usd, after_note="renewed", renewed=True)
            elif rent.committed:
                rent = replace(rent, after_note="nothing")
            else:
                rent = replace(rent, after_usd_per_gpu_hour=price_by_use(case), after_note="rent by use")
        elif renewal is not None:
            raise UsageError(f"supply {rent.name!r}: a price is stated for later, and no end. Give one (until).")
        rule = OPTIONS[rent.kind]
        if rule.take_or_pay and rent.term_months < 1:
            raise UsageError(f"supply {rent.name!r}: {rule.label} needs term_months of at least 1.")
        unheeded = [name for name in _OF_TERMS if getattr(rent, name)]
        if not rule.take_or_pay and unheeded:
            raise UsageError(
                f"supply {rent.name!r}: {rule.label} is paid by use and has no {unheeded[0]}. Leave it out,"
                " or give another `kind`."
            )
        rents.append(rent)
    names = [rent.name for rent in rents]
    for name in names:
        if name in _RESERVED_NAMES:
            raise UsageError(
                f"supply {name!r} names something else in every mix. Give each supply a `name` of its own."
            )
    for name in repeated(names):
        raise UsageError(f"supply {name!r} is given twice. Give each supply a `name` of its own.")
    return rents


_OF_TERMS = ("term_months", "upfront_fraction", "lead_time_months")  # what only a commitment has
_AS_CHOSEN = ("upfront_fraction", "stretch_ratio", "note", "source_id", "offer")


def _from_market(case: OwnershipCase, spot_share: float, max_on_demand: float) -> list[Rent]:
    """Return the rental price of the case as on demand, and the catalog's other terms."""
    node = case.number("gpus_per_node")
    base, price = case.assumptions["rent_usd_per_gpu_hour"], case.number("rent_usd_per_gpu_hour")
    provenance: dict[str, Any] = {"note": base.note, "source_id": base.source_id, "offer": case.rent_offer}
    stretch = case.number("rent_stretch_ratio")
    provenance |= {**_end_of_rent(case), "indexed": True}
    rents = [Rent("on_demand", "on_demand", price, max_gpus=max_on_demand, stretch_ratio=stretch, **provenance)]
    for choice in case.choices:
        spot = OPTIONS[choice.option].interruptible
        rent = Rent(choice.name, choice.option, choice.usd_per_gpu_hour, choice.term_months)
        chosen_terms = {name: getattr(choice, name) for name in _AS_CHOSEN}
        # Spot is taken GPU by GPU and may carry a part of the demand alone; the other terms are signed by the node.
        share, unit = (spot_share, 1.0) if spot else (1.0, node)
        rents.append(replace(rent, max_share_fraction=share, unit_gpus=unit, **chosen_terms))
    return rents


def _end_of_rent(case: OwnershipCase) -> dict[str, Any]:
    """Return when the price of the rent as asked for ends, and what follows."""
    until = case.number("rent_until_months")
    if not until:
        return {}
    after, basis = case.assumptions["rent_after_usd_per_gpu_hour"].value, case.assumptions["rent_after_basis"].value
    if basis == "none":
        return {"until_months": until, "after_note": "nothing"}
    usd = float(after) if isinstance(after, (int, float)) else case.number("rent_usd_per_gpu_hour")
    note = "renewed" if basis == "renewed" else "rent by use"
    return {"until_months": until, "after_usd_per_gpu_hour": usd, "after_note": note}


def rented(case: OwnershipCase, rent: Rent, demand: Array) -> MixSupply:
    """Return a way to rent as a supply, priced by the formulas of the comparison."""
    months = demand.size
    # A share of the demand is a limit that moves with it; a number of GPUs is one that does not.
    share = rent.max_share_fraction * demand if rent.max_share_fraction < 1 else np.full(months, np.inf)
    most = np.minimum(float(rent.max_gpus), share).astype(np.float64)
    ended = rent.until_months is not None and rent.after_usd_per_gpu_hour is None
    if ended and not rent.committed:  # what has ended cannot be used
        assert rent.until_months is not None
        most = np.where(np.arange(1, months + 1) <= rent.until_months, most, 0.0)
    ratio = _worth_by_month(case, months)
    services = fleet.services_per_gpu(case, months)[1:] * ratio
    if not rent.committed:
        hours = fleet.by_use(case, rent, np.ones(months))[1:] * ratio
        return MixSupply(rent.name, False, hours + services, most)
    flows = fleet.contracts(case, rent, months, np.arange(months)) * rent.unit_gpus
    # the month of signing is paid at its start, undiscounted but for the tax that it saves
    unit = flows @ np.append(scalar(fleet.rates(case, months), "after_tax_ratio"), ratio)
    wait, term = int(rent.lead_time_months), int(rent.term_months)
    # A contract without a renewal works until its price ends, in whole months.
    last = int(rent.until_months + 1e-9) if ended and rent.until_months is not None else None
    nothing = np.zeros(months)
    return MixSupply(rent.name, True, services, most, rent.unit_gpus, unit, nothing, wait, term, ends_month=last)


def _worth_by_month(case: OwnershipCase, months: int) -> Array:
    """Return the present value, after tax, of a dollar in each month."""
    values = fleet.rates(case, months)
    return np.asarray(fleet.line(values, "discount_ratio")[0][1:] * scalar(values, "after_tax_ratio"))


def owned(
    case: OwnershipCase, demand: Array, fleet_gpus: float, life_months: int, max_gpus: float
) -> tuple[MixSupply, Team]:
    """Return owned servers as a supply: purchase, fixed costs and resale per server; energy by use; people apart.

    Where losses are carried forward, the program takes tax as if it were saved at once; the price of the mix does not,
    and a second search takes none as saved.
    """
    months, node = demand.size, case.number("gpus_per_node")
    if [case.assumptions[name].value for name in ("financing", "loan_repayment")] == ["loan", "sculpted"]:
        raise UsageError(
            "loan_repayment = 'sculpted': a mix buys at several times, and the cash of each purchase is not its own."
            " Ask gpucost tco, or leave it out for level payments."
        )
    lead = case.number("lead_time_months")
    whole = int(lead)
    at_once = {"loss_basis": "at_once"}
    orders = np.arange(months)
    # The cost of a unit is that of an idle one, of use the energy that it adds: the program needs them apart. Either is
    # evaluated for the whole fleet, whose network's tier it has, and shared out.
    idle = fleet.purchases(case, months, fleet_gpus, orders, life_months, np.zeros(months), **at_once)
    unit = fleet.line(idle, "own_value_usd").sum(axis=1) * node / fleet_gpus
    paid = [np.broadcast_to(np.ravel(idle[name]), months) for name in ("capex_usd", "loan_usd", "lease_usd")]
    # The budget is of what the owner pays, not of what a lender or a lessor does.
    capital = np.asarray((paid[0] - paid[1] - paid[2]) * node / fleet_gpus)
    ratio = _worth_by_month(case, months)
    # The energy of idle and of busy servers: their difference is what a GPU in use adds.
    energies = [
        fleet.line(
            fleet.purchases(case, months, fleet_gpus, [0], months + 1, np.full(months, use), lead_time_months=0.0),
            "own_energy_usd",
        )[0][1:]
        for use in (0.0, 1.0)
    ]
    use_usd = (energies[1] - energies[0]) / fleet_gpus * ratio
    # In a plan that is shorter whatever is left of it is long enough.
    fewest = min(_SHORTEST_OWNERSHIP_MONTHS, max(1, months - whole))
    supply = MixSupply(
        OWN,
        True,
        use_usd,
        np.full(months, max_gpus),
        node,
        unit,
        capital,
        whole,
        life_months,
        fewest,
        lead_fraction=lead - whole,
    )
    wages = fleet.wages_usd(case, months) * ratio
    number = case.number
    per_gpu = number("staff_fte_per_1000_gpus") / 1000
    return supply, Team(OWN, number("staff_minimum_fte"), per_gpu, wages, number("staff_step_fte"))


def bridging(case: OwnershipCase) -> Rent:
    """Return the rent that carries the demand until an order arrives, as the comparison takes it."""
    bridge = case.assumptions["bridge_usd_per_gpu_hour"].value
    rent = case.number("rent_usd_per_gpu_hour")
    price = float(bridge) if isinstance(bridge, (int, float)) and bridge > 0 else rent
    stretch = case.number("rent_stretch_ratio")
    stated = price != rent
    # A bridge at a price of its own has no end; at that of the rent as asked for it ends with it.
    end = {} if stated else _end_of_rent(case)
    return Rent(BRIDGE, "on_demand", price, stretch_ratio=stretch, supported_usd_per_gpu_hour=rent, indexed=True, **end)


# --- The cheapest mix for a demand by month, as a payload.

MOST_MONTHS = 120
_PROVEN_GAP_FRACTION = 1e-4  # searched for unless another is asked for
_CLEARLY = 1.02  # so much dearer by the program is dearer by the cash flows, too
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


class PricedMix(NamedTuple):
    """A mix that the program chose, and its price by the formulas of the comparison."""

    problem: program.MixProblem
    solved: program.Solution
    ledger: Ledger


_MARGINAL_NOTES = {  # what one more GPU is worth, by the kind of the constraint
    "demand": "each extra GPU of demand in month {} costs up to",
    "capacity": "each extra GPU in month {} saves up to",
    "limit": "each extra GPU in month {} saves up to",
}


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
    # The comparison that prices the mix is one of a cluster of the peak: its server, profile and offers.
    peak = float(np.ceil(max(demand.max(), 1.0)))
    case = assemble(catalog, plan, {"gpus": peak, **flags, "months": float(demand.size)}, special)
    # the ways to rent are the plan's, else the market's
    stated_share, most = limits.get("spot_share"), limits.get("max_on_demand")
    share = parse_fraction(_SPOT_SHARE if stated_share is None else stated_share, "spot share")
    rents = read_entries(case) or _from_market(case, share, np.inf if most is None else float(most))
    (problem, solved, ledger), alone = _cheapest(case, rents, demand, limits)
    # Every way alone is priced on the same cash flows, so that the saving is not one of the program.
    ids = {entry.source_id for entry in case.assumptions.values()} | {rent.source_id for rent in rents}
    pure = {name: None if option is None else option.ledger.cost_usd for name, option in alone.items()}
    best_pure = min((cost for cost in pure.values() if cost is not None), default=None)
    plan_ = plan_rows(problem, solved, ledger)
    supplies = _supplies(case, ledger, rents, Providers(catalog.rows("providers")))
    ends: list[shape.ContractEnd] = []
    for rent in rents:
        then, then_usd = rent.after_note or "rent by use", rent.after_usd_per_gpu_hour
        end = contract_end(case, rent.name, rent.until_months, rent.usd_per_gpu_hour, then, then_usd)
        if end is not None:
            ends.append(end)
    currency: shape.MixCurrency | None = None
    rates = exchange_rates(case)
    if rates is not None:
        cost, wacc, basis = worth_in_currency(
            case, rates, ledger.paid_in_cash(), ledger.discount, ledger.financing_worth
        )
        currency = {
            "currency": str(case.special["currency"]).upper(),
            "usd_per_unit": float(rates[0]),
            "usd_per_unit_on": str(case.special.get("usd_per_unit_on") or "not stated"),
            "cost": cost,
            "wacc_fraction": wacc,
            "discounting": basis,
        }
    unproven = []
    if solved.gap_fraction > _PROVEN_GAP_FRACTION:
        unproven = [f"the search stopped at its limit: a cheaper mix may exist, by at most {solved.gap_fraction:.2%}"]
    leads = {supply.name: supply.lead_months for supply in problem.supplies}
    pure_rows: list[shape.Pure] = []
    for name, alone_usd in pure.items():
        note = ""
        if alone_usd is None and leads[name]:
            note = f"cannot carry the demand alone: nothing works before month {leads[name] + 1}"
        elif alone_usd is None:
            note = "cannot carry the demand alone: its limit is below the demand, or the budget too small"
        pure_rows.append({"option": name, "cost_usd": alone_usd, "note": note})
    # Demand, use and idle commitments by month, and what one more GPU of demand would cost then: from the present value
    # back to the money of the month, which is paid at its end.
    monthly_rate, demand_value = scalar(fleet.rates(case, 1), "monthly_rate_fraction"), solved.marginal["demand"]
    months: list[shape.MixMonth] = []
    for month in range(problem.months):
        used_gpus = {f"{s.name}_gpus": float(solved.used_gpus[s.name][month]) for s in problem.supplies}
        idle = sum(float(gpus[month] - solved.used_gpus[name][month]) for name, gpus in solved.capacity_gpus.items())
        value = float(np.asarray(demand_value)[month]) * (1 + monthly_rate) ** (month + 1)
        fields = {"month": month + 1, "demand_gpus": float(problem.demand_gpus[month]), **used_gpus}
        months.append(cast(shape.MixMonth, fields | {"idle_gpus": idle, "marginal_usd_per_gpu_month": value}))
    # The constraints that bind, with the largest value of each and where it stands.
    marginal_rows: list[shape.Marginal] = []
    for name, values in solved.marginal.items():
        series = np.asarray(values)
        if series.size and float(series.max()) > program.TOLERANCE:
            note = _MARGINAL_NOTES[name.split()[-1]].format(int(series.argmax()) + 1)
            worth, binding = float(series.max()), int((series > program.TOLERANCE).sum())
            marginal_rows.append(
                {"constraint": name, "usd_per_gpu_month": worth, "months_binding": binding, "note": note}
            )
    cash = ledger.in_cash()
    cash["total_usd"] = np.sum([*cash.values()], axis=0)
    cash_rows = zip(*(flows.tolist() for flows in cash.values()), strict=True)
    used = {name for name, gpus in solved.used_gpus.items() if gpus.any()}
    saving = None if best_pure is None else max(0.0, best_pure - ledger.cost_usd)  # the search takes the single one too
    return {
        "kind": "mix",
        **frame(request, catalog.as_of, catalog.version),
        "lead": lead(problem, solved, ledger.cost_usd, plan_, saving),
        "said": [_EXPLAINED, *([_BENT] if case.bent else [])],
        "cost_usd": ledger.cost_usd,
        "plan": plan_,
        "pure": pure_rows,
        "best_pure_usd": best_pure,
        "saving_usd": saving,
        "months": months,
        "cash_by_month": [
            cast(shape.MixCash, {"month": month, **dict(zip(cash, row, strict=True))})
            for month, row in enumerate(cash_rows)
        ],
        "marginal_values": marginal_rows,
        "gap_fraction": solved.gap_fraction,
        "supplies": supplies,
        "contract_ends": ends,
        "currency": currency,
        "assumptions": [entry.as_dict() for entry in case.assumptions.values()],
        "warnings": ending_warnings(case, [row for row in ends if row["option"] in used])
        + [text for text in case.warnings if "whole servers" not in text]
        + unproven
        + credit_remarks(supplies, "what it is rented for"),
        "sources": cited({name: catalog.source(name) for name in ids if name}, sorted(ids)),
    }


def _cheapest(
    case: OwnershipCase, rents: list[Rent], demand: Array, limits: Mapping[str, Any]
) -> tuple[PricedMix, dict[str, PricedMix | None]]:
    """Return the cheapest mix and each way alone, all priced by the formulas of the comparison.

    Fleets on each tier of the network are searched apart, as a larger one pays more per GPU for all of it.
    """
    # From the largest fleet down: what a smaller one may save is the dearer tier, and its ways to rent are the same.
    owning = limits.get("own", case.special.get("own", True))
    sizes = [0.0]
    if owning:
        # The largest fleet on each tier of the network whose GPUs cost less than those of the largest of all.
        node = case.number("gpus_per_node")
        peak = float(np.ceil(max(demand.max(), 1.0) / node) * node)
        tiers = [node, case.number("network_1tier_limit_gpus"), case.number("network_2tier_limit_gpus")]
        sizes = [float(np.floor(size / node) * node) for size in tiers if node <= size < peak]
        per_gpu = {size: fleet.network_usd_per_gpu(case, size) for size in (*sizes, peak)}
        sizes = [size for size in sizes if per_gpu[size] < per_gpu[peak]] + [peak]
    mixes: list[PricedMix] = []
    alone: dict[str, PricedMix | None] = {}
    for number, size in enumerate(reversed(sizes)):
        problem = problem_of(case, rents, demand, limits, size, is_largest=number == 0)
        # Units that need not be whole cost less than any mix: where even those are dearer, no search is needed.
        hopeless = number > 0 and program.least_usd(problem) > _CLEARLY * mixes[0].solved.cost_usd
        try:
            solved, single = _searched(problem, limits, smaller=number > 0, hopeless=hopeless)
        except (NothingFitsError, CheckFailedError):
            if number == 0:
                raise
            continue
        if solved is not None:
            mixes.append(_priced(case, rents, problem, solved))
        options = {
            name: None if option is None else _priced(case, rents, problem, option) for name, option in single.items()
        }
        for name, option in options.items():
            before = alone.get(name)
            if before is None or (option is not None and option.ledger.cost_usd < before.ledger.cost_usd):
                alone[name] = option
        carrying = [option for option in options.values() if option is not None]
        best = min(carrying, key=lambda option: option.ledger.cost_usd, default=None)
        # The program's prices are not quite those of the cash flows: a single way may be cheaper by these.
        if solved is not None and best is not None and best.ledger.cost_usd < mixes[-1].ledger.cost_usd:
            bound = solved.cost_usd * (1 - solved.gap_fraction)
            mixes.append(_priced(case, rents, problem, program.from_single(problem, best.solved, bound)))
    if case.bent:  # the other end of what losses are worth
        untaxed = replace(
            case,
            assumptions={**case.assumptions, "tax_basis": replace(case.assumptions["tax_basis"], value="before")},
            shaped={},
        )
        problem = problem_of(untaxed, rents, demand, limits, sizes[-1])
        with suppress(NothingFitsError, CheckFailedError):
            mixes.append(_priced(case, rents, problem, program.solve(problem, _PROVEN_GAP_FRACTION)))
    return min(mixes, key=lambda mix: mix.ledger.cost_usd), alone


def _priced(case: OwnershipCase, rents: list[Rent], problem: program.MixProblem, solved: program.Solution) -> PricedMix:
    """Price what the program chose on the formulas of the comparison."""
    nothing = np.zeros(problem.months)
    # Orders are counted in GPUs; what is rented by use has no units that are signed.
    bought = next((supply for supply in problem.supplies if supply.name == OWN), None)
    orders = nothing if bought is None else solved.units.get(OWN, nothing) * bought.unit_gpus
    units = {supply.name: supply.unit_gpus for supply in problem.supplies}
    rented = tuple(
        Rented(rent, solved.used_gpus[rent.name], solved.units.get(rent.name, nothing) * units.get(rent.name, 1.0))
        for rent in (*rents, bridging(case))
        if rent.name in solved.used_gpus
    )
    life = problem.months if bought is None else bought.term_months
    chosen = ChosenMix(orders, life, solved.used_gpus.get(OWN, nothing), rented)
    return PricedMix(problem, solved, fleet.priced(case, chosen, problem.demand_gpus))


_EXPLAINED = (
    "Present values by the formulas of `gpucost tco`; whole units are optimal within the stated gap. Marginal values "
    "are those of the linear program with the whole numbers fixed at the optimum: what one more GPU of demand costs, "
    "or one more GPU of capacity saves, in that month, without signing other units."
)


_BENT = (
    "Losses are carried forward, which no linear program sees: mixes are searched with their tax saved at once, and"
    " with none saved, and the cheaper one by the cash flows is taken. One in between may be cheaper still, and the gap"
    " is that of the search."
)


def _searched(
    problem: program.MixProblem, limits: Mapping[str, Any], smaller: bool = False, hopeless: bool = False
) -> tuple[program.Solution | None, dict[str, program.Solution | None]]:
    """Search to the gap asked for; a mix that may be much too dear is refused.

    Of a `smaller` fleet beside the largest only owning is searched alone: the other ways stay as they are. A `hopeless`
    one costs more than the largest whatever is signed, and is searched no further.
    """
    gap_text = limits.get("gap")
    gap = _PROVEN_GAP_FRACTION if gap_text is None else parse_fraction(gap_text, "gap")
    limit_s = limits.get("time_limit_s")
    if limit_s is not None and not 0 < float(limit_s) < np.inf:
        raise UsageError(f"time_limit_s = {limit_s!r} must be positive. Leave it out for no time limit.")
    seconds = None if limit_s is None else float(limit_s)
    if smaller:
        bought = problem.supplies[0]
        solved = None if hopeless else program.solve(problem, gap, seconds)
        return solved, {OWN: program.single(problem, bought, gap)}
    solved, pure = program.cheapest(problem, gap, seconds)
    if gap < _PROVEN_GAP_FRACTION < solved.gap_fraction:  # a proof that is out of reach may cost the mix itself
        usual, _ = program.cheapest(problem, _PROVEN_GAP_FRACTION, seconds)
        solved = min(solved, usual, key=lambda solution: solution.gap_fraction)
    if solved.gap_fraction > max(REFUSED_GAP_FRACTION, gap):
        raise CheckFailedError(
            f"the search ended{'' if seconds else f' after {program.MOST_NODES} branches'}, and a mix"
            f" {solved.gap_fraction:.1%} cheaper may exist: too large a gap to act on."
            f" {'Give a longer --time-limit, or accept' if seconds else 'Accept'} it with"
            f" --gap {np.ceil(solved.gap_fraction * 100):g}%, or ask for fewer months or supplies."
        )
    return solved, pure


def problem_of(
    case: OwnershipCase,
    rents: Sequence[Rent],
    demand: Array,
    limits: Mapping[str, Any],
    fleet_gpus: float,
    is_largest: bool = True,
) -> program.MixProblem:
    """Turn a case and a demand into the program, for fleets of so many owned GPUs at most."""
    supplies = [rented(case, rent, demand) for rent in rents]
    team, bridge = None, None
    if fleet_gpus:
        # A fleet below the largest keeps to its tier of the network; the largest to what is stated alone.
        stated = limits.get("max_owned_gpus", case.special.get("max_owned_gpus"))
        most = np.inf if stated is None else float(stated)
        life = int(limits.get("life_months") or 60)
        supply, team = owned(case, demand, fleet_gpus, life, most if is_largest else min(most, fleet_gpus))
        supplies.insert(0, supply)
        # The wait for an order is bridged by rent that only an order allows; at its own price it is also a way to
        # rent.
        if case.number("lead_time_months"):
            bridge = replace(rented(case, bridging(case), demand), bridges=OWN)
            if case.assumptions["bridge_usd_per_gpu_hour"].value:
                supplies.append(bridge)
    # People and a control plane that renting needs, however much is rented.
    crew = None
    ratio = _worth_by_month(case, demand.size)
    control_usd = case.number("rent_control_plane_usd_per_month") * ratio
    share = case.number("rent_staff_ratio")
    people = case.number("staff_minimum_fte"), case.number("staff_fte_per_1000_gpus") / 1000
    if control_usd.any() or (share and any(people)):
        wages = share * fleet.wages_usd(case, demand.size) * ratio
        crew = Crew(OWN, *people, wages, control_usd, case.number("staff_step_fte"))
    budget = limits.get("budget_usd", case.special.get("budget_usd"))
    if budget is not None and float(budget) < 0:
        raise UsageError(f"budget_usd = {budget!r} must not be negative.")
    return program.MixProblem(
        demand,
        tuple(supplies),
        None if budget is None else float(budget),
        team,
        crew,
        bridge,
    )


def plan_rows(problem: program.MixProblem, solved: program.Solution, ledger: Ledger) -> list[shape.PlanRow]:
    """Return what to sign, and when: one row per signing, one per supply for its use, one for the people."""
    rows: list[shape.PlanRow] = []
    for supply in problem.supplies:
        name = supply.name
        if name == OWN:
            rows += [
                _signing(problem, supply, k, float(solved.units[name][k]), ledger.purchase_worth(k), ledger.capital[k])
                for k in ledger.purchases
            ]
        elif supply.committed:
            rows += [
                _signing(problem, supply, k, float(solved.units[name][k]), ledger.worth(flows), 0.0)
                for k, flows in ledger.contracts.get(name, {}).items()
            ]
        used = solved.used_gpus[name] > program.TOLERANCE
        # Beside what is signed, use costs: energy of owned servers, services and hours of rented ones.
        if used.any():
            cost = ledger.worth(ledger.energy if name == OWN else ledger.services[name])
            if name in ledger.by_use:
                cost += ledger.worth(ledger.by_use[name])
            label = f"use of {name}" if supply.committed else name
            peak, first = float(solved.used_gpus[name].max()), int(np.argmax(used)) + 1
            rows.append(_row(label, cost, gpus=peak, from_month=first, months=int(used.sum())))
    for label, cost in (
        ("staff who run the owned servers", ledger.worth(ledger.people)),
        ("staff and services for rented capacity", ledger.worth(ledger.crew)),
        ("income tax, with losses carried forward", ledger.tax_worth),
    ):
        if abs(cost) > program.TOLERANCE:
            rows.append(_row(label, cost))
    return rows


def _signing(
    problem: program.MixProblem,
    supply: program.MixSupply,
    k: int,
    units: float,
    cost_usd: float,
    capital_usd: float,
) -> shape.PlanRow:
    return _row(
        supply.name,
        cost_usd,
        gpus=units * supply.unit_gpus,
        from_month=k + 1 + supply.lead_months,
        signed_in_month=k + 1,
        months=min(supply.term_months, problem.months - k - supply.lead_months),
        capital_usd=capital_usd,
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


def _supplies(case: OwnershipCase, ledger: Ledger, rents: list[Rent], sellers: Providers) -> list[shape.SupplyRow]:
    """Return the ways to rent with the layers of their prices, and what the same credits pay of each in this mix."""
    offers = [rent.offer for rent in rents if rent.offer]
    bills: dict[str, Array] = {}  # what is paid to a seller by month; what is due at a month's start belongs to it
    for rent in rents:
        if rent.offer:
            signed = [*ledger.contracts.get(rent.name, {}).values()]
            flows = sum(signed, ledger.by_use.get(rent.name, np.zeros(ledger.months + 1)))
            bills[rent.name] = np.append(flows[0] + flows[1], flows[2:])
    credits: dict[str, float] = {}
    if case.credits and offers:
        paid = credited_by_month(case.credits, offers, np.array([*bills.values()]), case.as_of)
        credits = dict(zip(bills, paid, strict=True))
    rows: list[shape.SupplyRow] = []
    for rent in rents:
        fields = [name for name in rent.__struct_fields__ if name in shape.SupplyRow.__annotations__]
        row: dict[str, Any] = {name: getattr(rent, name) for name in fields}
        row["max_gpus"] = None if np.isinf(rent.max_gpus) else rent.max_gpus
        row |= layered(rent.offer, float(np.sum(bills.get(rent.name, 0.0))), credits.get(rent.name, 0.0))
        if rent.offer:
            row["seller"] = sellers.name(rent.offer.provider)
        rows.append(cast(shape.SupplyRow, row))
    return rows


def lead(
    problem: program.MixProblem,
    solved: program.Solution,
    cost_usd: float,
    plan: list[shape.PlanRow],
    saving: float | None,
) -> str:
    """Say the plan in one or two sentences; a wide gap comes first."""
    # Signings of one supply at several times are one figure here; the plan has each.
    parts: dict[str, float] = {}
    for row in plan:
        if row["signed_in_month"] is not None and row["gpus"] is not None:
            parts[row["option"]] = parts.get(row["option"], 0.0) + row["gpus"]
    kinds = {name: "owned" if name == "own" else f"of {name.replace('_', ' ')}" for name in parts}
    signed = ", ".join(f"{gpus:g} GPUs {kinds[name]} in all" for name, gpus in parts.items()) or "nothing committed"
    wide = solved.gap_fraction > SAID_GAP_FRACTION
    text = f"Not proven: a mix up to {solved.gap_fraction:.1%} cheaper may exist. " if wide else ""
    text += f"{'This' if wide else 'The cheapest'} mix for {problem.months} months costs ${cost_usd:,.0f}"
    text += f" (present value): {signed}."
    if saving is not None:
        text += f" That is ${saving:,.0f} less than" if saving >= 0.5 else " That equals"
        text += " the best single option."
    return text
