"""The arguments that questions and list commands take, as arguments.csv has them.

A row gives an argument of a set: of a question or a list command, or of a group (`@dates`), which other sets take as a
whole. It starts from the row without a set that bears its name, or the one that `like` names (`-`: from none), and says
what differs; `-` empties a cell.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from gpucost import words
from gpucost.arguments import kinds, loading
from gpucost.arguments.kinds import Kind
from gpucost.gate import beside


class Argument(NamedTuple):
    """One argument of a question."""

    name: str  # in the library and in scenario files; the command writes it --with-hyphens
    kind: Kind
    help: str
    default: Any = None
    usual: str = ""  # what holds where nothing is said and the default depends on the rest
    field: str = ""  # what the request behind the question calls it, where that differs
    old: tuple[str, ...] = ()  # names of former versions, still read
    required: bool = False
    column: bool = False  # may be a list or an array instead: a case each
    example: Any = None
    library_only: bool = False
    place: bool = False  # the command takes it without an option's name


T = TypeVar("T")
Cells = dict[str, str]
_MAKERS = {
    name: getattr(kinds, name) for name in ("count", "whole", "share", "positive_share", "plain", "one_of", "name")
}
_UNITS = ("count", "whole", "plain")  # of which the last word says what is counted
_LISTS = {f"{{{name.lower()}}}": tuple(found) for name, found in vars(words).items() if isinstance(found, tuple)}
_UNSET = {"optional": "required", "one": "column"}


@cache
def _rows() -> dict[str, list[Cells]]:
    """Return the rows of each set."""
    (_, *names), *rows = beside(__file__, "arguments")
    found: dict[str, list[Cells]] = {}
    for set_, *cells in rows:
        found.setdefault(set_, []).append({name: cell for name, cell in zip(names, cells, strict=True) if cell})
    return found


@cache
def _shared() -> dict[str, Cells]:
    """Return the rows that belong to no set by the word that others name them by."""
    found: dict[str, Cells] = {}
    for row in _rows()[""]:
        like = row.get("like", row["argument"])
        found[row["argument"]] = _over(found.get(like, {}), row) | {"argument": like}
    return found


@cache
def arguments_of(set_: str) -> tuple[Argument, ...]:
    """Return the arguments of a question, a list command or a group.

    >>> [argument.name for argument in arguments_of("@dates")]
    ['as_of', 'known_as_of']
    """
    return tuple(_argument(cells) for cells in _expanded(set_))


def _expanded(set_: str) -> Iterator[Cells]:
    """Yield the whole rows of a set."""
    for row in _rows()[set_]:
        name = row["argument"]
        if name.startswith("@"):
            yield from (_over(inner, row) | {"argument": inner["argument"]} for inner in _expanded(name))
        else:
            yield _over(_shared().get(row.get("like", name), {}), row) | {"argument": name}


def _over(base: Cells, row: Cells) -> Cells:
    """Lay the cells of a row over those that it starts from; flags are added to flags."""
    return {**base, **row, "flags": f"{base.get('flags', '')} {row.get('flags', '')}"}


def _argument(cells: Cells) -> Argument:
    said = {name: cell for name, cell in cells.items() if cell != "-"}
    flags = dict.fromkeys(said["flags"].split(), True)
    for word, flag in _UNSET.items():
        if flags.pop(word, False):
            flags.pop(flag, None)
    return Argument(
        said["argument"], kind_of(said["kind"]), said.get("help", ""), _value(said.get("default", "")),
        said.get("usual", ""), said.get("field", ""), tuple(said.get("old", "").split()),
        example=_value(said.get("example", "")), **flags,
    )  # fmt: skip


@cache
def kind_of(text: str) -> Kind:
    """Return a kind of values: a constant of `kinds` by its name, or one made with bounds, units or words.

    >>> kind_of("whole 1 120 MONTHS").metavar, kind_of("one_of own rent").choices
    ('MONTHS', ('own', 'rent'))
    """
    maker, *rest = text.split()
    if maker == "one_of":
        return kinds.one_of(*(word for part in rest for word in _LISTS.get(part, (part,))))
    if maker not in _MAKERS:
        found: Kind = getattr(kinds, maker.upper(), None) or getattr(loading, maker.upper())
        return found
    unit = {"metavar": rest.pop()} if maker in _UNITS and rest and rest[-1].isupper() else {}
    made: Kind = _MAKERS[maker](*map(_value, rest), **unit)
    return made


def _value(text: str) -> Any:
    """Return what a cell holds: nothing, a number, a truth value, a table as JSON, or a text.

    >>> [_value(text) for text in ("", "8", "2.5", "true", "8b")]
    [None, 8, 2.5, True, '8b']
    """
    if not text or text in ("true", "false"):
        return text == "true" if text else None
    if text[0] == "{":
        return json.loads(text)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


class Made(Mapping[str, T]):
    """What is made when it is first asked for, by name."""

    def __init__(self, names: Callable[[], Collection[str]], make: Callable[[str], T]) -> None:
        self._names, self._make = names, cache(make)

    def __getitem__(self, name: str) -> T:
        if name not in self._names():
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


@cache
def _commands() -> list[str]:
    asked = {row[0] for row in beside(__file__, "questions")}
    return [name for name in _rows() if name and name[0] != "@" and name not in asked]


LISTS = Made(_commands, arguments_of)  # what the list commands take
DATES = arguments_of("@dates")
AS_OF = DATES[0]
