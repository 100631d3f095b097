"""Prices on a day, as known on a day: the SQL that picks one row per offer.

A price holds from `valid_from`, else from `observed_on`, and to `valid_until` where a contract ends. Among the rows
of an offer that hold on the day asked about and had been recorded by the day of knowledge, the nearest price book
speaks, and in it the latest `recorded_on`, then `observed_on`, then `valid_from`, then the better confidence. Rows
that are still equal and disagree on the price are a conflict: shown, never ranked.
"""

from datetime import date

FOREVER = date(9999, 12, 31)  # "everything that is known"
BOOKS = ("shipped", "refreshed", "user")  # a later one is nearer to the user and wins
DAY_BITS = 65536  # days since 1970 up to 2149

_DAYS = "greatest(0, least(65535, {date} - DATE '1970-01-01'))"
_PRICE_ON = "coalesce(valid_from, observed_on)"

# The order of preference, packed into one integer: its maximum per offer is an aggregate that needs no sort, so that
# a book of ten million rows is answered in little memory.
_RANK = f"""
    (((list_position({list(BOOKS)}, book) * {DAY_BITS}
    + {_DAYS.format(date="recorded_on")}) * {DAY_BITS}
    + {_DAYS.format(date="observed_on")}) * {DAY_BITS}
    + {_DAYS.format(date=_PRICE_ON)}) * 4
    + list_position(['low', 'medium', 'high'], confidence)"""

SHIPPED = "SELECT *, 'shipped' AS book, 'list' AS price_kind, CAST(NULL AS DATE) AS valid_until FROM offers"
SHIPPED_OFFERS = f"CREATE OR REPLACE VIEW book_offers AS {SHIPPED}"

_WINNERS = f"""
CREATE OR REPLACE MACRO prices_on(on_day, known_day) AS TABLE
WITH known AS NOT MATERIALIZED (
    SELECT *, {_RANK} AS preference
    FROM book_offers
    WHERE offer_kind = 'offer' AND observed_on IS NOT NULL
      AND {_PRICE_ON} <= CAST(on_day AS DATE) AND recorded_on <= CAST(known_day AS DATE)
      AND coalesce(valid_until >= CAST(on_day AS DATE), true)
), latest AS (
    SELECT offer_id, max(preference) AS preference FROM known GROUP BY offer_id
), winners AS (
    SELECT known.*,
        row_number() OVER (PARTITION BY offer_id ORDER BY usd_per_hour, source_id) AS place,
        min(usd_per_hour) OVER (PARTITION BY offer_id) < max(usd_per_hour) OVER (PARTITION BY offer_id) AS conflict
    FROM known JOIN latest USING (offer_id, preference)
), chosen AS (
    SELECT * EXCLUDE (preference, place),
        {_PRICE_ON} AS price_on,
        greatest(0, CAST(on_day AS DATE) - observed_on) AS age_days,
        contains(gpu, '|') AS gpu_ambiguous
    FROM winners WHERE place = 1
)
"""

# The best discount of the user's book that covers an offer; a price of the user's own is never discounted again.
_DISCOUNTED = """, covered AS (
    SELECT *, CASE WHEN book = 'user' THEN 0 ELSE coalesce((
        SELECT max(d.fraction) FROM book_discounts AS d
        WHERE coalesce(d.provider = c.provider, true) AND coalesce(d.gpu = c.gpu, true)
          AND coalesce(d.region = c.region, d.region IS NULL)
          AND coalesce(d.option = c.option, true) AND coalesce(d.instance_type = c.instance_type, true)
          AND coalesce(d.valid_from <= CAST(on_day AS DATE), true)
          AND coalesce(d.valid_until >= CAST(on_day AS DATE), true)
    ), 0) END AS discount_fraction
    FROM chosen AS c
)
SELECT * EXCLUDE (discount_fraction) REPLACE (
    usd_per_hour * (1 - discount_fraction) AS usd_per_hour,
    usd_per_gpu_hour * (1 - discount_fraction) AS usd_per_gpu_hour,
    recurring_usd_per_hour * (1 - discount_fraction) AS recurring_usd_per_hour,
    upfront_usd * (1 - discount_fraction) AS upfront_usd,
    CASE WHEN discount_fraction > 0 THEN 'user' ELSE book END AS book,
    CASE WHEN discount_fraction > 0 THEN 'effective' ELSE price_kind END AS price_kind
) FROM covered
"""


def prices_macro(discounted: bool) -> str:
    """Return the SQL that makes the table macro `prices_on(on_day, known_day)`."""
    return _WINNERS + (_DISCOUNTED if discounted else "SELECT * FROM chosen")


def prices_view(on_day: date, known_day: date) -> str:
    """Return the SQL of the view `prices`: one row per offer on a day, as known on a day."""
    return f"CREATE OR REPLACE VIEW prices AS SELECT * FROM prices_on(DATE '{on_day}', DATE '{known_day}')"
