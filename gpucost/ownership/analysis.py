"""Analyses of a case: break-even, what flips the decision, rivals, tornado, grids, scenarios, Monte Carlo, views."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.errors import UsageError
from gpucost.formula.arrays import evaluate_all
from gpucost.money import cashflow, lender, montecarlo
from gpucost.money import energy as carbon
from gpucost.money import statements as books
from gpucost.money.comparison import (
    MOVING,
    Outcome,
    evaluate_months,
    outcome,
    rent_worth,
)
from gpucost.money.price_paths import value_at
from gpucost.ownership.alternatives import discounted_hours, monthly, own_worth, present, rented, scalar
from gpucost.ownership.assemble import FELL, OwnershipCase, past_fall
from gpucost.ownership.figures import RENT_SEARCH_USD
from gpucost.ownership.offers import check_upfront
from gpucost.ownership.plan import changes_of
from gpucost.units import MONTHS_PER_YEAR

# --- Answers from a case: break-even, what flips the decision, tornado, grids, scenarios, Monte Carlo.

Array = NDArray[np.float64]

MOST_NODES = 4096  # clusters that the search for a break-even size looks at
_RENT_RESIDUAL_CORRELATION = -0.5  # assumed: where rents fall fast, used hardware is worth less
CONTRACT, CONTRACT_MONTHS = "contract of ", (12, 36)  # of contracts whose prices are on record
_LIVES_YEARS = (4, 6)  # useful lives in the books of those who own most: 4 at first, 6 since 2023
_CHOSEN = frozenset({"wacc_fraction"})  # by who decides, not by chance
_OF_TENTHS = frozenset({"rent_outlook_ratio"})  # whose low and high are the 10th and 90th percentile


def outcomes(case: OwnershipCase, changes: Mapping[str, Any]) -> Outcome:
    """Evaluate the case with some inputs changed: numbers, words, or one value per case."""
    return outcome({**case.columns(), **changes}, case.tables)


def _one_at_a_time(case: OwnershipCase, names: Sequence[str], values: Array) -> Outcome:
    """Evaluate one case per value: each changes only its own input."""
    input_of_case = np.array(names)
    return outcomes(
        case, {name: np.where(input_of_case == name, values, case.number(name)) for name in dict.fromkeys(names)}
    )


def solve(case: OwnershipCase, names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> Array:
    """Return, for each input, the value at which owning and renting cost the same; NaN where there is none."""
    if not names:
        return np.empty(0)
    return cashflow.roots(
        lambda x: _one_at_a_time(case, names, x).saving_usd, np.array(low, float), np.array(high, float)
    )


def tornado(case: OwnershipCase) -> list[shape.Sensitivity]:
    """Move every uncertain input to its low and its high, alone, and tell what flips the decision, and where."""
    ranges = case.ranges()
    names = list(ranges)
    base = float(outcomes(case, {}).saving_usd[0])
    lows, highs = (np.array([ranges[name][end] for name in names]) for end in (0, 2))
    if not names:
        return []
    # All lows and all highs are one evaluation: a case for each.
    result = _one_at_a_time(case, [*names, *names], np.concatenate((lows, highs)))
    at_low, at_high = np.split(result.saving_usd, 2)
    own_low, own_high = np.split(result.own_usd_per_gpu_hour, 2)
    # Where an end turns the decision, the value at which it turns lies between it and the usual one.
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
            "flip_value": float(points[i]) if i in points and np.isfinite(points[i]) else None,
        }
        for i, name in enumerate(names)
    ]
    rows.sort(key=lambda row: (-row["swing_usd"], row["name"]))
    return [row for row in rows if row["swing_usd"] > 1e-6]


def break_even(case: OwnershipCase, compared: Mapping[str, float | None]) -> shape.BreakEven:
    """Return where owning and renting cost the same: in utilisation, rental price, months and GPUs; with reasons."""
    why: dict[str, str] = {}
    utilisation, needed = compared["breakeven_utilisation_fraction"], compared["hours_needed_fraction"]
    price, months = compared["breakeven_usd_per_gpu_hour"], compared["breakeven_months"]
    # The figures know only that there is no root; which side always wins is told by the ends of the search.
    if case.assumptions["rent_billing"].value == "take_or_pay":
        why["utilisation_fraction_reason"] = (
            "take-or-pay rent does not depend on the hours used: the answer is the rate"
        )
    elif needed is None:
        why["utilisation_fraction_reason"] = _always(case, "utilisation_fraction", (1e-6, 1.0))
    elif utilisation is None:
        why["utilisation_fraction_reason"] = (
            f"owning would need {needed:.0%} of the hours that exist: renting always wins at this price"
        )
    if price is None:
        why["usd_per_gpu_hour_reason"] = _always(case, "rent_usd_per_gpu_hour", (1e-6, RENT_SEARCH_USD))
    if months is None:
        arrives = np.floor(case.number("lead_time_months")) + 1 <= case.months
        why["months_reason"] = (
            f"owning does not catch up within {case.months} months"
            if arrives
            else "the cluster does not arrive within the comparison"
        )
    # The smallest number of whole servers at which owning costs no more: every one up to 128, then in steps of 6 %.
    node = case.number("gpus_per_node")
    counts = np.unique(np.concatenate((np.arange(1, 129), np.geomspace(128, MOST_NODES, 64).round())))
    wins = np.nonzero(outcomes(case, {"gpus": counts * node}).saving_usd >= 0)[0]
    gpus = int(counts[wins[0]] * node) if wins.size else None
    if gpus is None:
        most = int(MOST_NODES * node)
        why["gpus_reason"] = f"owning does not win at any size up to {most:,} GPUs"
    points: shape.BreakEven = {
        "utilisation_fraction": utilisation,
        "hours_per_gpu_month": None if utilisation is None else utilisation * case.number("hours_per_month"),
        "usd_per_gpu_hour": price,
        "months": None if months is None else int(months),
        "gpus": gpus,
    }
    return cast(shape.BreakEven, {**points, **why})


def _always(case: OwnershipCase, name: str, ends: tuple[float, float]) -> str:
    saving = _one_at_a_time(case, [name, name], np.array(ends)).saving_usd
    return "owning wins at every value" if float(saving.min()) > 0 else "renting wins at every value"


def by_utilisation(case: OwnershipCase, crossing: float | None, steps: int = 20) -> list[shape.UtilisationPoint]:
    """Return what an owned GPU-month costs on either side over the utilisation, by the formulas of the comparison."""
    used = case.number("utilisation_fraction")
    shares = np.unique([*np.arange(steps + 1) / steps, used, *([] if crossing is None else [crossing])])
    price = case.number("rent_usd_per_gpu_hour")
    # A dollar more of rent shows how either side moves with it: a reader may draw the lines at another price.
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
    ranges, axes = case.ranges(), list[Array]()
    for name in names:
        if name == "utilisation_fraction":
            low, high = 0.2, 1.0
        elif name in ranges:
            low, _, high = ranges[name]
        else:  # a certain input: from half to twice its value
            low, high = 0.5 * case.number(name), 2.0 * case.number(name)
        axes.append(np.linspace(low, high, steps))
    grid = np.meshgrid(*axes, indexing="ij")
    saving = outcomes(case, {name: values.ravel() for name, values in zip(names, grid, strict=True)}).saving_usd
    return {
        "x": names[0],
        "y": names[1],
        "x_values": axes[0].tolist(),
        "y_values": axes[1].tolist(),
        "saving_usd": saving.reshape(axes[0].size, axes[1].size).tolist(),
    }


def scenarios(case: OwnershipCase, sensitivity: Sequence[shape.Sensitivity]) -> list[shape.ScenarioRow]:
    """Return the base, both extremes, and the plan's own scenarios."""
    best, worst = {}, {}
    # End by end, as each moves alone: what inputs do to each other is left to the draws.
    for row in sensitivity:
        ends = (row["low"], row["high"])
        lower_is_better = row["saving_at_low_usd"] > row["saving_at_high_usd"]
        best[row["name"]], worst[row["name"]] = ends if lower_is_better else ends[::-1]
    sets: list[tuple[str, str, dict[str, Any]]] = [
        ("base", "every input at its base value", {}),
        ("favourable", "every uncertain input at the end that favours owning", best),
        ("adverse", "every uncertain input at the end that favours renting", worst),
    ]
    for name, entries in case.scenarios.items():
        origin = f"scenario {name}"
        changes = {key: case.registry.number(key, value, origin) for key, value in changes_of(entries, origin).items()}
        check_upfront({**case.values(), **changes}, origin)
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


