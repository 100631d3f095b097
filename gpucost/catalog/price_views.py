"""Looking at prices: what is old, what a GPU-hour costs against a budget, and prices by place and day for a page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from statistics import median
from typing import Any

from gpucost.catalog import filters
from gpucost.catalog.asof import FOREVER
from gpucost.catalog.core import Catalog
from gpucost.catalog.prices import current
from gpucost.errors import OverBudgetError, PriceMissingError
from gpucost.options import OPTIONS, age_limit_days

Row = dict[str, Any]
Wanted = dict[str, set[str] | None]
_EVENT = 0.05  # a change of a price that is worth a mark
_GPUS, _DAYS = 10, 16


def stale(catalog: Catalog, wanted: Wanted, max_age_days: float | None = None) -> list[Row]:
    """Return per provider and option how many prices are old for their kind, and how old they are, the worst first."""
    rows, _ = current(catalog, wanted, max_age_days)
    sellers = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["rankable"]:
            groups.setdefault((row["provider"], row["option"]), []).append(row)
    found = [
        {
            "provider": provider,
            "option": option,
            "prices": len(group),
            "old": sum(row["stale"] for row in group),
            "old_fraction": sum(row["stale"] for row in group) / len(group),
            "median_age_days": median(row["age_days"] for row in group),
            "oldest_on": min(row["observed_on"] for row in group),
            "newest_on": max(row["observed_on"] for row in group),
            "limit_days": min(age_limit_days(option, (row["tier"], sellers.get(provider))) for row in group),
        }
        for (provider, option), group in groups.items()
    ]
    return sorted(found, key=lambda row: (-row["old"], row["provider"], row["option"]))


_COVERAGE = """
WITH facts AS (
    SELECT DISTINCT ON (offer_id, observed_on, recorded_on, source_id, usd_per_hour)
        provider, gpu, region, option, observed_on, recorded_on FROM book_offers
    WHERE observed_on IS NOT NULL AND NOT coalesce(gone, false)
        AND source_id NOT IN (SELECT source_id FROM price_history)
    UNION ALL SELECT provider, gpu, region, option, observed_on, observed_on FROM price_history WHERE usd_per_hour > 0
    UNION ALL SELECT provider, NULL, NULL, NULL, observed_on, observed_on FROM hosted_tokens
    WHERE observed_on IS NOT NULL
)
SELECT provider, count(*) AS facts, count(DISTINCT gpu) AS chips, min(observed_on) AS oldest_on,
    max(observed_on) AS newest_on
FROM facts WHERE observed_on <= $day AND recorded_on <= $known AND {admitted}
    AND ($most IS NULL OR $day - observed_on <= $most)
GROUP BY provider ORDER BY facts DESC, provider"""


def coverage(catalog: Catalog, wanted: Wanted, max_age_days: float | None = None) -> list[Row]:
    """Return per provider how many dated prices are on record until the catalog's day, and what can be ordered."""
    admitted, asked = filters.condition(wanted)
    query, known = _COVERAGE.format(admitted=admitted), catalog.known_as_of or FOREVER
    days = {"day": catalog.as_of, "known": known, "most": max_age_days}
    catalog.prepare_prices(history=True)
    found = catalog.query(query, "offers", "price_history", "hosted_tokens", parameters={**days, **asked})
    orderable = Counter(
        offer.provider
        for offer in catalog.offers(max_age_days=max_age_days)
        if all(allowed is None or getattr(offer, name) in allowed for name, allowed in wanted.items())
    )
    return [{**row, "offers": orderable[row["provider"]]} for row in found]


_NEWEST = "option", "region", "observed_on", "age_days"
_SOUGHT = "provider", "instance_type", "sought_on"
YOUNG_DAYS = 120  # within which a price of every machine of the large clouds should have been seen
LARGE_CLOUDS = frozenset({"aws", "azure", "gcp"})


