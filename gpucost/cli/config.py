"""`gpucost config`: where things are, which settings apply and who made them."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import click

from gpucost.cli.help import GroupedCommand
from gpucost.cli.options import Output, output_options
from gpucost.errors import nearest

_LONGEST = 80  # signs of a name
_WIDE = 110  # signs of a line that has room for reasons


@click.command(name="config", cls=GroupedCommand)
@output_options
def command(out: Output) -> None:
    """Show where the data, your settings and your book are, which settings apply, and where each comes from.

    A flag overrides GPUCOST_* variables, which override ./gpucost.toml or [tool.gpucost] in ./pyproject.toml, which
    override the user file and then the default. A setting is an option's long name: `provider = "aws"` applies to
    every command that has --provider; in a table [estimate] only to that command, in [prices] also to its subcommands.
    Of two in one file, the more specific one counts. The reason for each limit is shown in terminals of 110 columns or
    more, and with --format json.

    Shell completion, one line in your shell's start-up file:

    \b
    bash  eval "$(_GPUCOST_COMPLETE=bash_source gpucost)"
    zsh   eval "$(_GPUCOST_COMPLETE=zsh_source gpucost)"
    fish  _GPUCOST_COMPLETE=fish_source gpucost | source
    """
    from gpucost import __version__
    from gpucost.catalog import settings
    from gpucost.catalog.core import data_root
    from gpucost.limits import LIMITS, limit
    from gpucost.render.text import detect

    # where things are
    root = data_root()
    user, project, book = settings.user_file(), settings.project_file(), settings.book_folder()
    user_state = "found" if user and user.is_file() else "not there"
    if user is None:
        user_state = "no home folder"
    rows = [
        _row("place", "version", __version__, "package"),
        _row("place", "data folder", root, _speaker("data", "package")),
        _row("place", "user file", user, user_state),
        _row("place", "project file", project.resolve() if project else None, "found" if project else "not there"),
        _row("place", "book folder", book, _speaker("book", "found" if book and book.is_dir() else "not there")),
    ]
    # what settings say, the last speaker of each, and the defaults of those that nobody spoke of
    latest: dict[tuple[str, str], settings.Setting] = {(item.command, item.name): item for item in settings.spoken()}
    rows += [
        _row("setting", name, default, "default")
        for name, default in settings.GENERAL.items()
        if ("", name) not in latest and name not in ("book", "data")  # their rows stand above
    ]
    for (table, name), item in latest.items():
        # why no command heeds the setting, if none does
        note, options, command_name = "", _options(), table.replace("-", "_")
        if not table:
            # the name of an option, alone or behind that of a command
            plain = {*settings.GENERAL, *LIMITS, *(option for names in options.values() for option in names)}
            known = plain | {f"{path}_{option}" for path, names in options.items() for option in names}
            if name not in known:
                note = f"no option has this name{_near(name, known)}"
        elif command_name not in options:
            note = f"no command has this name{_near(command_name, options)}"
        elif name not in options[command_name]:
            note = f"{table} takes no such option{_near(name, options[command_name])}"
        value = item.value if not note else "(not shown)"  # it may be another program's secret
        setting = f"{table}.{name}" if table else name
        setting = setting if len(setting) <= _LONGEST else f"{setting[:40]}… ({len(setting):,} characters)"
        rows.append(_row("setting", setting, value, item.speaker, note))
    note = "left out: only your own settings file, the environment or the command line may say this"
    for item in settings.unheeded():
        setting = f"{item.command}.{item.name}" if item.command else item.name
        rows.append(_row("setting", setting[:_LONGEST], "(not shown)", item.speaker, note))
    warnings = [f"{row['setting']}: {row['note']}" for row in rows if row["note"]]
    # every limit with its reason; the settings raise them
    rows += [
        _row("limit", name, f"{limit(name):,.0f} {bound.unit}", _speaker(name, "default"), f"{bound.reason}")
        for name, bound in LIMITS.items()
    ]
    why = ("note",) if detect().width >= _WIDE else ()
    out.rows(rows, ("setting", "value", "from", *why), None, warnings)


def _row(kind: str, name: str, value: Any, speaker: str, note: str = "") -> dict[str, Any]:
    text = None if value is None else _without_keys(str(value))
    return {"kind": kind, "setting": name, "value": text, "from": speaker, "note": note}


def _without_keys(text: str) -> str:
    """Return a setting as it may be shown: of an address neither a name and password in it nor its query.

    >>> _without_keys("https://me:secret@example.org/gpu?key=secret"), _without_keys("prices")
    ('https://…@example.org/gpu?…', 'prices')
    """
    text = re.sub(r"(\w://)[^/?#\s]*@", r"\1…@", text)
    return re.sub(r"(\w://[^?#\s]*)([?#])\S+", r"\1\2…", text)


def _speaker(name: str, otherwise: str) -> str:
    from gpucost.catalog.settings import spoken

    speakers = [item.speaker for item in spoken() if item.name == name and not item.command]
    return speakers[-1] if speakers else otherwise


def _near(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f"; did you mean {near[0]}?" if near else ""


@cache
def _options() -> dict[str, set[str]]:
    """Return the long names of the options that each table of settings speaks of."""
    from gpucost.cli import COMMANDS, cli
    from gpucost.cli.options import setting_names_of, tables_of

    # commands, and below them their subcommands: this imports every module of the command line
    by_table: dict[str, set[str]] = {}
    waiting: list[tuple[tuple[str, ...], click.Command | None]] = [
        ((name,), cli.get_command(click.Context(cli), name)) for name in COMMANDS
    ]
    while waiting:
        path, parsed_command = waiting.pop()
        assert parsed_command is not None
        names = {name for parameter in parsed_command.params for name in setting_names_of(parameter)}
        for table in tables_of(*path):
            by_table.setdefault(table, set()).update(names)
        waiting += [((*path, inner), sub) for inner, sub in getattr(parsed_command, "commands", {}).items()]
    return by_table
