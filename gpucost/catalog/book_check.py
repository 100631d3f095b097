"""What a price book says against the lists: each contract and discount with list, contracted and effective price."""

from datetime import date, timedelta
from typing import Any

from gpucost.catalog.core import Catalog
from gpucost.catalog.discounts import covers, described, idle

SOON_DAYS = 90


def judged(catalog: Catalog) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row per contract, discount and credit, with its prices and what to look at."""
    catalog.prepare_prices()
    rows = [*_contracts(catalog), *_discounts(catalog), *_credits(catalog)]
    remarks = [f"{row['what']}: {row['remark']}" for row in rows if row["remark"]]
    return rows, remarks


def _contracts(catalog: Catalog) -> list[dict[str, Any]]:
    day = catalog.as_of
    speaking = {row["offer_id"]: row for row in catalog.price_rows if row["book"] == "user"}
    query = """SELECT * FROM book_offers WHERE book = 'user' ORDER BY offer_id, coalesce(valid_from, observed_on)"""
    found = []
    for row in catalog.store.fetch(query):
        now = speaking.get(row["offer_id"])
        listed = now["list_usd_per_gpu_hour"] if now else None
        price, start = row["usd_per_gpu_hour"], row["valid_from"] or row["observed_on"]
        dearer = f"it is dearer than the list, {listed:g} USD" if listed is not None and price > listed else ""
        found.append(
            _row("contract", row["offer_id"], listed, price, price, start, row["valid_until"])
            | {"remark": _term(start, row["valid_until"], day) or dearer}
        )
    return found


def _discounts(catalog: Catalog) -> list[dict[str, Any]]:
    given = [row for book in catalog.books for row in book.discounts]
    useless = {place for place, _ in idle(catalog.store, given)}
    found = []
    for place, row in enumerate(given, 1):
        covered = [
            (price["list_usd_per_gpu_hour"], price["usd_per_gpu_hour"])
            for price in catalog.price_rows
            if price["price_kind"] == "effective" and covers(row, price)
        ]
        best = min(covered, key=lambda pair: pair[1], default=(None, None))
        name = f"{row['fraction']:.0%} on {described(row) or 'everything'} ({len(covered)} prices)"
        remark = (
            "it matches no price" if place in useless else _term(row["valid_from"], row["valid_until"], catalog.as_of)
        )
        made = _row("discount", name, best[0], None, best[1], row["valid_from"], row["valid_until"])
        found.append(made | {"remark": remark})
    return found


def _credits(catalog: Catalog) -> list[dict[str, Any]]:
    found = []
    for row in (row for book in catalog.books for row in book.credits):
        matched = sum(covers(row, price) for price in catalog.price_rows if not price["ended"])
        cap = f", at most {row['usd_per_month']:,.0f} a month" if row["usd_per_month"] else ""
        name = f"{row['usd']:,.0f} USD on {described(row) or 'everything'}{cap} ({matched} prices)"
        remark = _term(row["valid_from"], row["valid_until"], catalog.as_of)
        made = _row("credit", name, None, None, None, row["valid_from"], row["valid_until"])
        found.append(made | {"remark": remark if matched else "it matches no price"})
    return found


def _row(
    layer: str,
    what: str,
    listed: float | None,
    contracted: float | None,
    effective: float | None,
    start: date | None,
    end: date | None,
) -> dict[str, Any]:
    return {
        "layer": layer,
        "what": what,
        "list_usd_per_gpu_hour": listed,
        "contracted_usd_per_gpu_hour": contracted,
        "effective_usd_per_gpu_hour": effective,
        "saved_fraction": 1 - effective / listed if effective is not None and listed else None,
        "valid_from": start,
        "valid_until": end,
        "remark": "",
    }


def _term(start: date | None, end: date | None, day: date) -> str:
    if end is not None and end < day:
        return f"it ended on {end}; the list speaks again"
    if start is not None and start > day:
        return f"it holds from {start} on"
    if end is not None and end - day <= timedelta(days=SOON_DAYS):
        return f"it ends on {end}, in {(end - day).days} days"
    return ""
