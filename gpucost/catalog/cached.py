"""What is kept in the user's cache folder: the shipped offers of today, asked of the database once a day, the dense
history in the shape of offers, made once of its tables, and texts such as the program that draws charts on pages.

What is kept follows from its key alone: for offers the bytes of their tables, the day and the text of the rule, for a
history its tables and the rule, for a text the name of its file. Under another key nothing is found. Refreshed prices
and a user's own book are never kept.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from hashlib import blake2b
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import astuple

from gpucost import clock, gate
from gpucost.catalog.loader import Store
from gpucost.catalog.settings import cache_folder
from gpucost.errors import GpuCostError
from gpucost.types import Offer

# columns of an offer that are days: JSON has none, so that they are read back from text
_DATE_COLUMNS = tuple(
    position for position, kind in enumerate(Offer.__annotations__.values()) if kind in (date, date | None)
)
# whatever a file of the cache does to its reader: it is then made again
_UNREADABLE = (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, GpuCostError)


class Offers(NamedTuple):
    """The offers of a day, cheapest first, how many have ended by reason, and the day of the newest record."""

    dated: date
    ended: Mapping[str, int]
    offers: Sequence[Offer]


def _offers_file() -> Path:
    return cache_folder() / "offers-of-today.json"


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _offers_key(store: Store, rule: str) -> str:
    """Return what the offers of today follow from, as a hash."""
    tables = [store.contents(name).digest for name in ("offers", "price_ends", "availability")]
    # the fields too: another version may have others
    return _hash("\n".join((*tables, clock.today().isoformat(), rule, *Offer.__struct_fields__)).encode())


def _unsealed(file: Path) -> bytes:
    """Return what a file holds below the hash of it; what was changed is no value."""
    seal, _, body = gate.read_bytes(file).partition(b"\n")
    if seal != _hash(body).encode():
        raise ValueError  # one of `_UNREADABLE`: what stands there is made again
    return body


def _seal(file: Path, body: bytes) -> None:
    """Write what can be made again below the hash of it, where a folder can be written."""
    from gpucost.store.files import write_bytes

    with suppress(*_UNREADABLE):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, _hash(body).encode() + b"\n" + body)


def text(name: str, make: Callable[[], str]) -> str:
    """Return a text that follows from its file's name alone: as an earlier start left it, or made and kept."""
    with suppress(*_UNREADABLE):
        return _unsealed(cache_folder() / name).decode()
    content = make()
    with suppress(*_UNREADABLE):  # a folder of the cache may have no name on this system
        _seal(cache_folder() / name, content.encode())
    return content


def read(store: Store, rule: str) -> Offers | None:
    """Return what is kept of today under the SQL of a rule; None where nothing is, or its bytes have changed."""
    with suppress(*_UNREADABLE):
        saved = json.loads(_unsealed(_offers_file()))
        if saved.get("key") == _offers_key(store, rule):
            columns = saved["columns"]
            day = cache(date.fromisoformat)  # thousands of offers have a few days between them
            for position in _DATE_COLUMNS:
                columns[position] = [day(cell) if cell else None for cell in columns[position]]
            return Offers(day(saved["dated"]), saved["ended"], list(starmap(Offer, zip(*columns, strict=True))))
    return None


def write(store: Store, rule: str, offers: Offers) -> None:
    """Keep the offers of today where a folder can be written; where none can, they are asked for again."""
    # by columns: each key is said once, not once an offer
    columns = [*zip(*map(astuple, offers.offers), strict=True)] or [() for _ in Offer.__struct_fields__]
    saved = {"key": _offers_key(store, rule), "dated": offers.dated, "ended": offers.ended, "columns": columns}
    _seal(_offers_file(), json.dumps(saved, default=date.isoformat, separators=(",", ":")).encode() + b"\n")


def _history_key(store: Store, rule: str) -> str:
    """Return what the dense history follows from, as a hash."""
    tables = map(store.table_digest, ("price_history", "price_sources", "offers", "systems"))
    return _hash("\n".join((*tables, rule)).encode())


def _history_folder() -> Path:
    return cache_folder() / "history"


def history_file(store: Store, rule: str) -> Path | None:
    """Return the Parquet file of the dense history under the SQL of a rule; None where none has the bytes it had."""
    if store.laid_over:  # rows beside the shipped ones are never kept
        return None
    with suppress(*_UNREADABLE):
        # the hash of its bytes is in its name: the database reads no file that has changed
        for file in _history_folder().glob(f"{_history_key(store, rule)}-*.parquet"):
            if file.stem.endswith(_hash(gate.read_bytes(file))):
                return file
    return None


def keep_history(store: Store, rule: str) -> None:
    """Keep the table `history_offers` under its key and the hash of its bytes, in the place of an earlier one."""
    from gpucost.store.files import put_parquet, write_bytes

    if store.laid_over:
        return
    with suppress(*_UNREADABLE):
        _history_folder().mkdir(parents=True, exist_ok=True)
        parquet = store.folder() / "history.parquet"
        put_parquet(store, "FROM history_offers", parquet)
        data = parquet.read_bytes()
        file = _history_folder() / f"{_history_key(store, rule)}-{_hash(data)}.parquet"
        write_bytes(file, data)
        for earlier in _history_folder().glob("*.parquet"):
            if earlier != file:
                earlier.unlink(missing_ok=True)
