"""Looking at prices: over time, by place and day, against a budget, and how they fell."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import exp, log
from typing import Any, NamedTuple

from gpucost.answers.common import old_prices
from gpucost.catalog import names
from gpucost.catalog.asof import AMBIGUOUS, CONFLICT, ENDED_BECAUSE, FOREVER
from gpucost.catalog.availability import UNSOLD
from gpucost.catalog.core import Catalog
from gpucost.errors import OverBudgetError, PriceMissingError, UsageError
from gpucost.options import MARKET_LIMIT_DAYS, OPTIONS, age_limit_days, counted_age_days
from gpucost.units import DAYS_PER_YEAR

Filters = dict[str, set[str] | None]  # column -> the values that it may have, None for any

# --- What `prices`, `prices history` and `prices diff` show.

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
_SALE = ("sale", "sale_on", "sale_source_id", "zones")  # of the offers of a day


def current(
    catalog: Catalog, filters: Filters, max_age_days: float | None, *, ended: bool = True
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row per offer, the cheapest GPU-hour first and the unrankable last, with warnings."""
    sellers = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    rows, dropped = [], 0
    for row in catalog.price_rows:
        if not names.admits(filters, row) or (row["ended"] and not ended):
            continue
        age_days = counted_age_days(row["age_days"], row["price_kind"])
        if max_age_days is not None and age_days > max_age_days:
            dropped += 1
            continue
        # an ended price says why it ended before anything else that speaks against it
        candidates = row["gpu"].split("|")
        reason = ENDED_BECAUSE.get(row["ended"])
        if not reason and row["conflict"]:
            reason = CONFLICT
        elif not reason and len(candidates) > 1:
            reason = AMBIGUOUS
        is_stale = age_days > age_limit_days(row["option"], (row["tier"], sellers.get(row["provider"])))
        cells = {key: is_stale if key == "stale" else row[key] for key in (*KEYS, *_SALE)}
        rows.append(
            {**cells, "rankable": not reason, "not_ranked_because": reason or None, "gpu_candidates": candidates}
        )
    rows.sort(key=lambda row: (not row["rankable"], row["usd_per_gpu_hour"], row["offer_id"]))

    # what a reader must know of the list: its age as a whole, then of single prices
    notice = old_prices(catalog.as_of.isoformat(), catalog.version)
    warnings = [notice] if notice else []
    if stale := sum(row["stale"] for row in rows):
        warnings.append(
            f"{stale} of {len(rows)} prices are old for their kind (spot over {OPTIONS['spot'].age_limit_days} days, "
            f"marketplace over {MARKET_LIMIT_DAYS}, list over {OPTIONS['on_demand'].age_limit_days})."
        )
    if dropped:
        warnings.append(f"{dropped} prices older than {max_age_days:g} days were left out.")
    if unranked := sum(not row["rankable"] for row in rows):
        warnings.append(
            f"{unranked} prices are not ranked: expired or ended, not sold in their region, of an ambiguous GPU, or"
            " contradictory."
        )
    return rows, warnings


def history(catalog: Catalog, filters: Filters, max_age_days: float | None = None) -> list[dict[str, Any]]:
    """Return every recorded price of every offer in the order of the days from which it holds, with its change.

    The age of a price is that of the last day on which its source listed it, as in `current`.
    """
    catalog.prepare_prices(history=True)
    admitted, parameters = names.condition(filters)
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
    return catalog.query(query, parameters={**days, **parameters, "most": max_age_days})


_COMPARED = ("offer_id", "provider", "instance_type", "region", "option", "gpu", "gpus")


def difference(catalog: Catalog, first: date, filters: Filters, everything: bool) -> tuple[list[dict[str, Any]], int]:
    """Return the offers whose price differs between a day and the catalog's, and how many nobody knows about.

    Compared is what can be ordered. An offer is new, gone, cheaper or dearer; `everything` keeps those of the same
    price. One that `prices` does not list on the second day, though nothing says that it ended, is counted alone.
    """
    if first > catalog.as_of:
        raise UsageError(f"the first day {first} lies after the second {catalog.as_of}. Give the earlier one first.")
    new = {row["offer_id"]: row for row in catalog.price_rows if not row["ended"]}
    catalog.prepare_prices(history=first < catalog.dated)
    # an offer of which nobody knows whether it still holds is neither gone nor dearer
    old, on_record = (_orderable(catalog, day) for day in (first, catalog.as_of))
    unknown = {offer_id for offer_id in old.keys() & on_record - new.keys() if names.admits(filters, old[offer_id])}
    rows = [_compared(old.get(offer_id, {}), new.get(offer_id, {})) for offer_id in (new.keys() | old) - unknown]
    changed = [row for row in rows if names.admits(filters, row) and (everything or row["change"] != "same")]
    changed.sort(key=lambda row: (row["change"], row["change_fraction"] or 0, row["offer_id"]))
    return changed, len(unknown)


