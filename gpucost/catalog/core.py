"""The catalog as the rest of gpucost sees it: records by name, offers as of a day, rows, SQL, provenance."""

from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from gpucost.catalog import asof, filters, hardware, names, records
from gpucost.catalog.loader import Store
from gpucost.catalog.paths import shipped_root
from gpucost.errors import UnknownNameError, UsageError
from gpucost.types import Accelerator, Architecture, Offer, System


def open_catalog(as_of: date | str | None = None, known_as_of: date | str | None = None, *, root: str | Path | None = None) -> "Catalog":
    """Open the catalog as of a day, as known on a day; nothing is read before it is asked for.

    `as_of` is today unless given (the catalog's own date where the computer's clock is behind it); `known_as_of`
    hides what was recorded later. `root` replaces the shipped data by another folder of the same layout.
    """
    from gpucost.catalog.settings import setting

    day = parse_date(as_of if as_of is not None else setting("as_of"), "--as-of")
    known_day = parse_date(known_as_of if known_as_of is not None else setting("known_as_of"), "--known-as-of")
    return Catalog(day, known_day, Path(root) if root else data_root())


def data_root() -> Path:
    """Return the folder of the facts: the setting `data`, else the shipped ones."""
    from gpucost.catalog.settings import setting

    named = setting("data")
    if not named:
        return shipped_root()
    root = Path(named).expanduser()
    if not (root / "models").is_dir():
        raise UsageError(f"the data folder {root} (setting `data`) has no folder models/. Name a folder with pricing/ and models/.")
    return root


def parse_date(value: date | str | None, what: str) -> date | None:
    """Read a day written as YYYY-MM-DD."""
    if value is None or isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value.strip())
    except ValueError:
        raise UsageError(f"{what}: cannot read {value!r} as a day. Write it as YYYY-MM-DD, such as 2026-06-15.") from None


