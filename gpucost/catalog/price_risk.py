"""What the history says of risk: how spot prices moved by machine and region, and how list prices fell by chip.

Spot. Between change points a price holds, so a day counts with the price of its last change point, and once where two
sources saw it: that of the one whose series began first.

    volatility = sqrt(sum of squared log changes / years seen)              per square root of a year
    share above x = days with spot > x times on demand / days with both
    move = price MOVE_DAYS later / price, one a month from each series; its 10th and 90th percentile

Lists. A machine's list price is a step function of time; its fall per year is that of the line through log price by
day, every quarter one point. A chip's fall is the median over its sellers of their machines' medians, and its range
the lowest and highest seller: sellers, not regions, decide on prices.
"""

from collections.abc import Mapping
from datetime import date
from statistics import median
from typing import Any

from gpucost.catalog import filters
from gpucost.catalog.asof import FOREVER
from gpucost.catalog.core import Catalog
from gpucost.catalog.history import load_history
from gpucost.catalog.price_views import quarters
from gpucost.options import MOVE_DAYS
from gpucost.units import DAYS_PER_YEAR

Row = dict[str, Any]
FEWEST_DAYS = 90  # of a spot series
FEWEST_QUARTERS = 4  # of a list price
FEWEST_MOVES = 12
_QUARTERS = 17

_SPOT = f"""
WITH seen AS (
    SELECT provider, instance_type, gpu, gpus, region, source_id, usd_per_hour AS usd, observed_on AS since,
        min(observed_on) OVER own AS first_on, least(seen_until, CAST($day AS DATE)) AS until,
        ln(usd_per_hour / lag(usd_per_hour) OVER same) AS move
    FROM history_offers WHERE option = 'spot' AND NOT gone AND usd_per_hour > 0 AND observed_on <= $day
    WINDOW same AS (PARTITION BY source_id, provider, instance_type, gpu, region ORDER BY observed_on),
        own AS (PARTITION BY source_id, provider, instance_type, region)
), points AS (
    SELECT * EXCLUDE (since, move), greatest(since, earlier + 1) AS since,
        CASE WHEN since > earlier THEN move END AS move
    FROM (SELECT *, coalesce(max(until) OVER earlier, first_on - 1) AS earlier FROM seen
        WINDOW earlier AS (PARTITION BY provider, instance_type, region ORDER BY first_on, source_id
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP))
), plain AS (
    SELECT provider, instance_type, region, median(usd_per_hour) AS on_demand FROM history_offers
    WHERE option = 'on_demand' AND NOT gone AND observed_on <= $day GROUP BY ALL
    UNION ALL
    SELECT provider, instance_type, region, median(usd_per_hour) FROM offers AS o WHERE option = 'on_demand'
    AND observed_on <= $day AND NOT EXISTS (SELECT 1 FROM history_offers AS h WHERE h.option = 'on_demand'
        AND h.observed_on <= $day AND h.provider = o.provider AND h.instance_type = o.instance_type
        AND h.region IS NOT DISTINCT FROM o.region) GROUP BY ALL
), daily AS (
    SELECT p.*, until - since + 1 AS days, usd / on_demand AS ratio
    FROM points AS p LEFT JOIN plain AS l ON l.provider = p.provider AND l.instance_type = p.instance_type
        AND l.region IS NOT DISTINCT FROM p.region
    WHERE until >= since
)
SELECT provider, instance_type, min(gpu) AS gpu, region, min(since) AS first_on, max(until) AS last_on,
    CAST(sum(days) AS INTEGER) AS days, count(move) AS changes,
    sqrt(sum(move * move) / (sum(days) / {DAYS_PER_YEAR})) AS volatility_ratio,
    sum(usd * days) / sum(days) AS mean_usd_per_hour, min(usd) AS low_usd_per_hour, max(usd) AS high_usd_per_hour,
    sum(ratio * days) / sum(days) FILTER (ratio IS NOT NULL) AS on_demand_fraction,
    coalesce(sum(days) FILTER (ratio > $above), 0) / sum(days) FILTER (ratio IS NOT NULL) AS above_fraction
FROM daily GROUP BY provider, instance_type, region HAVING sum(days) >= {FEWEST_DAYS}
ORDER BY provider, instance_type, region"""


