"""The one way to the network: HTTPS requests, bounded in size and time, tried again where that may help.

A request follows redirects that keep the scheme, waits as long as a server asks (within bounds) or longer after each
failure, and unpacks what is packed piece by piece, so that a small body cannot become a large one unnoticed. Every wait
takes what is left of one deadline, at whose end the connections are cut: a server that drips gets no more time than one
that is silent. What an error says names the address without its query: keys are never repeated.
"""

import random
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from gpucost import clock
from gpucost.errors import GpuCostError, UsageError
from gpucost.gate import shown
from gpucost.limits import Deadline, limit
from gpucost.store.files import disk_trouble

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
TRIES, REDIRECTS = 5, 5
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0  # before the second try, then twice as long each time; what a server may ask
_PIECE_BYTES = 65_536
_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))  # statuses that pass: too busy, or something behind is down
_MOVED = frozenset((301, 302, 303, 307, 308))
_FAILURES = {  # of httpx by their class; any other goes by the name of its class
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "the server went silent",
    "ConnectError": "no connection",
    "RemoteProtocolError": "the connection broke before the end",
    "ReadError": "the connection broke",
}


class FetchError(GpuCostError):
    """What could not be fetched, and why."""


class _Passing(Exception):
    """A failure that may pass: the reason, and how long the server asks to wait."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


def library() -> Any:
    """Return httpx; its absence is a sentence."""
    try:
        import httpx
    except ImportError:
        raise UsageError(
            "fetching prices needs the extra `refresh`: install gpucost[refresh], which brings httpx."
        ) from None
    return httpx


def place_of(url: str) -> str:
    """Return an address as errors name it: without its query and without a name or password in it.

    >>> place_of("https://me:secret@example.org/prices?key=secret")
    'https://example.org/prices'
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return shown(url)
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


