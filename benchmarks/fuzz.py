"""Throw strange input at every face of the program, and count what must never happen, by surface.

python -m benchmarks.fuzz --minutes 10 [--surface commands] [--from 0] [--json]
python -m benchmarks.fuzz --surface tables --case 4711        one case again, with its traceback; its files are kept

A case is fine when it is answered or refused with a sentence. It is not when there is an internal error (crash), no
answer within 20 s of the processor (slow) or 120 s of the clock (hang), over 2 GB of memory (memory), or what cannot be
(nonsense): JSON that does not parse or holds NaN, a control character sent to the terminal, a cost below zero.
"""

import argparse
import contextlib
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz_cases import SURFACES, Case, case

SLOW_S, HANG_S, MEMORY_BYTES = 20, 120, 2_000_000_000
CASES_PER_PROCESS = 400  # a fresh process now and then, so that memory is that of a case and not of all before it
BAD = ("crash", "hang", "slow", "memory", "nonsense")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FORMULA = re.compile(r'(^|,)"?[=@][A-Za-z(]', re.MULTILINE)


class Verdict(NamedTuple):
    """How a case went, and where it broke: equal places are one fault."""

    kind: str
    place: str = ""


class TooSlowError(BaseException):
    """No handler of the program catches it."""


def judged(asked: Case) -> Verdict:
    """Run one case in the present folder, and judge it."""
    for name, data in asked.files.items():
        Path(name).parent.mkdir(exist_ok=True, parents=True)
        Path(name).write_bytes(data)
    texts = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before, argv = dict(os.environ), sys.argv
    os.environ.update(asked.environment)
    sys.argv = ["gpucost", "--debug", *asked.arguments]
    start = time.process_time()
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    try:
        with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
            verdict = _run()
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
    shown = [text.buffer.getvalue().decode("utf-8", "replace") for text in texts]  # type: ignore[attr-defined]
    return _nonsense(asked, *shown, refused=verdict.kind == "refused") or verdict


def _run() -> Verdict:
    import warnings

    from gpucost.cli import main
    from gpucost.cli.said import say
    from gpucost.errors import GpuCostError

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # 0/0, overflow: what follows from it is no figure
        try:
            main()
        except SystemExit as end:
            return Verdict("refused" if end.code else "answered")
        except GpuCostError as error:
            say(str(error))
            return Verdict("refused")
        except OSError as error:
            say(str(error.strerror))
            return Verdict("refused")
        except Exception as error:
            return Verdict("crash", _place(error))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    return Verdict("answered")


def _alarm(*_: object) -> None:
    raise TooSlowError


def _place(error: BaseException) -> str:
    """Name the deepest line of the program on the way to an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gpucost/" in frame.filename]
    last = frames[-1] if frames else None
    place = f"{last.filename.rsplit('/gpucost/', 1)[1]}:{last.lineno} {last.name}" if last else "?"
    return f"{place}: {type(error).__name__}: {str(error)[:90]!r}"


def _nonsense(asked: Case, out: str, err: str, *, refused: bool) -> Verdict | None:
    """Find what no answer may hold."""
    if found := CONTROL.search(out + err):
        return Verdict("nonsense", f"control character {found[0]!r} sent to the terminal by {asked.arguments[0]}")
    if "Warning:" in err:
        return Verdict("nonsense", f"a warning of Python: {err[:150]!r}")
    for name, path in (
        ("xlsx", Path("out.xlsx")),
        ("csv", Path("out.csv")),
        ("md", Path("out.md")),
        ("txt", Path("out.txt")),
    ):
        if path.exists() and (fault := _file_fault(name, path)):
            return Verdict("nonsense", f"{name} of {asked.arguments[0]}: {fault}")
    if Path("out.json").exists():
        out = Path("out.json").read_text("utf-8")
    elif "json" not in asked.arguments or refused or "--print-plan" in asked.arguments:
        return None
    if not out.strip():
        return None
    try:
        answer = json.loads(out, parse_constant=_refuse)
    except ValueError as error:
        return Verdict("nonsense", f"JSON of {asked.arguments[0]}: {error}")
    fault = next(faults_of(answer), None)
    return Verdict("nonsense", f"{asked.arguments[0]}: {fault}") if fault else None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _file_fault(kind: str, path: Path) -> str:
    from xml.etree import ElementTree

    if kind == "xlsx":
        with zipfile.ZipFile(path) as book:
            for name in book.namelist():
                if name.endswith(".xml"):
                    try:
                        ElementTree.fromstring(book.read(name))
                    except ElementTree.ParseError as error:
                        return f"{name}: {error}"
                    if b"WEBSERVICE" in re.sub(rb"<(t|v)[ >].*?</(t|v)>|\"[^\"]*\"", b"", book.read(name)):
                        return f"{name}: a live call"
        return ""
    text = path.read_text("utf-8")
    if found := CONTROL.search(text.replace("\r\n", "\n")):
        return f"control character {found[0]!r}"
    if kind == "csv" and (begin := FORMULA.search(text)):
        return f"a cell that begins a formula: {begin[0]!r}"
    return ""


# figures that may lie below zero by what they are: savings, differences, cash flows, gains from carbon or residuals
SIGNED = re.compile(
    "npv|by_year|saving|differ|delta|effect|change|cash|cumulative|versus|minus|advantage|gain|resale|residual|credit|tax|benefit|break"
    "|net|flow|discount|error|swing|premium|margin|profit|spread|value|worse|better|shadow|draw|interest|revenue|refund"
)


def faults_of(answer: Any, path: str = "") -> Iterator[str]:
    """Yield what an answer says that cannot be: a price or cost below zero, a range out of order."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key in (
                "facts",
                "request",
                "model",
                "plan",
                "checks",
            ):  # given or claimed, not answered
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                is_cost = key.endswith(("_usd", "_usd_per_gpu_hour", "usd_per_mtok")) or key.startswith("usd_per_")
                if is_cost and value < 0 and not SIGNED.search(f"{path}.{key} {answer.get('name')}"):
                    yield f"{path}.{key} = {value} below zero"
            yield from faults_of(value, f"{path}.{key}")
        yield from _ranges(answer, path)
    elif isinstance(answer, list):
        for value in answer:
            yield from faults_of(value, f"{path}[]")