def spot_risk(catalog: Catalog, wanted: dict[str, set[str] | None], above: float) -> list[Row]:
    """Return per machine and region how its spot price moved, and the share of days above a share of on demand."""
    load_history(catalog.store)
    rows = catalog.query(_SPOT, parameters={"day": catalog.as_of, "above": above})
    return [
        row
        for row in rows
        if all(row[name] in allowed for name, allowed in wanted.items() if name != "option" and allowed is not None)
    ]


_MOVES = f"""
WITH points AS (
    SELECT concat_ws('/', source_id, provider, instance_type, gpu, gpus, region) AS series, provider, gpu, region,
        usd_per_hour AS usd, observed_on AS since, seen_until
    FROM history_offers WHERE option = 'spot' AND NOT gone AND usd_per_hour > 0
), months AS (
    SELECT series, provider, gpu, region, unnest(days)::DATE AS day FROM (
        SELECT series, provider, gpu, region,
            generate_series(min(since), max(seen_until) - {MOVE_DAYS}, INTERVAL 30 DAY) AS days
        FROM points GROUP BY ALL)
), moves AS (
    SELECT m.provider, m.gpu, m.region, b.usd / a.usd AS ratio
    FROM months AS m
    ASOF JOIN points AS a ON m.series = a.series AND m.day >= a.since
    ASOF JOIN points AS b ON m.series = b.series AND m.day + {MOVE_DAYS} >= b.since
    WHERE a.seen_until >= m.day AND b.seen_until >= m.day + {MOVE_DAYS}
), sold AS (
    SELECT DISTINCT provider, gpu, region FROM offers
    WHERE option = 'spot' AND observed_on > (SELECT max(observed_on) FROM offers) - 180
)
SELECT provider, gpu, region, count(*) AS moves, least(1, quantile_cont(ratio, 0.1)) AS low_ratio,
    greatest(1, quantile_cont(ratio, 0.9)) AS high_ratio
FROM moves GROUP BY GROUPING SETS ((provider, gpu, region), (provider, gpu), (provider), ())
HAVING count(*) >= $fewest AND min(ratio) < max(ratio) AND (region IS NULL OR EXISTS (SELECT 1 FROM sold AS s
    WHERE s.provider = moves.provider AND s.gpu = moves.gpu AND s.region = moves.region))
ORDER BY provider NULLS LAST, gpu NULLS LAST, region NULLS LAST"""


def spot_moves(catalog: Catalog, fewest: int = FEWEST_MOVES) -> list[Row]:
    """Return how far spot prices moved within MOVE_DAYS: by seller, accelerator and region, and over wider groups."""
    load_history(catalog.store)
    above: dict[tuple[str | None, ...], list[tuple[float, int]]] = {}
    for row in spot_risk(catalog, {}, 0.5):
        if row["above_fraction"] is not None:
            place = row["provider"], row["gpu"], row["region"]
            for group in (place, (*place[:2], None), (place[0], None, None), (None, None, None)):
                above.setdefault(group, []).append((row["above_fraction"], row["days"]))
    rows = catalog.query(_MOVES, parameters={"fewest": fewest})
    for row in rows:
        seen = above.get((row["provider"], row["gpu"], row["region"]), ())
        row["above_fraction"] = (
            sum(share * days for share, days in seen) / sum(days for _, days in seen) if seen else None
        )
    return rows


def list_declines(catalog: Catalog, wanted: dict[str, set[str] | None]) -> list[Row]:
    """Return per chip the yearly fall of its list prices: the median over sellers, and their range."""
    found = []
    for gpu, sellers in _falls(catalog, wanted).items():
        falls = sorted(median(each) for each in sellers.values())
        found.append(
            {
                "gpu": gpu,
                "sellers": len(falls),
                "machines": sum(map(len, sellers.values())),
                "decline_fraction": median(falls),
                "decline_low_fraction": falls[0],
                "decline_high_fraction": falls[-1],
            }
        )
    return sorted(found, key=lambda row: (-row["sellers"], row["gpu"]))


