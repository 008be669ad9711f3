"""The HTTP server behind the live page: daemon threads of the process that is looked at.

`/` is the page, `/snapshot.json` its data, `/events` the same once a second as server-sent events, `/explain` what
`jd.explain()` says, `/metrics` what Prometheus reads. Everything is read-only.

Who may ask: on the loopback interface whoever can connect, if the `Host` header names this machine (a page of a
stranger whose name suddenly resolves to 127.0.0.1 sends its own) and no other origin asks. A server that listens
elsewhere wants a token with every request. A Unix socket is for its owner. Built on `http.server`: decision 16.
"""

from __future__ import annotations

import atexit
import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jitdialects.errors import ConfigError

logger = logging.getLogger("jitdialects")
PAGE = Path(__file__).with_name("page")
ASSETS = {
    "/": ("index.html", "text/html"),
    "/dash.css": ("dash.css", "text/css"),
    "/dash.js": ("dash.js", "text/javascript"),
}
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
MOST_CONNECTIONS = 32
"""Open at once; a further one is closed."""
PATIENCE = 20.0
"""Seconds that a connection may be silent, or refuse to be written to."""
EVENT_SECONDS = 1.0
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Refusal(Exception):
    """A request that is not served: the status, and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


Source = Callable[[], str]
"""Makes the text of an answer; may raise `Refusal`."""


class ViewServer(ThreadingMixIn, TCPServer):
    """Serves `sources` (path -> content type and what makes the text) and the page, until `close`.

    `address` is (host, port) or the path of a Unix socket. Raises `OSError` where it cannot listen.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int] | str,
        sources: dict[str, tuple[str, Source]],
        token: str | None = None,
    ) -> None:
        self.sources = sources
        self.token = token
        self.closing = threading.Event()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._path = address if isinstance(address, str) else None
        self.is_local = isinstance(address, str) or address[0] in LOCAL_NAMES
        if isinstance(address, str):
            self.address_family = socket.AF_UNIX
        elif ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)  # pyright: ignore[reportArgumentType]
        threading.Thread(
            target=self.serve_forever, args=(0.1,), name="jitdialects-views", daemon=True
        ).start()

    def server_bind(self) -> None:
        """Bind; a socket in the file system is its owner's only, from its first moment."""
        if self._path is None:
            super().server_bind()
            return
        _remove_dead_socket(self._path)
        before = os.umask(0o177)
        try:
            super().server_bind()
        finally:
            os.umask(before)

    @property
    def url(self) -> str:
        """Where the page is; the path of a Unix socket."""
        if self._path is not None:
            return self._path
        host, port = self.socket.getsockname()[:2]
        named = f"[{host}]" if ":" in host else host
        return f"http://{named}:{port}/" + (f"?token={self.token}" if self.token else "")

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread for each connection, while there are places."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is none; whatever else happens is no reason to disturb the program."""
        logger.debug("jitdialects: a view ended", exc_info=True)  # noqa: LOG014 (called by a handler)

    def close(self) -> None:
        """Stop serving and give the address back."""
        self.closing.set()
        self.shutdown()
        self.abandon()
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def abandon(self) -> None:
        """Close the socket only: in a forked child, whose parent goes on serving."""
        self.server_close()


