"""Unpacking archives from outside: named entries only, into names of our own, within a bound that is counted."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from gpucost.errors import DataError

_PIECE_BYTES = 1 << 20
_MOST_ENTRIES = 1_000


def unpacked(archive: Path, folder: Path, ending: str, most_bytes: float) -> Iterator[tuple[str, Path]]:
    """Yield the entries of a .zip that end so: their plain names and the files they were unpacked to.

    What an archive says of its sizes is not believed: the bytes are counted as they come. The names of entries are
    never used as paths.
    """
    left = int(most_bytes)
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [item for item in opened.infolist() if item.filename.endswith(ending) and not item.is_dir()]
            if len(entries) > _MOST_ENTRIES:
                raise DataError(f"holds more than {_MOST_ENTRIES} files", file=archive.name)
            for number, item in enumerate(entries):
                target = folder / f"entry-{number}{ending}"
                with opened.open(item) as packed, target.open("wb") as out:
                    while piece := packed.read(_PIECE_BYTES):
                        left -= len(piece)
                        if left < 0:  # a small archive may unpack to any size
                            raise DataError(f"unpacks to more than {most_bytes / 1e6:,.0f} MB", file=archive.name)
                        out.write(piece)
                yield Path(item.filename).name.removesuffix(ending).lower(), target
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise DataError(f"is not a complete .zip archive ({type(error).__name__})", file=archive.name) from None
