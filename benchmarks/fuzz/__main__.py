"""Throw strange input at every face of the program, and count what must never happen, by surface.

python -m benchmarks.fuzz --minutes 10 [--workers 2] [--surface commands] [--from 0] [--json]
python -m benchmarks.fuzz --surface tables --case 4711        one case again, with its traceback; its files are kept
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.fuzz.cases import SURFACES, case
from benchmarks.fuzz.judge import BAD, put
from benchmarks.fuzz.workers import run

Places = dict[tuple[str, str, str], list[int]]


class Tally:
    """What came of the cases of one surface."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.slowest_s, self.peak_bytes = 0.0, 0

    def row(self) -> list[str]:
        """Return the figures as cells of a table."""
        counts = [f"{self.counts.total():,}", *(str(self.counts[kind]) for kind in ("answered", "refused", *BAD))]
        return [*counts, f"{self.slowest_s:.1f}", f"{self.peak_bytes / 1e9:.2f}"]


def again(surface: str, number: int) -> None:
    """Run one case for a person: its files stay, its output and traceback show."""
    asked, place = case(surface, number), Path(tempfile.mkdtemp(prefix=f"fuzz-{surface}-{number}-"))
    os.chdir(place)
    os.environ["XDG_CONFIG_HOME"] = str(place)
    put(asked.files)
    if asked.library is not None:
        import gpucost

        print(f"gpucost.{asked.arguments[0]}(**{asked.library!r})", file=sys.stderr)
        print(getattr(gpucost, asked.arguments[0])(**asked.library))
        return
    settings = [f"{name}={shlex.quote(value)}" for name, value in asked.environment.items()]
    print(f"cd {place} && {' '.join(settings)} gpucost --debug {shlex.join(asked.arguments)}", file=sys.stderr)
    os.environ.update(asked.environment)
    os.execv(sys.executable, [sys.executable, "-m", "gpucost", "--debug", *asked.arguments])


def counted(surface: str, first: int, minutes: float, workers: int, places: Places) -> Tally:
    """Judge the cases of one surface for some minutes."""
    tally = Tally()
    for number, verdict, seconds, peak in run(surface, first, minutes * 60, workers):
        tally.counts[verdict.kind] += 1
        tally.slowest_s, tally.peak_bytes = max(tally.slowest_s, seconds), max(tally.peak_bytes, peak)
        if verdict.kind in BAD:
            seen = places.setdefault((surface, verdict.kind, verdict.place), [])
            seen.append(number)
            if len(seen) == 1:
                print(f"{surface} {number} {verdict.kind} {verdict.place}", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--surface", choices=SURFACES, action="append")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--case", type=int)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.case is not None:
        again((given.surface or ["commands"])[0], given.case)
        return
    surfaces = given.surface or list(SURFACES)
    places: Places = {}
    found = {one: counted(one, given.first, given.minutes / len(surfaces), given.workers, places) for one in surfaces}
    if given.json:
        counts = {surface: tally.counts for surface, tally in found.items()}
        print(json.dumps({"counts": counts, "places": [[*key, numbers] for key, numbers in places.items()]}))
    else:
        heads = ["surface", "cases", "answered", "refused", *BAD, "slowest s", "peak GB"]
        print(f"| {' | '.join(heads)} |\n|---|" + "--:|" * (len(heads) - 1))
        for surface, tally in found.items():
            print(f"| {surface} | {' | '.join(tally.row())} |")
    sys.exit(5 if places else 0)


if __name__ == "__main__":
    main()
