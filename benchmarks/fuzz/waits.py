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
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.children import command, exit_code_until, forked, last_words, program

_BOUND_S = 1.0  # that a case gives the program
_START_S = 20.0  # that a child may need beside it on a busy machine; a server here keeps one for a minute
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _dripping(data: bytes) -> Iterator[bytes | float]:
    """Yield a byte at a time, with pauses."""
    for number in range(len(data)):
        yield data[number : number + 1]
        yield 0.05


@cache
def _swollen() -> bytes:
    """Pack 300 MB of nothing, part by part."""
    packer = zlib.compressobj(1, wbits=31)
    parts = [packer.compress(bytes(1_000_000)) for _ in range(300)]
    return b"".join([*parts, packer.flush()])


def _without_end() -> Iterator[bytes]:
    yield HEAD + b"\r\n"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        yield b" " * 65_536


def _naming_much(path: str) -> Iterator[bytes | float]:
    """A published store whose index names a thousand snapshots, none of which is there."""
    if path.endswith("index.json"):
        names = [f"20261101T{number:06d}000000Z-{number:016x}" for number in range(1000)]
        yield _sized(json.dumps({"format": 1, "snapshots": names}).encode())
    else:
        yield 0.05
        yield b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _sized(body: bytes, head: bytes = HEAD) -> bytes:
    return head + b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


# what a server sends for a path: bytes, and seconds of silence between them
BEHAVIOURS: dict[str, Callable[[str], Iterable[bytes | float]]] = {
    "dripping_body": lambda _: [HEAD + b"\r\n", *_dripping(b"[" * 1200)],
    "dripping_head": lambda _: _dripping(HEAD + b"X-Long: " + b"x" * 1200),
    "silent": lambda _: [60.0],
    "silent_in_the_middle": lambda _: [HEAD + b"Content-Length: 1000\r\n\r\n[1", 60.0],
    "promising_more": lambda _: [HEAD + b"Content-Length: 99999999999\r\n\r\n[1]"],
    "swelling": lambda _: [_sized(_swollen(), HEAD + b"Content-Encoding: gzip\r\n")],
    "without_end": lambda _: _without_end(),
    "asking_to_wait": lambda _: [b"HTTP/1.1 429 Slow\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"],
    "sending_on": lambda path: [f"HTTP/1.1 302 Found\r\nLocation: {path}x\r\nContent-Length: 0\r\n\r\n".encode()],
    # to an address of a block for documents, where nobody answers
    "sending_away": lambda _: [b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/x\r\nContent-Length: 0\r\n\r\n"],
    "informing": lambda _: [b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 0.05] * 1200,
    "naming_much": _naming_much,
    "rubbish": lambda _: [b"\x16\x03\x01 no words of the web\r\n" * 100],
}


@contextlib.contextmanager
def served(behaviour: str) -> Iterator[str]:
    """Serve on this machine as badly as is asked; return the address."""
    # any free port; daemon threads, for some of these servers never come to an end
    listening = socket.create_server(("127.0.0.1", 0))

    def each(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, IndexError):
            while head := connection.recv(65_536):  # a client may ask again on one connection
                for part in BEHAVIOURS[behaviour](head.split(b" ")[1].decode("latin-1")):
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        time.sleep(part)

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
    arguments = random.choice(
        [
            ["prices", "refresh", "--from", random.choice(["azure", "oci", "skypilot", "litellm"]), "--store", "new"],
            ["prices", "refresh", "--from", "SERVER/p", "--store", "new"],
            ["prices", "verify", "--store", "SERVER/p"],
            ["estimate", *good.START["estimate"]],
        ]
    )
    if arguments[1] == "refresh":
        arguments += [f"--timeout={_BOUND_S:g}", *(["--mirror", "SERVER"] if "SERVER/p" not in arguments else [])]
    settings = {"GPUCOST_LIMIT_STORE_SECONDS": f"{_BOUND_S:g}"}
    if arguments[0] == "estimate":
        settings["GPUCOST_STORE"] = "SERVER/p"
    return Case(arguments, {}, settings, face="waiting", inputs=(behaviour, ended))


def waiting(case: Case) -> None:
    """Ask against the server: the program ends in its time, as soon as it is told, and leaves nothing half-done."""
    behaviour, ended = case.inputs
    with served(behaviour) as address:
        sys.argv = ["gpucost", *(argument.replace("SERVER", address) for argument in case.arguments)]
        for name, value in case.environment.items():
            os.environ[name] = (value or "").replace("SERVER", address)

        def work() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            command()

        began = time.monotonic()
        number = forked(work)
        if ended:  # while the program waits for the server
            time.sleep(_BOUND_S / 2)
            os.kill(number, getattr(signal, ended))
        code = exit_code_until(number, began + _START_S + 2 * _BOUND_S)
    if code is None:
        raise InternalError(f"{case.arguments[0]} waits beyond {2 * _BOUND_S:g} s for a server {behaviour}, {ended}")
    if code in (1, 70):
        raise InternalError(f"exit code {code} of a server {behaviour}, {ended}: {last_words(number)}")
    if left := [*Path("new").glob("tmp/*/*"), *Path().rglob("*.part*")]:
        raise InternalError(f"{left[0]} stays after a server {behaviour}, {ended}")
    # 143 is that of a program ended by SIGTERM: as it should be, and no code of ours
    sys.exit(code if code in (0, 2, 5, 130) else 0)


def races(random: Random) -> Case:
    """Commands of one store at once, each as often as it falls: none breaks, and what is there is whole."""
    commands = [
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
    team += [random.choice(commands) for _ in range(random.choice([3, 4, 6]))]
    files: dict[str, bytes | str] = {"quotes.csv": QUOTES, "other.csv": QUOTES.replace(b"24.0", b"24.8")}
    return Case(["prices"], files, {"GPUCOST_STORE": "kept"}, face="racing", inputs=(team, random.random() * 0.3))


QUOTES = b"""provider,instance_type,gpu,gpus,option,usd_per_hour,region
acme,a8,h100-sxm,8,on_demand,24.0,us-east-1
acme,b8,l40s,1,spot,0.4,us-east-1
"""


def racing(case: Case) -> None:
    """Run the team at once, twice; then verify."""
    team, apart_s = case.inputs

    def started(arguments: list[str]) -> int:
        sys.argv = ["gpucost", *arguments]
        return forked(program)

    for _ in range(2):  # the second time on a store that is there already
        numbers: list[int] = []
        for arguments in team:
            numbers.append(started(arguments))
            time.sleep(apart_s / len(team))
        codes = [exit_code_until(number, time.monotonic() + 60) for number in numbers]
        for arguments, code, number in zip(team, codes, numbers, strict=True):
            # these two have nothing to show of a store that is not there yet, and say so
            if code not in (0, 2) or (code == 2 and arguments[1] not in ("export", "snapshots")):
                raise InternalError(f"{' '.join(arguments)} ends with {code}: {last_words(number)}")
    number = started(["prices", "verify"])
    if code := exit_code_until(number, time.monotonic() + 60):
        raise InternalError(f"a store is not whole after a race: {code}, {last_words(number)}")
