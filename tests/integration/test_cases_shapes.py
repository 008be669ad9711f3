"""Faults in recompilation, stale constants and zero sizes that users of other compilers reported.

The reference in a docstring says which report. Each test counts what was compiled and proves that its last
calls ran compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from differential.harness import everywhere, program

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService

F32 = np.float32
Arguments = tuple[object, ...]
Function = Callable[..., object]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F32)


def f32(*values: float) -> np.ndarray:
    return np.array(values, F32)


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    jd.wait()
    jd.clear_cache()


@pytest.fixture
def service() -> Iterator[CompileService]:
    service = CompileService(KernelCache())
    yield service
    service.stop()


def compiles() -> int:
    jd.wait()
    return jd.stats()["compiles"]


def served(vm: jd.VM) -> int:
    return vm.functions["main"].profile.served


def agree(function: Function, numpy: Function, calls: Sequence[Arguments], rounds: int) -> int:
    """Call the jitted `function`, interpreted at first, and compare each result with NumPy's bits; in
    the last round every call must run compiled. The number of compiles."""
    before = compiles()
    for _ in range(rounds):
        for arguments in calls:
            _same(function(*arguments), numpy(*arguments))
            jd.wait()
    (vm,) = function.machines()
    ran = served(vm)
    for arguments in calls:
        _same(function(*arguments), numpy(*arguments))
    assert served(vm) - ran == len(calls), jd.explain(function)
    return compiles() - before


def _same(got: object, want: object) -> None:
    assert isinstance(got, np.ndarray) and isinstance(want, np.ndarray)
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


def window(x, start, end):
    return x[start:end] * 3 + start


def np_window(x, start, end):
    return x[start:end] * F32(3) + F32(start)


PAIRS = [(start, start + 5 + start % 3) for start in range(20)]


def test_case_1_slice_bounds_are_no_part_of_the_code() -> None:
    """pytorch/pytorch#114293: 20 different (start, end) pairs need at most two compiles."""
    x = floats(50)
    calls = [(x, start, end) for start, end in PAIRS]
    assert 1 <= agree(jd.jit(window), np_window, calls, rounds=2) <= 2


def test_case_1_bounds_below_zero_past_the_end_and_crossed() -> None:
    """pytorch/pytorch#114293: the same for bounds that count from the end, and with lengths that vary."""
    bounds = [(-7, 44), (-3, 99), (5, 2), (0, -1), (-99, 3), (48, 50)]
    calls = [(floats(n), start, end) for n in (50, 51, 64) for start, end in bounds]
    assert 1 <= agree(jd.jit(window), np_window, calls, rounds=2) <= 2


def test_case_1_other_integers_are_no_part_of_the_code() -> None:
    """pytorch/pytorch#114293: positions, shapes and loop bounds neither; no number is a guard."""

    def f(x, i, rows, times):
        y = jnp.reshape(x, (rows, -1))
        total = jd.while_loop(lambda s: s[1] < times, lambda s: (s[0] + i, s[1] + 1), (x[i], 0))
        return y[rows - 1] * 2 + total[0]

    def numpy(x, i, rows, times):
        return x.reshape(rows, -1)[rows - 1] * F32(2) + F32(x[i] + F32(i) * F32(times))

    x = np.arange(60, dtype=F32)
    calls = [(x, i, 2 + i % 4, 3 + i) for i in range(20)]
    assert 1 <= agree(jd.jit(f), numpy, calls, rounds=2) <= 2


def affine(x, w, b):
    return jnp.relu(x * w + b)


def np_affine(x, w, b):
    return np.maximum(x * w + b, F32(0))


def test_case_2_twelve_batch_sizes_then_the_first_again() -> None:
    """NVIDIA/TensorRT-LLM#6142: one general entry after the threshold, all of them compiled; the change
    can be seen."""
    w, b = floats(7), floats(7, 1)[:, 0].copy()
    first, others = floats(3, 7), [floats(n, 7) for n in range(4, 15)]
    f = jd.jit(affine)
    assert agree(f, np_affine, [(first, w, b)], rounds=11) == 1
    assert "compiled: main(f32[3,7], f32[7], f32[7])" in jd.explain(f)
    calls = [(x, w, b) for x in (*others, first)]
    assert agree(f, np_affine, calls, rounds=1) == 1
    assert "compiled: main(f32[n0,7], f32[7], f32[7])" in jd.explain(f)


