"""Prices over time: what `prices`, `prices history` and `prices diff` show."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from gpucost.catalog import filters
from gpucost.catalog.asof import FOREVER
from gpucost.catalog.core import Catalog
from gpucost.errors import UsageError
from gpucost.options import EXPIRED, MARKET_LIMIT_DAYS, OPTIONS, age_limit_days, counted_age_days

KEYS = (
    "offer_id",
    "offer_kind",
    "provider",
    "instance_type",
    "region",
    "region_scope",
    "option",
    "tier",
    "billing",
    "term_months",
    "payment",
    "gpu",
    "gpu_assumed",
    "gpus",
    "system_id",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "upfront_usd",
    "recurring_usd_per_hour",
    "minimum_hours",
    "billing_increment_hours",
    "minimum_units",
    "maximum_units",
    "listed_as",
    "interconnect",
    "availability",
    "price_on",
    "valid_from",
    "valid_until",
    "observed_on",
    "recorded_on",
    "date_precision",
    "age_days",
    "stale",
    "book",
    "price_kind",
    "list_usd_per_gpu_hour",
    "confidence",
    "source_id",
    "notes",
)


_ENDED = {
    "stated": "its own end has passed",
    "replaced": "a newer price of the same list replaced it",
    "withdrawn": "no longer listed",
    "wrong": "the price of another product",
    EXPIRED: "too old for its kind to be an offer",
}


def current(
    catalog: Catalog, wanted: dict[str, set[str] | None], max_age_days: float | None, *, ended: bool = True
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row per offer, the cheapest GPU-hour first and the unrankable last, with warnings."""
    found = [row for row in catalog.price_rows if filters.admits(wanted, row) and (ended or not row["ended"])]
    sellers = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    fresh = [row for row in found if max_age_days is None or _age_days(row) <= max_age_days]
    rows = [_described(row, sellers.get(row["provider"])) for row in fresh]
    rows.sort(key=lambda row: (not row["rankable"], row["usd_per_gpu_hour"], row["offer_id"]))
    return rows, _warnings(rows, len(found) - len(fresh), max_age_days)


def _age_days(row: dict[str, Any]) -> float:
    return counted_age_days(row["age_days"], row["price_kind"])


def _described(row: dict[str, Any], seller: str | None) -> dict[str, Any]:
    candidates = row["gpu"].split("|")
    reason = _ENDED.get(row["ended"]) or (
        "two prices on one day" if row["conflict"] else "which GPU is not stated" if len(candidates) > 1 else ""
    )
    stale = _age_days(row) > age_limit_days(row["option"], (row["tier"], seller))
    kept = {key: stale if key == "stale" else row[key] for key in KEYS}
    return {**kept, "rankable": not reason, "not_ranked_because": reason or None, "gpu_candidates": candidates}


def _warnings(rows: Sequence[dict[str, Any]], dropped: int, max_age_days: float | None) -> list[str]:
    warnings = []
    if stale := sum(row["stale"] for row in rows):
        warnings.append(
            f"{stale} of {len(rows)} prices are old for their kind (spot over {OPTIONS['spot'].age_limit_days} days, "
            f"marketplace over {MARKET_LIMIT_DAYS}, list over {OPTIONS['on_demand'].age_limit_days})."
        )
    if dropped:
        warnings.append(f"{dropped} prices older than {max_age_days:g} days were left out.")
    if unranked := sum(not row["rankable"] for row in rows):
        warnings.append(
            f"{unranked} prices are not ranked: they ended, their GPU is ambiguous or two prices contradict each other."
        )
    return warnings


