"""Tiers: what gets compiled when, which calls compiled code serves, and what happens otherwise."""

import gc
import threading

import numpy as np
import pytest

from jitdialects.bytecode import signature as signatures
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32, WEAK_INT
from jitdialects.bytecode.program import Program
from jitdialects.errors import ConfigError, DTypeError, ShapeError
from jitdialects.runtime.explain import explain
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service


def scaled_sum() -> Program:
    """x * y + y"""
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    x, y = main.parameters
    main.returns(main.apply("add", main.apply("multiply", x, y), y))
    return builder.finish()


def like_first(signature: signatures.Signature) -> list:
    return [(FLOAT32, [str(s) for s in signature.arguments[0].shape])]


def array(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def machine(compiler: FakeCompiler, **options: object) -> VM:
    return VM(
        scaled_sum(), Policy(**{"threshold": 3} | options), MemoryPool(), fake_service(compiler)
    )


def call(vm: VM, *arguments: object) -> None:
    (result,) = vm.run("main", *arguments)
    x, y = arguments
    assert np.array_equal(result, x * y + y)
    assert result.dtype == np.float32


def served(vm: VM) -> int:
    return vm.functions["main"].profile.served


def test_a_block_past_its_threshold_is_compiled_for_the_exact_sizes() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for number in range(6):
        call(vm, array(4, 3), array(3))
        vm.wait()
        assert served(vm) == max(0, number - 2)
    assert compiler.requests == ["main(f32[4,3], f32[3])"]


def test_a_second_size_becomes_symbolic_and_serves_every_size() -> None:
    """12 batch sizes, then the first one again: one general entry, all served by compiled code."""
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for batch in (2, 2, 2, 3):
        call(vm, array(batch, 5), array(5))
        vm.wait()
    before = served(vm)
    for batch in [*range(4, 16), 2]:
        call(vm, array(batch, 5), array(5))
    assert served(vm) == before + 13
    assert compiler.requests == ["main(f32[2,5], f32[5])", "main(f32[n0,5], f32[5])"]


def test_sizes_that_vary_together_share_a_symbol_until_they_do_not() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for n in (4, 5, 6):
        call(vm, array(n), array(n))
    vm.wait()
    assert compiler.requests == ["main(f32[n0], f32[n0])"]
    call(vm, array(7), array(1))
    vm.wait()
    assert compiler.requests[1:] == ["main(f32[n0], f32[n1])"]


def test_two_machines_of_equal_bytecode_keep_their_own_shapes() -> None:
    compiler = FakeCompiler(like_first)
    service = fake_service(compiler)
    sites = [VM(scaled_sum(), Policy(threshold=3), service=service) for _ in range(2)]
    for _ in range(5):
        for vm, size in zip(sites, (64, 128), strict=True):
            call(vm, array(size), array(size))
    service.wait()
    assert sorted(compiler.requests) == ["main(f32[128], f32[128])", "main(f32[64], f32[64])"]


def test_equal_bytecode_and_sizes_are_compiled_once_for_two_machines() -> None:
    compiler = FakeCompiler(like_first)
    service = fake_service(compiler)
    for _ in range(2):
        vm = VM(scaled_sum(), Policy(threshold=3), service=service)
        for _ in range(6):
            call(vm, array(64), array(64))
            service.wait()
        assert served(vm) >= 2
    assert len(compiler.requests) == 1


def test_sizes_of_one_become_static_where_the_guards_refuse_them() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for x, y in ((4, 4), (5, 5), (6, 1)):
        call(vm, array(x), array(y))
    vm.wait()
    compiler.guards = []
    assert compiler.requests == ["main(f32[n0], f32[n1])"]
    # what a compiler that cannot know of broadcasting demands
    other = FakeCompiler(like_first, guards=[("==", "n0", "n1")])
    vm = machine(other)
    for x, y in ((4, 4), (5, 5), (6, 1), (6, 1)):
        call(vm, array(x), array(y))
        vm.wait()
        other.guards = other.guards if len(other.requests) < 1 else []
    call(vm, array(6), array(1))
    vm.wait()
    assert other.requests == ["main(f32[n0], f32[n1])", "main(f32[n0], f32[1])"]
    before = served(vm)
    call(vm, array(9), array(1))
    call(vm, array(9), array(9))
    assert served(vm) == before + 2


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ("exact", ["main(f32[2], f32[2])", "main(f32[3], f32[3])"]),
        ("symbolic", ["main(f32[n0], f32[n1])"]),
    ],
)
def test_shape_policies(shapes: str, expected: list[str]) -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler, shapes=shapes)
    for n in (2, 2, 2, 3, 3):
        call(vm, array(n), array(n))
        vm.wait()
    assert compiler.requests == expected


