"""Prices on a day, as known on a day: the SQL that picks one row per offer.

A price holds from `valid_from`, else from `observed_on`, and to `valid_until` where a contract ends. Among the rows
of an offer that hold on the day asked about and had been recorded by the day of knowledge, the user's own book speaks
before list prices, shipped or refreshed, and among these the latest `recorded_on`, then `observed_on`, then
`valid_from`, then the better confidence. Rows that are still equal and disagree on the price are a conflict: shown,
never ranked. A change point of the history counts as seen as long as its source listed it.

A price ends: by a row of `price_ends` that is younger than its last sight (stated, replaced, withdrawn or wrong), where
a catalogue lists the product no more, where it names no region and a newer sight of the product does, or by an age at
which a price of its kind is history. What has ended speaks only where nothing else does, and says why in the column
`ended`: shown, never ranked.
"""

from collections.abc import Sequence
from datetime import date

from gpucost.catalog.discounts import matching
from gpucost.money.private import kept_sql
from gpucost.options import EXPIRED, MARKET_EXPIRY_DAYS, MARKETS, expiry_by_option

FOREVER = date(9999, 12, 31)  # "everything that is known"
BOOKS = ("shipped", "refreshed", "user")  # the user's own wins; of the list prices the newest observation
DAY_BITS = 65536  # days since 1970 up to 2149

_DAYS = "greatest(0, least(65535, {date} - DATE '1970-01-01'))"
_PRICE_ON = "coalesce(valid_from, observed_on)"
_LISTED_ON = (
    "least(seen_until, CAST(on_day AS DATE), CAST(known_day AS DATE))"  # a change point: as long as it is listed
)
_SEEN = f"CASE WHEN seen_until IS NULL THEN {{0}} ELSE {_LISTED_ON} END"

# The order of preference, packed into one integer: its maximum per offer is an aggregate that needs no sort, so that
# a book of ten million rows is answered in little memory.
_RANK = f"""
    ((((CASE WHEN ended IS NULL OR gone THEN 3 ELSE 0 END + CASE book WHEN 'user' THEN 2 ELSE 1 END) * {DAY_BITS}
    + {_DAYS.format(date="recorded_on")}) * {DAY_BITS}
    + {_DAYS.format(date="observed_on")}) * {DAY_BITS}
    + {_DAYS.format(date=_PRICE_ON)}) * 4
    + list_position(['low', 'medium', 'high'], confidence)"""

_OWN = """, 'shipped' AS book, 'list' AS price_kind, CAST(NULL AS DATE) AS valid_until"""
_LISTED = f"SELECT *{_OWN}, CAST(NULL AS DATE) AS seen_until, false AS gone FROM offers"
_DENSE = f"SELECT *{_OWN} FROM history_offers"


def shipped_offers(history: bool) -> str:
    """Return the SQL of the shipped prices, with the dense history where a day in the past is asked about."""
    return f"{_LISTED} UNION ALL BY NAME {_DENSE}" if history else _LISTED


def offers_view(parts: Sequence[str]) -> str:
    """Return the SQL that makes the view `book_offers` of the prices of several layers."""
    return "CREATE OR REPLACE VIEW book_offers AS " + " UNION ALL BY NAME ".join(parts)


_EXPIRES = " ".join(f"WHEN '{option}' THEN {days}" for option, days in expiry_by_option().items())

_ENDED = f"""
    CASE WHEN book = 'user' OR price_kind = 'contracted' THEN NULL
    WHEN coalesce(gone, false) THEN 'withdrawn'
    ELSE coalesce((
        SELECT min(e.reason) FROM price_ends AS e
        WHERE e.provider = k.provider AND coalesce(e.instance_type = k.instance_type, e.instance_type IS NULL)
          AND coalesce(e.region = k.region, e.region IS NULL) AND coalesce(e.option = k.option, e.option IS NULL)
          AND coalesce(e.usd_per_hour = k.usd_per_hour, e.usd_per_hour IS NULL)
          AND e.ended_on <= least(CAST(on_day AS DATE), CAST(known_day AS DATE)) AND {_PRICE_ON} <= e.ended_on
          AND (observed_on < e.ended_on OR (e.reason = 'wrong' AND observed_on = e.ended_on))
    ), CASE WHEN CAST(on_day AS DATE) - observed_on > CASE WHEN tier IN {MARKETS} THEN {MARKET_EXPIRY_DAYS}
        ELSE CASE option {_EXPIRES} END END THEN '{EXPIRED}' END) END"""

