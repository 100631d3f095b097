"""Settings as the defaults of a command's options; a flag on the command line overrules them."""

from collections.abc import Sequence
from typing import Any

import click

from gpucost.catalog.settings import Setting, spoken
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import beside, shown


def defaults_of(command: click.Command, *path: str, settings: Sequence[Setting] | None = None) -> dict[str, Any]:
    """Return what settings say about the options of a command, called by `path`, and within of its subcommands."""
    all_settings = list(spoken()) if settings is None else settings
    values: dict[str, Any] = {}
    if all_settings:
        tables = tables_of(*path)
        for parameter in command.params:
            if parameter.name and (setting := _counting_setting(all_settings, tables, parameter)):
                values[parameter.name] = _value(parameter, setting)
    if isinstance(command, click.Group):
        values |= {
            inner: defaults_of(sub, *path, inner, settings=all_settings) for inner, sub in command.commands.items()
        }
    return values


def _value(parameter: click.Parameter, setting: Setting) -> Any:
    """Return what a setting says as the option takes it: once, or several times."""
    if getattr(parameter, "multiple", False):
        return (setting.value,) if isinstance(setting.value, str) else setting.value
    if not isinstance(setting.value, str):
        raise UsageError(f"{setting.speaker}: {setting.name} takes one value, found {shown(setting.value)}.")
    return setting.value


def tables_of(*path: str) -> list[str]:
    """Return the tables that speak to a command, as prefixes too, what speaks to more commands first.

    The bare name of a subcommand stands for it where no command bears that name.

    >>> tables_of("prices", "watch"), tables_of("prices", "history")
    (['prices', 'prices_watch'], ['prices', 'prices_history', 'history'])
    """
    tables = ["_".join(path[:number]).replace("-", "_") for number in range(1, len(path) + 1)]
    alone = len(path) > 1 and path[-1] not in {name for name, *_ in beside(__file__, "commands")}
    return [*tables, path[-1].replace("-", "_")] if alone else tables


def names_of(parameter: click.Parameter) -> set[str]:
    """Return the long names of an option as settings write them."""
    opts = parameter.opts if isinstance(parameter, click.Option) else ()
    return {option.lstrip("-").replace("-", "_") for option in opts if option.startswith("--")}


def _counting_setting(settings: Sequence[Setting], tables: Sequence[str], parameter: click.Parameter) -> Setting | None:
    """Return the setting that counts for an option: of the strongest speaker the one that is meant for fewest."""
    names = names_of(parameter)
    reached = [(item.turn, reach, item) for item in settings if (reach := _reach(item, tables, names))]
    return sorted(reached, key=lambda candidate: candidate[:2])[-1][2] if reached else None


def _reach(item: Setting, tables: Sequence[str], names: set[str]) -> int:
    """Return how narrowly a setting speaks of an option: 0 not at all, 1 of all commands', more of this one's."""
    full_name = f"{item.command.replace('-', '_')}_{item.name}" if item.command else item.name
    narrow = [number for number, table in enumerate(tables, 2) if any(full_name == f"{table}_{name}" for name in names)]
    return narrow[-1] if narrow else int(not item.command and item.name in names)


def speaker_of(error: Exception, command: click.Command, arguments: Sequence[str], *path: str) -> str:
    """Return who gave the value that an error of a command is about, where a setting did; else an empty text."""
    try:
        settings = list(spoken())
    except UsageError:
        return ""
    if isinstance(command, click.Group) and (
        inner := next((word for word in arguments if word in command.commands), "")
    ):
        return speaker_of(error, command.commands[inner], arguments, *path, inner)
    for parameter in command.params:
        setting = _counting_setting(settings, tables_of(*path), parameter)
        typed = any(word.partition("=")[0] in parameter.opts for word in arguments)
        if setting and not typed and _is_about(error, parameter, setting):
            return setting.speaker
    return ""


def _is_about(error: Exception, parameter: click.Parameter, setting: Setting) -> bool:
    """Tell whether an error is about an option: it names it, or the name that a setting gave it is unknown."""
    named = getattr(error, "param", None) is parameter or str(error).startswith(tuple(f"{o}:" for o in parameter.opts))
    return named or (isinstance(error, UnknownNameError) and error.name == setting.value)
