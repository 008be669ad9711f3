"""The ways in, compiled: the same bits as interpreted, for sizes and scalars that the code was not made
for, and no further compiles for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends.lazy import LazyRecorder, clear_blocks
from jitdialects.frontends.recorder import lazy_recorder
from jitdialects.frontends.structure import flatten

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def newton(a):
    def cond(state):
        x, steps = state
        return (jnp.max(jnp.abs(x * x - a)) > 1e-3) & (steps < 50)

    def body(state):
        x, steps = state
        return 0.5 * (x + a / x), steps + 1

    return jd.while_loop(cond, body, (jnp.ones_like(a), 0))


def nested(n):
    def row(state):
        i, total = state
        _, total = jd.while_loop(
            lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + s[0] * i), (0, total)
        )
        return i + 1, total

    return jd.while_loop(lambda s: s[0] < n, row, (0, 0))[1]


def fibonacci(n):
    return jd.while_loop(lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), (0, 1, 0))


def shapes(x):
    rows, columns = x.shape
    grid = jnp.broadcast_to(jnp.zeros(()), (columns, rows))
    return (
        x.sum() / rows.astype("float32"),
        x.reshape(rows * columns)[: rows + 1],
        grid,
        x[rows - 1],
    )


def mlp(x, layers):
    (w, b), (w2, b2) = layers
    return jnp.softmax(jnp.relu(x @ w + b) @ w2 + b2)


def gelu(x, a, b):
    y = x * a + b
    return 0.5 * y * (1 + jnp.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


LAYERS = ((floats(20, 16), floats(16)), (floats(16, 5), floats(5)))
CASES: dict[str, tuple[Callable[..., object], list[tuple[object, ...]]]] = {
    "bounds": (
        lambda x, lo, hi: x[lo:hi] * 2 + lo,
        [(floats(50), i, i + 5 + i % 3) for i in range(4)],
    ),
    "index": (lambda x, i: (x[i], x[-i]), [(floats(5, 4), i) for i in range(4)]),
    "store": (lambda x, i, v: x.at[i, 1:].set(v), [(floats(5, 4), i, 2.0 * i) for i in range(3)]),
    "newton": (newton, [(abs(floats(n)),) for n in (3, 5, 9)]),
    "nested loops": (nested, [(n,) for n in (3, 4, 7)]),
    "fibonacci": (fibonacci, [(n,) for n in (5, 6, 9)]),
    "shapes": (shapes, [(floats(*s),) for s in ((3, 4), (5, 6), (7, 3))]),
    "integers": (lambda x: ((x << 2) >> 1) * 3 - x.max(), [(np.arange(n),) for n in (5, 6, 9)]),
    "bool": (
        lambda x, y: jnp.where((x > 0) & ~(y > 0) | (x == y), x.astype("int64"), 1),
        [(floats(n), floats(n)) for n in (5, 6, 9)],
    ),
    "strided": (lambda x: x * 2 + 1, [(floats(n, 8)[::-1, ::-2],) for n in (5, 6, 9)]),
    "zero sizes": (lambda x: (x * 2).sum(axis=-1), [(floats(n, 3),) for n in (2, 0, 5)]),
    "scalars": (lambda x, s, k: (x * s, s * 2 + k, x), [(floats(3), 1.5, k) for k in (1, 2)]),
    "gelu": (gelu, [tuple(floats(n) for _ in range(3)) for n in (31, 64, 70)]),
    "mlp": (mlp, [(floats(n, 20), LAYERS) for n in (1, 4, 7)]),
}


def leaves(tree: object) -> list[np.ndarray]:
    out: list[object] = []
    flatten(tree, out)
    return [np.asarray(x) for x in out]


def served(vm: jd.VM) -> int:
    return vm.functions["main"].profile.served


@pytest.mark.parametrize("name", CASES)
def test_compiled_is_interpreted(name: str) -> None:
    function, calls = CASES[name]
    jitted = jd.jit(function)
    want = [leaves(jitted(*arguments)) for arguments in calls]
    for _ in range(12):
        for arguments in calls:
            jitted(*arguments)
        jitted.wait()
    (vm,) = jitted.machines()
    before = served(vm)
    for arguments, expected in zip(calls, want, strict=True):
        for got, value in zip(leaves(jitted(*arguments)), expected, strict=True):
            assert (got.dtype, got.shape) == (value.dtype, value.shape)
            assert got.tobytes() == value.tobytes()
    assert served(vm) - before == len(calls), jd.explain(jitted)


def only_machine() -> jd.VM:
    recorder = lazy_recorder()
    assert isinstance(recorder, LazyRecorder)
    (compiled,) = recorder._kept.values()
    return compiled.vm


def test_a_lazy_block_in_a_loop_is_compiled_once() -> None:
    jd.sync()
    clear_blocks()
    x = jnp.asarray(floats(40))
    results = []
    for i in range(25):
        results.append((x * float(i) + i).at[3].set(-1.0))
        jd.sync()
        if i == 15:
            jd.wait()
    assert served(only_machine()) >= 9
    for i, result in enumerate(results):
        want = np.asarray(x) * np.float32(i) + np.float32(i)
        want[3] = -1
        assert np.asarray(result).tobytes() == want.tobytes()


def test_every_stage_has_a_text() -> None:
    f = jd.jit(lambda x, w: jnp.maximum(x @ w, 0))
    x, w = floats(3, 4), floats(4, 5)
    marks = {
        "bytecode": "matmul %0, %1",
        "vm": "vm.func",
        "tssa": "tensor<3x4xf32>",
        "loop": "loop.nest",
        "scf": "scf.for",
        "llvm": "llvm.func",
        "llvm-ir": "define",
        "asm": ".globl",
    }
    for stage, mark in marks.items():
        assert mark in f.lower(x, w, stage=stage), stage
    symbolic = jd.jit(f.__wrapped__, shapes="symbolic")
    assert "tensor<?x?xf32" in symbolic.lower(x, w, stage="tssa")
    with pytest.raises(jd.ArgumentError, match="unknown stage 'ptx'; use one of bytecode, vm"):
        f.lower(x, w, stage="ptx")


def test_shapes_option_reaches_the_policy() -> None:
    f = jd.jit(lambda x: x * 2, shapes="symbolic")
    for _ in range(11):
        f(floats(4))
    f.wait()
    f(floats(4))
    assert "f32[n0]" in jd.explain(f)


def test_clear_cache_forgets_code_and_work_goes_on() -> None:
    f = jd.jit(lambda x: x * 2 + 1)
    x = floats(5)
    for _ in range(11):
        f(x)
    f.wait()
    f(x)
    (vm,) = f.machines()
    assert served(vm)
    jd.clear_cache()
    assert f(x).tobytes() == (x * 2 + 1).tobytes()
    f.wait()
    before = served(vm)
    f(x)
    assert served(vm) == before + 1
