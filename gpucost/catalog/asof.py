"""Prices on a day, as known on a day; the dense history in the shape of offers."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from gpucost.catalog import cached
from gpucost.catalog.availability import UNSOLD
from gpucost.catalog.discounts import matching
from gpucost.catalog.loader import Store, engine, file_name, quoted
from gpucost.catalog.price_rows import offer_id_sql
from gpucost.money.private_discount import paid_fraction_sql
from gpucost.options import EXPIRED, MARKET_EXPIRY_DAYS, MARKET_LIMIT_DAYS, MARKETS, OPTIONS
from gpucost.schemas import TABLES

# --- One row per offer on a day.
#
# A price holds from `valid_from`, else from `observed_on`, and to `valid_until` where a contract ends. Among the rows
# of an offer that hold on the day asked about and had been recorded by the day of knowledge, the user's own book
# speaks before list prices, shipped or refreshed, and among these the latest `observed_on`, whoever recorded it when:
# what was learned late of an early day is no news. Then the latest `recorded_on`, which corrects, then `valid_from`,
# then the better confidence. Rows that are still equal and disagree on the price are a conflict: shown, never ranked. A
# change point of the history counts as seen as long as its source listed it.
#
# A price ends: by a row of `price_ends` that is younger than its last sight (stated, replaced, withdrawn or wrong) and
# than the day from which it was announced to hold, where a catalogue lists the product no more, where it names no
# region and a newer sight of the product does, or by an age at which a price of its kind is history. What has ended
# speaks only where nothing else does, and says why in the column `ended`: shown, never ranked.

FOREVER = date(9999, 12, 31)  # "everything that is known"
_DAY_BITS = 65536  # days since 1970 up to 2149

_DAYS = "greatest(0, least(65535, {date} - DATE '1970-01-01'))"  # within the bits of a day, whatever a row states
_PRICE_ON = "coalesce(valid_from, observed_on)"
_LISTED_ON = (
    "least(seen_until, CAST(on_day AS DATE), CAST(known_day AS DATE))"  # a change point: as long as it is listed
)
_SEEN_ON = f"CASE WHEN seen_until IS NULL THEN {{0}} ELSE {_LISTED_ON} END"

# The order of preference, packed into one integer: its maximum per offer is an aggregate that needs no sort, so that
# a book of ten million rows is answered in little memory.
_RANK = f"""
    ((((CASE WHEN ended IS NULL OR gone THEN 3 ELSE 0 END + CASE book WHEN 'user' THEN 2 ELSE 1 END) * {_DAY_BITS}
    + {_DAYS.format(date="observed_on")}) * {_DAY_BITS}
    + {_DAYS.format(date="recorded_on")}) * {_DAY_BITS}
    + {_DAYS.format(date=_PRICE_ON)}) * 4
    + list_position(['low', 'medium', 'high'], confidence)"""

_LISTED_COLUMNS = """, 'shipped' AS book, 'list' AS price_kind, CAST(NULL AS DATE) AS valid_until"""
_LISTED = f"SELECT *{_LISTED_COLUMNS}, CAST(NULL AS DATE) AS seen_until, false AS gone FROM offers"
_DENSE = f"SELECT *{_LISTED_COLUMNS} FROM history_offers"


def shipped_offers(history: bool) -> str:
    """Return the SQL of the shipped prices, with the dense history where a day in the past is asked about."""
    return f"{_LISTED} UNION ALL BY NAME {_DENSE}" if history else _LISTED


def offers_view(parts: Sequence[str]) -> str:
    """Return the SQL that makes the view `book_offers` of the prices of several layers."""
    return "CREATE OR REPLACE VIEW book_offers AS " + " UNION ALL BY NAME ".join(parts)


_EXPIRES = " ".join(f"WHEN '{option}' THEN {rule.expires_days}" for option, rule in OPTIONS.items())

_ENDED = f"""
    CASE WHEN book = 'user' OR price_kind = 'contracted' THEN NULL
    WHEN coalesce(gone, false) THEN 'withdrawn'
    ELSE coalesce((
        SELECT min(e.reason) FROM price_ends AS e
        WHERE e.provider = k.provider AND coalesce(e.instance_type = k.instance_type, e.instance_type IS NULL)
          AND coalesce(e.region = k.region, e.region IS NULL) AND coalesce(e.option = k.option, e.option IS NULL)
          AND coalesce(e.usd_per_hour = k.usd_per_hour, e.usd_per_hour IS NULL)
          AND e.ended_on <= least(CAST(on_day AS DATE), CAST(known_day AS DATE))
          AND ((observed_on < e.ended_on AND {_PRICE_ON} < e.ended_on)
            OR (e.reason = 'wrong' AND observed_on <= e.ended_on AND {_PRICE_ON} <= e.ended_on))
    ), CASE WHEN CAST(on_day AS DATE) - observed_on > CASE WHEN tier IN {MARKETS} THEN {MARKET_EXPIRY_DAYS}
        ELSE CASE option {_EXPIRES} END END THEN '{EXPIRED}' END) END"""

# A list that names no region speaks until a newer one names the regions of the same product.
_PRODUCT = "provider, instance_type, gpu, gpus, option, term_months, payment"

_WINNERS = f"""
WITH seen AS NOT MATERIALIZED (
    SELECT * REPLACE ({_SEEN_ON.format("observed_on")} AS observed_on, {_SEEN_ON.format("recorded_on")} AS recorded_on)
    FROM book_offers
    WHERE offer_kind = 'offer' AND observed_on IS NOT NULL
      AND {_PRICE_ON} <= CAST(on_day AS DATE) AND recorded_on <= CAST(known_day AS DATE)
      AND coalesce(valid_until >= CAST(on_day AS DATE), true)
), aged AS NOT MATERIALIZED (
    SELECT *, {_ENDED} AS ended FROM seen AS k
), known AS NOT MATERIALIZED (
    SELECT *, {_RANK} AS preference FROM aged
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
_LISTED_BELOW = """, listed AS (
    SELECT offer_id, arg_max(usd_per_gpu_hour, preference) AS list_usd_per_gpu_hour FROM known
    WHERE book <> 'user' AND NOT coalesce(gone, false) AND ended IS NULL GROUP BY offer_id
)"""
_BOOKED = f"""{_LISTED_BELOW}
SELECT * REPLACE (CASE WHEN book = 'user' THEN list_usd_per_gpu_hour END AS list_usd_per_gpu_hour)
FROM chosen LEFT JOIN listed USING (offer_id)
"""
_DISCOUNTED = f"""{_LISTED_BELOW}, covered AS (
    SELECT *, CASE WHEN book = 'user' THEN 1 ELSE coalesce((
        SELECT min({paid_fraction_sql("d.fraction", "d.floor_usd_per_gpu_hour", "c.usd_per_gpu_hour")})
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


# Why an answer does not rank an offer.
ENDED_BECAUSE = {
    "stated": "its own end has passed",
    "replaced": "a newer price of the same list replaced it",
    "withdrawn": "no longer listed",
    "wrong": "the price of another product",
    EXPIRED: "too old for its kind to be an offer",
    UNSOLD: "not sold in its region",
}
CONFLICT, AMBIGUOUS = "two prices on one day", "which GPU is not stated"


def ranks_sql(prices: str, unsold: Iterable[str]) -> str:
    """Return the SQL of prices with `stale`, `ranks`, whether answers rank the offer, and why they do not.

    A price is stale as `gpucost.options.age_limit_days` says: its offer ranks behind all others. `unsold` are the
    offers of machines that no list has in their region.
    """
    reasons = " ".join(f"WHEN {quoted(ended)} THEN {quoted(reason)}" for ended, reason in ENDED_BECAUSE.items())
    ids = ", ".join(map(quoted, unsold)) or "NULL"
    limits = " ".join(f"WHEN {quoted(option)} THEN {rule.age_limit_days}" for option, rule in OPTIONS.items())
    hosts = f"(tier IN {MARKETS} OR provider IN (SELECT p.provider FROM providers AS p WHERE p.kind IN {MARKETS}))"
    most = f"least(CASE option {limits} END, CASE WHEN {hosts} THEN {MARKET_LIMIT_DAYS} ELSE 1000000 END)"
    stale = f"price_kind <> 'contracted' AND age_days > {most}"
    return f"""SELECT *, not_ranked_because IS NULL AS ranks, {stale} AS stale FROM (
        SELECT * EXCLUDE (reason), CASE reason {reasons} ELSE CASE WHEN conflict THEN {quoted(CONFLICT)}
            WHEN gpu_ambiguous THEN {quoted(AMBIGUOUS)} END END AS not_ranked_because
        FROM (SELECT *, coalesce(ended, CASE WHEN offer_id IN ({ids}) THEN {quoted(UNSOLD)} END) AS reason
            FROM {prices}))"""


def prices_macro(booked: bool, usual_known_day: date | None = None, discounted: bool = False) -> str:
    """Return the SQL that makes the table macro `prices_on(on_day, known_day)`.

    With a usual day of knowledge it is `prices_on(on_day)`, too.
    """
    head = "CREATE OR REPLACE MACRO prices_on"
    body = _WINNERS + _PLAIN  # the shipped facts alone need no joins with a book
    if booked or discounted:
        body = _WINNERS + (_DISCOUNTED if discounted else _BOOKED)
    if usual_known_day is None:
        return f"{head}(on_day, known_day) AS TABLE {body}"
    known = body.replace("known_day", f"DATE '{usual_known_day}'")
    return f"{head} (on_day, known_day) AS TABLE ({body}), (on_day) AS TABLE ({known})"


# --- The dense history: change points become prices that hold until the next one of their source.
#
# A source that lists a price unchanged sees it again with each of its versions. So a change point counts as seen
# until the day before the next one of the same product and source, and the last one until the day on which the source
# was last read. A row `gone` says that the product was withdrawn.

_SERIES = "source_id, provider, instance_type, gpu, gpus, region, option, term_months"

# What the ordinary rows know of a product beside its price: the node it is, its processors and memory, its billing.
_PRODUCT_OF_HISTORY = (
    "system_id",
    "vcpus",
    "memory_gib",
    "local_nvme_gb",
    "network_gbit_per_s",
    "interconnect",
    "billing_increment_hours",
)

_OFFER_ID = offer_id_sql(
    provider="h.provider",
    instance_type="h.instance_type",
    gpus="h.gpus",
    gpu="h.gpu",
    region="h.region",
    region_scope="'global'",
    option="h.option",
    tier="NULL",
    payment="'monthly'",
)

_OFFERS = f"""
CREATE OR REPLACE TABLE history_offers AS
WITH points AS (
    SELECT *, (lead(observed_on) OVER (PARTITION BY {_SERIES} ORDER BY observed_on)) - 1 AS last_on,
        greatest(observed_on, (SELECT max(accessed_on) FROM price_sources AS s WHERE s.source_id = t.source_id))
        AS ends_on
    FROM price_history AS t
), products AS (
    SELECT provider, instance_type, gpu, gpus, {", ".join(f"max({name}) AS {name}" for name in _PRODUCT_OF_HISTORY)}
    FROM offers GROUP BY ALL
)
SELECT {_OFFER_ID} AS offer_id,
    'offer' AS offer_kind, h.provider, h.instance_type, NULL AS listed_as, h.gpu, false AS gpu_assumed, h.gpus,
    coalesce(p.system_id, s.id) AS system_id, h.region, CASE WHEN h.region IS NULL THEN 'global' ELSE 'region' END
    AS region_scope, h.option, NULL AS tier, CASE WHEN term_months > 0 THEN 'take_or_pay' ELSE 'per_use' END AS billing,
    term_months, CASE WHEN term_months > 0 THEN 'monthly' ELSE 'none' END AS payment,
    CASE WHEN term_months > 0 THEN 0 END AS upfront_usd, usd_per_hour, usd_per_hour / h.gpus AS usd_per_gpu_hour,
    CASE WHEN term_months > 0 THEN usd_per_hour END AS recurring_usd_per_hour,
    {", ".join(f"p.{name}" for name in _PRODUCT_OF_HISTORY if name != "system_id")},
    observed_on AS valid_from, observed_on, observed_on AS recorded_on, 'day' AS date_precision, h.source_id,
    'medium' AS confidence, CASE WHEN usd_per_hour_high IS NOT NULL
        THEN 'the cheapest zone; the dearest at ' || usd_per_hour_high
        WHEN event = 'list' THEN 'shares the list of us-east-1, where the source saw it' END AS notes,
    coalesce(last_on, ends_on) AS seen_until, event = 'gone' AS gone
FROM points AS h
LEFT JOIN products AS p USING (provider, instance_type, gpu, gpus)
LEFT JOIN systems AS s ON s.id = h.provider || '-' || lower(h.instance_type) AND s.accelerator_id = h.gpu
"""

# Cyclenerd prices every machine of Google in every region, sold there or not: where another list names the regions in
# which a machine is sold, it stands in these alone.
_CURRENT = """
WITH listed AS (SELECT DISTINCT instance_type, region FROM offers
    WHERE provider = 'gcp' AND region_scope = 'region' AND source_id NOT LIKE 'cyclenerd%')
SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY offer_id ORDER BY seen_until DESC, observed_on DESC, source_id) AS place
    FROM history_offers AS h
    WHERE seen_until >= $since AND NOT EXISTS (
        SELECT 1 FROM offers AS o WHERE o.offer_id = h.offer_id AND o.observed_on >= h.seen_until
            AND o.source_id <> h.source_id)
        AND EXISTS (SELECT 1 FROM cloud_regions AS c WHERE c.region = h.region AND c.provider IN (h.provider, 'any'))
        AND (h.provider <> 'gcp'
            OR EXISTS (SELECT 1 FROM listed AS l WHERE l.instance_type = h.instance_type AND l.region = h.region)
            OR h.instance_type NOT IN (SELECT instance_type FROM listed))
) WHERE place = 1 AND NOT gone ORDER BY offer_id"""


def load_history(store: Store) -> None:
    """Make the table `history_offers` from the change points, or read the one that an earlier start kept."""
    if store.fetch("SELECT 1 FROM duckdb_tables() WHERE table_name = 'history_offers'"):
        return
    store.ensure("price_sources", "offers", "systems")
    if file := cached.history_file(store, _OFFERS):
        with suppress(engine().Error):  # taken away meanwhile
            store.execute(f"CREATE OR REPLACE TABLE history_offers AS FROM read_parquet({file_name(file)})")
            return
    store.ensure("price_history")
    store.execute(_OFFERS)
    cached.keep_history(store, _OFFERS)


def current_rows(store: Store, newest: date) -> list[dict[str, Any]]:
    """Return rows of the table `offers` for prices that a source of the history listed lately, seen from a day."""
    load_history(store)
    store.ensure("cloud_regions")
    # spot prices older than this have expired, and a list that is older would only lengthen what every start reads
    since = newest - timedelta(days=MARKET_EXPIRY_DAYS)
    rows = store.fetch(_CURRENT, {"since": since})
    names = TABLES["offers"].names
    offers = [{**row, "observed_on": row["seen_until"], "recorded_on": row["seen_until"]} for row in rows]
    return [{name: row.get(name) for name in names} for row in offers]
