"""The catalog as the rest of gpucost sees it: its layers, records by name, offers as of a day, rows, SQL, sources."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import starmap
from operator import attrgetter
from os import PathLike, fspath
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec.structs import replace

from gpucost import clock, gate
from gpucost.arguments.kinds import DATE, FILE
from gpucost.catalog import asof, cached, names, records
from gpucost.catalog.availability import UNSOLD, Availability
from gpucost.catalog.loader import Store, shipped_root
from gpucost.catalog.machines import MachineOnSale, machine_among, sold_index
from gpucost.catalog.names import Regions, near
from gpucost.catalog.records import OWN_SOURCE
from gpucost.catalog.settings import book_layers, setting, spoken_setting, store_place
from gpucost.catalog.shipped import Shipped
from gpucost.errors import DataError, UnknownNameError, UsageError
from gpucost.options import counted_age_days
from gpucost.schemas import HISTORY, TABLES
from gpucost.types import Accelerator, Architecture, Offer, ServedAs, System

if TYPE_CHECKING:
    import pandas

    from gpucost.catalog.books import PriceBook, Refreshed
    from gpucost.catalog.relations import Relation
    from gpucost.catalog.sandbox import Answer


Fill = Callable[["Catalog", Iterable[str], Mapping[str, Any]], Mapping[str, "Relation"]]


# --- The layers of a catalog: the shipped facts, refreshed prices over them, the user's own books over both.

RULE = asof.shipped_offers(False) + asof.prices_macro(False)  # what today's offers follow from, beside their tables


class _Layered(Shipped):
    """Facts with their sources and dates, the user's own over the shipped ones."""

    def __init__(
        self,
        as_of: date | None,
        known_as_of: date | None,
        root: Path,
        layers: dict[str, Path],
        store_at: str | Path | None = None,
        pinned_version: str | None = None,
    ) -> None:
        super().__init__(root, as_of, known_as_of)
        self._layers, self._store_at, self._pinned_version = layers, store_at, pinned_version
        self._over = False  # whether refreshed sources and tokens lie over the shipped tables
        self._laid: list[PriceBook] | None = None
        self.ended: Counter[str] = Counter()  # offers that are no more, by reason; counted when the offers are read
        self._prices_ready = ""  # "listed", or "dense" with the history
        self.derived: dict[str, Any] = {}  # what others made of these facts, kept as long as they are
        self.fill: Fill | None = None  # fills the relations of a question: the engines stand above the catalog
        self.making = RLock()  # whoever makes what takes long of these facts holds it: threads may share a catalog

    # --- rows and SQL

    @property
    def books(self) -> "list[PriceBook]":
        """Return the price books that lie over the shipped tables, the nearest last; reading them happens once."""
        if not self._layers:
            return []
        if self._laid is not None:
            return self._laid
        from gpucost.catalog.books import lay_over

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
        version = self._pinned_version
        if version == "shipped" or (version is not None and version == self.shipped_version):
            return None
        # the user's own folder of refreshed prices need not be there
        if self._store_at is None or (isinstance(self._store_at, Path) and not self._store_at.is_dir()):
            if version is not None:
                raise self._unknown_version([])
            return None
        from gpucost.catalog.books import opened, refreshed

        last = None
        if version is not None:
            ids = [snapshot.id for snapshot in opened(self._store_at).snapshots]
            # a snapshot by its id, or by the stamp of an answer: day+digest of the facts+refreshed-id.id…, newest first
            _, digest, *layers = version.split("+") if "+" in version else ("", "", version)
            if not digest or digest == self.store.digest()[:12]:
                refreshed_layers = [layer for layer in layers if not digest or layer.startswith("refreshed-")]
                last = refreshed_layers[0].removeprefix("refreshed-").partition(".")[0] if refreshed_layers else None
            if last not in ids:
                raise self._unknown_version(ids)
        until = min(self.as_of, self.known_as_of or self.as_of)
        return refreshed(self._store_at, until, self.looks_back, last)

    @cached_property
    def shipped_version(self) -> str:
        """Return the version of the facts that this package ships."""
        return f"{self.dated.isoformat()}+{self.store.digest()[:12]}"

    def _unknown_version(self, ids: Sequence[str]) -> UnknownNameError:
        hint = "`gpucost prices snapshots` lists what is here; other versions came with other releases of gpucost."
        version, known = str(self._pinned_version), [self.shipped_version, "shipped", *ids]
        return UnknownNameError("version of the facts", version, near(version, known), hint)

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
        """Return the day of the newest price and the content hash that stamp every answer."""
        fresh = self.refreshed.version if self.refreshed is not None else ""
        books = "".join(f"+{book.layer}-{book.digest[:8]}" for book in self.books)
        dense = f"+history-{self.store.table_digest('price_history')[:8]}" if self.looks_back else ""
        newest = max((self.dated, *(self.refreshed.days_of_prices if self.refreshed is not None else ())))
        return f"{newest.isoformat()}+{self.store.digest()[:12]}{dense}{fresh}{books}"

    # --- provenance

    @cached_property
    def _sources(self) -> dict[str, dict[str, Any]]:
        user = {"publisher": "the user", "title": "the user's own book", "locator": "the book folder"}
        blank = dict.fromkeys(("published_on", "accessed_on", "note"))
        sources = {OWN_SOURCE: {"source_id": OWN_SOURCE, **user, **blank}}
        return sources | {
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
    def cached_offers(self) -> cached.Offers | None:
        """Return the shipped offers of today as an earlier start left them, where today is the day asked about."""
        return cached.read(self.store, RULE) if self.usual else None

    @property
    def usual(self) -> bool:
        """Tell whether the catalog is seen from today with all that is known, unless its own date is later."""
        return self._stated_as_of is None and self.known_as_of is None

    @cached_property
    def dated(self) -> date:
        """Return the day of the newest price that the catalog has recorded."""
        return self.cached_offers.dated if self.cached_offers is not None else super().dated


# --- Records by name, offers as of a day, rows and SQL.

_Marked = TypeVar("_Marked", Accelerator, System, Architecture)

_ON_DAY = "SELECT * FROM prices_on($on_day, $known_day)"
_ROWS_AT_ONCE = 5_000  # wide rows of a book of millions would not fit in memory together
_OFFER_CELLS = tuple(records.cells_of(Offer, without=("sale",)))  # in the order of an offer's fields


def open_catalog(
    as_of: date | str | None = None,
    known_as_of: date | str | None = None,
    *,
    root: str | Path | None = None,
    book: str | Path | None = None,
    store: str | Path | None = None,
    version: str | None = None,
    checked: bool = True,
) -> "Catalog":
    """Open the catalog as of a day, as known on a day; nothing is read before it is asked for.

    `as_of` is today unless given (the catalog's own date where the computer's clock is behind it); `known_as_of`
    hides what was recorded later. `root` replaces the shipped data by another folder of the same layout, the setting
    `data` unless given; it is refused where it breaks a rule of the shipped one, unless `checked` is False. `book` is
    the folder of the user's own facts, the setting `book` unless given; `store` is the folder or address of refreshed
    prices, the setting `store` unless given. `version` answers from the facts of a version that an answer named, or of
    a snapshot of the store, or from what is "shipped": the setting `catalog` unless given.
    """
    day, known_day = parse_day(as_of, "as_of"), parse_day(known_as_of, "known_as_of")
    paths = {"--root": root, "--book": book, "--store": store}
    folder, book_place, store_at = (
        value if value is None else FILE.read(value, argument) for argument, value in paths.items()
    )
    store_path = store_at or (None if folder else store_place())  # the user's store refreshes the shipped facts alone
    catalog = Catalog(
        day, known_day, data_root(folder), book_layers(book_place), store_path, version or setting("catalog")
    )
    if checked and catalog.store.root != shipped_root():

        def no_faults() -> str:
            from gpucost.catalog.checks import check_folder

            if faults := check_folder(catalog.store.root).faults:
                others = f" (and {len(faults) - 1:,} more; `gpucost data check` lists them)" if len(faults) > 1 else ""
                raise DataError(f"{faults[0]}{others}", file=_called(catalog.store.root, folder))
            return "no faults"

        # checking takes seconds: that a folder of these bytes has no fault is kept
        cached.text(f"checked-{catalog.store.digest()}.txt", no_faults)
    return catalog


def data_root(folder: str | None = None) -> Path:
    """Return the folder of the facts: the one given, else the setting `data`, else the shipped ones."""
    place = folder or setting("data")
    if not place:
        return shipped_root()
    root = gate.expanded(place)
    if not (root / "models").is_dir():
        raise UsageError(f"{_called(root, folder)} has no folder models/. Name a folder with pricing/ and models/.")
    return root


def _called(root: Path, folder: str | None) -> str:
    return f"the data folder {root}{'' if folder else ' (setting `data`)'}"


def parse_day(value: date | str | None, name: str) -> date | None:
    """Return a day as given, else as the setting of its name says."""
    argument = f"--{name.replace('_', '-')}"
    if value is None and (spoken := spoken_setting(name)):
        value, argument = str(spoken.value), f"{spoken.speaker}: {name}"
    return None if value is None else date.fromisoformat(DATE.read(value, argument))


def _reopened(places: tuple[Any, ...], laid: dict[str, Any]) -> "Catalog":
    catalog = Catalog(*places)
    catalog.derived.update(laid)
    return catalog


class Catalog(_Layered):
    """Facts with their sources and dates, seen from one day, the user's own over the shipped ones."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how another process opens it again: on the same days, from the same folders."""
        places = (
            self._stated_as_of,
            self.known_as_of,
            self.store.root,
            self._layers,
            self._store_at,
            self._pinned_version,
        )
        laid = self.derived.get("laid_over", ())  # what a caller put in the place of a table, for this catalog alone
        return _reopened, (
            places,
            {name: self.derived[name] for name in ("quote_fates", *laid) if name in self.derived},
        )

    # --- SQL

    @overload
    def sql(self, query: str) -> list[dict[str, Any]]: ...

    @overload
    def sql(self, query: str, **question: Any) -> "pandas.DataFrame": ...

    def sql(self, query: str, **question: Any) -> "list[dict[str, Any]] | pandas.DataFrame":
        """Run one SELECT over every table and view: read-only, without files or network, limited in time and memory.

        A question (`model`, `tokens` and what else `gpucost sql --help` names) fills the relations `speeds`,
        `estimates`, `served` and `deployments`; the answer is then a data frame.
        """
        if not question:
            return self.ask(query).rows
        import pandas

        answer = self.ask(query, question)
        return pandas.DataFrame(answer.rows, columns=answer.columns)

    def ask(self, query: str, question: Mapping[str, Any] | None = None, **limits: object) -> "Answer":
        """Run one SELECT as `sql` does, with limits of its own; return its columns, too."""
        from gpucost.catalog.relations import questioned_in
        from gpucost.catalog.sandbox import bounds, run

        if not isinstance(query, str):
            raise UsageError(f"a query must be text, not {gate.shown(query)}. Write it in SQL.")
        days = {"as_of": self.as_of, "known_as_of": self.known_as_of}
        places = {"root": self.store.root, "layers": self._layers, "store_at": self._store_at}
        filled: Mapping[str, Relation] = {}
        if question:
            if self.fill is None:
                raise UsageError(
                    "this catalog holds facts alone; gpucost.open_catalog() also answers questions in SQL."
                )
            filled = self.fill(self, questioned_in(query), question)
        return run({**days, **places}, query, bounds(**limits), filled)

    def copied(self, tables: frozenset[str], history: bool = False) -> Store:
        """Return a store of its own with some tables; with all of them also views: `facts`, `prices` and the like."""
        # a store of its own: what is done to it, or locked in it, leaves this one as it is
        copy = Catalog(self.as_of, self.known_as_of, self.store.root, self._layers, self._store_at)
        copy.laid.ensure(*sorted(tables))
        if len(tables) == len(TABLES):
            from gpucost.catalog.shipped import facts_view

            copy.prepare_prices(history)
            # offers of machines that no list has in their region; asked before the macro that also takes one day
            cells = "offer_id, provider, instance_type, region, option, observed_on, book, price_kind, source_id"
            rows = copy.query_prices(f"SELECT {cells} FROM ({_ON_DAY}) WHERE region IS NOT NULL AND ended IS NULL")
            unsold = [str(row["offer_id"]) for row in rows if copy.availability.of(row).status == "unlisted"]
            copy.store.ensure(*[HISTORY.name] * history)
            known_day = self.known_as_of or asof.FOREVER
            copy.store.execute(copy._prices_macro(known_day))
            copy.store.execute(facts_view())
            on = f"prices_on(DATE '{self.as_of}', DATE '{known_day}')"
            copy.store.execute(f"CREATE OR REPLACE VIEW prices AS {asof.ranks_sql(on, unsold)}")
        return copy.store

    # --- names

    def _index(self, table: str) -> names.NameIndex:
        _ = self.books
        return self.index(table)

    @cached_property
    def _ids_of_books(self) -> frozenset[str]:
        return frozenset().union(*(book.all_ids for book in self.books))

    def _marked(self, record: _Marked) -> _Marked:
        """Mark what comes from the user's own book, or from an assumption of ours."""
        is_of_user = record.source_id == OWN_SOURCE or getattr(record, "id", record.name) in self._ids_of_books
        return replace(record, status="user") if is_of_user else record

    @cached_property
    def _accelerators(self) -> dict[str, Accelerator]:
        measured: dict[str, dict[str, int]] = {}
        for row in self.rows("measured_chips"):
            record = measured.setdefault(str(row["accelerator_id"]), {})
            record[f"{row['kind']}_sources"] = int(row["sources"])
            if row["kind"] == "training":
                record["training_largest_gpus"] = int(row["largest_gpus"] or 0)
        known = {row["id"]: records.record(Accelerator, row) for row in self.rows("accelerators")}
        return {name: self._marked(replace(chip, **measured.get(name, {}))) for name, chip in known.items()}

    @cached_property
    def accelerator_names(self) -> names.NameIndex:
        """Return the index of accelerator names."""
        return self._index("accelerators")

    @cached_property
    def _systems(self) -> dict[str, System]:
        return {row["id"]: self._marked(records.record(System, row)) for row in self.rows("systems")}

    @cached_property
    def system_names(self) -> names.NameIndex:
        """Return the index of system names."""
        return self._index("systems")

    @property
    def presets(self) -> list[Architecture]:
        """Return every preset architecture."""
        return [self._architecture(id_) for id_ in self._model_rows]

    @cached_property
    def _model_rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.rows("llms")}

    @cached_property
    def _architectures(self) -> dict[str, Architecture]:
        return {}

    def _architecture(self, id_: str) -> Architecture:
        """Build a preset when it is first asked for: those with a configuration are read layer by layer."""
        if id_ not in self._architectures:
            built = self._marked(records.architecture(self._model_rows[id_]))
            self._architectures[id_] = replace(built, served_as=tuple(self._served_as.get(id_, ())))
        return self._architectures[id_]

    @cached_property
    def _served_as(self) -> dict[str, list[ServedAs]]:
        served: dict[str, list[ServedAs]] = {}
        for row in self.rows("serving_configurations"):
            served.setdefault(row["model_id"], []).append(records.record(ServedAs, row))
        return served

    @cached_property
    def model_names(self) -> names.NameIndex:
        """Return the index of model names."""
        return self._index("llms")

    # --- records

    def accelerator(self, name: str) -> Accelerator:
        """Return the one accelerator that a name means: of a family its flagship, of a machine what it holds."""
        ids = self._accelerator_ids(name)
        if len(ids) != 1 and (flagship := self.flagship(name)):
            ids = [flagship]
        return self._accelerators[ids[0] if len(ids) == 1 else self.accelerator_names.one(name)]

    def _accelerator_ids(self, name: str) -> list[str]:
        """Return the accelerators that a name means, at least one: its own matches, else what its machine holds."""
        if ids := self.accelerator_names.matches(name):
            return ids
        machine = self.machine(name)
        return [machine.accelerator_id if machine else self.accelerator_names.unknown(name, self._nearest_hardware)]

    def machine(self, name: str | None) -> MachineOnSale | None:
        """Return the machine that is named where an accelerator is asked for; None for an accelerator's own name.

        Servers and instance types of the systems are looked through first, then what is on sale.
        """
        if not name or self.accelerator_names.matches(name) or names.why_not("accelerator", name):
            return None
        machine = machine_among(self.system_names, name)
        if machine:
            return machine
        machine = machine_among(self._sold_names, name)
        return replace(machine, id=None) if machine else None

    def gpus_in(self, name: str | None) -> int | None:
        """Return how many accelerators are in the machine that is named where an accelerator is asked for."""
        machine = self.machine(name)
        return machine.gpus if machine else None

    @cached_property
    def _sold_names(self) -> names.NameIndex:
        return sold_index(self.offers())

    def _nearest_hardware(self, name: str) -> list[str]:
        """Return up to three accelerators, flagships first, and systems that look like a name."""
        # of equally near names a flagship is meant sooner than its variants, a chip sooner than a machine
        flagships = set(self._flagships.values())
        near = [
            (away[0], index is not self.accelerator_names, id_ not in flagships, away[1], id_)
            for index in (self.accelerator_names, self.system_names)
            for away, id_ in index.resembling(name)
        ]
        return [id_ for *_, id_ in sorted(near)[:3]]

    def holding(self, *typed: names.Names) -> list[str]:
        """Say what each machine that a filter by accelerator names holds, and how to keep to its seller."""
        unique_names = dict.fromkeys(name for filtered in typed if filtered for name in names.listed(filtered))
        return [machine.sentence + machine.seller for name in unique_names if (machine := self.machine(name))]

    def taken(self, *names: str | None) -> list[str]:
        """Say which accelerator each name is taken as that is a machine's or may mean several."""
        sentences = []
        for name in dict.fromkeys(names):
            if machine := self.machine(name):
                sentences.append(machine.sentence)
            elif name and len(ids := self.accelerator_names.matches(name)) > 1:
                accelerator_id = self.accelerator(name).id
                other_ids = " or ".join(id_ for id_ in ids if id_ != accelerator_id)
                sentences.append(f"{name} is taken as {accelerator_id}, not {other_ids}.")
        return sentences

    def flagship(self, name: str) -> str | None:
        """Return the accelerator that a name which may mean several stands for where one is needed."""
        return self._flagships.get(names.tokens_of(name))

    @cached_property
    def _flagships(self) -> dict[frozenset[str], str]:
        return {names.tokens_of(name): id_ for name, id_ in self.aliases.get("flagship", {}).items()}

    def accelerators(self, name: str | None = None) -> list[Accelerator]:
        """Return every accelerator that a name, such as a family, means; all of them without a name."""
        if name is None:
            return list(self._accelerators.values())
        return [self._accelerators[id_] for id_ in self._accelerator_ids(name)]

    def system(self, name: str) -> System:
        """Return the one system that a name means."""
        return self._systems[self.system_names.one(name)]

    def systems(self, name: str | None = None) -> list[System]:
        """Return every system that a name means, or whose accelerator it means; all of them without a name."""
        if name is None:
            return list(self._systems.values())
        # a machine's own name first; else the chip that the machines hold
        chips = [] if (ids := self.system_names.matches(name)) else self.accelerator_names.matches(name)
        holding = [system for system in self._systems.values() if system.accelerator_id in chips]
        return holding or [self._systems[id_] for id_ in ids or self.system_names.several(name)]

    def default_system(self, accelerator_id: str) -> System:
        """Return the node used when none is named: the vendor's own 8-GPU class, else a synthesised one, marked so."""
        return records.default_system(self.accelerator(accelerator_id), list(self._systems.values()))

    def system_for(self, offer: Offer) -> System:
        """Return the node that an offer is; without a named scale-out network where none is known."""
        # instances have ids made of seller and product, whether or not their offer names one
        for name in (offer.system_id, f"{offer.provider}-{offer.instance_type.lower()}"):
            if (system := self._systems.get(name)) and system.accelerator_id == offer.gpu:
                return system
        return records.offer_system(offer, self._accelerators[offer.gpu])

    def architecture(self, name: str | PathLike[str]) -> Architecture:
        """Return an architecture: a preset, an alias, the path of a config.json, or a size such as "11b"."""
        name = fspath(name)
        architecture = names.from_file_or_size(name, self.model_names, lambda: self.presets)
        if architecture is None and not self.model_names.matches(name):
            # one that gives no tokens out is known, and of no use to a question about language models
            for row in self.rows("task_models"):
                if row["id"] == name.lower():
                    from gpucost.physics.tasks import NAMES

                    raise UsageError(f"{name} is {NAMES[row['kind']]}: only `gpucost inference` answers for it.")
        return architecture or self._architecture(self.model_names.one(name))

    def architectures(self, name: str | None = None) -> list[Architecture]:
        """Return every architecture that a name means; all presets without a name."""
        if name is not None and (architecture := names.from_file_or_size(name, self.model_names, lambda: self.presets)):
            return [architecture]
        ids = list(self._model_rows) if name is None else self.model_names.several(name)
        return [self._architecture(id_) for id_ in ids]

    def relatives(self, architecture: Architecture) -> list[Architecture]:
        """Return the presets of an architecture's family, itself among them; none where it is of no family."""
        family = architecture.family
        return [self._architecture(id_) for id_, row in self._model_rows.items() if family and row["family"] == family]

    # --- offers

    def prepare_prices(self, history: bool = False) -> None:
        """Make the views `book_offers` and `prices_on(day, known_day)` over every price book."""
        history = history or self.looks_back
        _ = self.books
        extent = "dense" if history else "listed"
        with self.store.lock:
            if self._prices_ready == extent:
                return
            self.store.ensure("offers", "price_ends")
            listed = [asof.shipped_offers(history)]
            if history:
                asof.load_history(self.store)
            if self.refreshed is not None:
                self._lay_refreshed()
                parts = self.refreshed
                if history and not self.looks_back and self._store_at is not None:
                    from gpucost.catalog import books

                    # a catalog of today that shows a history needs every part that was kept, not the newest alone
                    parts = books.refreshed(self._store_at, self.as_of, True)
                listed += parts.offers(self.store)
            if self.books:
                from gpucost.catalog.books import price_views

                price_views(self, self.books, listed)
            else:
                self.store.execute(asof.offers_view(listed))
            self.store.execute(self._prices_macro())
            self._prices_ready = extent

    def _prices_macro(self, usual_known_day: date | None = None) -> str:
        discounted = any(book.discounts for book in self.books)
        return asof.prices_macro(bool(self.books), usual_known_day, discounted)

    def query_prices(self, sql: str) -> list[dict[str, Any]]:
        """Run the library's own query over `prices_on($on_day, $known_day)` with this catalog's days."""
        self.prepare_prices()
        return self.store.fetch(sql, self._days)

    @property
    def _days(self) -> dict[str, date]:
        return {"on_day": self.as_of, "known_day": self.known_as_of or asof.FOREVER}

    def offer_values(self, column: str) -> list[Any]:
        """Return the distinct values of a column over every recorded offer."""
        self.prepare_prices()
        return [
            row["value"]
            for row in self.store.fetch(
                f'SELECT DISTINCT "{column}" AS value FROM book_offers WHERE "{column}" IS NOT NULL'
            )
        ]

    @cached_property
    def price_rows(self) -> list[dict[str, Any]]:
        """Return one row per offer as of the catalog's day, those in conflict or of an ambiguous GPU marked."""
        rows = self.query_prices(_ON_DAY)  # sorting wide rows is quicker here than there
        for row in rows:
            row["sale"], row["sale_source_id"], row["sale_on"], row["zones"] = sale = self.availability.of(row)
            if sale.status == "unlisted":
                row["ended"] = row["ended"] or UNSOLD
        return sorted(rows, key=lambda row: (row["usd_per_gpu_hour"], row["offer_id"]))

    @cached_property
    def _offers(self) -> Sequence[Offer]:
        # only what the package ships is kept between starts: books and stores change under the same name
        plain = not self.books and not (self.refreshed and self.refreshed.parts)
        if plain and self.cached_offers is not None:
            self.ended = Counter(self.cached_offers.ended)
            return self.cached_offers.offers
        offers = self._queried_offers()
        if plain and self.usual and self.as_of == clock.today():
            cached.write(self.store, RULE, cached.Offers(self.dated, self.ended, offers))
        return offers

    def _queried_offers(self) -> list[Offer]:
        self.prepare_prices()
        usable = "NOT conflict AND NOT gpu_ambiguous AND ended IS NULL"
        cells = ", ".join(_OFFER_CELLS)
        cursor = self.store.execute(f"SELECT {cells}, {usable} AS usable, ended FROM ({_ON_DAY})", self._days)
        self.ended = Counter()
        lists, offers = self.availability, []
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):  # a row takes more memory than its offer
            self.ended.update(row[-1] for row in rows if row[-1])
            for offer in starmap(Offer, (row[:-2] for row in rows if row[-2])):
                if (sale := lists.of(offer).status) == "unlisted":
                    self.ended[UNSOLD] += 1
                else:
                    offers.append(offer if sale == offer.sale else replace(offer, sale=sale))
        return sorted(offers, key=attrgetter("usd_per_gpu_hour", "offer_id"))

    def quote_fates(self) -> list[dict[str, Any]]:
        """Return what became of quotes; who counts anew what was known on a past day lays it into `derived`."""
        fates: list[dict[str, Any]] = self.derived.get("quote_fates") or self.rows("quote_fates")
        return fates

    @cached_property
    def availability(self) -> Availability:
        """Return what lists say of which machine is sold where."""
        return Availability(self.rows("availability"), self.known_as_of or self.as_of)

    def offers(
        self,
        gpu: names.Names = None,
        provider: names.Names = None,
        region: names.Names = None,
        option: names.Names = None,
        max_age_days: float | None = None,
    ) -> list[Offer]:
        """Return the prices that can be ordered, cheapest GPU-hour first; each filter takes one name or several."""
        allowed_values = self.offer_filter(gpu, provider, region, option)
        # a list of its own, which the caller may sort or cut
        if max_age_days is None and all(allowed is None for allowed in allowed_values.values()):
            return list(self._offers)
        return [
            offer
            for offer in self._offers
            if (max_age_days is None or counted_age_days(offer.age_days, offer.price_kind) <= max_age_days)
            and all(allowed is None or getattr(offer, field) in allowed for field, allowed in allowed_values.items())
        ]

    def offer_filter(
        self, gpu: names.Names, provider: names.Names, region: names.Names, option: names.Names
    ) -> dict[str, set[str] | None]:
        """Turn the names of a filter into the sets of values that each column of an offer may have; None is any."""
        gpus = None if gpu is None else {chip.id for name in names.listed(gpu) for chip in self.accelerators(name)}
        regions = None
        if region is not None:  # some names are of groups, such as europe; the others of regions that offers have
            groups = {name: self.regions.members(name) for name in names.listed(region)}
            plain = [name for name, members in groups.items() if members is None]
            regions = (self._recorded("region", plain) if plain else None) or set()
            regions = regions.union(*(members for members in groups.values() if members is not None))
        return {
            "gpu": gpus,
            "provider": self._recorded("provider", provider),
            "region": regions,
            "option": names.options(option),
        }

    @cached_property
    def regions(self) -> Regions:
        """Return the groups of regions."""
        return Regions(self.rows("region_groups"), self.rows("cloud_regions"))

    def _recorded(self, column: str, typed: names.Names) -> set[str] | None:
        if typed is None:
            return None
        values = [self.alias(column, name) for name in names.listed(typed)]
        groups = self.regions.names if column == "region" else ()
        return names.matching(column, values, {str(value) for value in self.offer_values(column)}, groups)
