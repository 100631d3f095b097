"""Where numbers come from: sources with the rows that lean on them, and every fact of every table in one long view."""

from typing import Any

from gpucost.catalog.loader import Store
from gpucost.errors import UnknownNameError
from gpucost.schemas import TABLES, Column, Table

SOURCE_TABLES = ("model_sources", "price_sources")
_BOOKKEEPING = frozenset(
    ("source_id", "second_source_id", "confidence", "notes", "status", "valid_from", "observed_on", "recorded_on")
)

# a figure of the user's own, an estimate of ours, or one that somebody published
_STATUS = "CASE WHEN r.source_id = 'user' THEN 'user' WHEN s.publisher = 'gpucost' THEN 'assumed' ELSE 'sourced' END"


def sourced_tables() -> list[Table]:
    """Return the tables whose rows name their source."""
    return [table for table in TABLES.values() if table.name not in SOURCE_TABLES and "source_id" in table.names]


def source_rows(store: Store, table: str | None = None) -> list[dict[str, Any]]:
    """Return the sources, each with the tables and the number of rows that lean on it."""
    tables = sourced_tables()
    if table is not None:
        tables = [item for item in tables if item.name == table]
        if not tables:
            raise UnknownNameError("table", table, [], f"Tables: {', '.join(item.name for item in sourced_tables())}.")
    used: dict[str, dict[str, int]] = {}
    for item in tables:
        store.ensure(item.name)
        for row in store.fetch(f'SELECT source_id, count(*) AS n FROM "{item.name}" GROUP BY source_id'):
            used.setdefault(row["source_id"], {})[item.name] = row["n"]
    rows = [
        {**row, "tables": sorted(used.get(row["source_id"], ())), "rows": sum(used.get(row["source_id"], {}).values())}
        for name in SOURCE_TABLES
        for row in store.rows(name)
    ]
    return [row for row in rows if row["rows"]] if table else rows


def facts_view() -> str:
    """Return the SQL of the view `facts`: entity, field, value, unit, status, source, date, one line per known cell."""
    parts = [_table_facts(table) for table in sourced_tables()]
    return "CREATE OR REPLACE VIEW facts AS\n" + "\nUNION ALL BY NAME\n".join(parts)


def _table_facts(table: Table) -> str:
    fields = [
        column for column in table.columns if column.name not in _BOOKKEEPING and column.name not in table.key[:1]
    ]
    known = ", ".join(_struct(column) for column in fields)
    status = "r.status" if "status" in table.names else _STATUS
    sources = "price_sources" if table.files.startswith("pricing") else "model_sources"
    day = "r.observed_on" if "observed_on" in table.names else "coalesce(s.published_on, s.accessed_on)"
    return f"""SELECT '{table.name}' AS "table", CAST(r."{table.key[0]}" AS VARCHAR) AS entity,
    r.fact.field, r.fact.value, r.fact.number, r.fact.unit, {status} AS status, r.source_id AS source, {day} AS date
FROM (SELECT *, unnest([{known}]) AS fact FROM "{table.name}") AS r LEFT JOIN {sources} AS s USING (source_id)
WHERE r.fact.value IS NOT NULL"""


def _struct(column: Column) -> str:
    number = f'CAST("{column.name}" AS DOUBLE)' if column.kind in ("number", "integer") else "NULL::DOUBLE"
    value = f'CAST("{column.name}" AS VARCHAR)'
    return f"{{'field': '{column.name}', 'value': {value}, 'number': {number}, 'unit': '{column.unit}'}}"
