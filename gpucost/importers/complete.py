"""From a listing to rows of the table `offers`: chips by name, effective prices, canonical ids, and what is no price.

    effective USD per hour = recurring + upfront / (730 x months)

Every row of the listing ends in the table `candidate`, those that are no price with the reason in `fault`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from gpucost.catalog.loader import quoted
from gpucost.errors import UsageError
from gpucost.importers.source import Desk
from gpucost.options import OPTIONS
from gpucost.schemas import TABLES
from gpucost.units import HOURS_PER_MONTH

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog
    from gpucost.catalog.names import NameIndex

_MOST_CHIPS = 5_000  # distinct names of chips in one source
_MOST_CANDIDATES = 4  # chips that one name may mean; beyond that it means none
_MEMORY_OFF = 0.08
_SLUG = "trim(regexp_replace(lower({0}), '[^a-z0-9.]+', '-', 'g'), '-')"
_PROVIDER = "trim(regexp_replace(lower(l.provider), '[^a-z0-9._]+', '-', 'g'), '-')"
_OWED = ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.take_or_pay)

# what a meter's words say that it is not a plain machine under Linux
_OTHER_METERS = {
    "windows meter": r"\b(windows|sql server|rhel|suse)\b",
    "dedicated host": r"\bdedicated host\b",
    "part of a machine": r"\b(without gpu|license)\b",
}


@dataclass(slots=True)
class Known:
    """What the catalog knows and importers lean on; gathered once, before the sources are asked side by side."""

    chips: "NameIndex"
    memory_gb: Mapping[str, float]
    products: Sequence[tuple[str, str, str, int, str | None]]  # provider, product in lower case, chip, count, node
    reference: Sequence[tuple[Any, ...]]  # the offers that hold today: see REFERENCE
    models: "NameIndex"
    regions: frozenset[str] = field(default_factory=frozenset)


REFERENCE = {
    "offer_id": "VARCHAR", "provider": "VARCHAR", "instance_type": "VARCHAR", "gpu": "VARCHAR", "gpus": "INTEGER",
    "region": "VARCHAR", "option": "VARCHAR", "tier": "VARCHAR", "term_months": "INTEGER",
    "usd_per_hour": "DOUBLE", "usd_per_gpu_hour": "DOUBLE",
}  # fmt: skip


def known_of(catalog: "Catalog") -> Known:
    """Gather what importers need of a catalog."""
    sql = """SELECT provider, lower(instance_type), min(gpu), min(gpus), min(system_id) FROM offers
        WHERE NOT contains(gpu, '|') AND NOT gpu_assumed AND provider IN ('aws', 'azure', 'gcp', 'lambda', 'oci')
        GROUP BY 1, 2 HAVING min(gpu) = max(gpu) AND min(gpus) = max(gpus)"""
    catalog.laid.ensure("offers")
    products = {(row[0], row[1]): tuple(row) for row in catalog.store.execute(sql).fetchall()}
    for system in catalog.systems():
        if system.provider and system.instance_type:
            key = (system.provider, system.instance_type.lower())
            products[key] = (*key, system.accelerator_id, system.gpus, system.id)
    reference = [
        tuple(getattr(offer, name) for name in REFERENCE) for offer in catalog.offers() if offer.book != "user"
    ]
    memory = {row["id"]: row["memory_marketed_gb"] or row["memory_gib"] for row in catalog.rows("accelerators")}
    return Known(catalog.accelerator_names, memory, list(products.values()), reference, catalog.model_names)


def load(desk: Desk, name: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Make a table of the scratch database from rows."""
    desk.connection.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{k} {v}' for k, v in columns.items())})")
    if rows := list(rows):
        marks = ", ".join("?" * len(columns))
        desk.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row) for row in rows])


def chip_of(known: Known, name: str, memory_gib: float | None) -> str | None:
    """Return the accelerator that a source's name means, several joined by | where it says no more, or None."""
    found = known.chips.matches(name.replace("_", " "))
    if len(found) > 1 and memory_gib:
        near = [one for one in found if abs(known.memory_gb[one] / memory_gib - 1) < _MEMORY_OFF]
        found = near or found
    return "|".join(sorted(found)) if 0 < len(found) <= _MOST_CANDIDATES else None


def complete(desk: Desk, known: Known, source_id: str, today: date) -> None:
    """Make the table `candidate` from the listing."""
    names = desk.connection.execute(
        f"SELECT DISTINCT listed_as, gpu_memory_gib FROM listing WHERE listed_as IS NOT NULL LIMIT {_MOST_CHIPS + 1}"
    ).fetchall()
    if len(names) > _MOST_CHIPS:
        raise UsageError(f"the source names more than {_MOST_CHIPS:,} accelerators, which cannot be.")
    chips = [(name, memory, chip_of(known, name, memory)) for name, memory in names]
    load(desk, "chips", {"listed_as": "VARCHAR", "gpu_memory_gib": "DOUBLE", "gpu": "VARCHAR"}, chips)
    kinds = {"provider": "VARCHAR", "product": "VARCHAR", "gpu": "VARCHAR", "gpus": "INTEGER", "system_id": "VARCHAR"}
    load(desk, "products", kinds, known.products)
    desk.connection.execute(_candidate(source_id, today))
    desk.connection.execute("DROP TABLE listing")


def offer_id_sql(row: str = "") -> str:
    """Return the SQL of the canonical id of an offer, whose parts are columns of the same names."""
    tier = "CASE WHEN tier IS NULL OR tier = option THEN option ELSE option || '.' || tier END"
    place = f"coalesce({_SLUG.format('region')}, CASE region_scope WHEN 'any' THEN 'global' ELSE region_scope END)"
    term = "CASE WHEN term_months > 0 THEN term_months || 'mo/' || payment END"
    chip = "gpus || 'x' || replace(gpu, '|', '~')"
    return f"concat_ws('/', provider, {_SLUG.format('instance_type')}, {chip}, {place}, {tier}, {term})"