def test_layout_is_part_of_the_class() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    strided = [array(8)[::2], array(4, 4)[:, 1], array(4)[::-1], array(12)[::3]]
    for x in strided:
        call(vm, x, array(4))
        vm.wait()
    assert compiler.requests == ["main(f32[4]:strided, f32[4])"]
    call(vm, array(40)[::-10], array(4))
    assert served(vm) == 2


def test_strides_that_are_no_multiple_of_an_element_are_interpreted() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for _ in range(4):
        call(vm, array(8)[::2], array(4))
        vm.wait()
    before = served(vm)
    odd = np.zeros(4, np.dtype([("x", np.float32), ("c", np.int8)]))["x"]
    call(vm, odd, array(4))
    assert served(vm) == before


def test_python_scalars_are_arguments_not_constants() -> None:
    """Twenty values of an integer scalar: one compile."""
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for number in range(20):
        (result,) = vm.run("main", array(3), number)
        assert np.array_equal(result, array(3) * number + number)
        vm.wait()
    assert compiler.requests == ["main(f32[3], int)"]
    assert served(vm) == 17
    with pytest.raises(DTypeError, match="does not fit int64"):
        vm.run("main", array(3), 2**63)
    assert vm.run("main", array(3), 0.5)[0].tolist() == [0.5, 1.0, 1.5]


def test_weak_results_are_rank_0_arrays_in_every_tier() -> None:
    compiler = FakeCompiler(lambda signature: [(WEAK_INT, [])])
    vm = machine(compiler)
    for _ in range(5):
        (result,) = vm.run("main", 6, 7)
        vm.wait()
        assert isinstance(result, np.ndarray)
        assert (result.shape, result.dtype, int(result)) == ((), np.int64, 49)
    assert served(vm) == 2


def test_a_status_sends_the_call_to_the_interpreter() -> None:
    vm = machine(FakeCompiler(like_first, status=7))
    for _ in range(6):
        call(vm, array(4), array(4))
        vm.wait()
    assert served(vm) == 0


def test_the_arena_comes_from_the_pool_and_goes_back() -> None:
    vm = machine(FakeCompiler(like_first, arena="4 * 100 + 64"))
    for _ in range(8):
        call(vm, array(4), array(4))
        vm.wait()
    vm.pool.safe_point()
    assert served(vm) == 5
    assert vm.pool.statistics().live_blocks == 0


def test_errors_are_the_interpreters_and_leave_everything_usable() -> None:
    vm = machine(FakeCompiler(like_first))
    for _ in range(5):
        call(vm, array(4), array(4))
        vm.wait()
    with pytest.raises(ShapeError, match="multiply: shapes"):
        vm.run("main", array(4), array(3))
    with pytest.raises(DTypeError, match="foreign byte order"):
        vm.run("main", array(4).astype(">f4"), array(4))
    call(vm, array(4), array(4))
    gc.collect()
    vm.pool.safe_point()
    assert vm.pool.statistics().live_blocks == 0


def test_a_compile_that_fails_is_recorded_and_not_repeated() -> None:
    compiler = FakeCompiler(like_first, error="cannot compile: a reason")
    vm = machine(compiler)
    for _ in range(8):
        call(vm, array(4), array(4))
        vm.wait()
    assert compiler.requests[0] == "main(f32[4], f32[4])"
    assert len(compiler.requests) == len(set(compiler.requests)) <= 2  # the other one: its part
    assert "not compiled: main(f32[4], f32[4]): cannot compile: a reason" in explain(vm)