def machines(catalog: Catalog, wanted: Wanted, max_age_days: float | None = None) -> list[Row]:
    """Return per machine that a provider names the newest price that can be ordered, those without one first.

    The price is that of the whole machine, also where the newest is of a part of it. `sought_on` is the day on which a
    public source with a newer price was sought in vain.
    """
    gaps = {(row["provider"], row["instance_type"].lower()): row for row in catalog.rows("price_gaps")}
    newest: dict[tuple[str, str], Row] = {}
    for row in current(catalog, {**wanted, "gpu": None}, max_age_days)[0]:
        for name in (row["system_id"], row["instance_type"].lower()) if row["rankable"] else ():
            key = row["provider"], name
            if key not in newest or row["age_days"] < newest[key]["age_days"]:
                newest[key] = row
    asked, chips = wanted["provider"], wanted["gpu"]
    rows: list[Row] = []
    for system in catalog.systems():
        if not (system.provider and system.instance_type):
            continue
        key = system.provider, system.instance_type.lower()
        row, gap = newest.get((system.provider, system.id), newest.get(key, {})), gaps.get(key, {})
        rows.append(
            {
                "provider": system.provider,
                "instance_type": system.instance_type,
                "gpu": system.accelerator_id,
                "gpus": system.gpus,
                "usd_per_hour": row["usd_per_gpu_hour"] * system.gpus if row else None,
                **{name: row.get(name) for name in _NEWEST},
                "sought_on": gap.get("sought_on"),
            }
        )
    blank = dict.fromkeys(("gpu", "gpus", "usd_per_hour", *_NEWEST))
    named = {(row["provider"], row["instance_type"].lower()) for row in rows}
    rows += [{**blank, **{name: gap[name] for name in _SOUGHT}} for key, gap in gaps.items() if key not in named]
    rows = [row for row in rows if (not asked or row["provider"] in asked) and (not chips or row["gpu"] in chips)]
    return sorted(rows, key=lambda row: (row["age_days"] is not None, -(row["age_days"] or 0), row["instance_type"]))


def unseen(rows: Iterable[Row], max_age_days: float | None = None) -> list[str]:
    """Say which machines have no young price, by provider, and whether one was sought in public sources."""
    young = min(YOUNG_DAYS, YOUNG_DAYS if max_age_days is None else max_age_days)
    old = [row for row in rows if row["age_days"] is None or row["age_days"] > young]
    said = []
    for in_vain in (True, False):
        names: dict[str, list[str]] = {}
        for row in old:
            if in_vain == (row["sought_on"] is not None):
                names.setdefault(row["provider"], []).append(row["instance_type"])
        if names:
            listed = "; ".join(f"{provider}: {', '.join(sorted(found))}" for provider, found in sorted(names.items()))
            last = max((row["sought_on"] for row in old if row["sought_on"]), default=None)
            vain = f"and none found in public sources (sought last on {last})"
            why = vain if in_vain else "`prices refresh` fetches it"
            said.append(f"no price younger than {young:g} days, {why}: {listed}.")
    return said


def cheapest(catalog: Catalog, wanted: Wanted, max_age_days: float | None, gpus: int) -> Row:
    """Return the cheapest offer that can be ordered with at least so many accelerators in one unit."""
    rows, _ = current(catalog, wanted, max_age_days)
    found = [row for row in rows if row["rankable"] and row["gpus"] >= gpus]
    if not found:
        raise PriceMissingError("no price that can be ordered matches; `gpucost prices` shows what there is.")
    return found[0]


def refuse_over(row: Row, budget_usd_per_gpu_hour: float) -> None:
    """Raise where the cheapest offer is dearer than the budget."""
    price = row["usd_per_gpu_hour"]
    if price > budget_usd_per_gpu_hour:
        raise OverBudgetError(
            f"the cheapest costs {price:.4g} USD per GPU-hour at {row['provider']}, over the budget of"
            f" {budget_usd_per_gpu_hour:g} by {price / budget_usd_per_gpu_hour - 1:,.0%}."
        )


