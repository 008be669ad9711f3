"""Libraries of the runtime are made once per cache folder; one that cannot be used there is made again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jitdialects.config import config
from jitdialects.runtime import native
from jitdialects.runtime.compile_server import CompileServer
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.native import native_library
from jitdialects.runtime.pack import KERNELS

LEVEL = "x86-64-v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    native_library.cache_clear()
    yield tmp_path / "cache"
    native_library.cache_clear()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of libraries that were made."""
    names: list[str] = []

    def make(name: str, features: str) -> bytes:
        names.append(name)
        return f"library {name} for {features}".encode()

    monkeypatch.setattr(native, "_make", make)
    return names


def again() -> bytes:
    """As another process would have it."""
    native_library.cache_clear()
    return native_library("vectorcall", LEVEL)


def test_it_is_made_once_per_folder(folder: Path, made: list[str]) -> None:
    first = native_library("vectorcall", LEVEL)
    assert again() == first and made == ["vectorcall"]
    assert native_library("thread_pool", LEVEL) != first
    assert len(list(folder.glob("native-*.so"))) == 2


@pytest.mark.parametrize("kept", [20, -1, 0])
def test_what_is_damaged_is_made_again(folder: Path, made: list[str], kept: int) -> None:
    first = native_library("vectorcall", LEVEL)
    (path,) = folder.glob("native-*.so")
    path.write_bytes(path.read_bytes()[:kept])
    assert again() == first and len(made) == 2
    assert again() == first and len(made) == 2


def test_a_library_of_another_name_is_none(folder: Path, made: list[str]) -> None:
    native_library("thread_pool", LEVEL)
    (path,) = folder.glob("native-*.so")
    path.rename(str(path).replace("thread_pool", "vectorcall"))
    assert again() == f"library vectorcall for {LEVEL}".encode()


def test_nothing_is_read_from_a_folder_that_others_may_write(folder: Path, made: list[str]) -> None:
    native_library("vectorcall", LEVEL)
    folder.chmod(0o777)
    again()
    assert len(made) == 2


def test_without_a_folder_nothing_is_kept(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "cache_dir", None)
    native_library("vectorcall", LEVEL)
    assert made and not folder.exists()


def test_a_server_keeps_them_where_its_parent_keeps_code(folder: Path) -> None:
    server, kernel = CompileServer(), KERNELS["float32", "maximum"]
    request = CompileRequest(kernel.program(), "main", kernel.signature, LEVEL)
    try:
        natives = CompileReply.decode(server(request.encode())).natives
    finally:
        server.close()
    assert {path.name.split("-")[1] for path in folder.glob("native-*.so")} == set(natives)
