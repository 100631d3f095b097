"""What lets thousands of cases a minute be asked: one open catalog for all cases without facts of their own, and forks.

A query is answered by a fork instead of a new interpreter. Nothing of what is judged is replaced.
"""

import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

MOST_OPEN = 12  # catalogs of other days
_ALONE: list[bool] = []  # holds something while a catalog is opened that none shares


def share_commands() -> None:
    """Build the command of each question once."""
    from gpucost.cli import question as module

    question: Any = module
    question.command_of = cache(question.command_of)


def share_catalog() -> None:
    """Let every case without a book, a store or other data ask the same open catalog; check the shipped data once."""
    from gpucost.catalog import core
    from gpucost.catalog.loader import shipped_root

    opened: dict[Any, core.Catalog] = {}
    create, root_of_all = core.Catalog.__new__, shipped_root()

    def shared(as_of: Any, known_as_of: Any, root: Any, layers: Any, kept_at: Any = None, version: Any = "") -> Any:
        if (
            _ALONE
            or layers
            or root != root_of_all
            or not (kept_at is None or (isinstance(kept_at, Path) and not kept_at.is_dir()))
        ):
            return None
        return as_of, known_as_of, root, version

    def new(kind: type[core.Catalog], *key: Any, **keys: Any) -> core.Catalog:
        key = (*key, *keys.values())
        named = shared(*key)
        if kind is not core.Catalog or named is None:
            return create(kind)
        if named not in opened:
            while len(opened) >= MOST_OPEN:  # the first is that of today
                del opened[list(opened)[1]]
            opened[named] = create(kind)
            original(opened[named], *key)
        return opened[named]

    original = core.Catalog.__init__

    def begin(self: core.Catalog, *key: Any, **keys: Any) -> None:
        if shared(*key, **keys) is None:
            original(self, *key, **keys)

    sharing: Any = core.Catalog
    sharing.__new__, sharing.__init__ = new, begin
    _read_once(root_of_all)


def _read_once(shipped: Path) -> None:
    """Read and check the shipped folder once, any other each time."""
    from gpucost.catalog import checks, loader

    def once(work: Any) -> Any:
        kept = cache(work)
        return lambda root, *more: (kept if root == shipped else work)(root, *more)

    reader: Any = loader
    reader.read_contents = once(reader.read_contents)
    checks.check_folder = once(checks.check_folder)


class _Forked:
    """A process that answers one query, as `subprocess` would start it; the facts are loaded before the fork."""

    def __init__(self, *_: Any, **__: Any) -> None:
        there, mine = os.pipe()
        here, theirs = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            self._answer(there, theirs)
        os.close(there)
        os.close(theirs)
        self.stdin, self.stdout = os.fdopen(mine, "wb"), os.fdopen(here, "rb")

    @staticmethod
    def _answer(there: int, theirs: int) -> None:
        import sys

        from gpucost.catalog import query

        try:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.dup2(there, 0)
            os.dup2(theirs, 1)
            os.closerange(3, 1024)
            sys.stdin = open(0)  # noqa: SIM115
            query.serve()
        finally:
            os._exit(1)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def share_drawing() -> None:
    """Take the program that draws from a process of its own: an engine that was started before a fork breaks after."""
    import subprocess
    import sys

    from gpucost.render import html

    asked = [sys.executable, "-c", "from gpucost.render.html import _library; print(_library())"]
    program = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    replaced: Any = html
    replaced._library = lambda: program


def answer_queries_here() -> None:
    """Start the process of a query by a fork, with the copy of the facts that this process has made once."""
    from types import SimpleNamespace

    from gpucost.catalog import core, open_catalog, query, sandbox
    from gpucost.schemas import TABLES

    _ = query.only_select("select 1")
    original = core.Catalog.copied
    today, whole = open_catalog(), frozenset(TABLES)
    _ALONE.append(True)
    ready = {history: original(today, whole, history) for history in (False, True)}
    _ALONE.clear()

    def copied(self: core.Catalog, tables: frozenset[str], history: bool = False) -> Any:
        return ready[history] if self is today and tables == whole else original(self, tables, history)

    replaced: Any = core.Catalog
    replaced.copied = copied
    module: Any = sandbox
    module.subprocess = SimpleNamespace(Popen=_Forked, PIPE=-1, DEVNULL=-3)
