"""Compiled code in storage that machines share: signed, never trusted, and never waited for by a call."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest
from cache_helpers import call, compiled, key_of, plus
from quiet import quiet
from redis_files import redis_server

from jitdialects.config import config
from jitdialects.errors import ConfigError
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.cache import shared as shared_module
from jitdialects.runtime.cache.disk import DiskLevel
from jitdialects.runtime.cache.entry_file import encode
from jitdialects.runtime.cache.shared import SharedLevel
from jitdialects.runtime.messages import CompileReply, without_library
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM

SECRET = "sixteen bytes at least"
_numbers = itertools.count()
KINDS = ("folder", "memory", *(["redis"] if shutil.which("redis-server") else []))


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> Iterator[str]:
    """Storage of every kind that there is here."""
    monkeypatch.setattr(config, "shared_cache_secret", SECRET)
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    if request.param == "redis":
        with redis_server() as where:
            monkeypatch.setattr(config, "shared_cache", where)
            yield where
        return
    where = f"memory://k{next(_numbers)}" if request.param == "memory" else f"file://{tmp_path}/s"
    monkeypatch.setattr(config, "shared_cache", where)
    yield where


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Storage that is a folder."""
    monkeypatch.setattr(config, "shared_cache_secret", SECRET)
    monkeypatch.setattr(config, "shared_cache", f"file://{tmp_path}/s")
    return tmp_path / "s"


def machine() -> KernelCache:
    """The cache of a process of a machine that has nothing yet."""
    return KernelCache(disk=DiskLevel(), shared=SharedLevel())


def share(number: float = 1.0, signature: str = "main(f32[8])") -> CacheKey:
    """Compile on one machine."""
    program = plus(number)
    key, data = key_of(program, signature), compiled(program.to_bytes(), signature)
    cache = machine()
    cache.share(key, data, CompileReply.decode(data))
    assert cache.shared is not None and cache.shared.events.counts == {"stores": 1}
    return key


def counts(cache: KernelCache) -> dict[str, int]:
    assert cache.shared is not None
    return dict(cache.shared.events.counts)


def paths(url: str) -> list[str]:
    system, root = fsspec.core.url_to_fs(url)
    return [name for name in system.find(root) if name.endswith(".jdk")]


def test_another_machine_compiles_nothing(url: str) -> None:
    key, cache = share(2), machine()
    assert cache.fetch(key)
    assert call(cache, key) == [3.0] * 8 and counts(cache) == {"hits": 1}
    (entry,) = cache
    assert entry.source == "shared"
    assert not cache.fetch(replace(key, signature="main(f32[9])"))


def test_calls_are_served_once_the_code_is_there(url: str, monkeypatch) -> None:
    monkeypatch.setattr(config, "disk_cap", 1 << 30)
    share(1, "main(f32[n])")

    def compile(request: bytes) -> bytes:
        raise AssertionError("nothing is to be compiled")

    vm = VM(plus(1), Policy(threshold=1), service=CompileService(machine(), compile))
    for _ in range(2):
        assert vm.run("main", np.ones(5, np.float32))[0].tolist() == [2.0] * 5
        vm.wait()
    assert vm.functions["main"].profile.counted == 1
    assert KernelCache(disk=DiskLevel()).recall(
        key_of(plus(1), "main(f32[5])")
    )  # kept on disk, too


def test_what_is_compiled_is_shared(url: str) -> None:
    data = compiled(plus(4).to_bytes())
    service = CompileService(machine(), lambda request: data)
    service.submit(key_of(plus(4)), lambda: b"")
    service.wait()
    assert machine().fetch(key_of(plus(4)))


def spoil(folder: Path, change: str) -> None:
    """Do what someone might who can write to the storage, but has no secret."""
    key = key_of(plus(1))
    file = folder / key.folder / key.file_name
    data = compiled(plus(6).to_bytes())
    reply = CompileReply.decode(data)
    frame = without_library(data, int)
    if change == "forged":
        file.write_bytes(encode(key, key.features, frame, reply.library, b"a guess of the secret"))
    elif change == "unsigned":
        file.write_bytes(encode(key, key.features, frame, reply.library))
    elif change == "swapped":
        other = key_of(plus(6))
        shutil.copy(folder / other.folder / other.file_name, file)
    elif change == "older":
        (folder / other_signature(key).folder).mkdir(exist_ok=True)
        shutil.copy(file, folder / key.folder / other_signature(key).file_name)
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"x" if change == "altered" else b"short")


def other_signature(key: CacheKey) -> CacheKey:
    return replace(key, signature="main(f32[9])")


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ("forged", "forged"),
        ("unsigned", "forged"),
        ("swapped", "misplaced"),
        ("altered", "forged"),
        ("short", "truncated"),
        ("older", "misplaced"),
    ],
)
def test_what_was_not_signed_for_this_key_is_not_loaded(
    folder: Path, change: str, counted: str
) -> None:
    key, _ = share(1), share(6)
    spoil(folder, change)
    cache, wanted = machine(), other_signature(key) if change == "older" else key
    with pytest.warns(RuntimeWarning, match="shared cache entry .* is not used"):
        assert not cache.fetch(wanted)
    assert counts(cache)[counted] == 1 and len(cache) == 0
    data = compiled(plus(1).to_bytes())
    cache.share(key, data, CompileReply.decode(data))  # what is compiled instead takes its place
    assert machine().fetch(key)


