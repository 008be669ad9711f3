"""The interpreter: values, control flow, errors, and what stays usable afterwards."""

from collections.abc import Callable

import numpy as np
import pytest

from jitdialects.bytecode.attributes import (
    At,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.builder import FunctionBuilder, ProgramBuilder
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import Location, Program
from jitdialects.errors import (
    ArgumentError,
    ConfigError,
    DTypeError,
    Error,
    IntegerRangeError,
    OutOfBoundsError,
    PoolError,
    ShapeError,
)
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.tier0 import RULES
from jitdialects.runtime.vm import CALL_DEPTH, VM

INT64_MIN = -(2**63)


def program(parameters: int, body: Callable[[FunctionBuilder], object]) -> Program:
    builder = ProgramBuilder()
    body(builder.function("main", parameters))
    return builder.finish()


def operator(name: str, parameters: int, **attributes: object) -> Program:
    return program(
        parameters, lambda main: main.returns(main.apply(name, *main.parameters, **attributes))
    )


def run(name: str, *arguments: object, **attributes: object) -> np.ndarray:
    (result,) = VM(operator(name, len(arguments), **attributes)).run("main", *arguments)
    return result


def test_tier_0_has_a_rule_for_every_operator() -> None:
    assert set(RULES) == set(OPERATORS)


f32 = np.array([[1.5, -2.0, 0.0], [np.nan, np.inf, -0.0]], np.float32)
i64 = np.array([[1, -2, INT64_MIN], [2**62, 0, 7]])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "less", "equal", "logical_and"])
@pytest.mark.parametrize("x", [f32, i64], ids=["f32", "i64"])
def test_exact_operators_are_numpys(name: str, x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, x[0])
    result = run(name, x, x[0])
    assert result.dtype == expected.dtype
    assert result.tobytes() == expected.tobytes()


def test_shifts_past_the_width() -> None:
    x, y = np.array([5, -5, 5, -5, 5, -5]), np.array([64, 64, -1, -1, 1, 1])
    assert run("left_shift", x, y).tolist() == [0, 0, 0, 0, 10, -10]
    assert run("right_shift", x, y).tolist() == [0, -1, 0, -1, 2, -3]
    assert run("right_shift", np.array(-5), np.array(64)).tolist() == -1


def test_float_to_integer_out_of_range_is_the_smallest_integer() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 2.9, -2.9], np.float32)
    expected = [INT64_MIN] * 5 + [2, -2]
    assert run("cast", x, dtype="int64").tolist() == expected


def test_negative_and_abs_of_the_smallest_integer_wrap() -> None:
    x = np.array([INT64_MIN])
    assert run("abs", x).tolist() == run("negative", x).tolist() == [INT64_MIN]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, -1])
def test_integer_reductions(axis: int | None, keepdims: bool) -> None:
    expected = i64.sum(axis=axis, keepdims=keepdims)
    assert np.array_equal(run("sum", i64, axis=axis, keepdims=keepdims), expected)
    expected = i64.max(axis=axis, keepdims=keepdims)
    assert np.array_equal(run("max", i64, axis=axis, keepdims=keepdims), expected)


def test_integer_matmul_wraps() -> None:
    x = np.array([[2**62, 3]])
    assert run("matmul", x, np.array([[4], [5]])).tolist() == [[15]]
    assert run("matmul", x[0], np.array([4, 5])).tolist() == 15


def test_weak_scalars_follow_nep_50() -> None:
    half = np.array([0.5], np.float32)
    assert run("multiply", half, 3).dtype == np.float32
    assert run("add", np.array([True]), 2).dtype == np.int64
    assert run("add", np.array([1]), True).tolist() == [2]
    assert run("add", np.array([1]), 0.5).dtype == np.float64
    assert run("add", np.array([1], np.int32), 2).dtype == np.int32


def test_a_python_integer_that_int32_cannot_hold_is_refused_as_by_numpy() -> None:
    x = np.array([1, -1], np.int32)
    for number in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError):
            _ = x + number
        with pytest.raises(IntegerRangeError, match=f"Python integer {number} does not fit int32"):
            run("add", x, number)
        assert run("less", x, number).tolist() == (x < number).tolist()
    assert run("add", x, -(2**31)).tolist() == (x + -(2**31)).tolist()


def test_weak_results_are_what_numpy_makes_of_python_numbers() -> None:
    assert run("add", 2**63 - 1, 1) == INT64_MIN
    assert run("add", 1, 2).dtype == np.int64
    assert run("multiply", 0.1, 0.1).dtype == np.float64
    assert run("minimum", 0.0, -0.0).tobytes() == np.float64(-0.0).tobytes()
    assert run("logical_not", 0.0).dtype == np.bool_


