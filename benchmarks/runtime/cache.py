"""The kernel cache: warm starts, reloads, memory under a cap, killed writers, hostile entries.

Everything happens in folders of its own. Warm starts are fresh processes; a "first call" is the whole first call
of a jitted function, capture included, after `import jitdialects` and its `numpy` and `jit`.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.runtime.row import Row
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.config import config
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.cache.disk import DiskLevel
from jitdialects.runtime.cache.entry_file import encode
from jitdialects.runtime.identity import compiler_version, feature_level, fingerprint
from jitdialects.runtime.messages import CompileReply, CompileRequest, without_library
from jitdialects.runtime.pool import default_pool

FRESH = 10
"""Processes for the median of warm starts."""
KERNELS, CODE_CAP = 10_000, 64 << 20
KILLS, HOSTILE = 100, 10_000
SIGNATURE = "main(f32[8])"

WARM = """
import time
import numpy as np
import jitdialects as jd, jitdialects.numpy as jnp
from jitdialects import jit
x, y = np.ones({shape}, np.float32), np.ones({shape}, np.float32)
def formula(x, y): return {formula}
started, cpu = time.perf_counter(), time.thread_time()
f = jit(formula)
f(x, y)
seconds, cpu = time.perf_counter() - started, time.thread_time() - cpu
stats = jd.stats()
print(seconds * 1e3, stats["compiles"], stats["cache_hits"], cpu * 1e3)
"""
MAKE = (
    WARM
    + """
import sys
if not stats["cache_hits"]:
    jd.config.threshold = 1
    for _ in range(3): f(x, y)
    f.wait()
"""
)
WRITER = """
import sys
from pathlib import Path
from benchmarks.runtime import cache as here
from jitdialects.config import config
config.cache_dir, config.disk_cap = Path(sys.argv[1]), 1 << 30
data = {n: Path(sys.argv[1] + str(n)).read_bytes() for n in range(3)}
print("ready", flush=True)
while True:
    for n, reply in data.items():
        here.keep(here.fresh(), here.plus(n), reply)