def test_a_compiler_that_raises_is_recorded_too() -> None:
    def broken(signature: signatures.Signature) -> list:
        raise ZeroDivisionError("oh")

    vm = machine(FakeCompiler(broken))
    for _ in range(5):
        call(vm, array(4), array(4))
        vm.wait()
    assert "ZeroDivisionError: oh" in explain(vm)


def test_results_of_compiled_code_belong_to_the_caller() -> None:
    """Values kept by the caller are never overwritten by later calls (recycled buffers)."""
    vm = machine(FakeCompiler(like_first))
    kept = []
    for number in range(12):
        x = np.full(16, number, np.float32)
        (result,) = vm.run("main", x, x)
        x[0] = -1
        kept.append(result)
        vm.wait()
    for number, result in enumerate(kept):
        assert (result == number * number + number).all()


def test_sixteen_threads_that_call_first_compile_each_key_once() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler, threshold=1, shapes="exact")
    barrier = threading.Barrier(16)
    right: list[int] = []

    def work(number: int) -> None:
        x = np.full(8 + number % 4, number, np.float32)
        barrier.wait()
        for _ in range(30):
            (result,) = vm.run("main", x, x)
            if (result == number * number + number).all():
                right.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    vm.wait()
    assert len(right) == 16 * 30
    assert sorted(compiler.requests) == sorted(f"main(f32[{n}], f32[{n}])" for n in range(8, 12))


def test_a_call_does_not_wait_for_the_compiler() -> None:
    gate = threading.Event()
    compiler = FakeCompiler(like_first, gate=gate)
    vm = machine(compiler)
    for _ in range(6):
        call(vm, array(4), array(4))
    assert served(vm) == 0
    assert "being compiled: main(f32[4], f32[4])" in explain(vm)
    gate.set()
    vm.wait()
    call(vm, array(4), array(4))
    assert served(vm) == 1


def test_clearing_the_cache_compiles_again() -> None:
    compiler = FakeCompiler(like_first)
    vm = machine(compiler)
    for _ in range(4):
        call(vm, array(4), array(4))
        vm.wait()
    assert vm.service.cache.hits == 1
    vm.service.cache.clear()
    for _ in range(2):
        call(vm, array(4), array(4))
        vm.wait()
    assert len(compiler.requests) == 2
    assert served(vm) == 2
    assert vm.service.cache.misses == 1


def test_calls_inside_the_program_use_compiled_callees() -> None:
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    main.returns(*main.call("inner", *main.parameters))
    inner = builder.function("inner", 2)
    inner.returns(inner.apply("subtract", *inner.parameters))
    compiler = FakeCompiler(like_first)
    vm = VM(builder.finish(), Policy(threshold=2), service=fake_service(compiler))
    for _ in range(5):
        assert not vm.run("main", array(4), array(4))[0].any()
        vm.wait()
    assert compiler.requests == ["inner(f32[4], f32[4])", "main(f32[4], f32[4])"]
    assert served(vm) == 3


@pytest.mark.parametrize(
    ("options", "message"), [({"threshold": 0}, "at least 1"), ({"shapes": "round"}, "one of")]
)
def test_policies_refuse_nonsense(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policy(**options)


# ---- explain -----------------------------------------------------------------------------------


def test_explain_says_what_was_compiled_and_why_a_call_missed() -> None:
    vm = machine(FakeCompiler(like_first, guards=[("<=", "4", "n0")]))
    for x, y in ((7, 64), (8, 64), (9, 64)):
        with pytest.raises(ShapeError):
            vm.run("main", array(x), array(y))
    for n in (4, 5, 6):
        call(vm, array(n, 2), array(2))
    vm.wait()
    call(vm, array(3, 2), array(1))
    text = explain(vm)
    assert "compiled: main(f32[n0,2], f32[2])" in text
    assert "2 of 3 operators fused" in text
    assert "remark: a remark" in text
    assert "last hot call without code: main(f32[3,2], f32[1])" in text
    assert "dim 0 of argument 1: 1, entry has 2" in text
    assert "dim 0 of argument 0: 3 is outside class 4 and up" in text
