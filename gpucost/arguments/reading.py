# s/Reading what was given: /Reading the arguments of a question: /
"""Reading what was given: unknown names, values that cannot be, arguments that say the same twice."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gpucost.arguments.kinds import RENTS, is_missing, unpacked
from gpucost.arguments.signature import COLUMNS, Argument, Condition, Question
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


def known(question: Question, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given, without what was not said; one that the question does not take is refused.

    Raises:
        UsageError: Its sentence names the nearest arguments.
    """
    names = [argument.name for argument in question.arguments]
    arguments = {name: value for name, value in stated.items() if not is_missing(value)}
    if unknown := [name for name in arguments if name not in names]:
        near = nearest(unknown[0], names, 2)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"It takes {', '.join(names)}."
        raise UsageError(f"{question.name} takes no {unknown[0]!r}. {hint}")
    return arguments


def read(question: Question, /, **stated: Any) -> dict[str, Any]:
    """Return every argument of a question as it is meant: what was given, read; defaults for the rest."""
    _refuse_twice(question, stated)
    values: dict[str, Any] = {}
    for argument in question.arguments:
        if is_missing(value := stated.get(argument.name)):
            value = argument.default
        if value is None and argument.required:
            raise UsageError(f"{flag_of(argument.name)} is missing. {argument.help}")
        if value is None or (argument.column and is_column(value)):
            values[argument.name] = None if value is None else value_of(argument, value)
        else:
            values[argument.name] = argument.kind.read(unpacked(value), flag_of(argument.name))
    refuse_idle(question, stated, values)
    return values


def read_stated(question: Question, /, **stated: Any) -> dict[str, Any]:
    """Return the arguments that were given, read, without those left at their default: for parts of a question."""
    _refuse_twice(question, stated)
    arguments = {item.name: item for item in question.arguments if _is_stated(item, stated.get(item.name))}
    return {name: value_of(argument, stated[name]) for name, argument in arguments.items()}


def _is_stated(argument: Argument, value: Any) -> bool:
    """Tell whether something else than the default was given."""
    # a column never equals its default: NumPy would compare it entry by entry
    return not is_missing(value) and (argument.default is None or is_column(value) or value != argument.default)


def _refuse_twice(question: Question, stated: Mapping[str, Any]) -> None:
    """Refuse arguments that say the same thing."""
    # many questions have none, and a sweep reads the arguments of each of its cases
    if not question.exclusive:
        return
    names_stated = {argument.name for argument in question.arguments if _is_stated(argument, stated.get(argument.name))}
    for names in question.exclusive:
        if len(twice := [name for name in names if name in names_stated]) > 1:
            flags = " and ".join(map(flag_of, twice))
            raise ContradictionError(f"the same thing is given twice, by {flags}. Give one of them.", twice)


def refuse_twice_in_every_case(question: Question, values: Mapping[str, Sequence[Any]]) -> None:
    """Refuse arguments that say the same thing in every combination of the values that they take."""
    axes = ((argument, values[argument.name]) for argument in question.arguments if argument.name in values)
    always = {argument.name: axis[0] for argument, axis in axes if all(_is_stated(argument, value) for value in axis)}
    _refuse_twice(question, always)


def refuse_idle(question: Question, stated: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse an argument that was given and would be ignored for want of another one."""
    by_name = {argument.name: argument for argument in question.arguments}

    def is_stated(name: str) -> bool:
        if name == COLUMNS:
            return any(is_column(stated.get(other)) for other in by_name)
        if is_missing(stated.get(name)):
            return False
        if by_name[name].kind is RENTS and "" not in values[name]:  # quotes alone: a price may be looked up beside them
            return False
        # compared as read: "8k" is not ignored where 8192 is the default
        default = by_name[name].default
        return is_column(stated[name]) or default is None or values[name] != value_of(by_name[name], default)

    def met(condition: Condition) -> bool:
        if condition.words:
            return (str(values.get(condition.name)) in condition.words) == condition.holds
        return is_stated(condition.name) == condition.holds

    for need in question.needs:
        for name in need.names:
            if is_stated(name) and not any(map(met, need.one_of)):
                flag = flag_of(f"no_{name}" if by_name[name].default is True else name)
                # the conditions as a command writes them, where no sentence says them better
                condition_text = need.words or " or ".join(
                    f"{'with' if must_hold else 'without'} {flag_of(other)} {' or '.join(choices)}".rstrip()
                    for other, must_hold, choices in need.one_of
                )
                raise ContradictionError(f"{flag}: only {condition_text}.", [name])


def giving_way(ask: Callable[[dict[str, Any]], T], stated: dict[str, Any], quiet: Callable[[str], bool]) -> T:
    """Ask; an argument that was not said here (`quiet`) gives way where it contradicts the rest or would be ignored."""
    while True:
        try:
            return ask(stated)
        except ContradictionError as error:
            aside = [name for name in error.names if name in stated and quiet(name)]
            # two that contradict each other, neither said here: which of them is meant, only the person knows
            if not aside or 1 < len(error.names) == len(aside):
                raise
            stated = {name: value for name, value in stated.items() if name not in aside}


def value_of(argument: Argument, value: Any, called: str = "") -> Any:
    """Read one value; a column of values is left to the engine, which marks the cases that cannot be."""
    if not (argument.column and is_column(value)):
        # a value of NumPy reads like Python's own
        return argument.kind.read(unpacked(value), called or flag_of(argument.name))
    most = limit("limit_sweep_values")
    with suppress(OverflowError):  # of a range that is longer than any list
        if len(value) <= most:
            return value
    raise UsageError(f"{argument.name}: a column holds at most {most:,.0f} values; limit_sweep_values raises that.")


def is_column(value: Any) -> bool:
    """Tell whether a value is a column of values, a case each."""
    return hasattr(value, "__len__") and getattr(value, "ndim", None) != 0 and not isinstance(value, _NO_COLUMNS)


def read_list(arguments: Sequence[Argument], stated: Mapping[str, Any], *, complete: bool = False) -> dict[str, Any]:
    """Return what a list command takes, read; None where nothing was said, unless it must be and all is given."""
    values = {}
    for argument in arguments:
        value, called = stated.get(argument.name), argument.name if argument.place else flag_of(argument.name)
        if is_missing(value) and argument.required and complete:
            raise UsageError(f"{called} is missing. {argument.help}".rstrip())
        values[argument.name] = argument.default if is_missing(value) else value_of(argument, value, called)
    return values
