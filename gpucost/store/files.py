"""Writing files whole: an existing file is replaced only when the new one is complete; only regular files are written.

Beside the target stands a temporary file while the new one is made, locked by its writer: one without a lock has lost
its writer and is removed by the next. So are folders among the system's temporary ones.
"""

import errno
import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gpucost.errors import DiskError, UsageError
from gpucost.gate import shown

_MARK = ".part-"  # in the name of a temporary file, after the target's
_YOUNG_S = 60.0  # so long a temporary file may not have got its lock yet; of an older one the lock alone decides
_FOLDER = "gpucost-folder-"  # before the process in the name of a temporary folder


class SpareFolder(tempfile.TemporaryDirectory[str]):
    """A locked folder among the system's temporary ones; it goes with its block or its last user."""

    def __init__(self) -> None:
        _clean(Path(tempfile.gettempdir()), _FOLDER)
        super().__init__(prefix=f"{_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True)
        with suppress(OSError):  # a system that opens no folders has no lock for them
            # held as long as the folder: a lock goes with the process, however that ends
            descriptor = os.open(self.name, os.O_RDONLY)
            weakref.finalize(self, os.close, descriptor)
            _locks(descriptor)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Hand out a temporary path beside `path`; when the block succeeds it takes the place of `path` in one step."""
    target = _regular(path)
    _clean(target.parent, f".{target.name[:100]}{_MARK}")
    temporary_name = f".{target.name[:100]}{_MARK}{os.getpid()}-{os.urandom(4).hex()}{target.suffix[:20]}"
    temporary, descriptor = target.parent / temporary_name, -1
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        _locks(descriptor)
        if target.exists():
            mode = target.stat().st_mode & 0o777
        else:  # as the system would make it; its mask can only be read by setting it
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(temporary, mode)
        yield temporary
        os.replace(temporary, target)
    except Exception as error:
        if not (isinstance(error, UnicodeError) or is_of_disk(error)):
            raise
        raise disk_trouble(target, error) from None
    finally:  # an interrupt at any line leaves no file
        with suppress(OSError, ValueError):
            temporary.unlink()
        if descriptor >= 0:
            os.close(descriptor)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all; it ends in one newline."""
    write_bytes(path, (text.rstrip("\n") + "\n").encode("utf-8", "backslashreplace"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def put_parquet(connection: Any, rows: str, target: Path, how: str = "") -> None:
    """Have a database write what a query gives as a Parquet file; a disk that takes it not is a sentence."""
    name = str(target).replace("'", "''")
    try:  # a file of the database's own beside the target would stay behind when the program is killed
        connection.execute(f"COPY ({rows}) TO '{name}' (FORMAT parquet, USE_TMP_FILE false{how})")
    except Exception as error:
        if not is_of_disk(error):
            raise
        target.unlink(missing_ok=True)
        raise disk_trouble(target, error) from None


def _regular(path: str | Path) -> Path:
    """Return where a path leads, through links; refuse what is there and no regular file."""
    try:
        target = Path(path)
        target = target.resolve()
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except TypeError:
        raise UsageError(f"cannot write {shown(path)}: it is not a path. Name a file.") from None
    # a circle of links, a NUL byte in the name, a folder that may not be entered
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name leads nowhere"
        raise UsageError(f"cannot write {str(path)[:200]!r}: {reason}. Name a file.") from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"cannot write {path}: it is a folder. Name a file.")
    if not stat.S_ISREG(mode):
        raise UsageError(
            f"cannot write {path}: it is a device or a pipe. Name a file, or leave -o out and redirect with >."
        )
    return target


def _clean(folder: Path, start: str) -> None:
    """Remove the temporary files and folders of such a name that no living process has locked."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if not entry.name.startswith(start) or entry.is_symlink():
                continue
            with suppress(OSError):
                is_young = time.time() - entry.stat(follow_symlinks=False).st_mtime < _YOUNG_S
                if is_young and _alive(entry.name, start):
                    continue
                is_folder = entry.is_dir()
                descriptor = os.open(entry.path, os.O_RDONLY if is_folder else os.O_RDWR)
                try:
                    if _locks(descriptor):
                        (shutil.rmtree if is_folder else os.unlink)(entry.path)
                finally:
                    os.close(descriptor)


def _alive(name: str, start: str) -> bool:
    """Tell whether the process in a temporary file's name lives here."""
    number = name[len(start) :].partition("-")[0]
    try:
        os.kill(int(number), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:  # it lives, and belongs to somebody else
        return True
    return True


def _locks(descriptor: int) -> bool:
    """Take the lock of a file unless another has it; tell whether it was taken. A system without locks says no."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# DuckDB raises one class for every trouble with files, without the system's number: its words alone tell them apart
_FULL_TEXT = re.compile("no space left|quota exceeded|file too large", re.IGNORECASE)
_WRITING_TEXT = re.compile(r"\b(write|create|truncate|sync|read-only)\b|cannot open file", re.IGNORECASE)


def is_of_disk(error: BaseException) -> bool:
    """Tell whether an error is one of files: the system's, or the database's over a file that it writes."""
    if type(error).__name__ == "IOException" and type(error).__module__.endswith("duckdb"):
        return bool(_FULL_TEXT.search(str(error)) or _WRITING_TEXT.search(str(error)))
    return isinstance(error, OSError)


def disk_trouble(target: Path, error: Exception) -> DiskError:
    """Return why a file cannot be written, and what helps."""
    folder = target.parent
    if not folder.is_dir():
        return DiskError(f"cannot write {target}: the folder {folder} does not exist. Make it, or name another file.")
    number = getattr(error, "errno", None)
    if _lies_with_temporary_folder(folder, error):
        return DiskError(
            f"cannot write {target}: the temporary folder is full or cannot be written. Make room there, or name"
            " another one in the environment variable TMPDIR."
        )
    if number in _FULL or (number is None and _FULL_TEXT.search(str(error))):
        return DiskError(f"cannot write {target}: no space is left in {folder}. Make room, or name another folder.")
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
    return DiskError(f"cannot write {target}: {reason}. Name a file in a folder that you may write to.")


def _lies_with_temporary_folder(folder: Path, error: Exception) -> bool:
    """Tell whether it is the folder for temporary files, and not the target's, that cannot take anything."""
    if "usable temporary directory" in str(error):
        return True
    if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        return False
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError:  # it looks for a folder that takes a file, and there is none
        return True
    # the database may spill there first: whichever disk has less room is the full one
    return _free_bytes(temporary) < _free_bytes(folder) and temporary.stat().st_dev != folder.stat().st_dev


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free