def difference_of_versions(then: Catalog, now: Catalog, filters: Filters, everything: bool) -> list[dict[str, Any]]:
    """Return the offers whose price differs between two versions of the facts, on the day of the second."""
    then.prepare_prices(history=False)
    now.prepare_prices(history=False)
    old, new = _orderable(then, now.as_of), _orderable(now, now.as_of)
    rows = [_compared(old.get(offer_id, {}), new.get(offer_id, {})) for offer_id in new.keys() | old]
    changed = [row for row in rows if names.admits(filters, row) and (everything or row["change"] != "same")]
    return sorted(changed, key=lambda row: (row["change"], row["change_fraction"] or 0, row["offer_id"]))


def _orderable(catalog: Catalog, day: date) -> dict[str, dict[str, Any]]:
    """Return what can be ordered on a day, by offer."""
    query = f"""SELECT {", ".join(_COMPARED)}, usd_per_gpu_hour, observed_on, source_id, book, price_kind
        FROM prices_on($day, $known) WHERE ended IS NULL"""
    rows = catalog.query(query, parameters={"day": day, "known": catalog.known_as_of or FOREVER})
    return {row["offer_id"]: row for row in rows if catalog.availability.of(row).status != "unlisted"}


def _compared(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return an offer of two days, of one of which it may be missing."""
    was, now = old.get("usd_per_gpu_hour"), new.get("usd_per_gpu_hour")
    change, delta, fraction = "new" if was is None else "gone", None, None
    if was is not None and now is not None:
        change = "cheaper" if now < was else "dearer"
        if now == was:
            change = "same"
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


# --- Looking at prices: what is old, what a GPU-hour costs against a budget, and how a price moved.

Row = dict[str, Any]
_EVENT = 0.05  # a change of a price that is worth a mark


def stale(catalog: Catalog, filters: Filters, max_age_days: float | None = None) -> list[Row]:
    """Return per provider and option how many prices are old for their kind, and how old they are, the worst first."""
    from statistics import median

    rows, _ = current(catalog, filters, max_age_days)
    sellers = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    # what does not rank is history: its age says nothing of what can be ordered
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["rankable"]:
            groups.setdefault((row["provider"], row["option"]), []).append(row)
    counts = [
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
    return sorted(counts, key=lambda row: (-row["old"], row["provider"], row["option"]))


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


def coverage(catalog: Catalog, filters: Filters, max_age_days: float | None = None) -> list[Row]:
    """Return per provider how many dated prices are on record until the catalog's day, and what can be ordered."""
    admitted, parameters = names.condition(filters)
    query, known_day = _COVERAGE.format(admitted=admitted), catalog.known_as_of or FOREVER
    days = {"day": catalog.as_of, "known": known_day, "most": max_age_days}
    catalog.prepare_prices(history=True)
    # every dated price, of whatever product; then what of it one can order today
    counts = catalog.query(query, "offers", "price_history", "hosted_tokens", parameters={**days, **parameters})
    orderable = Counter(
        offer.provider
        for offer in catalog.offers(max_age_days=max_age_days)
        if all(allowed is None or getattr(offer, name) in allowed for name, allowed in filters.items())
    )
    unsold = Counter(
        row["provider"]
        for row in catalog.price_rows
        if row["ended"] == UNSOLD
        and names.admits(filters, row)
        and (max_age_days is None or row["age_days"] <= max_age_days)
    )
    return [{**row, "offers": orderable[row["provider"]], "unsold": unsold[row["provider"]]} for row in counts]


_NEWEST = "option", "region", "observed_on", "age_days"
_SOUGHT = "provider", "instance_type", "sought_on"
YOUNG_DAYS = 120  # within which a price of every machine of the large clouds should have been seen
# whose lists are public and name every machine
LARGE_CLOUDS = frozenset({"aws", "azure", "gcp"})


def machines(catalog: Catalog, filters: Filters, max_age_days: float | None = None) -> list[Row]:
    """Return per machine that a provider names the newest price that can be ordered, those without one first.

    The price is that of the whole machine, also where the newest is of a part of it. `sought_on` is the day on which a
    public source with a newer price was sought in vain.
    """
    gaps = {(row["provider"], row["instance_type"].lower()): row for row in catalog.rows("price_gaps")}
    newest: dict[tuple[str, str], Row] = {}
    # of every chip: machines are filtered by theirs below, and a price may name its chip more loosely
    for row in current(catalog, {**filters, "gpu": None}, max_age_days)[0]:
        for name in (row["system_id"], row["instance_type"].lower()) if row["rankable"] else ():
            key = row["provider"], name
            if key not in newest or row["age_days"] < newest[key]["age_days"]:
                newest[key] = row
    providers, chips = filters["provider"], filters["gpu"]
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
    # machines of no system: their price was sought all the same
    keys = {(row["provider"], row["instance_type"].lower()) for row in rows}
    rows += [{**blank, **{name: gap[name] for name in _SOUGHT}} for key, gap in gaps.items() if key not in keys]
    rows = [
        row for row in rows if (not providers or row["provider"] in providers) and (not chips or row["gpu"] in chips)
    ]
    return sorted(rows, key=lambda row: (row["age_days"] is not None, -(row["age_days"] or 0), row["instance_type"]))


def unseen(rows: Iterable[Row], max_age_days: float | None = None) -> list[str]:
    """Say which machines have no young price, by provider, and whether one was sought in public sources."""
    young = min(YOUNG_DAYS, YOUNG_DAYS if max_age_days is None else max_age_days)
    old = [row for row in rows if row["age_days"] is None or row["age_days"] > young]
    sentences = []
    for in_vain in (True, False):
        names: dict[str, list[str]] = {}
        for row in old:
            if in_vain == (row["sought_on"] is not None):
                names.setdefault(row["provider"], []).append(row["instance_type"])
        if names:
            listed = "; ".join(
                f"{provider}: {', '.join(sorted(missing))}" for provider, missing in sorted(names.items())
            )
            last = max((row["sought_on"] for row in old if row["sought_on"]), default=None)
            vain = f"and none found in public sources (sought last on {last})"
            reason = vain if in_vain else "`prices refresh` fetches it"
            sentences.append(f"no price younger than {young:g} days, {reason}: {listed}.")
    return sentences


def cheapest(catalog: Catalog, filters: Filters, max_age_days: float | None, gpus: int) -> Row:
    """Return the cheapest offer that can be ordered with at least so many accelerators in one unit."""
    rows, _ = current(catalog, filters, max_age_days)
    orderable = [row for row in rows if row["rankable"] and row["gpus"] >= gpus]
    if not orderable:
        raise PriceMissingError("no price that can be ordered matches; `gpucost prices` shows what there is.")
    return orderable[0]


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
    # those that moved most tell most; then those seen most often
    chosen = sorted(offers.values(), key=lambda group: (-len({row["usd_per_gpu_hour"] for row in group}), -len(group)))
    points = [
        {"day": row["price_on"], "usd_per_gpu_hour": row["usd_per_gpu_hour"], "offer": _offer_label(row)}
        for group in chosen[:most]
        for row in group
    ]
    events = [
        {
            "day": row["price_on"],
            "offer": _offer_label(row),
            "change_fraction": row["change_fraction"],
            "usd_per_gpu_hour": row["usd_per_gpu_hour"],
            "source_id": row["source_id"],
        }
        for group in chosen[:most]
        for row in group
        if abs(row["change_fraction"] or 0) >= _EVENT
    ]
    return points, sorted(events, key=lambda event: event["day"]), max(0, len(chosen) - most)


def _offer_label(row: Row) -> str:
    return " ".join(str(row[name]) for name in ("provider", "instance_type", "region", "option") if row[name])


def quarters(last: date, count: int) -> list[date]:
    """Return the last day and the first days of the quarters before it, the oldest first.

    >>> [day.isoformat() for day in quarters(date(2026, 5, 20), 3)]
    ['2026-01-01', '2026-04-01', '2026-05-20']
    """
    year, quarter = last.year, (last.month - 1) // 3
    days = [last]
    while len(days) < count and year >= date.min.year:
        start = date(year, 3 * quarter + 1, 1)
        if start < last:
            days.append(start)
        year, quarter = (year, quarter - 1) if quarter else (year - 1, 3)
    return days[::-1]


# --- How list prices fell by chip.
#
# A machine's list price is a step function of time; its fall per year is that of the line through log price by
# day, every quarter one point. A chip's fall is the median over its sellers of their machines' medians, and its range
# the lowest and highest seller: sellers, not regions, decide on prices.

_FEWEST_DAYS_WATCHED = 180  # of a list price
_QUARTERS = 17  # four years, and the day itself


class Watched(NamedTuple):
    """How far a price moved, ln(last / first), over the years between the sights of it."""

    log_ratio: float
    years: float

    @property
    def fall(self) -> float:
        """Return the fall per year; negative is a rise.

        >>> round(Watched(log(0.25), 2.0).fall, 3), Watched(0.0, 2.0).fall
        (0.5, 0.0)
        """
        return 1 - exp(self.log_ratio / self.years)


def list_declines(catalog: Catalog, filters: Filters) -> list[Row]:
    """Return per chip the yearly fall of its list prices: over the years of all sellers, and the range of sellers."""
    declines = []
    for gpu, sellers in list_moves(catalog, filters).items():
        # a seller counts once, however many machines and regions it lists
        watched = [mean_move(moves) for moves in sellers.values()]
        falls = sorted(seller.fall for seller in watched)
        declines.append(
            {
                "gpu": gpu,
                "sellers": len(falls),
                "machines": sum(map(len, sellers.values())),
                "decline_fraction": combined(watched).fall,
                "decline_low_fraction": falls[0],
                "decline_high_fraction": falls[-1],
            }
        )
    return sorted(declines, key=lambda row: (-row["sellers"], row["gpu"]))


def list_moves(catalog: Catalog, filters: Filters) -> dict[str, dict[str, list[Watched]]]:
    """Return how each machine's list price moved, by chip and seller."""
    catalog.prepare_prices(history=True)
    admitted, parameters = names.condition(filters)
    known_day = catalog.known_as_of or FOREVER
    query = f"""SELECT gpu, provider, offer_id, usd_per_gpu_hour AS usd FROM prices_on($day, $known)
        WHERE ended IS NULL AND NOT conflict AND NOT gpu_ambiguous AND book <> 'user' AND term_months = 0
        AND observed_on > $before AND option IN ('on_demand', 'secure') AND {admitted}"""  # not an older sight again
    series: dict[tuple[str, str, str], list[tuple[date, float]]] = {}
    days = quarters(catalog.as_of, _QUARTERS)
    for day, before in zip(days, (date.min, *days), strict=False):
        for row in catalog.query(query, parameters={"day": day, "known": known_day, "before": before, **parameters}):
            series.setdefault((row["gpu"], row["provider"], row["offer_id"]), []).append((day, row["usd"]))

    # of what was watched for less than half a year, one step of a list would make a yearly fall more than twice as deep
    chips: dict[str, dict[str, list[Watched]]] = {}
    for (gpu, provider, _), points in series.items():
        (first, first_usd), (last, last_usd) = points[0], points[-1]
        if (last - first).days >= _FEWEST_DAYS_WATCHED:
            watched = Watched(log(last_usd / first_usd), (last - first).days / DAYS_PER_YEAR)
            chips.setdefault(gpu, {}).setdefault(provider, []).append(watched)
    return chips


def combined(moves: Sequence[Watched]) -> Watched:
    """Return the moves as one, over the years of all."""
    return Watched(sum(move.log_ratio for move in moves), sum(move.years for move in moves))


def mean_move(moves: Sequence[Watched]) -> Watched:
    """Return the move of a seller that counts once, however many machines it lists."""
    return Watched(*(total / len(moves) for total in combined(moves)))


def overall(rows: list[Row]) -> Row:
    """Return the fall over chips of two sellers and more; the ends are medians of theirs, so that no odd one counts."""
    from statistics import median

    sold_by_several = [row for row in rows if row["sellers"] > 1]
    names = ("decline_low_fraction", "decline_fraction", "decline_high_fraction")
    return {name: median(row[name] for row in sold_by_several) if sold_by_several else None for name in names} | {
        "chips": len(sold_by_several)
    }


# --- One row for each provider, accelerator, region or option.

_KIND_COLUMNS = {
    "on demand": "on_demand_usd_per_gpu_hour",
    "interruptible": "spot_usd_per_gpu_hour",
    "committed": "committed_usd_per_gpu_hour",
    "other": "other_usd_per_gpu_hour",
}


def by_column(rows: Sequence[Mapping[str, Any]], column: str) -> list[dict[str, Any]]:
    """Return a row for each value of a column: its cheapest price by kind of option, with day, machine and source.

    Of a kind the cheapest that is not old for it, else the cheapest; a value of which no price on demand is that young
    stands behind those with one. What is not ranked (ended, contradictory, not sold there) is left out; a kind without
    a price is empty, never zero.
    """
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (bool(row.get("stale")), float(row["usd_per_gpu_hour"]))):
        if row["rankable"]:
            groups.setdefault(row[column] or "any", []).append(row)
    lines = []
    for value, of_value in groups.items():
        cheapest: dict[str, Mapping[str, Any]] = {}
        for row in of_value:
            rule = OPTIONS[str(row["option"])]
            if rule.kind in _KIND_COLUMNS:
                kind = rule.kind
            else:
                kind = "committed" if rule.family == "committed" or row["term_months"] else "other"
            cheapest.setdefault(kind, row)
        # the machine that the row shows is the one that anybody can rent
        first = cheapest.get("on demand") or next(iter(cheapest.values()))
        days = sorted(row["observed_on"] for row in of_value)
        line = {column: value, "machine": _machine_of(first)}
        for kind, name in _KIND_COLUMNS.items():
            offer = cheapest.get(kind, {})
            line |= {name: offer.get("usd_per_gpu_hour")}
            line |= {name.replace("usd_per_gpu_hour", "observed_on"): offer.get("observed_on")}
        lines.append(
            line
            | {
                "old": bool(first.get("stale")),
                "seen_since_on": min(offer["observed_on"] for offer in cheapest.values()),
                "offers": len(of_value),
                "gpus_offered": len({row["gpu"] for row in of_value}),
                "regions": len({row["region"] for row in of_value if row["region"]}),
                "observed_on": days[-1],
                "oldest_on": days[0],
                "gpu_of_first": first["gpu"],
                "source_id": first["source_id"],
            }
        )

    def rank(line: dict[str, Any]) -> tuple[bool, bool, float, str]:
        on_demand = line["on_demand_usd_per_gpu_hour"]
        prices = [price for name in _KIND_COLUMNS.values() if (price := line[name]) is not None]
        return line["old"], on_demand is None, float(min(prices) if on_demand is None else on_demand), str(line[column])

    return sorted(lines, key=rank)