def _columns(source_id: str, today: date) -> str:
    """Return the SQL of each column of the table `offers`."""
    offers = {column.name: "NULL" for column in TABLES["offers"].columns}
    same = (
        "provider", "instance_type", "listed_as", "gpu", "gpus", "system_id", "region", "region_scope", "option",
        "tier", "term_months", "payment", "vcpus", "memory_gib", "valid_from", "upfront_usd", "usd_per_hour", "notes",
    )  # fmt: skip
    offers |= {name: name for name in same}
    offers |= {
        "offer_id": offer_id_sql(), "offer_kind": "'offer'", "gpu_assumed": "false",
        "billing": f"CASE WHEN term_months > 0 OR option IN ({_OWED}) THEN 'take_or_pay' ELSE 'per_use' END",
        "usd_per_gpu_hour": "usd_per_hour / gpus", "recurring_usd_per_hour": "recurring",
        "observed_on": f"DATE '{today}'", "recorded_on": f"DATE '{today}'", "date_precision": "'day'",
        "source_id": quoted(source_id), "confidence": "'medium'",
    }  # fmt: skip
    return ",\n    ".join(f"{value} AS {name}" for name, value in offers.items())


def _candidate(source_id: str, today: date) -> str:
    selected, months = _columns(source_id, today), f"(term_months * {HOURS_PER_MONTH})"
    return f"""
CREATE OR REPLACE TABLE candidate AS
WITH named AS (
    SELECT {_PROVIDER} AS provider, trim(l.instance_type) AS instance_type, l.listed_as,
        coalesce(p.gpu, c.gpu) AS gpu, coalesce(l.gpus, p.gpus) AS gpus, p.gpus AS product_gpus, p.system_id,
        nullif(trim(l.region), '') AS region, CASE WHEN nullif(trim(l.region), '') IS NULL THEN 'global'
        ELSE 'region' END AS region_scope, coalesce(l.option, 'on_demand') AS option, l.tier,
        coalesce(l.term_months, 0) AS term_months,
        CASE WHEN coalesce(l.term_months, 0) = 0 THEN coalesce(l.payment, 'none') ELSE coalesce(l.payment, 'unknown')
        END AS payment, l.upfront_usd, l.usd_per_hour AS stated,
        CASE WHEN coalesce(l.term_months, 0) > 0 THEN coalesce(l.usd_per_hour, 0) END AS recurring,
        l.vcpus, l.memory_gib, l.valid_from, l.meter, l.notes
    FROM listing AS l LEFT JOIN chips AS c
        ON l.listed_as = c.listed_as AND l.gpu_memory_gib IS NOT DISTINCT FROM c.gpu_memory_gib
    LEFT JOIN products AS p ON p.provider = {_PROVIDER} AND p.product = lower(trim(l.instance_type))
), priced AS (
    SELECT *, CASE WHEN term_months > 0 THEN recurring + coalesce(upfront_usd, 0) / {months} ELSE stated END
        AS usd_per_hour
    FROM named
), judged AS (
    SELECT {selected},
        {_fault()} AS fault
    FROM priced
)
SELECT * REPLACE (coalesce(notes, CASE WHEN fault IS NULL AND max(usd_per_hour) OVER same > usd_per_hour
    THEN 'the cheapest of ' || count(*) OVER same || '; the dearest at ' || max(usd_per_hour) OVER same END) AS notes)
FROM judged
WINDOW same AS (PARTITION BY offer_id, fault IS NULL)
QUALIFY fault IS NOT NULL OR row_number() OVER (PARTITION BY offer_id, fault IS NULL ORDER BY usd_per_hour) = 1"""


def _fault() -> str:
    """Return the SQL of the reason why a row is no price, or NULL."""
    bounds = {column.name: column.high for column in TABLES["offers"].columns}
    options = ", ".join(map(quoted, OPTIONS))
    meters = [
        f"WHEN regexp_matches(lower(meter), {quoted(text)}) THEN {quoted(why)}" for why, text in _OTHER_METERS.items()
    ]
    return f"""CASE
        WHEN provider IS NULL OR instance_type IS NULL OR provider = '' OR instance_type = '' THEN 'no product named'
        WHEN regexp_matches(concat(provider, instance_type, region, tier, notes), '[\\x00-\\x1f\\x7f]')
            OR length(instance_type) > 120 OR length(region) > 80 OR length(provider) > 40 THEN 'unreadable name'
        {" ".join(meters)}
        WHEN option NOT IN ({options}) THEN 'unknown purchase option'
        WHEN gpu IS NULL THEN 'accelerator not known'
        WHEN gpus IS NULL OR gpus < 1 OR gpus > 100000 THEN 'no count of accelerators'
        WHEN product_gpus IS NOT NULL AND product_gpus <> gpus THEN 'another count of accelerators than its product has'
        WHEN stated IS NULL AND upfront_usd IS NULL THEN 'no price'
        WHEN NOT isfinite(usd_per_hour) THEN 'no finite price'
        WHEN usd_per_hour = 0 THEN 'price of $0'
        WHEN usd_per_hour < 0 OR upfront_usd < 0 OR term_months < 0 THEN 'negative price'
        WHEN usd_per_hour > {bounds["usd_per_hour"]} OR usd_per_hour / gpus > {bounds["usd_per_gpu_hour"]}
            THEN 'price beyond all bounds'
        END"""
