"""The dense history in the shape of offers: change points become prices that hold until the next one of their source.

A source that lists a price unchanged sees it again with each of its versions. So a change point counts as seen until
the day before the next one of the same product and source, and the last one until the day on which the source was last
read. A row `gone` says that the product was withdrawn.
"""

from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from gpucost.catalog import kept
from gpucost.catalog.loader import Store, engine, file_name
from gpucost.catalog.offer_rows import offer_id_sql
from gpucost.options import expiry_by_option
from gpucost.schemas import TABLES

_SERIES = "source_id, provider, instance_type, gpu, gpus, region, option, term_months"

# What the ordinary rows know of a product beside its price: the node it is, its processors and memory, its billing.
_PRODUCT = (
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
    SELECT provider, instance_type, gpu, gpus, {", ".join(f"max({name}) AS {name}" for name in _PRODUCT)}
    FROM offers GROUP BY ALL
)
SELECT {_OFFER_ID} AS offer_id,
    'offer' AS offer_kind, h.provider, h.instance_type, NULL AS listed_as, h.gpu, false AS gpu_assumed, h.gpus,
    coalesce(p.system_id, s.id) AS system_id, h.region, CASE WHEN h.region IS NULL THEN 'global' ELSE 'region' END
    AS region_scope, h.option, NULL AS tier, CASE WHEN term_months > 0 THEN 'take_or_pay' ELSE 'per_use' END AS billing,
    term_months, CASE WHEN term_months > 0 THEN 'monthly' ELSE 'none' END AS payment,
    CASE WHEN term_months > 0 THEN 0 END AS upfront_usd, usd_per_hour, usd_per_hour / h.gpus AS usd_per_gpu_hour,
    CASE WHEN term_months > 0 THEN usd_per_hour END AS recurring_usd_per_hour,
    {", ".join(f"p.{name}" for name in _PRODUCT if name != "system_id")},
    observed_on AS valid_from, observed_on, observed_on AS recorded_on, 'day' AS date_precision, h.source_id,
    'medium' AS confidence, CASE WHEN usd_per_hour_high IS NOT NULL
        THEN 'the cheapest zone; the dearest at ' || usd_per_hour_high
        WHEN event = 'list' THEN 'shares the list of us-east-1, where the source saw it' END AS notes,
    coalesce(last_on, ends_on) AS seen_until, event = 'gone' AS gone
FROM points AS h
LEFT JOIN products AS p USING (provider, instance_type, gpu, gpus)
LEFT JOIN systems AS s ON s.id = h.provider || '-' || lower(h.instance_type) AND s.accelerator_id = h.gpu
"""

_CURRENT = """
SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY offer_id ORDER BY seen_until DESC, observed_on DESC, source_id) AS place
    FROM history_offers AS h
    WHERE seen_until >= $since AND NOT EXISTS (
        SELECT 1 FROM offers AS o WHERE o.offer_id = h.offer_id AND o.observed_on >= h.seen_until
            AND o.source_id <> h.source_id)
        AND EXISTS (SELECT 1 FROM cloud_regions AS c WHERE c.region = h.region AND c.provider IN (h.provider, 'any'))
) WHERE place = 1 AND NOT gone ORDER BY offer_id"""


def load_history(store: Store) -> None:
    """Make the table `history_offers` from the change points, or read the one that an earlier start kept."""
    if store.fetch("SELECT 1 FROM duckdb_tables() WHERE table_name = 'history_offers'"):
        return
    store.ensure("price_sources", "offers", "systems")
    if file := kept.history_file(store, _OFFERS):
        with suppress(engine().Error):  # taken away meanwhile
            store.execute(f"CREATE OR REPLACE TABLE history_offers AS FROM read_parquet({file_name(file)})")
            return
    store.ensure("price_history")
    store.execute(_OFFERS)
    kept.keep_history(store, _OFFERS)


def current_rows(store: Store, newest: date) -> list[dict[str, Any]]:
    """Return rows of the table `offers` for prices that a source of the history listed lately, seen from a day."""
    load_history(store)
    store.ensure("cloud_regions")
    since = newest - timedelta(days=min(expiry_by_option().values()))
    rows = store.fetch(_CURRENT, {"since": since})
    names = TABLES["offers"].names
    seen = [{**row, "observed_on": row["seen_until"], "recorded_on": row["seen_until"]} for row in rows]
    return [{name: row.get(name) for name in names} for row in seen]