def _draw_inputs(case: OwnershipCase, draws: int, seed: int) -> dict[str, Array]:
    """Draw every input that chance decides from its range; the cost of capital is a choice, seen in the tornado."""
    correlation = float(case.special.get("rent_residual_correlation", _RENT_RESIDUAL_CORRELATION))
    pairs = {
        ("rent_decline_fraction", "residual_scale_ratio"): correlation,
        ("rent_outlook_ratio", "residual_scale_ratio"): -correlation,
    }
    ranges = {name: ends for name, ends in case.ranges().items() if name not in _CHOSEN}
    # A draw's ends are its extremes: a range from the 10th to the 90th percentile is widened to those.
    for name in _OF_TENTHS & ranges.keys():
        low, typical, high = ranges[name]
        least, most = (typical + (end - typical) * montecarlo.BEYOND_TENTHS for end in (low, high))
        ranges[name] = (least, typical, most)
    return montecarlo.draw(ranges, draws, seed, pairs)


def monte_carlo(case: OwnershipCase, draws: int, seed: int) -> shape.MonteCarlo:
    """Draw every uncertain input from its range and return the spread of both sides and how often buying wins."""
    drawn = _draw_inputs(case, draws, seed)
    result = outcomes(case, drawn)
    # Where no input has a range, every draw is the same case.
    saving = np.broadcast_to(result.saving_usd, (draws,)) if not drawn else result.saving_usd
    spread = {
        "saving_{}_usd": saving,
        "own_{}_usd": result.own_usd,
        "rent_{}_usd": result.rent_usd,
        "levelised_{}_usd_per_gpu_hour": result.own_usd_per_gpu_hour,
    }
    spreads = {
        key.format(share): value
        for key, values in spread.items()
        for share, value in montecarlo.percentiles(values).items()
    }
    wins = float(np.mean(saving > 0))
    counts = {"draws": draws, "seed": seed, "inputs": len(drawn)}
    return cast(shape.MonteCarlo, {**counts, **spreads, "probability_buy_wins_fraction": wins})


