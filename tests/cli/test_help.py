"""The help of every command, as a reader of the terminal sees it."""

import subprocess
import sys

import click
import pytest

from gpucost.cli import cli


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


@pytest.mark.parametrize("path", commands())
def test_help_shows_examples_on_lines_of_their_own(path):
    run = [
        sys.executable,
        "-m",
        "gpucost",
        *path,
        "--help",
    ]  # a process of its own: click keeps help options
    text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "Usage:" in text
    assert "\\b" not in text
    assert "\b" not in text
    for line in text.splitlines():
        assert line.count(" gpucost ") <= 1 or "&&" in line, line
        assert len(line) <= 80, line
