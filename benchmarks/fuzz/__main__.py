"""Throw strange input at every face of the program, and count what must never happen, by surface.

python -m benchmarks.fuzz --minutes 10 [--cases 200000] [--workers 2] [--surface commands] [--from 0] [--json]
python -m benchmarks.fuzz --surface tables --case 4711        one case again, with its traceback; its files are kept
"""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzz.faces import FACES
from benchmarks.fuzz.judge import BAD, HOMES, folder, put, verdict_of
from benchmarks.fuzz.surfaces import SURFACES, case
from benchmarks.fuzz.workers import Done, run

_PROGRESS_S = 60  # between two lines that count the cases so far
_UNBOUNDED_CASES = 10**9
_Places = dict[tuple[str, str, str], list[int]]  # surface, kind and place of a fault -> the cases that show it


class _Tally:
    """What came of the cases of one surface."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.slowest = (0.0, 0)  # seconds and number of a case
        self.seconds = 0.0
        self.peak_bytes = 0

    def add(self, done: Done) -> None:
        """Count a case."""
        self.counts[done.verdict.kind] += 1
        self.seconds += done.seconds
        self.slowest = max(self.slowest, (done.seconds, done.number))
        self.peak_bytes = max(self.peak_bytes, done.peak_bytes)

    def row(self) -> list[str]:
        """Return the figures as cells of a table."""
        counts = [f"{self.counts.total():,}", *(str(self.counts[kind]) for kind in ("answered", "refused", *BAD))]
        speed = self.counts.total() / max(self.seconds, 1e-9)
        slowest_s, slowest_case = self.slowest
        return [*counts, f"{slowest_s:.1f} ({slowest_case})", f"{self.peak_bytes / 1e9:.2f}", f"{speed:.0f}"]


def again(surface: str, number: int) -> None:
    """Run one case for a person: its files stay, its output and traceback show."""
    drawn = case(surface, number)
    place = Path(tempfile.mkdtemp(prefix=f"fuzz-{surface}-{number}-"))
    os.chdir(place)
    settings = [f"{name}={shlex.quote(value or '')}" for name, value in drawn.environment.items()]
    print(f"cd {place} && {' '.join(settings)} gpucost --debug {shlex.join(drawn.arguments)}", file=sys.stderr)
    with folder():
        inputs = "" if drawn.inputs is None else repr(drawn.inputs)
        print(drawn.face, inputs, verdict_of(drawn), file=sys.stderr)
    # the judge swallows a traceback: once more without it, in this process, or for a command in its place
    os.environ.update(dict.fromkeys(HOMES, str(place)))
    put(drawn.files)
    os.environ.update({name: value for name, value in drawn.environment.items() if value is not None})
    if drawn.face != "command":
        sys.argv = ["gpucost", *drawn.arguments]
        FACES[drawn.face](drawn)
        return
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", "--debug", *drawn.arguments])


def _judge_cases(options: argparse.Namespace) -> tuple[dict[str, _Tally], _Places]:
    """Judge cases until the time is over, enough were judged, or the user ends it; return tallies and faults.

    A fault is printed when it is first seen; a run that is ended early has said what it found.
    """
    if options.surface:
        shares = dict.fromkeys(options.surface, 1.0)
    else:
        shares = {name: share for name, (_, share) in SURFACES.items()}
    tallies = {name: _Tally() for name in shares}
    places: _Places = {}
    printed_at_s = time.monotonic()
    try:
        for done in run(shares, options.first, options.minutes * 60, options.workers, options.cases):
            tallies[done.surface].add(done)
            if done.verdict.kind in BAD:
                numbers = places.setdefault((done.surface, done.verdict.kind, done.verdict.place), [])
                numbers.append(done.number)
                if len(numbers) == 1:
                    print(f"{done.surface} {done.number} {done.verdict.kind} {done.verdict.place}", file=sys.stderr)
            if time.monotonic() - printed_at_s > _PROGRESS_S:
                printed_at_s = time.monotonic()
                total = sum(tally.counts.total() for tally in tallies.values())
                print(f"{total:,} cases", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass  # what was judged by then is the answer
    return tallies, places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="10 where --cases is not given either")
    parser.add_argument("--cases", type=int, default=_UNBOUNDED_CASES)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--surface", choices=SURFACES, action="append")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--case", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.case is not None:
        again((options.surface or ["commands"])[0], options.case)
        return
    if options.minutes is None:
        options.minutes = 10 if options.cases == _UNBOUNDED_CASES else float("inf")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended from outside it still prints its table
    tallies, places = _judge_cases(options)
    if options.json:
        counts = {surface: tally.counts for surface, tally in tallies.items()}
        print(json.dumps({"counts": counts, "places": [[*key, numbers] for key, numbers in places.items()]}))
    else:
        heads = ["surface", "cases", "answered", "refused", *BAD, "slowest s (case)", "peak GB", "per CPU-s"]
        print(f"| {' | '.join(heads)} |\n|---|" + "--:|" * (len(heads) - 1))
        for surface, tally in tallies.items():
            print(f"| {surface} | {' | '.join(tally.row())} |")
    sys.stdout.flush()
    os._exit(5 if places else 0)  # taking the database apart takes longer


if __name__ == "__main__":
    main()
