"""The kernel cache: keys, versions, and what it says about misses."""

import gc
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Location, Program
from jitdialects.config import FEATURE_LEVELS, config
from jitdialects.runtime.cache import CacheEntry, CacheKey, KernelCache
from jitdialects.runtime.cache.process import OVERHEAD
from jitdialects.runtime.engines import LibraryFile
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.identity import constant_order, feature_level, fingerprint
from jitdialects.runtime.messages import CompileReply, TensorFact
from jitdialects.testing.fake_compiler import FakeEngine, FakeLibrary

REPLY = CompileReply(b"4096", None, "jd_entry", results=(TensorFact(FLOAT32, (4,)),))
KEY = CacheKey("abc", "main(f32[64,n], f32[n]:strided)", "x86-64-v3", "1")


class RecordingEngine(FakeEngine):
    """Remembers the libraries that it loads."""

    def __init__(self, libraries: list[FakeLibrary]) -> None:
        self.libraries = libraries

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> FakeLibrary:
        self.libraries.append(super().load(data, name, file))
        return self.libraries[-1]


def test_an_entry_is_found_by_its_key_only() -> None:
    cache = KernelCache(FakeEngine())
    entry = cache.store(KEY, REPLY)
    assert cache.find(KEY) is entry
    for other in (
        replace(KEY, fingerprint="abd"),
        replace(KEY, signature="main(f32[65,n], f32[n]:strided)"),
        replace(KEY, features="x86-64-v4"),
        replace(KEY, numerics="fast"),
        replace(KEY, compiler="2"),
        replace(KEY, fuse=False),
    ):
        assert cache.find(other) is None


def test_versions_rise_with_every_change() -> None:
    cache = KernelCache(FakeEngine())
    assert cache.store(KEY, REPLY).version == cache.version == 1
    assert cache.store(KEY, REPLY).version == 1  # the entry that is there wins
    assert cache.store(replace(KEY, compiler="2"), REPLY).version == 2
    cache.clear()
    assert (cache.version, len(cache)) == (3, 0)


def test_code_is_unloaded_when_nothing_uses_it() -> None:
    libraries: list[FakeLibrary] = []

    cache = KernelCache(RecordingEngine(libraries))
    kernel = cache.store(KEY, REPLY).kernel
    cache.clear()
    gc.collect()
    assert not libraries[0].closed
    del kernel
    gc.collect()
    assert libraries[0].closed


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"signature": "main(f32[65,8], f32[8]:strided)"}, "dim 0 of argument 0: 65, entry has 64"),
        (
            {"signature": "main(f32[64,8], f32[9]:strided)"},
            "dim 0 of argument 1: 9, entry has n = 8",
        ),
        ({"signature": "main(i64[64,8], f32[8]:strided)"}, "dtype of argument 0: int64, entry has"),
        ({"signature": "main(f32[64], f32[8]:strided)"}, "rank of argument 0: 1, entry has 2"),
        ({"signature": "main(f32[64,8], f32[8])"}, "layout of argument 1: contiguous, entry has"),
        ({"signature": "main(f32[64,8])"}, "1 argument\\(s\\), entry has 2"),
        ({"signature": "main(f32[64,8], f32[8]:strided)"}, "fits"),
        (
            {"signature": "main(f32[64,8], f32[8]:strided)", "features": "x86-64-v4"},
            "features: x86-64-v4, entry has x86-64-v3",
        ),
        ({"fingerprint": "xyz"}, "no entry for this bytecode"),
    ],
)
def test_explain_names_what_differs(change: dict[str, str], difference: str) -> None:
    cache = KernelCache(FakeEngine())
    cache.store(KEY, REPLY)
    with np.testing.assert_no_warnings():
        text = cache.explain(replace(KEY, **change))
    assert __import__("re").search(difference, text), text


SIZE = OVERHEAD + 4096


def test_code_beyond_the_cap_is_unloaded_least_recently_called_first() -> None:
    """Case 118: a cap in bytes, not in entries."""
    libraries: list[FakeLibrary] = []
    cache = KernelCache(RecordingEngine(libraries), code_cap=8 * SIZE)
    keys = [replace(KEY, fingerprint=f"{number}") for number in range(9)]
    for key in keys[:8]:
        cache.store(key, REPLY)
    assert (cache.evictions, cache.bytes) == (0, 8 * SIZE)
    first, last = cache.find(keys[0]), keys[8]
    assert first is not None
    first.hits += 1
    version = cache.version
    cache.store(last, REPLY)
    assert cache.version > version
    assert cache.evictions == 2 and cache.bytes == 7 * SIZE
    assert [k for k in keys if cache.find(k) is None] == keys[1:3]
    assert [each.closed for each in libraries] == [False, True, True] + [False] * 6


