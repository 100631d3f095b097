"""The fourteen questions of docs/recipes.md: each is one command, and its answer fits a screen of 24 × 80."""

import io
import shlex
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucost.cli import cli, messages
from tests.docs.blocks import blocks_of

LINES, COLUMNS = 24, 80
PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
SECTION = PAGE.read_text("utf-8").split("\n## ")[1]
COMMANDS = [
    line for block in blocks_of(PAGE) if block.text in SECTION for line in block.text.splitlines() if line.strip()
]


def test_there_are_fourteen_questions():
    assert sum(line.endswith("?") for line in SECTION.splitlines()) == 14
    assert len(COMMANDS) >= 14


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_answer_fits_one_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    lines = result.stdout.rstrip("\n").splitlines()
    assert 0 < len(lines) <= LINES
    assert "--quiet" in command or max(map(len, lines)) <= COLUMNS  # a quiet answer is one line, however long


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_is_drawn_on_a_terminal_and_taken_away_and_never_in_a_pipe(stream, monkeypatch):
    shown = stream()
    monkeypatch.setattr(messages.sys, "stderr", shown)
    monkeypatch.setattr(messages, "_FIRST_S", 0.01)
    until = time.monotonic() + (30 if shown.isatty() else 0.1)
    with messages.working("counting"):
        while "counting" not in shown.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert ("counting" in shown.getvalue()) == shown.isatty()
    assert shown.getvalue().endswith("\r\x1b[K") == shown.isatty()