class Client:
    """Requests within one budget of time and bytes; `mirror` is asked in place of every host."""

    def __init__(
        self,
        *,
        mirror: str | None = None,
        deadline: Deadline | None = None,
        most_bytes: float | None = None,
        read_timeout_s: float = 30.0,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._mirror = mirror.rstrip("/") if mirror else None
        self._deadline = deadline or Deadline(limit("limit_refresh_seconds"))
        # of one answer; of all together four times as much
        self.most_bytes = int(most_bytes or limit("limit_refresh_bytes"))
        self._read_timeout_s, self._pause = read_timeout_s, pause or self._deadline.wait
        self._client: httpx.Client | None = None
        self._sockets: list[socket.socket] = []
        self.fetched_bytes = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    @property
    def is_late(self) -> bool:
        """Tell whether the time for its requests is over."""
        return self._deadline.over

    # --- what readers of sources use

    def json(self, url: str, **how: Any) -> Any:
        """Fetch JSON; what is none is an error."""
        import json

        body = self.body(url, **how)
        try:
            return json.loads(body, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise FetchError(f"{place_of(url)}: the answer is not JSON.") from None

    def body(self, url: str, **how: Any) -> bytes:
        """Fetch a body that is held in memory; `most_bytes` is its own bound."""
        return self._tried(url, lambda: b"".join(self._pieces(url, **how)))

    def file(self, url: str, target: Path, *, digest: str | None = None, **how: Any) -> Path:
        """Fetch a body into a file, which is there only once it is whole, and is what its SHA-256 says where known."""

        def write() -> Path:
            # hashed as it comes: a file of gigabytes is not read twice
            draft, content_hash = target.with_name(target.name + ".part"), sha256()
            try:
                with draft.open("wb") as out:
                    for piece in self._pieces(url, **how):
                        content_hash.update(piece)
                        out.write(piece)
                if digest is not None and content_hash.hexdigest() != digest:
                    raise FetchError(f"{place_of(url)}: is damaged: its content has a different SHA-256.")
                return draft.replace(target)
            except OSError as error:
                raise disk_trouble(target, error) from None
            finally:
                draft.unlink(missing_ok=True)

        return self._tried(url, write)

    # --- one request

    def _tried(self, url: str, act: Callable[[], T]) -> T:
        for turn in range(1, TRIES + 1):
            if self.is_late:
                raise _late(url)
            try:
                with self._deadline.ending(self._cut):
                    return act()
            except _Passing as failure:
                if self.is_late:
                    raise _late(url) from None
                wait_s = failure.wait_s
                if wait_s is None:  # at random, so that readers whom one failure met do not all come back at once
                    wait_s = FIRST_WAIT_S * 2 ** (turn - 1) * random.uniform(0.5, 1.5)
                # a server that asks for longer than there is time is not waited for at all
                if turn == TRIES or wait_s > min(LONGEST_WAIT_S, self._deadline.left_s):
                    tried = "once" if turn == 1 else f"{turn} times"
                    raise FetchError(f"{place_of(url)}: {failure} (tried {tried}).") from None
                self._pause(wait_s)
        raise AssertionError  # the last turn returns or raises

    def _pieces(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        content: str | None = None,
        most_bytes: int | None = None,
    ) -> Iterator[bytes]:
        httpx = library()
        sent_headers = {"accept-encoding": "gzip", "user-agent": "gpucost", **(headers or {})}
        address = self._address(url)
        try:
            for _ in range(REDIRECTS + 1):
                left_s = max(0.001, self._deadline.left_s)  # httpx takes 0 for no limit
                request = self._session(httpx).build_request(
                    method,
                    address,
                    headers=sent_headers,
                    content=content,
                    timeout=httpx.Timeout(min(self._read_timeout_s, left_s), connect=min(10.0, left_s)),
                    extensions={"trace": self._note_connection},
                )
                with closing(self._session(httpx).send(request, stream=True)) as answer:
                    if answer.status_code not in _MOVED:
                        _refuse_failure(answer)
                        yield from self._unpacked(answer, min(most_bytes or self.most_bytes, self.most_bytes))
                        return
                    target = urljoin(str(answer.url), answer.headers.get("location", ""))
                    if urlsplit(target).scheme != urlsplit(address).scheme:
                        raise FetchError(f"{place_of(url)}: redirects to another scheme, which is refused.")
                    if urlsplit(target).netloc != urlsplit(address).netloc:  # a key is for the host that it was given
                        sent_headers = {
                            name: value
                            for name, value in sent_headers.items()
                            if not any(word in name.lower() for word in ("auth", "key", "token", "cookie"))
                        }
                    address = self._address(target)  # where it leads is judged like where it began
        except httpx.TransportError as error:
            name = type(error).__name__
            raise _Passing(_FAILURES.get(name, name)) from None
        except (httpx.InvalidURL, ValueError):
            raise FetchError(f"{place_of(url)}: is not a web address.") from None
        raise FetchError(f"{place_of(url)}: redirects more than {REDIRECTS} times.")

    def _session(self, httpx: Any) -> "httpx.Client":
        if self._client is None:
            self._client = httpx.Client(follow_redirects=False)
        return self._client

    def _note_connection(self, event: str, about: Mapping[str, Any]) -> None:
        """Take note of a connection that was made, so that it can be cut; httpx calls it at each step of a request."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            connection = about["return_value"].get_extra_info("socket")
            if isinstance(connection, socket.socket):
                self._sockets = [*(known for known in self._sockets if known.fileno() >= 0), connection]

    def _cut(self) -> None:
        """End every connection, whoever waits on it: reading it ends at once."""
        for connection in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would wait for the other side

    def _address(self, url: str) -> str:
        try:
            parts = urlsplit(url)
        except ValueError:
            raise FetchError(f"{place_of(url)}: is not a web address.") from None
        if self._mirror:
            mirror = urlsplit(self._mirror)
            if parts[:2] == mirror[:2] and f"{parts.path}/".startswith(f"{mirror.path}/"):
                return url  # a redirect within the mirror
            query = f"?{parts.query}" if parts.query else ""
            return f"{self._mirror}/{parts.netloc}{parts.path}{query}"
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise FetchError(f"{place_of(url)}: only https is allowed.")
        return url

    def _unpacked(self, answer: Any, most_bytes: int) -> Iterator[bytes]:
        """Yield the body unpacked, in pieces; more than the bound, or a body that ends early, is an error."""
        packed = answer.headers.get("content-encoding", "").lower() == "gzip"
        unpacker = zlib.decompressobj(31) if packed else None  # 16 for gzip's header, 15 for the largest window
        total = 0
        for raw in answer.iter_raw():  # as they come: a piece of a fixed size would be waited for
            remainder = raw
            while remainder and not (unpacker and unpacker.eof):
                if unpacker:
                    try:
                        piece = unpacker.decompress(remainder, _PIECE_BYTES)
                    except zlib.error:
                        raise _Passing("the answer is packed wrongly") from None
                    remainder = unpacker.unconsumed_tail
                else:
                    piece, remainder = remainder, b""
                total += len(piece)
                self.fetched_bytes += len(piece)
                # of all requests together four times the bound of one: a source has a handful of large files
                if total > most_bytes or self.fetched_bytes > 4 * self.most_bytes:
                    raise FetchError(f"{place_of(str(answer.url))}: is larger than {most_bytes / 1e6:,.0f} MB.")
                yield piece
            if self.is_late:
                raise _late(str(answer.url))
        if self.is_late:  # it was cut, which looks like its end where no length was promised
            raise _late(str(answer.url))
        if unpacker and not unpacker.eof:
            raise _Passing("the answer ends before its end")


def _late(url: str) -> FetchError:
    return FetchError(f"{place_of(url)}: the time limit of this source has passed.")


def _refuse_failure(answer: Any) -> None:
    """Let an answer pass whose status is 200; of one that may pass, say how long its server asks to wait."""
    from email.utils import parsedate_to_datetime

    status = answer.status_code
    if status in _AGAIN:
        wait_s = None
        if retry_after := answer.headers.get("retry-after"):
            with suppress(TypeError, ValueError):  # seconds or a moment; what is neither is as if it were not there
                if retry_after.strip().isdigit():
                    wait_s = float(retry_after)
                else:
                    wait_s = max(0.0, (parsedate_to_datetime(retry_after) - clock.instant()).total_seconds())
        raise _Passing(f"the server answers {status}", wait_s)
    if status in (401, 403):
        raise FetchError(
            f"{place_of(str(answer.url))}: the server refuses access ({status}); is the key set and valid?"
        )
    if status != 200:
        raise FetchError(f"{place_of(str(answer.url))}: the server answers {status}.")


def _no_number(text: str) -> Any:  # NaN and Infinity, which JSON has not and Python reads
    raise ValueError(text)
