"""From a listing to rows of the table `offers`: chips by name, effective prices, canonical ids, and what is no price.

    effective USD per hour = recurring + upfront / (730 x months)

Every row of the listing ends in the table `candidate`, those that are no price with the reason in `fault`. It holds
what differs between rows alone: a million of them are judged in little memory, and `offer_columns` adds the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from gpucost.catalog.loader import quoted
from gpucost.catalog.price_rows import billing_sql, effective_usd_per_hour_sql, offer_id_sql, refused_cells, slug_sql
from gpucost.errors import UsageError
from gpucost.options import OPTIONS
from gpucost.refresh.known import FORM_SQL, Known, chip_and_grounds, sold_by
from gpucost.refresh.source import Desk
from gpucost.schemas import DUCKDB_TYPES, TABLES

_BESIDE = ("vcpus", "memory_gib")  # what a price may lack: a cell that cannot be is empty
UNDATED = "neither its file nor its repository says when it was seen"
_SHORTEST_PRODUCT = 2  # letters of a name
_MOST_CHIPS = 5_000  # distinct names of chips in one source
_COLUMNS = {column.name: column for column in TABLES["offers"].columns}
_PROVIDER = slug_sql("provider", "._")

# what a meter's words say that it is not a plain machine under Linux
_OTHER_METERS = {
    "windows meter": r"\b(windows|sql server|rhel|suse)\b",
    "dedicated host": r"\bdedicated host\b",
    "part of a machine": r"\b(without gpu|license)\b",
}


_CHIPS = {  # what a source calls a chip, beside what tells variants apart -> the chip here
    "listed_as": "VARCHAR",
    "gpu_memory_gib": "DOUBLE",
    "provider": "VARCHAR",
    "form": "VARCHAR",
    "gpu": "VARCHAR",
    "gpu_assumed": "BOOLEAN",
}


def load(desk: Desk, name: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Make a table of the scratch database from rows."""
    desk.connection.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{k} {v}' for k, v in columns.items())})")
    if cells := [list(column) for column in zip(*rows, strict=True)]:
        lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
        desk.connection.execute(f"INSERT INTO {name} SELECT {lists}", cells)


def complete(desk: Desk, known: Known) -> None:
    """Make the table `candidate` from the listing."""
    names = desk.connection.execute(
        f"""SELECT DISTINCT listed_as, gpu_memory_gib, {_PROVIDER} AS provider, {FORM_SQL} AS form FROM listing
        WHERE listed_as IS NOT NULL LIMIT {_MOST_CHIPS + 1}"""
    ).fetchall()
    if len(names) > _MOST_CHIPS:
        raise UsageError(f"the source names more than {_MOST_CHIPS:,} accelerators, which is not plausible.")
    # what its seller sells anyway settles a name that leaves two chips open
    sold = sold_by(known)
    chips = []
    for listed_as, memory_gib, provider, form in names:
        gpu, is_assumed = chip_and_grounds(known, listed_as, memory_gib, form, sold.get(provider, frozenset()))
        chips.append((listed_as, memory_gib, provider, form, gpu, is_assumed))
    load(desk, "chips", _CHIPS, chips)
    kinds = {"provider": "VARCHAR", "product": "VARCHAR", "gpu": "VARCHAR", "gpus": "INTEGER", "system_id": "VARCHAR"}
    load(desk, "products", kinds, known.products)
    # a price with a term is its hours and what is paid at the start, spread over the term
    effective = effective_usd_per_hour_sql("recurring_usd_per_hour", "coalesce(upfront_usd, 0)", "term_months")
    rules = zip(_BESIDE, refused_cells(map(_COLUMNS.__getitem__, _BESIDE)).values(), strict=True)
    # processors and memory that no machine has are left out, and the price stays
    beside = ", ".join(f"CASE WHEN NOT ({rule}) THEN {name} END AS {name}" for name, rule in rules)
    candidate = f"""
CREATE OR REPLACE TABLE candidate AS
WITH trimmed AS (
    SELECT l.* REPLACE ({_PROVIDER} AS provider, trim(instance_type) AS instance_type,
        nullif(trim(region), '') AS region, coalesce(term_months, 0) AS term_months,
        coalesce(option, 'on_demand') AS option)
    FROM listing AS l
), resolved AS (
    SELECT l.* EXCLUDE (gpus, gpu_memory_gib, usd_per_hour) REPLACE (
            coalesce(l.payment, CASE WHEN l.term_months = 0 THEN 'none' ELSE 'unknown' END) AS payment, {beside}),
        coalesce(p.gpu, c.gpu) AS gpu, p.gpu IS NULL AND c.gpu_assumed AS gpu_assumed,
        coalesce(l.gpus, p.gpus) AS gpus, p.gpus AS product_gpus, p.system_id,
        CASE WHEN l.region IS NULL THEN 'global' ELSE 'region' END AS region_scope, l.usd_per_hour AS stated,
        CASE WHEN l.term_months > 0 THEN coalesce(l.usd_per_hour, 0) END AS recurring_usd_per_hour
    FROM trimmed AS l LEFT JOIN chips AS c
        ON l.listed_as = c.listed_as AND l.gpu_memory_gib IS NOT DISTINCT FROM c.gpu_memory_gib
        AND l.provider IS NOT DISTINCT FROM c.provider AND {FORM_SQL} IS NOT DISTINCT FROM c.form
    LEFT JOIN products AS p ON p.provider = l.provider AND p.product = lower(l.instance_type)
), priced AS (
    SELECT *, CASE WHEN term_months > 0 THEN {effective} ELSE stated END AS usd_per_hour
    FROM resolved
)
SELECT * EXCLUDE (product_gpus, stated, meter), {offer_id_sql()} AS offer_id, usd_per_hour / gpus AS usd_per_gpu_hour,
    {_fault(desk.today, desk.copied)} AS fault
FROM priced"""
    # of rows that are one offer the cheapest speaks and names the dearest
    same = """CREATE OR REPLACE TABLE same AS SELECT offer_id, arg_min(rowid, usd_per_hour) AS cheapest_row,
        count(*) AS rows, min(usd_per_hour) AS cheapest, max(usd_per_hour) AS dearest
    FROM candidate WHERE fault IS NULL GROUP BY offer_id HAVING count(*) > 1"""
    note = """UPDATE candidate SET notes = 'the cheapest of ' || s.rows || '; the dearest at ' || s.dearest
    FROM same AS s WHERE candidate.rowid = s.cheapest_row AND candidate.notes IS NULL AND s.dearest > s.cheapest"""
    drop = """DELETE FROM candidate USING same AS s
    WHERE candidate.offer_id = s.offer_id AND candidate.fault IS NULL AND candidate.rowid <> s.cheapest_row"""
    for sql in (candidate, same, note, drop, "DROP TABLE same", "DROP TABLE listing"):
        desk.connection.execute(sql)


