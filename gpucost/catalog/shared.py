"""The catalogs that a process has read: questions that lean on the same facts share one, and changed facts are seen."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any

from gpucost import clock
from gpucost.catalog.core import Catalog, data_root, open_catalog, parse_day
from gpucost.catalog.settings import book_layers, general, present_folder, store_place

_MOST = 4  # catalogs kept, each with its market at some tens of megabytes

_catalogs: OrderedDict[tuple[Any, ...], Catalog] = OrderedDict()
_lock = Lock()


def shared_catalog(as_of: date | str | None = None, known_as_of: date | str | None = None) -> Catalog:
    """Return the catalog as of a day; the same one again while the day, the settings and the files of facts stay.

    A refreshed store, a changed book and another data folder are seen: the files are looked at on every call, not
    read. A store at an address is opened anew each time, as only its server knows whether it changed.
    """
    place = store_place()
    if isinstance(place, str) and "://" in place:
        return open_catalog(as_of, known_as_of)
    day, known_day = parse_day(as_of, "as_of"), parse_day(known_as_of, "known_as_of")
    root, layers = data_root(), book_layers()
    settings = tuple(sorted((item.name, str(item.value)) for item in general().values()))
    places = [Path(path) for path in (root, place, *layers.values()) if path is not None]
    # a relative path means another folder once the process has moved
    here = "" if all(path.is_absolute() for path in places) else present_folder()
    key = (
        (day, known_day, clock.today(), here, settings, root, place),
        tuple(layers.items()),
        tuple(_looks(entry for name in ("pricing", "models") for entry in _below(root / name))),
        tuple(_looks(file for folder in layers.values() for file in _below(folder))),
        tuple(_looks(_below(Path(place, "snapshots")))) if place is not None else (),
    )
    # held while a catalog is opened: two threads that ask for the same facts read them once
    with _lock:
        catalog = _catalogs.pop(key, None) or open_catalog(as_of, known_as_of)
        _catalogs[key] = catalog
        if len(_catalogs) > _MOST:
            _catalogs.popitem(last=False)
        return catalog


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files of a folder and of those in it, or the one file that is named."""
    if folder.is_file():
        yield from (entry for entry in os.scandir(folder.parent) if entry.name == folder.name)
        return
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    yield entry


def _looks(files: Iterable[os.DirEntry[str]]) -> list[tuple[Any, ...]]:
    """Return by what a change of files shows, in a fixed order."""
    looks = []
    for entry in files:
        with suppress(OSError):
            status = entry.stat()
            # a file that is replaced within a tick of the clock, by one of the same size, is another by its inode
            looks.append((entry.path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return sorted(looks)
