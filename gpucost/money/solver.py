"""The solver of linear and mixed-integer programs, kept from writing beside the answer on stdout."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def milp(*given: Any, **named: Any) -> Any:
    """Solve a mixed-integer program as scipy.optimize.milp does."""
    from scipy import optimize

    with silent():
        return optimize.milp(*given, **named)


def linprog(*given: Any, **named: Any) -> Any:
    """Solve a linear program as scipy.optimize.linprog does."""
    from scipy import optimize

    solve: Any = optimize.linprog
    with silent():
        return solve(*given, **named)


@contextmanager
def silent() -> Iterator[None]:
    """Lead what compiled code writes on stdout nowhere; left alone where other threads may be writing there."""
    try:
        kept = os.dup(1) if threading.active_count() == 1 else None
    except OSError:  # nobody reads it anyway
        kept = None
    if kept is None:
        yield
        return
    sys.stdout.flush()
    _flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _flush() -> None:
    """Have compiled code write what it still holds."""
    with suppress(OSError, AttributeError, TypeError):  # a system without one library for all
        ctypes.CDLL(None).fflush(None)
