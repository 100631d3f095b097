"""Architectures that are no preset: read from a file, or synthesised for a bare size."""

from pathlib import Path
from typing import TYPE_CHECKING

from gpucost.errors import UsageError
from gpucost.types import Architecture

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog


def from_file_or_size(catalog: "Catalog", name: str) -> Architecture | None:
    """Return the architecture of a config.json or of a bare size without an alias; None for any other name."""
    if not name.strip():
        raise UsageError("the model's name is empty. Name a preset, a size such as 8b, or a config.json.")
    path = Path(name).expanduser()
    if name.endswith(".json") or (path / "config.json").is_file():
        from gpucost.architectures.reader import read_config

        return read_config(path)
    if not name[:1].isdigit() or catalog.model_names.exact(name):
        return None
    from gpucost.architectures.synthesise import size_of, synthesise

    size = size_of(name)
    if size is None:
        return None
    return synthesise(name, size, catalog.presets)
