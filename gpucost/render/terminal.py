"""What the receiving end can show: its width, colour and signs beyond ASCII."""

import os
import shutil
import sys

from gpucost.frozen import Frozen

WIDE = 150  # a pipe or a file has no width of its own
_PLAIN = str.maketrans(
    {
        "–": "-",
        "—": "-",
        "×": "x",
        "µ": "u",
        "∞": "inf",
        "█": "#",
        "─": "-",
        "·": ".",
        "≤": "<=",
        "≥": ">=",
        "•": "*",
        "┼": "+",
        "│": "|",
        "→": "->",
        "…": "...",
    }
)


class Terminal(Frozen):
    """What the receiving end can show."""

    width: int
    color: bool
    unicode: bool

    def paint(self, text: str, code: str) -> str:
        """Colour the text where that is welcome."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def detect(width: int | None = None, color: bool | None = None, unicode: bool | None = None) -> Terminal:
    """Find out what standard output can show; arguments overrule."""
    interactive = sys.stdout.isatty()
    if width is None:
        width = shutil.get_terminal_size().columns if interactive or "COLUMNS" in os.environ else WIDE
    if color is None:
        color = interactive and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if unicode is None:
        unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return Terminal(max(width, 20), color, unicode)


def to_ascii(text: str) -> str:
    """Replace the few signs beyond ASCII that documents use."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")
