"""Settings as the defaults of a command's options; a flag on the command line overrules them."""

from collections.abc import Sequence
from typing import Any

import click

from gpucost.catalog.settings import Setting, spoken
from gpucost.errors import UsageError
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
