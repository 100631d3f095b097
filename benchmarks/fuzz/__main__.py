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
from benchmarks.fuzz.judge import BAD, HOMES, folder, judged, put
from benchmarks.fuzz.surfaces import SURFACES, case
from benchmarks.fuzz.workers import Done, run

TELL_S = 60
Places = dict[tuple[str, str, str], list[int]]


class Tally:
    """What came of the cases of one surface."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.slowest, self.seconds, self.peak_bytes = (0.0, 0), 0.0, 0  # seconds and number of the slowest case

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
        return [*counts, "{:.1f} ({})".format(*self.slowest), f"{self.peak_bytes / 1e9:.2f}", f"{speed:.0f}"]


def again(surface: str, number: int) -> None:
    """Run one case for a person: its files stay, its output and traceback show."""
    asked, place = case(surface, number), Path(tempfile.mkdtemp(prefix=f"fuzz-{surface}-{number}-"))
    os.chdir(place)
    settings = [f"{name}={shlex.quote(value or '')}" for name, value in asked.environment.items()]
    print(f"cd {place} && {' '.join(settings)} gpucost --debug {shlex.join(asked.arguments)}", file=sys.stderr)
    with folder():
        print(asked.face, "" if asked.given is None else repr(asked.given), judged(asked), file=sys.stderr)
    os.environ.update(dict.fromkeys(HOMES, str(place)))
    put(asked.files)
    os.environ.update({name: value for name, value in asked.environment.items() if value is not None})
    if asked.face != "command":
        sys.argv = ["gpucost", *asked.arguments]
        FACES[asked.face](asked)
        return
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", "--debug", *asked.arguments])


def counted(given: argparse.Namespace, places: Places) -> dict[str, Tally]:
    """Judge cases until the time is over, enough were judged, or the user ends it; what breaks is told at once."""
    shares = dict.fromkeys(given.surface, 1.0) if given.surface else {one: SURFACES[one][1] for one in SURFACES}
    found = {one: Tally() for one in shares}
    told = time.monotonic()
    try:
        for done in run(shares, given.first, given.minutes * 60, given.workers, given.cases):
            found[done.surface].add(done)
            if done.verdict.kind in BAD:
                seen = places.setdefault((done.surface, done.verdict.kind, done.verdict.place), [])
                seen.append(done.number)
                if len(seen) == 1:
                    print(f"{done.surface} {done.number} {done.verdict.kind} {done.verdict.place}", file=sys.stderr)
            if time.monotonic() - told > TELL_S:
                told = time.monotonic()
                print(f"{sum(one.counts.total() for one in found.values()):,} cases", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="10 where --cases is not given either")
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--surface", choices=SURFACES, action="append")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--case", type=int)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.case is not None:
        again((given.surface or ["commands"])[0], given.case)
        return
    if given.minutes is None:
        given.minutes = 10 if given.cases == 10**9 else float("inf")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    places: Places = {}
    found = counted(given, places)
    if given.json:
        counts = {surface: tally.counts for surface, tally in found.items()}
        print(json.dumps({"counts": counts, "places": [[*key, numbers] for key, numbers in places.items()]}))
    else:
        heads = ["surface", "cases", "answered", "refused", *BAD, "slowest s (case)", "peak GB", "per CPU-s"]
        print(f"| {' | '.join(heads)} |\n|---|" + "--:|" * (len(heads) - 1))
        for surface, tally in found.items():
            print(f"| {surface} | {' | '.join(tally.row())} |")
    sys.stdout.flush()
    os._exit(5 if places else 0)  # taking the database apart takes longer


if __name__ == "__main__":
    main()
