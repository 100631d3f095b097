"""Each option of a comparison against its closest rival: the cheapest of the others that can be counted on.

Present values are straight lines in the price of an option and in the utilisation, so that the break-even of a pair is
one division: the price at which the two cost the same, and the share of hours at which they do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.formula.arrays import evaluate_all
from gpucost.money import montecarlo
from gpucost.money.comparison import MOVING, rent_worth
from gpucost.ownership import analysis
from gpucost.ownership.alternatives import Leg, present, rented
from gpucost.ownership.assemble import OwnershipCase

Array = NDArray[np.float64]

_OWN = ("own", "own_in_cash")  # one purchase, however it is paid


def judged(
    case: OwnershipCase, base: Mapping[str, Any], rows: Sequence[shape.OwnershipOption], draws: int, seed: int
) -> list[shape.OwnershipOption]:
    """Return the options, each with its closest rival: saving, break-even and how often it wins."""
    moving = dict(base)
    evaluate_all(MOVING, moving)
    drawn = _drawn(case, rows, draws, seed)
    return [_against(case, row, rows, moving, drawn) for row in rows]


def _against(
    case: OwnershipCase,
    row: shape.OwnershipOption,
    rows: Sequence[shape.OwnershipOption],
    moving: Mapping[str, Any],
    drawn: Mapping[str, Array],
) -> shape.OwnershipOption:
    other = closest(row, rows)
    if other is None:
        return row
    saving = other["npv_usd"] - row["npv_usd"]
    names = (row["name"], other["name"])
    found: shape.Rival = {
        "name": other["name"],
        "saving_usd": saving,
        "breakeven_usd_per_gpu_hour": None if case.bent else _price(case, row, other, moving),
        "breakeven_utilisation_fraction": None if case.bent else _share(case, row, other, moving),
    }
    if names[0] in drawn and names[1] in drawn:
        won = drawn[names[1]] - drawn[names[0]]
        spread = montecarlo.percentiles(won)
        found["saving_p5_usd"], found["saving_p50_usd"], found["saving_p95_usd"] = spread.values()
        found["probability_wins_fraction"] = float(np.mean(won > 0))
    return {**row, "rival": found}


def closest(row: shape.OwnershipOption, rows: Sequence[shape.OwnershipOption]) -> shape.OwnershipOption | None:
    """Return the cheapest other option whose capacity is promised."""
    others = [one for one in rows if one["name"] != row["name"] and not (one["name"] in _OWN and row["name"] in _OWN)]
    return next(iter(shape.promised(others)), None)


def _price(
    case: OwnershipCase, row: shape.OwnershipOption, other: shape.OwnershipOption, moving: Mapping[str, Any]
) -> float | None:
    """Return the price of the option, or of its rival where it has none, at which the two cost the same."""
    priced, against = (row, other) if row.get("usd_per_gpu_hour") is not None else (other, row)
    price, legs = priced.get("usd_per_gpu_hour"), priced.get("legs")
    if price is None or not legs:
        return None
    slope = legs[0]["weight"] * present(rented(case, legs[0]["changes"]), "rent_moves_usd")
    if priced["name"] == "rent" and against["name"] in _OWN:
        slope -= present(moving, "own_moves_with_price_usd")
    found = price * (1 - (priced["npv_usd"] - against["npv_usd"]) / slope) if slope else -1.0
    return found if found > 0 else None


def _share(
    case: OwnershipCase, row: shape.OwnershipOption, other: shape.OwnershipOption, moving: Mapping[str, Any]
) -> float | None:
    """Return the utilisation at which the two cost the same; None where one of them wins at any."""
    slopes = [_moves_with_use(case, one, moving) for one in (row, other)]
    owned = any(one["name"] in _OWN for one in (row, other))
    if slopes[0] == slopes[1] or (owned and 0.0 in slopes):  # against take-or-pay only the energy of owning moves
        return None
    used = case.number("utilisation_fraction")
    found = used * (1 - (row["npv_usd"] - other["npv_usd"]) / (slopes[0] - slopes[1]))
    return found if 0 < found <= 1 else None


def _moves_with_use(case: OwnershipCase, row: shape.OwnershipOption, moving: Mapping[str, Any]) -> float:
    """Return the part of an option's present value that is proportional to the utilisation."""
    if row["name"] in _OWN:
        return present(moving, "own_moves_with_use_usd")
    if "legs" not in row:
        return row["npv_usd"]  # a hosted API is paid by the token
    found = 0.0
    for leg in row["legs"]:
        values = rented(case, leg["changes"])
        if values["rent_billing"] != "take_or_pay":
            found += leg["weight"] * present(values, "rent_moves_usd")
    return found


def _drawn(case: OwnershipCase, rows: Sequence[shape.OwnershipOption], draws: int, seed: int) -> dict[str, Array]:
    """Return the present value of every option under the same draws."""
    if not draws:
        return {}
    sample = analysis.sample(case, draws, seed)
    found = {"own": np.broadcast_to(analysis.outcomes(case, sample).own_usd, (draws,))}
    done: dict[str, Array] = {}
    for row in rows:
        if "legs" in row:
            parts = [_leg(case, Leg(**leg), sample, done) for leg in row["legs"]]
            found[row["name"]] = np.broadcast_to(np.sum(np.broadcast_arrays(*parts), axis=0), (draws,))
    return found


def _leg(case: OwnershipCase, leg: Leg, sample: Mapping[str, Any], done: dict[str, Array]) -> Array:
    key = repr(leg.changes)
    if key not in done:
        done[key] = rent_worth({**case.columns(), **sample, **leg.changes}, case.tables)
    return leg.weight * done[key]
