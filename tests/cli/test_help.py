"""The help of every command, as a reader of the terminal sees it."""

import subprocess
import sys

import click
import pytest

from gpucost import cli as command_line
from gpucost.cli import cli
from gpucost.cli.help import grouped, name_of
from gpucost.gate import beside


def commands():
    """Return the path of every command, subcommands too."""
    context, found = click.Context(cli), []
    waiting = [((name,), cli.get_command(context, name)) for name in cli.list_commands(context)]
    while waiting:
        path, command = waiting.pop()
        found.append(pytest.param(path, id="-".join(path)))
        for name, inner in getattr(command, "commands", {}).items():
            waiting.append(((*path, name), inner))
    return found


def shown(*arguments):
    """Return what a process of its own writes: click keeps help options."""
    run = [sys.executable, "-m", "gpucost", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def titles(text):
    return [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


@pytest.mark.parametrize("path", commands())
def test_help_shows_examples_on_lines_of_their_own(path):
    text = shown(*path, "--help")
    assert "Usage:" in text
    assert "\\b" not in text
    assert "\b" not in text
    for line in text.splitlines():
        assert line.count(" gpucost ") <= 1 or "&&" in line, line
        assert len(line) <= 80, line


def test_the_commands_stand_in_groups_on_one_screen():
    lines = shown("--help").splitlines()
    assert len(lines) <= 60
    assert titles("\n".join(lines)) == [
        "Options", "Plan", "Understand", "Run and pay", "Share", "Facts", "Calibrate", "Set up",
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in lines)
    names = {line.split("  ")[1] for line in lines if line.startswith("  ")}
    assert names >= set(cli.list_commands(click.Context(cli)))


def test_every_name_listed_is_a_command():
    for name, _, module, _ in beside(command_line.__file__, "commands")[1:]:
        parent, *inner = name.split()
        command = cli.get_command(click.Context(cli), parent)
        assert bool(module) is not bool(inner)
        assert all(word in command.commands for word in inner), name


def options():
    """Yield every command with its options."""
    context = click.Context(cli)
    waiting = [cli.get_command(context, name) for name in cli.list_commands(context)]
    for command in waiting:
        waiting += getattr(command, "commands", {}).values()
        yield command, [one for one in command.params if isinstance(one, click.Option)]


def test_an_option_stands_in_one_group_and_none_is_lost():
    for command, declared in options():
        groups, hidden = grouped(command, click.Context(command), everything=True)
        listed = [option for group in groups.values() for option in group]
        assert hidden == 0
        assert len(listed) == len({id(one) for one in listed})
        assert {id(one) for one in declared} <= {id(one) for one in listed}
        fewer, hidden = grouped(command, click.Context(command))
        shown_first = [option for group in fewer.values() for option in group]
        assert len(shown_first) + hidden == len(listed)
        assert all(one in shown_first for one in declared if one.required or "[required]" in (one.help or ""))


def test_each_option_of_a_long_help_has_its_group_and_each_row_an_option():
    names = {(command.name, name_of(one)) for command, declared in options() for one in declared}
    rows = [(command, option) for _, command, option, _ in beside(command_line.__file__, "groups")[1:]]
    assert len(rows) == len(set(rows))
    known = {*names, *(("any", option) for _, option in names)}
    stale = [row for row in rows if row not in known and row[1] not in ("any", "help", "help-all")]
    assert not stale
    for command, declared in options():
        everything, _ = grouped(command, click.Context(command), everything=True)
        left = [one.name for one in everything.get("Options", ()) if one in declared]
        assert len(declared) <= 18 or not left, (command.name, left)


def test_help_all_shows_what_help_leaves_out():
    short, long = shown("estimate", "--help"), shown("estimate", "--help-all")
    assert "--draft-tokens" not in short
    for option in ("--lora-targets", "--storage-bandwidth", "--known-as-of"):
        assert option not in short
        assert option in long
    for option in ("--model", "--budget", "--mfu", "--format"):
        assert option in short
    assert "--help-all" in short
    assert set(titles(short)) <= set(titles(long))
    assert "--help-all" not in shown("saved", "rerun", "--help")  # few options: all are shown
    assert shown("saved", "rerun", "--help-all") == shown("saved", "rerun", "--help")
