"""A server on this machine that answers like the sources of prices do: pages, throttling, broken and slow bodies."""

import contextlib
import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Server:
    """Routes by `/<host>/<path>`; an answer is bytes, text, something for JSON, or a function of the request."""

    def __init__(self, routes=None):
        self.routes = dict(routes or {})
        self.asked = []

    def __enter__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self)
                self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
                answer = outer.routes.get(self.path, outer.routes.get(urlsplit(self.path).path))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    answer(self) if callable(answer) else send(self, answer)

            do_POST = do_HEAD = do_PUT = do_GET

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def send(request, answer, status=200, headers=(), packed=False):
    """Answer whole."""
    if answer is None:
        status, answer = 404, b"not here"
    body = answer if isinstance(answer, bytes) else (answer if isinstance(answer, str) else json.dumps(answer)).encode()
    if packed:
        body = gzip.compress(body)
    request.send_response(status)
    for name, value in dict(headers).items():
        request.send_header(name, value)
    if packed:
        request.send_header("Content-Encoding", "gzip")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def throttled(times, answer, wait="1"):
    """Refuse so often with 429 and Retry-After, then answer."""
    left = [times]

    def respond(request):
        left[0] -= 1
        send(request, *((b"slow down", 429, {"Retry-After": wait}) if left[0] >= 0 else (answer,)))

    return respond


def broken(times, answer):
    """Promise more bytes than come so often, then answer whole."""
    left = [times]

    def respond(request):
        left[0] -= 1
        if left[0] < 0:
            return send(request, answer)
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        request.wfile.write(b"[1, 2")
        return None

    return respond


def slow(seconds, answer):
    """Say nothing for a while."""

    def respond(request):
        time.sleep(seconds)
        send(request, answer)

    return respond


def moved(target, status=302):
    return lambda request: send(request, b"", status, {"Location": target})


def zipped(answer):
    return lambda request: send(request, answer, packed=True)
