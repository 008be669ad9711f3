"""Long constants: arguments of compiled code that are laid out when it is loaded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Constant, Program
from jitdialects.runtime.constants import ALIGNMENT, laid_out, packed
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import default_pool

RNG = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def served(vm: jd.VM) -> int:
    return vm.functions["main"].profile.served


def kernel_of(vm: jd.VM) -> Kernel:
    """The one kernel of a machine."""
    found = [vm.service.cache.find(key) for key in vm.functions["main"].keys]
    (entry,) = [entry for entry in found if entry is not None]
    return entry.kernel


def machine_of(jitted: Callable[..., object]) -> jd.VM:
    (vm,) = jitted.machines()
    return vm


def warm_up(call: Callable[[], object], vm: jd.VM | None = None) -> None:
    for _ in range(12):
        call()
    if vm is not None:
        vm.wait()


def times(weights: np.ndarray, operator: str = "multiply") -> Program:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply(operator, main.parameters[0], main.constant(weights)))
    return builder.finish()


# ---- layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0, 3), (15,), (16,), (3, 7), (300, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_constants_begin_at_lines(shape: tuple[int, ...], dtype: str) -> None:
    value = (
        (RNG.standard_normal((2, *shape[::-1])) * 9).astype(dtype)[1].T
    )  # neither aligned nor in C order
    made = Constant.of(value)
    read = Constant.from_bytes(made.dtype, shape, made.to_bytes())
    for constant in (made, read):
        array = constant.value
        assert array.dtype == value.dtype and array.shape == shape and (array == value).all()
        assert array.flags.c_contiguous and not array.flags.writeable
        assert array.nbytes < ALIGNMENT or array.ctypes.data % ALIGNMENT == 0
        assert not np.shares_memory(array, value)


@pytest.mark.parametrize("tile", [1, 4, 16])
@pytest.mark.parametrize("shape", [(3, 16), (5, 17), (1, 3), (7, 32), (0, 5), (5, 0)])
def test_packed_is_panels_of_columns(shape: tuple[int, int], tile: int) -> None:
    matrix = floats(*shape)
    rows, columns = shape
    panels = packed(matrix, tile)
    assert panels.shape == (-(-columns // tile), rows, tile)
    assert panels.flags.c_contiguous
    assert not panels.size or panels.ctypes.data % ALIGNMENT == 0
    for p, k, c in np.ndindex(panels.shape):
        column = p * tile + c
        assert panels[p, k, c] == (matrix[k, column] if column < columns else 0)


def test_one_layout_per_constant_and_tile() -> None:
    matrix = floats(8, 8)
    first = laid_out(matrix, 4)
    assert laid_out(matrix, 4) is first
    assert laid_out(matrix, 8) is not first
    assert laid_out(matrix.copy(), 4) is not first
    assert laid_out(matrix, 0).array is matrix
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


# ---- the same bits -----------------------------------------------------------------------------

W, V, BIAS, COLUMN = floats(20, 80), floats(80, 30), floats(100), floats(70, 1)
NUMBERS, FLAGS = np.arange(90), RNG.random(80) < 0.5
EMPTY, SPLAT = floats(0, 100), np.full((9, 9), 2.5, np.float32)


def many_rows(x):
    return jnp.relu(jnp.matmul(x, W) + BIAS[:80]) @ V


def around_a_loop(x):
    def body(state):
        y, i = state
        return y * 0.5 + BIAS, i + 1

    return jd.while_loop(lambda s: s[1] < 3, body, (x + BIAS, 0))[0]


CASES: dict[str, tuple[Callable[..., object], tuple[int, ...], int]] = {
    # function, shape of the argument, constants that the code takes
    "matmul": (many_rows, (8, 20), 3),
    "one row": (many_rows, (1, 20), 3),
    "elementwise": (lambda x: x * BIAS - BIAS, (100,), 1),
    "broadcast": (lambda x: x + COLUMN, (70, 3), 1),
    "returned": (lambda x: (jnp.asarray(BIAS), x), (3,), 1),
    "returned twice": (lambda x: (jnp.asarray(BIAS), jnp.asarray(BIAS) + x), (100,), 1),
    "reshaped": (lambda x: jnp.asarray(BIAS).reshape(10, 10) + x, (10,), 1),
    "transposed": (lambda x: x @ jnp.asarray(W).T, (3, 80), 1),
    "left operand": (lambda x: jnp.asarray(W) @ x, (80, 5), 1),
    "both ways": (lambda x: (x @ W, jnp.asarray(W) * 2), (7, 20), 1),
    "folded": (lambda x: x * jnp.asarray(BIAS).sum(), (4,), 1),
    "sliced": (lambda x: x + jnp.asarray(BIAS)[10:14], (4,), 1),
    "integers": (lambda x: jnp.asarray(NUMBERS)[3:7] + x.astype("int64"), (4,), 1),
    "bool": (lambda x: jnp.where(FLAGS, x, 0.0), (80,), 1),
    "empty": (lambda x: (x @ EMPTY, jnp.asarray(EMPTY)), (3, 0), 0),
    "splat": (lambda x: x * SPLAT, (9, 9), 1),
    "loop": (around_a_loop, (100,), 1),
}


def results(tree: object) -> list[np.ndarray]:
    return [np.asarray(x) for x in (tree if isinstance(tree, tuple) else (tree,))]


@pytest.mark.parametrize("name", CASES)
def test_compiled_is_interpreted(name: str) -> None:
    function, shape, count = CASES[name]
    jitted = jd.jit(function)
    x = floats(*shape)
    want = results(jitted(x))  # the first call is interpreted
    warm_up(lambda: jitted(x))
    jitted.wait()
    before = served(machine_of(jitted))
    got = results(jitted(x))
    assert served(machine_of(jitted)) == before + 1, jd.explain(jitted)
    for a, b in zip(want, got, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert len(kernel_of(machine_of(jitted)).constants) == count


def test_weights_of_products_are_packed() -> None:
    wide = floats(20, 300)  # more than one tile on every level
    jitted = jd.jit(lambda x: jnp.relu(jnp.matmul(x, wide) + floats(300)))
    x = floats(64, 20)
    want = np.asarray(jitted(x))
    warm_up(lambda: jitted(x))
    jitted.wait()
    assert np.array_equal(want, np.asarray(jitted(x)))
    kernel = kernel_of(machine_of(jitted))
    tiles = {len(c.source.shape): c.array.ndim for c in kernel.constants}
    assert tiles == {2: 3, 1: 1}


# ---- whose constants ---------------------------------------------------------------------------


def test_results_are_not_the_constant() -> None:
    jitted = jd.jit(lambda x: (jnp.asarray(BIAS), x))
    x = floats(5)
    warm_up(lambda: jitted(x))
    jitted.wait()
    first = np.asarray(jitted(x)[0])
    first[:] = 7
    assert np.array_equal(np.asarray(jitted(x)[0]), BIAS)
    assert served(machine_of(jitted)) >= 2


def test_other_constants_are_other_kernels() -> None:
    x = floats(100)
    machines = [jd.VM(times(w), Policy(threshold=2)) for w in (BIAS, -BIAS)]
    for vm in machines:
        warm_up(lambda vm=vm: vm.run("main", x), vm)
    for vm, w in zip(machines, (BIAS, -BIAS), strict=True):
        before = served(vm)
        assert np.array_equal(vm.run("main", x)[0], x * w)
        assert served(vm) == before + 1
    assert kernel_of(machines[0]) is not kernel_of(machines[1])


@pytest.mark.parametrize("other", [np.float32(-0.0), np.float32(np.nan)])
def test_constants_are_told_apart_by_their_bits(other: np.float32) -> None:
    plain = np.zeros(100, np.float32)
    if np.isnan(other):
        plain[3] = np.nan
    changed = plain.copy()
    changed[3] = other if not np.isnan(other) else np.uint32(0x7FC00001).view(np.float32)
    machines = [jd.VM(times(w, "add")) for w in (plain, changed, plain.copy())]
    prints = [vm.functions["main"].fingerprint for vm in machines]
    assert prints[0] != prints[1]
    assert prints[0] == prints[2]


def test_equal_machines_share_a_kernel_wherever_the_constant_is_in_the_pool() -> None:
    x, w = floats(100), floats(100)
    programs = [times(w)]
    builder = ProgramBuilder()
    other = builder.function("other", 0)
    other.returns(other.constant(floats(200)))
    main = builder.function("main", 1)
    main.returns(main.apply("multiply", main.parameters[0], main.constant(w)))
    programs.append(builder.finish())
    assert [len(p.constants) for p in programs] == [1, 2]
    machines = [jd.VM(p, Policy(threshold=2)) for p in programs]
    for vm in machines:
        warm_up(lambda vm=vm: vm.run("main", x), vm)
        assert np.array_equal(vm.run("main", x)[0], x * w)
        assert served(vm)
    assert kernel_of(machines[0]) is kernel_of(machines[1])


def test_what_happens_to_an_array_after_capture_is_not_seen() -> None:
    weights = floats(100)
    jitted = jd.jit(lambda x: x * weights)
    x = floats(100)
    want = np.asarray(jitted(x))
    weights[:] = 0
    warm_up(lambda: jitted(x))
    jitted.wait()
    assert np.array_equal(np.asarray(jitted(x)), want)
    assert served(machine_of(jitted))


def test_a_kernel_outlives_its_program() -> None:
    weights = floats(40, 48)
    program = times(weights, "matmul")
    constant = weakref.ref(program.constants[0])
    vm = jd.VM(program, Policy(threshold=2))
    x = floats(64, 40)
    (want,) = vm.run("main", x)
    for _ in range(6):
        vm.run("main", x)
    vm.wait()
    vm.run("main", x)
    kernel = kernel_of(vm)
    del vm, program
    gc.collect()
    assert constant() is None
    results = kernel.invoke([x], default_pool)
    assert results is not None and np.array_equal(np.asarray(results[0]), want)


# ---- texts -------------------------------------------------------------------------------------


def test_texts_of_the_stages_stay_short() -> None:
    weights = floats(200, 300)
    jitted = jd.jit(lambda x: x @ weights)
    x = floats(4, 200)
    for stage in ("tssa", "loop", "scf", "llvm", "llvm-ir", "asm"):
        assert len(jitted.lower(x, stage=stage)) < 100_000, stage
    assert "tssa.constant = 0 : i64" in jitted.lower(x, stage="scf")
    # bytecode and vm, which are parsed again, say the bytes: eight digits per element
    for stage in ("bytecode", "vm"):
        assert len(jitted.lower(x, stage=stage)) < 9 * weights.size
