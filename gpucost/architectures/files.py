"""Files that should hold one JSON object of moderate size, and come from anybody."""

import json
from pathlib import Path
from typing import Any

from gpucost.errors import DataError

LARGEST_FILE_BYTES = 8_000_000


def load(file: Path) -> dict[str, Any]:
    """Read a file that should hold one JSON object of moderate size."""
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise DataError("is larger than 8 MB, and no configuration is. Name a model's config.json.", file=str(file))
        config = json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text. Name a model's config.json.", file=str(file)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DataError(f"is not valid JSON: {reason}", file=str(file)) from None
    if not isinstance(config, dict):
        raise DataError("is not a JSON object. Name a model's config.json.", file=str(file))
    return config
