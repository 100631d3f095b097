"""Reading what was given: old names, unknown names, values that cannot be, arguments that say the same twice."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gpucost.arguments.kinds import RENTS, unpacked
from gpucost.arguments.signature import COLUMNS, Argument, Condition, Needs, Question
from gpucost.errors import ContradictionError, UsageError, nearest
from gpucost.limits import limit

T = TypeVar("T")
_NO_COLUMNS = (str, bytes, set, Mapping)  # have a length, and are one value


def flag_of(name: str) -> str:
    """Return how a command writes an argument.

    >>> flag_of("lora_rank")
    '--lora-rank'
    """
    return "--" + name.replace("_", "-")


def renamed(question: Question, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what was given under the names of today, without what was not said, and a hint for each old name."""
    known = {argument.name: argument for argument in question.arguments}
    today = {old: name for name, argument in known.items() for old in argument.old if old not in known}
    found: dict[str, Any] = {}
    hints = []
    for name, value in given.items():
        if value is None:
            continue
        if (now := today.get(name, name)) != name:
            hints.append(f"{flag_of(name)} is now called {flag_of(now)} ({now} in the library and in files).")
        if now in found and known[now].kind is RENTS:
            value = [*_several(found[now]), *_several(value)]
        elif now in found:
            raise UsageError(f"{flag_of(now)} is given twice, once as {flag_of(name)}. Give it once.")
        found[now] = value
    if unknown := [name for name in found if name not in known]:
        near = nearest(unknown[0], [*known, *today], 2)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"It takes {', '.join(known)}."
        raise UsageError(f"{question.name} takes no {unknown[0]!r}. {hint}")
    return found, hints


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def read(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every argument of a question as it is meant: what was given, read; defaults for the rest."""
    _refuse_twice(question, given)
    values: dict[str, Any] = {}
    for argument in question.arguments:
        if (value := given.get(argument.name)) is None:
            value = argument.default
        if value is None and argument.required:
            raise UsageError(f"{flag_of(argument.name)} is missing. {argument.help}")
        if value is None or (argument.column and is_column(value)):
            values[argument.name] = None if value is None else value_of(argument, value)
        else:
            values[argument.name] = argument.kind.read(unpacked(value), flag_of(argument.name))
    refuse_idle(question, given, values)
    return values


def read_said(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given, read, without those left at their default: for parts of a question."""
    _refuse_twice(question, given)
    said = {one.name: one for one in question.arguments if _is_said(one, given.get(one.name))}
    return {name: value_of(argument, given[name]) for name, argument in said.items()}


def _is_said(argument: Argument, value: Any) -> bool:
    """Tell whether something else than the default was given."""
    return value is not None and (argument.default is None or is_column(value) or value != argument.default)


def _refuse_twice(question: Question, given: Mapping[str, Any]) -> None:
    """Refuse arguments that say the same thing."""
    if not question.exclusive:
        return
    said = {one.name for one in question.arguments if _is_said(one, given.get(one.name))}
    for names in question.exclusive:
        if len(twice := [name for name in names if name in said]) > 1:
            flags = " and ".join(map(flag_of, twice))
            raise ContradictionError(f"the same is given twice, by {flags}. Give one of them.", twice)


def refuse_idle(question: Question, found: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse an argument that was given and would be ignored for want of another one."""
    known = {argument.name: argument for argument in question.arguments}

    def given(name: str) -> bool:
        if name == COLUMNS:
            return any(is_column(found.get(one)) for one in known)
        if found.get(name) is None or (known[name].kind is RENTS and "" not in values[name]):  # quotes beside a price
            return False
        default = known[name].default
        return is_column(found[name]) or default is None or values[name] != value_of(known[name], default)

    def met(other: Condition) -> bool:
        return (str(values.get(other.name)) in other.words if other.words else given(other.name)) == other.wanted

    for need in question.needs:
        for name in need.names:
            if given(name) and not any(map(met, need.one_of)):
                flag = flag_of(f"no_{name}" if known[name].default is True else name)
                raise ContradictionError(f"{flag}: only {need.words or _beside(need)}.", [name])


def _beside(need: Needs) -> str:
    """Say what an argument needs, as a command writes it."""
    said = []
    for name, wanted, words in need.one_of:
        said.append(f"{'with' if wanted else 'without'} {flag_of(name)} {' or '.join(words)}".rstrip())
    return " or ".join(said)


def giving_way(asked: Callable[[dict[str, Any]], T], given: dict[str, Any], quiet: Callable[[str], bool]) -> T:
    """Ask; an argument that was not said here (`quiet`) gives way where it contradicts the rest or would be ignored."""
    while True:
        try:
            return asked(given)
        except ContradictionError as error:
            aside = [name for name in error.names if name in given and quiet(name)]
            if not aside or 1 < len(error.names) == len(aside):
                raise
            given = {name: value for name, value in given.items() if name not in aside}


def value_of(argument: Argument, value: Any, called: str = "") -> Any:
    """Read one value; a column of values is left to the engine, which marks the cases that cannot be."""
    if not (argument.column and is_column(value)):
        return argument.kind.read(unpacked(value), called or flag_of(argument.name))
    most = limit("limit_sweep_values")
    with suppress(OverflowError):  # of a range that is longer than any list
        if len(value) <= most:
            return value
    raise UsageError(f"{argument.name}: a column holds at most {most:,.0f} values; limit_sweep_values raises that.")


def is_column(value: Any) -> bool:
    """Tell whether a value is a column of values, a case each."""
    return hasattr(value, "__len__") and getattr(value, "ndim", None) != 0 and not isinstance(value, _NO_COLUMNS)


def read_list(arguments: Sequence[Argument], given: Mapping[str, Any], *, complete: bool = False) -> dict[str, Any]:
    """Return what a list command takes, read; None where nothing was said, unless it must be and all is given."""
    found = {}
    for argument in arguments:
        value, called = given.get(argument.name), argument.name if argument.place else flag_of(argument.name)
        if value is None and argument.required and complete:
            raise UsageError(f"{called} is missing. {argument.help}".rstrip())
        found[argument.name] = argument.default if value is None else value_of(argument, value, called)
    return found
