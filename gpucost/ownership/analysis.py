"""Answers from a case: break-even, what flips the decision, tornado, grids, scenarios, Monte Carlo."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.errors import UsageError
from gpucost.money import cashflow, montecarlo, roots
from gpucost.money.comparison import Outcome, outcome
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.plan import changes_of
from gpucost.ownership.rents import check_upfront

Array = NDArray[np.float64]

MOST_NODES = 4096  # clusters that the search for a break-even size looks at
RENT_RESIDUAL_CORRELATION = -0.5  # assumed: where rents fall fast, used hardware is worth less
UTILISATION_SEARCH = 5.0  # beyond 1 the root says how many times the hours would be needed
RENT_SEARCH_USD = 1000.0


def outcomes(case: OwnershipCase, changes: Mapping[str, Any]) -> Outcome:
    """Evaluate the case with some inputs changed: numbers, words, or one value per case."""
    return outcome({**case.columns(), **changes}, case.tables)


def one_at_a_time(case: OwnershipCase, names: Sequence[str], values: Array) -> Outcome:
    """Evaluate one case per value: each changes only its own input."""
    own = np.array(names)
    return outcomes(case, {name: np.where(own == name, values, case.number(name)) for name in dict.fromkeys(names)})


def solve(case: OwnershipCase, names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> Array:
    """Return, for each input, the value at which owning and renting cost the same; NaN where there is none."""
    if not names:
        return np.empty(0)
    return roots.find(lambda x: one_at_a_time(case, names, x).saving_usd, np.array(low, float), np.array(high, float))


def tornado(case: OwnershipCase) -> list[shape.Sensitivity]:
    """Move every uncertain input to its low and its high, alone, and tell what flips the decision, and where."""
    ranges = case.ranges()
    names = list(ranges)
    base = float(outcomes(case, {}).saving_usd[0])
    lows, highs = (np.array([ranges[name][end] for name in names]) for end in (0, 2))
    if not names:
        return []
    result = one_at_a_time(case, [*names, *names], np.concatenate((lows, highs)))
    at_low, at_high = np.split(result.saving_usd, 2)
    own_low, own_high = np.split(result.own_usd_per_gpu_hour, 2)
    flips = (np.sign(at_low) != np.sign(base)) | (np.sign(at_high) != np.sign(base))
    flipping = [i for i in range(len(names)) if flips[i]]
    start = [ranges[names[i]][1] for i in flipping]
    ends = [lows[i] if np.sign(at_low[i]) != np.sign(base) else highs[i] for i in flipping]
    points = dict(zip(flipping, solve(case, [names[i] for i in flipping], start, ends), strict=True))
    rows: list[shape.Sensitivity] = [
        {
            "name": name,
            "unit": case.assumptions[name].unit,
            "low": float(lows[i]),
            "value": ranges[name][1],
            "high": float(highs[i]),
            "saving_at_low_usd": float(at_low[i]),
            "saving_at_high_usd": float(at_high[i]),
            "swing_usd": float(abs(at_high[i] - at_low[i])),
            "own_at_low_usd_per_gpu_hour": float(own_low[i]),
            "own_at_high_usd_per_gpu_hour": float(own_high[i]),
            "flips": bool(flips[i]),
            "flip_value": _number(points.get(i)),
        }
        for i, name in enumerate(names)
    ]
    moving = [(float(abs(at_high[i] - at_low[i])), row) for i, row in enumerate(rows)]
    return [row for swing, row in sorted(moving, key=lambda pair: (-pair[0], str(pair[1]["name"]))) if swing > 1e-6]


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def break_even(case: OwnershipCase) -> shape.BreakEven:
    """Return where owning and renting cost the same: in utilisation, rental price, months and GPUs; with reasons."""
    reasons: dict[str, str] = {}
    take_or_pay = case.assumptions["rent_billing"].value == "take_or_pay"
    used, price = solve(
        case, ("utilisation_fraction", "rent_usd_per_gpu_hour"), (0.0, 0.0), (UTILISATION_SEARCH, RENT_SEARCH_USD)
    )
    if take_or_pay:
        used = np.nan
        reasons["utilisation_fraction"] = "take-or-pay rent does not depend on the hours used: the answer is the rate"
    elif not np.isfinite(used):
        reasons["utilisation_fraction"] = _always(case, "utilisation_fraction", (1e-6, 1.0))
    elif used > 1:
        reasons["utilisation_fraction"] = (
            f"owning would need {used:.0%} of the hours that exist: renting always wins at this price"
        )
        used = np.nan
    if not np.isfinite(price):
        reasons["usd_per_gpu_hour"] = _always(case, "rent_usd_per_gpu_hour", (1e-6, RENT_SEARCH_USD))
    months, reasons_months = break_even_months(case)
    gpus, reasons_gpus = break_even_gpus(case)
    utilisation = _number(used)
    found: shape.BreakEven = {
        "utilisation_fraction": utilisation,
        "hours_per_gpu_month": None if utilisation is None else utilisation * case.number("hours_per_month"),
        "usd_per_gpu_hour": _number(price),
        "months": months,
        "gpus": gpus,
    }
    why = {f"{name}_reason": text for name, text in {**reasons, **reasons_months, **reasons_gpus}.items()}
    return cast(shape.BreakEven, {**found, **why})


def _always(case: OwnershipCase, name: str, ends: tuple[float, float]) -> str:
    saving = one_at_a_time(case, [name, name], np.array(ends)).saving_usd
    return "owning wins at every value" if float(saving.min()) > 0 else "renting wins at every value"


def break_even_months(case: OwnershipCase) -> tuple[int | None, dict[str, str]]:
    """Return the shortest comparison, in whole months, over which owning (with resale at its end) costs no more."""
    first = np.floor(case.number("lead_time_months")) + 1
    months = np.arange(first, case.months + 1)
    if not months.size:
        return None, {"months": "the cluster does not arrive within the comparison"}
    saving = outcomes(case, {"months": months}).saving_usd
    wins = np.nonzero(saving >= 0)[0]
    if wins.size:
        return int(months[wins[0]]), {}
    return None, {"months": f"owning does not catch up within {case.months} months"}


def break_even_gpus(case: OwnershipCase) -> tuple[int | None, dict[str, str]]:
    """Return the smallest number of whole servers, in GPUs, at which owning costs no more than renting."""
    node = case.number("gpus_per_node")
    counts = np.unique(np.concatenate((np.arange(1, 129), np.geomspace(128, MOST_NODES, 64).round())))
    saving = outcomes(case, {"gpus": counts * node}).saving_usd
    wins = np.nonzero(saving >= 0)[0]
    if wins.size:
        return int(counts[wins[0]] * node), {}
    return None, {"gpus": f"owning does not win at any size up to {int(MOST_NODES * node):,} GPUs"}


def by_utilisation(case: OwnershipCase, crossing: float | None, steps: int = 20) -> list[shape.UtilisationPoint]:
    """Return what an owned GPU-month costs on either side over the utilisation, by the formulas of the comparison."""
    used = case.number("utilisation_fraction")
    shares = np.unique([*np.arange(steps + 1) / steps, used, *([] if crossing is None else [crossing])])
    price = case.number("rent_usd_per_gpu_hour")
    now, dearer = (
        outcomes(case, {"utilisation_fraction": shares, "rent_usd_per_gpu_hour": price + more}) for more in (0.0, 1.0)
    )
    hours = now.owned_hours / case.number("hours_per_month")
    rows: list[shape.UtilisationPoint] = []
    for i, share in enumerate(shares.tolist()):
        for side, at, above in (("own", now.own_usd, dearer.own_usd), ("rent", now.rent_usd, dearer.rent_usd)):
            rows.append(
                {
                    "side": side,
                    "utilisation_fraction": share,
                    "usd_per_gpu_month": float(at[i] / hours[i]),
                    "more_per_rent_usd": float((above[i] - at[i]) / hours[i]),
                }
            )
    return rows


def two_way(
    case: OwnershipCase, names: tuple[str, str] = ("utilisation_fraction", "rent_usd_per_gpu_hour"), steps: int = 9
) -> shape.TwoWay:
    """Return what owning saves over a grid of two inputs."""
    axes = [np.array(_axis(case, name, steps)) for name in names]
    grid = np.meshgrid(*axes, indexing="ij")
    saving = outcomes(case, {name: values.ravel() for name, values in zip(names, grid, strict=True)}).saving_usd
    return {
        "x": names[0],
        "y": names[1],
        "x_values": axes[0].tolist(),
        "y_values": axes[1].tolist(),
        "saving_usd": saving.reshape(grid[0].shape).tolist(),
    }


def _axis(case: OwnershipCase, name: str, steps: int) -> list[float]:
    if name == "utilisation_fraction":
        return [float(value) for value in np.linspace(0.2, 1.0, steps)]
    ranges = case.ranges()
    value = case.number(name)
    low, high = (ranges[name][0], ranges[name][2]) if name in ranges else (0.5 * value, 2.0 * value)
    return [float(entry) for entry in np.linspace(low, high, steps)]


def scenarios(case: OwnershipCase, sensitivity: Sequence[shape.Sensitivity]) -> list[shape.ScenarioRow]:
    """Return the base, both extremes, and the plan's own scenarios."""
    best, worst = {}, {}
    for row in sensitivity:
        ends = (row["low"], row["high"])
        lower_is_better = row["saving_at_low_usd"] > row["saving_at_high_usd"]
        best[row["name"]], worst[row["name"]] = ends if lower_is_better else ends[::-1]
    sets: list[tuple[str, str, dict[str, Any]]] = [
        ("base", "every input at its value", {}),
        ("favourable", "every uncertain input at the end at which owning saves more", best),
        ("adverse", "every uncertain input at the end at which owning saves less", worst),
    ]
    for name, entries in case.scenarios.items():
        where = f"scenario {name}"
        changes = {key: case.registry.number(key, value, where) for key, value in changes_of(entries, where).items()}
        check_upfront({**case.values(), **changes}, where)
        sets.append(
            (name, "from the plan: " + ", ".join(f"{key} = {value}" for key, value in entries.items()), changes)
        )
    return [scenario(case, name, text, changes) for name, text, changes in sets]