def _ranges(answer: dict[str, Any], path: str) -> Iterator[str]:
    """Yield ranges in which low, typical and high are not in this order."""
    for key, low in answer.items():
        if (not key.startswith("low") and "_low" in key) or key == "low":
            if "_at_" in key:  # what comes of an end of an input
                continue
            middle = answer.get(key.replace("_low", "") if key != "low" else "value", low)
            high = answer.get(key.replace("low", "high"), middle)
            if all(isinstance(one, (int, float)) for one in (low, middle, high)):
                slack = 1e-9 * max(abs(low), abs(high), 1e-12)
                if not low - slack <= middle <= high + slack:
                    yield f"{path}.{key}: {low}, {middle}, {high} are out of order"


# ── many cases, in a process that may die ────────────────────────────────────────────────────────────────────────────


def run(surface: str, first: int, until: float, most: int = 10**9) -> Iterator[tuple[int, Verdict]]:
    """Yield verdicts, case by case, until a moment; a process that hangs or dies is replaced by a new one."""
    number, context = first, get_context("fork")
    while time.monotonic() < until and number < first + most:
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(surface, number, min(most + first - number, CASES_PER_PROCESS), theirs)
        )
        process.start()
        theirs.close()
        end = number + CASES_PER_PROCESS
        while number < min(end, first + most) and time.monotonic() < until:
            try:
                fault = _waited(ours, process.pid)
                verdict = Verdict(fault, shlex.join(case(surface, number).arguments)[:100]) if fault else ours.recv()
            except EOFError:
                verdict = Verdict("memory", "the process died")
            yield number, verdict
            number += 1
            if verdict.kind in ("hang", "memory"):
                break
        process.kill()
        process.join()


def _waited(pipe: Any, process: int) -> str:
    """Wait for a verdict; return what keeps it from coming: too much memory, or nothing at all."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        if pipe.poll(0.25):
            return ""
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        if pages * resource.getpagesize() > 2 * MEMORY_BYTES:
            return "memory"
    return "hang"


def _work(surface: str, first: int, many: int, pipe: Any) -> None:
    """Judge cases in folders of their own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    sink = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(sink.fileno(), 1)
    os.dup2(sink.fileno(), 2)
    for number in range(first, first + many):
        with folder() as _:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            verdict = judged(case(surface, number))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if peak > before and peak * 1024 > MEMORY_BYTES:
                verdict = Verdict("memory", f"{peak / 1e6:.1f} GB; {verdict.place}")
            if os.fstat(1).st_size and verdict.kind not in BAD:
                sink.seek(0)
                verdict = Verdict("nonsense", f"written past Python's streams: {sink.read(80)!r}")
            os.ftruncate(1, 0)
            sink.seek(0)
        pipe.send(verdict)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in a new folder without settings, and leave nothing."""
    here, made = os.getcwd(), tempfile.mkdtemp(prefix="fuzz-")
    os.chdir(made)
    os.environ["XDG_CONFIG_HOME"] = made
    try:
        yield Path(made)
    finally:
        os.chdir(here)
        shutil.rmtree(made, ignore_errors=True)


def again(surface: str, number: int) -> None:
    """Run one case for a person: its files stay, its output and traceback show."""
    asked, place = case(surface, number), Path(tempfile.mkdtemp(prefix=f"fuzz-{surface}-{number}-"))
    os.chdir(place)
    os.environ["XDG_CONFIG_HOME"] = str(place)
    for name, data in asked.files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    settings = [f"{name}={shlex.quote(value)}" for name, value in asked.environment.items()]
    print(f"cd {place} && {' '.join(settings)} gpucost --debug {shlex.join(asked.arguments)}", file=sys.stderr)
    os.environ.update(asked.environment)
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", "--debug", *asked.arguments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--surface", choices=SURFACES)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--case", type=int)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.case is not None:
        again(given.surface or "commands", given.case)
    surfaces = [given.surface] if given.surface else list(SURFACES)
    counts: dict[str, Counter[str]] = {surface: Counter() for surface in surfaces}
    places: dict[tuple[str, str, str], list[int]] = {}
    for surface in surfaces:
        until = time.monotonic() + given.minutes * 60 / len(surfaces)
        for number, verdict in run(surface, given.first, until):
            counts[surface][verdict.kind] += 1
            if verdict.kind in BAD:
                seen = places.setdefault((surface, verdict.kind, verdict.place), [])
                seen.append(number)
                if len(seen) == 1:
                    print(f"{surface} {number} {verdict.kind} {verdict.place}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps({"counts": counts, "places": [[*key, numbers] for key, numbers in places.items()]}))
    else:
        print("| surface | cases | " + " | ".join(BAD) + " |\n|---|--:|" + "--:|" * len(BAD))
        for surface, count in counts.items():
            print(f"| {surface} | {count.total():,} | " + " | ".join(str(count[kind]) for kind in BAD) + " |")
    sys.exit(5 if places else 0)


if __name__ == "__main__":
    main()
