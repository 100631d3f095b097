"""Architectures that are no preset: read from a file, or synthesised for a bare size."""

from collections.abc import Callable
from pathlib import Path

from gpucost import gate
from gpucost.catalog.names import NameIndex
from gpucost.errors import UsageError
from gpucost.types import Architecture


def from_file_or_size(name: str, known: NameIndex, presets: Callable[[], list[Architecture]]) -> Architecture | None:
    """Return the architecture of a config.json or of a bare size without an alias; None for any other name."""
    if not name.strip():
        raise UsageError("the model's name is empty. Name a preset, a size such as 8b, or a config.json.")
    if name in known.rows and name.lower().endswith(".json"):
        return None
    path = gate.expanded(name)
    if name.lower().endswith(".json") or _holds_config(path):
        from gpucost.architectures.reader import read_config

        return read_config(path)
    if not name[:1].isdigit() or known.exact(name):
        return None
    from gpucost.architectures.synthesise import size_of, synthesise

    size = size_of(name)
    if size is None:
        return None
    return synthesise(name, size, presets())


def _holds_config(path: Path) -> bool:
    """Tell whether a path is a folder with a configuration; a name that no file can have is none."""
    try:
        return any((path / name).is_file() for name in ("config.json", "params.json"))
    except (OSError, ValueError):
        return False
