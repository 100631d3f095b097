"""The cheapest mix of capacity for a demand, as a mixed-integer program, and its solver."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.errors import CheckFailedError, NothingFitsError

# --- The solver of linear and mixed-integer programs, kept from writing beside the answer on stdout.


def milp(*arguments: Any, **named: Any) -> Any:
    """Solve a mixed-integer program as scipy.optimize.milp does."""
    from scipy import optimize

    with silent():
        return optimize.milp(*arguments, **named)


@contextmanager
def silent() -> Iterator[None]:
    """Lead what compiled code writes on stdout nowhere; left alone where other threads may be writing there."""
    try:
        stdout_copy = os.dup(1) if threading.active_count() == 1 else None
    except OSError:  # nobody reads it anyway
        stdout_copy = None
    if stdout_copy is None:
        yield
        return
    sys.stdout.flush()  # what Python and C hold in their own buffers belongs before the silence
    _flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(stdout_copy, 1)
        os.close(stdout_copy)
        os.close(nowhere)


def _flush() -> None:
    """Have compiled code write what it still holds."""
    with suppress(OSError, AttributeError, TypeError):  # a system without one library for all
        ctypes.CDLL(None).fflush(None)


# --- The cheapest mix of committed and flexible capacity for a demand by month, as a mixed-integer program on HiGHS.
#
# minimise   Σ_s Σ_k c_sk x_sk + Σ_s Σ_m e_sm u_sm + Σ_m g_m p_m + Σ_m h_m q_m + Σ_m i_m r_m
# subject to Σ_s u_sm = d_m                                    demand of every month
#            v_sm = v_s,m−1 + x_s,m−lead − x_s,m−lead−term     units held, one month after the other
#            u_sm ≤ units_s · (v_sm − (1 − a) x_s,m−lead)      committed supply: what was signed and has arrived
#            u_sm ≤ limit_sm                                   flexible supply: what the market or its share allows
#            u_bm ≤ units_s · Σ_{k on order in m} x_sk         what bridges the wait for an order
#            n_k ≤ N · z_k, z_k ≥ z_k−1                        the first purchase brings the smallest team with it
#            p_m ≥ smallest team, p_m ≥ people per GPU · owned
#            q_m ≥ smallest team · r_m, q_m ≥ people per GPU · rented, rented ≤ N · r_m
#            Σ_s Σ_k b_sk x_sk ≤ budget                        capital
# All costs are present values. x are whole units, z and r whole; people p and q come in whole steps where those are
# stated; u is continuous. a is the share of a month: what arrives during one works for the rest of it.

Array = NDArray[np.float64]

TOLERANCE = 1e-6  # in GPUs, or relative: below it a variable of the solver is zero, a limit reached
_INFEASIBLE = 2  # status of scipy.optimize.milp
MOST_NODES = 200  # branches of the search; the gap is nearly always closed at the first
_ROUNDING = 1e-9  # a smaller gap is the rounding of the solver


class MixSupply(Struct, frozen=True):
    """One way to get GPUs. Committed: units signed at the start of a month; flexible: by use."""

    name: str
    committed: bool
    use_usd: Array  # (months,) present value of using one GPU for the whole month
    limit_gpus: Array  # (months,) most GPUs of it in a month; infinite where nothing limits it
    unit_gpus: float = 1.0  # GPUs of one unit
    unit_usd: Array = field(default_factory=lambda: np.empty(0))  # (months,) present value of a unit signed in a month
    unit_capital_usd: Array = field(default_factory=lambda: np.empty(0))  # (months,) undiscounted, against the budget
    lead_months: int = 0  # whole months from signing to use
    term_months: int = 0  # months of use
    fewest_months: int = 1  # nothing is signed that would work for fewer months before the plan ends
    lead_fraction: float = 0.0  # of a month, that the wait goes on beyond its whole months
    ends_month: int | None = None  # months after which no unit works any more, whatever is left of its term
    bridges: str = ""  # a supply: no more of this one can be used than of that one is on order


class Team(Struct, frozen=True):
    """People who come with the first owned unit: a smallest team, and more in proportion above it, or in steps."""

    supply: str
    minimum_fte: float
    fte_per_gpu: float
    fte_usd: Array  # (months,) present value of one person for a month
    step_fte: float = 0.0  # 0: as many as it takes


class Crew(Struct, frozen=True):
    """People, and what else there is once, in every month in which anything is rented."""

    owned: str  # the supply that they do not work for
    minimum_fte: float
    fte_per_gpu: float
    fte_usd: Array  # (months,) present value of one person for a month
    fixed_usd: Array  # (months,) present value of what is paid once, however much is rented
    step_fte: float = 0.0


class MixProblem(Struct, frozen=True):
    """Demand, supplies and limits."""

    demand_gpus: Array
    supplies: tuple[MixSupply, ...]
    budget_usd: float | None = None  # on the capital of all units
    team: Team | None = None
    crew: Crew | None = None
    bridge: MixSupply | None = None  # what carries the demand of a supply that has to do alone until it arrives

    @property
    def months(self) -> int:
        """Return the number of months."""
        return int(self.demand_gpus.size)


class Solution(Struct, frozen=True):
    """The cheapest mix: units signed and GPUs used by supply and month, its cost, and what one more unit is worth."""

    cost_usd: float
    units: dict[str, Array]
    used_gpus: dict[str, Array]
    capacity_gpus: dict[str, Array]
    fixed_usd: dict[str, float]  # present value of the units and of the team, by supply
    use_usd: dict[str, float]
    marginal: dict[str, Array | float]  # of the linear program with the whole numbers fixed
    gap_fraction: float
    crew_usd: float = 0.0  # people of what is rented


class _Program:
    """The matrices of a problem and where each variable stands in them."""

    def __init__(self, problem: MixProblem) -> None:
        self.problem, months = problem, problem.months
        self.count = 0
        self.units = {s.name: self._block(months) for s in problem.supplies if s.committed}
        self.held = {s.name: self._block(months) for s in problem.supplies if s.committed}
        self.used = {s.name: self._block(months) for s in problem.supplies}
        self.first = self._block(months) if problem.team else range(0)
        self.people = self._block(months) if problem.team else range(0)
        self.renting = self._block(months) if problem.crew else range(0)
        self.crew = self._block(months) if problem.crew else range(0)
        self.cost = np.zeros(self.count)
        self.upper = np.full(self.count, np.inf)
        self.whole = np.zeros(self.count)
        self.entries: list[tuple[int, int, float]] = []  # of the sparse matrix: row, column, value
        self.low: list[float] = []  # of each row
        self.high: list[float] = []

        for supply in problem.supplies:
            self.cost[list(self.used[supply.name])] = supply.use_usd
            self.upper[list(self.used[supply.name])] = supply.limit_gpus
            if supply.committed:
                columns = list(self.units[supply.name])
                self.cost[columns], self.whole[columns] = supply.unit_usd, 1
                most = np.ceil(problem.demand_gpus.max() / supply.unit_gpus)
                last = months if supply.ends_month is None else min(months, supply.ends_month)
                left = last - supply.lead_months - np.arange(months)
                self.upper[columns] = np.where(left >= supply.fewest_months, most, 0)
        # The demand's rows come first: their duals are read as the first of the equalities (`_solution`).
        for month, gpus in enumerate(problem.demand_gpus.tolist()):
            self._add([(self.used[supply.name][month], 1.0) for supply in problem.supplies], gpus, gpus)
        self._add_capacity()
        if problem.team:
            self._add_team(problem.team)
        if problem.crew:
            self._add_crew(problem.crew)
        if problem.budget_usd is not None:
            capital = [
                (self.units[supply.name][k], float(supply.unit_capital_usd[k]))
                for supply in problem.supplies
                if supply.committed
                for k in range(months)
                if supply.unit_capital_usd[k]
            ]
            self._add(capital, -np.inf, problem.budget_usd)

    def _add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        """Add low ≤ Σ value × variable ≤ high."""
        self.entries += [(len(self.low), column, value) for column, value in terms]
        self.low.append(low)
        self.high.append(high)

    def _block(self, size: int) -> range:
        block = range(self.count, self.count + size)
        self.count += size
        return block

    def _add_capacity(self) -> None:
        """Bind what is used to the units that were signed and have arrived, and a bridge to those on order."""
        for supply in (entry for entry in self.problem.supplies if entry.committed):
            units, held, used = self.units[supply.name], self.held[supply.name], self.used[supply.name]
            for month in range(self.problem.months):
                arrived, left = month - supply.lead_months, month - supply.lead_months - supply.term_months
                terms = [(held[month], 1.0)]
                terms += [(held[month - 1], -1.0)] if month else []
                terms += [(units[arrived], -1.0)] if arrived >= 0 else []
                terms += [(units[left], 1.0)] if left >= 0 else []
                self._add(terms, 0.0, 0.0)
                if supply.ends_month is not None and month >= supply.ends_month:
                    self._add([(used[month], 1.0)], -np.inf, 0.0)
                    continue
                terms = [(used[month], 1.0), (held[month], -supply.unit_gpus)]
                # What arrives during a month misses its first part: units held count whole, so that part goes off.
                if arrived >= 0 and supply.lead_fraction:
                    terms.append((units[arrived], supply.unit_gpus * supply.lead_fraction))
                self._add(terms, -np.inf, 0.0)
                if arrived >= 0 and np.isfinite(supply.limit_gpus[month]):
                    self._add([(held[month], supply.unit_gpus)], -np.inf, float(supply.limit_gpus[month]))

        for bridge in (entry for entry in self.problem.supplies if entry.bridges):
            ordered = next(entry for entry in self.problem.supplies if entry.name == bridge.bridges)
            for month in range(self.problem.months):
                # An order is bridged whole while it waits, and by what is missing in the month in which it arrives.
                waiting = range(max(0, month - ordered.lead_months), month + 1)
                terms = [
                    (self.units[ordered.name][k], _working_gpus(ordered, k, month) - ordered.unit_gpus) for k in waiting
                ]
                self._add([(self.used[bridge.name][month], 1.0), *terms], -np.inf, 0.0)

    def _add_team(self, team: Team) -> None:
        """Add the people of owned units: `first` is 1 from the first purchase on, `people` are those who are paid."""
        supply = next(entry for entry in self.problem.supplies if entry.name == team.supply)
        months, lead = self.problem.months, supply.lead_months
        self.whole[list(self.first)] = 1
        self.upper[list(self.first)] = 1
        most = float(np.ceil(self.problem.demand_gpus.max() / supply.unit_gpus))  # no mix signs more in a month
        for k in range(months):
            self._add([(self.units[supply.name][k], 1.0), (self.first[k], -most)], -np.inf, 0.0)
            if k:
                self._add([(self.first[k - 1], 1.0), (self.first[k], -1.0)], -np.inf, 0.0)
        size = team.step_fte or 1.0  # the variable counts steps, whole, or people as they come
        self.whole[list(self.people)] = float(team.step_fte > 0)
        # A month of `held` runs from its arrivals to those of the next: the last part falls into the next month.
        late = supply.lead_fraction
        paid = (1 - late) * team.fte_usd + late * np.append(team.fte_usd[1:], 0.0)
        for month in range(months):
            self.cost[self.people[month]] = float(paid[month]) * size
            fte_per_unit = supply.unit_gpus * team.fte_per_gpu
            self._add([(self.held[supply.name][month], fte_per_unit), (self.people[month], -size)], -np.inf, 0.0)
            begun = [(self.first[month - lead], team.minimum_fte)] if month >= lead else []
            self._add([*begun, (self.people[month], -size)], -np.inf, 0.0)

    def _add_crew(self, crew: Crew) -> None:
        """Add the people of rented units: `renting` is 1 in a month in which anything is rented."""
        size = crew.step_fte or 1.0
        self.whole[list(self.renting)] = 1
        self.upper[list(self.renting)] = 1
        self.whole[list(self.crew)] = float(crew.step_fte > 0)
        rented = [supply.name for supply in self.problem.supplies if supply.name != crew.owned]
        for month in range(self.problem.months):
            self.cost[self.renting[month]] = float(crew.fixed_usd[month])
            self.cost[self.crew[month]] = float(crew.fte_usd[month]) * size
            used = [(self.used[name][month], 1.0) for name in rented]
            if not used:
                continue
            self._add([*used, (self.renting[month], -float(self.problem.demand_gpus[month]))], -np.inf, 0.0)
            per_gpu = [(column, crew.fte_per_gpu) for column, _ in used]
            self._add([*per_gpu, (self.crew[month], -size)], -np.inf, 0.0)
            self._add([(self.renting[month], crew.minimum_fte), (self.crew[month], -size)], -np.inf, 0.0)

    def matrix(self) -> Any:
        """Return the constraint matrix, sparse."""
        from scipy.sparse import csr_array

        # Three long columns are how a sparse matrix is built at once.
        row, column, value = zip(*self.entries, strict=True)
        return csr_array((value, (row, column)), shape=(len(self.low), self.count))

    def search(self, cost: Array, integral: Array, bounds: tuple[Array, Array] | None = None, **options: Any) -> Any:
        """Return what the solver finds of a cost, some variables whole."""
        from scipy.optimize import Bounds, LinearConstraint

        return milp(
            cost,
            constraints=LinearConstraint(self.matrix(), self.low, self.high),
            bounds=Bounds(*(bounds or (np.zeros(self.count), self.upper))),
            integrality=integral.astype(np.int64),
            options=options,
        )


def _working_gpus(supply: MixSupply, signed: int, month: int) -> float:
    """Return the GPUs of a unit that work in a month: those that arrive during it work for the rest of it."""
    arrived = month - signed - supply.lead_months
    ended = supply.ends_month is not None and month >= supply.ends_month
    if ended or not 0 <= arrived < supply.term_months:
        return 0.0
    return supply.unit_gpus * (1 - supply.lead_fraction if arrived == 0 else 1.0)


def solve(
    problem: MixProblem, gap_fraction: float = 1e-6, time_limit_s: float | None = None, nodes: int = MOST_NODES
) -> Solution:
    """Return the cheapest mix; an impossible one raises an error that names what stands in the way.

    The search ends at the gap, or after so many nodes, never by the clock unless one is given: a busy machine finds
    the same mix as an idle one.
    """
    program = _Program(problem)
    limit: dict[str, Any] = {} if time_limit_s is None else {"time_limit": time_limit_s}
    result = program.search(program.cost, program.whole, node_limit=nodes, mip_rel_gap=gap_fraction, **limit)
    if result.x is not None:
        units = {name: np.round(result.x[list(block)]) for name, block in program.units.items()}
        return _solution(program, units, getattr(result, "mip_dual_bound", None))
    if result.status == _INFEASIBLE:
        # One limit after the other is lifted: that stands in the way without which the demand can be met.
        month, missing = _shortfall(problem)
        free = np.full(problem.months, np.inf)
        guesses: list[tuple[str, MixProblem]] = []
        if problem.budget_usd is not None:
            guesses.append((f"the budget of ${problem.budget_usd:,.0f}", replace(problem, budget_usd=None)))
        for index, supply in enumerate(problem.supplies):
            freed = {}
            if np.isfinite(supply.limit_gpus).any():
                freed[f"the limit of {supply.name}"] = replace(supply, limit_gpus=free)
            if wait := supply.lead_months + supply.lead_fraction:
                freed[f"the lead time of {supply.name} ({wait:.3g} months)"] = replace(
                    supply, lead_months=0, lead_fraction=0.0
                )
            for label, relaxed_supply in freed.items():
                supplies = (*problem.supplies[:index], relaxed_supply, *problem.supplies[index + 1 :])
                guesses.append((label, replace(problem, supplies=supplies)))
        culprits = [label for label, relaxed in guesses if _shortfall(relaxed)[1] < TOLERANCE]
        cause = " or ".join(culprits) or "several limits together: " + ", ".join(label for label, _ in guesses)
        raise NothingFitsError(
            f"no mix meets the demand: month {month} lacks {missing:,.0f} of"
            f" {problem.demand_gpus[month - 1]:,.0f} GPUs. In the way: {cause}. Raise it, or allow on-demand capacity."
        )
    raise CheckFailedError(f"the search found no mix within {nodes} nodes. Give a longer --time-limit.")


def least_usd(problem: MixProblem) -> float:
    """Return what no mix costs less than: the cost of units, people and steps that need not be whole."""
    program = _Program(problem)
    relaxed = program.search(program.cost, np.zeros(program.count))
    if relaxed.status == _INFEASIBLE:
        return np.inf
    return -np.inf if relaxed.fun is None else float(relaxed.fun)


def cheapest(
    problem: MixProblem, gap_fraction: float = 1e-4, time_limit_s: float | None = None, nodes: int = MOST_NODES
) -> tuple[Solution, dict[str, Solution | None]]:
    """Return the cheapest mix, never dearer than the best single option, and each option alone."""
    # The search may stop before it proves its mix: the options alone are searched first, and the best of them is taken
    # where the search finds nothing or something dearer.
    alone = {supply.name: single(problem, supply, gap_fraction) for supply in problem.supplies if not supply.bridges}
    carrying = [option for option in alone.values() if option is not None]
    best = min(carrying, key=lambda option: option.cost_usd, default=None)
    try:
        solved = solve(problem, gap_fraction, time_limit_s, nodes)
    except CheckFailedError:
        if best is None:
            raise
        return from_single(problem, best), alone
    if best is not None and solved.cost_usd > best.cost_usd:
        return from_single(problem, best, solved.cost_usd * (1 - solved.gap_fraction)), alone
    return solved, alone


def from_single(problem: MixProblem, best: Solution, bound_usd: float | None = None) -> Solution:
    """Return the units of a single option as a mix; flexible supply may still make it cheaper."""
    program = _Program(problem)
    units = {name: best.units.get(name, np.zeros(problem.months)) for name in program.units}
    return _solution(program, units, bound_usd)


def single(problem: MixProblem, supply: MixSupply, gap_fraction: float) -> Solution | None:
    """Return the cheapest way to carry the demand by one supply alone; None where it cannot."""
    # The team of owned servers does not come with a rented one; the bridge comes with what it bridges.
    team = problem.team if problem.team and problem.team.supply == supply.name else None
    bridge = () if problem.bridge is None or problem.bridge.bridges != supply.name else (problem.bridge,)
    try:
        return solve(replace(problem, supplies=(supply, *bridge), team=team), gap_fraction)
    except (NothingFitsError, CheckFailedError):
        return None


def _solution(program: _Program, units: dict[str, Array], bound_usd: float | None) -> Solution:
    problem = program.problem
    linear = _fixed_program(program, units)
    cost = float(linear.fun)
    fixed = {name: float(np.dot(program.cost[list(block)], units[name])) for name, block in program.units.items()}
    used = {name: np.maximum(linear.x[list(block)], 0.0) for name, block in program.used.items()}
    use = {name: float(np.dot(program.cost[list(block)], used[name])) for name, block in program.used.items()}
    if problem.team:
        people = [*program.first, *program.people]
        fixed[problem.team.supply] += float(np.dot(program.cost[people], linear.x[people]))
    crew = [*program.renting, *program.crew]
    crew_usd = float(np.dot(program.cost[crew], linear.x[crew])) if crew else 0.0
    capacity = {s.name: capacity_of(s, units[s.name]) for s in problem.supplies if s.committed}

    if bound_usd is None or not np.isfinite(bound_usd):  # no mix is cheaper than one of units that need not be whole
        relaxed = program.search(program.cost, np.zeros(program.count)).fun
        bound_usd = -np.inf if relaxed is None else relaxed
    gap = max(0.0, (cost - float(bound_usd)) / abs(cost)) if abs(cost) > TOLERANCE else 0.0
    gap = gap if gap > _ROUNDING else 0.0

    # What one more GPU of demand costs are the duals of its rows. One more GPU of a supply that is used up saves that
    # less its own cost of use. (The capacity rows' own duals are not unique where a supply is not signed at all.)
    demand_usd = np.array(linear.eqlin.marginals[: problem.months])
    marginals: dict[str, Array | float] = {"demand": demand_usd}
    for supply in problem.supplies:
        kind, most = "limit", supply.limit_gpus
        if supply.committed:
            kind, most = "capacity", capacity_of(supply, linear.x[list(program.units[supply.name])])
        used_up = linear.x[list(program.used[supply.name])] >= most - TOLERANCE
        marginals[f"{supply.name} {kind}"] = np.where(used_up, np.maximum(demand_usd - supply.use_usd, 0.0), 0.0)
    return Solution(cost, units, used, capacity, fixed, use, marginals, gap, crew_usd)


def capacity_of(supply: MixSupply, units: Array) -> Array:
    """Return the GPUs that work in each month (all counted from 0)."""
    capacity = np.zeros(units.size)
    for signed in range(units.size):
        begin = signed + supply.lead_months
        for month in range(begin, min(begin + supply.term_months, units.size)):
            capacity[month] += _working_gpus(supply, signed, month) * units[signed]
    return capacity


def _fixed_program(program: _Program, units: dict[str, Array]) -> Any:
    """Solve the linear program with every whole number fixed: its duals are the marginal values."""
    from scipy import optimize

    low, high = np.zeros(program.count), program.upper.copy()
    for name, block in program.units.items():
        low[list(block)] = high[list(block)] = units[name]
    if program.problem.team or program.problem.crew:  # people and their steps follow from the units
        staffed = program.search(program.cost, program.whole, bounds=(low, high), mip_rel_gap=TOLERANCE)
        if staffed.x is None:
            raise CheckFailedError(f"the people of the mix cannot be counted ({str(staffed.message)[:200]}).")
        whole = program.whole > 0
        low[whole] = high[whole] = np.round(staffed.x[whole])
    matrix = program.matrix()
    # linprog takes equalities and upper bounds; the program has no row that is bounded below alone
    lower, upper = np.array(program.low), np.array(program.high)
    equal = lower == upper
    with silent():
        solved: Any = optimize.linprog(
            program.cost,
            A_ub=matrix[~equal],
            b_ub=upper[~equal],
            A_eq=matrix[equal],
            b_eq=upper[equal],
            bounds=np.column_stack((low, high)),
            method="highs",
        )
    if solved.status != 0:
        raise CheckFailedError(
            f"the mix cannot be verified ({str(solved.message)[:200]}). Prices and demand lie too many"
            " powers of ten apart."
        )
    return solved


def _shortfall(problem: MixProblem) -> tuple[int, float]:
    """Return the month with the largest unmet demand when as little as possible stays unmet, and how much."""
    # A supply of unmet demand makes every problem solvable: least of it, whatever it costs.
    unmet = MixSupply("unmet", False, np.ones(problem.months), np.full(problem.months, np.inf))
    program = _Program(replace(problem, supplies=(*problem.supplies, unmet), team=None, crew=None))
    cost = np.zeros(program.count)
    cost[list(program.used["unmet"])] = 1.0
    result = program.search(cost, program.whole, node_limit=MOST_NODES)
    if result.x is None:
        raise CheckFailedError(
            f"no mix meets the demand, and the shortfall cannot be computed ({str(result.message)[:200]})."
        )
    missing = result.x[list(program.used["unmet"])]
    return int(np.argmax(missing)) + 1, float(missing.max())
