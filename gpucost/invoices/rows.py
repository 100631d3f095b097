"""FOCUS rows of a saved answer: an estimate, a plan of owning or renting, or a mix of capacity."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

from gpucost.answers import main_list
from gpucost.errors import UsageError
from gpucost.gate import beside
from gpucost.money.variance import spread
from gpucost.options import OPTIONS
from gpucost.units import HOURS_PER_DAY, HOURS_PER_MONTH, months_after

# --- The columns of a FOCUS 1.x file (FinOps Open Cost and Usage Specification) that gpucost writes and reads.

# written, in this order; names beginning with x_ are ours, as the specification has it
_COLUMNS = beside(__file__, "columns")[1:]
WRITTEN = tuple(row[0] for row in _COLUMNS)
NUMBERS, TIMES = (tuple(row[0] for row in _COLUMNS if row[1] == kind) for kind in ("number", "time"))
# what a file must have, and what may name a product in the order in which it is looked for
NEEDED, NAMES = (
    tuple(row[0] for row in sorted(_COLUMNS, key=lambda row: row[place]) if row[place]) for place in (2, 3)
)
UNITS = dict(beside(__file__, "units")[1:])  # that mean the same; a unit that is not here stands for itself


# --- FOCUS rows of a saved answer: an estimate, a plan of owning or renting, or a mix of capacity, period by period.

Row = dict[str, Any]
Period = tuple[datetime, datetime]
_LAST_YEAR, MOST_DAYS = 9000, 36_525  # a century, day by day
_MACHINE = {"ServiceCategory": "Compute", "ServiceName": "Compute", "ServiceSubcategory": "Virtual Machines"}
_CATEGORIES = {"storage": "Storage", "egress": "Networking"}


def focus_rows(
    answer: Mapping[str, Any], start: datetime, rank: int = 1, side: str | None = None, tags: str = "{}"
) -> list[Row]:
    """Return the charges that an answer foresees from `start` on, with every column that is written."""
    make = _MAKERS.get(str(answer["kind"]))
    if make is None:
        raise UsageError(
            f"a saved {answer['kind']} has no plan of charges. Only these can be exported: {', '.join(_MAKERS)}."
        )
    if side and answer["kind"] != "tco":
        raise UsageError(f"--side chooses between own and rent of a saved tco; this is a saved {answer['kind']}.")
    if rank != 1 and main_list(str(answer["kind"])) != "options":
        raise UsageError(f"--rank chooses among the options of an answer; this is a saved {answer['kind']}.")
    if start.year > _LAST_YEAR:
        raise UsageError(f"--start {start:%Y-%m-%d} is after the year {_LAST_YEAR}.")
    try:
        rows = [_completed(row, tags) for row in make(answer, start, rank, side)]
    except (ArithmeticError, LookupError) as error:  # a file that others changed
        reason = f"{type(error).__name__}: {error}"[:100]
        raise UsageError(f"the figures of the saved answer give no charges ({reason}). Save it again.") from None
    # By time, then by line: two exports of one answer are the same file.
    return sorted(rows, key=lambda row: (row["ChargePeriodStart"], row["x_Line"]))


def _completed(row: Row, tags: str) -> Row:
    """Fill in what follows from the rest and the columns that stay empty."""
    # A plan has one price: what is paid is also the list and the contracted price, where a row says nothing else.
    quantity, effective = row["PricingQuantity"], row["EffectiveCost"]
    first = row["ChargePeriodStart"].replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    usual: Row = {
        "BillingAccountId": "gpucost",
        "BillingAccountName": "gpucost",
        "BillingAccountType": "Plan",
        "BillingCurrency": "USD",
        "BillingPeriodStart": first,
        "BillingPeriodEnd": (first + timedelta(days=32)).replace(day=1),  # 32 days reach into the next month
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ContractedCost": effective,
        "InvoiceIssuerName": row["ProviderName"],
        "ListCost": effective,
        "PricingCategory": "Standard",
        "PricingCurrency": "USD",
        "PricingCurrencyEffectiveCost": effective,
        "PublisherName": row["ProviderName"],
        "ServiceSubcategory": f"Other ({row['ServiceCategory']})",
        "SkuPriceId": row["SkuId"],
        "Tags": tags,
    }
    filled = {**dict.fromkeys(WRITTEN), **usual, **row}
    for name in ("ChargePeriodStart", "ChargePeriodEnd"):
        filled[name] = filled[name].replace(microsecond=0)
    if filled["ChargeCategory"] == "Usage":
        if filled["CommitmentDiscountStatus"] != "Unused":
            filled |= {"ConsumedQuantity": quantity, "ConsumedUnit": filled["PricingUnit"]}
        if filled["CommitmentDiscountId"]:  # of a commitment, use is hours of some, spending of others
            spend = filled["CommitmentDiscountCategory"] == "Spend"
            filled["CommitmentDiscountQuantity"] = filled["EffectiveCost"] if spend else quantity
    if quantity:
        filled["ContractedUnitPrice"] = filled["ContractedCost"] / quantity
        filled["ListUnitPrice"] = filled["ListCost"] / quantity
        filled |= {f"PricingCurrency{name}": filled[name] for name in ("ContractedUnitPrice", "ListUnitPrice")}
    return filled


def _days(start: datetime, days: float) -> tuple[list[Period], list[float]]:
    """Return the days of a run, the last one shortened, and the share of each."""
    _refuse_long(days)
    count = max(ceil(days - 1e-9), 1)  # a run of 24.0000001 hours is one of a day
    ends = [start + timedelta(days=min(number + 1, days)) for number in range(count)]
    periods = [(start + timedelta(days=number), end) for number, end in enumerate(ends)]
    return periods, [(end - begin) / timedelta(days=1) / days for begin, end in periods]


def _refuse_long(days: float) -> None:
    if days > MOST_DAYS:
        raise UsageError(f"the plan lasts {days:,.0f} days; charges are written for at most {MOST_DAYS:,}.")


def _months(start: datetime, count: int) -> list[Period]:
    """Return months of the calendar, as bills have them; a plan's month stands for each."""
    return list(pairwise(months_after(start, number) for number in range(count + 1)))


