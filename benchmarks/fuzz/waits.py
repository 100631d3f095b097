"""Servers that drip, fall silent or lie, kills while the program waits for them, and store commands that race.

The server is a thread of the judge; the program is a child that is timed by the clock on the wall.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case, InternalError

BOUND_S = 1.0  # that a case gives the program
START_S = 20.0  # that a child may need beside it on a busy machine; a server here keeps one for a minute
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _drip(connection: socket.socket, data: bytes, pause_s: float) -> None:
    for number in range(len(data)):
        connection.sendall(data[number : number + 1])
        time.sleep(pause_s)


def _dripping_body(connection: socket.socket, _: str) -> None:
    connection.sendall(HEAD + b"\r\n")
    _drip(connection, b"[" * 1200, 0.05)


def _dripping_head(connection: socket.socket, _: str) -> None:
    _drip(connection, HEAD + b"X-Long: " + b"x" * 1200, 0.05)


def _silent(connection: socket.socket, _: str) -> None:
    time.sleep(60)


def _silent_in_the_middle(connection: socket.socket, _: str) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n[1")
    time.sleep(60)


def _promising_more(connection: socket.socket, _: str) -> None:
    connection.sendall(HEAD + b"Content-Length: 99999999999\r\n\r\n[1]")


@cache
def _swollen() -> bytes:
    """Pack 300 MB of nothing, part by part."""
    packer = zlib.compressobj(1, wbits=31)
    parts = [packer.compress(bytes(1_000_000)) for _ in range(300)]
    return b"".join([*parts, packer.flush()])


def _swelling(connection: socket.socket, _: str) -> None:
    body = _swollen()
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: " + str(len(body)).encode()
    connection.sendall(head + b"\r\n\r\n" + body)


def _without_end(connection: socket.socket, _: str) -> None:
    connection.sendall(HEAD + b"\r\n")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        connection.sendall(b" " * 65_536)


def _asking_to_wait(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 429 Slow\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n")


def _sending_on(connection: socket.socket, path: str) -> None:
    connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {path}x\r\nContent-Length: 0\r\n\r\n".encode())


def _sending_away(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/x\r\nContent-Length: 0\r\n\r\n")


def _informing(connection: socket.socket, _: str) -> None:
    for _ in range(1200):
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
        time.sleep(0.05)


def _naming_much(connection: socket.socket, path: str) -> None:
    """A published store whose index names a thousand snapshots, none of which is there."""
    names = [f"20261101T{number:06d}000000Z-{number:016x}" for number in range(1000)]
    body = json.dumps({"format": 1, "snapshots": names}).encode() if path.endswith("index.json") else b""
    if not body:
        time.sleep(0.05)
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return
    connection.sendall(HEAD + b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)


def _rubbish(connection: socket.socket, _: str) -> None:
    connection.sendall(b"\x16\x03\x01 no words of the web\r\n" * 100)


BEHAVIOURS: dict[str, Callable[[socket.socket, str], None]] = {
    one.__name__.removeprefix("_"): one
    for one in (
        *(_dripping_body, _dripping_head, _silent, _silent_in_the_middle, _promising_more, _swelling, _without_end),
        *(_asking_to_wait, _sending_on, _sending_away, _informing, _naming_much, _rubbish),
    )
}


@contextlib.contextmanager
def served(behaviour: str) -> Iterator[str]:
    """Serve on this machine as badly as is asked; return the address."""
    listening = socket.create_server(("127.0.0.1", 0))

    def each(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, IndexError):
            while head := connection.recv(65_536):
                BEHAVIOURS[behaviour](connection, head.split(b" ")[1].decode("latin-1"))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=each, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def servers(random: Random) -> Case:
    """A refresh, a published store or a command with one, against a server that behaves badly; now and then ended."""
    behaviour = random.choice(list(BEHAVIOURS))
    ended = random.choice([None, None, None, "SIGINT", "SIGTERM"])
    asked = random.choice(
        [
            ["prices", "refresh", "--from", random.choice(["azure", "oci", "skypilot", "litellm"]), "--store", "new"],
            ["prices", "refresh", "--from", "SERVER/p", "--store", "new"],
            ["prices", "verify", "--store", "SERVER/p"],
            ["estimate", *good.START["estimate"]],
        ]
    )
    if asked[1] == "refresh":
        asked += [f"--timeout={BOUND_S:g}", *(["--mirror", "SERVER"] if "SERVER/p" not in asked else [])]
    settings = {"GPUCOST_LIMIT_STORE_SECONDS": f"{BOUND_S:g}"}
    if asked[0] == "estimate":
        settings["GPUCOST_STORE"] = "SERVER/p"
    return Case(asked, {}, settings, face="waiting", given=(behaviour, ended))


def waiting(asked: Case) -> None:
    """Ask against the server: the program ends in its time, as soon as it is told, and leaves nothing half-done."""
    from benchmarks.fuzz.faces import command, forked, said

    behaviour, ended = asked.given
    with served(behaviour) as address:
        sys.argv = ["gpucost", *(word.replace("SERVER", address) for word in asked.arguments)]
        for name, value in asked.environment.items():
            os.environ[name] = (value or "").replace("SERVER", address)

        def work() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            command()

        began = time.monotonic()
        number = forked(work)
        if ended:
            time.sleep(BOUND_S / 2)
            os.kill(number, getattr(signal, ended))
        code = _waited(number, began + START_S + 2 * BOUND_S)
    if code is None:
        raise InternalError(f"{asked.arguments[0]} waits beyond {2 * BOUND_S:g} s for a server {behaviour}, {ended}")
    if code in (1, 70):
        raise InternalError(f"exit code {code} of a server {behaviour}, {ended}: {said(number)}")
    if left := [*Path("new").glob("tmp/*/*"), *Path().rglob("*.part*")]:
        raise InternalError(f"{left[0]} stays after a server {behaviour}, {ended}")
    sys.exit(code if code in (0, 2, 5, 130) else 0)


def _waited(number: int, until: float) -> int | None:
    """Return the exit code of a child; None of one that had to be killed."""
    while time.monotonic() < until:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return None


def races(random: Random) -> Case:
    """Commands of one store at once, each as often as it falls: none breaks, and what is there is whole."""
    asked = [
        ["prices", "refresh", "--from", "quotes.csv"],
        ["prices", "refresh", "--from", "other.csv"],
        ["prices", "prune", "--keep", "1"],
        ["prices", "verify"],
        ["prices", "snapshots", "--format", "json"],
        ["prices", "unknown"],
        ["prices", "export", "public"],
        ["prices", "--gpu", "h100-sxm", "--limit", "2"],
    ]
    team = [["prices", "refresh", "--from", "quotes.csv"]]
    team += [random.choice(asked) for _ in range(random.choice([3, 4, 6]))]
    files: dict[str, bytes | str] = {"quotes.csv": QUOTES, "other.csv": QUOTES.replace(b"24.0", b"24.8")}
    return Case(["prices"], files, {"GPUCOST_STORE": "kept"}, face="racing", given=(team, random.random() * 0.3))


QUOTES = b"""provider,instance_type,gpu,gpus,option,usd_per_hour,region
acme,a8,h100-sxm,8,on_demand,24.0,us-east-1
acme,b8,l40s,1,spot,0.4,us-east-1
"""


def racing(asked: Case) -> None:
    """Run the team at once, twice; then verify."""
    from benchmarks.fuzz.faces import forked, program, said

    team, apart_s = asked.given

    def started(words: list[str]) -> int:
        sys.argv = ["gpucost", *words]
        return forked(program)

    for _ in range(2):
        numbers: list[int] = []
        for words in team:
            numbers.append(started(words))
            time.sleep(apart_s / len(team))
        codes = [_waited(number, time.monotonic() + 60) for number in numbers]
        for words, code, number in zip(team, codes, numbers, strict=True):
            if code not in (0, 2) or (code == 2 and words[1] not in ("export", "snapshots")):
                raise InternalError(f"{' '.join(words)} ends with {code}: {said(number)}")
    number = started(["prices", "verify"])
    if code := _waited(number, time.monotonic() + 60):
        raise InternalError(f"a store is not whole after a race: {code}, {said(number)}")
