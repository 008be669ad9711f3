"""`jit-top`: it finds the page of a process, and its picture has what the snapshot has."""

from __future__ import annotations

import copy
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.runtime.snapshot import snapshot
from jitdialects.tools import jit_top
from jitdialects.tools.dashboard import Dashboard
from jitdialects.tools.jit_top import count, curve, main, percent, place_of, seconds, size

rich_console = pytest.importorskip("rich.console")


@pytest.fixture(scope="module")
def found() -> dict:
    """A snapshot of a process that computed."""

    @jd.jit
    def halved(x):
        return x * 0.5

    halved(np.ones(3, np.float32))
    return snapshot()


@pytest.fixture
def page(found: dict, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    monkeypatch.setenv("COLUMNS", "160")
    made = Dashboard()
    yield made
    made.stop()


def drawn(data: dict, width: int = 160) -> str:
    console = rich_console.Console(width=width, record=True, file=io.StringIO())
    console.print(jit_top.screen(data))
    return console.export_text()


def test_a_url_a_process_and_a_socket(
    page: Dashboard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = page.start()
    for target in (url, url.removeprefix("http://"), str(os.getpid())):
        assert main([target, "--once"]) == 0
        text = capsys.readouterr().out
        assert "Blocks by time" in text and f"pid {os.getpid()}," in text
    page.stop()
    page.start(path=str(tmp_path / "a.socket"))
    for target in (str(tmp_path / "a.socket"), str(os.getpid())):
        assert main([target, "--once"]) == 0
        assert f"pid {os.getpid()}," in capsys.readouterr().out


def test_a_token_is_part_of_the_url(page: Dashboard, capsys: pytest.CaptureFixture[str]) -> None:
    url = page.start(token="secret")
    assert main([url, "--once"]) == 0
    capsys.readouterr()
    assert main([url.partition("?")[0], "--once"]) == 1
    assert "wants its token" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "status", "sentence"),
    [
        ("4194305", 1, "there is no process 4194305"),
        ("1", 1, "process 1 serves no page that answers here; start it with JITDIALECTS_DASH=0"),
        ("http://127.0.0.1:9/", 1, "nothing answers at 127.0.0.1:9"),
        ("/no/such.socket", 1, "nothing answers at /no/such.socket"),
        ("https://example.org:1/", 2, "is no PID, no URL like http://127.0.0.1:8000/ and no path"),
        ("somewhere", 2, "is no PID"),
        ("http://127.0.0.1:x/", 2, "is no PID"),
    ],
)
def test_no_page_is_one_error(
    target: str, status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([target, "--once"]) == status
    assert sentence in capsys.readouterr().err


def test_a_stranger_that_answers_is_told_as_such(
    page: Dashboard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("<html>", "[]", "{}"):
        sources = {"/snapshot.json": ("text/html", lambda text=text: text)}
        monkeypatch.setattr(page, "sources", lambda sources=sources: sources)
        assert main([page.start(), "--once"]) == 1
        assert "is no page of jitdialects" in capsys.readouterr().err
        page.stop()


@pytest.mark.parametrize("arguments", [[], ["1", "--interval", "0"], ["1", "--interval", "nan"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "jit-top: error:" in capsys.readouterr().err


def test_the_picture_has_the_functions(found: dict) -> None:
    (row,) = [r for r in found["blocks"]["rows"] if r["function"] == "halved"]
    text = drawn(found | {"blocks": {"rows": [row], "left_out": 0}})
    assert "halved, entry" in text and "interpreted" in text and "test_jit_top.py:" in text


def test_alarms_are_drawn_with_their_advice(found: dict) -> None:
    data = copy.deepcopy(found)
    data["alarms"] = [{"name": "hit_rate", "text": "code was ready for 3%", "advice": "do this"}]
    assert "ALARM code was ready for 3%: do this" in drawn(data)
    assert "ALARM" not in drawn(found | {"alarms": []})


def test_names_with_brackets_are_names(found: dict) -> None:
    data = copy.deepcopy(found)
    data["blocks"]["rows"][0]["function"] = "f[red]x[/]"
    assert "f[red]x[/]" in drawn(data)


def test_what_is_left_out_is_counted(found: dict) -> None:
    data = copy.deepcopy(found)
    data["blocks"] = {"rows": data["blocks"]["rows"][:1] * 10, "left_out": 5}
    assert "Blocks by time (7 more)" in drawn(data)


def test_narrow_terminals(found: dict) -> None:
    assert all(len(line) <= 40 for line in drawn(found, width=40).splitlines())


def test_numbers_as_text() -> None:
    assert [percent(x) for x in (None, 0.0, 0.013, 0.5, 1.0)] == ["-", "0%", "1.3%", "50%", "100%"]
    assert [count(n) for n in (7, 9999, 130_000, 2_500_000)] == ["7", "9,999", "130 k", "2.5 M"]
    assert [size(n) for n in (0, 1023, 1 << 20, 5.5 * (1 << 20))] == [
        "0 B",
        "1023 B",
        "1 MiB",
        "5.5 MiB",
    ]
    assert [seconds(s) for s in (0, 3e-6, 0.25, 90)] == ["0", "3 us", "250 ms", "1.5 min"]
    assert curve([0.0, None, 0.5, 1.0]) == "▁ ▅█"


def test_without_rich_the_tool_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["1"]) == 2
    assert "pip install jitdialects[top]" in capsys.readouterr().err


def test_places() -> None:
    assert place_of("http://[::1]:80/").host == "::1"
    assert place_of("localhost:8000").port == 8000
    assert place_of("./a.socket").path == "./a.socket"
