"""The whole answer to "rent or buy?" as a payload, and what it says in words."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.common import CitedSource, StatedFact, cited, frame
from gpucost.catalog import Catalog
from gpucost.formula.language import Line
from gpucost.market.supply import Providers
from gpucost.market.terms import unlisted
from gpucost.money import cashflow
from gpucost.money.comparison import OWN_LINES, RENT_LINES, evaluate_months
from gpucost.ownership import analysis, lender, statements
from gpucost.ownership.alternatives import contract_ends, discounted_hours, monthly, options, present
from gpucost.ownership.analysis import CONTRACT, scope
from gpucost.ownership.assemble import OwnershipCase, assemble, bought_alone
from gpucost.ownership.figures import figures_of
from gpucost.ownership.plan import WEEKS_PER_MONTH, PlanFile
from gpucost.units import MONTHS_PER_YEAR, about, counted, months_after, percent, spanned, suffix_of

# --- What a comparison says in words: the verdict, its conventions, and what a reader must know.

HOURS = "the GPU-hours of each option"
_SIDES = {"own": "buying", "rent": "renting"}
_RENTED_OUT_ONLY = frozenset({"Google", "AWS"})  # makers whose accelerators are used in their own cloud


def conventions(case: OwnershipCase) -> str:
    """Say how time, capital and utilisation are counted."""
    wacc = case.number("wacc_fraction")
    effective = case.assumptions["wacc_convention"].value == "effective"
    rate = f"effective, i = (1+{wacc:g})^(1/12)−1 a month" if effective else f"nominal, i = {wacc:g}/12 a month"
    return (
        f"Costs are positive, in nominal USD, {case.assumptions['tax_basis'].value} income tax. "
        f"WACC {wacc:.2%} a year, {rate}; "
        "capital is paid at the start of a month, everything else in arrears; a month has 730 hours. "
        "Owned hours × utilisation = allocated hours; × goodput = productive hours. MFU plays no part. "
        "Levelised: the constant price per hour, before tax, whose discounted payments equal the present value of "
        "the costs. Financing is valued at the after-tax cost of debt, separately from the purchase. "
        "Break-even months: the shortest comparison, with resale at its end, that owning wins. Payback comes later, "
        f"when running savings alone have repaid the purchase. Profile: {case.profile}."
    )


def stated(
    case: OwnershipCase,
    point: shape.BreakEven,
    options: list[shape.OwnershipOption],
    sure: shape.Confidence,
    listed: Sequence[shape.ScenarioRow],
) -> list[StatedFact]:
    """Say the decision: the cheapest option or a tie, how sure that is, what turns it, and where rent may go."""
    best, runner_up = shape.leading(options)
    by, span = runner_up["npv_usd"] - best["npv_usd"], spanned(case.months)
    facts: list[StatedFact] = []

    def state(label: str, text: str) -> None:
        if text:
            facts.append({"label": label, "text": text})

    # which option costs least and by how much, or that two cost the same
    name, other = _called(best), _called(runner_up)
    fragile = " It is interruptible." if shape.interruptible(best) else ""
    if sure["toss_up"]:
        ahead = f"{about(by)} ({percent(by / max(abs(best['npv_usd']), 1e-9))}) ahead"
        state("Answer", f"{shape.TIE.format(name, other)}: {_way(best)} is {ahead}{_then(sure)}.{fragile}")
    else:
        against = f"{about(by)} less over {span} than" if round(by) else f"as much over {span} as"
        subject = _first(name) if best["name"] in _SIDES else name
        state("Answer", f"{subject} is cheapest: {against} {other}{_then(sure)}.{fragile}")
    over = f" over {span}" if sure["toss_up"] else ""
    share = percent(case.number("utilisation_fraction"))
    state("Scope", f"Present value{over}, {counted(case.number('gpus'), 'GPU')}, {share} allocated.")
    rent = best if best.get("offer_id") else runner_up
    state("Check", unlisted(rent.get("age_days"), rent.get("price_book", "")).strip())  # an offer not seen lately
    state("Sure", sure["sentence"].removesuffix(sure.get("delivery", "")).rstrip())
    state("Delivery", "" if _then(sure) else sure.get("delivery", ""))

    # what contracts for the chip cost, and what owning saves against one
    contracts = []
    for row in listed:
        if row["name"].startswith(CONTRACT):
            saving, description = row["saving_usd"], row["description"]
            contracts.append(
                f"{_first(description)}, renting costs {about(row['npv_rent_usd'])}: buying"
                f" {'saves' if saving >= 0 else 'costs'} {about(abs(saving))}{'' if saving >= 0 else ' more'}."
            )
    state("Contracts", " ".join(contracts))

    # within what the rental price is let move, where its direction is open
    low, high = (case.tables[f"rent_{end}_by_month"] for end in ("low", "high"))
    entry = case.assumptions["rent_outlook_ratio"]
    if entry.counts and entry.status == "derived" and case.months > MONTHS_PER_YEAR:
        rise = case.registry.fact("rental_price_rise.year_to_2026_09")
        state(
            "Outlook",
            f"Rent stays at today's price in the middle, and moves by {low[12] - 1:+.0%} to {high[12] - 1:+.0%} within"
            f" a year in 8 of 10 futures: its direction is open. It rose by {rise['low']:.0%} to {rise['high']:.0%} in"
            " the year to September 2026, after two years of falling.",
        )

    # from which use and price on buying wins
    use, price, hours = point["utilisation_fraction"], point["usd_per_gpu_hour"], point["hours_per_gpu_month"]
    above = [f"above {use:.0%} utilisation ({hours:,.0f} hours a month of each GPU)"] if use is not None else []
    above += [f"above ${price:.2f} per rented GPU-hour"] if price else []
    sides = {best["name"], runner_up["name"]} <= _SIDES.keys()
    if above:
        state("Turns", f"{'Buying wins' if sides else 'Against renting, buying wins'} {', or '.join(above)}.")

    # what capacity that may be taken away would save
    least = min(options, key=lambda row: row["npv_usd"])
    less = best["npv_usd"] - least["npv_usd"]
    if round(less) and shape.interruptible(least) and not shape.interruptible(best):
        state("Spot", f"{_first(_called(least))} would cost {about(less)} less, but is interruptible.")
    return facts


def _then(sure: shape.Confidence) -> str:
    """Say what is left of the lead after the usual wait for delivery, where none was stated."""
    later, weeks = sure["saving_after_wait_usd"], sure["wait_weeks"]
    if later is None or weeks is None or sure.get("too_late"):
        return ""
    return f", {about(abs(later))} {'ahead' if later >= 0 else 'behind'} after the usual wait of {weeks:g} weeks"


def _way(row: shape.OwnershipOption) -> str:
    """Name an option without its seller and price."""
    return _SIDES.get(row["name"], row["name"].replace("_", " "))


def _called(row: shape.OwnershipOption) -> str:
    """Name an option in a sentence, with its seller and price.

    >>> _called({"name": "reserved_3y", "provider": "aws", "usd_per_gpu_hour": 2.972})
    'reserved 3y from aws at $2.97 per GPU-hour'
    """
    name = _way(row)
    seller, price = row.get("seller") or row.get("provider"), row.get("usd_per_gpu_hour")
    seller_text = f"{name} from {seller}" if seller else name
    if price is None:
        return seller_text
    return f"{seller_text} at ${price:.2f} per GPU-hour"


_NOISE = 0.01  # of its cost: a smaller lead is none
_MAJORITY = 0.6  # of draws that the leader must win


def confidence(
    case: OwnershipCase, options: list[shape.OwnershipOption], sensitivity: Sequence[shape.Sensitivity]
) -> shape.Confidence:
    """Say how sure the answer is: a tie where the lead is within the noise, or lost by the usual wait for delivery."""
    best, runner_up = shape.leading(options)
    by = runner_up["npv_usd"] - best["npv_usd"]
    chance = best.get("rival", {}).get("probability_wins_fraction")
    # How many weeks orders wait, where no delivery time was given. Cards that are bought one by one are on shelves.
    weeks = None
    lead_is_known = case.number("lead_time_months") or case.assumptions["lead_time_months"].status == "given"
    on_shelves = case.accelerator is not None and bought_alone(case.accelerator)
    if "own" in (best["name"], runner_up["name"]) and not lead_is_known and not on_shelves:
        # Waits are on record for two kinds of chip: Blackwell, and Hopper, which stands for all others.
        blackwell = case.accelerator is not None and case.accelerator.family == "blackwell"
        several = case.number("gpus") > case.number("gpus_per_node")
        cluster = "dedicated_cluster" if blackwell else "h100_reseller"
        server = "b200_dgx" if blackwell else "oem_single_server"
        weeks = float(case.registry.fact(f"lead_time.{cluster if several else server}")["typical"])
    too_late = weeks is not None and weeks / WEEKS_PER_MONTH >= case.months
    later, least = by, _NOISE * abs(best["npv_usd"])
    sentences: list[str] = []
    if chance is not None:
        sentences.append(f"{_first(_way(best))} stays ahead in {round(10 * chance)} of 10 futures.")
    flips = [_label(row["name"]) for row in sensitivity if row["flips"]][:2]
    against = "" if {best["name"], runner_up["name"]} <= _SIDES.keys() else "Against renting on demand, buying"
    sentences.append(f"{against or 'It'} hangs on {' and '.join(flips)}." if flips else "No input turns it alone.")
    if weeks is None:
        lead_weeks = case.number("lead_time_months") * WEEKS_PER_MONTH
        delivery = "Capacity is taken to be there at once."
        if lead_weeks:
            delivery = f"Servers are taken to work {lead_weeks:.0f} weeks after the order."
    elif too_late:
        delivery = f"Orders usually wait {weeks:g} weeks, longer than what is compared: buying comes too late."
        later = by if best["name"] != "own" else -by
    else:
        # Whichever leads, owning moves by what the wait costs it: rent until then, and later payments.
        waited = {"lead_time_months": weeks / WEEKS_PER_MONTH}
        moved = float(analysis.outcomes(case, waited).own_usd[0]) - float(analysis.outcomes(case, {}).own_usd[0])
        later = by - moved if best["name"] == "own" else by + moved
        then = f"{about(abs(later))} {'ahead' if later >= 0 else 'behind'}"
        delivery = (
            f"That is for servers that work at once: after the usual wait of {weeks:g} weeks, bridged by renting,"
            f" {_way(best)} is {then}."
        )
    # A lead that is within the noise, that delivery takes away or that too few draws share is none.
    toss_up = min(by, later) < least or (chance is not None and chance < _MAJORITY)
    return {
        "toss_up": bool(toss_up),
        "wins_of_ten": None if chance is None else round(10 * chance),
        "hangs_on": flips,
        "wait_weeks": weeks,
        "saving_after_wait_usd": None if weeks is None else later,
        "sentence": " ".join([*sentences, delivery]),
        "delivery": delivery,
        "too_late": too_late,
    }


def _first(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _label(name: str) -> str:
    """Return an input in words, without its unit.

    >>> _label("rent_usd_per_gpu_hour"), _label("utilisation_fraction")
    ('rent price', 'utilisation')
    """
    suffix = suffix_of(name)
    bare = name.removesuffix(suffix).strip("_").replace("_", " ") if suffix else name.replace("_", " ")
    return f"{bare} price" if suffix.strip("_").startswith("usd") else bare


_CENT = 0.005  # USD: less is what rounding leaves


def ending_warnings(case: OwnershipCase, ends: Sequence[shape.ContractEnd]) -> list[str]:
    """Say which stated ends fall within the comparison, and what follows."""
    sentences = []
    for row in ends:
        if row["then"].startswith("renewed at its price"):  # a term's end that changes nothing
            continue
        note = f" ({case.rent_after_note})" if row["option"] == "rent" and case.rent_after_note else ""
        then = row["then_usd_per_gpu_hour"]
        sentences.append(
            f"{row['option'].replace('_', ' ')} at ${row['usd_per_gpu_hour']:.2f} ends on {row['ends_on']},"
            f" {row['month']:.3g} months into the {case.months} compared; then {row['then']}"
            f"{f' at ${then:.2f}' if then is not None else ''}{note}"
        )
    return sentences


def credit_remarks(rows: Sequence[Mapping[str, Any]], of: str) -> list[str]:
    """Say what the credits of one's book pay; figures and ranks stay before credits."""
    paid = [f"{row['credits_usd']:,.0f} USD of {row['name'].replace('_', ' ')}" for row in rows if "credits_usd" in row]
    if not paid:
        return []
    return [f"The credits in your price book would pay part of {of}: {', '.join(paid)}; all figures are before credits"]


