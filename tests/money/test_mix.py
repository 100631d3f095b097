"""The mix against brute force, its marginal values against differences, and its refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.errors import CheckFailedError, DataError, NothingFitsError, UsageError
from gpucost.money import mix as program
from gpucost.money.mix import MixProblem, MixSupply, Team, capacity_of, cheapest, solve
from tests.money.plans import catalog

INF = np.inf


def flexible(name, use, limit=INF, months=4):
    return MixSupply(name, False, np.full(months, float(use)), np.full(months, limit))


def committed(name, unit_usd, use, unit, term, lead=0, limit=INF, capital=0.0, months=4):
    unit_cost = np.array([unit_usd * min(term, max(0, months - k - lead)) for k in range(months)], float)
    return MixSupply(
        name,
        True,
        np.full(months, float(use)),
        np.full(months, limit),
        unit,
        unit_cost,
        np.full(months, capital),
        lead,
        term,
    )


def brute_force(problem, most):
    """Try every number of units signed in every month; use what is cheapest, month by month."""
    signed = [s for s in problem.supplies if s.committed]
    best = INF
    for counts in itertools.product(range(most + 1), repeat=len(signed) * problem.months):
        units = dict(zip((s.name for s in signed), np.reshape(counts, (len(signed), problem.months)), strict=True))
        cost = sum(float(np.dot(s.unit_usd, units[s.name])) for s in signed)
        if (
            problem.budget_usd is not None
            and sum(float(np.dot(s.unit_capital_usd, units[s.name])) for s in signed) > problem.budget_usd + 1e-9
        ):
            continue
        if cost >= best:
            continue
        if problem.team:
            capacity = capacity_of(next(s for s in signed if s.name == problem.team.supply), units[problem.team.supply])
            bought = np.nonzero(units[problem.team.supply])[0]
            if bought.size:
                begun = bought[0] + next(s for s in signed if s.name == problem.team.supply).lead_months
                people = np.maximum(problem.team.minimum_fte, problem.team.fte_per_gpu * capacity)
                cost += float(np.sum((people * problem.team.fte_usd)[begun:]))
        cost += use_cost(problem, units)
        best = min(best, cost)
    return best


def use_cost(problem, units):
    total = 0.0
    for month, demand in enumerate(problem.demand_gpus):
        left = demand
        rows = []
        for supply in problem.supplies:
            room = supply.limit_gpus[month]
            if supply.committed:
                capacity = capacity_of(supply, units[supply.name])[month]
                if capacity > room + 1e-9:
                    return INF
                room = capacity
            rows.append((supply.use_usd[month], room))
        for price, room in sorted(rows):
            taken = min(left, room)
            total, left = total + taken * price, left - taken
        if left > 1e-9:
            return INF
    return total


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.integers(20, 120),
    st.integers(0, 1),
    st.integers(1, 4),
    st.integers(30, 90),
    st.sampled_from([INF, 2.0]),
    st.sampled_from([None, 300.0]),
)
def test_the_mix_equals_brute_force_on_small_cases(demand, unit_usd, lead, term, price, limit, budget):
    supplies = (
        committed("own", unit_usd, 3, 2.0, term, lead, capital=100.0),
        flexible("cheap", price, limit),
        flexible("dear", 95),
    )
    problem = MixProblem(np.array(demand, float), supplies, budget)
    assert solve(problem).cost_usd == pytest.approx(brute_force(problem, 3), rel=1e-7, abs=1e-6)


def test_two_commitments_and_a_team_equal_brute_force():
    supplies = (
        committed("own", 30, 2, 2.0, 3, months=3),
        committed("reserved", 40, 0, 1.0, 2, months=3),
        flexible("rent", 70, months=3),
    )
    problem = MixProblem(np.array([2.0, 4.0, 3.0]), supplies, None, Team("own", 0.5, 0.2, np.full(3, 50.0)))
    assert solve(problem).cost_usd == pytest.approx(brute_force(problem, 2), rel=1e-9)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=6, max_size=6).filter(any),
    st.floats(5, 200),
    st.floats(5, 200),
    st.floats(5, 200),
)
def test_the_mix_never_costs_more_than_the_best_pure_option(demand, own, reserved, rent):
    supplies = (
        committed("own", own, 2, 8.0, 6, months=6),
        committed("reserved", reserved, 0, 8.0, 3, months=6),
        flexible("rent", rent, months=6),
    )
    problem = MixProblem(np.array(demand, float), supplies)
    for nodes in (0, 200):
        solved, pure = cheapest(problem, nodes=nodes)
        assert solved.cost_usd <= min(one.cost_usd for one in pure.values() if one is not None) * (1 + 1e-9)


HARD = {"constant": 64, "growth": "20%", "months": 36, "gpu": "h100-sxm"}


def test_a_search_cut_short_is_never_worse_than_the_best_single_option_and_says_how_far_off_it_may_be(monkeypatch):
    """The search that finds nothing at all falls back to the best single option, with an honest gap."""

    def nothing(*_args, **_kwargs):
        raise CheckFailedError("no mix")

    real = gpucost.mix(**HARD, catalog=catalog()).payload
    monkeypatch.setattr(program, "solve", lambda p, *rest: nothing() if len(p.supplies) > 1 else solve(p, *rest))
    with pytest.raises(CheckFailedError, match=r'gap="\d+%') as caught:
        gpucost.mix(**HARD, catalog=catalog())
    assert caught.value.exit_code == 5
    short = gpucost.mix(**HARD, gap="20%", catalog=catalog()).payload
    assert short["cost_usd"] <= short["best_pure_usd"]
    assert short["saving_usd"] >= 0
    assert short["cost_usd"] * (1 - short["gap_fraction"]) <= real["cost_usd"] < short["cost_usd"]
    assert short["lead"].startswith("Not proven")


@pytest.mark.slow
def test_no_clock_ends_a_search_unless_one_is_given(monkeypatch):
    """The same bytes come out of a busy machine as of an idle one: nothing that the solver gets depends on time."""
    from scipy import optimize

    seen, milp = [], optimize.milp
    monkeypatch.setattr(optimize, "milp", lambda *a, **k: seen.append(dict(k.get("options", {}))) or milp(*a, **k))
    first = gpucost.mix(**HARD, catalog=catalog())
    assert seen
    assert not any("time_limit" in options for options in seen)
    assert gpucost.mix(**HARD, catalog=catalog()).to_json() == first.to_json()
    gpucost.mix(**HARD, time_limit=60, catalog=catalog())
    assert any(options.get("time_limit") == 60 for options in seen)


def test_marginal_value_of_demand_is_what_one_more_gpu_costs():
    """With the units fixed: a little more demand in a month, priced by hand, is the dual."""
    supplies = (committed("own", 110, 3, 4.0, 4), flexible("spot", 40, 2.0), flexible("rent", 90))
    problem = MixProblem(np.array([4.0, 5.0, 7.5, 3.0]), supplies)
    solved = solve(problem)
    assert solved.units["own"].tolist() == [1, 0, 0, 0]
    assert solved.marginal["demand"][1:] == pytest.approx([40, 90, 3])
    assert solved.marginal["own capacity"][1:] == pytest.approx([37, 87, 0])
    assert solved.marginal["spot limit"][2] == pytest.approx(50)


def test_demand_is_met_exactly_and_within_every_limit():
    solved = gpucost.mix(
        constant=40, growth="60%", months=24, gpu="h100-sxm", rent=2.5, max_owned=32, catalog=catalog()
    ).payload
    for row in solved["months"]:
        used = sum(
            value for name, value in row.items() if name.endswith("_gpus") and name not in ("demand_gpus", "idle_gpus")
        )
        assert used == pytest.approx(row["demand_gpus"], abs=1e-6)
        assert row["own_gpus"] <= 32 + 1e-6


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"budget": 1.0}, "budget"),
        ({"max_owned": 8.0}, "limit of own"),
        ({"lead_time": 20}, "lead time of own"),
    ],
)
def test_an_infeasible_mix_names_the_constraint(change, named):
    limits = {"max_on_demand": 4.0, "spot_share": 0.0, **change}
    with pytest.raises(NothingFitsError, match=named) as caught:
        gpucost.mix(constant=64, months=12, gpu="h100-sxm", rent=2.35, catalog=catalog(), **limits)
    assert caught.value.exit_code == 6


def test_the_plan_adds_up_to_the_cost():
    payload = gpucost.mix([30, 40, 80, 80, 90, 64], gpu="h100-sxm", catalog=catalog(), lead_time=0).payload
    assert sum(row["cost_usd"] for row in payload["plan"]) == pytest.approx(payload["cost_usd"], rel=1e-9)
    assert payload["cost_usd"] <= payload["best_pure_usd"] * (1 + 1e-6)


def test_the_cash_of_a_mix_is_worth_what_its_plan_costs():
    payload = gpucost.mix(
        constant=60, growth="30%", months=30, gpu="h100-sxm", catalog=catalog(), lead_time="9w"
    ).payload
    monthly = 1.1 ** (1 / 12)  # the cost of capital of a tenth, by month
    worth = {
        name: sum(row[f"{name}_usd"] / monthly ** row["month"] for row in payload["cash_by_month"])
        for name in ("servers", "energy", "people")
    }
    planned = {}
    for row in payload["plan"]:
        planned[row["option"]] = planned.get(row["option"], 0) + row["cost_usd"]
    assert {row["month"] for row in payload["cash_by_month"]} == set(range(31))
    assert len({row["from_month"] for row in payload["plan"] if row["option"] == "own"}) > 1
    assert worth["servers"] == pytest.approx(planned["own"], abs=0.01)
    assert worth["energy"] == pytest.approx(planned["use of own"], abs=0.01)
    assert worth["people"] == pytest.approx(planned["staff who run the owned servers"], abs=0.01)
    bought = [row for row in payload["plan"] if row["option"] == "own"]
    first = min(row["from_month"] for row in bought)
    paid = payload["cash_by_month"][first - 1]["servers_usd"]
    assert paid == pytest.approx(sum(row["capital_usd"] for row in bought if row["from_month"] == first), rel=0.02)


def test_a_demand_given_twice_is_refused(tmp_path):
    path = tmp_path / "demand.csv"
    path.write_text("month,gpus\n1,8\n2,16\n")
    with pytest.raises(UsageError, match="given twice"):
        gpucost.mix(str(path), constant=64, gpu="h100-sxm", catalog=catalog())


def test_own_supplies_of_a_plan_replace_the_catalog():
    plan = {
        "supply": [
            {"name": "contract", "kind": "reserved", "usd_per_gpu_hour": 1.9, "term_months": 6, "unit_gpus": 8},
            {"name": "cloud", "kind": "on_demand", "usd_per_gpu_hour": 3.0},
        ]
    }
    payload = gpucost.mix(
        [32] * 12,
        gpu="h100-sxm",
        own=False,
        plan=plan,
        storage_basis="none",
        rent_staff_ratio=0,
        rent_control_plane_usd_per_month=0,
        wacc=0,
        catalog=catalog(),
    ).payload
    assert payload["cost_usd"] == pytest.approx(32 * 730 * 12 * 1.9)
    assert {row["option"] for row in payload["pure"]} == {"contract", "cloud"}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("on_demand", "upfront_fraction", 1), ("spot", "term_months", 12), ("flex_start", "lead_time_months", 3)],
)
def test_what_is_paid_by_use_has_no_terms(kind, name, value):
    supply = {"kind": kind, "usd_per_gpu_hour": 3.0, name: value}
    with pytest.raises(UsageError, match=f"has no {name}"):
        gpucost.mix([32] * 12, gpu="h100-sxm", plan={"supply": [supply]}, catalog=catalog())


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("month,gpus\n1,10\n3,12\n", "3:month"),
        ("month,gpus\n1,10\n2,\n", "3:gpus"),
        ("month,gpus\n1,-4\n", "2:gpus"),
        ("month,gpus\n1,many\n", "2:gpus"),
        ("when,gpus\n1,2\n", ":1: has no column month"),
        ("", ":1: has no column month"),
        ("month,gpus\n", "no rows"),
    ],
)
def test_a_faulty_demand_file_is_refused_with_its_place(tmp_path, text, where):
    file = tmp_path / "demand.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=where):
        gpucost.mix(str(file), gpu="h100-sxm", rent=2.35, catalog=catalog())


@pytest.mark.parametrize("demand", [[0, 0], [1, -1], [float("nan"), 1], []])
def test_impossible_demands_are_refused(demand):
    with pytest.raises(UsageError):
        gpucost.mix(demand, gpu="h100-sxm", rent=2.35, catalog=catalog())


@pytest.mark.more
@pytest.mark.parametrize("gap", ["0", "0.005%"])
def test_a_tighter_gap_never_finds_a_worse_mix(gap):
    asked = {"gpu": "a100-80gb", "constant": 10, "growth": "20%", "months": 120, "rent": 2, "catalog": catalog()}
    usual, tight = (gpucost.mix(**asked, **more).payload for more in ({}, {"gap": gap}))
    assert tight["cost_usd"] <= usual["cost_usd"] * (1 + 1e-4)