def generation_declines(catalog: Catalog) -> list[Row]:
    """Return per generation of chips what is left of a list price after a year, the last row over all of them.

    A seller counts once for each chip, with the median of its machines; the ends hold 80 % of these.
    """
    names = {row["id"]: str(row["architecture"]).split()[0] for row in catalog.rows("accelerators")}
    groups: dict[str | None, list[tuple[str, str, float]]] = {}
    for gpu, sellers in _falls(catalog, {}).items():
        for seller, falls in sellers.items():
            for group in (names[gpu], None):
                groups.setdefault(group, []).append((gpu, seller, median(falls)))
    rows = []
    for generation in (*sorted(filter(None, groups)), None):
        found = sorted(1 - fall for _, _, fall in groups[generation])
        low, typical, high = (found[round(share * (len(found) - 1))] for share in (0.1, 0.5, 0.9))
        rows.append(
            {
                "generation": generation,
                "chips": len({gpu for gpu, _, _ in groups[generation]}),
                "sellers": len({seller for _, seller, _ in groups[generation]}),
                "low_ratio": low,
                "typical_ratio": typical,
                "high_ratio": high,
            }
        )
    return rows


def _falls(catalog: Catalog, wanted: Mapping[str, set[str] | None]) -> dict[str, dict[str, list[float]]]:
    """Return the yearly fall of each machine's list price, by chip and seller."""
    chips: dict[str, dict[str, list[float]]] = {}
    for (gpu, provider, _), points in _series(catalog, quarters(catalog.as_of, _QUARTERS), wanted).items():
        if len(points) >= FEWEST_QUARTERS:
            chips.setdefault(gpu, {}).setdefault(provider, []).append(yearly_fall(points))
    return chips


def overall(rows: list[Row]) -> Row:
    """Return the fall over chips of two sellers and more; the ends are medians of theirs, so that no odd one counts."""
    kept = [row for row in rows if row["sellers"] > 1]
    names = ("decline_low_fraction", "decline_fraction", "decline_high_fraction")
    return {name: median(row[name] for row in kept) if kept else None for name in names} | {"chips": len(kept)}


def _series(
    catalog: Catalog, days: list[date], wanted: Mapping[str, set[str] | None]
) -> dict[tuple[str, str, str], list[tuple[date, float]]]:
    catalog.prepare_prices(history=True)
    admitted, asked = filters.condition(wanted)
    known = catalog.known_as_of or FOREVER
    query = f"""SELECT gpu, provider, offer_id, usd_per_gpu_hour AS usd FROM prices_on($day, $known)
        WHERE ended IS NULL AND NOT conflict AND NOT gpu_ambiguous AND book <> 'user' AND term_months = 0
        AND option IN ('on_demand', 'secure') AND {admitted}"""
    series: dict[tuple[str, str, str], list[tuple[date, float]]] = {}
    for day in days:
        for row in catalog.query(query, parameters={"day": day, "known": known, **asked}):
            series.setdefault((row["gpu"], row["provider"], row["offer_id"]), []).append((day, row["usd"]))
    return series


def yearly_fall(points: list[tuple[date, float]]) -> float:
    """Return the fall per year of the line through log price by day; negative is a rise.

    >>> halved = [(date(2024, 1, 1), 8.0), (date(2024, 12, 31), 4.0)]
    >>> round(yearly_fall(halved), 3), yearly_fall([(date(2024, 1, 1), 2.0), (date(2025, 1, 1), 2.0)])
    (0.5, 0.0)
    """
    from math import exp, log
    from statistics import linear_regression

    years = [(day - points[0][0]).days / DAYS_PER_YEAR for day, _ in points]
    slope = linear_regression(years, [log(usd) for _, usd in points]).slope
    return 1 - exp(slope) if slope else 0.0
