"""What capacity can be had, as supplies of the mix: owned servers from the plan, and rent by its terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import UsageError
from gpucost.gate import repeated
from gpucost.limits import limit
from gpucost.money.comparison import evaluate_months
from gpucost.money.mix import MixSupply, Team
from gpucost.options import OPTIONS
from gpucost.ownership.alternatives import monthly, scalar
from gpucost.ownership.analysis import outcomes
from gpucost.ownership.assemble import OwnershipCase
from gpucost.types import Offer

Array = NDArray[np.float64]

OWN = "own"
_TAKEN = (OWN, "demand", "idle")  # what is bought, and the columns of a month
SHORTEST_OWNERSHIP_MONTHS = 12  # assumed: nobody buys servers to resell them within a year
SPOT_SHARE = 0.3  # assumed: of each month's demand, what spot may carry


@dataclass(frozen=True, slots=True)
class Rent:
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
    known: dict[str, Any] = {"note": base.note, "source_id": base.source_id, "offer": case.rent_offer}
    rents = [Rent("on_demand", "on_demand", price, max_gpus=max_on_demand, **known)]
    for choice in case.choices:
        spot = OPTIONS[choice.option].interruptible
        rent = Rent(choice.name, choice.option, choice.usd_per_gpu_hour, choice.term_months)
        kept = {name: getattr(choice, name) for name in _AS_CHOSEN}
        share, unit = (spot_share, 1.0) if spot else (1.0, node)
        rents.append(replace(rent, max_share_fraction=share, unit_gpus=unit, **kept))
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
    found = np.zeros(months + 1)
    for k in np.nonzero(gpus)[0].tolist():
        served = min(life_months, max(1, months - k - lead_months))
        asked = {**case.values(), **_BARE, "gpus": float(gpus.sum()), "months": float(served)}
        cash = monthly(evaluate_months(asked, case.tables, served), "own_total_usd")[: served + 1]
        found[k + lead_months : k + lead_months + served + 1] += cash * gpus[k] / gpus.sum()
    return found


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
    one = evaluate_months({**case.values(), **bare, "utilisation_fraction": 1.0, "months": 1.0}, case.tables, 1)
    idle = evaluate_months({**case.values(), **bare, "months": 1.0}, case.tables, 1)
    drawn = float(monthly(one, "energy_kwh")[1] - monthly(idle, "energy_kwh")[1])
    energy = drawn / size * scalar(one, "metered_ratio")
    month = np.arange(months)
    discount = (1 + rate) ** -(month + 1.0)
    rises = (1 + case.number("electricity_escalation_fraction")) ** (month // 12)
    use = energy * case.number("electricity_usd_per_kwh") * rises * discount
    capital = np.full(months, scalar(one, "capex_usd") / size * node)
    fewest = min(SHORTEST_OWNERSHIP_MONTHS, max(1, months - lead))
    supply = MixSupply(OWN, True, use, np.full(months, max_gpus), node, unit, capital, lead, life_months, fewest)
    raised = (1 + case.number("staff_escalation_fraction")) ** (month // 12)
    pay = case.number("staff_usd_per_fte_year") / 12 * raised * discount
    return supply, Team(OWN, case.number("staff_minimum_fte"), case.number("staff_fte_per_1000_gpus") / 1000, pay)