def history(
    catalog: Catalog, wanted: dict[str, set[str] | None], max_age_days: float | None = None
) -> list[dict[str, Any]]:
    """Return every recorded price of every offer in the order of the days from which it holds, with its change.

    The age of a price is that of the last day on which its source listed it, as in `current`.
    """
    catalog.prepare_prices(history=True)
    admitted, asked = filters.condition(wanted)
    keys = [key for key in KEYS if key not in ("age_days", "stale", "list_usd_per_gpu_hour")]
    query = f"""
        SELECT {", ".join(keys)}, change_fraction FROM (
            SELECT *, coalesce(valid_from, observed_on) AS price_on,
                usd_per_gpu_hour / lag(usd_per_gpu_hour) OVER (
                    PARTITION BY offer_id
                    ORDER BY coalesce(valid_from, observed_on), recorded_on, observed_on, source_id, usd_per_hour
                ) - 1 AS change_fraction
            FROM book_offers
            WHERE observed_on IS NOT NULL AND usd_per_hour IS NOT NULL AND NOT coalesce(gone, false)
                AND coalesce(valid_from, observed_on) <= $on_day AND recorded_on <= $known_day
                AND offer_id IN (SELECT offer_id FROM book_offers WHERE {admitted})
        ) WHERE {admitted} AND ($most IS NULL OR price_kind = 'contracted'
            OR $on_day - greatest(observed_on, least(coalesce(seen_until, observed_on), $on_day, $known_day)) <= $most)
        ORDER BY provider, instance_type, gpu, region, option, offer_id,
            price_on, recorded_on, observed_on, source_id, usd_per_hour"""
    days = {"on_day": catalog.as_of, "known_day": catalog.known_as_of or FOREVER}
    return catalog.query(query, parameters={**days, **asked, "most": max_age_days})


_COMPARED = ("offer_id", "provider", "instance_type", "region", "option", "gpu", "gpus")


def difference(
    catalog: Catalog, first: date, wanted: dict[str, set[str] | None], everything: bool
) -> tuple[list[dict[str, Any]], int]:
    """Return the offers whose price differs between a day and the catalog's, and how many nobody knows about.

    Compared is what can be ordered. An offer is new, gone, cheaper or dearer; `everything` keeps those of the same
    price. One that `prices` does not list on the second day, though nothing says that it ended, is counted alone.
    """
    if first > catalog.as_of:
        raise UsageError(f"the first day {first} lies after the second {catalog.as_of}. Give the earlier one first.")
    new = {row["offer_id"]: row for row in catalog.price_rows if not row["ended"]}
    catalog.prepare_prices(history=first < catalog.dated)
    old, on_record = (_orderable(catalog, day) for day in (first, catalog.as_of))
    unknown = {one for one in old.keys() & on_record - new.keys() if filters.admits(wanted, old[one])}
    rows = [_compared(old.get(one, {}), new.get(one, {})) for one in (new.keys() | old) - unknown]
    kept = [row for row in rows if filters.admits(wanted, row) and (everything or row["change"] != "same")]
    kept.sort(key=lambda row: (row["change"], row["change_fraction"] or 0, row["offer_id"]))
    return kept, len(unknown)


def _orderable(catalog: Catalog, day: date) -> dict[str, dict[str, Any]]:
    """Return what can be ordered on a day, by offer."""
    query = f"""SELECT {", ".join(_COMPARED)}, usd_per_gpu_hour, observed_on, source_id FROM prices_on($day, $known)
        WHERE ended IS NULL"""
    rows = catalog.query(query, parameters={"day": day, "known": catalog.known_as_of or FOREVER})
    return {row["offer_id"]: row for row in rows}


def _compared(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return an offer of two days, of one of which it may be missing."""
    was, now = old.get("usd_per_gpu_hour"), new.get("usd_per_gpu_hour")
    change, delta, fraction = "new" if was is None else "gone", None, None
    if was is not None and now is not None:
        change = "same" if was == now else "cheaper" if now < was else "dearer"
        delta, fraction = now - was, now / was - 1 if was else None
    return {name: (new or old)[name] for name in _COMPARED} | {
        "old_usd_per_gpu_hour": was,
        "new_usd_per_gpu_hour": now,
        "change_usd_per_gpu_hour": delta,
        "change_fraction": fraction,
        "change": change,
        "old_observed_on": old.get("observed_on"),
        "new_observed_on": new.get("observed_on"),
        "old_source_id": old.get("source_id"),
        "new_source_id": new.get("source_id"),
    }
