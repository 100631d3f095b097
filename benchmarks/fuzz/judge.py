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
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
FORMULA = re.compile(r'(^|,)"?[=@][A-Za-z(]', re.MULTILINE)
HOMES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")  # no case reads or changes what the user keeps
LONGEST_SENTENCE = 3000  # signs of a refusal


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


def judged(asked: Case) -> Verdict:
    """Run one case in the present folder, and judge it."""
    put(asked.files)
    encoding = asked.environment.get("PYTHONIOENCODING") or "utf-8"
    texts = io.TextIOWrapper(io.BytesIO(), encoding), io.TextIOWrapper(io.BytesIO(), encoding)
    before, argv = dict(os.environ), sys.argv
    changed = asked.environment.items()
    os.environ.update({name: value for name, value in changed if value is not None})
    for name in (name for name, value in changed if value is None):
        os.environ.pop(name, None)
    time.tzset()
    sys.argv = ["gpucost", *asked.arguments]
    start = time.process_time()
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    try:
        with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
            verdict = _run(asked)
    except TooSlowError as error:
        verdict = Verdict("slow", _place(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.environ.clear()
        os.environ.update(before)
        sys.argv = argv
    if time.process_time() - start > SLOW_S:
        verdict = Verdict("slow", verdict.place)
    if verdict.kind in BAD:
        return verdict
    buffers: Any = [text.buffer for text in texts]
    shown = [buffer.getvalue().decode("utf-8", "replace") for buffer in buffers]
    return _misled(asked, *shown, verdict.place) or _nonsense(asked, *shown, verdict.place) or verdict


def _run(asked: Case) -> Verdict:
    import warnings

    from gpucost.cli.messages import say
    from gpucost.errors import GpuCostError

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # 0/0, overflow: what follows from it is no figure
        try:
            FACES[asked.face](asked)
        except SystemExit as end:
            if end.code == 1 and isinstance(end.__context__, Exception):
                return Verdict("crash", _place(end.__context__))
            return _ended(end.code or 0)
        except GpuCostError as error:
            say(str(error))
            return _ended(error.exit_code)
        except OSError as error:
            say(str(error.strerror))
            return _ended(2)
        except Exception as error:
            return Verdict("crash", _place(error))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    return Verdict("answered")


def _ended(code: object) -> Verdict:
    """Judge the code with which a process ends, which scripts lean on."""
    if code not in CODES:
        return Verdict("nonsense", f"exit code {code} means nothing")
    return Verdict("refused" if code else "answered", str(code or ""))


def _alarm(*_: object) -> None:
    raise TooSlowError


def _place(error: BaseException) -> str:
    """Name the deepest line of the program on the way to an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gpucost/" in frame.filename]
    last = frames[-1] if frames else None
    place = f"{last.filename.rsplit('/gpucost/', 1)[1]}:{last.lineno} {last.name}" if last else "?"
    return f"{place}: {type(error).__name__}: {str(error)[:90]!r}"


def _misled(asked: Case, out: str, err: str, code: str) -> Verdict | None:
    """Find what a script would take for an answer, or a person for none."""
    name = asked.arguments[0]
    if code == REFUSED and asked.face == "command":
        if out.strip():
            return Verdict("nonsense", f"{name} refuses, yet writes {out[:80]!r}")
        if not err.strip():
            return Verdict("nonsense", f"{name} refuses without a word")
        if list(Path().glob("out.*")) and not set(asked.files) & {one.name for one in Path().glob("out.*")}:
            return Verdict("nonsense", f"{name} refuses, yet leaves a file")
    if code and asked.face == "command" and "Traceback" in err:
        return Verdict("nonsense", f"{name} shows a traceback")
    return None


def _nonsense(asked: Case, out: str, err: str, code: str) -> Verdict | None:
    """Find what no answer may hold, nor what is said beside it."""
    name = asked.arguments[0]
    if asked.face != "library" and (found := CONTROL.search(out + err)):
        return Verdict("nonsense", f"control character {found[0]!r} sent to the terminal by {name}")
    if "Warning:" in err:
        return Verdict("nonsense", f"a warning of Python: {err[:150]!r}")
    if code and len(err) > LONGEST_SENTENCE:
        return Verdict("nonsense", f"{name} refuses in {len(err):,} signs: {err[:60]!r}")
    left = [one for one in os.listdir() if one.startswith(".") or one.endswith(".tmp")]
    if left := [one for one in left if one not in "".join(asked.arguments)]:
        return Verdict("nonsense", f"{name} left {left[0]}")
    for ending in ("xlsx", "csv", "md", "txt") if asked.face == "command" else ():
        if Path(f"out.{ending}").is_file() and (fault := _file_fault(ending, Path(f"out.{ending}"))):
            return Verdict("nonsense", f"{ending} of {name}: {fault}")
    if any(re.search(r"(^|=)(csv|md|table)$|^--help$|^-h$|^--version$", word) for word in asked.arguments):
        return None
    if Path("out.json").is_file() and asked.face == "command":
        out = Path("out.json").read_text("utf-8")
    elif code == REFUSED or not ({"json", "--format=json"} & set(asked.arguments) or asked.face in ("library", "page")):
        return None
    return _fault_of_json(name, out)


def _fault_of_json(name: str, text: str) -> Verdict | None:
    if not text.strip():
        return None
    try:
        answer = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        return Verdict("nonsense", f"JSON of {name}: {error}")
    of_saved = name in (
        "rerun",
        "compare",
        "report",
        "watch",
        "export",
        "reconcile",
    )  # its owner's: SECURITY.md
    fault = None if of_saved else next(faults_of(answer), None)
    return Verdict("nonsense", f"{name}: {fault}") if fault else None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _file_fault(kind: str, path: Path) -> str:
    if kind == "xlsx":
        with zipfile.ZipFile(path) as book:
            faults = (_sheet_fault(name, book.read(name)) for name in book.namelist() if name.endswith(".xml"))
            return next(filter(None, faults), "")
    text = path.read_text("utf-8")
    if found := CONTROL.search(text.replace("\r\n", "\n")):
        return f"control character {found[0]!r}"
    if kind == "csv" and (begin := FORMULA.search(text)):
        return f"a cell that begins a formula: {begin[0]!r}"
    return ""


def _sheet_fault(name: str, data: bytes) -> str:
    from xml.etree import ElementTree

    try:
        ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        return f"{name}: {error}"
    live = b"WEBSERVICE" in re.sub(rb"<(a:)?(t|v)[ >].*?</(a:)?(t|v)>|\"[^\"]*\"", b"", data)
    return f"{name}: a live call" if live else ""


def peak_bytes() -> int:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in a new folder without settings, and leave nothing."""
    import shutil
    import tempfile

    here, made = os.getcwd(), tempfile.mkdtemp(prefix="fuzz-")
    os.chdir(made)
    os.environ.update(dict.fromkeys(HOMES, made))
    try:
        yield Path(made)
    finally:
        os.chdir(here)
        shutil.rmtree(made, ignore_errors=True)
