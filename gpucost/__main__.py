"""The program: `gpucost`, and `python -m gpucost`."""

import _signal  # type: ignore[import-not-found] # of signal the part that takes no time to load
import os


def run() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it without a word, as later."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # a shell has it ignored in the background
        _signal.signal(_signal.SIGINT, lambda *_: os._exit(130))
    from gpucost.cli import run as run_commands

    run_commands()


if __name__ == "__main__":
    run()
