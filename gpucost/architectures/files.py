"""Files that should hold one JSON object of moderate size, and come from anybody."""

from pathlib import Path
from typing import Any

from gpucost.errors import DataError
from gpucost.gate import read_json


def load(file: Path) -> dict[str, Any]:
    """Read a file that should hold one JSON object of moderate size."""
    config = read_json(file)
    if not isinstance(config, dict):
        raise DataError("is not a JSON object. Name a model's config.json.", file=str(file))
    return config