def test_code_that_is_larger_than_the_cap_may_stay_alone() -> None:
    cache = KernelCache(FakeEngine(), code_cap=1)
    for number in range(3):
        key = replace(KEY, fingerprint=f"{number}")
        cache.store(key, REPLY)
        assert cache.find(key) is not None and len(cache) == 1


def test_evicted_code_runs_to_its_end() -> None:
    libraries: list[FakeLibrary] = []
    cache = KernelCache(RecordingEngine(libraries), code_cap=1)
    in_use = cache.store(KEY, REPLY).kernel
    cache.store(replace(KEY, compiler="2"), REPLY)
    assert cache.find(KEY) is None and not libraries[0].closed
    assert in_use is not None
    del in_use
    assert libraries[0].closed


def test_users_are_told_what_went() -> None:
    told: list[set[CacheKey]] = []

    class User:
        def forget_code(self, gone: Collection[CacheEntry]) -> None:
            told.append({entry.key for entry in gone})

    cache, user = KernelCache(FakeEngine(), code_cap=1), User()
    cache.users.add(user)
    cache.store(KEY, REPLY)
    cache.store(replace(KEY, compiler="2"), REPLY)
    cache.clear()
    assert told == [{KEY}, {replace(KEY, compiler="2")}] and cache.bytes == 0


def test_memory_stays_flat_over_many_kernels(tmp_path: Path) -> None:
    """Cases 118 and 119, in small; `benchmarks/runtime/cache.py` has 10,000."""
    from cache_helpers import compiled, plus

    reply = CompileReply.decode(compiled(plus().to_bytes()))
    cache = KernelCache(DlopenEngine(tmp_path), code_cap=20 * (len(reply.library) + OVERHEAD))

    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    for number in range(200):
        key = replace(KEY, fingerprint=f"{number}", signature="main(f32[8])")
        library = reply.library + number.to_bytes(4, "little")  # what follows is not looked at
        cache.store(key, replace(reply, library=library))
        if number == 40:
            after_warm_up = mapped()
    assert len(cache) <= 21 and mapped() <= after_warm_up * 1.3
    cache.clear()
    gc.collect()
    assert mapped() == 0


def test_statistics_are_plain_data() -> None:
    cache = KernelCache(FakeEngine())
    cache.store(KEY, REPLY)
    found = cache.statistics()
    assert json.loads(json.dumps(found)) == found and found["entries"] == 1


def doubled(line: int, factor: float, name: str = "main", unrelated: bool = False) -> Program:
    builder = ProgramBuilder()
    if unrelated:
        builder.constant([1, 2, 3])
        other = builder.function("other", 1)
        other.returns(*other.parameters)
    main = builder.function(name, 1)
    main.location = Location("f.py", line)
    main.returns(main.apply("multiply", main.parameters[0], main.constant(factor)))
    return builder.finish()


def test_fingerprints_depend_on_code_and_constants_not_on_where_they_stand() -> None:
    first = fingerprint(doubled(1, 2.0), "main")
    assert fingerprint(doubled(9, 2.0), "main") == first
    assert fingerprint(doubled(1, 2.0, unrelated=True), "main") == first
    assert fingerprint(doubled(1, 3.0), "main") != first
    assert fingerprint(doubled(1, -0.0), "main") != fingerprint(doubled(1, 0.0), "main")


def test_constants_have_an_order_that_follows_from_the_code() -> None:
    program = doubled(1, 2.0, unrelated=True)
    assert [float(program.constants[n].value) for n in constant_order(program, "main")] == [2.0]
    assert constant_order(doubled(1, 2.0), "main") == (0,) != constant_order(program, "main")


def test_fingerprints_depend_on_callees() -> None:
    def calling(operator: str) -> Program:
        builder = ProgramBuilder()
        main = builder.function("main", 1)
        main.returns(*main.call("inner", *main.parameters))
        inner = builder.function("inner", 1)
        inner.returns(inner.apply(operator, *inner.parameters))
        return builder.finish()

    assert fingerprint(calling("abs"), "main") != fingerprint(calling("negative"), "main")


def test_the_feature_level_is_capped_by_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "features", None)
    host = feature_level()
    for level in FEATURE_LEVELS:
        monkeypatch.setattr(config, "features", level)
        assert feature_level() == min(host, level)  # never more than this CPU has
