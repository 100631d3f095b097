"""Files that a question names: those of a scenario or a plan lie beside it, those of a stranger in one folder."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpucost.arguments.kinds import TABLE
from gpucost.errors import DataError, GpuCostError, UsageError
from gpucost.gate import expanded, shown

_FILES = ("pool", "demand", "rent_curve", "currency_curve", "usage", "agreements", "invoice", "map")
_OR_WORDS = (
    *("model", "lengths", "prompt_tokens", "output_tokens", "profile", "use_path"),
    *("first", "second", "estimate", "plan", "rent", "quote"),
)
_ENDINGS = (".json", ".toml", ".csv", ".xlsx", ".txt", ".parquet", ".jsonl", ".ndjson", ".gz")
_CONFIGURATIONS = ("config.json", "params.json")  # of a model, in a folder of its own


def files_beside(content: Mapping[str, Any], folder: Path, quotes: str = "quote") -> dict[str, Any]:
    """Return what was given with every file that it names in a folder, also within a plan and its sections.

    >>> files_beside({"model": "8b", "rent": ["q.CSV", "a=2/h"], "set": "rent_curve=fall"}, Path("d"), "rent")
    {'model': '8b', 'rent': ['d/q.CSV', 'a=2/h'], 'set': {'rent_curve': 'd/fall'}}
    """

    def beside(name: str, value: Any) -> Any:
        return str(folder / expanded(value)) if is_file(name, value, folder) else value

    return _with_files(content, beside, quotes)


def _with_files(content: Mapping[str, Any], placed: Callable[[str, Any], Any], quotes: str) -> dict[str, Any]:
    """Return what was given with each value that may name a file as it was placed."""

    def each(name: str, value: Any) -> Any:
        if name == quotes and isinstance(value, Mapping):
            return {entry if terms else each(name, entry): terms for entry, terms in value.items()}
        if isinstance(value, Mapping) or (name == "set" and quotes == "rent"):  # a plan has no argument `set`
            return _with_files(TABLE.read(value, name), placed, "quote")
        if isinstance(value, (list, tuple)):
            return [each(name, entry) for entry in value]
        return placed(name, value)

    return {name: each(name, value) for name, value in content.items()}


def only_under(content: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return what a stranger gave with every file that it names in a folder of this machine; any other is refused.

    >>> only_under({"model": "8b", "gpus": 8}, None)
    {'model': '8b', 'gpus': 8}
    """
    root = None if folder is None else folder.resolve()

    def placed(name: str, value: Any) -> Any:
        if not is_file(name, value, root or Path()) and not (name in _OR_WORDS and _is_there(value)):
            return value
        if root is None:
            raise UsageError(f"{name}: {shown(value)} names a file, and none is read here. Start with --files DIR.")
        path = Path(root, expanded(value))
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"{name}: {shown(value)} lies outside the folder that was named with --files.")
        return str(path)

    return _with_files(content, placed, "rent")


def _is_there(value: Any) -> bool:
    try:
        return isinstance(value, str) and expanded(value).exists()
    except (OSError, ValueError):
        return False


def without_contents(error: GpuCostError, given: Any) -> str:
    """Return what an error says to a stranger: of a file its place, and no text that the stranger did not give.

    Names of the catalog that may be meant are no file's content.
    """
    if isinstance(error, DataError) and _is_there(error.file.partition("[")[0]):
        place = ":".join(str(part) for part in (Path(error.file).name, error.row, error.column) if part)
        return f"{place}: cannot be used. The same command on this machine says why."
    known = f"{given} {' '.join(getattr(error, 'candidates', ()))}"
    return re.sub(r"'[^']*'", lambda quoted: quoted[0] if quoted[0][1:-1].rstrip("…") in known else "'…'", str(error))


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
