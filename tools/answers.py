"""The answers to fixed questions, kept and compared byte by byte: `python -m tools.answers save DIR`, `compare DIR`.

Every command and every format is asked, odd and refused questions too (`tools/asked/questions.txt`), on a fixed day
and at a fixed width. An answer is its exit code, stdout, stderr and the file that it wrote. Before code moves, `save`;
after, `compare`: what differs is an intended change or a fault. Questions may be named to ask those alone.
"""

import argparse
import contextlib
import difflib
import hashlib
import importlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

ASKED = Path(__file__).resolve().parent / "asked"
DAY = "2026-11-20"
WIDTH = "120"
# Imported once, before the processes part, so that no question pays for it; a module that has gone is passed over.
_IMPORTED = (
    *(
        "altair",
        "pandas",
        "pydantic",
        "scipy.optimize",
        "scipy.stats",
        "vl_convert",
        "xlsxwriter",
        "reportlab.platypus",
    ),
    *(f"gpucost.ask.{question}" for question in ("estimate", "inference", "tco", "fit", "speed", "audit", "invoices")),
    *(f"gpucost.cli.{module}" for module in ("question", "lists", "prices", "saved", "sql", "sweep", "validate")),
)
_VERSION = re.compile(r"\d{4}-\d\d-\d\d\+[0-9a-f]{12}")  # of the catalog: any row of any table changes it
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # when a workbook was written


class Question(NamedTuple):
    """One call of the program."""

    name: str
    arguments: list[str]

    @property
    def output(self) -> str | None:
        """The file that it writes, relative to the folder in which it is asked."""
        outputs = [word for flag, word in zip(self.arguments, self.arguments[1:], strict=False) if flag == "-o"]
        return outputs[0] if outputs else None


def questions() -> list[list[Question]]:
    """Return the questions in two stages: the second reads what the first wrote."""
    stages: list[list[Question]] = [[]]
    for line in (ASKED / "questions.txt").read_text("utf-8").splitlines():
        if line.startswith("----"):
            stages.append([])
        elif line and not line.startswith("#"):
            name, _, arguments = line.partition(": ")
            # a day for each question that answers by prices: newer ones must not look like a difference of code
            stages[-1].append(Question(name, shlex.split(arguments.replace(" @", f" --as-of {DAY}"))))
    return stages


def ask(stages: list[list[Question]], folder: Path, answers: Path, workers: int = 2) -> None:
    """Ask every question in a process of its own, forked from one that has everything imported."""
    environment(folder)
    for module in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for stage in stages:
        running: dict[int, Question] = {}
        for question in stage:
            if len(running) == workers:
                finish(running, folder, answers)
            if not (process := os.fork()):
                answer(question, folder)  # does not return: the program ends its process
            running[process] = question
        while running:
            finish(running, folder, answers)


def environment(folder: Path) -> None:
    """Set what answers depend on beside their arguments."""
    for name in [name for name in os.environ if name.startswith("GPUCOST_")]:
        del os.environ[name]
    # an empty home: no settings, price book or store of whoever runs this
    homes = {
        name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    }
    # one thread: the order of a sum over several would change the last digits
    os.environ.update(homes, COLUMNS=WIDTH, NO_COLOR="1", TZ="UTC", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    time.tzset()
    os.chdir(folder)


def answer(question: Question, folder: Path) -> None:
    """Answer in this process, with its streams in files, and end it."""
    # the descriptors, not Python's streams alone: libraries in C write past those
    for number, stream in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / f"{question.name}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    sys.argv = ["gpucost", *question.arguments]
    from gpucost.cli import run

    run()


def finish(running: dict[int, Question], folder: Path, answers: Path) -> None:
    """Wait for one question and write its answer."""
    process, status = os.wait()
    question = running.pop(process)
    parts = [f"$ gpucost {shlex.join(question.arguments)}\nexit {os.waitstatus_to_exitcode(status)}\n"]
    for stream in ("stdout", "stderr"):
        text = (folder / f"{question.name}.{stream}").read_text("utf-8", "backslashreplace")
        parts.append(f"--- {stream}\n{text}")
    if question.output:
        path = folder / question.output
        parts.append(f"--- {question.output}\n{shown(path.read_bytes()) if path.is_file() else 'not written'}\n")
    # where the checkout and the scratch folder lie is no part of an answer
    text = "".join(parts).replace(str(folder), "FOLDER").replace(str(ASKED.parents[1]), "CHECKOUT")
    text = _MOMENT.sub("NOW", _VERSION.sub("CATALOG", text))
    (answers / f"{question.name}.txt").write_text(text, "utf-8")


def shown(content: bytes) -> str:
    """Return a file as lines that can be compared: a workbook by its parts, what is no text by its hash."""
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            return "\n".join(f"-- {name}\n{shown(parts.read(name))}" for name in sorted(parts.namelist()))
    if content.startswith(b"%PDF"):
        from pypdf import PdfReader

        return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)
    if content.startswith(b"<?xml"):
        return content.decode("utf-8").replace("><", ">\n<")  # sheets of a workbook are one line else
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"


def compare(before: Path, after: Path, lines: int) -> list[str]:
    """Print what differs between two folders of answers; return the names of the questions."""
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.txt")})
    different = []
    for name in names:
        old, new = (
            (folder / name).read_text("utf-8") if (folder / name).exists() else "" for folder in (before, after)
        )
        if old != new:
            different.append(name.removesuffix(".txt"))
            difference = list(
                difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", n=0, lineterm="")
            )
            print(f"=== {different[-1]}", *(line[:400] for line in difference[2 : 2 + lines]), sep="\n")
            if len(difference) > lines + 2:
                print(f"({len(difference) - lines - 2:,} more lines; --lines shows them)")
    print(f"{len(names) - len(different)} of {len(names)} answers are the same.", *different)
    return different


def main() -> int:
    """Save answers in a folder, or compare those of now with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="Of these questions alone; those they read from are asked with them.")
    parser.add_argument("--lines", type=int, default=40, help="Most lines shown of a difference.")
    options = parser.parse_args()
    saved = options.folder.resolve()
    saved.mkdir(parents=True, exist_ok=True)
    *first, then = questions()
    if options.names:
        then = [question for question in then if question.name in options.names]
    with tempfile.TemporaryDirectory() as scratch:
        folder, fresh = Path(scratch, "asked"), Path(scratch, "answers")
        shutil.copytree(ASKED, folder)
        fresh.mkdir()
        began = time.monotonic()
        ask([*first, then], folder, fresh if options.what == "compare" else saved)
        print(f"{sum(map(len, first)) + len(then)} questions in {time.monotonic() - began:.0f} s")
        if options.what == "save":
            return 0
        before = saved
        if options.names:  # compared with these alone, or all others would count as gone
            before = Path(scratch, "before")
            before.mkdir()
            for path in fresh.glob("*.txt"):
                if (saved / path.name).exists():
                    shutil.copy(saved / path.name, before)
        return 1 if compare(before, fresh, options.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
