"""What a mix costs: its purchases and contracts on the formulas of the comparison, month by month.

Every purchase is the owned side of a comparison that begins with the plan and whose order comes later; every way to
rent is its rented side, by use or as contracts with a beginning and an end. What does not add up over purchases is
counted once for all of them: people, the network's tiers, and a tax that losses of earlier years lessen.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpucost.formula.arrays import evaluate_all
from gpucost.money import comparison, ownership, tax
from gpucost.money.comparison import evaluate_months
from gpucost.options import OPTIONS
from gpucost.ownership.alternatives import scalar
from gpucost.ownership.assemble import OwnershipCase
from gpucost.types import Offer
from gpucost.units import MONTHS_PER_YEAR

Array = NDArray[np.float64]


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
    until_months: float | None = None  # from the start, when the price ends; None where it has no end
    after_usd_per_gpu_hour: float | None = None  # price after it; None where there is nothing to use then
    after_note: str = ""  # a renewal that is stated, or where the price is from
    indexed: bool = False  # whether the floor and the cap of the rent as asked for hold for it
    renewed: bool = False  # whether a contract goes on at that price until its term is over
    supported_usd_per_gpu_hour: float | None = None  # that a support plan is a share of, where it is another price
    note: str = ""
    source_id: str = ""
    offer: Offer | None = None  # of the catalog, where the price is one

    @property
    def committed(self) -> bool:
        """Tell whether it is paid for, used or not."""
        return OPTIONS[self.kind].take_or_pay


class Rented(Struct, frozen=True):
    """GPUs of one way to rent by month: in use, and signed for."""

    rent: Rent
    used_gpus: Array
    signed_gpus: Array


class ChosenMix(Struct, frozen=True):
    """What is ordered, and what is used of it, by month."""

    orders_gpus: Array
    life_months: int
    owned_used_gpus: Array
    rented: tuple[Rented, ...] = ()


# --- The lines of the comparison that a fleet is made of.

_APART = ("own_bridge_rent_usd", "own_bridge_services_usd", "own_staff_usd", "own_energy_usd")
_PURCHASE = tuple(
    line.name for line in (*ownership.CAPITAL, *ownership.RUNNING) if line.name not in _APART
)  # of servers: from their order to their sale
_FINANCING = tuple(line.name for line in comparison.FINANCING_LINES if line.name != "own_financing_tax_usd")
_OWNED_TARGETS = (
    *_PURCHASE,
    *_FINANCING,
    "own_energy_usd",
    "own_value_usd",
    "own_deductible_usd",
    "financing_deductible_usd",
    "own_tax_usd",
    "own_financing_tax_usd",
    "in_service",
    "capex_usd",
    "loan_usd",
    "lease_usd",
)
_CONTRACT = ("rent_compute_usd", "rent_after_usd", "rent_upfront_usd", "rent_cancellation_usd", "rent_support_usd")
_PER_GPU = ("rent_storage_usd", "rent_egress_usd", "rent_licence_usd")
_FTE = tuple(line for line in ownership.SCALARS if line.name == "staff_fte")
_TIER = tuple(line for line in ownership.SCALARS if line.name == "network_usd_per_gpu")
# the tax of sums: from the deductions of a year on
_TAXED = tuple(
    line
    for line in tax.MONTHLY
    if not line.name.startswith("rent")
    and line.name
    not in {
        "kept_basis_usd",
        "first_basis_usd",
        "age_years",
        "replaced_years",
        "booked_first_fraction",
        "booked_refresh_fraction",
        "depreciation_usd",
        "written_off_usd",
        "interest_usd",
        "own_deductible_usd",
        "financing_deductible_usd",
    }
)


class Ledger(Struct):
    """The cash of a fleet by month, from month 0 on, in USD; costs are positive, before income tax."""

    months: int
    discount: Array
    debt_discount: Array
    tax_fraction: float  # that is saved at once; 0 where the tax is a line of its own, or none is counted
    purchases: dict[int, Array] = field(default_factory=dict)  # by month of order
    financing: dict[int, Array] = field(default_factory=dict)  # at the cost of debt
    returned: dict[int, Array] = field(default_factory=dict)  # resale that goes to a lessor
    purchase_tax: dict[int, Array] = field(default_factory=dict)  # saved (negative) by each purchase, where at once
    financing_tax: dict[int, Array] = field(default_factory=dict)
    capital: dict[int, float] = field(default_factory=dict)  # paid by the owner, not by a lender or lessor
    energy: Array = field(default_factory=lambda: np.zeros(0))
    people: Array = field(default_factory=lambda: np.zeros(0))
    contracts: dict[str, dict[int, Array]] = field(default_factory=dict)  # by supply and month of signing
    by_use: dict[str, Array] = field(default_factory=dict)
    services: dict[str, Array] = field(default_factory=dict)  # of each way to rent
    crew: Array = field(default_factory=lambda: np.zeros(0))  # people and control plane of all that is rented
    tax: Array = field(default_factory=lambda: np.zeros(0))  # on everything paid in cash
    financed_tax: Array = field(default_factory=lambda: np.zeros(0))

    def worth(self, flows: Array) -> float:
        """Return the present value of deductible cash, after the tax that is saved at once."""
        return float(np.sum(flows * self.discount)) * (1 - self.tax_fraction)

    def purchase_worth(self, month: int) -> float:
        """Return the present value of a purchase as it is financed, and taxed where tax is saved at once."""
        at_wacc = self.purchases[month] + self.returned[month]
        at_debt = self.financing[month]
        if self.tax_fraction:
            at_wacc, at_debt = at_wacc + self.purchase_tax[month], at_debt + self.financing_tax[month]
        return float(np.sum(at_wacc * self.discount) + np.sum(at_debt * self.debt_discount))

    @property
    def tax_worth(self) -> float:
        """Return the present value of income tax where it is a line of its own."""
        if self.tax_fraction:
            return 0.0
        return float(np.sum(self.tax * self.discount) + np.sum(self.financed_tax * self.debt_discount))

    @property
    def cost_usd(self) -> float:
        """Return the present value of everything."""
        rents = [flows for signed in self.contracts.values() for flows in signed.values()]
        deductible = sum(
            [*rents, *self.by_use.values(), *self.services.values()], self.energy + self.people + self.crew
        )
        return self.worth(deductible) + sum(map(self.purchase_worth, self.purchases)) + self.tax_worth

    def paid_in_cash(self) -> Array:
        """Return everything by month but what financing moves, and with it its tax."""
        flows = self.in_cash()
        flows["financing_usd"] = sum(self.returned.values(), np.zeros(self.months + 1))
        flows["tax_usd"] = self.tax
        return np.asarray(np.sum([*flows.values()], axis=0))

    @property
    def financing_worth(self) -> float:
        """Return the present value of what financing moves, at the cost of debt after tax."""
        return float(np.sum(sum(self.financing.values(), self.financed_tax) * self.debt_discount))

    def in_cash(self) -> dict[str, Array]:
        """Return what is paid by month, by kind; the income tax beside it."""
        nothing = np.zeros(self.months + 1)
        return {
            "servers_usd": sum(self.purchases.values(), nothing),
            "energy_usd": self.energy,
            "people_usd": self.people,
            "rent_usd": sum(
                [*self.by_use.values(), *(flows for signed in self.contracts.values() for flows in signed.values())],
                nothing,
            ),
            "services_usd": sum(self.services.values(), self.crew),
            "financing_usd": sum([*self.financing.values(), *self.returned.values()], nothing),
            "tax_usd": self.tax + self.financed_tax,
        }


# --- People: the smallest team, what the size takes, and steps, by the formula of the comparison.


def _people_fte(case: OwnershipCase, gpus: Array) -> Array:
    """Return the people that so many GPUs take; none for none."""
    values: dict[str, Any] = {**case.values(), "gpus": np.asarray(gpus, dtype=np.float64)}
    evaluate_all(_FTE, values)
    return np.where(values["gpus"] > 0, np.broadcast_to(values["staff_fte"], values["gpus"].shape), 0.0)


def network_usd_per_gpu(case: OwnershipCase, gpus: float) -> float:
    """Return what the network of so many GPUs costs per GPU."""
    values: dict[str, Any] = {**case.values(), "gpus": gpus}
    evaluate_all(_TIER, values)
    return float(values["network_usd_per_gpu"])


def wages_usd(case: OwnershipCase, months: int) -> Array:
    """Return what one person costs in each month, from month 1 on."""
    years = np.arange(months) // MONTHS_PER_YEAR
    raised = (1 + case.number("staff_escalation_fraction")) ** years
    return np.asarray(case.number("staff_usd_per_fte_year") / MONTHS_PER_YEAR * raised)


# --- Owned servers.


def bare(case: OwnershipCase) -> dict[str, Any]:
    """Return the inputs of servers alone: without people, who work for all of them, and without a bridge."""
    return {**case.values(), "staff_minimum_fte": 0.0, "staff_fte_per_1000_gpus": 0.0, "bridge_basis": "none"}


def purchases(
    case: OwnershipCase,
    months: int,
    fleet_gpus: float,
    orders: Sequence[int] | NDArray[Any],
    life_months: int,
    use: Array,
    **changes: Any,
) -> dict[str, Any]:
    """Evaluate a purchase of a whole fleet at each month of order, used by `use` of what works: a row per order."""
    inputs = {
        **bare(case),
        "gpus": fleet_gpus,
        "months": float(months),
        "order_month": np.asarray(orders, dtype=np.float64),
        "service_limit_months": float(life_months),
        "utilisation_fraction": 1.0,
        **changes,
    }
    return evaluate_months(inputs, _used(case, use), months, _OWNED_TARGETS)


def _used(case: OwnershipCase, use: Array) -> dict[str, Array]:
    path = np.zeros_like(case.tables["use_by_month"])
    path[: use.size] = use
    return {**case.tables, "use_by_month": path}


def line(values: Mapping[str, Any], name: str) -> Array:
    """Return a monthly line of every case: a row per case."""
    value = np.asarray(values[name], dtype=np.float64)
    cases = values["order_month"].shape[0] if "order_month" in values else 1
    return np.array(np.broadcast_to(value, (max(cases, value.shape[0] if value.ndim == 2 else 1), values["m"].size)))


# --- Rented hours.

_NO_BOUNDS = {"rent_floor_ratio": 0.0, "rent_cap_ratio": 0.0}


def by_use(case: OwnershipCase, rent: Rent, used: Array) -> Array:
    """Return what hours by use cost by month, with their support."""
    peak = float(used.max(initial=0.0))
    if peak <= 0:
        return np.zeros(used.size + 1)
    inputs = {
        **case.values(),
        "gpus": peak,
        "months": float(used.size),
        "utilisation_fraction": 1.0,
        "rent_usd_per_gpu_hour": rent.usd_per_gpu_hour,
        "rent_billing": "per_use",
        "rent_upfront_fraction": 0.0,
        "rent_stretch_ratio": rent.stretch_ratio,
        **({} if rent.indexed else _NO_BOUNDS),
        "rent_until_months": rent.until_months or 0.0,
        **({"rent_term_months": 0.0} if case.number("rent_until_months") and rent.until_months is None else {}),
        "rent_after_basis": "none" if rent.after_usd_per_gpu_hour is None else "per_use",
        "rent_after_usd_per_gpu_hour": rent.after_usd_per_gpu_hour,
    }
    values = evaluate_months(inputs, _used(case, used / peak), used.size, _CONTRACT)
    hours, support = (sum(line(values, name)[0] for name in names) for names in (_CONTRACT[:-1], _CONTRACT[-1:]))
    if rent.supported_usd_per_gpu_hour is not None:  # a share of the rent as asked for, which may end
        names = ("rent_until_months", "rent_after_basis", "rent_after_usd_per_gpu_hour")
        as_asked_for = {
            "rent_usd_per_gpu_hour": rent.supported_usd_per_gpu_hour,
            **{name: case.values()[name] for name in names},
        }
        values = evaluate_months({**inputs, **as_asked_for}, _used(case, used / peak), used.size, _CONTRACT[-1:])
        support = line(values, _CONTRACT[-1])[0]
    return np.asarray(hours + support)


def contracts(case: OwnershipCase, rent: Rent, months: int, signed: Sequence[int] | NDArray[Any]) -> Array:
    """Return the cash of a contract for one GPU by month of signing: a row each.

    A contract whose price ends before its term is over ends with it, or goes on at the renewal.
    """
    begins = np.asarray(signed, dtype=np.float64).reshape(-1, 1) + float(rent.lead_time_months)
    ends = begins + float(rent.term_months)
    until = ends if rent.until_months is None else np.maximum(np.minimum(ends, rent.until_months), begins)
    inputs = {
        **case.values(),
        "gpus": 1.0,
        "months": np.minimum(ends, float(months)),
        "rent_usd_per_gpu_hour": rent.usd_per_gpu_hour,
        "rent_billing": "take_or_pay",
        "rent_committed_gpus": 1.0,
        "rent_term_months": float(rent.term_months),
        "rent_upfront_fraction": rent.upfront_fraction,
        "rent_from_month": begins,
        **_NO_BOUNDS,
        "rent_until_months": until,
        "rent_after_basis": "renewed" if rent.renewed else "none",
        "rent_after_usd_per_gpu_hour": rent.after_usd_per_gpu_hour,
    }
    values = evaluate_months(inputs, case.tables, months, _CONTRACT)
    flows = [np.broadcast_to(values[name], (begins.shape[0], months + 1)) for name in _CONTRACT]
    return np.asarray(np.sum(flows, axis=0))


def services_per_gpu(case: OwnershipCase, months: int) -> Array:
    """Return what a rented GPU needs beside its price by month: storage, data leaving, licences."""
    inputs = {**case.values(), "gpus": 1.0, "months": float(months)}
    values = evaluate_months(inputs, case.tables, months, _PER_GPU)
    return np.asarray(sum(line(values, name)[0] for name in _PER_GPU))


# --- The whole.


def rates(case: OwnershipCase, months: int) -> dict[str, Any]:
    """Return the discounting and the share of a cost that income tax leaves."""
    targets = ("discount_ratio", "debt_discount_ratio", "after_tax_ratio", "in_horizon", "plan_year")
    return evaluate_months({**case.values(), "months": float(months)}, case.tables, months, targets)


def priced(case: OwnershipCase, fleet: ChosenMix, demand: Array) -> Ledger:
    """Return the cash of a fleet by month, on the formulas of the comparison."""
    months = demand.size
    values = rates(case, months)
    bent = case.bent
    ledger = Ledger(
        months,
        line(values, "discount_ratio")[0],
        line(values, "debt_discount_ratio")[0],
        0.0 if bent else 1 - scalar(values, "after_tax_ratio"),
    )
    ledger.energy, ledger.people, ledger.crew = (np.zeros(months + 1) for _ in range(3))
    deductible, financing_deductible = np.zeros(months + 1), np.zeros(months + 1)
    late = case.number("lead_time_months") % 1.0
    # the owned GPUs of each month before its arrivals and after them
    before, after = np.zeros(months), np.zeros(months)
    orders = np.nonzero(fleet.orders_gpus)[0]
    for k in orders.tolist():
        first = k + int(case.number("lead_time_months"))
        after[first : first + fleet.life_months] += fleet.orders_gpus[k]
        before[first + 1 : first + fleet.life_months] += fleet.orders_gpus[k]
    wages = wages_usd(case, months)
    if orders.size:
        standing = late * before + (1 - late) * after
        use = np.divide(fleet.owned_used_gpus, standing, out=np.zeros(months), where=standing > 1e-9)
        bought = purchases(case, months, float(after.max()), orders, fleet.life_months, np.minimum(use, 1.0))
        # Each order is evaluated as one of the largest fleet, whose network's tier it has, and counts in proportion.
        sizes = fleet.orders_gpus[orders] / after.max()
        lines = {name: line(bought, name) * sizes[:, None] for name in _OWNED_TARGETS[:-3]}
        capital = bought["capex_usd"] - bought["loan_usd"] - bought["lease_usd"]
        capital = np.broadcast_to(np.ravel(capital), orders.shape) * sizes
        for row, k in enumerate(orders.tolist()):
            ledger.purchases[k] = np.asarray(sum(lines[name][row] for name in _PURCHASE))
            ledger.returned[k] = lines["own_lease_returned_usd"][row]
            ledger.financing[k] = np.asarray(
                sum(lines[name][row] for name in _FINANCING if name != "own_lease_returned_usd")
            )
            ledger.purchase_tax[k] = lines["own_tax_usd"][row]
            ledger.financing_tax[k] = lines["own_financing_tax_usd"][row]
            ledger.capital[k] = float(capital[row])
        ledger.energy = lines["own_energy_usd"].sum(axis=0)
        if not bent and ledger.tax_fraction:  # energy stands apart from its servers, with its tax
            for row, k in enumerate(orders.tolist()):
                ledger.purchase_tax[k] = ledger.purchase_tax[k] + ledger.tax_fraction * lines["own_energy_usd"][row]
        deductible += lines["own_deductible_usd"].sum(axis=0)
        financing_deductible += lines["financing_deductible_usd"].sum(axis=0)
        ledger.people[1:] = (late * _people_fte(case, before) + (1 - late) * _people_fte(case, after)) * wages
        deductible += ledger.people

    per_gpu = services_per_gpu(case, months) if fleet.rented else np.zeros(months + 1)
    for part in fleet.rented:
        signed = np.nonzero(part.signed_gpus)[0]
        if part.rent.committed and signed.size:
            flows = contracts(case, part.rent, months, signed) * part.signed_gpus[signed][:, None]
            ledger.contracts[part.rent.name] = dict(zip(signed.tolist(), flows, strict=True))
        elif not part.rent.committed and part.used_gpus.any():
            ledger.by_use[part.rent.name] = by_use(case, part.rent, part.used_gpus)
        ledger.services[part.rent.name] = per_gpu * np.append(0.0, part.used_gpus)
    if any(part.used_gpus.any() for part in fleet.rented):
        # People who run what is rented: within a month of arrivals more is rented before them than after.
        early = np.minimum(before, demand)
        early = np.where(fleet.owned_used_gpus >= late * early, early, fleet.owned_used_gpus)
        then = (fleet.owned_used_gpus - late * early) / (1 - late)
        rented_early, rented_then = np.maximum(demand - early, 0.0), np.maximum(demand - then, 0.0)
        rented_early, rented_then = (np.where(gpus > 1e-6, gpus, 0.0) for gpus in (rented_early, rented_then))
        fte = late * _people_fte(case, rented_early) + (1 - late) * _people_fte(case, rented_then)
        open_months = late * (rented_early > 0) + (1 - late) * (rented_then > 0)
        staff_usd = case.number("rent_staff_ratio") * fte * wages
        ledger.crew[1:] = staff_usd + case.number("rent_control_plane_usd_per_month") * open_months

    # The tax of the sums: that of what is paid in cash, and what financing adds to it.
    rents = [flows for signed in ledger.contracts.values() for flows in signed.values()]
    deductible = sum([*rents, *ledger.by_use.values(), *ledger.services.values(), ledger.crew], deductible)
    sums = {
        **values,
        "own_deductible_usd": deductible[None, :],
        "financing_deductible_usd": financing_deductible[None, :],
        "rent_deductible_usd": np.zeros((1, deductible.size)),
    }
    evaluate_all(_TAXED, sums, ("own_tax_usd", "own_financing_tax_usd"))
    ledger.tax, ledger.financed_tax = (
        np.array(np.broadcast_to(sums[name], (1, deductible.size))[0])
        for name in ("own_tax_usd", "own_financing_tax_usd")
    )
    return ledger
