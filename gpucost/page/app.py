"""The server of the page: loopback only, a token in the address, answers on GET, nothing that changes state.

What a question asks and what answers it is page/questions.py; the page's own text is page/static.py and assets.
"""

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.arguments.files import without_contents
from gpucost.errors import GpuCostError, UsageError
from gpucost.page import questions, static
from gpucost.render.wording import without_commands
from gpucost.store.files import SpareFolder

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_HOSTS = ("127.0.0.1", "localhost", "[::1]")  # any other name in a request is another site's, resolved to this machine
SIDE_BY_SIDE = 2  # answers made at once: each holds tens of megabytes
WAITING, PATIENCE_S = 128, 60.0  # connections kept, and how long a question waits for its turn
HEAD_S = 10.0  # in which a request must have arrived
_turns = threading.BoundedSemaphore(SIDE_BY_SIDE)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# nothing from elsewhere runs, no other site may frame or read the page, and no browser keeps an answer
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_PAGE = "text/html; charset=utf-8"
_ANSWERS: dict[str, Callable[[Mapping[str, str]], Any]] = {
    "plan": questions.plan,
    "serve": questions.serve,
    "own": questions.own,
    "fit": questions.fit,
    "choices": lambda query: questions.choices(),
    "facts": lambda query: questions.facts(),
}


def make_app(token: str) -> "Starlette":
    """Return the application; every path begins with the token."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.routing import Route

    root = f"/{token}"
    return Starlette(
        routes=[
            Route(f"{root}/", _file, methods=["GET"]),
            Route(f"{root}/{{name}}", _file, methods=["GET"]),
            Route(f"{root}/api/{{name}}", _answer, methods=["GET"]),
            Route(f"{root}/export/{{name}}", _export, methods=["GET"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=[*_HOSTS], www_redirect=False),
            Middleware(_OwnOrigin),
        ],
    )


class _OwnOrigin:
    """Refuses what a page of another site asks for: a browser says whose page it was."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request on, or refuse it."""
        is_own = True
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            # it comes from the page itself, or from an address that a person opened
            origin = headers.get(b"origin")
            is_foreign = headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
            is_own = not is_foreign or headers.get(b"sec-fetch-mode") == b"navigate"
            if origin is not None and origin.lower() != b"http://" + headers.get(b"host", b"").lower():
                is_own = False
        if is_own:
            await self.app(scope, receive, send)
        else:
            await _error("a page of another site asks; this one answers its own alone.", 403)(scope, receive, send)


def _file(request: "Request") -> "Response":
    """Hand out one of the page's own files."""
    name = request.path_params.get("name", "page.html")
    if name not in ("page.html", "page.css", "page.js"):
        return _error("there is no such file.", 404)
    is_page = name == "page.html"
    text = static.document() if is_page else files("gpucost.page").joinpath("assets", name).read_text("utf-8")
    return _response(text, f"{_TYPES[Path(name).suffix]}; charset=utf-8")


def _answer(request: "Request") -> "Response":
    """Answer a question as JSON; a refusal is the sentence of the command."""
    name, query = request.path_params["name"], dict(request.query_params)
    answer = _ANSWERS.get(name)
    if answer is None:
        return _error("there is no such question.", 404)
    return _in_turn(lambda: _json(answer(query), 200), query, name)


def _export(request: "Request") -> "Response":
    """Hand out the answer as a workbook, a page or a scenario."""
    name, query = request.path_params["name"], dict(request.query_params)

    def file() -> "Response":
        if name == "scenario.toml":
            return _download(questions.scenario(query).encode(), "application/toml", name)
        if name == "plan.html":
            return _download(static.page([query]).encode(), _PAGE, name)
        result = questions.estimate(query)
        is_workbook = name == "estimate.xlsx"
        with SpareFolder() as folder:
            path = Path(folder, name)
            (result.to_excel if is_workbook else result.to_html)(str(path))
            return _download(path.read_bytes(), _WORKBOOK if is_workbook else _PAGE, name)

    if name not in ("estimate.xlsx", "estimate.html", "plan.html", "scenario.toml"):
        return _error("there is no such file. Files: estimate.xlsx, estimate.html, plan.html, scenario.toml.", 404)
    return _in_turn(file, query)


def _in_turn(make: Callable[[], "Response"], query: Mapping[str, str], name: str = "plan") -> "Response":
    """Answer in turn, so that many who ask at once need no more memory; an error becomes a response."""
    if not _turns.acquire(timeout=PATIENCE_S):
        return _error("too many questions at once. Ask again in a minute.", 503)
    try:
        return make()
    except GpuCostError as error:
        # the command's sentence, the same without flags, and the nearest questions that have an answer
        sentence = " ".join(without_contents(error, query).split())
        return _json(
            {
                "error": sentence,
                "said": without_commands(sentence),
                "exit_code": error.exit_code,
                "nearest": questions.nearest(error, query, name),
            },
            422,
        )
    except Exception as error:  # the page says it and lives on
        return _json({"error": f"internal error: {type(error).__name__}. Please report it."}, 500)
    finally:
        _turns.release()


def _json(value: Any, status: int) -> "Response":
    from gpucost.render.json import dumps

    return _response(dumps(value), "application/json", status)


def _error(text: str, status: int) -> "Response":
    return _response(json.dumps({"error": text}), "application/json", status)


def _download(data: bytes, kind: str, name: str) -> "Response":
    return _response(data, kind, 200, {"Content-Disposition": f'attachment; filename="{name}"'})


def _response(content: str | bytes, kind: str, status: int = 200, more: Mapping[str, str] | None = None) -> "Response":
    from starlette.responses import Response

    return Response(content, status, {**_HEADERS, **(more or {})}, kind)


def serve(port: int, say: Callable[[str], None], *, opened: bool = True, folder: Path | None = None) -> None:
    """Serve the page on loopback until it is interrupted; `say` hears its address; files are read under a folder."""
    try:
        # asked for first, so that the sentence comes before a port is bound
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("gpucost serve needs the extra serve: pip install 'gpucost[serve]'.") from None
    import socket

    questions.files = folder
    # whoever cannot read the address cannot ask: other users of this machine, other sites
    token = secrets.token_urlsafe(16)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was in use a moment ago
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # whoever hears the address may ask: the answer waits for the catalog
    except OSError as error:
        listening.close()
        raise UsageError(f"--port: {port} cannot be used ({error.strerror}). Name another, or 0 for any.") from None
    questions.catalog()  # opened now: the first question should not wait for it
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/"
    say(f"serving {address} on this machine only; Ctrl-C stops it")
    if opened:
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # some return when they close
    server_of(make_app(token)).run(sockets=[listening])


def server_of(app: "Starlette", **more: Any) -> Any:
    """Return the server of an application: it keeps few connections and waits for none for long."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        """The server's reader of requests, made to close a connection whose request does not arrive in time."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def _wait(self) -> None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)
            self._waits = True

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._late.cancel()
                self._waits = False
            elif not self._waits:  # a part of the next one; what drips gets no more time
                self._wait()

        def connection_lost(self, exc: Any) -> None:
            self._late.cancel()
            super().connection_lost(exc)

    bounds: dict[str, Any] = {"http": TimedProtocol, "limit_concurrency": WAITING}
    # nothing on the terminal: whoever sent a bad request reads why in its response
    quiet: dict[str, Any] = {"log_level": "critical", "access_log": False, "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, **bounds, **quiet, **more))
