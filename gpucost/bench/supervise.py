"""Measuring processes under supervision: a case that hangs or kills its process costs that case, nothing more."""

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from gpucost.bench.cases import BenchCase

WORKER = (sys.executable, "-m", "gpucost.bench.gpu.worker")
START_LIMIT_S = 120.0
STARTS = 2  # failed starts after which a group of processes is given up
LOOK_S, GRACE_S = 0.5, 3.0  # how often ended processes are looked for, and how long their last words may take


class Workers:
    """One process per rank, all reading the same cases; rank 0 answers."""

    def __init__(
        self, ranks: int, device: str, command: Sequence[str] = WORKER, variables: Mapping[str, str] = {}
    ) -> None:
        self.ranks, self.device, self.command, self.variables = ranks, device, command, variables
        self.processes: list[subprocess.Popen[str]] = []
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.errors: IO[str] | None = None
        self.software: dict[str, Any] = {}
        self.refused: list[str] = []  # why starts failed

    def start(self) -> None:
        """Start the processes and wait until they say what they are."""
        port = _free_port()
        self.lines, self.errors = queue.Queue(), tempfile.TemporaryFile("w+")  # noqa: SIM115
        for rank in range(self.ranks):
            variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.ranks, "MASTER_PORT": port}
            environment = {**os.environ, **self.variables, **{name: str(value) for name, value in variables.items()}}
            environment |= {"MASTER_ADDR": "127.0.0.1", "GPUCOST_BENCH_DEVICE": self.device, "PYTHONUNBUFFERED": "1"}
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                stderr=self.errors,
                text=True,
                env=environment,
            )
            self.processes.append(process)
        threading.Thread(target=self._read, args=(self.processes[0].stdout, self.lines), daemon=True).start()
        first = self._next(START_LIMIT_S)
        if first is None:
            reason = self._last_words()
            self.stop()
            raise ChildProcessError(reason)
        self.software = first["software"]

    @staticmethod
    def _read(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    def _next(self, limit_s: float) -> dict[str, Any] | None:
        """Return the next message; None where a process ended (the others would wait for it) or all stayed silent."""
        until = time.monotonic() + limit_s
        while (left := until - time.monotonic()) > 0:
            try:
                line = self.lines.get(timeout=min(left, LOOK_S))
            except queue.Empty:
                if any(process.poll() is not None for process in self.processes):
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
            if len(self.refused) >= STARTS:
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
                continue
        message = self._next(case.limit_s)
        if message is not None:
            if "failed" in message and self.ranks > 1:
                self.stop()  # the others wait within a collective that one has left
            return message
        died = [str(rank) for rank, process in enumerate(self.processes) if process.poll() is not None]
        killed = [-process.returncode for process in self.processes if (process.returncode or 0) < 0]
        late = time.monotonic() - begin >= case.limit_s - 0.1
        who = f"process {', '.join(died)} of {self.ranks}" if died and self.ranks > 1 else "the process"
        words = f"no answer within {case.limit_s:g} s" if late else f"{who} died: {self._last_words(killed)}"
        self.stop()
        return {"failed": words}

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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