def offer_columns(source_id: str, today: date) -> str:
    """Return the SQL of each column of the table `offers` over a candidate's own."""
    # every column of the table, those that no source knows empty
    offers = {column.name: f"CAST(NULL AS {DUCKDB_TYPES[column.kind]})" for column in TABLES["offers"].columns}
    offers |= {name: name for name in _CANDIDATE_COLUMNS}
    offers |= {
        "offer_kind": "'offer'",
        "gpu_assumed": "coalesce(gpu_assumed, false)",
        "billing": billing_sql(),
        "observed_on": f"least(coalesce(observed_on, DATE '{today}'), DATE '{today}')",
        "recorded_on": f"DATE '{today}'",
        "date_precision": "'day'",
        "source_id": quoted(source_id),
        "confidence": "'medium'",
    }
    return ",\n    ".join(f"{value} AS {name}" for name, value in offers.items())


_CANDIDATE_COLUMNS = (
    "offer_id",
    "provider",
    "instance_type",
    "listed_as",
    "gpu",
    "gpus",
    "system_id",
    "region",
    "region_scope",
    "option",
    "tier",
    "term_months",
    "payment",
    "vcpus",
    "memory_gib",
    "valid_from",
    "upfront_usd",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "recurring_usd_per_hour",
    "notes",
)

_OF_SOURCE = (  # whose cells are the source's, or follow from its amounts
    "instance_type",
    "listed_as",
    "region",
    "tier",
    "upfront_usd",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "recurring_usd_per_hour",
    "notes",
)


def _fault(today: date, copied: bool) -> str:
    """Return the SQL of the reason why a row is no price, or NULL."""
    options = ", ".join(map(quoted, OPTIONS))
    refused = refused_cells(_COLUMNS[name] for name in _OF_SOURCE)
    meters = [
        f"WHEN regexp_matches(lower(meter), {quoted(text)}) THEN {quoted(why)}" for why, text in _OTHER_METERS.items()
    ]
    # the first that is true names the row: what it is comes before what it costs, and no price before an odd one
    return f"""CASE
        WHEN provider IS NULL OR instance_type IS NULL OR provider = ''
            OR length(instance_type) < {_SHORTEST_PRODUCT} THEN 'no product named'
        WHEN regexp_matches(concat(provider, instance_type, region, tier, notes), '[\\x00-\\x1f\\x7f]')
            OR length(instance_type) > 120 OR length(region) > 80 OR length(provider) > 40 THEN 'unreadable name'
        {" ".join(meters)}
        WHEN option NOT IN ({options}) THEN 'unknown purchase option'
        WHEN payment NOT IN ({", ".join(map(quoted, _COLUMNS["payment"].choices))}) THEN 'unknown way of payment'
        WHEN gpu IS NULL THEN 'accelerator not known'
        WHEN gpus IS NULL OR gpus < 1 OR gpus > 100000 THEN 'no count of accelerators'
        WHEN product_gpus IS NOT NULL AND product_gpus <> gpus THEN 'another count of accelerators than its product has'
        WHEN stated IS NULL AND upfront_usd IS NULL THEN 'no price'
        {f"WHEN observed_on IS NULL THEN {quoted(UNDATED)}" if copied else ""}
        WHEN valid_from > DATE '{today}' THEN 'holds from a later day'
        WHEN term_months < 0 THEN 'no count of months'
        WHEN NOT isfinite(usd_per_hour) OR NOT isfinite(upfront_usd) THEN 'no finite price'
        WHEN upfront_usd > 0 AND term_months = 0 THEN 'paid at the start without a term'
        WHEN stated IS NULL AND term_months = 0 THEN 'no price'
        WHEN usd_per_hour = 0 THEN 'price of $0'
        WHEN usd_per_hour < 0 OR upfront_usd < 0 THEN 'negative price'
        WHEN usd_per_hour > {_COLUMNS["usd_per_hour"].high} OR usd_per_hour / gpus > {_COLUMNS["usd_per_gpu_hour"].high}
            THEN 'price beyond all bounds'
        {" ".join(f"WHEN {rule} THEN {quoted(why)}" for why, rule in refused.items())}
        END"""
