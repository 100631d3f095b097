"""The program: `gpucost`, and `python -m gpucost`."""

import os
import signal


def run() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it without a word, as later."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell has it ignored in the background
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from gpucost.cli import run as run_commands

    run_commands()


if __name__ == "__main__":
    run()