def warnings(
    case: OwnershipCase,
    values: Mapping[str, Any],
    irr_fraction: float | None,
) -> list[str]:
    """Collect what a reader must know."""
    messages, chip = list(case.warnings), case.accelerator
    if chip is not None and chip.vendor in _RENTED_OUT_ONLY:
        messages.append(
            f"{chip.vendor} rents {chip.id} out and does not sell it: the cost of owning it is hypothetical"
        )
    # What a reader would otherwise find out from the lines: repairs paid twice, a scope of one side alone.
    spares = str(case.assumptions["spares_basis"].value)
    if spares != "none" and case.number("support_fraction") > 0:
        messages.append(
            f"Vendor support and spares ({spares.replace('_', ' ')}) are both counted: repairs may be paid twice"
        )
    messages += [
        f"Not like for like: only one side pays for {row['item']}" for row in scope(case, values) if row["unequal"]
    ]
    if irr_fraction is None and cashflow.several_rates(monthly(values, "saving_in_cash_usd")):
        messages.append("The saving changes sign more than once, so it has no single IRR: judge by NPV.")
    # A price that stands still, or falls by assumption, must be told; a forward curve has a remark of its own.
    decline = case.assumptions["rent_decline_fraction"]
    if not _forward_remarks(case) and decline.status != "given" and np.all(case.rent_path() == 1):
        moved = "held flat" if not decline.value else f"assumed to fall by {decline.value:.0%} a year"
        why = f": {decline.note}" if decline.status == "derived" else ""
        messages.append(
            f"The rental price is {moved}{why}; the scenarios show a fall, a rise, and both as they came since 2023."
        )
    return messages


