"""The program in processes that end by themselves, by force or by a signal: how they start, and what came of them."""

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.fuzz.cases import Case, InternalError

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


def command(_: Case | None = None) -> None:
    """Run the command line that stands in sys.argv."""
    from gpucost.cli import main

    main()


def program() -> None:
    """Run the command line that stands in sys.argv as a program of its own, in place of a forked process.

    The engine of the catalog runs threads, and a fork of a process in which it has started may break: what ends by a
    signal here ends by the fault of the program.
    """
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    os.environ["PYTHONFAULTHANDLER"] = "1"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # where no file may grow, nor may that of its last words: they would count as a part that it left behind
    limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    errors = nowhere if limited else os.open(_words_of(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(nowhere, 1)
    os.dup2(errors, 2)
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", *sys.argv[1:]])


def forked(work: Callable[[], None]) -> int:
    """Do work in a child that shares nothing afterwards; return its process number."""
    number = os.fork()
    if number:
        return number
    code = 70  # of an error that nothing handles
    try:
        signal.setitimer(signal.ITIMER_PROF, 0)  # the judge's clock, which a fork inherits
        faulthandler.enable(_words_of(os.getpid()).open("wb"))  # where a crash of native code stands, if one comes
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)
    finally:
        with suppress(Exception):  # also on a disk that is full
            sys.stderr.flush()
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            buffer: Any = getattr(sys.stderr, "buffer", None)
            _words_of(os.getpid()).write_bytes(buffer.getvalue()[-300:] if hasattr(buffer, "getvalue") else b"")
        os._exit(code)  # past the handlers that belong to the judge


def _words_of(number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"fuzz-said-{number}"


def last_words(number: int) -> str:
    """Return the end of what a child wrote before it ended."""
    try:
        return " ".join(_words_of(number).read_text("utf-8", "replace").split())
    except OSError:
        return ""
    finally:
        _words_of(number).unlink(missing_ok=True)


def exit_code(number: int) -> int:
    """Wait for a child and return its exit code; one that broke is an internal error."""
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    words = last_words(number)
    if code in (1, 70) or -code in _CRASHES:
        raise InternalError(f"exit code {code}: {words}")
    return code


def exit_code_until(number: int, until: float) -> int | None:
    """Return the exit code of a child; None of one that had to be killed at that time."""
    while time.monotonic() < until:
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return None
