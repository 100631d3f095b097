"""Writing files whole: an existing file is replaced only when the new one is complete."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucost.errors import UsageError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Hand out a temporary path beside `path`; when the block succeeds it takes the place of `path` in one step."""
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_symlink():
        if target.is_dir():
            raise UsageError(f"cannot write {target}: it is a folder. Name a file.")
        yield target  # a device such as /dev/null or a pipe is written in place
        return
    target = target.resolve()
    temporary = _temporary(target)
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise _refusal(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all; it ends in one newline."""
    write_bytes(path, (text.rstrip("\n") + "\n").encode("utf-8"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _temporary(target: Path) -> Path:
    """Make an empty file beside the target, with the permissions that the target has or a new file would get."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
        os.close(descriptor)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    except OSError as error:
        raise _refusal(target, error) from None
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refusal(target: Path, error: OSError) -> UsageError:
    if isinstance(error, FileNotFoundError):
        return UsageError(
            f"cannot write {target}: the folder {target.parent} does not exist. Make it, or name another file."
        )
    return UsageError(
        f"cannot write {target}: {error.strerror or error}. Name a file in a folder that you may write to."
    )
