"""The whole answer to "rent or buy?" as a payload, with everything that a workbook or an explanation needs."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.common import Source, cited, finite, frame
from gpucost.answers.statements import Statements
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.formula.language import Line
from gpucost.limits import limit
from gpucost.money.comparison import ALL, OWN_LINES, RENT_LINES, evaluate_months
from gpucost.ownership import analysis, books, currency, model, rivals, said, views
from gpucost.ownership.alternatives import discounted_hours, monthly, options, own_worth, present, scalar
from gpucost.ownership.assemble import OwnershipCase, assemble
from gpucost.ownership.plan import PlanFile
from gpucost.units import SECONDS_PER_HOUR

Array = NDArray[np.float64]

DRAWS, SEED = 1000, 1


def answer(
    catalog: Catalog, plan: PlanFile, flags: Mapping[str, Any], special: Mapping[str, Any], request: Mapping[str, Any]
) -> shape.Tco:
    """Compare owning with renting and return the payload."""
    return _payload(catalog, assemble(catalog, plan, flags, special), request)


def _payload(catalog: Catalog, case: OwnershipCase, request: Mapping[str, Any]) -> shape.Tco:
    values = evaluate_months(case.values(), case.tables, case.months)
    _refuse_endless(values)
    sensitivity, chance = analysis.tornado(case), _chance(case)
    judged = analysis.investment(monthly(values, "saving_in_cash_usd"), scalar(values, "monthly_rate_fraction"))
    saving = present(values, "rent_total_usd") - own_worth(values)
    paid = views.financed(case, values, saving)
    listed = rivals.judged(case, values, options(case, values), *_draws(case))
    point = analysis.break_even(case)
    return {
        "kind": "tco",
        **frame(request, catalog.as_of, catalog.version),
        "lead": said.lead(case, point, listed),
        "settings": settings(case),
        "conventions": said.conventions(case),
        "npv_usd": _npv(listed, saving),
        "financing": paid,
        **judged,
        **levels(case, values),
        "breakeven": point,
        "by_utilisation": analysis.by_utilisation(case, point["utilisation_fraction"]),
        "probability_buy_wins_fraction": chance["probability_buy_wins_fraction"] if chance else None,
        "monte_carlo": chance,
        "options": listed,
        "lines": lines(values),
        "cash_flows": cash_flows(values, parse_start(case, catalog.as_of)),
        "by_year": by_year(values),
        "statements": _statements(case, values, catalog.as_of),
        "peak_cash_usd": _peak_cash(listed, -np.cumsum(monthly(values, "saving_usd")).min()),
        **views.beside(case, values),
        "scenarios": [*analysis.scenarios(case, sensitivity), *views.price_paths(case)],
        "sensitivity": sensitivity,
        "two_way": analysis.two_way(case),
        "currency": currency.converted(case, values),
        "assumptions": [entry.as_dict() for entry in case.assumptions.values()],
        "model": model.block(case),
        "warnings": said.warnings(case, values, saving, judged, paid) + said.credits_said(listed, said.HOURS),
        "sources": sources(catalog, case, listed),
    }


def _refuse_endless(values: Mapping[str, Any]) -> None:
    """Refuse inputs of which a formula makes no finite number, naming the first formula that does not."""
    for line in ALL:
        if not np.isfinite(values[line.name]).all():
            raise UsageError(
                f"{line.name} is no finite number with these inputs: it is {line.text}. Change an input of it."
            )


def settings(case: OwnershipCase) -> dict[str, Any]:
    """Return what the plan and the command said beside the inputs, JSON-able; with them a plan can be written again."""
    given = {name: str(value) if isinstance(value, date) else value for name, value in case.special.items()}
    return {**given, "scenarios": case.scenarios, "rent_options": case.rent_options}


def _npv(rows: list[shape.OwnershipOption], saving: float) -> shape.Worth:
    worth = {row["name"]: row["npv_usd"] for row in rows}
    first = {"own": worth.pop("own"), "rent": worth.pop("rent"), "saving": saving}
    return cast(shape.Worth, first | worth)


def _chance(case: OwnershipCase) -> shape.MonteCarlo | None:
    draws, seed = _draws(case)
    return analysis.monte_carlo(case, draws, seed) if draws else None


def _draws(case: OwnershipCase) -> tuple[int, int]:
    draws, most = int(case.special.get("draws", DRAWS)), limit("limit_draw_months")
    if draws * case.months > most:
        raise UsageError(
            f"{draws:,} draws over {case.months} months are more than {most:,.0f} draws times months: ask for"
            f" {int(most // case.months):,} draws or fewer. The setting limit_draw_months raises that."
        )
    return draws, int(case.special.get("seed", SEED))


def _peak_cash(listed: list[shape.OwnershipOption], out_usd: float) -> shape.PeakCash:
    own, rent = (next(row for row in listed if row["name"] == name)["peak_month_usd"] for name in ("own", "rent"))
    return {"own": own, "rent": rent, "funding_until_payback": float(max(0.0, out_usd))}


_PER = ("gpu_hour", "gpu_hour_owned", "gpu_hour_productive", "mtok")


def levels(case: OwnershipCase, values: Mapping[str, Any]) -> shape.Levels:
    """Return levelised prices of owning and renting per allocated, owned and productive GPU-hour, and per tokens."""
    hours = discounted_hours(values)
    owned = scalar(values, "owned_gpu_hours_per_month") * present(values, "in_horizon")
    used, good = hours / (owned * scalar(values, "after_tax_ratio")), scalar(values, "goodput_fraction")
    own, rent = own_worth(values), present(values, "rent_total_usd")
    speed = case.assumptions["tokens_per_s_per_gpu"].value
    mtok_per_hour = float(speed) * SECONDS_PER_HOUR / 1e6 if speed is not None else None
    found: dict[str, Any] = {}
    for key, worth in (("levelised", own), ("levelised_rent", rent)):
        each = worth / hours if hours else np.nan
        per_mtok = each / good / mtok_per_hour if mtok_per_hour else np.nan
        prices = zip(_PER, (each, each * used, each / good, per_mtok), strict=True)
        found |= {f"{key}_usd_per_{unit}": finite(price) for unit, price in prices}
    return cast(shape.Levels, found)


_ROUNDING = 1e-12  # of the largest month of any line: less is what equal figures leave of each other


def _paid(values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the months of every line that is not nothing."""
    paid = {line.name: monthly(values, line.name) for line in (*OWN_LINES, *RENT_LINES)}
    most = {name: float(np.abs(flows).max()) for name, flows in paid.items()}
    least = _ROUNDING * max(most.values())
    return {name: flows for name, flows in paid.items() if most[name] > least}


