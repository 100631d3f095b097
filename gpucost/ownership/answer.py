"""The whole answer to "rent or buy?" as a payload, with everything that a workbook or an explanation needs."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.common import Source, cited, frame
from gpucost.errors import UsageError
from gpucost.formula.language import Line
from gpucost.money import carbon, rent_paths
from gpucost.money.comparison import OWN_LINES, RENT_LINES, evaluate_months
from gpucost.ownership import analysis, currency, model
from gpucost.ownership.alternatives import discounted_hours, monthly, options, present, scalar
from gpucost.ownership.assemble import Case, assemble, observed_v
from gpucost.ownership.plan import WEEKS_PER_MONTH, PlanFile
from gpucost.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Array = NDArray[np.float64]

DRAWS, SEED = 1000, 1
TAX_LINES = ("own_tax_usd", "rent_tax_usd", "depreciation_usd")

RENTED_OUT_ONLY = frozenset({"Google", "AWS"})  # makers whose accelerators are used in their own cloud


def answer(
    catalog: "Catalog", plan: PlanFile, flags: Mapping[str, Any], special: Mapping[str, Any], request: Mapping[str, Any]
) -> shape.Tco:
    """Compare owning with renting and return the payload."""
    return _payload(catalog, assemble(catalog, plan, flags, special), request)


def _payload(catalog: "Catalog", case: Case, request: Mapping[str, Any]) -> shape.Tco:
    values = evaluate_months(case.values(), case.tables, case.months)
    sensitivity, chance = analysis.tornado(case), _chance(case)
    judged = analysis.investment(monthly(values, "saving_usd"), scalar(values, "monthly_rate_fraction"))
    listed = options(case, values)
    point = analysis.break_even(case)
    return {
        "kind": "tco",
        **frame(request, catalog.as_of, catalog.version),
        "lead": lead(case, judged["npv_usd"], point),
        "settings": settings(case),
        "conventions": conventions(case),
        "npv_usd": _npv(listed, judged["npv_usd"]),
        "irr_fraction": judged["irr_fraction"],
        "payback_months": judged["payback_months"],
        "discounted_payback_months": judged["discounted_payback_months"],
        **levels(case, values),
        "breakeven": point,
        "by_utilisation": analysis.by_utilisation(case, point["utilisation_fraction"]),
        "probability_buy_wins_fraction": chance["probability_buy_wins_fraction"] if chance else None,
        "monte_carlo": chance,
        "options": listed,
        "lines": lines(values),
        "cash_flows": cash_flows(values, parse_start(case, catalog.as_of)),
        "by_year": by_year(values),
        "peak_cash_usd": _peak_cash(listed, judged["peak_funding_usd"]),
        "tax": other_tax_view(case),
        "scope": scope(case, values),
        "sunk": sunk_views(case, values),
        "scenarios": [*analysis.scenarios(case, sensitivity), *price_paths(case)],
        "sensitivity": sensitivity,
        "two_way": analysis.two_way(case),
        "carbon": emissions(case, values),
        "currency": currency.converted(case, values),
        "assumptions": [entry.as_dict() for entry in case.assumptions.values()],
        "model": model.block(case),
        "warnings": warnings(case, values, judged),
        "sources": sources(catalog, case, listed),
    }


def settings(case: Case) -> dict[str, Any]:
    """Return what the plan and the command said beside the inputs, JSON-able; with them a plan can be written again."""
    said = {name: str(value) if isinstance(value, date) else value for name, value in case.special.items()}
    return {**said, "scenarios": case.scenarios, "rent_options": case.rent_options}


def option_called(name: str, rows: list[shape.Option]) -> shape.Option:
    """Return the option called `name`."""
    return next(row for row in rows if row["name"] == name)


def _npv(rows: list[shape.Option], saving: float) -> shape.Worth:
    worth = {row["name"]: row["npv_usd"] for row in rows}
    first = {"own": worth.pop("own"), "rent": worth.pop("rent"), "saving": saving}
    return cast(shape.Worth, first | worth)


def conventions(case: Case) -> str:
    """Say how time, capital and utilisation are counted."""
    wacc = case.number("wacc_fraction")
    effective = case.assumptions["wacc_convention"].value == "effective"
    rate = f"effective, i = (1+{wacc:g})^(1/12)−1 a month" if effective else f"nominal, i = {wacc:g}/12 a month"
    return (
        f"Costs are positive, in nominal USD, {case.assumptions['tax_basis'].value} income tax. "
        f"WACC {wacc:.2%} a year, {rate}; "
        "capital is paid at the start of a month, everything else in arrears; a month has 730 hours. "
        "Owned hours × utilisation = allocated hours; × goodput = productive hours. MFU never enters. "
        "Levelised: constant price per hour whose discounted payments equal the present value of the costs. "
        "Break-even months: the shortest comparison, with resale at its end, that owning wins; payback is later, when "
        "running savings alone have repaid the purchase."
    )


def _chance(case: Case) -> shape.MonteCarlo | None:
    draws, seed = int(case.special.get("draws", DRAWS)), int(case.special.get("seed", SEED))
    return analysis.monte_carlo(case, draws, seed) if draws else None


def _peak_cash(listed: list[shape.Option], funding_usd: float) -> shape.PeakCash:
    own, rent = (option_called(name, listed)["peak_month_usd"] for name in ("own", "rent"))
    return {"own": own, "rent": rent, "funding_until_payback": funding_usd}


def levels(case: Case, values: Mapping[str, Any]) -> shape.Levels:
    """Return levelised prices of owning and renting per allocated, owned and productive GPU-hour, and per tokens."""
    hours = discounted_hours(values)
    used, good = case.number("utilisation_fraction"), scalar(values, "goodput_fraction")
    own, rent = present(values, "own_total_usd"), present(values, "rent_total_usd")
    speed = case.assumptions["tokens_per_s_per_gpu"].value
    mtok_per_hour = float(speed) * SECONDS_PER_HOUR / 1e6 if speed is not None else None
    found: dict[str, Any] = {}
    for key, worth in (("levelised", own), ("levelised_rent", rent)):
        allocated = worth / hours if hours else None
        found[f"{key}_usd_per_gpu_hour"] = allocated
        found[f"{key}_usd_per_gpu_hour_owned"] = None if allocated is None else allocated * used
        found[f"{key}_usd_per_gpu_hour_productive"] = None if allocated is None else allocated / good
        found[f"{key}_usd_per_mtok"] = (
            None if not mtok_per_hour or allocated is None else allocated / good / mtok_per_hour
        )
    return cast(shape.Levels, found)


def lines(values: Mapping[str, Any]) -> list[shape.CostLine]:
    """Return every line that is not nothing: total, present value and its share of a levelised GPU-hour."""
    hours = discounted_hours(values)
    rows: list[shape.CostLine] = []
    sides: tuple[tuple[Literal["own", "rent"], Sequence[Line]], ...] = (("own", OWN_LINES), ("rent", RENT_LINES))
    for side, members in sides:
        for line in members:
            total, worth = float(monthly(values, line.name).sum()), present(values, line.name)
            if total or worth:
                rows.append({
                    "side": side, "name": line.name, "description": line.description, "total_usd": total,
                    "npv_usd": worth, "levelised_usd_per_gpu_hour": worth / hours if hours else None,
                })  # fmt: skip
    return rows


def _shown(values: Mapping[str, Any]) -> dict[str, Array]:
    paid = {line.name: monthly(values, line.name) for line in (*OWN_LINES, *RENT_LINES)}
    kept = {name: flows for name, flows in paid.items() if flows.any()}
    own = {name: flows for name, flows in kept.items() if name.startswith("own_")}
    rent = {name: flows for name, flows in kept.items() if name.startswith("rent_")}
    totals = {name: monthly(values, name) for name in ("own_total_usd", "rent_total_usd", "saving_usd")}
    return {
        **own, "own_total_usd": totals["own_total_usd"], **rent, "rent_total_usd": totals["rent_total_usd"],
        "saving_usd": totals["saving_usd"], "saving_cumulative_usd": np.cumsum(totals["saving_usd"]),
    }  # fmt: skip


def cash_flows(values: Mapping[str, Any], start: date) -> list[shape.CashMonth]:
    """Return one dated row per month, with a column for each line of each side; month 0 is the start."""
    columns = {name: flows.tolist() for name, flows in _shown(values).items()}
    months = values["m"].shape[1]
    dated = [{"month": month, "on": str(months_after(start, month))} for month in range(months)]
    return [cast(shape.CashMonth, {**row, **_at(columns, month)}) for month, row in enumerate(dated)]


def _at(columns: Mapping[str, list[float]], index: int) -> dict[str, float]:
    return {name: flows[index] for name, flows in columns.items()}


def months_after(start: date, months: int) -> date:
    """Return the day so many months later, the last of the month where there is no such day.

    >>> months_after(date(2026, 1, 31), 1)
    datetime.date(2026, 2, 28)
    """
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))


def parse_start(case: Case, today: date) -> date:
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


def other_tax_view(case: Case) -> shape.TaxView:
    """Return the comparison on the other side of income tax."""
    after = case.assumptions["tax_basis"].value == "after"
    result = analysis.outcomes(case, {"tax_basis": "before" if after else "after"})
    return {
        "view": "before income tax" if after else "after income tax",
        "tax_rate_fraction": case.number("tax_rate_fraction"),
        "depreciation": str(case.assumptions["depreciation_method"].value),
        "own_usd": float(result.own_usd[0]),
        "rent_usd": float(result.rent_usd[0]),
        "saving_usd": float(result.saving_usd[0]),
        "by_year": tax_by_year(case),
    }


def tax_by_year(case: Case) -> list[shape.TaxYear]:
    """Return income tax (negative: saved) and depreciation by year, whichever view the headline takes."""
    values = evaluate_months({**case.columns(), "tax_basis": "after"}, case.tables, case.months, TAX_LINES)
    year = np.ceil(values["m"][0] / 12).astype(int)
    sums = {name: np.bincount(year, weights=monthly(values, name)).tolist() for name in TAX_LINES}
    return [cast(shape.TaxYear, {"year": index, **_at(sums, index)}) for index in range(int(year.max()) + 1)]


def scope(case: Case, values: Mapping[str, Any]) -> list[shape.ScopeRow]:
    """Return what each side includes, and flag what only one of them pays for."""

    def paid(*names: str) -> float:
        return sum(abs(float(monthly(values, name).sum())) for name in names)

    rented_support = "hardware support is part of a rental price"
    all_in = case.assumptions["server_price_basis"].value == "all_in"
    rows = [
        ("storage", paid("own_storage_usd", "own_storage_rental_usd") > 0 or all_in, paid("rent_storage_usd") > 0, ""),
        ("hardware support", paid("own_support_usd") > 0, True, rented_support),
        ("data leaving", paid("own_egress_usd") > 0, paid("rent_egress_usd") > 0, ""),
        ("control plane", paid("own_control_plane_usd") > 0 or all_in, paid("rent_control_plane_usd") > 0, ""),
        ("operations staff", paid("own_staff_usd") > 0, paid("rent_staff_usd") > 0, ""),
        ("software licences", paid("own_licence_usd") > 0, paid("rent_licence_usd") > 0, ""),
    ]
    listed: list[shape.ScopeRow] = [
        {"item": item, "own": own, "rent": rent, "unequal": own != rent, "note": note} for item, own, rent, note in rows
    ]
    good, rented = scalar(values, "goodput_fraction"), scalar(values, "rent_goodput_used_fraction")
    listed.append(
        {
            "item": "goodput",
            "own": good,
            "rent": rented,
            "unequal": False,
            "note": "both sides give the same productive hours",
        }
    )
    return listed


def sunk_views(case: Case, values: Mapping[str, Any]) -> shape.Sunk:
    """Return what an allocated GPU-hour of capacity costs that is owned already: loaded, avoidable and incremental.

    Loaded: everything. Avoidable: what stops when the cluster is sold today (running costs, and resale forgone).
    Incremental: what one more allocated hour adds, the energy above idle.
    """
    from gpucost.money.residual import value_at

    hours = discounted_hours(values)
    scale, fee = scalar(values, "residual_scale"), case.number("resale_fee_fraction")
    servers = scalar(values, "servers_usd")
    age = case.number("sunk_age_months") / 12
    worth = [
        servers * min(1.0, scale * value_at(case.tables["residual_by_year"], years)) * (1 - fee)
        for years in (age, age + case.months / 12)
    ]
    last = monthly(values, "discount_ratio")[case.months]
    keep = present(values, "own_running_usd") + worth[0] - worth[1] * last
    draw = min(case.number("power_fraction_active"), case.number("power_cap_fraction")) - case.number(
        "power_fraction_idle"
    )
    power = (
        scalar(values, "rated_kw")
        / case.number("gpus")
        * draw
        * case.number("pue_ratio")
        * scalar(values, "metered_ratio")
    )
    return {
        "age_months": case.number("sunk_age_months"),
        "sale_today_usd": worth[0],
        "loaded_usd_per_gpu_hour": present(values, "own_total_usd") / hours if hours else None,
        "avoidable_usd_per_gpu_hour": float(keep) / hours if hours else None,
        "incremental_usd_per_gpu_hour": power * case.number("electricity_usd_per_kwh"),
    }


def price_paths(case: Case) -> list[shape.ScenarioRow]:
    """Return the comparison under other futures of the rental price."""
    decline = case.registry.fact("rental_price_decline")["typical"]
    flat = rent_paths.flat(case.tables["rent_path_by_month"].size)
    rows = []
    for name, text, path, fall in (
        ("rent flat", "the rental price stays", flat, 0.0),
        ("rent declines", f"the rental price falls by {decline:.0%} a year", flat, decline),
        ("rent V", "the fall and rise of H100 rent from 2023 to 2026 comes again", observed_v(case.registry), 0.0),
    ):
        moved = Case(case.assumptions, {**case.tables, "rent_path_by_month": path}, case.registry)
        rows.append(analysis.scenario(moved, name, text, {"rent_decline_fraction": fall}))
    return rows


def emissions(case: Case, values: Mapping[str, Any]) -> shape.Carbon:
    """Return the carbon of owning over the comparison, and of renting the same hours on the same grid."""
    energy = scalar(values, "energy_kwh_per_month") * float(monthly(values, "in_service").sum())
    grid, free = case.number("grid_kgco2e_per_kwh"), case.number("carbon_free_fraction")
    located, market = carbon.operational_kgco2e(np.array(energy), np.array(grid), np.array(free))
    nodes = np.array(case.number("gpus") / case.number("gpus_per_node"))
    years, life = np.array(scalar(values, "service_years")), np.array(case.number("embodied_life_years"))
    made = carbon.embodied_kgco2e(nodes, np.array(case.number("embodied_kgco2e_per_node")), years, life)
    idle = (1 - case.number("utilisation_fraction")) * case.number("power_fraction_idle")
    share = scalar(values, "mean_power_fraction")
    return {
        "energy_kwh": energy,
        "operational_location_kgco2e": located.item(),
        "operational_market_kgco2e": market.item(),
        "embodied_kgco2e": made.item(),
        "total_location_kgco2e": located.item() + made.item(),
        "rented_energy_kwh": energy * (1 - idle / share) if share else 0.0,
    }


def waiting(case: Case, saving_usd: float) -> list[str]:
    """Say what the usual wait for delivery would change, where none was given."""
    if case.number("lead_time_months") or case.assumptions["lead_time_months"].status == "given":
        return []
    blackwell = case.accelerator is not None and case.accelerator.family == "blackwell"
    row = case.registry.fact("lead_time.b200_dgx" if blackwell else "lead_time.h100_reseller")
    later = analysis.outcomes(case, {"lead_time_months": row["typical"] / WEEKS_PER_MONTH}).saving_usd[0]
    moved = later - saving_usd
    return [
        f"the cluster is taken to work from the start; orders have waited {row['low']:g} to {row['high']:g} weeks: "
        f"--lead-time {row['typical']:g}w, bridged by rent, makes owning ${abs(moved):,.0f} "
        f"{'better' if moved > 0 else 'worse'} against renting"
    ]


def not_sold(case: Case) -> list[str]:
    """Say where an accelerator is only rented out by its maker."""
    chip = case.accelerator
    if chip is None or chip.vendor not in RENTED_OUT_ONLY:
        return []
    return [f"{chip.vendor} rents {chip.id} out and does not sell it: what owning it costs is hypothetical"]


def financed(case: Case, saving_usd: float) -> list[str]:
    """Part the saving into that of the purchase in cash and that of its financing, which is discounted at the WACC."""
    kind = str(case.assumptions["financing"].value)
    if kind == "cash":
        return []
    unlevered = float(analysis.outcomes(case, {"financing": "cash"}).saving_usd[0])
    return [
        f"paid in cash, owning would save ${unlevered:,.0f}; the {kind} adds ${saving_usd - unlevered:,.0f} because "
        "its payments are discounted at the WACC: judge the purchase by the first. The IRR is that of the equity"
    ]


def warnings(case: Case, values: Mapping[str, Any], judged: Mapping[str, Any]) -> list[str]:
    """Collect what a reader must know."""
    found = [*case.warnings, *not_sold(case), *waiting(case, judged["npv_usd"])]
    found += [f"unequal scope: only one side pays for {row['item']}" for row in scope(case, values) if row["unequal"]]
    if judged["irr_may_not_be_unique"] and judged["irr_fraction"] is not None:
        found.append("the saving changes its sign more than once: the IRR may not be the only one, judge by NPV")
    found += financed(case, judged["npv_usd"])
    decline = case.assumptions["rent_decline_fraction"]
    if decline.value == 0 and decline.status == "assumed" and np.all(case.tables["rent_path_by_month"] == 1):
        found.append("the rental price is held flat; see the scenarios for a decline and for the observed V")
    return found


def sources(catalog: "Catalog", case: Case, rows: list[shape.Option]) -> dict[str, Source]:
    """Return the sources that the inputs and options lean on."""
    ids = {entry.source_id for entry in case.assumptions.values() if entry.source_id}
    ids |= {row["source_id"] for row in rows if row.get("source_id")}
    return cited({source_id: catalog.source(source_id) for source_id in ids}, sorted(ids))


def lead(case: Case, saving: float, point: shape.BreakEven) -> str:
    """Say the verdict in one or two sentences."""
    years = f"{case.months / 12:g} years"
    verdict = "Buying" if saving > 0 else "Renting"
    size = f"{case.number('gpus'):g} GPUs, {case.number('utilisation_fraction'):.0%} allocated"
    text = f"{verdict} costs ${abs(saving):,.0f} less over {years} (present value, {size})."
    if point["utilisation_fraction"] is not None:
        text += f" Buying wins above {point['utilisation_fraction']:.0%} utilisation"
        text += (
            f", or above ${point['usd_per_gpu_hour']:.2f} per rented GPU-hour." if point["usd_per_gpu_hour"] else "."
        )
    elif point["usd_per_gpu_hour"]:
        text += f" Buying wins above ${point['usd_per_gpu_hour']:.2f} per rented GPU-hour."
    return text