class Catalog:
    """Facts with their sources and dates, seen from one day."""

    def __init__(self, as_of: date | None, known_as_of: date | None, root: Path) -> None:
        self._asked_as_of, self.known_as_of = as_of, known_as_of
        self.store = Store(root)

    # --- rows and SQL

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return every row of a table as dictionaries; an empty cell is None."""
        self.store.ensure(table)
        return self.store.fetch(f'SELECT * FROM "{table}"')

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Run one SELECT over every table and view: read-only, without files or network, limited in time and memory."""
        from gpucost.catalog.sandbox import run

        return run(self, query).rows

    def reopened(self) -> "Catalog":
        """Return a catalog seen from the same days with a database of its own."""
        return Catalog(self.as_of, self.known_as_of, self.store.root)

    def prepare_everything(self) -> None:
        """Load every table and make every view: `facts`, `book_offers`, `prices` (today's) and `prices_on(day, known_day)`."""
        from gpucost.catalog.provenance import facts_view

        self.store.ensure_all()
        self.prepare_prices()
        self.store.execute(facts_view())
        self.store.execute(asof.prices_view(self.as_of, self.known_as_of or asof.FOREVER))

    def query(self, sql: str, *tables: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run the library's own query over the named tables, which are loaded if need be."""
        self.store.ensure(*tables)
        return self.store.fetch(sql, parameters)

    @cached_property
    def dated(self) -> date:
        """Return the day of the newest price that the catalog has recorded."""
        self.store.ensure("offers")
        newest = self.store.fetch("SELECT max(recorded_on) AS newest FROM offers")[0]["newest"]
        return newest or date(1970, 1, 1)

    @cached_property
    def version(self) -> str:
        """Return the date and the content hash that stamp every answer."""
        return f"{self.dated.isoformat()}+{self.store.digest()[:12]}"

    @cached_property
    def as_of(self) -> date:
        """Return the day that the catalog is seen from."""
        return self._asked_as_of or max(date.today(), self.dated)

    # --- provenance

    @cached_property
    def _sources(self) -> dict[str, dict[str, Any]]:
        return {row["source_id"]: row for table in ("model_sources", "price_sources") for row in self.rows(table)}

    def source(self, source_id: str) -> dict[str, Any]:
        """Return a source: publisher, title, locator, published_on, accessed_on, note."""
        if source_id not in self._sources:
            raise UnknownNameError("source", source_id, names.near(source_id, self._sources))
        return self._sources[source_id]

    # --- names

    @cached_property
    def _aliases(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for row in self.rows("aliases"):
            found.setdefault(row["kind"], {})[row["alias"]] = row["id"]
        return found

    def alias(self, kind: str, name: str) -> str:
        """Return what an alias of a provider or region stands for, else the name itself."""
        return self._aliases.get(kind, {}).get(name.strip().lower(), name.strip())

    @cached_property
    def _accelerators(self) -> dict[str, Accelerator]:
        return {row["id"]: records.accelerator(row) for row in self.rows("accelerators")}

    @cached_property
    def accelerator_names(self) -> names.NameIndex:
        """Return the index of accelerator names."""
        return names.index_accelerators(self.rows("accelerators"), self._aliases.get("accelerator", {}))

    @cached_property
    def _systems(self) -> dict[str, System]:
        return {row["id"]: records.system(row) for row in self.rows("systems")}

    @cached_property
    def system_names(self) -> names.NameIndex:
        """Return the index of system names."""
        return names.index_systems(self.rows("systems"), self._aliases.get("system", {}))

    @cached_property
    def _architectures(self) -> dict[str, Architecture]:
        return {row["id"]: records.architecture(row) for row in self.rows("llms")}

    @cached_property
    def model_names(self) -> names.NameIndex:
        """Return the index of model names."""
        return names.index_models(self.rows("llms"), self._aliases.get("model", {}))

    # --- records

    def accelerator(self, name: str) -> Accelerator:
        """Return the one accelerator that a name means; the name of a system means its accelerator."""
        found = self.accelerator_names.matches(name)
        if not found and len(systems := self.system_names.matches(name)) == 1:
            found = [self._systems[systems[0]].accelerator_id]
        return self._accelerators[found[0] if len(found) == 1 else self.accelerator_names.one(name)]

    def accelerators(self, name: str | None = None) -> list[Accelerator]:
        """Return every accelerator that a name, such as a family, means; all of them without a name."""
        if name is None:
            return list(self._accelerators.values())
        return [self._accelerators[id_] for id_ in self.accelerator_names.several(name)]

    def system(self, name: str) -> System:
        """Return the one system that a name means."""
        return self._systems[self.system_names.one(name)]

    def systems(self, name: str | None = None) -> list[System]:
        """Return every system that a name means; all of them without a name."""
        ids = list(self._systems) if name is None else self.system_names.several(name)
        return [self._systems[id_] for id_ in ids]

    def default_system(self, accelerator_id: str) -> System:
        """Return the node used when none is named: the vendor's own 8-GPU class, else a synthesised one, marked so."""
        return hardware.default_system(self.accelerator(accelerator_id), list(self._systems.values()))

    def system_for(self, offer: Offer) -> System:
        """Return the node that an offer is; without a named scale-out network where none is known."""
        if offer.system_id in self._systems:
            return self._systems[offer.system_id]
        return hardware.offer_system(offer, self._accelerators[offer.gpu])

    def architecture(self, name: str) -> Architecture:
        """Return an architecture: a preset, an alias, a path to a config.json, or a size such as "11b" (synthesised)."""
        return self._architectures[self.model_names.one(name)]

    def architectures(self, name: str | None = None) -> list[Architecture]:
        """Return every preset that a name means; all of them without a name."""
        ids = list(self._architectures) if name is None else self.model_names.several(name)
        return [self._architectures[id_] for id_ in ids]

    # --- offers

    def prepare_prices(self) -> None:
        """Make the views `book_offers` and `prices_on(day, known_day)` over every price book."""
        if not getattr(self, "_prices_ready", False):
            self.store.ensure("offers")
            self.store.execute("CREATE OR REPLACE VIEW book_offers AS SELECT *, 'shipped' AS book, 'list' AS price_kind FROM offers")
            self.store.execute(asof.PRICES_ON)
            self._prices_ready = True

    def offer_values(self, column: str) -> list[Any]:
        """Return the distinct values of a column over every recorded offer."""
        self.prepare_prices()
        return [row["value"] for row in self.store.fetch(f'SELECT DISTINCT "{column}" AS value FROM book_offers WHERE "{column}" IS NOT NULL')]

    @cached_property
    def price_rows(self) -> list[dict[str, Any]]:
        """Return one row per offer, as of the catalog's day: also those in conflict or with an ambiguous GPU, marked."""
        self.prepare_prices()
        query = "SELECT * FROM prices_on($on_day, $known_day) ORDER BY usd_per_gpu_hour, offer_id"
        return self.store.fetch(query, {"on_day": self.as_of, "known_day": self.known_as_of or asof.FOREVER})

    @cached_property
    def _offers(self) -> list[Offer]:
        usable = (row for row in self.price_rows if not row["conflict"] and not row["gpu_ambiguous"])
        return [records.record(Offer, row) for row in usable]

    def offers(
        self, gpu: filters.Names = None, provider: filters.Names = None, region: filters.Names = None, option: filters.Names = None, max_age_days: float | None = None
    ) -> list[Offer]:
        """Return the prices that can be ordered, cheapest GPU-hour first; each filter takes one name or several."""
        wanted = filters.offer_filter(self, gpu, provider, region, option)
        return [
            offer for offer in self._offers
            if (max_age_days is None or offer.age_days <= max_age_days)
            and all(allowed is None or getattr(offer, field) in allowed for field, allowed in wanted.items())
        ]  # fmt: skip