def lines(values: Mapping[str, Any]) -> list[shape.CostLine]:
    """Return every line that is not nothing: total, present value and its share of a levelised GPU-hour."""
    hours, paid = discounted_hours(values), _paid(values)
    rows: list[shape.CostLine] = []
    sides: tuple[tuple[Literal["own", "rent"], Sequence[Line]], ...] = (("own", OWN_LINES), ("rent", RENT_LINES))
    for side, members in sides:
        for line in members:
            if line.name in paid:
                total, worth = float(paid[line.name].sum()), present(values, line.name)
                rows.append(
                    {
                        "side": side,
                        "name": line.name,
                        "description": line.description,
                        "total_usd": total,
                        "npv_usd": worth,
                        "levelised_usd_per_gpu_hour": worth / hours if hours else None,
                    }
                )
    return rows


def _shown(values: Mapping[str, Any]) -> dict[str, Array]:
    kept = _paid(values)
    own = {name: flows for name, flows in kept.items() if name.startswith("own_")}
    rent = {name: flows for name, flows in kept.items() if name.startswith("rent_")}
    totals = {name: monthly(values, name) for name in ("own_total_usd", "rent_total_usd", "saving_usd")}
    return {
        **own,
        "own_total_usd": totals["own_total_usd"],
        **rent,
        "rent_total_usd": totals["rent_total_usd"],
        "saving_usd": totals["saving_usd"],
        "saving_cumulative_usd": np.cumsum(totals["saving_usd"]),
    }


def cash_flows(values: Mapping[str, Any], start: date) -> list[shape.CashMonth]:
    """Return one dated row per month, with a column for each line of each side; month 0 is the start."""
    columns = {name: flows.tolist() for name, flows in _shown(values).items()}
    months = values["m"].shape[1]
    dated = [{"month": month, "on": str(months_after(start, month))} for month in range(months)]
    return [cast(shape.CashMonth, {**row, **_at(columns, month)}) for month, row in enumerate(dated)]


def _statements(case: OwnershipCase, values: Mapping[str, Any], today: date) -> Statements:
    start = parse_start(case, today)
    return books.statements(case, values, [months_after(start, month) for month in range(case.months + 1)])


def _at(columns: Mapping[str, list[float]], index: int) -> dict[str, float]:
    return {name: flows[index] for name, flows in columns.items()}


def months_after(start: date, months: int) -> date:
    """Return the day so many months later, the last of the month where there is no such day.

    >>> months_after(date(2026, 1, 31), 1)
    datetime.date(2026, 2, 28)
    """
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))


def parse_start(case: OwnershipCase, today: date) -> date:
    """Return the day of month 0: start_on of the plan, else the catalog's day."""
    said = case.special.get("start_on")
    try:
        return said if isinstance(said, date) else date.fromisoformat(str(said)) if said else today
    except ValueError:
        raise UsageError(f"start_on = {said!r} is not a day. Write it as YYYY-MM-DD.") from None


def by_year(values: Mapping[str, Any]) -> list[shape.CashYear]:
    """Return cash by year; year 0 is the start, year 1 the months 1 to 12."""
    shown = {name: flows for name, flows in _shown(values).items() if name != "saving_cumulative_usd"}
    year = np.ceil(values["m"][0] / 12).astype(int)
    sums = {name: np.bincount(year, weights=flows).tolist() for name, flows in shown.items()}
    return [cast(shape.CashYear, {"year": index, **_at(sums, index)}) for index in range(int(year.max()) + 1)]


def sources(catalog: Catalog, case: OwnershipCase, rows: list[shape.OwnershipOption]) -> dict[str, Source]:
    """Return the sources that the inputs and options lean on."""
    ids = {entry.source_id for entry in case.assumptions.values() if entry.source_id}
    ids |= {row["source_id"] for row in rows if row.get("source_id")}
    return cited({source_id: catalog.source(source_id) for source_id in ids}, sorted(ids))
