"""Who is asked by a case: the command line, the library, the tools of agents, the page, or a process that is disturbed.

A face prints what it answers, ends with SystemExit or an error of the program where it refuses, and raises
InternalError where the program itself says that it broke.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.effects import effect
from benchmarks.fuzz.orders import order
from benchmarks.fuzz.rounds import round_trip
from benchmarks.fuzz.valid import valid
from benchmarks.fuzz.waits import racing, waiting


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
    limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    told = nowhere if limited else os.open(_said_by(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(nowhere, 1)
    os.dup2(told, 2)
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", *sys.argv[1:]])


def library(asked: Case) -> None:
    """Ask a function of the library, and print its answer as JSON."""
    import gpucost

    answer = getattr(gpucost, asked.arguments[0])(**asked.given)
    repr(answer), str(answer)
    if hasattr(answer, "to_dict"):  # a column of cases has none
        answer._repr_html_(), answer.to_frame()
        print(json.dumps(answer.to_dict()))


def tool(asked: Case) -> None:
    """Call a tool as an agent does; its compact JSON is printed."""
    from gpucost.agents.server import answered

    text, failed = answered(asked.arguments[0], asked.given)
    if text.startswith("internal error"):
        raise InternalError(text)
    if failed:
        sys.exit(2)
    json.loads(text)


def page(asked: Case) -> None:
    """Ask for an address of the page, past the network."""
    from gpucost.page import app

    given = urlencode(asked.given, errors="surrogatepass") if isinstance(asked.given, dict) else asked.given
    kind, name = asked.arguments
    scope = {
        "type": "http", "method": "GET", "path": f"/t/{kind}/{name}", "headers": [],
        "query_string": given.encode("utf-8", "surrogatepass"), "path_params": {"name": name},
    }  # fmt: skip
    from starlette.requests import Request

    response = {"api": app._answer, "export": app._export, "file": app._file}[kind](Request(scope))
    body = bytes(response.body)
    if response.status_code == 500:
        raise InternalError(body.decode())
    if response.status_code != 200:
        sys.exit(2)
    if kind == "api":
        print(body.decode())


# ── disturbed ────────────────────────────────────────────────────────────────────────────────────────────────────────


def forked(work: Callable[[], None]) -> int:
    """Do work in a child that shares nothing afterwards; return its process number."""
    number = os.fork()
    if number:
        return number
    code = 70
    try:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.enable(_said_by(os.getpid()).open("wb"))  # where a crash of native code stands, if one comes
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
            _said_by(os.getpid()).write_bytes(buffer.getvalue()[-300:] if hasattr(buffer, "getvalue") else b"")
        os._exit(code)


def _said_by(number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"fuzz-said-{number}"


def said(number: int) -> str:
    """Return the end of what a child said before it ended."""
    try:
        return " ".join(_said_by(number).read_text("utf-8", "replace").split())
    except OSError:
        return ""
    finally:
        _said_by(number).unlink(missing_ok=True)


CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


def _code(number: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    words = said(number)
    if code in (1, 70) or -code in CRASHES:
        raise InternalError(f"exit code {code}: {words}")
    return code


def _whole(target: Path, old: bytes) -> None:
    """Refuse a file that is neither what stood there nor a complete new one."""
    data = target.read_bytes() if target.exists() else b""
    if data == old:
        return
    if target.suffix == ".json":
        json.loads(data)
    elif target.suffix == ".xlsx":
        import zipfile

        if zipfile.ZipFile(target).testzip():
            raise InternalError(f"{target} is no whole workbook")
    elif (target.suffix == ".html" and b"</html>" not in data[-50:]) or not data.endswith(b"\n"):
        raise InternalError(f"{target} ends at {data[-50:]!r}")


def killed(asked: Case) -> None:
    """End a writer by force after a while: the old or the new file stands, and the next writer tidies up."""
    target = Path(asked.arguments[-1])
    old = target.read_bytes() if target.exists() else b""
    number = forked(command)
    time.sleep(asked.given)
    os.kill(number, signal.SIGKILL)
    _code(number)
    _whole(target, old)
    from gpucost.store.files import write_text

    write_text(target, "after\n")


def full(asked: Case) -> None:
    """Let no file grow beyond some bytes: the command refuses with a sentence, and the old file stands."""
    target = Path(asked.arguments[-1])
    old = target.read_bytes() if target.exists() else b""

    code = _code(forked(partial(_within, asked.given)))
    if code not in (0, 2):
        raise InternalError(f"exit code {code} on a full disk")
    _whole(target, old)
    sys.exit(code)


def interrupted(asked: Case) -> None:
    """Press Ctrl-C after a while: the command ends with 130, or was done before."""

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command()

    number = forked(work)
    time.sleep(asked.given)
    os.kill(number, signal.SIGINT)
    if (code := _code(number)) in (1, 70):
        raise InternalError(f"exit code {code} after Ctrl-C")


def processes(asked: Case) -> None:
    """Let several processes write one file at once: each succeeds, and the file is that of one of them."""
    codes = [_code(number) for number in [forked(command) for _ in range(asked.given)]]
    if set(codes) - {0}:
        raise InternalError(f"exit codes {codes} of processes at once")
    _whole(Path(asked.arguments[-1]), b"")


def threads(asked: Case) -> None:
    """Let several threads ask one fresh catalog: all get the same answer."""
    import gpucost
    from gpucost.catalog import open_catalog

    book = Path("book.toml")
    book.write_text('[[discount]]\nprovider = "aws"\nfraction = 0.1\n', "utf-8")  # no catalog that others share
    catalog, found = open_catalog(book=book), []

    def ask() -> None:
        try:
            answer: Any = getattr(gpucost, asked.arguments[0])(catalog=catalog, **asked.given).to_dict()
            found.append(json.dumps(answer, sort_keys=True))
        except BaseException as error:
            found.append(f"{type(error).__name__}: {error}")

    team = [Thread(target=ask) for _ in range(8)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    if len(set(found)) != 1 or not found[0].startswith("{"):
        raise InternalError(f"{len(set(found))} answers of 8 threads: {min(found, key=len)[:200]}")


def full_disk(asked: Case) -> None:
    """Let no file grow beyond some bytes, whoever writes it: a sentence, the old file, and nothing beside it."""
    target = Path(asked.arguments[-1])
    old = target.read_bytes() if target.is_file() else None
    before = _all_files()
    code = _code(forked(partial(_within, asked.given)))
    if code not in (0, 2):
        raise InternalError(f"exit code {code} of {asked.arguments[0]} on a full disk of {asked.given} bytes")
    new = _all_files() - before
    if code == 2 and (left := [one for one in new if not one.startswith("gpucost") and one != str(target)]):
        raise InternalError(f"{asked.arguments[0]} leaves {left[0]} on a full disk")
    if code == 2 and old is not None and target.read_bytes() != old:
        raise InternalError(f"{asked.arguments[0]} spoils {target} on a full disk")
    if code == 2 and old is None and target.is_file():
        raise InternalError(f"{asked.arguments[0]} leaves a part of {target} on a full disk")
    sys.exit(code)


def _within(most_bytes: int) -> None:
    """Run the command line where no file may grow beyond some bytes; what it says is no file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    program()


def _all_files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def whole(asked: Case) -> None:
    """Run a command in a process of its own, whose memory and processor are counted with those of its children."""
    del asked
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = used.ru_utime + used.ru_stime
    # a program that is started from a fork begins with the peak of the process that forked it
    ours = max(used.ru_maxrss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    code = _code(forked(program))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (seconds := used.ru_utime + used.ru_stime - spent_s) > MOST_S:
        raise InternalError(f"{sys.argv[1]} takes {seconds:.0f} s of the processor")
    if (gigabytes := used.ru_maxrss * 1024 / 1e9) > MOST_GB and used.ru_maxrss > ours:
        raise InternalError(f"{sys.argv[1]} takes {gigabytes:.1f} GB")
    if code in (1, 70) or code < 0:
        raise InternalError(f"exit code {code} of {sys.argv[1]}")
    sys.exit(code)


MOST_S, MOST_GB = 40, 2.0  # of one command and the processes that it starts; a query may run for 15 s

FACES: dict[str, Callable[[Case], None]] = {
    one.__name__: one
    for one in (
        *(command, library, order, round_trip, effect, tool, page),
        *(killed, full, interrupted, processes, threads),
        *(waiting, racing, full_disk, whole, valid),
    )
}
