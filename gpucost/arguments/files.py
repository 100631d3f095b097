"""Files that a question names: those of a scenario or a plan lie beside it, those of a stranger in one folder.

Which texts name a file follows from the kind of their argument (`Kind.file`), whatever the argument is called.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gpucost.arguments.kinds import INPUTS, QUOTES, RENTS, TABLE, Kind
from gpucost.arguments.signature import Argument
from gpucost.errors import ContradictionError, DataError, GpuCostError, UnknownNameError, UsageError
from gpucost.gate import STRANGERS, Stranger, expanded, shown

Kinds = Mapping[str, Kind]


def kinds_of(arguments: Iterable[Argument]) -> dict[str, Kind]:
    """Return the kinds of arguments by name, names with units among them.

    Of a name that means different things, the kind that may name a file speaks.
    """
    kinds: dict[str, Kind] = {}
    for argument in arguments:
        for name in (argument.name, argument.field):
            # a file that passes for another kind of text would be read where none may be
            if name and (name not in kinds or kinds[name].file is None):
                kinds[name] = argument.kind
    return kinds


def files_beside(content: Mapping[str, Any], folder: Path, kinds: Kinds, inputs: Kinds) -> dict[str, Any]:
    """Return what was stated with every file that it names in a folder, also within a plan and its sections.

    Args:
        content: Arguments, or a plan.
        folder: Where the scenario or the plan lies.
        kinds: Those of what stands in the content.
        inputs: Those of what a plan within it may hold.

    >>> from gpucost.arguments.kinds import FILE, MODEL
    >>> kinds = {"model": MODEL, "rent": RENTS, "set": INPUTS}
    >>> stated = {"model": "8b", "rent": ["q.CSV", "a=2/h"], "set": "rent_curve=fall"}
    >>> files_beside(stated, Path("d"), kinds, {"rent_curve": FILE})
    {'model': '8b', 'rent': ['d/q.CSV', 'a=2/h'], 'set': {'rent_curve': 'd/fall'}}
    """

    def beside(name: str, kind: Kind, text: str) -> str:
        if not (names_file(kind, text) or _is_there(folder, text)):
            return text
        path = folder / expanded(text)
        if (stranger := STRANGERS.get()) is not None:  # a file of the folder that was named may name others
            _refuse_outside(path, stranger.folder, name, text)
        return str(path)

    return _with_files(content, beside, kinds, inputs)


def _with_files(
    content: Mapping[str, Any], placed: Callable[[str, Kind, str], str], kinds: Kinds, inputs: Kinds
) -> dict[str, Any]:
    """Return what was stated with each text that may name a file as it was placed."""

    def each(name: str, kind: Kind | None, value: Any) -> Any:
        if kind is INPUTS and not isinstance(value, Mapping):
            value = TABLE.read(value, name)
        if kind in (QUOTES, RENTS) and isinstance(value, Mapping):
            # quotes by name: one without terms is the name of a file of quotes
            return {quote if terms else each(name, kind, quote): terms for quote, terms in value.items()}
        # what stands in a table are inputs of a plan, also in a section within it
        if isinstance(value, Mapping):
            return _with_files(value, placed, inputs, inputs)
        if isinstance(value, (list, tuple)):
            return [each(name, kind, entry) for entry in value]
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        return placed(name, kind, value) if isinstance(value, str) and kind and kind.file else value

    return {name: each(name, kinds.get(name), value) for name, value in content.items()}


def only_under(
    arguments: Sequence[Argument], stated: Mapping[str, Any], folder: Path | None, inputs: Kinds
) -> dict[str, Any]:
    """Return what a stranger stated with every file that it names in a folder of this machine; any other is refused.

    Whether a refused file exists is not looked at, and not told.

    >>> from gpucost.arguments.kinds import FILE, MODEL
    >>> declared = [Argument("model", MODEL), Argument("pool", FILE)]
    >>> only_under(declared, {"model": "8b", "gpus": 8}, None, {})
    {'model': '8b', 'gpus': 8}
    >>> only_under(declared, {"pool": "mine"}, None, {})
    Traceback (most recent call last):
    gpucost.errors.UsageError: pool: 'mine' names a file, and none is read here. Start with --files DIR.
    """
    root = None if folder is None else folder.resolve()

    def placed(name: str, kind: Kind, text: str) -> str:
        # a list of several, or an axis of a sweep; the name of a file, though, may hold a comma itself
        if "," in text and kind not in (QUOTES, RENTS) and not names_file(kind, "x"):
            return ",".join(placed(name, kind, part.strip()) for part in text.split(","))
        if not names_file(kind, text) and (root is None or not _is_there(root, text)):
            return text
        if root is None:
            raise UsageError(f"{name}: {shown(text)} names a file, and none is read here. Start with --files DIR.")
        # FILE#PART names a part of a saved answer
        path, mark, part = text.partition("#")
        path = os.path.join(root, expanded(path))
        _refuse_outside(Path(path), root, name, text)
        if (stranger := STRANGERS.get()) is not None:
            stranger.files.append(path)  # no error may repeat what stands in them
        return path + mark + part

    return _with_files(stated, placed, {**inputs, **kinds_of(arguments)}, inputs)


def names_file(kind: Kind, text: str) -> bool:
    """Tell from a text alone whether it names a file."""
    return bool(kind.file and kind.file(text.strip()))


def _refuse_outside(path: Path, root: Path | None, name: str, text: str) -> None:
    # resolved first: a link within the folder may lead out of it
    try:
        inside = root is not None and path.resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        inside = False
    if not inside:
        raise UsageError(f"{name}: {shown(text)} lies outside the folder that was named with --files.")


def _is_there(folder: Path, text: str) -> bool:
    """Tell whether a word is the name of a file with an ending, or of a folder with a model's configuration."""
    with suppress(OSError, ValueError):
        path = folder / expanded(text)
        # Hugging Face calls it config.json, Meta's own releases params.json
        return ("." in text and path.is_file()) or any(
            (path / name).is_file() for name in ("config.json", "params.json")
        )
    return False


