"""What the program says beside its answers, on stderr: remarks, and a sign of life while it works."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

import click

# --- Remarks; no text from outside steers the terminal.


def say(text: str) -> None:
    """Write one remark on stderr; signs that a terminal would obey are shown, not sent."""
    click.echo(f"gpucost: {printable(text)}", err=True)


def tell(text: str) -> None:
    """Write one line of an answer on stdout, as `say` does."""
    click.echo(printable(text))


def printable(text: str) -> str:
    """Return a text in which control characters can be seen."""
    if text.isprintable():
        return text
    from gpucost.render.document import visible  # only where there is something to make visible: most remarks are plain

    return visible(text)


# --- Progress, drawn only where a person looks at a terminal.

_FIRST_S, _EVERY_S = 0.8, 0.1  # nothing is drawn before the first moment: most answers are there by then
_WIDTH = 20  # signs of the bar


@contextmanager
def working(activity: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar with the seconds spent, until the work is done; nothing in a pipe. It may be told of done and all."""
    counted = [0, 0]

    def advance(done: int, total: int) -> None:
        counted[:] = done, total

    if not sys.stderr.isatty():
        yield advance
        return
    done = Event()

    def draw() -> None:
        start, drawn, wait_s = monotonic(), False, _FIRST_S
        while not done.wait(wait_s):
            wait_s, drawn = _EVERY_S, True
            sys.stderr.write(f"\r{bar(activity, monotonic() - start, *counted)}\x1b[K")  # over the line before
            sys.stderr.flush()
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    # a thread of its own, so that the work need not know of it; a daemon never keeps the program from ending
    drawing = Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield advance
    finally:
        done.set()
        drawing.join()  # the line is wiped before anything else is written


def bar(activity: str, seconds: float, done: int = 0, total: int = 0) -> str:
    """Return one frame: a block that runs to and fro, or the share that is done with the time that is left.

    >>> bar("reading", 0.0), bar("cases", 60.0, 25, 100)
    ('[###.................] reading, 0 s', '[#####...............] 25 of 100 cases, 180 s left')
    """
    if done and total:
        filled = _WIDTH * done // total
        left = f"{seconds * (total - done) / done:.0f} s left"
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,} of {total:,} {activity}, {left}"
    # to the right end and back
    position = int(seconds / _EVERY_S) % (2 * (_WIDTH - 3))
    position = min(position, 2 * (_WIDTH - 3) - position)
    return f"[{'.' * position}###{'.' * (_WIDTH - 3 - position)}] {activity}, {seconds:.0f} s"