def test_code_for_wider_vectors_is_not_loaded(folder: Path) -> None:
    key, cache = key_of(plus(1)), machine()
    data = compiled(plus(1).to_bytes())
    wide = replace(key, features="x86-64-v4")
    cache.share(wide, data, replace(CompileReply.decode(data), level="x86-64-v4"))
    assert machine().fetch_shared(replace(key, features="x86-64-v2")) == []


@pytest.mark.parametrize("secret", [None, "short"])
def test_without_a_secret_nothing_is_shared(folder: Path, secret: str | None, monkeypatch) -> None:
    key = share(1)
    monkeypatch.setattr(config, "shared_cache_secret", secret)
    cache = machine()
    with pytest.warns(RuntimeWarning, match="SECRET needs at least 16 bytes"):
        assert not cache.fetch(key)
    assert not cache.fetch(key)  # said once


def test_the_secret_may_be_in_a_file(folder: Path, tmp_path: Path, monkeypatch) -> None:
    key = share(1)
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    monkeypatch.setattr(config, "shared_cache_secret", f"@{file}")
    assert machine().fetch(key)
    file.unlink()
    with pytest.warns(RuntimeWarning, match="its secret cannot be read"):
        assert not machine().fetch(key)


def test_the_secret_is_never_shown(monkeypatch) -> None:
    monkeypatch.setattr(config, "shared_cache_secret", SECRET)
    assert SECRET not in repr(config.shared_cache_secret) + str(vars(config))
    with pytest.raises(ConfigError) as caught:
        config.shared_cache_secret = 12345  # pyright: ignore[reportAttributeAccessIssue]
    assert "12345" not in str(caught.value)


def test_storage_that_hangs_is_left_alone(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(shared_module, "SECONDS", 0.05)
    key, cache, stuck = share(1), machine(), threading.Event()
    system, _ = fsspec.core.url_to_fs(config.shared_cache)
    asked: list[object] = []

    def hangs(*arguments: object, **options: object) -> None:
        asked.append(arguments)
        stuck.wait(600)

    monkeypatch.setattr(type(system), "ls", hangs)
    with pytest.warns(RuntimeWarning, match=r"not used for 30 s: it did not answer within 0.05 s"):
        assert not cache.fetch(key)
    for _ in range(50):
        assert not cache.fetch(key)
    stuck.set()
    assert len(asked) == 1 and counts(cache)["unreachable"] == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///proc/no/such/folder", "Error"),
        ("redis-files://user:hidden@127.0.0.1:1/x", "Error"),
        ("nosuchkind://x", "nosuchkind"),
        ("s3://bucket/kernels", "pip install|s3fs|Error"),
    ],
)
def test_storage_that_cannot_be_used_is_said_once(url: str, said: str, monkeypatch) -> None:
    monkeypatch.setattr(config, "shared_cache_secret", SECRET)
    monkeypatch.setattr(config, "shared_cache", url)
    data = compiled(plus(1).to_bytes())
    cache, key = machine(), key_of(plus(1))
    with pytest.warns(RuntimeWarning, match=said) as caught:
        cache.share(key, data, CompileReply.decode(data))
    with quiet():
        assert not cache.fetch(key)
    assert len(caught) == 1 and "hidden" not in str(caught[0].message)


def test_the_pause_grows_and_ends(folder: Path, monkeypatch) -> None:
    level = SharedLevel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seconds in (30, 60, 120, 240, 480, 600, 600):
            before = time.monotonic()
            level._give_up("unreachable", "a test")
            assert before + seconds <= level._paused_until <= time.monotonic() + seconds
            assert not level.is_on
    level._paused_until = 0.0
    assert level.is_on and level._within(lambda: 1) == 1
    assert level._pause == 30


def test_without_a_url_nothing_is_imported() -> None:
    assert config.shared_cache is None
    cache = machine()
    assert cache.fetch_shared(key_of(plus(1))) == [] and "shared" not in cache.statistics()


def test_a_folder_is_written_to_by_renaming(folder: Path, monkeypatch) -> None:
    seen: list[bool] = []

    def replace_(old: str, new: str) -> None:
        if str(new).endswith(".jdk"):  # not what is noted of the compiler on the way
            seen.append(Path(old).parent == Path(new).parent and not Path(new).exists())
        real(old, new)

    real = os.replace
    monkeypatch.setattr(os, "replace", replace_)
    share(1)
    assert seen == [True] and len(list(folder.rglob("*.new-*"))) == 0


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_is_asked_for_while_storage_is_looked_at_is_compiled(
    folder: Path, is_slow: bool, monkeypatch
) -> None:
    """Whether the look is still to come or is being taken."""
    data, asked = compiled(plus(1).to_bytes()), []
    cache = machine()
    looked, go_on = threading.Event(), threading.Event()

    def look(wanted: CacheKey, *, general: bool) -> list[object]:
        looked.set()
        go_on.wait(5)
        return []

    monkeypatch.setattr(cache.shared, "find", look)
    service = CompileService(cache, lambda request: asked.append(request) or data)
    vm = VM(plus(1), Policy(threshold=2), service=service)
    x = np.ones(8, np.float32)
    vm.run("main", x)
    if is_slow:
        looked.wait()
    vm.run("main", x)
    go_on.set()
    vm.wait()
    assert len(asked) == 1 and vm.run("main", x)[0].tolist() == [2.0] * 8
    assert vm.functions["main"].profile.counted == 1