def _forward_remarks(case: OwnershipCase) -> list[str]:
    """Say what the rental price is let move by in each horizon, where the forward curve of the chip moves it."""
    outlook = case.assumptions["rent_outlook_ratio"]
    counts = outlook.counts and outlook.status == "derived"
    return [f"The rental price of later months: {outlook.note} (`gpucost prices forward`)."] if counts else []


# --- The whole answer to "rent or buy?" as a payload, with everything that a workbook or an explanation needs.

Array = NDArray[np.float64]

DRAWS, SEED = 1000, 1


def answer(
    catalog: Catalog, plan: PlanFile, flags: Mapping[str, Any], special: Mapping[str, Any], request: Mapping[str, Any]
) -> shape.Tco:
    """Compare owning with renting and return the payload."""
    case = assemble(catalog, plan, flags, special)
    values = evaluate_months(case.values(), case.tables, case.months)
    compared = figures_of(case, values)
    sensitivity = analysis.tornado(case)
    draws, seed = int(case.special.get("draws", DRAWS)), int(case.special.get("seed", SEED))
    chance = analysis.monte_carlo(case, draws, seed) if draws else None
    saving = cast(float, compared["saving_usd"])
    paid = analysis.financed(case, values, saving)
    remarks = _forward_remarks(case)
    if paid is not None:
        adds, saved = paid["adds_usd"], paid["saving_in_cash_usd"]
        remarks.insert(
            0,
            f"Paid in cash, owning would {'save' if saved >= 0 else 'cost'} {about(abs(saved))}"
            f"{'' if saved >= 0 else ' more than renting'}; the {paid['kind']} "
            f"{'adds' if adds >= 0 else 'costs'} {about(abs(adds) if abs(adds) >= _CENT else 0.0)}, valued at "
            f"{paid['debt_rate_fraction']:.2%} a year, the cost of debt after tax.",
        )
    listed = analysis.with_rivals(case, values, options(case, values), draws, seed)
    sellers = Providers(catalog.rows("providers"))
    for row in listed:
        if provider := row.get("provider"):
            row["seller"] = sellers.name(provider)
    ends = contract_ends(case, listed)
    point = analysis.break_even(case, compared)
    sure = confidence(case, listed, sensitivity)
    futures = [*analysis.scenarios(case, sensitivity), *analysis.price_paths(case)]
    facts = stated(case, point, listed, sure, futures)
    days = [months_after(case.start, month) for month in range(case.months + 1)]
    lent = lender.view(case, values, days)
    worth = {row["name"]: row["npv_usd"] for row in listed}
    peaks = {row["name"]: row["peak_month_usd"] for row in listed}
    out_usd = -np.cumsum(monthly(values, "saving_usd")).min()  # the most that owning is behind, in cash
    return {
        "kind": "tco",
        **frame(request, catalog.as_of, catalog.version),
        "headline": facts[0]["text"],
        "lead": " ".join(fact["text"] for fact in facts),
        "stated": facts,
        "settings": settings(case),
        "conventions": conventions(case),
        "npv_usd": cast(shape.Worth, {"own": worth.pop("own"), "rent": worth.pop("rent"), "saving": saving} | worth),
        "financing": paid,
        "irr_fraction": compared["irr_fraction"],
        "payback_months": compared["payback_months"],
        "discounted_payback_months": compared["discounted_payback_months"],
        **cast(shape.Levels, {name: compared[name] for name in shape.Levels.__annotations__}),
        "breakeven": point,
        "by_utilisation": analysis.by_utilisation(case, point["utilisation_fraction"]),
        "probability_buy_wins_fraction": chance["probability_buy_wins_fraction"] if chance else None,
        "monte_carlo": chance,
        "confidence": sure,
        "options": listed,
        "contract_ends": ends,
        "lines": lines(values),
        "cash_flows": cash_flows(values, case.start),
        "rented": rented(case, values),
        "by_year": by_year(values),
        "statements": statements.statements(case, values, days),
        "peak_cash_usd": {
            "own": peaks["own"],
            "rent": peaks["rent"],
            "funding_until_payback": float(max(0.0, out_usd)),
        },
        "lender": lent,
        "lives": analysis.lives(case),
        **analysis.beside(case, values),
        "scenarios": futures,
        "sensitivity": sensitivity,
        "two_way": analysis.two_way(case),
        "currency": statements.converted(case, values),
        "assumptions": [entry.as_dict() for entry in case.assumptions.values()],
        "model": statements.block(case),
        "warnings": lender.broken_covenants(lent)
        + ending_warnings(case, ends)
        + warnings(case, values, compared["irr_fraction"])
        + credit_remarks(listed, HOURS),
        "remarks": remarks,
        "sources": sources(catalog, case, listed),
    }