# --- Each option of a comparison against its closest rival: the cheapest of the others that can be counted on.
#
# Present values are straight lines in the price of an option and in the utilisation, so that the break-even of a pair
# is one division: the price at which the two cost the same, and the share of hours at which they do.

_OWNING = ("own", "own_in_cash")  # one purchase, however it is paid


def with_rivals(
    case: OwnershipCase, base: Mapping[str, Any], rows: Sequence[shape.OwnershipOption], draws: int, seed: int
) -> list[shape.OwnershipOption]:
    """Return the options, each with its closest rival: saving, break-even and how often it wins."""
    moving = dict(base)
    evaluate_all(MOVING, moving)

    # The present value of every option under the same draws; legs that options share are evaluated once.
    drawn: dict[str, Array] = {}
    if draws:
        sample = _draw_inputs(case, draws, seed)
        drawn["own"] = np.broadcast_to(outcomes(case, sample).own_usd, (draws,))
        worth_of_leg: dict[str, Array] = {}
        for row in rows:
            if "legs" not in row:
                continue
            parts = []
            for leg in row["legs"]:
                key = repr(leg["changes"])
                if key not in worth_of_leg:
                    changed = {**case.columns(), **sample, **leg["changes"]}
                    worth_of_leg[key] = rent_worth(changed, case.tables)
                parts.append(leg["weight"] * worth_of_leg[key])
            drawn[row["name"]] = np.broadcast_to(np.sum(np.broadcast_arrays(*parts), axis=0), (draws,))

    rivalled: list[shape.OwnershipOption] = []
    for row in rows:
        rival = closest(row, rows)
        if rival is None:
            rivalled.append(row)
            continue
        # The price of the option, or of its rival where it has none, at which the two cost the same.
        even_usd: float | None = None
        priced, against = (row, rival) if row.get("usd_per_gpu_hour") is not None else (rival, row)
        price, legs = priced.get("usd_per_gpu_hour"), priced.get("legs")
        if price is not None and legs and not case.bent:
            # It is that of the first leg; a purchase whose wait is bridged by rent moves with the price as asked, too.
            slope = legs[0]["weight"] * present(rented(case, legs[0]["changes"]), "rent_moves_usd")
            if priced["name"] == "rent" and against["name"] in _OWNING:
                slope -= present(moving, "own_moves_with_price_usd")
            if slope:
                even_usd = price * (1 - (priced["npv_usd"] - against["npv_usd"]) / slope)
        rivalry: shape.Rival = {
            "name": rival["name"],
            "saving_usd": rival["npv_usd"] - row["npv_usd"],
            "breakeven_usd_per_gpu_hour": even_usd if even_usd is not None and even_usd > 0 else None,
            "breakeven_utilisation_fraction": None if case.bent else _even_utilisation(case, row, rival, moving),
        }
        if row["name"] in drawn and rival["name"] in drawn:
            saved = drawn[rival["name"]] - drawn[row["name"]]
            spread = montecarlo.percentiles(saved)
            rivalry["saving_p10_usd"], rivalry["saving_p50_usd"], rivalry["saving_p90_usd"] = spread.values()
            rivalry["probability_wins_fraction"] = float(np.mean(saved > 0))
        rivalled.append({**row, "rival": rivalry})
    return rivalled


