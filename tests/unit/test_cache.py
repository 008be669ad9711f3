"""The kernel cache: keys, versions, and what it says about misses."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Location, Program
from jitdialects.config import FEATURE_LEVELS, config
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.identity import feature_level, fingerprint
from jitdialects.runtime.messages import CompileReply, TensorFact
from jitdialects.testing.fake_compiler import FakeEngine, FakeLibrary

REPLY = CompileReply(b"4096", None, "jd_entry", results=(TensorFact(FLOAT32, (4,)),))
KEY = CacheKey("abc", "main(f32[64,n], f32[n]:strided)", "x86-64-v3", "1")


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

    class Engine(FakeEngine):
        def load(self, data: bytes, name: str) -> FakeLibrary:
            libraries.append(super().load(data, name))
            return libraries[-1]

    cache = KernelCache(Engine())
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
