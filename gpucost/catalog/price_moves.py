"""How prices moved between two looks at the same offer: what an old quote says of today's price.

A sighting is a day on which a source was read and had the offer: a dated row, or each version of a catalogue of the
history, one a month. A list that repeats a price nobody asked for again is no sighting: a catalogue in which no price
of a seller ever moved tells nothing of that seller.

Every two sightings of an offer make a pair. For a kind of seller and a family of options, an age a and a distance d of
the quote from its peers (the median over sellers and regions of the same chip and family),

    move = sum of w log(later / earlier) / (sum of w + prior),  w = recency × age × distance / sqrt(pairs of one step)
    recency = 0.5 ^ (days since the later sighting / half_life_days)
    age = exp(-(sqrt(gap) - sqrt(a))^2 / 2 AGE_WIDTH^2),  distance = exp(-(d - distance then)^2 / 2 DISTANCE_WIDTH^2)

so that a quote far below its peers moves as such quotes did, and the cheapest of its day counts `cheapest_weight`
times, since rankings pick the cheapest. Sellers of other kinds speak faintly where a kind has few pairs. The ends are
percentiles under the same weights, by family: prices that stand for months and then jump need others than prices that
move every day. `python -m benchmarks.backtest` chooses the constants of `MoveRule`, and says how they do where they
were not chosen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog.asof import load_history
from gpucost.catalog.core import Catalog
from gpucost.options import OPTIONS

Row = dict[str, Any]
Floats = NDArray[np.float64]

AGES_DAYS = (0, 15, 45, 90, 135, 180, 270, 365)
PEER_RATIOS = (0.35, 0.55, 0.75, 0.9, 1.1, 1.35, 1.8)  # the quote ÷ the median of its peers
REACH_DAYS, LONGEST_DAYS = 720, 400
AGE_WIDTH, DISTANCE_WIDTH = 2.0, 0.35
PRIOR_PAIRS = 1.0  # of no move
OTHERS_WEIGHT, ANYWHERE_WEIGHT = 0.05, 0.05  # of other kinds of sellers, and of pairs at any distance
FEWEST_PEERS = 3
USUAL_END = 0.1  # the share of moves below the low end, and above the high one, of families without one of their own
UNKNOWN_YEAR = 0.4  # the log of the ends after a year where nothing is known
COMMUNITY = "community"

_SIGHTINGS = """
CREATE OR REPLACE TABLE sightings AS
WITH versions AS (
    SELECT source_id, observed_on AS day FROM price_history GROUP BY ALL
), moving AS (
    SELECT source_id, provider FROM (
        SELECT source_id, provider, offer_id FROM history_offers WHERE NOT gone
        GROUP BY ALL HAVING count(DISTINCT round(usd_per_hour, 6)) > 1
    ) GROUP BY ALL
), dense AS (
    SELECT DISTINCT ON (h.offer_id, h.source_id, date_trunc('month', v.day))
        h.offer_id, h.provider, h.gpu, h.option, h.region, v.day, h.usd_per_gpu_hour AS usd
    FROM history_offers AS h JOIN moving USING (source_id, provider)
    JOIN versions AS v ON v.source_id = h.source_id AND v.day BETWEEN h.observed_on AND h.seen_until
    WHERE NOT gone AND h.usd_per_hour > 0
    ORDER BY h.offer_id, h.source_id, date_trunc('month', v.day), v.day
), listed AS (
    SELECT offer_id, provider, gpu, option, region, observed_on AS day, usd_per_gpu_hour AS usd FROM offers
    WHERE offer_kind = 'offer' AND observed_on IS NOT NULL
), looked AS (
    SELECT offer_id, provider, gpu, option, region, day, median(usd) AS usd
    FROM (SELECT * FROM dense UNION ALL BY NAME SELECT * FROM listed) WHERE NOT contains(gpu, '|') GROUP BY ALL
)
SELECT looked.* EXCLUDE (option), day - DATE '1970-01-01' AS number, ln(usd) AS log_usd,
    {kind} AS kind, {family} AS family
