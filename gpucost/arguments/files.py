"""Files that a scenario or a plan names: they are looked for beside it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucost.arguments.kinds import TABLE
from gpucost.gate import expanded

_FILES = ("pool", "demand", "rent_curve", "currency_curve", "usage", "agreements", "invoice", "map")
_OR_WORDS = ("model", "lengths", "profile", "use_path", "first", "second", "estimate", "plan", "rent", "quote")
_ENDINGS = (".json", ".toml", ".csv", ".xlsx", ".txt", ".parquet", ".jsonl", ".ndjson", ".gz")
_CONFIGURATIONS = ("config.json", "params.json")  # of a model, in a folder of its own


def files_beside(content: Mapping[str, Any], folder: Path, quotes: str = "quote") -> dict[str, Any]:
    """Return what was given with every file that it names in a folder, also within a plan and its sections.

    >>> files_beside({"model": "8b", "rent": ["q.CSV", "a=2/h"], "set": "rent_curve=fall"}, Path("d"), "rent")
    {'model': '8b', 'rent': ['d/q.CSV', 'a=2/h'], 'set': {'rent_curve': 'd/fall'}}
    """

    def placed(name: str, value: Any) -> Any:
        if name == quotes and isinstance(value, Mapping):
            return {entry if terms else placed(name, entry): terms for entry, terms in value.items()}
        if isinstance(value, Mapping) or (name == "set" and quotes == "rent"):  # a plan has no argument `set`
            return files_beside(TABLE.read(value, name), folder)
        if isinstance(value, (list, tuple)):
            return [placed(name, entry) for entry in value]
        return str(folder / expanded(value)) if is_file(name, value, folder) else value

    return {name: placed(name, value) for name, value in content.items()}


def is_file(name: str, value: Any, folder: Path = Path()) -> bool:
    """Tell whether what an argument says names a file; where words stand for other things, by its ending, or by a look.

    >>> is_file("use_path", "u.csv"), is_file("use_path", "ramp 20% over 6 months"), is_file("second", "a.toml#now")
    (True, False, True)
    """
    if not isinstance(value, str) or name not in _OR_WORDS:
        return isinstance(value, str) and name in _FILES
    if any(text.lower().endswith(_ENDINGS) for text in (value, value.partition("#")[0])):
        return True
    held = _CONFIGURATIONS if name == "model" else ()
    looked = [value] * ("." in value) + [os.path.join(value, name_in_folder) for name_in_folder in held]
    return any(os.path.isfile(folder / name_in_folder) for name_in_folder in looked)
