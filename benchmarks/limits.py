"""The limits of this machine: FMA peak, and bandwidths of reading, copying and streaming copies.

    python -m benchmarks.limits 1 0            # one core: the first; two: both

The kernels are LLVM text, made for this CPU: a loop whose registers only multiply and add, and loops that
only load, load and store, or load and store past the caches. Prints JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

LINES = 8
"""Vectors in flight in a memory loop."""
SIZES = {"L1": 16 << 10, "L2": 256 << 10, "L3": 8 << 20, "memory": 128 << 20}
"""Bytes of the working set that is read, by the level that serves it."""
PATIENCE = 0.4
"""Seconds for which the best time of a loop is looked for."""
FEWEST = 5
"""Tries at least."""


def _width(features: str) -> int:
    return 16 if "+avx512f" in features else 8


def _peak_text(width: int, count: int, element: str) -> str:
    """`count` independent chains x = x * a + b, in registers."""
    vector = f"<{width} x {element}>"
    chains = range(count)
    phis = [f"  %x{i} = phi {vector} [ %s{i}, %entry ], [ %y{i}, %loop ]" for i in chains]
    starts = [
        f"  %s{i} = insertelement {vector} zeroinitializer, {element} {i}.0, i32 0" for i in chains
    ]
    steps = [
        f"  %y{i} = call {vector} @llvm.fma({vector} %x{i}, {vector} %a, {vector} %b)"
        for i in chains
    ]
    total, sums = "%y0", []
    for i in range(1, count):
        sums.append(f"  %t{i} = fadd {vector} {total}, %y{i}")
        total = f"%t{i}"
    # the factors are loaded: known ones would let the loop be computed away
    lines = [
        f"define void @peak(ptr %p, i64 %n) {{\nentry:\n  %a = load {vector}, ptr %p, align 4",
        f"  %b = fneg {vector} %a",
        *starts,
        "  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %j, %loop ]",
        *phis,
        *steps,
        "  %j = add i64 %i, 1\n  %more = icmp ult i64 %j, %n",
        "  br i1 %more, label %loop, label %done\ndone:",
        *sums,
        f"  store {vector} {total}, ptr %p, align 4\n  ret void\n}}",
        f"declare {vector} @llvm.fma({vector}, {vector}, {vector})",
    ]
    text = "\n".join(lines)
    return text.replace("@llvm.fma", f"@llvm.fma.v{width}{'f32' if element == 'float' else 'f64'}")


def _memory_text(width: int, kind: str) -> str:
    """`n` times `LINES` vectors: read ("read"), copied ("copy"), copied past the caches ("stream"). Reading
    begins anew after `mask + 1` bytes, a power of two."""
    vector = f"<{width} x float>"
    size = width * 4
    hint = ", !nontemporal !0" if kind == "stream" else ""
    lines = [
        f"define void @{kind}(ptr %p, ptr %q, i64 %n, i64 %mask) {{\nentry:\n  br label %loop\nloop:",
        "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]",
    ]
    for i in range(LINES):
        lines.append(f"  %x{i} = phi {vector} [ zeroinitializer, %entry ], [ %y{i}, %loop ]")
    lines.append(f"  %d = mul i64 %i, {LINES * size}\n  %o = and i64 %d, %mask")
    for i in range(LINES):
        lines.append(
            f"  %o{i} = add i64 %o, {i * size}\n  %p{i} = getelementptr i8, ptr %p, i64 %o{i}"
        )
        lines.append(f"  %v{i} = load {vector}, ptr %p{i}, align {size}")
    for i in range(LINES):
        if kind == "read":
            lines.append(f"  %y{i} = fadd {vector} %x{i}, %v{i}")
        else:
            lines.append(f"  %q{i} = getelementptr i8, ptr %q, i64 %o{i}")
            lines.append(f"  store {vector} %v{i}, ptr %q{i}, align {size}{hint}")
            lines.append(f"  %y{i} = fneg {vector} %x{i}")
    lines.append("  %j = add i64 %i, 1\n  %more = icmp ult i64 %j, %n")
    lines.append("  br i1 %more, label %loop, label %done\ndone:")
    if kind == "read":
        total = "%y0"
        for i in range(1, LINES):
            lines.append(f"  %t{i} = fadd {vector} {total}, %y{i}")
            total = f"%t{i}"
        lines.append(f"  store {vector} {total}, ptr %q, align 4")
    lines.append("  ret void\n}")
    return "\n".join(lines)


class Kernels:
    """The loops as functions of this process."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features().flatten()
        self.width = _width(features)
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=2
        )
        self.registers = 24 if self.width == 16 else 12
        texts = [_memory_text(self.width, kind) for kind in ("read", "copy", "stream")]
        texts.append(_peak_text(self.width, self.registers, "float"))
        double = _peak_text(self.width // 2, self.registers, "double")
        texts.append(double.replace("@peak", "@peak64"))
        module = llvm.parse_assembly("\n".join([*texts, "!0 = !{i32 1}"]))
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def function(self, name: str, arguments: int) -> Callable[..., None]:
        """The loop `name`, of `arguments` pointers and numbers."""
        address = self._engine.get_function_address(name)
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(address)


def _best(call: Callable[[], float], patience: float) -> float:
    """The least of some times: a limit is what is possible."""
    ends = time.perf_counter() + patience
    times: list[float] = []
    while len(times) < FEWEST or time.perf_counter() < ends:
        times.append(call())
    return min(times)


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    whole = np.zeros(size + 4096, np.uint8)
    start = -whole.ctypes.data % 4096
    return whole[start : start + size]


def _on_cores(cpus: list[int], call: Callable[[int], object]) -> float:
    """Seconds of `call(k)` on each core `cpus[k]` at once, from the first start to the last end."""
    barrier, spans = threading.Barrier(len(cpus)), list[tuple[float, float]]()

    def work(k: int) -> None:
        os.sched_setaffinity(0, {cpus[k]})
        barrier.wait()
        started = time.perf_counter()
        call(k)
        spans.append((started, time.perf_counter()))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(len(cpus))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


class Limits:
    """Measures; `tiny` only shows that it runs."""

    def __init__(self, cpus: list[int], tiny: bool) -> None:
        self.cpus = cpus
        self.kernels = Kernels()
        self.patience = 0.0 if tiny else PATIENCE
        self.size = (1 << 20) if tiny else SIZES["memory"]
        self.steps = 1000 if tiny else 200_000
        self.source, self.target, self.scratch = map(_aligned, (self.size, self.size, 4096))
        self.source[:], self.target[:] = 0, 0  # so that every page is there
        os.sched_setaffinity(0, {cpus[0]})

    def peaks(self) -> dict[str, float]:
        """GFLOP/s of multiply-adds in registers."""
        return self._peak("peak", "FMA f32", 1) | self._peak("peak64", "FMA f64", 2)

    def _peak(self, name: str, label: str, lanes: int) -> dict[str, float]:
        loop, at = self.kernels.function(name, 2), self.scratch.ctypes.data
        flops = 2.0 * self.kernels.registers * self.kernels.width // lanes * self.steps / 1e9

        def on_core(k: int) -> None:
            loop(at + k * 512, self.steps)

        return self._rates(label, "GFLOP/s", flops, partial(on_core, 0), on_core)

    def reads(self) -> dict[str, float]:
        """GB/s of loads, by the level that serves them."""
        found: dict[str, float] = {}
        read = self.kernels.function("read", 4)
        at, into = self.source.ctypes.data, self.scratch.ctypes.data
        for level, size in SIZES.items():
            used = min(size, self.size)
            total = used * max(1, self.size // 8 // used)
            passes = partial(read, at, into, self._count(total), used - 1)
            passes()
            found[f"read {level}, GB/s"] = (
                total / 1e9 / _best(partial(_timed, passes), self.patience)
            )
        return found

    def copies(self) -> dict[str, float]:
        """GB/s of copies, read and written bytes counted."""
        return self._copy("copy", "copy") | self._copy("stream", "streaming copy")

    def _copy(self, kind: str, label: str) -> dict[str, float]:
        at, to, half = self.source.ctypes.data, self.target.ctypes.data, self.size // 2
        loop = self.kernels.function(kind, 4)
        once = partial(loop, at, to, self._count(self.size), -1)

        def on_core(k: int) -> None:  # its half
            loop(at + k * half, to + k * half, self._count(half), -1)

        moved = 2 * self.size / 1e9
        return self._rates(label, "GB/s", moved, once, on_core, together=moved)

    def _rates(
        self,
        label: str,
        unit: str,
        work: float,
        once: Callable[[], object],
        on_core: Callable[[int], object],
        together: float | None = None,
    ) -> dict[str, float]:
        """`work` per second of one core, and of two (that do `together`, or twice the work)."""
        found = {f"{label}, {unit}": work / _best(partial(_timed, once), self.patience)}
        if len(self.cpus) > 1:
            both = _best(partial(_on_cores, self.cpus, on_core), self.patience)
            found[f"{label}, two cores, {unit}"] = (together or 2 * work) / both
        return found

    def _count(self, size: int) -> int:
        return size // (LINES * self.kernels.width * 4)


def main() -> None:
    """Arguments: the cores, and `--tiny`."""
    limits = Limits([int(a) for a in sys.argv[1:] if a != "--tiny"], "--tiny" in sys.argv)
    print(json.dumps(limits.peaks() | limits.reads() | limits.copies()))


if __name__ == "__main__":
    main()
