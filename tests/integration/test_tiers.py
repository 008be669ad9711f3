"""The tiers with the real compiler: interpreted and compiled runs give the same bits."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from jitdialects.bytecode.attributes import IndexSpec, Slice
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.config import config
from jitdialects.errors import IntegerRangeError, ShapeError
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.explain import explain
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM

WIDTHS = (20, 33, 16, 10)
INTERPRET = Policy(threshold=10**9)


def classifier() -> Program:
    """Three dense layers with ReLU between them, then softmax."""
    builder = ProgramBuilder()
    main = builder.function("main", 7)
    x, *weights = main.parameters
    for layer in range(3):
        if layer:
            x = main.apply("maximum", x, main.constant(0.0))
        product = main.apply("matmul", x, weights[2 * layer])
        x = main.apply("add", product, weights[2 * layer + 1])
    largest = main.apply("max", x, axis=-1, keepdims=True)
    e = main.apply("exp", main.apply("subtract", x, largest))
    main.returns(main.apply("divide", e, main.apply("sum", e, axis=-1, keepdims=True)))
    return builder.finish()


def weights() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    out: list[np.ndarray] = []
    for inputs, outputs in pairwise(WIDTHS):
        out += [random.standard_normal((inputs, outputs)), random.standard_normal(outputs)]
    return [w.astype(np.float32) for w in out]


def batch(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, WIDTHS[0])).astype(np.float32)


@pytest.fixture
def service() -> Iterator[CompileService]:
    service = CompileService(KernelCache())
    yield service
    service.stop()


def test_twelve_batch_sizes_then_the_first_again(service: CompileService) -> None:
    vm = VM(classifier(), Policy(threshold=3), service=service)
    reference = VM(classifier(), INTERPRET)
    parameters = weights()

    def check(n: int) -> None:
        (result,) = vm.run("main", batch(n), *parameters)
        (expected,) = reference.run("main", batch(n), *parameters)
        assert result.tobytes() == expected.tobytes()
        vm.wait()

    for n in (7, 7, 7, 8):
        check(n)
    before = vm.functions["main"].profile.served
    for n in [*range(9, 20), 64, 7]:
        check(n)
    assert vm.functions["main"].profile.served == before + 13, explain(vm)
    assert service.compiles == 2
    for n in (1, 1, 2, 1):  # one row has code of its own
        check(n)
    assert vm.functions["main"].profile.served == before + 16, explain(vm)
    assert service.compiles == 3
    with pytest.raises(ShapeError):
        vm.run("main", batch(3)[:, 1:], *parameters)
    check(5)


def test_a_loop_is_compiled_and_leaves_with_the_same_bits(service: CompileService) -> None:
    """Newton's iteration for the square root until the step is small."""
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    (a,) = main.parameters
    x = main.apply("multiply", a, main.constant(0.5))
    header, step, done = main.block("header"), main.block("step"), main.block("done")
    main.branch(header)
    main.enter(header)
    error = main.apply("abs", main.apply("subtract", main.apply("multiply", x, x), a))
    main.branch_if(main.apply("greater", main.apply("max", error), main.constant(1e-3)), step, done)
    main.enter(step)
    total = main.apply("add", x, main.apply("divide", a, x))
    main.apply("multiply", total, main.constant(0.5), into=x)
    main.branch(header)
    main.enter(done)
    main.returns(x)
    program = builder.finish()
    vm = VM(program, Policy(threshold=3), service=service)
    reference = VM(program, INTERPRET)
    for n in (5, 5, 5, 6, 40):
        values = np.linspace(1, 9, n, dtype=np.float32)
        assert vm.run("main", values)[0].tobytes() == reference.run("main", values)[0].tobytes()
        vm.wait()
    assert vm.functions["main"].profile.served == 3, explain(vm)