# A list that names no region speaks until a newer one names the regions of the same product.
_PRODUCT = "provider, instance_type, gpu, gpus, option, term_months, payment"

_WINNERS = f"""
CREATE OR REPLACE MACRO prices_on(on_day, known_day) AS TABLE
WITH seen AS NOT MATERIALIZED (
    SELECT * REPLACE ({_SEEN.format("observed_on")} AS observed_on, {_SEEN.format("recorded_on")} AS recorded_on)
    FROM book_offers
    WHERE offer_kind = 'offer' AND observed_on IS NOT NULL
      AND {_PRICE_ON} <= CAST(on_day AS DATE) AND recorded_on <= CAST(known_day AS DATE)
      AND coalesce(valid_until >= CAST(on_day AS DATE), true)
), told AS NOT MATERIALIZED (
    SELECT *, {_ENDED} AS ended FROM seen AS k
), known AS NOT MATERIALIZED (
    SELECT *, {_RANK} AS preference FROM told
), latest AS (
    SELECT offer_id, max(preference) AS preference FROM known GROUP BY offer_id
), winners AS (
    SELECT known.*,
        row_number() OVER (PARTITION BY offer_id ORDER BY usd_per_hour, source_id) AS place,
        min(usd_per_hour) OVER (PARTITION BY offer_id) < max(usd_per_hour) OVER (PARTITION BY offer_id) AS conflict
    FROM known JOIN latest USING (offer_id, preference)
), placed AS (
    SELECT {_PRODUCT}, max(observed_on) AS seen_on FROM winners
    WHERE region IS NOT NULL AND tier IS NULL AND book <> 'user' AND ended IS NULL AND NOT coalesce(gone, false)
    GROUP BY ALL
), chosen AS (
    SELECT * EXCLUDE (preference, place, seen_until, gone, seen_on) REPLACE (
        CASE WHEN region IS NULL AND tier IS NULL AND book <> 'user' AND observed_on < seen_on
            THEN coalesce(ended, 'replaced') ELSE ended END AS ended),
        {_PRICE_ON} AS price_on,
        greatest(0, CAST(on_day AS DATE) - observed_on) AS age_days,
        contains(gpu, '|') AS gpu_ambiguous
    FROM winners LEFT JOIN placed USING ({_PRODUCT}) WHERE place = 1 AND NOT coalesce(gone, false)
)
"""

# The best discount of the user's book that covers an offer; a price of the user's own is never discounted again.
# `listed` is what the list says of an offer for which the book speaks.
_DISCOUNTED = f""", listed AS (
    SELECT offer_id, arg_max(usd_per_gpu_hour, preference) AS list_usd_per_gpu_hour FROM known
    WHERE book <> 'user' AND NOT coalesce(gone, false) AND ended IS NULL GROUP BY offer_id
), covered AS (
    SELECT *, CASE WHEN book = 'user' THEN 1 ELSE coalesce((
        SELECT min({kept_sql("d.fraction", "d.floor_usd_per_gpu_hour", "c.usd_per_gpu_hour")})
        FROM book_discounts AS d
        WHERE {matching("c", "d")}
          AND coalesce(d.valid_from <= CAST(on_day AS DATE), true)
          AND coalesce(d.valid_until >= CAST(on_day AS DATE), true)
    ), 1) END AS paid_fraction
    FROM chosen AS c LEFT JOIN listed USING (offer_id)
)
SELECT * EXCLUDE (paid_fraction) REPLACE (
    usd_per_hour * paid_fraction AS usd_per_hour,
    usd_per_gpu_hour * paid_fraction AS usd_per_gpu_hour,
    recurring_usd_per_hour * paid_fraction AS recurring_usd_per_hour,
    upfront_usd * paid_fraction AS upfront_usd,
    CASE WHEN paid_fraction < 1 THEN 'user' ELSE book END AS book,
    CASE WHEN paid_fraction < 1 THEN 'effective' ELSE price_kind END AS price_kind,
    CASE WHEN paid_fraction < 1 OR book = 'user' THEN list_usd_per_gpu_hour END AS list_usd_per_gpu_hour
) FROM covered
"""
_PLAIN = "SELECT *, CAST(NULL AS DOUBLE) AS list_usd_per_gpu_hour FROM chosen"


def prices_macro(booked: bool) -> str:
    """Return the SQL that makes the table macro `prices_on(on_day, known_day)`."""
    return _WINNERS + (_DISCOUNTED if booked else _PLAIN)