def _machine_of(offer: Mapping[str, Any]) -> str:
    """Return what one orders by name; of a seller without names, so many of the chip.

    >>> _machine_of({"instance_type": "p5.48xlarge", "gpus": 8, "gpu": "h100-sxm5-80gb"})
    'p5.48xlarge'
    """
    return str(offer.get("instance_type") or f"{offer.get('gpus') or 1} × {offer['gpu']}")


def cheapest_of_sellers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each seller, chip and option: its cheapest offer that ranks, and in how many regions.

    What is old for its kind stands last, and for a seller only where it has nothing younger.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["rankable"]:
            groups.setdefault((row["provider"], row["gpu"], row["option"]), []).append(row)
    cheapest = []
    for offers in groups.values():
        first = min(offers, key=lambda row: (bool(row.get("stale")), float(row["usd_per_gpu_hour"])))
        term = f" {first['term_months']} months" if first["term_months"] else ""
        regions = len({row["region"] for row in offers if row["region"]}) or None
        purchase = f"{first['option'].replace('_', ' ')}{term}"
        cheapest.append({**first, "purchase": purchase, "regions": regions})
    in_order = ("stale", "usd_per_gpu_hour", "offer_id")
    return sorted(cheapest, key=lambda row: tuple(row.get(name) or 0 for name in in_order))