def test_cases_2_and_7_two_sizes_that_vary() -> None:
    """microsoft/dion#23: 12 distinct (m, n) through one program are one general entry."""
    sizes = [(2 + i, 9 + i % 5) for i in range(12)]
    calls = [(floats(m, n), floats(n), floats(n)) for m, n in (*sizes, sizes[0])]
    assert agree(jd.jit(affine), np_affine, calls, rounds=2) == 1

    def dense(x, w):
        return jnp.relu(x @ w)

    def reference(x, w):  # of small integers, which every order of summation adds exactly
        return np.maximum(x @ w, F32(0))

    calls = [
        (np.ones((m, 6), F32), np.arange(6 * n, dtype=F32).reshape(6, n) - 20) for m, n in sizes
    ]
    assert agree(jd.jit(dense), reference, calls, rounds=2) == 1


@pytest.mark.parametrize("shapes", ["auto", "exact", "bucketed", "symbolic"])
def test_a_thousand_shapes_of_one_program_are_few_compiles(
    shapes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with 1,000 distinct shapes: no storm under any policy, and compiled calls from the 200th on."""
    monkeypatch.setattr(jd.config, "max_shapes", 20)
    sizes = [(2 + k % 32, 2 + k // 32) for k in range(1000)]
    f = jd.jit(affine, shapes=shapes)
    before = compiles()
    for number, (m, n) in enumerate(sizes[::7] + [s for k, s in enumerate(sizes) if k % 7]):
        x, w, b = np.ones((m, n), F32), np.full(n, 3, F32), np.arange(n, dtype=F32)
        _same(f(x, w, b), np_affine(x, w, b))
        if number % 20 == 0 and number <= 200:
            jd.wait()
        if number == 200:
            ran = served(f.machines()[0])
    assert served(f.machines()[0]) - ran >= 0.95 * 799, jd.explain(f)
    most = {"auto": 8, "symbolic": 8, "bucketed": 28, "exact": 28}[shapes]
    assert compiles() - before <= most


def test_case_4_sizes_of_0_and_1_use_the_general_entry() -> None:
    """pytorch/pytorch#135011: (2,2), (3,3), (1,1), (0,0) have at most two entries."""
    f = jd.jit(lambda x: jnp.sqrt(x) + 1)
    calls = [(np.abs(floats(n, n)),) for n in (2, 3, 1, 0)]
    before = compiles()
    for _ in range(12):
        f(*calls[0])
    jd.wait()
    f(*calls[1])  # hot, without code for this shape: explained in full
    text = jd.explain(f)
    assert "last hot call without code: main(f32[3,3])" in text
    assert "main(f32[2,2]): dim 0 of x: 3, entry has 2; dim 1 of x: 3" in text
    agree(f, lambda x: np.sqrt(x) + F32(1), calls, rounds=1)
    assert compiles() - before == 2


def test_case_4_a_size_of_1_that_broadcasts_has_an_entry_of_its_own() -> None:
    """pytorch/pytorch#135011: where 1 stretches, the code truly differs; 0 and 1 alike do not."""
    sizes = [(3, 3), (4, 4), (1, 1), (0, 0), (4, 1), (1, 4), (0, 1), (1, 0), (7, 7)]
    calls = [(np.abs(floats(m)), floats(n)) for m, n in sizes]
    f = jd.jit(lambda x, y: jnp.sqrt(x) + y)
    agree(f, lambda x, y: np.sqrt(x) + y, calls, rounds=3)
    used = {e.key.signature for e in f.machines()[0].functions["main"].entries if e.hits}
    assert {"main(f32[1], f32[n0])", "main(f32[n0], f32[1])"} <= used
    assert len(used) == 3  # and one for all equal sizes


def test_case_5_sizes_that_are_compared_are_no_guards() -> None:
    """pytorch/pytorch#191833: a <= b, a >= b and a + b == 10 hold together for (5, 5) only; here they are computed, and
    one entry is right for every pair of sizes."""

    def f(x, y):
        a, b = x.shape[0], y.shape[0]
        both = (a <= b) & (a >= b) & (a + b == 10)
        return jd.cond(both, lambda v: v * 2, lambda v: v - 1, x)

    def numpy(x, y):
        return x * F32(2) if len(x) == len(y) == 5 else x - F32(1)

    sizes = [(5, 5), (5, 5), (4, 6), (6, 4), (5, 6), (7, 7), (5, 5), (0, 10)]
    calls = [(floats(n), floats(m)) for n, m in sizes]
    f = jd.jit(f)
    assert agree(f, numpy, calls, rounds=3) <= 2
    used = {e.key.signature for e in f.machines()[0].functions["main"].entries if e.hits}
    assert used == {"main(f32[n0], f32[n1])"}


def test_case_10_memory_is_planned_for_sizes_without_an_upper_bound(
    service: CompileService,
) -> None:
    """apache/tvm#18663: code for n from 1 on, compiled at n = 2, run at 64 and more: temporaries grow with n."""

    def body(main: FunctionBuilder) -> None:
        x, w = main.parameters
        hidden = main.apply("tanh", main.apply("matmul", x, w))
        largest = main.apply("max", hidden, axis=-1, keepdims=True)
        main.returns(main.apply("subtract", main.apply("exp", hidden), largest), hidden)

    made = program(2, body)
    vm = jd.VM(made, Policy(threshold=1, shapes="symbolic"), service=service)
    reference = jd.VM(made, Policy(threshold=10**9))
    w = floats(7, 33)
    for n in (2, 2, 64, 1000, 3):
        got, want = (m.run("main", floats(n, 7), w) for m in (vm, reference))
        assert [a.tobytes() for a in got] == [a.tobytes() for a in want]
        vm.wait()
    assert service.compiles == 1 and served(vm) == 4


def test_case_11_one_more_than_what_was_planned_for(service: CompileService) -> None:
    """apache/tvm#17322: compiled for 1,024 elements, called with 1,025: refused before anything is written, then served
    by general code."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        total = main.apply("sum", main.apply("exp", x), axis=0)
        main.returns(main.apply("divide", main.apply("exp", x), total))

    made = program(1, body)
    vm = jd.VM(made, Policy(threshold=2), service=service)
    reference = jd.VM(made, Policy(threshold=10**9))
    for n in (1024, 1024, 1024, 1025, 1025, 4099, 1024):
        x = floats(n)
        before = x.tobytes()
        (got,), (want,) = (m.run("main", x) for m in (vm, reference))
        assert got.tobytes() == want.tobytes() and x.tobytes() == before
        if n == 1025 and served(vm) == 1:
            text = jd.explain(vm)
            assert "dim 0 of argument 0: 1025, entry has 1024" in text
        vm.wait()
    assert served(vm) == 4 and service.compiles == 2


def test_case_8_two_sites_with_sizes_of_their_own_stay_exact(service: CompileService) -> None:
    """pytorch/pytorch#114516: the same bytecode at two sites, one always 64, the other always 128."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(main.apply("multiply", x, main.constant(2.0)))

    made = program(1, body)
    sites = {n: jd.VM(made, Policy(threshold=4), service=service) for n in (64, 128)}
    for _ in range(8):
        for n, vm in sites.items():
            assert vm.run("main", floats(n))[0].tobytes() == (floats(n) * F32(2)).tobytes()
            vm.wait()
    assert [served(vm) for vm in sites.values()] == [4, 4]
    assert service.compiles == 2
    for n, vm in sites.items():
        (entry,) = vm.functions["main"].entries
        assert entry.key.signature == f"main(f32[{n}])"


def test_case_8_two_jitted_uses_of_one_function_stay_exact() -> None:
    """pytorch/pytorch#114516: the same with `jit`; and a third use of a known size compiles nothing."""

    def double(x):
        return x * 2

    uses = {n: jd.jit(double) for n in (64, 128)}
    for n, use in uses.items():
        assert agree(use, lambda x: x * F32(2), [(floats(n),)], rounds=11) == 1
        assert f"main(f32[{n}])" in jd.explain(use)
        assert "n0" not in jd.explain(use)
    third = jd.jit(double)
    assert agree(third, lambda x: x * F32(2), [(floats(64),)], rounds=11) == 0


STRUCTURES: dict[str, tuple[Callable[[object], object], Callable[[object], object]]] = {
    "list": (lambda t: [t], lambda s: s[0]),
    "tuple of tuples": (lambda t: ((), (t, None)), lambda s: s[1][0]),
    "dict in a list": (lambda t: [{"a": 1.0}, {"b": t}], lambda s: s[1]["b"]),
    "dict of dicts": (lambda t: {"z": {"y": [t, t]}, "a": 3}, lambda s: s["z"]["y"][1]),
}


@pytest.mark.parametrize(
    "kind", [np.int64, int, lambda t: np.full(3, t)], ids=["0-d", "int", "1-d"]
)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_case_13_arrays_inside_structures_are_arguments(
    structure: str, kind: Callable[[int], object]
) -> None:
    """tinygrad/tinygrad#10850: f([t]) = t + 1 for t = 0..4 is 1, 2, 3, 4, 5, before and after compiling."""
    wrap, unwrap = STRUCTURES[structure]
    f = jd.jit(lambda s: unwrap(s) + 1)
    for _ in range(4):
        results = [np.ravel(f(wrap(kind(t)))).tolist() for t in range(5)]
        jd.wait()
    assert results == [[t + 1] * np.size(kind(0)) for t in range(5)]
    (vm,) = f.machines()
    assert served(vm) >= 5, jd.explain(f)


def test_case_14_a_constant_that_fills_an_argument_is_none_of_the_program() -> None:
    """tinygrad/tinygrad PR#14044, #14045: an argument that is lazily constant, of 2 and then of 3."""
    f = jd.jit(lambda x: x * 10)
    for _ in range(6):
        for k in (2, 3, 4):
            assert np.asarray(f(jnp.zeros((5,)) + k)).tolist() == [10.0 * k] * 5
            jd.wait()
    assert served(f.machines()[0]) > 0, jd.explain(f)


@pytest.mark.parametrize("axis", [None, Ints(())], ids=["all", "none"])
def test_cases_71_and_72_a_number_reduced_is_itself(axis: Ints | None) -> None:
    """microsoft/onnxruntime#3208, apache/tvm#19676: sum, max and mean of a rank-0 operand; no axis fits."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(*(main.apply(o, x, axis=axis) for o in ("sum", "max", "min", "mean", "prod")))

    for result in everywhere([f32(1.5).reshape(())], "f32[]", body):
        assert result.shape == () and result == 1.5
    with pytest.raises(jd.ShapeError, match="sum: axis -1 is out of range for an array of rank 0"):
        jnp.asarray(1.5).sum(axis=-1).item()


def test_case_74_an_axis_of_size_0_reduces_to_the_neutral_element() -> None:
    """microsoft/onnxruntime#7563: (3, 0, 4) over axis 1, axes kept or not."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(
            *(
                main.apply(o, x, axis=1, keepdims=k)
                for o in ("sum", "prod", "mean")
                for k in (True, False)
            )
        )

    results = everywhere([f32().reshape(3, 0, 4)], "f32[3,0,4]", body)
    assert [r.shape for r in results] == [(3, 1, 4), (3, 4)] * 3
    assert all((r == v).all() for r, v in zip(results[:4], (0, 0, 1, 1), strict=True))
    assert np.isnan(results[4]).all() and np.isnan(results[5]).all()
    for name in ("max", "min"):
        with pytest.raises(jd.ShapeError, match=f"{name} of an axis of size 0 has no value"):
            getattr(jnp.zeros((3, 0, 4)), name)(axis=1).item()