def series(rows: Iterable[Row], most: int) -> tuple[list[Row], list[Row], int]:
    """Return points by offer for a chart, the events in them, and how many offers were left out."""
    offers: dict[str, list[Row]] = {}
    for row in rows:
        offers.setdefault(row["offer_id"], []).append(row)
    chosen = sorted(offers.values(), key=lambda group: (-len({row["usd_per_gpu_hour"] for row in group}), -len(group)))
    points = [
        {"day": row["price_on"], "usd_per_gpu_hour": row["usd_per_gpu_hour"], "offer": _named(row)}
        for group in chosen[:most]
        for row in group
    ]
    events = [
        {
            "day": row["price_on"],
            "offer": _named(row),
            "change_fraction": row["change_fraction"],
            "usd_per_gpu_hour": row["usd_per_gpu_hour"],
            "source_id": row["source_id"],
        }
        for group in chosen[:most]
        for row in group
        if abs(row["change_fraction"] or 0) >= _EVENT
    ]
    return points, sorted(events, key=lambda event: event["day"]), max(0, len(chosen) - most)


def _named(row: Row) -> str:
    return " ".join(str(row[name]) for name in ("provider", "instance_type", "region", "option") if row[name])


def page_data(catalog: Catalog, wanted: Wanted, max_age_days: float | None = None) -> Row:
    """Return what the page of prices shows: today's offers, and by quarter the cheapest of each chip and region."""
    rows, _ = current(catalog, wanted, max_age_days)
    today = [row for row in rows if row["rankable"]]
    counts: dict[str, int] = {}
    for row in today:
        counts[row["gpu"]] = counts.get(row["gpu"], 0) + 1
    gpus = sorted(counts, key=lambda gpu: -counts[gpu])[:_GPUS]
    catalog.prepare_prices(history=True)
    days = quarters(catalog.as_of, _DAYS)
    points = [
        [*point, number]
        for number, day in enumerate(days)
        for point in _on_day(catalog, day, gpus, wanted, max_age_days)
    ]
    shown = ("provider", "usd_per_gpu_hour", "option", "instance_type", "region", "gpus", "observed_on", "stale", "gpu")
    return {
        "days": [day.isoformat() for day in days],
        "gpus": gpus,
        "columns": shown,
        "points": points,
        "offers": [[row[name] for name in shown] for row in today],
    }


def quarters(last: date, count: int) -> list[date]:
    """Return the last day and the first days of the quarters before it, the oldest first.

    >>> [day.isoformat() for day in quarters(date(2026, 5, 20), 3)]
    ['2026-01-01', '2026-04-01', '2026-05-20']
    """
    year, quarter = last.year, (last.month - 1) // 3
    found = [last]
    while len(found) < count and year >= date.min.year:
        start = date(year, 3 * quarter + 1, 1)
        if start < last:
            found.append(start)
        year, quarter = (year, quarter - 1) if quarter else (year - 1, 3)
    return found[::-1]


def _on_day(
    catalog: Catalog, day: date, gpus: Sequence[str], wanted: Wanted, max_age_days: float | None
) -> list[list[Any]]:
    """Return chip, family of options, provider, region and price of the cheapest offer of each on a day."""
    kinds = {name: rule.family for name, rule in OPTIONS.items() if rule.family in ("on demand", "preemptible")}
    query = """SELECT gpu, option, provider, region, min(usd_per_gpu_hour) AS usd FROM prices_on($day, $known)
        WHERE ended IS NULL AND NOT conflict AND NOT gpu_ambiguous
        AND ($most IS NULL OR price_kind = 'contracted' OR age_days <= $most) GROUP BY gpu, option, provider, region
        ORDER BY gpu, option, provider, region"""
    known = catalog.known_as_of or FOREVER
    return [
        [row["gpu"], kinds[row["option"]], row["provider"], row["region"], round(row["usd"], 4)]
        for row in catalog.query(query, parameters={"day": day, "known": known, "most": max_age_days})
        if row["gpu"] in gpus and row["option"] in kinds and filters.admits(wanted, row)
    ]