def closest(row: shape.OwnershipOption, rows: Sequence[shape.OwnershipOption]) -> shape.OwnershipOption | None:
    """Return the cheapest other option whose capacity is promised."""
    rivals = [
        candidate
        for candidate in rows
        if candidate["name"] != row["name"] and not (candidate["name"] in _OWNING and row["name"] in _OWNING)
    ]
    promised = list(shape.promised(rivals))
    return promised[0] if promised else None


def _even_utilisation(
    case: OwnershipCase, row: shape.OwnershipOption, rival: shape.OwnershipOption, moving: Mapping[str, Any]
) -> float | None:
    """Return the utilisation at which the two cost the same; None where one of them wins at any."""
    slopes = []  # the part of each present value that is proportional to the utilisation
    for option in (row, rival):
        slope = option["npv_usd"]  # of a hosted API, which is paid by the token, all of it
        if option["name"] in _OWNING:
            slope = present(moving, "own_moves_with_use_usd")
        elif "legs" in option:
            slope = 0.0
            for leg in option["legs"]:
                values = rented(case, leg["changes"])
                slope += leg["weight"] * present(values, "rent_moves_with_use_usd")
        slopes.append(slope)
    owned = any(option["name"] in _OWNING for option in (row, rival))
    if slopes[0] == slopes[1] or (owned and 0.0 in slopes):  # against take-or-pay only the energy of owning moves
        return None
    used = case.number("utilisation_fraction")
    even_fraction = used * (1 - (row["npv_usd"] - rival["npv_usd"]) / (slopes[0] - slopes[1]))
    return even_fraction if 0 < even_fraction <= 1 else None


# --- Other views of a comparison: scope, financing, tax, sunk capacity, other price paths, carbon.

_TAX_LINES = ("own_tax_usd", "rent_tax_usd", "depreciation_usd")


class Beside(TypedDict):
    """What stands beside the comparison."""

    tax: shape.TaxView
    scope: list[shape.ScopeRow]
    sunk: shape.Sunk
    carbon: shape.Carbon