def test_case_76_no_axes_are_not_all_axes() -> None:
    """microsoft/onnxruntime#19147: `axis=()` folds nothing, as in NumPy; `axis=None` everything."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(main.apply("sum", x, axis=Ints(())), main.apply("sum", x, axis=None))

    each, total = everywhere([f32(1, 2, 4).reshape(3, 1)], "f32[n,1]", body)
    assert each.tolist() == [[1], [2], [4]] and total == 7


def test_case_73_a_sum_of_nothing_has_its_axis() -> None:
    """microsoft/onnxruntime#8146: the keepdims sum of shape (0,) has shape (1,) and is +0."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(
            main.apply("sum", x, keepdims=True), main.apply("sum", x), main.apply("sum", x, axis=-1)
        )

    kept, total, last = everywhere([f32()], "f32[n]", body)
    assert kept.shape == (1,) and total.shape == last.shape == ()
    for result in (kept, total, last):
        assert float(result.reshape(())) == 0 and not np.signbit(result).any()


def test_case_77_lengths_of_zero() -> None:
    """tracel-ai/burn#5310: empty chains, sums and products have a value."""

    def chain(main: FunctionBuilder) -> None:
        x, y = main.parameters
        product = main.apply("multiply", main.apply("tanh", x), y)
        main.returns(product, main.apply("sum", product, axis=-1), main.apply("matmul", y, x))

    arguments: list[object] = [np.zeros((0, 4), F32), np.zeros((3, 0), F32)]

    def product(main: FunctionBuilder) -> None:
        main.returns(main.apply("matmul", *reversed(main.parameters)))

    (zeros,) = everywhere(arguments, "f32[k,n], f32[m,k]", product)
    assert zeros.shape == (3, 4) and not zeros.any() and not np.signbit(zeros).any()
    empty: list[object] = [np.zeros((5, 3), F32), np.zeros((0, 5), F32)]
    (nothing,) = everywhere(empty, "f32[k,n], f32[m,k]", product)
    assert nothing.shape == (0, 3)
    squares: list[object] = [np.zeros((0, 0), F32), np.zeros((0, 0), F32)]
    values, sums, _ = everywhere(squares, "f32[k,k], f32[k,k]", chain)
    assert values.shape == (0, 0) and sums.shape == (0,)


