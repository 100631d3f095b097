"""The code blocks of a Markdown file, with the marker comment that stands before a block."""

import re
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(
    r"(?:<!-- (?P<marker>[a-z-]+) -->\s*\n)?^```(?P<language>[a-z]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """One fenced block."""

    file: str
    line: int
    language: str
    marker: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    """Return the fenced blocks of a file in order."""
    body = path.read_text(encoding="utf-8")
    return [
        Block(
            path.name, body.count("\n", 0, found.start()) + 1, found["language"], found["marker"] or "", found["text"]
        )
        for found in _BLOCK.finditer(body)
    ]
