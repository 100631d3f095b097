"""Settings and where each comes from: flag > GPUCOST_* > ./gpucost.toml or [tool.gpucost] > user file > default.

A setting is the long name of an option with underscores: `format`, `as_of`, `provider`. In a file it may stand at the
top, for every command, or in a table named after a command, for that one alone. Works without a home folder.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpucost import gate, limits
from gpucost.errors import UsageError

PREFIX = "GPUCOST_"
# a table tool.gpucost in a pyproject.toml, or one that may hold it: [tool.gpucost], [tool] with gpucost =, tool = {…}
_TOOL = re.compile(rb"tool[\"']?[ \t]*(?:\.[ \t]*[\"']?gpucost|\]|=)")
_NOT_SETTINGS = frozenset(("REQUIRE_PROGRAMS", "COMPLETE", "TODAY"))
# what reaches another machine, opens files to others or writes them: whoever owns the working folder does not say it
OF_THE_USER_ALONE = frozenset(
    ("store", "mirror", "from", "publish", "scheduler", "files", "output", "output_file", "into")
)
# settings that belong to no single option: their defaults
GENERAL = {
    "catalog": "the newest",
    "book": "book/ beside the user file",
    "store": "prices/ in the user's data folder",
    "data": "the package's own",
    "as_of": "today",
    "known_as_of": "everything known",
    "format": "table",
}


class Setting(Struct, frozen=True):
    """A setting's value and who spoke: a variable of the environment or a file."""

    name: str
    value: Any
    speaker: str
    command: str = ""  # "" where it holds for every command
    turn: int = 0  # of the one who spoke: a later one overrules


def user_folder() -> Path | None:
    """Return the folder of the user's settings and book, or None where there is no home."""
    try:
        return _user_folder("XDG_CONFIG_HOME", "~/.config", "config")
    except (OSError, RuntimeError, KeyError):
        return None


def _user_folder(variable: str, usual: str, kind: str) -> Path:
    """Return one of the user's folders, as platformdirs says: on Linux without its import."""
    stated = os.environ.get(variable, "").strip()
    if sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        return Path(stated or usual).expanduser() / "gpucost"
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_path")("gpucost", appauthor=False))


def cache_folder() -> Path:
    """Return the folder for what can be fetched again."""
    return _user_folder("XDG_CACHE_HOME", "~/.cache", "cache")


def store_place() -> Path | str | None:
    """Return where refreshed prices are: the setting `store`, else a folder of the user's; None without a home."""
    if place := setting("store"):
        return str(place)
    try:
        return _user_folder("XDG_DATA_HOME", "~/.local/share", "data") / "prices"
    except (OSError, RuntimeError, KeyError):
        return None


def user_file() -> Path | None:
    """Return where the user's settings file is looked for."""
    folder = user_folder()
    return folder / "config.toml" if folder else None


def present_folder() -> str:
    """Return the folder that the process is in; "" where somebody removed it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def project_file() -> Path | None:
    """Return ./gpucost.toml, else a ./pyproject.toml with a table tool.gpucost, however it is written, else None."""
    settings_file = Path("gpucost.toml")
    if settings_file.is_file():
        return settings_file
    shared = Path("pyproject.toml")
    try:
        text = gate.read_bytes(shared) if shared.is_file() else b""
    except UsageError:
        return None
    if not (b"gpucost" in text and _TOOL.search(text)):  # most projects: nothing is parsed
        return None
    try:
        tool = gate.read_toml(shared).get("tool")
    except UsageError:
        return shared if b"[tool.gpucost" in text else None  # whoever reads it says what is wrong
    return shared if isinstance(tool, dict) and "gpucost" in tool else None


def read_file(path: Path) -> dict[str, Any]:
    """Return the settings of a file: all of a gpucost.toml, the table [tool.gpucost] of a pyproject.toml."""
    content = gate.read_toml(path)
    if path.name != "pyproject.toml":
        return content
    tool = content.get("tool", {})
    table = tool.get("gpucost", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.gpucost is not a table of settings.")
    return table


def spoken(environment: Mapping[str, str] | None = None) -> Iterator[Setting]:
    """Yield every setting that someone made, the weakest speaker first, so that a later one overrules.

    A file of the working folder, which others may have written, speaks of what stays on this machine alone.
    """
    file_of_user, file_of_project = user_file(), project_file()
    if file_of_user and file_of_user.is_file():
        yield from _of_file(file_of_user, 0)
    if file_of_project:
        yield from (item for item in _of_file(file_of_project, 1) if not _of_the_user_alone(item))
    variables = os.environ if environment is None else environment
    for name in sorted(variables):
        if name.startswith(PREFIX) and name[len(PREFIX) :] not in _NOT_SETTINGS and not name.endswith("_COMPLETE"):
            yield Setting(name[len(PREFIX) :].lower(), variables[name], f"environment variable {name}", turn=2)


def unheeded() -> list[Setting]:
    """Return the settings of the working folder that only the user may make."""
    file_of_project = project_file()
    return [item for item in _of_file(file_of_project, 1) if _of_the_user_alone(item)] if file_of_project else []


def _of_the_user_alone(item: Setting) -> bool:
    """Tell whether a setting, with or without its command's name before it, is one that only the user may make."""
    return any(item.name == name or item.name.endswith(f"_{name}") for name in OF_THE_USER_ALONE)