def run_at_once(work: Sequence[Callable[[], None]]) -> None:
    """Each on a thread of its own, all released together; the first error is raised."""
    barrier = threading.Barrier(len(work))

    def start(each: Callable[[], None]) -> None:
        barrier.wait()
        each()

    with ThreadPoolExecutor(len(work)) as threads:
        list(threads.map(start, work))


def test_case_130_sixteen_first_calls_of_one_function() -> None:
    """numba/numba#1791, #2213, #2901: one capture, and one compile per key."""
    f = jd.jit(lambda x, s: jnp.tanh(x * s) + x, shapes="exact")
    want = {n: [f(floats(n), float(k)).tobytes() for k in range(4)] for n in (5, 6)}
    f = jd.jit(f.__wrapped__, shapes="exact")
    before = compiles()

    def work(n: int) -> None:
        for k in (*range(4), *range(4)):
            assert f(floats(n), float(k)).tobytes() == want[n][k]

    run_at_once([lambda n=5 + i % 2: work(n) for i in range(16)])
    jd.wait()
    (vm,) = f.machines()
    ran = served(vm)
    for n, k in product((5, 6), range(4)):
        assert f(floats(n), float(k)).tobytes() == want[n][k]
    assert served(vm) - ran == 8, jd.explain(f)
    assert compiles() - before == len(vm.functions["main"].entries) == 2