def beside(case: OwnershipCase, values: Mapping[str, Any]) -> Beside:
    """Return the views that stand beside the comparison."""
    after = case.assumptions["tax_basis"].value == "after"
    schedule = case.assumptions["depreciation_method"]
    # tax (negative: saved) and depreciation by year, whichever view the headline takes
    taxed = evaluate_months({**case.columns(), "tax_basis": "after"}, case.tables, case.months, _TAX_LINES)
    year = np.ceil(taxed["m"][0] / 12).astype(int)
    sums = {name: np.bincount(year, weights=monthly(taxed, name)).tolist() for name in _TAX_LINES}
    by_year = [
        cast(shape.TaxYear, {"year": index, **{name: flows[index] for name, flows in sums.items()}})
        for index in range(int(year.max()) + 1)
    ]
    result = outcomes(case, {"tax_basis": "before" if after else "after"})
    return {
        "tax": {  # the comparison on the other side of income tax
            "view": "before income tax" if after else "after income tax",
            "tax_rate_fraction": case.number("tax_rate_fraction"),
            "depreciation": schedule.note if schedule.value == "by_year" else str(schedule.value),
            "own_usd": float(result.own_usd[0]),
            "rent_usd": float(result.rent_usd[0]),
            "saving_usd": float(result.saving_usd[0]),
            "by_year": by_year,
        },
        "scope": scope(case, values),
        "sunk": _sunk_views(case, values),
        "carbon": emissions(case, values),
    }


def scope(case: OwnershipCase, values: Mapping[str, Any]) -> list[shape.ScopeRow]:
    """Return what each side includes, and flag what only one of them pays for."""

    def paid(*names: str) -> float:
        return sum(abs(float(monthly(values, name).sum())) for name in names)

    rented_support = "hardware support is part of a rental price"
    all_in = case.assumptions["server_price_basis"].value == "all_in"
    # Support is part of a rental price, and a price all in holds what a server comes with.
    rows = [
        ("storage", paid("own_storage_usd", "own_storage_rental_usd") > 0 or all_in, paid("rent_storage_usd") > 0, ""),
        ("hardware support", paid("own_support_usd") > 0, True, rented_support),
        ("data leaving", paid("own_egress_usd") > 0, paid("rent_egress_usd") > 0, ""),
        ("control plane", paid("own_control_plane_usd") > 0 or all_in, paid("rent_control_plane_usd") > 0, ""),
        ("operations staff", paid("own_staff_usd") > 0, paid("rent_staff_usd") > 0, ""),
        ("software licences", paid("own_licence_usd") > 0, paid("rent_licence_usd") > 0, ""),
    ]
    listed: list[shape.ScopeRow] = [
        {"item": item, "own": owner_pays, "rent": rent, "unequal": owner_pays != rent, "note": note}
        for item, owner_pays, rent, note in rows
    ]
    good, rented = scalar(values, "goodput_fraction"), scalar(values, "rent_goodput_used_fraction")
    same = "both sides give the same productive hours"
    return [*listed, {"item": "goodput", "own": good, "rent": rented, "unequal": False, "note": same}]


def _sunk_views(case: OwnershipCase, values: Mapping[str, Any]) -> shape.Sunk:
    """Return what an allocated GPU-hour of capacity costs that is owned already: loaded, avoidable and incremental.

    Loaded: everything. Avoidable: what stops when the cluster is sold today (running costs, and resale forgone).
    Incremental: what one more allocated hour adds, the energy above idle.
    """
    hours, number = discounted_hours(values), case.number
    scale, fee = scalar(values, "residual_scale"), number("resale_fee_fraction")
    servers, age = scalar(values, "servers_usd"), number("sunk_age_months") / 12
    # What a sale brings today, and what one brings after the comparison: never more than the price.
    worth = [
        servers * min(1.0, scale * value_at(case.tables["residual_by_year"], years)) * (1 - fee)
        for years in (age, age + case.months / 12)
    ]
    last = monthly(values, "discount_ratio")[case.months]
    keep = present(values, "own_running_usd") + worth[0] - worth[1] * last
    # one more hour in use draws what a busy GPU draws above an idle one
    draw = min(number("power_fraction_active"), number("power_cap_fraction")) - number("power_fraction_idle")
    rated_kw, metered = scalar(values, "rated_kw"), scalar(values, "metered_ratio")
    power = rated_kw / number("gpus") * draw * number("pue_ratio") * metered
    return {
        "age_months": number("sunk_age_months"),
        "sale_today_usd": worth[0],
        "loaded_usd_per_gpu_hour": own_worth(values) / hours if hours else None,
        "avoidable_usd_per_gpu_hour": float(keep) * scalar(values, "after_tax_ratio") / hours if hours else None,
        "incremental_usd_per_gpu_hour": power * number("electricity_usd_per_kwh"),
    }