def _remove_dead_socket(path: str) -> None:
    """Remove the socket that a process that is gone has left at `path`; anything else stays."""
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise OSError("somebody listens there")


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: ViewServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "jitdialects"
    sys_version = ""
    timeout = PATIENCE
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        """Answer, or refuse in one sentence."""
        try:
            path = self._checked()
            if path == "/events" and "/snapshot.json" in self.server.sources:
                self._stream()
            elif path in self.server.sources:
                kind, source = self.server.sources[path]
                self._answer(HTTPStatus.OK, kind, source().encode())
            elif path in ASSETS and "/snapshot.json" in self.server.sources:
                name, kind = ASSETS[path]
                self._answer(HTTPStatus.OK, kind, (PAGE / name).read_bytes())
            else:
                known = ", ".join(("/", *self.server.sources))
                raise Refusal(HTTPStatus.NOT_FOUND, f"there is no {path}; there are: {known}")
        except Refusal as refusal:
            self._answer(refusal.status, "text/plain", f"{refusal}\n".encode())
        except OSError:  # who asked is gone
            self.close_connection = True
        except Exception as error:
            logger.exception("a view failed")
            text = f"{type(error).__name__}: {error}\n".encode()
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", text)

    def _checked(self) -> str:
        """The path of a request that may be served."""
        parts = urlsplit(self.path)
        host = self.headers.get("Host", "")
        name = urlsplit(f"//{host}").hostname
        if self.server.token is None and self.server.is_local:
            is_socket = self.server.address_family == socket.AF_UNIX
            if name not in LOCAL_NAMES and not is_socket:
                raise Refusal(
                    HTTPStatus.FORBIDDEN, f"host {host!r} is not this machine; ask for 127.0.0.1"
                )
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refusal(HTTPStatus.FORBIDDEN, f"pages of {origin} may not ask")
        is_data = parts.path not in ASSETS or parts.path == "/"
        if self.server.token is not None and is_data and not self._has_token(parse_qs(parts.query)):
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "this address wants its token: ?token=..., or the header 'Authorization: Bearer ...'",
            )
        return parts.path

    def _has_token(self, query: dict[str, list[str]]) -> bool:
        kind, _, bearer = self.headers.get("Authorization", "").partition(" ")
        given = [*query.get("token", ()), *([bearer.strip()] if kind == "Bearer" else ())]
        wanted = (self.server.token or "").encode()
        return any(hmac.compare_digest(g.encode(), wanted) for g in given)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._head(status, kind, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (HEADERS | more).items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()

    def _stream(self) -> None:
        """The snapshot as one event a second, for as long as someone reads."""
        self.close_connection = True
        self._head(HTTPStatus.OK, "text/event-stream", {"Connection": "close"})
        _, source = self.server.sources["/snapshot.json"]
        while not self.server.closing.is_set():
            self.wfile.write(f"data: {source()}\n\n".encode())
            self.wfile.flush()
            self.server.closing.wait(EVENT_SECONDS)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are nobody's news."""


class Frames:
    """The snapshot as JSON, made at most so often however many look."""

    def __init__(self, make: Callable[[], object], every: float = EVENT_SECONDS / 2) -> None:
        self._make = make
        self._every = every
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._text = ""

    def __call__(self) -> str:
        with self._lock:
            if time.monotonic() - self._at >= self._every:
                self._text = json.dumps(self._make(), separators=(",", ":"), allow_nan=False)
                self._at = time.monotonic()
            return self._text


class Views:
    """What this process serves under one name: at most one server. Safe to use from several threads; a forked
    child serves nothing."""

    name = "views"

    def __init__(self) -> None:
        self._server: ViewServer | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.stop)

    def sources(self) -> dict[str, tuple[str, Source]]:
        """What is served."""
        raise NotImplementedError

    @property
    def url(self) -> str | None:
        """Where it is (the path of a Unix socket); None while nothing is served."""
        server = self._server
        return None if server is None else server.url

    def start(
        self,
        port: int = 0,
        host: str = "127.0.0.1",
        path: str | None = None,
        token: str | None = None,
    ) -> str:
        """Serve; returns the URL. What is served already stays where it is.

        `port` 0 takes any that is free. `path` makes it a Unix socket, for its owner only. Where other machines
        reach `host`, a `token` is made if none is given; it is part of the URL. Raises `ConfigError` for an
        address that cannot be had.
        """
        with self._lock:
            if self._server is None:
                if path is None and host not in LOCAL_NAMES:
                    token = token or secrets.token_urlsafe(16)
                path = path and os.path.abspath(path)  # others find it by what the system says
                try:
                    self._server = ViewServer(path or (host, port), self.sources(), token)
                except (OSError, OverflowError, TypeError) as error:
                    where = path or f"{host}:{port}"
                    remedy = "" if path else "; port=0 takes any that is free"
                    raise ConfigError(
                        f"{self.name}: cannot listen on {where} ({error}){remedy}"
                    ) from None
            return self._server.url

    def stop(self) -> None:
        """Serve no longer; nothing happens where nothing is served."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _after_fork(self) -> None:
        """In a child: the threads stayed with the parent, which goes on serving."""
        self._lock = threading.Lock()
        server, self._server = self._server, None
        if server is not None:
            server.abandon()