def scenario(case: OwnershipCase, name: str, text: str, changes: Mapping[str, Any]) -> shape.ScenarioRow:
    """Return the comparison with some inputs changed, under a name."""
    result = outcomes(case, changes)
    if not np.isfinite([result.own_usd[0], result.rent_usd[0], result.own_usd_per_gpu_hour[0]]).all():
        raise UsageError(
            f"scenario {name}: it gives no finite costs, in all or for an hour in use ({text})."
            " Change less, or leave it out."
        )
    return {
        "name": name,
        "description": text,
        "npv_own_usd": float(result.own_usd[0]),
        "npv_rent_usd": float(result.rent_usd[0]),
        "saving_usd": float(result.saving_usd[0]),
        "levelised_usd_per_gpu_hour": float(result.own_usd_per_gpu_hour[0]),
        "buy_wins": bool(result.saving_usd[0] > 0),
        "changes": dict(changes),
    }


def sample(case: OwnershipCase, draws: int, seed: int) -> dict[str, Array]:
    """Draw every uncertain input from its range."""
    correlation = float(case.special.get("rent_residual_correlation", RENT_RESIDUAL_CORRELATION))
    pairs = {("rent_decline_fraction", "residual_scale_ratio"): correlation}
    return montecarlo.draw(case.ranges(), draws, seed, pairs)