def price_paths(case: OwnershipCase) -> list[shape.ScenarioRow]:
    """Return the comparison under other futures of the rental price, and at what contracts were signed at."""
    fall, rise = past_fall(case.registry), case.registry.fact("rental_price_rise.year_to_2026_09")
    paths = (
        ("rent flat", "the rental price stays flat", "flat", 0.0),
        ("rent declines", f"the rental price falls by {fall:.0%} a year, {FELL}", "flat", fall),
        (
            "rent rises",
            f"the rental price rises by {rise['typical']:.0%} a year, as in that to September 2026",
            "flat",
            -rise["typical"],
        ),
        ("rent V", "the fall and rise of H100 rent from 2023 to 2026 repeats", "observed_v", 0.0),
    )
    rows = [
        scenario(case, name, text, {"rent_path_basis": basis, "rent_decline_fraction": fall})
        for name, text, basis, fall in paths
    ]
    rows += [scenario(case, *contract) for contract in contracts(case)]
    rows += [
        scenario(
            case,
            f"life of {years} years",
            f"the hardware is used, depreciated and sold after {years} years; compare prices per hour, not totals",
            {"months": 12.0 * years, "book_life_years": float(years)},
        )
        for years in _LIVES_YEARS
        if 12 * years != case.months
    ]
    if not np.ptp(case.tables["rent_high_by_month"]):  # no forward curve of this chip
        return rows
    outlooks = (("P10", -1.0, "10th"), ("P90", 1.0, "90th"))
    return rows + [
        scenario(
            case,
            f"rent {label}",
            f"the rental price follows the {end} percentile of the forward curve",
            {"rent_path_basis": "forward", "rent_decline_fraction": 0.0, "rent_outlook_ratio": place},
        )
        for label, place, end in outlooks
    ]


def contracts(case: OwnershipCase) -> list[tuple[str, str, dict[str, Any]]]:
    """Return at which price contracts for this chip were signed, by term: nobody's offer, so never ranked."""
    chip, rows = "" if case.accelerator is None else case.accelerator.id, []
    for months in CONTRACT_MONTHS:
        fact = case.registry.facts.get(f"contract_rent.{chip}.{months}_months")
        if fact is not None:
            text = (
                f"rented for terms of {months} months at ${fact['typical']:.2f} per GPU-hour, what such contracts cost"
                f" in {fact['observed']}"
            )
            changes = {
                "rent_usd_per_gpu_hour": fact["typical"],
                "rent_billing": "take_or_pay",
                "rent_term_months": float(months),
                "rent_until_months": 0.0,
            }
            rows.append((f"{CONTRACT}{months} months", text, changes))
    return rows