def test_numpy_scalars_are_strong() -> None:
    assert run("add", np.float32(1), 2.5).dtype == np.float32
    assert run("add", np.float64(1), np.ones(2, np.float32)).dtype == np.float64
    assert run("add", np.int32(1), 2).dtype == np.int32


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((0, 3), np.float32),
        np.array(2.0, np.float32),
        np.arange(24, dtype=np.float32).reshape(4, 6)[::-1, ::2],
        np.arange(6).reshape(2, 3).T,
    ],
    ids=["zero-size", "rank 0", "negative stride", "transposed"],
)
def test_layouts_do_not_matter(x: np.ndarray) -> None:
    result = run("add", x, x)
    assert np.array_equal(result, x + x)
    assert result.flags.c_contiguous
    assert result.flags.writeable


def test_shape_operators() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(run("reshape", x, shape=ShapeSpec((2, -1))), x.reshape(2, -1))
    assert np.array_equal(run("transpose", x), x.T)
    assert np.array_equal(run("transpose", x[None], axes=Ints((1, 0, 2))), x[:, None])
    assert np.array_equal(
        run("broadcast_to", x[0], 5, shape=ShapeSpec((OperandRef(1), 4))), [x[0]] * 5
    )
    assert run("size", x, axis=1) == 4
    spec = IndexSpec((Slice(OperandRef(1), None, 2), NewAxis(), At(-1)))
    assert np.array_equal(run("getitem", x, -2, index=spec), x[-2::2, None, -1])
    assert run("getitem", x, index=IndexSpec((At(1), At(2)))) == x[1, 2]


def test_setitem_makes_a_new_value_and_casts() -> None:
    x = np.arange(4)
    spec = IndexSpec((Slice(1, 3),))
    stored = np.array([1.9, np.nan], np.float32)
    assert run("setitem", x, stored, index=spec).tolist() == [0, 1, INT64_MIN, 3]
    assert x.tolist() == [0, 1, 2, 3]


def test_results_never_alias_arguments_constants_or_each_other() -> None:
    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        y = main.apply("add", x, x)
        main.returns(x, main.apply("reshape", x, shape=ShapeSpec((-1,))), y, y, main.constant([1]))

    vm = VM(program(1, body))
    x = np.ones((2, 3), np.float32)
    results = vm.run("main", x)
    for number, result in enumerate(results):
        result[...] = 7 + number
    assert (x == 1).all()
    assert (results[2] == 9).all()
    assert vm.run("main", x)[4].tolist() == [1]


@pytest.mark.parametrize("n", [4, 4096])
def test_what_the_caller_writes_later_is_not_seen(n: int) -> None:
    vm = VM(program(1, lambda main: main.returns(*main.parameters)))
    x = np.zeros(n, np.float32)
    (result,) = vm.run("main", x)
    x[0] = 5
    assert result[0] == 0


def countdown() -> Program:
    """sum of n, n - 1, ..., 1 as a loop."""

    def body(main: FunctionBuilder) -> None:
        (n,) = main.parameters
        total = main.constant(np.int64(0))
        header, step, done = main.block("header"), main.block("step"), main.block("done")
        main.branch(header)
        main.enter(header)
        main.branch_if(main.apply("greater", n, main.constant(0)), step, done)
        main.enter(step)
        main.apply("add", total, n, into=total)
        main.apply("subtract", n, main.constant(1), into=n)
        main.branch(header)
        main.enter(done)
        main.returns(total)

    return program(1, body)


def test_a_loop_runs_and_counts_its_blocks() -> None:
    vm = VM(countdown())
    assert vm.run("main", 10)[0] == 55
    assert vm.run("main", np.int64(3))[0] == 6


@pytest.mark.parametrize(("selector", "result"), [(3, 0), (-5, 1), (np.int64(9), 2)])
def test_switch(selector: object, result: int) -> None:
    def body(main: FunctionBuilder) -> None:
        blocks = [main.block(name) for name in ("three", "minus", "other")]
        main.switch(main.parameters[0], {3: blocks[0], -5: blocks[1]}, blocks[2])
        for number, block in enumerate(blocks):
            main.enter(block)
            main.returns(main.constant(number))

    vm = VM(program(1, body))
    assert vm.run("main", selector)[0] == result
    with pytest.raises(DTypeError, match="switch needs an integer"):
        vm.run("main", 2.0)


def test_nan_is_true_and_arrays_are_no_conditions() -> None:
    def body(main: FunctionBuilder) -> None:
        yes, no = main.block("yes"), main.block("no")
        main.branch_if(main.parameters[0], yes, no)
        main.enter(yes)
        main.returns(main.constant(1))
        main.enter(no)
        main.returns(main.constant(0))

    vm = VM(program(1, body))
    assert vm.run("main", float("nan"))[0] == 1
    assert vm.run("main", np.float32(-0.0))[0] == 0
    with pytest.raises(ShapeError, match="cond_br needs a value of rank 0, got shape \\(2,\\)"):
        vm.run("main", np.zeros(2, np.float32))


