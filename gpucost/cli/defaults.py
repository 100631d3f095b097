"""Settings as the defaults of a command's options; a flag on the command line overrules them."""

from collections.abc import Sequence
from typing import Any

import click

from gpucost.catalog.settings import Setting, spoken
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import shown


def defaults_of(name: str, command: click.Command, settings: Sequence[Setting] | None = None) -> dict[str, Any]:
    """Return what settings say about the options of a command and, within, of its subcommands."""
    found = list(spoken()) if settings is None else settings
    values: dict[str, Any] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            said = [item for item in found if speaks_of(item, name, parameter)]
            if said:
                values[parameter.name] = _value(parameter, said[-1])
    if isinstance(command, click.Group):
        values |= {inner: defaults_of(inner, sub, found) for inner, sub in command.commands.items()}
    return values


def _value(parameter: click.Option, said: Setting) -> Any:
    """Return what a setting says as the option takes it: once, or several times."""
    if parameter.multiple:
        return (said.value,) if isinstance(said.value, str) else said.value
    if not isinstance(said.value, str):
        raise UsageError(f"{said.speaker}: {said.name} takes one value, found {shown(said.value)}.")
    return said.value


def speaks_of(item: Setting, command: str, parameter: click.Option) -> bool:
    """Tell whether a setting is meant for an option: by the option's long name, for all commands or for this one."""
    names = {option.lstrip("-").replace("-", "_") for option in parameter.opts if option.startswith("--")}
    if item.command:
        return item.command == command and item.name in names
    return item.name in names or item.name.removeprefix(f"{command.replace('-', '_')}_") in names


def speaker_of(error: Exception, name: str, command: click.Command, words: Sequence[str]) -> str:
    """Return who gave the value that an error of a command is about, where a setting did; else an empty text."""
    try:
        found = list(spoken())
    except UsageError:
        return ""
    if isinstance(command, click.Group) and (inner := next((word for word in words if word in command.commands), "")):
        return speaker_of(error, inner, command.commands[inner], words)
    for parameter in command.params:
        said = [item for item in found if isinstance(parameter, click.Option) and speaks_of(item, name, parameter)]
        typed = any(word.partition("=")[0] in parameter.opts for word in words)
        if said and not typed and _is_about(error, parameter, said[-1]):
            return said[-1].speaker
    return ""


def _is_about(error: Exception, parameter: click.Parameter, said: Setting) -> bool:
    """Tell whether an error is about an option: it names it, or the name that a setting gave it is unknown."""
    named = getattr(error, "param", None) is parameter or str(error).startswith(tuple(f"{o}:" for o in parameter.opts))
    return named or (isinstance(error, UnknownNameError) and error.name == said.value)
