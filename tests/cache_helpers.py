"""What the tests of the kernel cache share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.config import config
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.cache.disk import DiskLevel
from jitdialects.runtime.identity import compiler_version, feature_level, fingerprint
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.pool import default_pool


def plus(number: float = 1.0) -> Program:
    """x + number."""
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("add", main.parameters[0], main.constant(np.float32(number))))
    return builder.finish()


def key_of(program: Program, signature: str = "main(f32[8])") -> CacheKey:
    """What a machine asks for."""
    return CacheKey(fingerprint(program, "main"), signature, feature_level(), compiler_version())


@cache
def compiled(program: bytes, signature: str = "main(f32[8])") -> bytes:
    """What the compiler answers."""
    from jitdialects.runtime.compiler import compile_request

    return compile_request(CompileRequest(program, "main", signature, feature_level()).encode())


def keep(cache: KernelCache, program: Program, signature: str = "main(f32[8])") -> CacheKey:
    """Compile and store."""
    key, data = key_of(program, signature), compiled(program.to_bytes(), signature)
    cache.keep(key, data, CompileReply.decode(data), program.constants)
    return key


def call(cache: KernelCache, key: CacheKey, size: int = 8) -> list[float]:
    """What the code makes of ones."""
    entry = cache.find(key)
    assert entry is not None and entry.kernel is not None
    results = entry.kernel.invoke([np.ones(size, np.float32)], default_pool)
    assert results is not None
    return results[0].tolist()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for one test, the disk level on."""
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    monkeypatch.setattr(config, "disk_cap", 1 << 30)
    return tmp_path / "cache"


def fresh() -> KernelCache:
    """As a process that has just begun has it."""
    return KernelCache(disk=DiskLevel())


def files(folder: Path) -> list[Path]:
    """The entries on disk."""
    return sorted(folder.rglob("*.jdk"))