def test_calls_and_the_limit_of_recursion() -> None:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(*main.call("twice", main.parameters[0]))
    twice = builder.function("twice", 1)
    twice.returns(twice.apply("add", twice.parameters[0], twice.parameters[0]))
    forever = builder.function("forever", 1)
    forever.returns(*forever.call("forever", forever.parameters[0]))
    vm = VM(builder.finish())
    assert vm.run("main", 21)[0] == 42
    with pytest.raises(Error, match=f"@forever: calls nest deeper than {CALL_DEPTH}"):
        vm.run("forever", 1)
    assert vm.run("main", 2)[0] == 4


# ---- errors ------------------------------------------------------------------------------------


def test_the_first_failing_instruction_raises_with_its_location() -> None:
    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        main.location = Location("model.jasm", 7, 3)
        total = main.apply("add", x, y)
        main.location = Location("model.jasm", 8, 3)
        main.returns(main.apply("matmul", total, y))

    pool = MemoryPool()
    vm = VM(program(2, body), pool=pool)
    good = np.ones((2, 2), np.float32)
    with pytest.raises(ShapeError, match=r"^model.jasm:7:3: add: shapes \(2, 2\) and \(3,\)"):
        vm.run("main", good, np.ones(3, np.float32))
    with pytest.raises(ShapeError, match=r"^model.jasm:8:3: matmul"):
        vm.run("main", np.ones((2, 3), np.float32), np.ones(3, np.float32).reshape(1, 3))
    assert (vm.run("main", good, good)[0] == 4).all()
    pool.safe_point()
    assert pool.statistics().live_blocks == 0


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ([1, 2], ArgumentError, "argument 0 of @main: list is neither"),
        (None, ArgumentError, "NoneType is neither"),
        (2**63, DTypeError, "does not fit int64"),
        (np.zeros(2, np.float16), DTypeError, "float16 is not supported .* cast with astype"),
        (np.zeros(2, ">f4"), DTypeError, r"foreign byte order \(>f4\).* astype\('float32'\)"),
        (np.array(["a"]), DTypeError, "not supported"),
        (np.ma.array([1.0]), ArgumentError, "masked arrays are not supported; fill it"),
    ],
)
def test_arguments_that_are_refused(argument: object, error: type[Error], message: str) -> None:
    vm = VM(operator("abs", 1))
    with pytest.raises(error, match=message):
        vm.run("main", argument)
    assert vm.run("main", -1)[0] == 1


def test_wrong_names_and_counts_are_refused() -> None:
    vm = VM(operator("abs", 1))
    with pytest.raises(ArgumentError, match=r"no function @other \(it has: @main\)"):
        vm.run("other")
    with pytest.raises(ArgumentError, match=r"@main takes 1 argument\(s\), got 2"):
        vm.run("main", 1, 2)


def test_an_index_out_of_bounds_is_an_index_error() -> None:
    with pytest.raises(OutOfBoundsError, match="index 3 is out of range for axis 0 of size 3"):
        run("getitem", np.zeros(3, np.float32), index=IndexSpec((At(3),)))


def test_the_pool_recycles_what_a_run_used() -> None:
    pool = MemoryPool()
    vm = VM(countdown(), pool=pool)
    for _ in range(5):
        vm.run("main", np.int64(20))
    assert pool.statistics().reuse_rate > 0.9


@pytest.mark.parametrize("threshold", [0, 1.5, "many"])
def test_a_threshold_that_is_no_count_is_refused(threshold: object) -> None:
    with pytest.raises(ConfigError, match="threshold must be an int of at least 1, got"):
        Policy(threshold=threshold)


def test_a_machine_for_no_program_is_refused() -> None:
    with pytest.raises(ArgumentError, match="VM takes a Program, got str; Program.from_text"):
        VM("func @main")


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        ("[1099511627776, 1099511627776]", ShapeError, "broadcast_to: no array can have the shape"),
        ("[1099511627776, 64]", PoolError, "cast: Unable to allocate .*; release arrays"),
    ],
)
def test_arrays_beyond_the_memory_are_refused(sizes: str, error: type[Error], said: str) -> None:
    machine = VM(
        Program.from_text(
            "func @main(%0) -> 1 {\n^entry:\n"
            f"  %1 = broadcast_to %0 {{shape = {sizes}}}\n"
            "  %2 = cast %1 {dtype = int64}\n  return %2\n}\n"
        )
    )
    with pytest.raises(error, match=said):
        machine.run("main", np.ones(1, np.float32))
