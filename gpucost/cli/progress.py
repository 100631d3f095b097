"""A sign of life while a command takes its time: on stderr, and only where a person looks at a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

_FIRST_S, _EVERY_S, _WIDTH = 0.8, 0.1, 20  # nothing is drawn before the first moment


@contextmanager
def working(words: str) -> Iterator[None]:
    """Draw a moving bar with the seconds spent, until the work is done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    drawing = Thread(target=_draw, args=(words, done), daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()


def _draw(words: str, done: Event) -> None:
    start, drawn = monotonic(), False
    wait = _FIRST_S
    while not done.wait(wait):
        wait, drawn = _EVERY_S, True
        sys.stderr.write(f"\r{bar(words, monotonic() - start)}\x1b[K")
        sys.stderr.flush()
    if drawn:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def bar(words: str, seconds: float) -> str:
    """Return one frame: a block that runs to and fro, what is being done, for how long.

    >>> bar("reading", 0.0)
    '[###.................] reading, 0 s'
    """
    place = int(seconds / _EVERY_S) % (2 * (_WIDTH - 3))
    place = min(place, 2 * (_WIDTH - 3) - place)
    return f"[{'.' * place}###{'.' * (_WIDTH - 3 - place)}] {words}, {seconds:.0f} s"
