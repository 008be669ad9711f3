"""The server of the live page: what it serves, and whom it refuses."""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import stat
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from jitdialects.config import config
from jitdialects.errors import ConfigError
from jitdialects.tools import view_server
from jitdialects.tools.dashboard import Dashboard, dashboard
from jitdialects.tools.view_server import MOST_CONNECTIONS, Frames, Refusal, ViewServer


class Counting:
    """A source that counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> object:
        self.asked += 1
        return {"n": self.asked}


def serving(address: tuple[str, int] | str = ("127.0.0.1", 0), token: str | None = None):
    def broken() -> str:
        raise ZeroDivisionError("oh")

    def refusing() -> str:
        raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "not here")

    sources = {
        "/snapshot.json": ("application/json", Frames(Counting(), every=0.0)),
        "/broken": ("text/plain", broken),
        "/refusing": ("text/plain", refusing),
    }
    return ViewServer(address, sources, token)


@pytest.fixture
def server() -> Iterator[ViewServer]:
    made = serving()
    yield made
    made.close()


def ask(
    server: ViewServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.socket.getsockname()[1], timeout=10)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


def test_the_page_and_its_data(server: ViewServer) -> None:
    status, text, headers = ask(server, "/")
    assert status == 200 and "<title>jitdialects</title>" in text
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    for name in ("dash.css", "dash.js"):
        assert name in text
        assert ask(server, f"/{name}")[0] == 200
    assert json.loads(ask(server, "/snapshot.json")[1]) == {"n": 1}
    assert ask(server, "/nothing")[:2] == (
        404,
        "there is no /nothing; there are: " + "/, " + ", ".join(server.sources) + "\n",
    )


def test_the_page_needs_nothing_from_elsewhere(server: ViewServer) -> None:
    for path in ("/", "/dash.css", "/dash.js"):
        text = ask(server, path)[1].replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text and "innerHTML" not in text
    policy = ask(server, "/")[2]["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "localhost:9999", "[::1]:8000"])
def test_this_machine_may_ask(server: ViewServer, host: str) -> None:
    assert ask(server, "/snapshot.json", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name that was rebound to 127.0.0.1
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Host": "localhost", "Origin": "http://evil.example"},
        {"Host": "localhost", "Origin": "null"},
    ],
)
def test_strangers_may_not(server: ViewServer, headers: dict[str, str]) -> None:
    for path in ("/", "/snapshot.json", "/events"):
        status, text, _ = ask(server, path, **headers)
        assert status == 403 and text.count("\n") == 1


def test_only_reading_is_served(server: ViewServer) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert ask(server, "/snapshot.json", method)[0] == 501


def test_a_token_is_wanted_where_one_was_given() -> None:
    server = serving(token="secret")
    try:
        assert "?token=secret" in server.url
        assert ask(server, "/snapshot.json")[0] == 401
        assert ask(server, "/")[0] == 401
        assert ask(server, "/snapshot.json?token=wrong")[0] == 401
        assert ask(server, "/snapshot.json", Authorization="Bearer wrong")[0] == 401
        assert ask(server, "/snapshot.json?token=s%C3%A9cret")[0] == 401
        assert ask(server, "/snapshot.json?token=secret")[0] == 200
        assert (
            ask(server, "/snapshot.json", Authorization="Bearer secret", Host="any.name")[0] == 200
        )
        assert ask(server, "/dash.js")[0] == 200  # holds no data
    finally:
        server.close()


def test_events_come_until_nobody_listens(
    server: ViewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_server, "EVENT_SECONDS", 0.01)
    with socket.create_connection(server.socket.getsockname(), timeout=10) as connection:
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = connection.makefile("rb")
        assert stream.readline().endswith(b"200 OK\r\n")
        events = [
            line for line in (stream.readline() for _ in range(30)) if line.startswith(b"data")
        ]
    assert json.loads(events[0][5:]) == {"n": 1} and json.loads(events[2][5:]) == {"n": 3}
    assert ask(server, "/snapshot.json")[0] == 200


def test_what_fails_is_told_and_ends_nothing(
    server: ViewServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(server, "/broken")[:2] == (500, "ZeroDivisionError: oh\n")
    assert "a view failed" in caplog.text
    assert ask(server, "/refusing")[:2] == (501, "not here\n")
    assert ask(server, "/snapshot.json")[0] == 200


@pytest.mark.parametrize(
    "bytes", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500, b""]
)
def test_nonsense_ends_nothing(server: ViewServer, bytes: bytes) -> None:
    with socket.create_connection(server.socket.getsockname(), timeout=10) as connection:
        connection.sendall(bytes)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)
    assert ask(server, "/snapshot.json")[0] == 200


def test_more_connections_than_places_are_closed(server: ViewServer) -> None:
    address = server.socket.getsockname()
    open_ = [socket.create_connection(address, timeout=10) for _ in range(MOST_CONNECTIONS)]
    with socket.create_connection(address, timeout=10) as late:
        assert late.recv(1) == b""
    for connection in open_:
        connection.close()
    for _ in range(100):
        try:
            assert ask(server, "/snapshot.json")[0] == 200
            return
        except OSError:
            threading.Event().wait(0.05)
    pytest.fail("no place became free")


def test_a_socket_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "dash.socket"
    server = serving(str(path))
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            connection.sendall(b"GET /snapshot.json HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b'{"n":1}' in connection.recv(10_000)
        with pytest.raises(OSError, match="somebody listens there"):
            serving(str(path))
    finally:
        server.close()
    assert not path.exists()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    serving(str(path)).close()  # what a process that is gone has left does not stand in the way


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(OSError):
        serving(str(path))
    assert path.read_text() == "mine"


def test_frames_are_shared() -> None:
    source = Counting()
    frames = Frames(source, every=1000.0)
    assert {frames() for _ in range(5)} == {'{"n":1}'}
    assert source.asked == 1


# ---- start, stop, forks --------------------------------------------------------------------------


@pytest.fixture
def page() -> Iterator[Dashboard]:
    made = Dashboard()
    yield made
    made.stop()


def test_start_serves_once_and_stop_ends_it(page: Dashboard) -> None:
    assert page.url is None
    url = page.start()
    assert url.startswith("http://127.0.0.1:") and page.url == url
    assert page.start(port=1) == url  # it is there already
    page.stop()
    assert page.url is None
    page.stop()


def test_an_address_that_cannot_be_had_is_one_error(page: Dashboard) -> None:
    other = serving()
    try:
        port = other.socket.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port} .*port=0"):
            page.start(port=port)
        with pytest.raises(ConfigError, match="cannot listen on"):
            page.start(port=99999)
    finally:
        other.close()


def test_elsewhere_a_token_is_made(page: Dashboard) -> None:
    url = page.start(host="0.0.0.0")
    assert len(url.partition("?token=")[2]) >= 16


def test_a_forked_child_serves_nothing(page: Dashboard) -> None:
    url = page.start()
    child = os.fork()
    if child == 0:
        os._exit(0 if page.url is None and page.start() != url else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert page._server is not None and ask(page._server, "/")[0] == 200


def test_the_variable_says_where(
    page: Dashboard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "dash", "0")
    monkeypatch.setattr(config, "dash_token", "abc")
    page.start_as_configured()
    assert page.url is not None and page.url.endswith("/?token=abc")
    page.stop()
    monkeypatch.setattr(config, "dash", str(tmp_path / "a.socket"))
    page.start_as_configured()
    assert page.url == str(tmp_path / "a.socket")


def test_a_variable_that_cannot_be_served_disturbs_nobody(
    page: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = serving()
    try:
        monkeypatch.setattr(config, "dash", str(other.socket.getsockname()[1]))
        with caplog.at_level(logging.WARNING, "jitdialects"):
            page.start_as_configured()
        assert "JITDIALECTS_DASH: dashboard: cannot listen on 127.0.0.1" in caplog.text
        assert page.url is None
    finally:
        other.close()


def test_an_open_address_wants_its_token_in_the_environment(
    page: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config, "dash", "0.0.0.0:0")
    page.start_as_configured()
    assert page.url is None and "set JITDIALECTS_DASH_TOKEN" in caplog.text
    monkeypatch.setattr(config, "dash_token", "@nowhere")
    page.start_as_configured()
    assert page.url is None and "JITDIALECTS_DASH_TOKEN cannot be read" in caplog.text
    monkeypatch.setattr(config, "dash_token", "hidden")
    with caplog.at_level(logging.INFO, "jitdialects"):
        page.start_as_configured()
    assert page.url is not None and "the dashboard is at http://0.0.0.0" in caplog.text
    assert "hidden" not in caplog.text and "hidden" not in repr(config.dash_token)


def test_a_socket_may_be_named_from_here(
    page: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the docs write it: JITDIALECTS_DASH=./dash.socket."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config, "dash", "./dash.socket")
    page.start_as_configured()
    assert page.url == str(tmp_path / "dash.socket")
    page.stop()
    assert page.start(path="other.socket") == str(tmp_path / "other.socket")
    page.stop()
    with pytest.raises(ConfigError, match=r"cannot listen on .*/nowhere/x \(.*\)$"):
        page.start(path="nowhere/x")


@pytest.mark.parametrize("value", ["x", "-1", "70000", ":80", "a:b", "1.5"])
def test_places_that_are_none(value: str) -> None:
    with pytest.raises(ConfigError, match="needs a port, host:port, or the path of a socket"):
        config.dash = value


def test_the_dashboard_of_the_process_is_public() -> None:
    import jitdialects as jd

    assert jd.dashboard is dashboard
