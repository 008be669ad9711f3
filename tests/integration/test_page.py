"""The live page in a browser. Runs where Chromium is installed; what needs none is in `test_view_server`."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.tools.dashboard import Dashboard

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")


@pytest.fixture
def page() -> Iterator[Dashboard]:
    made = Dashboard()
    yield made
    made.stop()


def rendered(url: str, folder: Path) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what the console said."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_page_shows_the_process(page: Dashboard, tmp_path: Path) -> None:
    @jd.jit(shapes="exact")
    def visible(x):
        return x * 2 + 1

    visible.__name__ = "<b>visible</b>"
    for n in (5,) * 12 + (6, 7):
        visible(np.ones(n, np.float32))
        visible.wait()
    text, said = rendered(f"{page.start()}?once", tmp_path)
    assert said == []
    assert "&lt;b&gt;visible&lt;/b&gt;" in text and "<b>" not in text
    assert 'data-state="live"' in text
    dials = re.findall(r'role="meter" aria-label="([^"]*)"', text)
    assert dials == ["Compile share", "Hit rate", "Fusion rate", "Reuse rate"]
    assert re.search(r'class="value"[^>]*>\d+ %', text)
    for part in ("blocks", "entries", "signatures", "pool"):
        body = text.split(f'<table id="{part}">')[1].split("</table>")[0]
        assert body.count("<tr>") >= 2, part


def test_a_page_without_its_token_says_so(page: Dashboard, tmp_path: Path) -> None:
    url = page.start(token="secret")
    text, _ = rendered(url.partition("?")[0], tmp_path / "without")
    assert "wants its token" in text
    text, said = rendered(f"{url}&once", tmp_path / "with")
    assert said == [] and 'data-state="live"' in text
