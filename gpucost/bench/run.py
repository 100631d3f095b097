"""A bench from start to end: cases measured one by one under supervision, kept on disk, resumed where it stopped."""

import importlib.util
import json
import math
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import IO, Any

from gpucost import clock
from gpucost.bench import machine
from gpucost.bench.cases import GROUPS, BenchCase, cases_of
from gpucost.bench.file import SCHEMA_VERSION, read_bench
from gpucost.bench.machine import Sample
from gpucost.bench.verdict import SWING_FRACTION
from gpucost.errors import UsageError

# --- Measuring processes under supervision: a case that hangs or kills its process costs that case, nothing more.

_WORKER = (sys.executable, "-m", "gpucost.bench.gpu.worker")
_START_LIMIT_S = 120.0  # PyTorch loads, and the ranks find each other
_STARTS = 2  # failed starts after which a group of processes is given up
LOOK_S, GRACE_S = 0.5, 3.0  # how often ended processes are looked for, and how long their last words may take


class Workers:
    """One process per rank, all reading the same cases; rank 0 answers."""

    def __init__(
        self, ranks: int, device: str, command: Sequence[str] = _WORKER, variables: Mapping[str, str] = {}
    ) -> None:
        self.ranks, self.device, self.command, self.variables = ranks, device, command, variables
        self.processes: list[subprocess.Popen[str]] = []
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.errors: IO[str] | None = None
        self.software: dict[str, Any] = {}
        self.refused: list[str] = []  # why starts failed

    def start(self) -> None:
        """Start the processes and wait until they say what they are."""
        with socket.socket() as probe:  # a free port, at which the ranks find each other
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        self.lines, self.errors = queue.Queue(), tempfile.TemporaryFile("w+")  # noqa: SIM115
        for rank in range(self.ranks):
            variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.ranks, "MASTER_PORT": port}
            environment = {**os.environ, **self.variables, **{name: str(value) for name, value in variables.items()}}
            environment |= {"MASTER_ADDR": "127.0.0.1", "GPUCOST_BENCH_DEVICE": self.device, "PYTHONUNBUFFERED": "1"}
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,  # only rank 0 answers
                stderr=self.errors,
                text=True,
                env=environment,
            )
            self.processes.append(process)
        # a thread reads, since a pipe has no portable way to wait for a line no longer than so many seconds
        threading.Thread(target=self._read, args=(self.processes[0].stdout, self.lines), daemon=True).start()
        first = self._next(_START_LIMIT_S)
        if first is None:
            reason = self._last_words()
            self.stop()
            raise ChildProcessError(reason)
        self.software = first["software"]

    @staticmethod
    def _read(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)  # the process has ended

    def _next(self, limit_s: float) -> dict[str, Any] | None:
        """Return the next message; None where a process ended (the others would wait for it) or all stayed silent."""
        until = time.monotonic() + limit_s
        while (left := until - time.monotonic()) > 0:
            try:
                line = self.lines.get(timeout=min(left, LOOK_S))
            except queue.Empty:
                if any(process.poll() is not None for process in self.processes):  # its answer may be on its way yet
                    until = min(until, time.monotonic() + GRACE_S)
                continue
            if line is None:
                return None
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a library that prints
            if isinstance(message, dict):
                return message
        return None

    def measure(self, case: BenchCase) -> dict[str, Any]:
        """Measure one case within its time limit; the processes are started anew after one that broke them."""
        if not self.processes:
            if len(self.refused) >= _STARTS:
                return {"failed": f"given up: the measuring process did not start: {self.refused[-1]}"}
            try:
                self.start()
            except ChildProcessError as error:
                self.refused.append(str(error))
                return {"failed": f"the measuring process did not start: {error}"}
        text = json.dumps(case.message()) + "\n"
        begin = time.monotonic()
        for process in self.processes:
            try:
                assert process.stdin is not None
                process.stdin.write(text)
                process.stdin.flush()
            except (BrokenPipeError, OSError):
                continue  # it died after its last case: the silence below says so
        message = self._next(case.limit_s)
        if message is not None:
            if "failed" in message and self.ranks > 1:
                self.stop()  # the others wait within a collective that one has left
            return message
        # no answer: say which process died of what, or that all were late
        died = [str(rank) for rank, process in enumerate(self.processes) if process.poll() is not None]
        killed = [-process.returncode for process in self.processes if (process.returncode or 0) < 0]
        late = time.monotonic() - begin >= case.limit_s - 0.1
        who = f"process {', '.join(died)} of {self.ranks}" if died and self.ranks > 1 else "the process"
        reason = f"no answer within {case.limit_s:g} s" if late else f"{who} died: {self._last_words(killed)}"
        self.stop()
        return {"failed": reason}

    def _last_words(self, killed: Sequence[int] = ()) -> str:
        if self.errors is None:
            return ""
        self.errors.flush()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read()[-4000:].splitlines() if line.strip()]
        return f"killed by signal {killed[0]}" if killed else lines[-1][:200] if lines else "it said nothing"

    def stop(self) -> None:
        """End the processes, with force where they do not listen."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    try:
                        stream.close()
                    except OSError:
                        continue
        self.processes = []
        if self.errors:
            self.errors.close()
            self.errors = None


# --- A bench from start to end: cases measured one by one, kept on disk after each, resumed where it stopped.

_ROUNDS = 3  # of what moves, each in processes of its own; a training step's repetitions are its rounds
_STEADY_FRACTION = 0.01  # by which rounds of a steady case differ at most
_QUICK_S = 3.0  # a case that took no longer is cheap to repeat
REPEATS_END_S = {"short": 150.0, "full": 480.0}  # after so long nothing is repeated: compilers on a fresh machine
_RATES = ("gb_per_s", "tflops", "bus_gb_per_s", "tokens_per_s_per_gpu", "samples_per_s")
# Called with the cases done, those to do in all, and the name of the next one.
Report = Callable[[int, int, str], None]


def bench(
    path: str | os.PathLike[str],
    *,
    profile: str = "short",
    device: str = "auto",
    gpus: int | None = None,
    groups: Sequence[str] = (),
    folder: str | None = None,
    anew: bool = False,
    command: Sequence[str] = _WORKER,
    report: Report = lambda done, total, name: None,
) -> dict[str, Any]:
    """Measure this machine and return the bench, which `path` holds after each case.

    A bench that `path` holds already goes on where it stopped (with `anew` it starts over); one of another machine or
    profile is refused.
    """
    if command is _WORKER and importlib.util.find_spec("torch") is None:
        raise UsageError(
            "bench measures with PyTorch, which is not installed here: pip install 'gpucost[bench]', or the ROCm build "
            "of PyTorch for AMD GPUs."
        )
    before = machine.look()
    workers = Workers(1, device, command)
    try:
        try:
            workers.start()
        except ChildProcessError as error:
            raise UsageError(
                f"the measuring process did not start: {error}. Check that python -c 'import torch' works."
            ) from None
        software = workers.software
        if device == "cuda" and not software["gpus"]:
            raise UsageError("no GPU is visible to PyTorch. --device cpu tries the bench without one.")
        visible = max(1, software["gpus"])
        count = (gpus or 1) if device == "cpu" else min(gpus or visible, visible)
        names = set(groups) or set(GROUPS)
        small = software["device"] == "cpu" and profile != "tiny"  # a processor would take hours over sizes of a GPU
        cases = [case for case in cases_of("tiny" if small else profile, count, folder) if case.group in names]
        result = _stored_or_new(Path(path), profile, software, before, anew)
        if small and device == "auto":
            result["notes"].append("no GPU is visible to PyTorch: the processor was tried, at tiny sizes")
        if gpus and software["gpus"] and gpus > count:
            result["notes"].append(f"{gpus} GPUs were asked for, {count} visible")
        _measure(result, cases, workers, Path(path), report, device, command)
        if count > 1:
            _compare_gpus(result, count, command, Path(path))
    finally:
        workers.stop()
    return result


def _stored_or_new(
    path: Path, profile: str, software: dict[str, Any], samples: list[Sample], anew: bool
) -> dict[str, Any]:
    """Return the bench that a file holds, or a new one."""
    fresh: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "bench",
        "profile": profile,
        "started": clock.now().isoformat(timespec="seconds"),
        "machine": {
            "device": software["device"],
            "gpus": software["gpus"],
            "memory_gib": software.get("memory_gib"),
            "power_limit_w": samples[0].power_limit_w if samples else None,
            "clock_max_mhz": samples[0].clock_max_mhz if samples else None,
            "driver": samples[0].driver if samples else None,
        },
        "software": {name: software[name] for name in ("pytorch", "toolkit", "nccl", "capability") if name in software},
        "figures": [],
        "failed": [],
        "notes": machine.busy(samples),
    }
    if anew or not path.exists():
        return fresh
    old = read_bench(path)
    for name in ("device", "gpus"):
        if old["machine"].get(name) != fresh["machine"][name]:
            raise UsageError(
                f"{path} is a bench of {old['machine'].get('gpus')} × {old['machine'].get('device')}, this machine has"
                f" {fresh['machine']['gpus']} × {fresh['machine']['device']}. Name another file, or use --anew."
            )
    # what failed before is tried again; who else uses the machine is a matter of today
    return {**old, "profile": profile, "failed": [], "notes": fresh["notes"]}


def _measure(
    result: dict[str, Any],
    cases: Sequence[BenchCase],
    workers: Workers,
    path: Path,
    report: Report,
    device: str,
    command: Sequence[str],
) -> None:
    """Measure what is due, in rounds over all cases, and write the file after each case."""
    figures = {figure["id"]: figure for figure in result["figures"]}
    todo = [(turn, case) for turn in range(_ROUNDS) for case in cases if turn == 0 or case.group != "train"]
    # groups of processes by their number of ranks: a new number or round stops them, and each starts by itself again
    groups, at, begun = {1: workers}, (1, 0), time.monotonic() - result.get("spent_s", 0.0)
    repeats_end_s = REPEATS_END_S.get(result["profile"], math.inf)
    with machine.watching() as watch:
        try:
            for number, (turn, case) in enumerate(todo):
                report(number, len(todo), case.id)
                failed_before = any(entry["id"] == case.id for entry in result["failed"])
                if failed_before or not _is_due(turn, figures.get(case.id)):
                    continue
                if turn and time.monotonic() - begun > repeats_end_s:
                    continue
                if (case.ranks, turn) != at:
                    for group in groups.values():
                        group.stop()  # gives its memory back
                    at = case.ranks, turn
                    groups.setdefault(case.ranks, Workers(case.ranks, device, command))
                case_begun = time.monotonic()
                answer = groups[case.ranks].measure(case)
                state = watch.between(case_begun, time.monotonic())
                if "figures" in answer:
                    arguments = {name: value for name, value in case.arguments.items() if value is not None}
                    row = {"id": case.id, "group": case.group, "op": case.op, **arguments, **answer["figures"], **state}
                    row["took_s"] = time.monotonic() - case_begun
                    if case.id not in figures:
                        figures[case.id] = {}
                        result["figures"].append(figures[case.id])
                    # the figure in the bench is changed in place, at the median of its rounds so far
                    figures[case.id].update(_settled(row, figures[case.id].get("rounds_s", [])))
                else:
                    reason = f"not repeated: {answer['failed']}" if case.id in figures else answer["failed"]
                    result["failed"].append({"id": case.id, "reason": reason})
                result["spent_s"] = time.monotonic() - begun
                _save(result, path)
        finally:
            for group in groups.values():
                group.stop()
    report(len(todo), len(todo), "")


def _is_due(turn: int, figure: dict[str, Any] | None) -> bool:
    """Tell whether a case is to be measured in a round: once or twice, and again while its time moves.

    The last round is for what may yet become a figure: where the host rules or clocks swing, two give the range.
    """
    if figure is None or not figure["rounds_s"]:
        return turn == 0
    rounds = figure["rounds_s"]
    moves = figure.get("bound") == "host" or max(rounds) > (1 + _STEADY_FRACTION) * min(rounds)
    if turn == 1:  # what was steady within its first round, and took long, is believed
        moves = moves or figure.get("spread_fraction", 0.0) > _STEADY_FRACTION or figure.get("took_s", 0.0) < _QUICK_S
    if turn == _ROUNDS - 1:
        moves = moves and figure.get("bound") != "host" and figure.get("spread_fraction", 0.0) <= SWING_FRACTION
    return len(rounds) <= turn and moves


def _settled(row: dict[str, Any], before: list[float]) -> dict[str, Any]:
    """Return a figure at the median of its rounds.

    >>> row = _settled({"time_s": 2.0, "tflops": 10.0}, [1.0, 4.0])
    >>> row["tflops"], _settled({"time_s": 4.0, "tflops": 5.0}, [1.0, 2.0])["tflops"]
    (10.0, 10.0)
    """
    rounds = [*before, *row.get("rounds_s", [row["time_s"]])]
    usual = median(rounds)
    ratio = row["time_s"] / usual  # rates are of this round's time: they follow to the median's
    return {**row, **{name: row[name] * ratio for name in _RATES if name in row}, "time_s": usual, "rounds_s": rounds}


def _compare_gpus(result: dict[str, Any], count: int, command: Sequence[str], path: Path) -> None:
    """Probe the GPUs side by side, each by itself, so that a sick one is named; what was probed already is kept."""
    # a memory and a product case: what a GPU slowed by heat, power or a fault is slower in
    cases = [case for case in cases_of("short", 1) if case.id in ("copy 1073741824", "matmul bf16 8192 8192 8192")]
    rows = result.setdefault("each_gpu", [])
    seen = {(row["gpu_index"], row["id"]) for row in rows}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))

    def probe(index: int) -> list[dict[str, Any]]:
        workers = Workers(1, "auto", command, {"CUDA_VISIBLE_DEVICES": visible.split(",")[index]})
        try:
            answers = {case.id: workers.measure(case) for case in cases if (index, case.id) not in seen}
        finally:
            workers.stop()
        return [
            {"gpu_index": index, "id": name, "failed": answer.get("failed"), **answer.get("figures", {})}
            for name, answer in answers.items()
        ]

    with ThreadPoolExecutor(count) as pool:
        for results in pool.map(probe, range(count)):
            rows += results
    _save(result, path)


def _save(result: dict[str, Any], path: Path) -> None:
    """Write a bench whole or not at all."""
    # beside the file, since only within a folder is a replacement one step; the process' number keeps two apart
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    os.replace(aside, path)
