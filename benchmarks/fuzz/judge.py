"""Running one case in the present folder, and judging what came of it.

A case is fine when it is answered or refused with a sentence. It is not when there is an internal error (crash), no
answer within 20 s of the processor (slow) or 120 s of the clock (hang), over 2 GB of memory (memory), or what cannot be
(nonsense): JSON that does not parse or holds NaN, a control character sent to the terminal, a cost below zero.
"""

import contextlib
import io
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.faces import FACES
from benchmarks.fuzz.meaning import faults_of

SLOW_S, HANG_S, MEMORY_BYTES = 20, 120, 2_000_000_000
BAD = ("crash", "hang", "slow", "memory", "nonsense")
CODES, REFUSED = (0, 2, 3, 4, 5, 6, 130), "2"  # gpucost/errors.py says what each means
# controls but tab and newline, separators of lines, and what turns the direction of writing
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# a cell that a spreadsheet would run
_FORMULA = re.compile(r'(^|,)"?[=@][A-Za-z(]', re.MULTILINE)
HOMES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")  # no case reads or changes what the user keeps
_LONGEST_SENTENCE = 3000  # signs of a refusal


class Verdict(NamedTuple):
    """How a case went, and where it broke: equal places are one fault."""

    kind: str
    place: str = ""


class TooSlowError(BaseException):
    """No handler of the program catches it."""


def put(files: Mapping[str, bytes | str]) -> None:
    """Lay a case's files into the present folder."""
    for name, data in files.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True, parents=True)
        if isinstance(data, bytes):
            path.write_bytes(data)
        elif data == "fifo":
            os.mkfifo(path)
        elif data == "folder":
            path.mkdir()
        else:
            path.symlink_to(data.removeprefix("link:"))