def settings(case: OwnershipCase) -> dict[str, Any]:
    """Return what plan and command state beside the inputs, JSON-able; with them a plan can be written again."""
    stated = {name: str(value) if isinstance(value, date) else value for name, value in case.special.items()}
    return {**stated, "scenarios": case.scenarios, "rent_options": case.rent_options}


_ROUNDING = 1e-12  # of the largest month of any line: less is what equal figures leave of each other


def _paid(values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the months of every line that is not nothing."""
    paid = {line.name: monthly(values, line.name) for line in (*OWN_LINES, *RENT_LINES)}
    # Lines are of one scale: what is nothing beside the largest is what rounding left.
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


def _reported_flows(values: Mapping[str, Any]) -> dict[str, Array]:
    paid_flows = _paid(values)
    own_flows = {name: flows for name, flows in paid_flows.items() if name.startswith("own_")}
    rent = {name: flows for name, flows in paid_flows.items() if name.startswith("rent_")}
    totals = {name: monthly(values, name) for name in ("own_total_usd", "rent_total_usd", "saving_usd")}
    return {
        **own_flows,
        "own_total_usd": totals["own_total_usd"],
        **rent,
        "rent_total_usd": totals["rent_total_usd"],
        "saving_usd": totals["saving_usd"],
        "saving_cumulative_usd": np.cumsum(totals["saving_usd"]),
    }


def cash_flows(values: Mapping[str, Any], start: date) -> list[shape.CashMonth]:
    """Return one dated row per month, with a column for each line of each side; month 0 is the start."""
    columns = {name: flows.tolist() for name, flows in _reported_flows(values).items()}
    months = values["m"].shape[1]
    dated = [{"month": month, "on": str(months_after(start, month))} for month in range(months)]
    return [cast(shape.CashMonth, {**row, **_at(columns, month)}) for month, row in enumerate(dated)]


_HOURS_OF = {  # GPU-hours of each line that pays for them
    "rent_compute_usd": "rent_hours",
    "rent_after_usd": "rent_hours_after",
    "own_bridge_rent_usd": "bridge_hours",
}


def rented(case: OwnershipCase, values: Mapping[str, Any]) -> shape.RentedCapacity | None:
    """Return the GPU-hours of each month that are paid by the hour, as a bill counts them."""
    hours = {line: monthly(values, name).tolist() for line, name in _HOURS_OF.items()}
    months: list[shape.RentedHours] = [
        {"month": month, "line": line, "gpu_hours": amount}
        for line, amounts in hours.items()
        for month, amount in enumerate(amounts)
        if amount
    ]
    return {"gpu": case.accelerator.id, "months": months} if case.accelerator and months else None


def _at(columns: Mapping[str, list[float]], index: int) -> dict[str, float]:
    return {name: flows[index] for name, flows in columns.items()}


def by_year(values: Mapping[str, Any]) -> list[shape.CashYear]:
    """Return cash by year; year 0 is the start, year 1 the months 1 to 12."""
    flows_by_name = {name: flows for name, flows in _reported_flows(values).items() if name != "saving_cumulative_usd"}
    year = np.ceil(values["m"][0] / 12).astype(int)
    sums = {name: np.bincount(year, weights=flows).tolist() for name, flows in flows_by_name.items()}
    return [cast(shape.CashYear, {"year": index, **_at(sums, index)}) for index in range(int(year.max()) + 1)]


def sources(catalog: Catalog, case: OwnershipCase, rows: list[shape.OwnershipOption]) -> dict[str, CitedSource]:
    """Return the sources that the inputs and options lean on."""
    # Inputs that do not count are shown, too, and so are their sources.
    ids = {entry.source_id for entry in case.assumptions.values() if entry.source_id}
    ids |= {row["source_id"] for row in rows if row.get("source_id")}
    return cited({source_id: catalog.source(source_id) for source_id in ids}, sorted(ids))
