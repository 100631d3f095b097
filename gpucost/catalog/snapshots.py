"""Refreshed prices over the shipped ones: the newest whole snapshot part of each source speaks, and says so."""

import warnings
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from gpucost import gate
from gpucost.catalog.loader import Store, engine, file_name, quoted, said_first
from gpucost.errors import DataError
from gpucost.frozen import Frozen
from gpucost.schemas import TABLES
from gpucost.store.folder import Folder, Part, Snapshot

LAYER = "refreshed"
_MANY = 4  # snapshots that an answer's version names one by one


class StoreWarning(UserWarning):
    """Something in the store of refreshed prices cannot be used."""


class Refreshed(Frozen):
    """Parts of snapshots that speak on a day, each with its file."""

    parts: Sequence[tuple[Snapshot, Part, Path]]

    @property
    def version(self) -> str:
        """Return the ids of the snapshots as an answer's version carries them, the newest first."""
        ids = list(dict.fromkeys(snapshot.id for snapshot, _, _ in self.parts))
        more = f".and-{len(ids) - _MANY}-more" if len(ids) > _MANY else ""
        return f"+{LAYER}-{'.'.join(ids[:_MANY])}{more}" if ids else ""

    def offers(self, store: Store) -> list[str]:
        """Return the SQL of the prices of each part that can be read."""
        from gpucost.catalog.large import parquet_part

        found = []
        for _, part, file in self.parts:
            if part.kind == "offers":
                try:
                    found.append(parquet_part(store, LAYER, file))
                except DataError as error:
                    _warn(str(error))
        return found

    def lay_over(self, store: Store) -> None:
        """Put the parts' sources and prices of tokens beside the shipped rows."""
        store.laid_over = store.laid_over or bool(self.parts)
        for _, part, file in self.parts:
            _insert(store, "price_sources", _values(part))
            if part.kind == "tokens":
                names = ", ".join(TABLES["hosted_tokens"].names)
                _insert(store, "hosted_tokens", f"SELECT {names} FROM read_parquet({file_name(file)})")


def refreshed(place: Path | str | None, until: date, every: bool) -> Refreshed:
    """Return what a store says until a day: the newest part of each source, or every one where the past is asked."""
    if place is None:
        return Refreshed(())
    folder = opened(place)
    parts = folder.newest(until, every) if folder else []
    if not folder and isinstance(place, str):  # the user's own folder need not be there; one that is named should
        _warn(f"the store {place} holds no snapshots; the shipped prices speak")
    for fault in folder.faults:
        _warn(fault)
    return Refreshed(parts)


def opened(place: Path | str) -> Folder:
    """Open a store: a folder, or the copy of one that is published at an address."""
    from gpucost.store.remote import fetched, is_remote

    if isinstance(place, str) and is_remote(place):
        from gpucost.catalog.settings import cache_folder

        return fetched(place, cache_folder() / "stores")
    return Folder(gate.expanded(place))


def _insert(store: Store, table: str, rows: str) -> None:
    store.ensure(table)
    same = " AND ".join(f't."{name}" IS NOT DISTINCT FROM r."{name}"' for name in TABLES[table].key)
    names = ", ".join(TABLES[table].names)
    missing = f'SELECT {names} FROM ({rows}) AS r WHERE NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE {same})'
    try:
        store.execute(f'INSERT INTO "{table}" {missing}')
    except engine().Error as error:
        _warn(f"refreshed rows of {table} are left out: {said_first(error)}")


def _values(part: Part) -> str:
    cells = {**dict.fromkeys(TABLES["price_sources"].names, "NULL")}
    cells |= {name: quoted(str(text)) for name, text in part.origin.items() if name in cells}
    cells["accessed_on"] = f"DATE '{part.observed_on}'"
    return "SELECT " + ", ".join(f"{value} AS {name}" for name, value in cells.items())


def _warn(text: str) -> None:
    warnings.warn(text, StoreWarning, stacklevel=3)