def verdict_of(case: Case) -> Verdict:
    """Run one case in the present folder, and judge it."""
    from gpucost.cli.messages import say
    from gpucost.errors import GpuCostError

    put(case.files)
    encoding = case.environment.get("PYTHONIOENCODING") or "utf-8"
    texts = io.TextIOWrapper(io.BytesIO(), encoding), io.TextIOWrapper(io.BytesIO(), encoding)
    before, argv = dict(os.environ), sys.argv
    for name, value in case.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    time.tzset()  # a case may set TZ
    sys.argv = ["gpucost", *case.arguments]

    def alarm(*_: object) -> None:
        raise TooSlowError

    # by the processor, not the clock: other workers share the machine
    start = time.process_time()
    signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    try:
        with (
            contextlib.redirect_stdout(texts[0]),
            contextlib.redirect_stderr(texts[1]),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error", RuntimeWarning)  # 0/0, overflow: what follows from it is no figure
            try:
                FACES[case.face](case)
                verdict = Verdict("answered")
            except SystemExit as end:
                # the command line's last handler ends with 1 where it met what it does not know
                broke = end.code == 1 and isinstance(end.__context__, Exception)
                verdict = Verdict("crash", _place(end.__context__)) if broke else _ended(end.code or 0)
            except GpuCostError as error:
                say(str(error))
                verdict = _ended(error.exit_code)
            except OSError as error:
                say(str(error.strerror))
                verdict = _ended(2)
            except Exception as error:
                verdict = Verdict("crash", _place(error))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
    except TooSlowError as error:
        verdict = Verdict("slow", _place(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.environ.clear()
        os.environ.update(before)
        sys.argv = argv
    if time.process_time() - start > SLOW_S:  # in native code no signal is handled
        verdict = Verdict("slow", verdict.place)
    if verdict.kind in BAD:
        return verdict
    buffers: Any = [text.buffer for text in texts]
    out, err = (buffer.getvalue().decode("utf-8", "replace") for buffer in buffers)
    fault = _fault(case, out, err, verdict.place)
    return Verdict("nonsense", fault) if fault else verdict


def _ended(code: object) -> Verdict:
    """Judge the code with which a process ends, which scripts lean on."""
    if code not in CODES:
        return Verdict("nonsense", f"exit code {code} means nothing")
    return Verdict("refused" if code else "answered", str(code or ""))


def _place(error: BaseException) -> str:
    """Name the deepest line of the program on the way to an error."""
    # ours, not those of a library or of this judge
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gpucost/" in frame.filename]
    last = frames[-1] if frames else None
    place = f"{last.filename.rsplit('/gpucost/', 1)[1]}:{last.lineno} {last.name}" if last else "?"
    return f"{place}: {type(error).__name__}: {str(error)[:90]!r}"


def _fault(case: Case, out: str, err: str, code: str) -> str:
    """Return what no answer may hold, nor what is said beside it; "" where there is nothing."""
    name = case.arguments[0]
    on_command_line = case.face == "command"
    # what a script would take for an answer, or a person for none
    if code == REFUSED and on_command_line:
        if out.strip():
            return f"{name} refuses, yet writes {out[:80]!r}"
        if not err.strip():
            return f"{name} refuses without a word"
        written = {path.name for path in Path().glob("out.*")}
        if written and not set(case.files) & written:
            return f"{name} refuses, yet leaves a file"
    if code and on_command_line and "Traceback" in err:
        return f"{name} shows a traceback"
    if case.face != "library" and (sign := _CONTROL.search(out + err)):
        return f"control character {sign[0]!r} sent to the terminal by {name}"
    if "Warning:" in err:
        return f"a warning of Python: {err[:150]!r}"
    if code and len(err) > _LONGEST_SENTENCE:
        return f"{name} refuses in {len(err):,} signs: {err[:60]!r}"
    # a writer's scratch file; the user may have asked for such a name
    scratch = [file for file in os.listdir() if file.startswith(".") or file.endswith(".tmp")]
    if left := [file for file in scratch if file not in "".join(case.arguments)]:
        return f"{name} left {left[0]}"
    for ending in ("xlsx", "csv", "md", "txt") if on_command_line else ():
        if Path(f"out.{ending}").is_file() and (fault := _file_fault(ending, Path(f"out.{ending}"))):
            return f"{ending} of {name}: {fault}"
    # JSON, where that is what was asked for
    if any(re.search(r"(^|=)(csv|md|table)$|^--help$|^-h$|^--version$", argument) for argument in case.arguments):
        return ""
    if Path("out.json").is_file() and on_command_line:
        out = Path("out.json").read_text("utf-8")
    elif code == REFUSED or not ({"json", "--format=json"} & set(case.arguments) or case.face in ("library", "page")):
        return ""
    if not out.strip():
        return ""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        answer = json.loads(out, parse_constant=refuse)
    except ValueError as error:
        return f"JSON of {name}: {error}"
    if name in ("rerun", "compare", "report", "watch", "export", "reconcile"):
        return ""  # of a saved answer: whether its figures are true is its owner's to say (SECURITY.md)
    fault = next(faults_of(answer), None)
    return f"{name}: {fault}" if fault else ""


def _file_fault(kind: str, path: Path) -> str:
    if kind != "xlsx":
        text = path.read_text("utf-8")
        if sign := _CONTROL.search(text.replace("\r\n", "\n")):
            return f"control character {sign[0]!r}"
        if kind == "csv" and (begin := _FORMULA.search(text)):
            return f"a cell that begins a formula: {begin[0]!r}"
        return ""
    from xml.etree import ElementTree

    with zipfile.ZipFile(path) as book:
        for name in book.namelist():
            if not name.endswith(".xml"):
                continue
            data = book.read(name)
            try:
                ElementTree.fromstring(data)
            except ElementTree.ParseError as error:
                return f"{name}: {error}"
            # within a text or a value it calls nothing
            if b"WEBSERVICE" in re.sub(rb"<(a:)?(t|v)[ >].*?</(a:)?(t|v)>|\"[^\"]*\"", b"", data):
                return f"{name}: a live call"
    return ""


def peak_bytes() -> int:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in a new folder without settings, and leave nothing."""
    import shutil
    import tempfile

    here, scratch = os.getcwd(), tempfile.mkdtemp(prefix="fuzz-")
    os.chdir(scratch)
    os.environ.update(dict.fromkeys(HOMES, scratch))
    try:
        yield Path(scratch)
    finally:
        os.chdir(here)
        shutil.rmtree(scratch, ignore_errors=True)