def lives(case: OwnershipCase) -> list[shape.LifeCase]:
    """Return what owning costs an hour over each useful life, and what its books would have to write off.

    Book value above resale value at a year's end is an impairment where the use earns no more than a sale does.
    """
    # Where the low end of resale is known, books are held against that, too.
    scale = case.assumptions["residual_scale_ratio"]
    low = scale.low if scale.counts and scale.low is not None else None
    rows: list[shape.LifeCase] = []
    for years in _LIVES_YEARS:
        changes: dict[str, Any] = {"months": 12.0 * years, "book_life_years": float(years)}
        values = evaluate_months({**case.columns(), **changes}, case.tables, 12 * years)
        evaluate_all((*books.MONTHLY, *lender.MONTHLY), values)
        owned = scalar(values, "owned_gpu_hours_per_month") * present(values, "in_horizon")
        book, resale = monthly(values, "book_hardware_usd"), monthly(values, "pledged_value_usd")
        ends = [month for month in range(12, 12 * years, 12) if book[month] > 0]
        gaps = [book[month] - resale[month] for month in ends]
        low_gaps = gaps
        if low is not None:
            strained = evaluate_months(
                {**case.columns(), **changes, "residual_scale_ratio": low}, case.tables, 12 * years
            )
            evaluate_all((*books.MONTHLY, *lender.MONTHLY), strained)
            low_gaps = [book[month] - monthly(strained, "pledged_value_usd")[month] for month in ends]
        worst = int(np.argmax(gaps)) if gaps else None
        own_usd, rent_usd, hours = own_worth(values), present(values, "rent_total_usd"), discounted_hours(values)
        rows.append(
            {
                "life_years": years,
                "npv_own_usd": own_usd,
                "npv_rent_usd": rent_usd,
                "saving_usd": rent_usd - own_usd,
                "levelised_usd_per_gpu_hour": own_usd / hours if hours else None,
                "own_usd_per_owned_gpu_hour": own_usd / owned if owned else None,
                "book_depreciation_usd_per_year": float(monthly(values, "book_depreciation_usd").sum()) / years,
                "impairment_usd": max(0.0, float(gaps[worst])) if worst is not None else 0.0,
                "impairment_year": None if worst is None or gaps[worst] <= 0 else ends[worst] // 12,
                "impairment_at_low_resale_usd": max([0.0, *map(float, low_gaps)]),
            }
        )
    return rows


def emissions(case: OwnershipCase, values: Mapping[str, Any]) -> shape.Carbon:
    """Return the carbon of owning over the comparison, and of renting the same hours on the same grid."""
    by_month = monthly(values, "energy_kwh")
    energy = float(by_month.sum())
    grid, free = case.number("grid_kgco2e_per_kwh"), case.number("carbon_free_fraction")
    located, market = carbon.operational_kgco2e(np.array(energy), np.array(grid), np.array(free))
    nodes = np.array(case.number("gpus") / case.number("gpus_per_node"))
    years, life = np.array(scalar(values, "service_years")), np.array(case.number("embodied_life_years"))
    embodied = carbon.embodied_kgco2e(nodes, np.array(case.number("embodied_kgco2e_per_node")), years, life)
    # Who rents does not pay for the energy of hours that are not used: the idle draw of owned hours goes off.
    idle = (1 - case.number("utilisation_fraction") * monthly(values, "use_ratio")) * case.number("power_fraction_idle")
    return {
        "energy_kwh": energy,
        "operational_location_kgco2e": located.item(),
        "operational_market_kgco2e": market.item(),
        "embodied_kgco2e": embodied.item(),
        "total_location_kgco2e": located.item() + embodied.item(),
        "rented_energy_kwh": float(np.sum(by_month * (1 - idle / np.maximum(monthly(values, "power_fraction"), 1e-9)))),
    }


def financed(case: OwnershipCase, values: Mapping[str, Any], saving_usd: float) -> shape.Financing | None:
    """Part the saving into that of the purchase in cash and what financing adds, at the cost of debt after tax."""
    kind = str(case.assumptions["financing"].value)
    if kind == "cash":
        return None
    # Adjusted present value (Myers 1974): the purchase as if paid in cash, and what the debt adds to it.
    in_cash = present(values, "own_in_cash_usd")
    return {
        "kind": kind.replace("_", " "),
        "own_in_cash_usd": in_cash,
        "saving_in_cash_usd": present(values, "rent_total_usd") - in_cash,
        "adds_usd": saving_usd - (present(values, "rent_total_usd") - in_cash),
        "debt_rate_fraction": scalar(values, "monthly_debt_rate_fraction") * MONTHS_PER_YEAR,
        "equity_irr_fraction": cashflow.irr(monthly(values, "saving_usd")),
    }
