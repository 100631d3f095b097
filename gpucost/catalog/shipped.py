"""The shipped facts seen from one day: their store, date and version, and the names of their rows."""

from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from gpucost.catalog.loader import Store
from gpucost.catalog.names import NameIndex, index
from gpucost.schemas import TABLES

KINDS = {"accelerators": "accelerator", "systems": "system", "llms": "model"}


class Shipped:
    """The facts below a data root; nothing is read before it is asked for."""

    def __init__(self, root: Path, as_of: date | None = None, known_as_of: date | None = None) -> None:
        self._asked_as_of, self.known_as_of = as_of, known_as_of
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
        return self._asked_as_of or max(date.today(), self.dated)

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
        found: dict[str, dict[str, str]] = {}
        for row in self.store.rows("aliases"):
            found.setdefault(row["kind"], {})[row["alias"]] = row["id"]
        return found

    def alias(self, kind: str, name: str) -> str:
        """Return what an alias of a provider or region stands for, else the name itself."""
        return self.aliases.get(kind, {}).get(name.strip().lower(), name.strip())

    def recorded(self, column: str) -> frozenset[str]:
        """Return the values that shipped prices have in a column, those of the history too."""
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