def test_sixteen_threads_that_call_first(service: CompileService) -> None:
    vm = VM(classifier(), Policy(threshold=1, shapes="exact"), service=service)
    reference = VM(classifier(), INTERPRET)
    parameters = weights()
    expected = {n: reference.run("main", batch(n), *parameters)[0].tobytes() for n in (2, 3)}
    barrier = threading.Barrier(16)
    right: list[int] = []

    def work(n: int) -> None:
        barrier.wait()
        for _ in range(4):
            (result,) = vm.run("main", batch(n), *parameters)
            if result.tobytes() == expected[n]:
                right.append(n)

    threads = [threading.Thread(target=work, args=(2 + i % 2,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    vm.wait()
    assert len(right) == 64
    assert service.compiles == 2
    assert not service.failures


def test_dumps_of_two_shapes_lie_side_by_side(
    service: CompileService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "dump", tmp_path)
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    vm = VM(builder.finish(), Policy(threshold=1, shapes="exact"), service=service)
    for n in (3, 4):
        vm.run("main", np.ones(n, np.float32))
        vm.wait()
    (function,) = tmp_path.iterdir()
    folders = sorted(p.name for p in function.iterdir())
    assert folders == ["f32-3", "f32-4"]
    names = [sorted(p.name for p in (function / f).iterdir()) for f in folders]
    assert names[0] == names[1]
    assert names[0][0] == "00-vm.mlir"


def test_what_cannot_be_compiled_is_interpreted_and_explained(service: CompileService) -> None:
    """A size that changes around a loop has no symbolic expression."""
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    (x,) = main.parameters
    header, step, done = main.block("header"), main.block("step"), main.block("done")
    main.branch(header)
    main.enter(header)
    size = main.apply("size", x, axis=0)
    main.branch_if(main.apply("greater", size, main.constant(1)), step, done)
    main.enter(step)
    main.apply("getitem", x, index=IndexSpec((Slice(1),)), into=x)
    main.branch(header)
    main.enter(done)
    main.returns(x)
    vm = VM(builder.finish(), Policy(threshold=2), service=service)
    for _ in range(4):
        assert vm.run("main", np.arange(6))[0].tolist() == [5]
        vm.wait()
    assert "not compiled: main(i64[6])" in explain(vm)


def test_case_133_a_compile_that_takes_too_long_is_given_up(
    service: CompileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "compile_seconds", 1e-3)
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    value = main.parameters[0]
    for _ in range(300):
        value = main.apply("add", value, main.parameters[0])
    main.returns(value)
    vm = VM(builder.finish(), Policy(threshold=1), service=service)
    x = np.arange(4, dtype=np.float32)
    for _ in range(3):
        assert (vm.run("main", x)[0] == 301 * x).all()
        vm.wait()
    assert "compiling takes longer than 0.001 s (given up after " in explain(vm)


# ---- dtypes ------------------------------------------------------------------------------------


def mixed() -> Program:
    """Every width in one function: (i32 * int + f32) / f64 summed, and what is below a Python integer."""
    builder = ProgramBuilder()
    main = builder.function("main", 4)
    i, number, x, y = main.parameters
    scaled = main.apply("multiply", i, number)
    quotient = main.apply("divide", main.apply("add", scaled, x), y)
    below = main.apply("less", i, number)
    main.returns(scaled, quotient, main.apply("sum", quotient), main.apply("sum", below))
    return builder.finish()


def test_mixed_widths_are_compiled_to_the_same_bits(service: CompileService) -> None:
    program, rng = mixed(), np.random.default_rng(5)
    vm, reference = VM(program, Policy(threshold=2), service=service), VM(program, INTERPRET)
    for n in (7, 7, 7, 40, 41, 42, 100):
        i = rng.integers(-(2**31), 2**31, n).astype(np.int32)
        x, y = rng.standard_normal(n).astype(np.float32), rng.standard_normal(n)
        got, want = (m.run("main", i, 3, x, y) for m in (vm, reference))
        assert [a.dtype.name for a in got] == ["int32", "float64", "float64", "int64"]
        assert [a.tobytes() for a in got] == [a.tobytes() for a in want]
        vm.wait()
    assert vm.functions["main"].profile.served


def test_a_python_integer_that_does_not_fit_is_refused_in_every_tier(
    service: CompileService,
) -> None:
    """Compiled code is for integers that fit, by its guards; the interpreter refuses the others."""
    vm = VM(mixed(), Policy(threshold=2), service=service)
    i, x, y = np.arange(5, dtype=np.int32), np.ones(5, np.float32), np.ones(5)
    for _ in range(4):
        vm.run("main", i, 3, x, y)
        vm.wait()
    served = vm.functions["main"].profile.served
    assert served
    for number in (2**31, -(2**31) - 1, 2**62):
        with pytest.raises(IntegerRangeError, match=f"Python integer {number} does not fit int32"):
            vm.run("main", i, number, x, y)
    assert vm.run("main", i, 2**31 - 1, x, y)[0].tolist() == (i * np.int32(2**31 - 1)).tolist()
    assert vm.functions["main"].profile.served == served + 1