FROM looked JOIN providers USING (provider)"""

_PEERS = f"""
CREATE OR REPLACE TABLE peers AS
WITH months AS (
    SELECT unnest(generate_series(min(number), max(number), 30)) AS month FROM sightings
), latest AS (
    SELECT month, offer_id, any_value(gpu) AS gpu, any_value(family) AS family, any_value(provider) AS provider,
        any_value(region) AS region, arg_max(log_usd, number) AS log_usd
    FROM months JOIN sightings ON number <= month AND number > month - 365 GROUP BY month, offer_id
), cells AS (
    SELECT month, gpu, family, median(log_usd) AS log_usd, min(log_usd) AS lowest
    FROM latest GROUP BY month, gpu, family, provider, region
)
SELECT month, gpu, family, median(log_usd) AS log_usd, min(lowest) AS lowest FROM cells
GROUP BY ALL HAVING count(*) >= {FEWEST_PEERS}"""

_PAIRS = f"""
SELECT kind, family, provider, gap // 4 * 4 + 2 AS gap, round(move * 200) / 200 AS move, later // 5 * 5 + 5 AS later,
    round(distance * 20) / 20 AS distance, cheapest, sum(weight) AS weight, count(*) AS pairs
FROM (SELECT a.kind, a.family, a.provider, b.number - a.number AS gap, b.log_usd - a.log_usd AS move, b.number AS later,
    coalesce(a.log_usd - p.log_usd, 0) AS distance, coalesce(a.log_usd <= p.lowest + 0.001, false) AS cheapest,
    1 / sqrt(count(*) OVER (PARTITION BY a.kind, a.family, a.provider, a.number // 30, b.number // 30)) AS weight
FROM sightings AS a JOIN sightings AS b ON a.offer_id = b.offer_id
    AND b.number > a.number AND b.number <= a.number + {LONGEST_DAYS}
LEFT JOIN peers AS p ON p.gpu = a.gpu AND p.family = a.family
    AND p.month > a.number - 30 AND p.month <= a.number
WHERE a.family <> 'committed')
GROUP BY ALL ORDER BY ALL"""


def family_of(option: str) -> str:
    """Return the family of an option whose prices move alike: third parties' hosts apart from other capacity."""
    return COMMUNITY if option == COMMUNITY else OPTIONS[option].family


def kind_of(seller: str | None) -> str:
    """Return the kind of a seller whose prices move alike: hyperscaler, marketplace, or cloud for all others."""
    return seller if seller in ("hyperscaler", "marketplace") else "cloud"


class MoveRule(NamedTuple):
    """The constants that are chosen by how answers of the past did."""

    half_life_days: float = 90.0
    cheapest_weight: float = 20.0
    ends: tuple[tuple[str, float], ...] = ()  # family of options, share of moves beyond either end

    def end(self, family: str) -> float:
        """Return the share of moves beyond either end of a family's range."""
        return dict(self.ends).get(family, USUAL_END)


RULE = MoveRule(ends=(("on demand", 0.15), ("preemptible", 0.075)))


class SightingPairs(NamedTuple):
    """Every two sightings of an offer as columns; those that read alike are one, with their weights together."""

    kind: NDArray[np.object_]
    family: NDArray[np.object_]
    provider: NDArray[np.object_]
    gap: Floats
    move: Floats  # log(later / earlier)
    later: Floats  # days since 1970
    distance: Floats  # log(quote / its peers) at the earlier sighting
    cheapest: NDArray[np.bool_]
    weight: Floats
    pairs: Floats


def sighted_pairs(catalog: Catalog) -> SightingPairs:
    """Return the pairs of sightings on record until the catalog's day."""
    store = catalog.laid
    store.ensure("price_history", "offers", "providers", "price_sources")
    load_history(store)
    families = " ".join(f"WHEN '{option}' THEN '{family_of(option)}'" for option in OPTIONS)
    kinds = "CASE providers.kind WHEN 'hyperscaler' THEN 'hyperscaler' WHEN 'marketplace' THEN 'marketplace'"
    store.execute(_SIGHTINGS.format(kind=f"{kinds} ELSE 'cloud' END", family=f"CASE option {families} END"))
    store.execute(_PEERS)
    columns = store.execute(_PAIRS).fetchnumpy()
    kind, family, provider = (np.asarray(columns[name], object) for name in ("kind", "family", "provider"))
    numbers = ("gap", "move", "later", "distance", "weight", "pairs")
    gap, move, later, distance, weight, pairs = (np.asarray(columns[name], np.float64) for name in numbers)
    cheapest = np.asarray(columns["cheapest"], bool)
    return SightingPairs(kind, family, provider, gap, move, later, distance, cheapest, weight, pairs)


def price_moves(pairs: SightingPairs, known_on: date, rule: MoveRule = RULE) -> list[Row]:
    """Return the moves by kind of seller, family, age and distance from the peers, as known on a day."""
    return [row for rows in _groups(pairs, known_on, rule, lambda family: (rule.end(family),)) for row in rows[0]]


def price_moves_by_end(
    pairs: SightingPairs, known_on: date, rule: MoveRule, ends: Sequence[float]
) -> dict[float, list[Row]]:
    """Return the moves as they are with one share of moves beyond either end, whatever the family, by that share."""
    found = list(_groups(pairs, known_on, rule, lambda family: ends))
    return {end: [row for rows in found for row in rows[at]] for at, end in enumerate(ends)}


def _groups(
    pairs: SightingPairs, known_on: date, rule: MoveRule, ends_of: Callable[[str], Sequence[float]]
) -> Iterator[list[list[Row]]]:
    """Yield, for each kind of seller and family, its rows once for each of the ends that its family is to have."""
    today = known_on.toordinal() - date(1970, 1, 1).toordinal()
    recent = (pairs.later <= today) & (pairs.later > today - REACH_DAYS)
    known = SightingPairs._make(column[recent] for column in pairs)
    recency = 0.5 ** ((today - known.later) / rule.half_life_days) * known.weight
    recency *= np.where(known.cheapest, rule.cheapest_weight, 1.0)
    for kind, family in sorted(
        {(str(kind), str(family)) for kind, family in zip(pairs.kind, pairs.family, strict=True)}
    ):
        yield _moves_of(known, recency, kind, family, ends_of(family))


def _moves_of(pairs: SightingPairs, recency: Floats, kind: str, family: str, ends: Sequence[float]) -> list[list[Row]]:
    """Return the rows of one group for each of several ends; the lists of hyperscalers say nothing of other sellers."""
    own = (pairs.kind == kind) & (pairs.family == family)
    others = (pairs.kind != kind) & (pairs.family == family) & (pairs.kind != "hyperscaler") & (kind != "hyperscaler")
    taken = own | others
    base = recency[taken] * np.where(own[taken], 1.0, OTHERS_WEIGHT)
    order = np.argsort(pairs.move[taken], kind="stable")
    gap, distance, move = np.sqrt(pairs.gap[taken])[order], pairs.distance[taken][order], pairs.move[taken][order]
    base = base[order]
    counts = {"pairs": int(pairs.pairs[own].sum()), "sellers": len(set(pairs.provider[own]))}
    found: list[list[Row]] = [[] for _ in ends]
    for age in AGES_DAYS:
        aged = base * np.exp(-(((gap - np.sqrt(max(age, 5))) / AGE_WIDTH) ** 2) / 2)
        for ratio in PEER_RATIOS:
            near = np.exp(-(((np.clip(distance, -1.2, 0.8) - np.log(ratio)) / DISTANCE_WIDTH) ** 2) / 2)
            weights = aged * (near + ANYWHERE_WEIGHT)
            for rows, end in zip(found, ends, strict=True):
                low, typical, high = _ends(move, weights, UNKNOWN_YEAR * np.sqrt(age / 365), end)
                rows.append(
                    {
                        "seller_kind": kind,
                        "option_family": family,
                        "age_days": age,
                        "peers_ratio": ratio,
                        **counts,
                        "low_ratio": low,
                        "expected_ratio": typical,
                        "high_ratio": high,
                    }
                )
    return found


def _ends(move: Floats, weights: Floats, unknown: float, end: float) -> tuple[float, float, float]:
    """Return low, expected and high ratio of weighted moves, the smallest first; few stand against no move."""
    total = weights.sum()
    if total < 1e-12:
        return float(np.exp(-unknown)), 1.0, float(np.exp(unknown))
    effective = total**2 / (weights**2).sum()
    typical = float((weights * move).sum() / total) * effective / (effective + PRIOR_PAIRS)
    reached = np.cumsum(weights) - weights / 2
    low, high = (float(np.interp(share * total, reached, move)) for share in (end, 1 - end))
    spread = unknown * PRIOR_PAIRS / (effective + PRIOR_PAIRS)  # what few pairs leave open
    return (
        float(np.exp(min(low, typical) - spread)),
        float(np.exp(typical)),
        float(np.exp(max(high, typical) + spread)),
    )


def moves_by_group(rows: list[Row] | list[Mapping[str, Any]]) -> dict[tuple[str, str], Floats]:
    """Return the logs of low, expected and high of each group as an array over ages and distances."""
    shape = len(AGES_DAYS), len(PEER_RATIOS)
    grids: dict[tuple[str, str], Floats] = {}
    for row in rows:
        grid = grids.setdefault((row["seller_kind"], row["option_family"]), np.zeros((3, *shape)))
        position = AGES_DAYS.index(row["age_days"]), PEER_RATIOS.index(row["peers_ratio"])
        for number, name in enumerate(("low_ratio", "expected_ratio", "high_ratio")):
            grid[(number, *position)] = np.log(row[name])
    return grids
