"""Who is asked by a case: the command line, the library, the tools of agents, the page, or a process that is disturbed.

A face prints what it answers, ends with SystemExit or an error of the program where it refuses, and raises
InternalError where the program itself says that it broke.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.children import command, exit_code, forked, program
from benchmarks.fuzz.effects import effect
from benchmarks.fuzz.orders import order
from benchmarks.fuzz.rounds import round_trip
from benchmarks.fuzz.valid import valid
from benchmarks.fuzz.waits import racing, waiting

_MOST_S, _MOST_GB = 40, 2.0  # of one command and the processes that it starts; a query may run for 15 s


def library(case: Case) -> None:
    """Ask a function of the library, and print its answer as JSON."""
    import gpucost

    answer = getattr(gpucost, case.arguments[0])(**case.inputs)
    # what a notebook shows may not break either
    repr(answer)
    str(answer)
    if hasattr(answer, "to_dict"):  # a column of cases has none
        answer._repr_html_()
        answer.to_frame()
        print(json.dumps(answer.to_dict()))


def tool(case: Case) -> None:
    """Call a tool as an agent does; its compact JSON is printed."""
    from gpucost.agents.server import answered

    text, failed = answered(case.arguments[0], case.inputs)
    if text.startswith("internal error"):
        raise InternalError(text)
    if failed:
        sys.exit(2)
    json.loads(text)


def page(case: Case) -> None:
    """Ask for an address of the page, past the network."""
    from starlette.requests import Request

    from gpucost.page import app

    # fields of a form, or a query as a hostile hand writes it
    query = urlencode(case.inputs, errors="surrogatepass") if isinstance(case.inputs, dict) else case.inputs
    kind, name = case.arguments
    scope = {
        "type": "http", "method": "GET", "path": f"/t/{kind}/{name}", "headers": [],
        "query_string": query.encode("utf-8", "surrogatepass"), "path_params": {"name": name},
    }  # fmt: skip
    response = {"api": app._answer, "export": app._export, "file": app._file}[kind](Request(scope))
    body = bytes(response.body)
    if response.status_code == 500:
        raise InternalError(body.decode())
    if response.status_code != 200:
        sys.exit(2)
    if kind == "api":
        print(body.decode())


# ── disturbed, or watched for what they take ──────────────────────────────────────────────────────────────────────────


def _refuse_partial(target: Path, old: bytes) -> None:
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


def killed(case: Case) -> None:
    """End a writer by force after a while: the old or the new file stands, and the next writer is not hindered."""
    from gpucost.store.files import write_text

    target = Path(case.arguments[-1])
    old = target.read_bytes() if target.exists() else b""
    process = forked(command)
    time.sleep(case.inputs)
    os.kill(process, signal.SIGKILL)
    exit_code(process)
    _refuse_partial(target, old)
    write_text(target, "after\n")


def interrupted(case: Case) -> None:
    """Press Ctrl-C after a while: the command ends without an error of the program, or was done before."""

    def work() -> None:
        # as in a terminal: whoever starts many cases in the background may have it ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command()

    process = forked(work)
    time.sleep(case.inputs)
    os.kill(process, signal.SIGINT)
    exit_code(process)


def processes(case: Case) -> None:
    """Let several processes write one file at once: each succeeds, and the file is that of one of them."""
    running = [forked(command) for _ in range(case.inputs)]  # all of them, before one is waited for
    codes = [exit_code(process) for process in running]
    if any(codes):
        raise InternalError(f"exit codes {codes} of processes at once")
    _refuse_partial(Path(case.arguments[-1]), b"")


def threads(case: Case) -> None:
    """Let several threads ask one fresh catalog: all get the same answer."""
    import gpucost
    from gpucost.catalog import open_catalog

    book = Path("book.toml")
    book.write_text('[[discount]]\nprovider = "aws"\nfraction = 0.1\n', "utf-8")  # no catalog that others share
    catalog, answers = open_catalog(book=book), []

    def ask() -> None:
        try:
            answer: Any = getattr(gpucost, case.arguments[0])(catalog=catalog, **case.inputs).to_dict()
            answers.append(json.dumps(answer, sort_keys=True))
        except BaseException as error:
            answers.append(f"{type(error).__name__}: {error}")

    team = [Thread(target=ask) for _ in range(8)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    if len(set(answers)) != 1 or not answers[0].startswith("{"):
        raise InternalError(f"{len(set(answers))} answers of 8 threads: {min(answers, key=len)[:200]}")


def full_disk(case: Case) -> None:
    """Let no file grow beyond some bytes, whoever writes it: a sentence, the old file, and nothing beside it."""
    target = Path(case.arguments[-1])
    old = target.read_bytes() if target.is_file() else None
    before = _all_files()

    def writing() -> None:
        # with the signal ignored a write beyond the limit fails as on a full disk, by an error number
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (case.inputs, hard))
        program()

    code = exit_code(forked(writing))
    if code not in (0, 2):
        raise InternalError(f"exit code {code} of {case.arguments[0]} on a full disk of {case.inputs} bytes")
    # what the program keeps for itself (its cache, its settings) may stay; beside the target nothing else may
    new = _all_files() - before
    if code == 2 and (left := [name for name in new if not name.startswith("gpucost") and name != str(target)]):
        raise InternalError(f"{case.arguments[0]} leaves {left[0]} on a full disk")
    if code == 2 and old is not None and target.read_bytes() != old:
        raise InternalError(f"{case.arguments[0]} spoils {target} on a full disk")
    if code == 2 and old is None and target.is_file():
        raise InternalError(f"{case.arguments[0]} leaves a part of {target} on a full disk")
    sys.exit(code)


def _all_files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def whole(case: Case) -> None:
    """Run a command in a process of its own, whose memory and processor are counted with those of its children."""
    del case  # a face takes one; the command line stands in sys.argv
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = used.ru_utime + used.ru_stime
    # a program that is started from a fork begins with the peak of the process that forked it
    parent_peak_kb = max(used.ru_maxrss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    code = exit_code(forked(program))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (seconds := used.ru_utime + used.ru_stime - spent_s) > _MOST_S:
        raise InternalError(f"{sys.argv[1]} takes {seconds:.0f} s of the processor")
    if (gigabytes := used.ru_maxrss * 1024 / 1e9) > _MOST_GB and used.ru_maxrss > parent_peak_kb:
        raise InternalError(f"{sys.argv[1]} takes {gigabytes:.1f} GB")
    if code < 0:  # killed, as the system does where memory ends
        raise InternalError(f"exit code {code} of {sys.argv[1]}")
    sys.exit(code)


# by name, as cases and their saved files call them
FACES: dict[str, Callable[[Case], None]] = {
    face.__name__: face
    for face in (
        *(command, library, order, round_trip, effect, tool, page),
        *(killed, interrupted, processes, threads),
        *(waiting, racing, full_disk, whole, valid),
    )
}