def _over(
    periods: Sequence[Period], shares: Sequence[float], row: Row, effective: float, quantity: float, billed: bool = True
) -> Iterator[Row]:
    """Spread a charge over periods; what a commitment has paid for is billed with its purchase."""
    # List price ÷ price travels with a row until it has a cost to be multiplied with.
    ratio = row.pop("list_ratio", 1.0)
    for (begin, end), cost, share in zip(periods, spread(effective, shares), shares, strict=True):
        yield {
            **row,
            "ChargePeriodStart": begin,
            "ChargePeriodEnd": end,
            "EffectiveCost": cost,
            "BilledCost": cost if billed else 0.0,
            "ListCost": cost * ratio,
            "PricingQuantity": quantity * share,
        }


def _estimate(answer: Mapping[str, Any], start: datetime, rank: int, side: str | None) -> Iterator[Row]:
    option = _ranked(answer, rank)
    factors = option["factors"]
    # Bound to a term and charged for it whole, used or not; else hours are billed as they are used.
    owed = bool(factors.get("take_or_pay") and factors.get("charge_commitment") and option["term_months"])
    base = _seller(option)
    periods, shares = _days(start, option["days"])
    committed: float = 0.0
    for line in option["lines"]:
        row = {**base, **_line(line, option)}
        if line["unit"] != "GPU-hour" or not owed:
            yield from _over(periods, shares, row, line["cost_usd"], line["quantity"])
            continue
        # Hours under a commitment cost something, but are billed by its purchases; what is left of its terms when the
        # run ends is spread over the days until then.
        committed += line["cost_usd"]
        if line["name"] == "unused commitment":
            row |= _commitment(option, "Unused")
            end = periods[-1][1]
            until = months_after(start, _terms(option) * int(option["term_months"]))
            days_left, day_shares = _days(end, max((until - end) / timedelta(days=1), 1.0))
            yield from _over(days_left, day_shares, row, line["cost_usd"], line["quantity"], billed=False)
        else:
            row |= _commitment(option, "Used")
            yield from _over(periods, shares, row, line["cost_usd"], line["quantity"], billed=False)
    if committed:
        yield from _purchases(option, factors, base, start, committed)


def _inference(answer: Mapping[str, Any], start: datetime, rank: int, side: str | None) -> Iterator[Row]:
    """Yield a month of serving; an answer without a load has no bill."""
    option = _ranked(answer, rank)
    if not option["lines"]:
        raise UsageError("the saved answer has no load: ask again with --tokens-per-month or --requests-per-s.")
    for line in option["lines"]:
        row = {**_seller(option), **_line(line, option)}
        yield from _over(_months(start, 1), [1.0], row, line["cost_usd"], line["quantity"])


