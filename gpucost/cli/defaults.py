"""Settings as the defaults of a command's options; a flag on the command line overrules them."""

from collections.abc import Sequence
from typing import Any

import click

from gpucost.catalog.settings import Setting, spoken
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import beside, shown


def defaults_of(command: click.Command, *path: str, settings: Sequence[Setting] | None = None) -> dict[str, Any]:
    """Return what settings say about the options of a command, called by `path`, and within of its subcommands."""
    found = list(spoken()) if settings is None else settings
    values: dict[str, Any] = {}
    if found:
        tables = tables_of(*path)
        for parameter in command.params:
            if parameter.name and (said := _said(found, tables, parameter)):
                values[parameter.name] = _value(parameter, said)
    if isinstance(command, click.Group):
        values |= {inner: defaults_of(sub, *path, inner, settings=found) for inner, sub in command.commands.items()}
    return values


def _value(parameter: click.Parameter, said: Setting) -> Any:
    """Return what a setting says as the option takes it: once, or several times."""
    if getattr(parameter, "multiple", False):
        return (said.value,) if isinstance(said.value, str) else said.value
    if not isinstance(said.value, str):
        raise UsageError(f"{said.speaker}: {said.name} takes one value, found {shown(said.value)}.")
    return said.value


def tables_of(*path: str) -> list[str]:
    """Return the tables that speak to a command, as prefixes too, what speaks to more commands first.

    The bare name of a subcommand stands for it where no command bears that name.

    >>> tables_of("prices", "watch"), tables_of("prices", "history")
    (['prices', 'prices_watch'], ['prices', 'prices_history', 'history'])
    """
    found = ["_".join(path[:number]).replace("-", "_") for number in range(1, len(path) + 1)]
    alone = len(path) > 1 and path[-1] not in {name for name, *_ in beside(__file__, "commands")}
    return [*found, path[-1].replace("-", "_")] if alone else found


def names_of(parameter: click.Parameter) -> set[str]:
    """Return the long names of an option as settings write them."""
    opts = parameter.opts if isinstance(parameter, click.Option) else ()
    return {option.lstrip("-").replace("-", "_") for option in opts if option.startswith("--")}


def _said(found: Sequence[Setting], tables: Sequence[str], parameter: click.Parameter) -> Setting | None:
    """Return the setting that counts for an option: of the strongest speaker the one that is meant for fewest."""
    names = names_of(parameter)
    reached = [(item.turn, reach, item) for item in found if (reach := _reach(item, tables, names))]
    return sorted(reached, key=lambda one: one[:2])[-1][2] if reached else None


def _reach(item: Setting, tables: Sequence[str], names: set[str]) -> int:
    """Return how narrowly a setting speaks of an option: 0 not at all, 1 of all commands', more of this one's."""
    whole = f"{item.command.replace('-', '_')}_{item.name}" if item.command else item.name
    narrow = [number for number, table in enumerate(tables, 2) if any(whole == f"{table}_{name}" for name in names)]
    return narrow[-1] if narrow else int(not item.command and item.name in names)


def speaker_of(error: Exception, command: click.Command, words: Sequence[str], *path: str) -> str:
    """Return who gave the value that an error of a command is about, where a setting did; else an empty text."""
    try:
        found = list(spoken())
    except UsageError:
        return ""
    if isinstance(command, click.Group) and (inner := next((word for word in words if word in command.commands), "")):
        return speaker_of(error, command.commands[inner], words, *path, inner)
    for parameter in command.params:
        said = _said(found, tables_of(*path), parameter)
        typed = any(word.partition("=")[0] in parameter.opts for word in words)
        if said and not typed and _is_about(error, parameter, said):
            return said.speaker
    return ""


def _is_about(error: Exception, parameter: click.Parameter, said: Setting) -> bool:
    """Tell whether an error is about an option: it names it, or the name that a setting gave it is unknown."""
    named = getattr(error, "param", None) is parameter or str(error).startswith(tuple(f"{o}:" for o in parameter.opts))
    return named or (isinstance(error, UnknownNameError) and error.name == said.value)