"""


def plus(number: float) -> Program:
    """x + number."""
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("add", main.parameters[0], main.constant(np.float32(number))))
    return builder.finish()


def compiled(program: Program) -> bytes:
    """What the compiler answers."""
    from jitdialects.runtime.compiler import compile_request

    request = CompileRequest(program.to_bytes(), "main", SIGNATURE, feature_level())
    return compile_request(request.encode())


def key_of(program: Program) -> CacheKey:
    """What a machine asks for."""
    return CacheKey(fingerprint(program, "main"), SIGNATURE, feature_level(), compiler_version())


def fresh() -> KernelCache:
    """As a process that has just begun has it."""
    return KernelCache(disk=DiskLevel())


def keep(cache: KernelCache, program: Program, data: bytes) -> CacheKey:
    """Store what the compiler answered."""
    key = key_of(program)
    cache.keep(key, data, CompileReply.decode(data), program.constants)
    return key


def gives(cache: KernelCache, key: CacheKey) -> list[float]:
    """What the code makes of ones."""
    entry = cache.find(key)
    assert entry is not None and entry.kernel is not None
    results = entry.kernel.invoke([np.ones(8, np.float32)], default_pool)
    assert results is not None
    return results[0].tolist()


def resident() -> float:
    """Megabytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def run(script: str, folder: Path) -> list[float]:
    """The numbers that a fresh process prints."""
    environment = os.environ | {
        "JITDIALECTS_CACHE_DIR": str(folder),
        "JITDIALECTS_DISK_CAP": "1GiB",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def warm_starts(folder: Path) -> list[Row]:
    """Fresh processes whose code is on disk."""
    rows: list[Row] = []
    for name, shape, formula in (
        ("x*y+x, 8 elements", "8", "x * y + x"),
        ("tanh(x @ y), 64x64", "(64, 64)", "jnp.tanh(x @ y)"),
    ):
        run(MAKE.format(shape=shape, formula=formula), folder)
        script = WARM.format(shape=shape, formula=formula)
        found = [run(script, folder) for _ in range(FRESH)]
        compiles, hits = sum(f[1] for f in found), sum(f[2] for f in found)
        assert hits == FRESH, "a first call was not served by compiled code"
        times = [f[0] for f in found]
        cpu = statistics.median(f[3] for f in found)
        note = (
            f"median of {FRESH} processes, {min(times):.2f} to {max(times):.2f} ms, of which the CPU worked "
            f"{cpu:.2f} (the rest is other processes); capture included"
        )
        rows.append(
            Row(
                f"first compiled call, warm disk: {name}",
                statistics.median(times),
                "ms",
                "<= 5",
                note,
            )
        )
        rows.append(Row("compiles in these processes", compiles, "", "0"))
    return rows


def reload(folder: Path) -> list[Row]:
    """From disk to callable, in a process that runs."""
    program = plus(1)
    key = keep(fresh(), program, compiled(program))
    seconds: list[float] = []
    for _ in range(200):
        cache = fresh()
        started = time.perf_counter()
        assert cache.recall(key)
        seconds.append(time.perf_counter() - started)
    note = "read, verified, loaded, its call path generated; median of 200"
    return [
        Row("reload of a kernel from disk", statistics.median(seconds) * 1e3, "ms", "<= 2", note)
    ]


def memory() -> list[Row]:
    """Distinct kernels, one after the other, each called once."""
    program = plus(1)
    data = compiled(program)
    reply = CompileReply.decode(data)
    cache = KernelCache(code_cap=CODE_CAP)
    x = [np.ones(8, np.float32)]
    warm_up, measured, entries = KERNELS // 2, [0.0], 0
    for number in range(KERNELS):
        key = replace(key_of(program), fingerprint=f"{number:032x}")
        library = reply.library + number.to_bytes(8, "little")
        entry = cache.store(key, replace(reply, library=library), program.constants)
        assert entry.kernel is not None and entry.kernel.invoke(x, default_pool) is not None
        entries = max(entries, len(cache))
        if number == warm_up or (number > warm_up and number % 500 == 0):
            measured.append(resident())
    after, most = measured[1], max(measured)
    maps = Path("/proc/self/maps").read_text().count("jitdialects-")
    cache.clear()
    left = resident()
    note = (
        f"{after:.0f} MB after {warm_up}, at most {most:.0f} MB; up to {entries} loaded at once, {maps} maps; one "
        "template under as many names and digests: each is a file, a library and a kernel of its own"
    )
    return [
        Row(
            f"growth over {KERNELS} kernels, cap {CODE_CAP >> 20} MiB",
            100 * (most / after - 1),
            "%",
            "<= 10",
            note,
        ),
        Row("resident when the cache is cleared", left, "MB", "", f"from {most:.0f} MB"),
    ]


def kills(folder: Path) -> list[Row]:
    """Writers that are killed at any time."""
    programs = {n: plus(n) for n in range(3)}
    for n, program in programs.items():
        Path(f"{folder}{n}").write_bytes(compiled(program))
    bad = loads = 0
    choose = random.Random(0)
    writers: list[subprocess.Popen[str]] = []
    for _ in range(KILLS):
        while len(writers) < 2:  # the next one starts while this one writes
            command = [sys.executable, "-c", WRITER, str(folder)]
            writers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        process = writers.pop(0)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(choose.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for n, program in programs.items():
            cache, key = fresh(), key_of(program)
            if cache.recall(key):
                loads += 1
                bad += gives(cache, key) != [1.0 + n] * 8
            bad += len(set(cache.disk.events.counts) - {"hits", "misses"}) if cache.disk else 0
    for process in writers:
        process.kill()
        process.wait()
    return [Row(f"bad loads after {KILLS} SIGKILLs of writers", bad, "", "0", f"of {loads} loads")]


def hostile(folder: Path) -> list[Row]:
    """Entries that are truncated, damaged or forged."""
    program, other = plus(1), plus(2)
    data = compiled(program)
    key = keep(fresh(), program, data)
    path = folder / "kernels" / key.folder / key.file_name
    whole, reply = path.read_bytes(), CompileReply.decode(data)
    frame = without_library(data, int)
    choose, accepted, errors = random.Random(1), 0, 0
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(HOSTILE):
            kind = number % 4
            if kind == 0:
                bad = whole[: choose.randrange(len(whole))]
            elif kind == 1:
                at = choose.randrange(
                    len(whole) - 32
                )  # the last 32 are a signature, of shared ones
                bad = whole[:at] + bytes([whole[at] ^ choose.randrange(1, 256)]) + whole[at + 1 :]
            elif kind == 2:  # whole, but of another program
                bad = encode(key_of(other), key.features, frame, reply.library)
            else:
                bad = choose.randbytes(choose.randrange(1, 20_000))
            path.write_bytes(bad)
            path.chmod(0o600)
            try:
                accepted += len(fresh().recall(key))
            except Exception:  # noqa: BLE001 (errors are what is counted)
                errors += 1
    note = (
        f"a quarter each: cut off, one byte changed, of another program, noise; {errors} exceptions; "
        + (f"{(time.perf_counter() - started) / HOSTILE * 1e6:.0f} us each")
    )
    return [Row(f"accepted of {HOSTILE} hostile entries", accepted + errors, "", "0", note)]


def measure() -> list[Row]:
    """The rows of this topic."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        config.cache_dir, config.disk_cap = Path(name) / "cache", 1 << 30
        rows += warm_starts(config.cache_dir)
        for part in (reload, kills, hostile):
            folder = Path(name) / part.__name__
            config.cache_dir = folder
            rows += part(folder)
    return rows + memory()