def _ranked(answer: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    options: Sequence[Mapping[str, Any]] = answer["options"]
    option = next((row for row in options if row["rank"] == rank), None)
    if option is None:
        ranks = f"{len(options)} options, ranks {options[0]['rank']} to {options[-1]['rank']}"
        raise UsageError(f"--rank {rank}: the saved answer holds {ranks}.")
    return option


def _seller(option: Mapping[str, Any]) -> Row:
    rule = OPTIONS[option["option"]]
    category = {"preemptible": "Dynamic", "committed": "Committed"}.get(rule.family, "Standard")
    listed = option.get("list_usd_per_gpu_hour")
    return {
        "ProviderName": option["provider"],
        "RegionId": option["region"],
        "RegionName": option["region"],
        "PricingCategory": category,
        "list_ratio": listed / option["usd_per_gpu_hour"] if listed else 1.0,
    }


def _line(line: Mapping[str, Any], option: Mapping[str, Any]) -> Row:
    """Return what a line of a bill is called: hours by their machine, services by their own name."""
    names = {
        "ChargeDescription": f"{line['name']}: {line['note']}".rstrip(": "),
        "x_Line": line["name"],
        "PricingUnit": line["unit"],
    }
    if line["unit"] == "GPU-hour":
        per_unit = (option.get("factors") or {}).get("gpus_per_unit") or 1
        return names | {
            **_MACHINE,
            "SkuId": option["instance_type"],
            "SkuPriceId": option["offer_id"],
            "x_GpusPerUnit": per_unit,
            "SkuMeter": f"{option['gpu']} {option['option']}",
            "SkuPriceDetails": json.dumps(
                {"F_GpuCount": 1, "F_InstanceType": option["instance_type"], "GpuModel": option["gpu"]}
            ),  # of one unit of pricing: a GPU-hour
        }
    # FOCUS has categories of its own; what is neither storage nor networking is other.
    service = next((name for word, name in _CATEGORIES.items() if word in line["name"]), "Other")
    return names | {
        "ServiceCategory": service,
        "ServiceName": service,
        "SkuId": line["name"],
        "list_ratio": 1.0,
        "PricingCategory": "Standard",
    }


def _commitment(option: Mapping[str, Any], status: str | None) -> Row:
    rule = OPTIONS[option["option"]]
    return {
        "CommitmentDiscountId": option["offer_id"],
        "CommitmentDiscountStatus": status,
        "CommitmentDiscountName": f"{rule.label}, {option['instance_type']}",
        "CommitmentDiscountCategory": "Spend" if rule.by_spend else "Usage",
        "CommitmentDiscountType": rule.label,
        "CommitmentDiscountUnit": "USD" if rule.by_spend else "GPU-hour",
    }


def _terms(option: Mapping[str, Any]) -> int:
    # As many terms as the run needs, of which a hair more than a whole one is no other.
    hours = float(option["term_months"] * HOURS_PER_MONTH)
    needed = float(option["gpu_hours"] / option["gpus"])
    _refuse_long(max(hours, needed) / HOURS_PER_DAY)
    return max(ceil(needed / hours - 1e-9), 1)


def _purchases(
    option: Mapping[str, Any], factors: Mapping[str, Any], base: Row, start: datetime, committed: float
) -> Iterator[Row]:
    """Yield what is paid for commitments: upfront parts at the start of each term, instalments by the month."""
    terms, months = _terms(option), int(option["term_months"])
    due_upfront = factors["upfront_usd"] * terms * option["gpus"] / factors["gpus_per_unit"]
    upfront = round(min(committed if factors.get("prepaid") else due_upfront, committed), 2)
    periods = _months(start, terms * months)
    at_start_of_term = [1 / terms if number % months == 0 else 0.0 for number in range(len(periods))]
    every_month = [1 / len(periods)] * len(periods)
    label, by_spend = OPTIONS[option["option"]].label, OPTIONS[option["option"]].by_spend
    monthly_quantity = committed / len(periods) if by_spend else option["gpus"] * HOURS_PER_MONTH
    row = {key: value for key, value in base.items() if key != "list_ratio"} | {
        **_MACHINE,
        "SkuId": option["instance_type"],
        "SkuPriceId": option["offer_id"],
        "PricingUnit": "month",
        "x_Line": "commitment",
        **_commitment(option, None),
        "ChargeCategory": "Purchase",
        "PricingQuantity": 1.0,
    }
    for total, shares, frequency, covered_months in (
        (upfront, at_start_of_term, "One-Time", months),
        (committed - upfront, every_month, "Recurring", 1),
    ):
        for period, cost, share in zip(periods, spread(total, shares), shares, strict=True):
            if cost and share:
                purchase = {
                    **row,
                    "ChargeFrequency": frequency,
                    "ChargeDescription": f"{label}, {frequency.lower()}",
                    "ContractedCost": cost,
                    "ListCost": cost,
                    "CommitmentDiscountQuantity": monthly_quantity * covered_months,
                }
                yield _charge(purchase, period, cost, 0.0)


def _tco(answer: Mapping[str, Any], start: datetime, rank: int, side: str | None) -> Iterator[Row]:
    """Yield the cash of one side by month and line; purchases and resale are used up over the months that follow."""
    worth, flows = answer["npv_usd"], answer["cash_flows"]
    # Nobody asked for a side: the cheaper one.
    chosen = side or min(("own", "rent"), key=lambda name: worth[name])
    names = [line["name"] for line in answer["lines"] if line["side"] == chosen]
    used = _months(start, len(flows) - 1)
    rented = answer.get("rented") or {"months": []}
    hours = {(row["line"], row["month"]): row["gpu_hours"] for row in rented["months"]}
    machine: Row = {}
    if hours:  # a month of rented hours is called by its accelerator, and by the offer whose price it has
        gpu: str = rented["gpu"]
        offer: Mapping[str, Any] = next((row for row in answer["options"] if row["name"] == "rent"), {})
        machine = {
            **_MACHINE,
            **({"ProviderName": offer["provider"]} if offer.get("provider") else {}),
            "SkuId": gpu,
            "SkuPriceId": offer.get("offer_id") or gpu,
            "SkuMeter": f"{gpu} {offer.get('option') or ''}".strip(),
            "SkuPriceDetails": json.dumps({"F_GpuCount": 1, "GpuModel": gpu}),  # of a GPU-hour
            "PricingUnit": "GPU-hour",
            "x_GpusPerUnit": 1,
        }
    for name in names:
        cash = [row.get(name, 0.0) for row in flows]
        row = {
            "ProviderName": chosen,
            "ServiceCategory": "Compute",
            "ServiceName": chosen,
            "SkuId": name,
            "PricingUnit": "month",
            "x_Line": name,
            "ChargeDescription": name.replace("_", " "),
        }
        if cash[0] or "resale" in name:
            # what is paid at the start, or comes back at the end, is used up evenly over all months
            bought = {**row, "ChargeCategory": "Purchase", "ChargeFrequency": "One-Time"}
            for period, cost in zip([used[0], *used], _cumulative(cash), strict=True):
                if cost:
                    yield _charge(bought, period, cost, 0.0)
            for period, cost in zip(used, spread(sum(cash), [1 / len(used)] * len(used)), strict=True):
                yield _charge(row, period, 0.0, cost)
            continue
        for month, (period, cost) in enumerate(zip(used, _cumulative(cash[1:]), strict=True), 1):
            gpu_hours = hours.get((name, month))
            if cost and gpu_hours:
                yield _charge({**row, **machine}, period, cost, cost, gpu_hours)
            elif cost:
                yield _charge(row, period, cost, cost)


def _charge(row: Row, period: Period, billed: float, effective: float, quantity: float = 1.0) -> Row:
    return {
        **row,
        "ChargePeriodStart": period[0],
        "ChargePeriodEnd": period[1],
        "BilledCost": billed,
        "EffectiveCost": effective,
        "PricingQuantity": quantity,
    }


def _cumulative(amounts: Sequence[float]) -> list[float]:
    """Round amounts to cents so that their sums to any month are rounded sums."""
    rounded_usd, before, total = [], 0, 0.0
    for amount in amounts:
        total += amount
        rounded_usd.append((round(total * 100) - before) / 100)
        before = round(total * 100)
    return rounded_usd


def _mix(answer: Mapping[str, Any], start: datetime, rank: int, side: str | None) -> Iterator[Row]:
    """Yield rented hours at their prices, commitments by the month, and what is owned in cash, used up as it works."""
    periods = _months(start, len(answer["months"]))
    supplies = {supply["name"]: supply for supply in answer["supplies"]}
    gpu = answer["request"].get("gpu")
    for name, supply in supplies.items():
        # An hour of work on capacity that is interrupted takes more than one hour that is paid.
        price = supply["usd_per_gpu_hour"] * supply["stretch_ratio"]
        signed = [_signed(answer["plan"], name, month["month"]) for month in answer["months"]]
        row = {
            "ProviderName": name,
            **_MACHINE,
            "SkuId": name,
            "SkuMeter": f"{gpu} {name}" if gpu else None,
            "PricingUnit": "GPU-hour",
            "x_Line": name,
            "ChargeDescription": name.replace("_", " "),
            "x_GpusPerUnit": 1,
        }
        for period, month, bound in zip(periods, answer["months"], signed, strict=True):
            hours = month[f"{name}_gpus"] * HOURS_PER_MONTH
            yield from _rented(row, period, price, hours, bound * HOURS_PER_MONTH, supply)

    # Servers as they are paid and, by the GPUs that work, used up; energy, people and services by the month.
    if len(answer["cash_by_month"]) != len(periods) + 1:
        raise UsageError("cash_by_month of the saved mix is not one row longer than its months: the file was changed.")
    working = [_signed(answer["plan"], "own", month["month"]) for month in answer["months"]]
    for name in ("servers", "energy", "people", "services"):
        provider = "rented" if name == "services" else "own"
        row = {
            "ProviderName": provider,
            "ServiceCategory": "Compute",
            "ServiceName": provider,
            "SkuId": name,
            "PricingUnit": "month",
            "x_Line": name,
            "ChargeDescription": f"{name}, {provider}",
        }
        cash = _cumulative([row[f"{name}_usd"] for row in answer["cash_by_month"]])
        # Servers are paid as they are bought and used up by the GPUs that work; all else is used as it is paid.
        bought = name == "servers" and sum(working) > 0
        kind = {"ChargeCategory": "Purchase", "ChargeFrequency": "One-Time"} if bought else {}
        for period, cost in zip([periods[0], *periods], cash, strict=True):
            if cost:
                yield _charge({**row, **kind}, period, cost, 0.0 if bought else cost)
        if bought:
            shares = [gpus / sum(working) for gpus in working]
            for period, cost in zip(periods, spread(round(sum(cash), 2), shares), strict=True):
                if cost:
                    yield _charge(row, period, 0.0, cost)


def _signed(plan: Sequence[Mapping[str, Any]], name: str, month: int) -> float:
    """Return the GPUs of a commitment that are paid for in a month."""
    return sum(
        float(row["gpus"])
        for row in plan
        if row["option"] == name and row["signed_in_month"] and 0 <= month - row["from_month"] < row["months"]
    )


def _rented(
    row: Row, period: Period, price: float, hours: float, bound: float, supply: Mapping[str, Any]
) -> Iterator[Row]:
    if not supply["term_months"]:
        category = "Dynamic" if OPTIONS[supply["kind"]].interruptible else "Standard"
        if hours:
            cost = round(hours * price, 2)
            yield _charge({**row, "PricingCategory": category}, period, cost, cost, hours)
        return
    if not bound:
        return
    commitment = {
        "CommitmentDiscountId": supply["name"],
        "CommitmentDiscountName": supply["name"].replace("_", " "),
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountUnit": "GPU-hour",
        "PricingCategory": "Committed",
        "CommitmentDiscountType": "commitment",
    }
    # The purchase is billed and costs nothing by itself; its use and what nobody used share its cost to the cent.
    cost, used = round(bound * price, 2), round(min(hours, bound) * price, 2)
    yield _charge({**row, **commitment, "CommitmentDiscountStatus": "Used"}, period, 0.0, used, min(hours, bound))
    if bound > hours:
        idle = {**row, **commitment, "CommitmentDiscountStatus": "Unused"}
        yield _charge(idle, period, 0.0, cost - used, bound - hours)
    bought = {
        **row,
        **commitment,
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "Recurring",
        "PricingUnit": "month",
        "CommitmentDiscountQuantity": bound,
    }
    yield _charge(bought, period, cost, 0.0)


_MAKERS: dict[str, Callable[[Mapping[str, Any], datetime, int, str | None], Iterator[Row]]] = {
    "estimate": _estimate,
    "inference": _inference,
    "tco": _tco,
    "mix": _mix,
}