def _of_file(path: Path, turn: int) -> Iterator[Setting]:
    content = read_file(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    top = {name: value for name, value in content.items() if name not in tables}
    for command, table in (("", top), *tables.items()):
        names: dict[str, str] = {}
        for name, value in table.items():
            place, key = f"{command}.{name}" if command else name, name.replace("-", "_")
            if key in names:
                raise UsageError(f"{path}: {place} is given twice, also as {names[key]}. Keep one.")
            names[key] = name
            yield Setting(key, _typed(value, f"{path}: {place}"), f"file {path}", command, turn)


def _typed(value: Any, place: str) -> str | tuple[str, ...]:
    """Return a setting of a file as one would type it; a list is an option that is given several times.

    >>> _typed(2, "top"), _typed(True, "quiet"), _typed(["a=1", "b=2"], "set")
    ('2', 'true', ('a=1', 'b=2'))
    """
    if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
        return tuple(str(_typed(item, place)) for item in value)
    if isinstance(value, (list, dict)):
        raise UsageError(f"{place}: found {gate.shown(value)}, expected a text, a number, or a list of them.")
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _general(folder: str, variables: tuple[tuple[str, str], ...]) -> dict[str, Setting]:
    return {item.name: item for item in spoken(dict(variables)) if not item.command}


def general() -> Mapping[str, Setting]:
    """Return the settings that hold for every command: of the user, of the present folder and of the environment."""
    # read again where a variable or the folder has changed, which long-lived processes do
    variables = tuple(sorted((key, value) for key, value in os.environ.items() if key.startswith(PREFIX)))
    return _general(present_folder(), variables)


def spoken_setting(name: str) -> Setting | None:
    """Return a setting of one value that holds for every command, or None where nobody spoke."""
    item = general().get(name)
    if item and not isinstance(item.value, str):
        raise UsageError(f"{item.speaker}: {name} takes one value, found {gate.shown(item.value)}.")
    return item


def setting(name: str) -> str | None:
    """Return the value of a setting that holds for every command, or None where nobody spoke."""
    item = spoken_setting(name)
    return str(item.value) if item else None


def _raised(name: str) -> object:
    """Return what a setting says of a limit; while the settings themselves are read, the environment alone speaks."""
    if _reading:  # a settings file is read within a limit of bytes, which the file itself cannot raise
        return limits.of_environment(name)
    _reading.append(name)
    try:
        return setting(name)
    finally:
        _reading.clear()


_reading: list[str] = []
limits.raised = _raised


def book_folder() -> Path | None:
    """Return the folder of the user's own book, whether or not it exists; None where there is no home."""
    if place := setting("book"):
        return gate.expanded(place)
    folder = user_folder()
    return folder / "book" if folder else None


@contextmanager
def facts_of(version: str) -> Iterator[None]:
    """Have this process, and those that it starts, answer from one version of the facts."""
    name = f"{PREFIX}CATALOG"  # in the environment, so that processes of a sweep inherit it
    before = os.environ.get(name)
    os.environ[name] = version
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def without_book() -> Iterator[None]:
    """Leave the user's own book out of every catalog that is opened within."""
    token = _book_speaks.set(False)
    try:
        yield
    finally:
        _book_speaks.reset(token)


_book_speaks = ContextVar("book_speaks", default=True)


def book_layers(book: str | Path | None = None) -> dict[str, Path]:
    """Return the folders that lie over the shipped facts and exist, the nearest last."""
    if not _book_speaks.get():
        return {}
    stated = book if book is not None else setting("book")  # the usual folder need not be there
    folder = gate.expanded(book) if book else book_folder()
    if stated and (folder is None or not folder.exists()):
        raise UsageError(f"the book {folder} does not exist. Make it, or change the setting `book`.")
    if stated and folder and not folder.is_file() and not folder.is_dir():
        raise UsageError(f"the book {folder} is a device or a pipe. Name a folder or a file.")
    if folder is not None and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()))):
        return {"user": folder}
    return {}
