"""The shipped facts seen from one day, and where each number comes from."""

from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from gpucost import clock
from gpucost.catalog.loader import Store
from gpucost.catalog.names import NameIndex, index
from gpucost.errors import UnknownNameError
from gpucost.schemas import TABLES, DataTable

KINDS = {"accelerators": "accelerator", "systems": "system", "llms": "model"}


class Shipped:
    """The facts below a data root; nothing is read before it is asked for."""

    def __init__(self, root: Path, as_of: date | None = None, known_as_of: date | None = None) -> None:
        self._stated_as_of, self.known_as_of = as_of, known_as_of
        self.store = Store(root)

    @cached_property
    def dated(self) -> date:
        """Return the day of the newest price that the catalog has recorded."""
        self.store.ensure("offers")
        newest = self.store.fetch("SELECT max(recorded_on) AS newest FROM offers")[0]["newest"]
        return newest or date(1970, 1, 1)

    @cached_property
    def as_of(self) -> date:
        """Return the day that the catalog is seen from."""
        # a computer whose clock is behind has prices of its future: the newest of them is its today
        return self._stated_as_of or max(clock.today(), self.dated)

    @cached_property
    def exchange_rates(self) -> dict[str, float]:
        """Return the USD per unit of each currency, as last known on the catalog's day."""
        self.store.ensure("exchange_rates")
        query = """SELECT currency, arg_max(usd_per_unit, "on") AS rate
            FROM exchange_rates WHERE "on" <= $day GROUP BY currency"""
        return {row["currency"]: row["rate"] for row in self.store.fetch(query, {"day": self.as_of})}

    @cached_property
    def aliases(self) -> dict[str, dict[str, str]]:
        """Return the other names of each kind, with what they stand for."""
        aliases: dict[str, dict[str, str]] = {}
        for row in self.store.rows("aliases"):
            aliases.setdefault(row["kind"], {})[row["alias"]] = row["id"]
        return aliases

    def alias(self, kind: str, name: str) -> str:
        """Return what an alias of a provider or region stands for, else the name itself."""
        return self.aliases.get(kind, {}).get(name.strip().lower(), name.strip())

    def recorded(self, column: str) -> frozenset[str]:
        """Return the values that shipped prices have in a column, those of the history too."""
        # a seller without a price is known all the same, as one that a book's prices may name
        tables = ("offers", "providers") if column == "provider" else ("offers", "price_history")
        self.store.ensure(*tables)
        query = " UNION ".join(f'SELECT DISTINCT "{column}" AS value FROM {table}' for table in tables)
        return frozenset(str(row["value"]) for row in self.store.fetch(query) if row["value"])

    def index(self, table: str) -> NameIndex:
        """Return the index of the names of the rows that a table holds now."""
        kind = KINDS[table]
        return index(kind, self.store.rows(table), self.aliases.get(kind, {}))

    def rows_of(self, table: str, id_: str) -> list[dict[str, Any]]:
        """Return the rows of an id."""
        self.store.ensure(table)
        query = f'SELECT * FROM "{table}" WHERE "{TABLES[table].key[0]}" = $id ORDER BY ALL DESC'
        return self.store.fetch(query, {"id": id_})


# --- Where numbers come from: sources with the rows that lean on them, and all facts in one long view.

_SOURCE_TABLES = ("model_sources", "price_sources")
_BOOKKEEPING = frozenset(
    ("source_id", "second_source_id", "confidence", "notes", "status", "valid_from", "observed_on", "recorded_on")
)

# a figure of the user's own, an estimate of ours, or one that somebody published
_STATUS = "CASE WHEN r.source_id = 'user' THEN 'user' WHEN s.publisher = 'gpucost' THEN 'assumed' ELSE 'sourced' END"


def sourced_tables() -> list[DataTable]:
    """Return the tables whose rows name their source."""
    return [table for table in TABLES.values() if table.name not in _SOURCE_TABLES and "source_id" in table.names]


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
        for name in _SOURCE_TABLES
        for row in store.rows(name)
    ]
    return [row for row in rows if row["rows"]] if table else rows


def facts_view() -> str:
    """Return the SQL of the view `facts`: entity, field, value, unit, status, source, date, one line per known cell."""
    parts = []
    for table in sourced_tables():
        # a row becomes a line for each of its cells: a list of structs that is unnested
        structs = []
        for column in table.columns:
            if column.name in _BOOKKEEPING or column.name in table.key[:1]:
                continue
            number = f'CAST("{column.name}" AS DOUBLE)' if column.kind in ("number", "integer") else "NULL::DOUBLE"
            value = f'CAST("{column.name}" AS VARCHAR)'
            structs.append(
                f"{{'field': '{column.name}', 'value': {value}, 'number': {number}, 'unit': '{column.unit}'}}"
            )
        cells = ", ".join(structs)
        status = "r.status" if "status" in table.names else _STATUS
        sources = "price_sources" if table.files.startswith("pricing") else "model_sources"
        day = "r.observed_on" if "observed_on" in table.names else "coalesce(s.published_on, s.accessed_on)"
        parts.append(
            f"""SELECT '{table.name}' AS "table", CAST(r."{table.key[0]}" AS VARCHAR) AS entity,
    r.fact.field, r.fact.value, r.fact.number, r.fact.unit, {status} AS status, r.source_id AS source, {day} AS date
FROM (SELECT *, unnest([{cells}]) AS fact FROM "{table.name}") AS r LEFT JOIN {sources} AS s USING (source_id)
WHERE r.fact.value IS NOT NULL"""
        )
    return "CREATE OR REPLACE VIEW facts AS\n" + "\nUNION ALL BY NAME\n".join(parts)