@contextmanager
def for_stranger(folder: Path | None, stated: Any) -> Iterator[None]:
    """Answer who asks from elsewhere: what a file of theirs is refused for is told by its place alone."""
    stranger = Stranger(folder)
    token = STRANGERS.set(stranger)
    try:
        yield
    except GpuCostError as error:
        # an error that speaks of arguments or of an answer repeats what the stranger wrote; another may quote a file
        if isinstance(error, UnknownNameError):
            is_of_stated = error.name in f"{stated}"
        else:
            flag = re.match(r"--([a-z][a-z0-9-]*)", f"{error}")
            is_of_stated = (
                (flag is not None and isinstance(stated, Mapping) and flag[1].replace("-", "_") in stated)
                or not isinstance(error, UsageError)
                or isinstance(error, ContradictionError)
            )
        if stranger.files and not is_of_stated:
            names = ", ".join(Path(file).name for file in stranger.files)
            raise UsageError(f"{names}: cannot be used here. The same command on this machine says why.") from None
        raise
    finally:
        STRANGERS.reset(token)


def without_contents(error: GpuCostError, stated: Any) -> str:
    """Return what an error says to a stranger: of a file its place, and no text that the stranger did not state.

    Names of the catalog that may be meant are no file's content.
    """
    # the sheet of a workbook stands in brackets behind its file
    if isinstance(error, DataError) and os.path.exists(error.file.partition("[")[0]):
        place = ":".join(str(part) for part in (Path(error.file).name, error.row, error.column) if part)
        return f"{place}: cannot be used. The same command on this machine says why."
    # candidates are names of the catalog, which everybody may read
    known = f"{stated} {' '.join(getattr(error, 'candidates', ()))}"

    def repeated(quoted: re.Match[str]) -> str:
        # an error ends a long text with an ellipsis
        return quoted[0] if quoted[0][1:-1].rstrip("…") in known else f"{quoted[0][0]}…{quoted[0][0]}"

    return re.sub(r"'[^']*'|\"[^\"]*\"", repeated, str(error))