def monte_carlo(case: OwnershipCase, draws: int, seed: int) -> shape.MonteCarlo:
    """Draw every uncertain input from its range and return the spread of both sides and how often buying wins."""
    drawn = sample(case, draws, seed)
    result = outcomes(case, drawn)
    saving = np.broadcast_to(result.saving_usd, (draws,)) if not drawn else result.saving_usd
    spread = {
        "saving_{}_usd": saving,
        "own_{}_usd": result.own_usd,
        "rent_{}_usd": result.rent_usd,
        "levelised_{}_usd_per_gpu_hour": result.own_usd_per_gpu_hour,
    }
    found = {
        key.format(share): value
        for key, values in spread.items()
        for share, value in montecarlo.percentiles(values).items()
    }
    wins = float(np.mean(saving > 0))
    counts = {"draws": draws, "seed": seed, "inputs": len(drawn)}
    return cast(shape.MonteCarlo, {**counts, **found, "probability_buy_wins_fraction": wins})


class Investment(TypedDict):
    """Owning instead of renting, paid in cash, judged on what it saves each month."""

    irr_fraction: float | None
    payback_months: float | None
    discounted_payback_months: float | None


def _paid_back(flows: Array) -> float | None:
    """Return the payback; where nothing is ever put in there is nothing to pay back."""
    return cashflow.payback_months(flows) if np.cumsum(flows).min() < 0 else None


def investment(saving: Array, monthly_rate: float) -> Investment:
    """Judge owning instead of renting as an investment, on what it saves each month."""
    discounted = saving * cashflow.discount(np.array([monthly_rate]), saving.size - 1)[0]
    return {
        "irr_fraction": cashflow.irr(saving),
        "payback_months": _paid_back(saving),
        "discounted_payback_months": _paid_back(discounted),
    }