def test_case_130_each_thread_brings_sizes_of_its_own() -> None:
    """numba/numba#1791, #2213, #2901: what is known of sizes grows while others decide by it."""

    def work(f: Function, first: int) -> None:
        for n in range(first, first + 15):
            assert f(np.full(n, n, F32)).tobytes() == np.full(n, 2 * n + 1, F32).tobytes()

    for _ in range(3):
        f = jd.jit(lambda x: x * 2 + 1)
        run_at_once([lambda k=k, f=f: work(f, 15 * k) for k in range(16)])
        jd.wait()
        (vm,) = f.machines()
        ran = served(vm)
        work(f, 300)
        assert served(vm) >= ran + 14, jd.explain(
            f
        )  # at most one call more to ask for the general code


def test_case_130_hits_and_misses_mixed() -> None:
    """numba/numba#1791, #2213, #2901: half of the threads call what is compiled, half what is not."""
    compiled = jd.jit(lambda x: x * 2 + 1)
    agree(compiled, lambda x: x * F32(2) + F32(1), [(floats(9),)], rounds=11)
    fresh = [jd.jit(lambda x, k: x * k - 1) for _ in range(4)]
    before = compiles()

    def hit() -> None:
        for _ in range(40):
            assert compiled(floats(9)).tobytes() == (floats(9) * F32(2) + F32(1)).tobytes()

    def miss(k: int) -> None:
        for _ in range(12):
            got = fresh[k](floats(9), float(k + 2))
            assert got.tobytes() == (floats(9) * F32(k + 2) - F32(1)).tobytes()

    run_at_once([hit] * 8 + [lambda k=k: miss(k) for k in range(4)] * 2)
    jd.wait()
    for k, f in enumerate(fresh):
        (vm,) = f.machines()
        ran = served(vm)
        f(floats(9), float(k + 2))
        assert served(vm) == ran + 1, jd.explain(f)
    assert compiles() - before == 1  # equal programs have one key: the number is an argument
