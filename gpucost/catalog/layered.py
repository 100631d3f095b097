"""The layers of a catalog: the shipped facts, refreshed prices over them, the user's own books over both."""

from collections import Counter
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.catalog import asof, kept, names
from gpucost.catalog.loader import Store
from gpucost.catalog.records import OWN_SOURCE
from gpucost.catalog.shipped import Shipped
from gpucost.errors import UnknownNameError

if TYPE_CHECKING:
    from gpucost.catalog.books import PriceBook
    from gpucost.catalog.snapshots import Refreshed

RULE = asof.shipped_offers(False) + asof.prices_macro(False)  # what today's offers follow from, beside their tables


class Layered(Shipped):
    """Facts with their sources and dates, the user's own over the shipped ones."""

    def __init__(
        self,
        as_of: date | None,
        known_as_of: date | None,
        root: Path,
        layers: dict[str, Path],
        kept_at: str | Path | None = None,
    ) -> None:
        super().__init__(root, as_of, known_as_of)
        self._layers, self._kept_at = layers, kept_at
        self._over = False  # whether refreshed sources and tokens lie over the shipped tables
        self._laid: list[PriceBook] | None = None
        self.ended: Counter[str] = Counter()  # offers that are no more, by reason; counted when the offers are read
        self._prices_ready = ""  # "listed", or "dense" with the history
        self.derived: dict[str, Any] = {}  # what others made of these facts, kept as long as they are

    # --- rows and SQL

    @property
    def books(self) -> "list[PriceBook]":
        """Return the price books that lie over the shipped tables, the nearest last; reading them happens once."""
        if not self._layers:
            return []
        if self._laid is not None:
            return self._laid
        from gpucost.catalog.overlay import lay_over

        # what has locks of its own is asked for first, so that no two threads wait for one another
        _ = self.dated, self.as_of, self.exchange_rates, self.aliases
        with self.store.lock:
            if self._laid is None:
                self._laid = lay_over(self, self._layers)
            return self._laid

    @property
    def credits(self) -> list[dict[str, Any]]:
        """Return the credits of the user's books."""
        return [row for book in self.books for row in book.credits]

    @cached_property
    def refreshed(self) -> "Refreshed | None":
        """Return what the store of refreshed prices says on the catalog's days; None where there is none."""
        if self._kept_at is None or (isinstance(self._kept_at, Path) and not self._kept_at.is_dir()):
            return None
        from gpucost.catalog.snapshots import refreshed

        until = min(self.as_of, self.known_as_of or self.as_of)
        return refreshed(self._kept_at, until, self.looks_back)

    def _lay_refreshed(self) -> None:
        if self.refreshed is not None and not self._over:
            with self.store.lock:
                if not self._over:
                    self._over = True
                    self.refreshed.lay_over(self.store)

    @property
    def laid(self) -> Store:
        """Return the store with refreshed prices and the books laid over the shipped tables."""
        self._lay_refreshed()
        _ = self.books
        return self.store

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return every row of a table as dictionaries; an empty cell is None."""
        return self.laid.rows(table)

    def query(self, sql: str, *tables: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run the library's own query over the named tables, which are loaded if need be."""
        self.laid.ensure(*tables)
        return self.store.fetch(sql, parameters)

    @cached_property
    def version(self) -> str:
        """Return the date and the content hash that stamp every answer."""
        fresh = self.refreshed.version if self.refreshed is not None else ""
        own = "".join(f"+{book.layer}-{book.digest[:8]}" for book in self.books)
        dense = f"+history-{self.store.table_digest('price_history')[:8]}" if self.looks_back else ""
        return f"{self.dated.isoformat()}+{self.store.digest()[:12]}{dense}{fresh}{own}"

    # --- provenance

    @cached_property
    def _sources(self) -> dict[str, dict[str, Any]]:
        own = {"publisher": "the user", "title": "the user's own book", "locator": "the book folder"}
        blank = dict.fromkeys(("published_on", "accessed_on", "note"))
        found = {OWN_SOURCE: {"source_id": OWN_SOURCE, **own, **blank}}
        return found | {
            row["source_id"]: row for table in ("model_sources", "price_sources") for row in self.rows(table)
        }

    def source(self, source_id: str) -> dict[str, Any]:
        """Return a source: publisher, title, locator, published_on, accessed_on, note."""
        if source_id not in self._sources:
            raise UnknownNameError("source", source_id, names.near(source_id, self._sources))
        return self._sources[source_id]

    @property
    def looks_back(self) -> bool:
        """Tell whether the catalog is seen from a day before its newest price, so that the dense history speaks."""
        return self.as_of < self.dated or (self.known_as_of is not None and self.known_as_of < self.dated)

    @cached_property
    def kept(self) -> kept.Kept | None:
        """Return the shipped offers of today as an earlier start left them, where today is the day asked about."""
        return kept.read(self.store, RULE) if self.usual else None

    @property
    def usual(self) -> bool:
        """Tell whether the catalog is seen from today with all that is known, unless its own date is later."""
        return self._asked_as_of is None and self.known_as_of is None

    @cached_property
    def dated(self) -> date:
        """Return the day of the newest price that the catalog has recorded."""
        return self.kept.dated if self.kept is not None else super().dated
