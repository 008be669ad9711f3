"""Every loop pass against the interpreter of `tests/loop_eval.py`: the same bits before and after.

The interpreter checks every access, masked lanes apart, so reading or writing past an end fails too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from loop_eval import interpret
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from jitdialects.analysis.dominance import check_dominance
from jitdialects.dialects.context import make_context
from jitdialects.lowering.convert_loop_to_scf import ConvertLoopToScfPass
from jitdialects.lowering.convert_to_llvm import ConvertToLlvmPass
from jitdialects.lowering.lower_scf_to_cf import LowerScfToCfPass
from jitdialects.passes.loop_hoist_accumulators import LoopHoistAccumulatorsPass
from jitdialects.passes.loop_interchange import LoopInterchangePass
from jitdialects.passes.loop_pack import LoopPackPass
from jitdialects.passes.loop_pack_constants import LoopPackConstantsPass
from jitdialects.passes.loop_schedule import LoopSchedulePass
from jitdialects.passes.loop_tile import LoopTilePass
from jitdialects.passes.loop_unroll import LoopUnrollPass
from jitdialects.passes.loop_unroll_and_jam import LoopUnrollAndJamPass
from jitdialects.passes.loop_vectorize import LoopVectorizePass

CONTEXT = make_context()
LEVELS = ("x86-64-v1", "x86-64-v3", "x86-64-v4")


def parse(text: str) -> ModuleOp:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


def pipeline(features: str) -> list[ModulePass]:
    return [
        LoopSchedulePass(features),
        LoopTilePass(),
        LoopInterchangePass(),
        ConvertLoopToScfPass(),
        LoopPackConstantsPass(),
        LoopPackPass(),
        LoopHoistAccumulatorsPass(),
        LoopVectorizePass(),
        LoopHoistAccumulatorsPass(),
        LoopUnrollPass(),
        LoopUnrollAndJamPass(),
    ]


def check(
    text: str,
    passes: Sequence[ModulePass],
    arguments: Callable[[], list],
    changes: bool = True,
) -> ModuleOp:
    """Run `passes` one by one; after each, the arguments must end up with the same bits."""
    module = parse(text)
    before = last = module.clone()
    expected = arguments()
    results = interpret(module, "f", *expected)
    for one in passes:
        one.apply(CONTEXT, module)
        module.verify()
        check_dominance(module)
        if module.is_structurally_equivalent(last):  # and so means the same
            continue
        last = module.clone()
        actual = arguments()
        assert list(interpret(module, "f", *actual)) == list(results), one.name
        for have, want in zip(actual, expected, strict=True):
            if isinstance(want, np.ndarray):
                assert have.tobytes() == want.tobytes(), one.name
    assert module.is_structurally_equivalent(before) != changes
    return module


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(np.float32)
    if values.size > 3:
        values.flat[1], values.flat[-1] = np.nan, -0.0
    return values


MATMUL = """
func.func @f(%A: memref<{m}x{k}xf32>, %B: memref<{k}x{n}xf32>, %bias: memref<{n}xf32>,
             %C: memref<{m}x{n}xf32>) attributes {{loop.noalias}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<{m}x{k}xf32>
  %n = memref.dim %B, %c1 : memref<{k}x{n}xf32>
  %K = memref.dim %A, %c1 : memref<{m}x{k}xf32>
  %once = arith.maxsi %K, %c1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %negzero = arith.constant -0.0 : f32
  loop.nest (%i, %j) = (%c0, %c0) to ({M}, {N}) step (1, 1) kinds [parallel, parallel] {{
    %total = memref.alloca() : memref<f32>
    %acc = memref.alloca() : memref<f32>
    memref.store %negzero, %total[] : memref<f32>
    loop.nest (%b) = (%c0) to (%once) step (5) kinds [reduction] {{
      memref.store %zero, %acc[] : memref<f32>
      %e0 = arith.addi %b, %c5 : index
      %e = arith.minsi %e0, %K : index
      loop.nest (%k) = (%b) to (%e) step (1) kinds [reduction] {{
        %a = memref.load %A[%i, %k] : memref<{m}x{k}xf32>
        %bv = memref.load %B[%k, %j] : memref<{k}x{n}xf32>
        %s = memref.load %acc[] : memref<f32>
        %r = math.fma %a, %bv, %s : f32
        memref.store %r, %acc[] : memref<f32>
      }}
      %t = memref.load %total[] : memref<f32>
      %u = memref.load %acc[] : memref<f32>
      %v = arith.addf %t, %u : f32
      memref.store %v, %total[] : memref<f32>
    }}
    %w = memref.load %total[] : memref<f32>
    %bb = memref.load %bias[%j] : memref<{n}xf32>
    %x = arith.addf %w, %bb : f32
    %y = arith.maximumf %x, %zero : f32
    memref.store %y, %C[%i, %j] : memref<{m}x{n}xf32>
  }}
  func.return
}}
"""


def matmul(m: int, k: int, n: int, static: bool) -> str:
    if not static:
        return MATMUL.format(m="?", k="?", n="?", M="%m", N="%n")
    constants = (
        f"%sm = arith.constant {m} : index\n  %sn = arith.constant {n} : index\n  loop.nest (%i"
    )
    text = MATMUL.format(m=m, k=k, n=n, M="%sm", N="%sn")
    return text.replace("loop.nest (%i", constants, 1)


@pytest.mark.parametrize("features", LEVELS)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        *(
            (1, 3, 10),
            (7, 6, 9),
            (3, 2, 33),
            (9, 1, 16),
            (2, 0, 5),
            (0, 4, 4),
            (5, 6, 1),
            (4, 3, 0),
        ),
        *((11, 2, 83), (13, 6, 150)),  # several panels of several tiles
    ],
)
def test_matmul(features: str, static: bool, m: int, k: int, n: int) -> None:
    def arguments() -> list:
        return [numbers(m, k), numbers(k, n, seed=1), numbers(n, seed=2), np.zeros((m, n), "f4")]

    check(matmul(m, k, n, static), pipeline(features), arguments)


SUM = """
func.func @f(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %rest = arith.andi %n, %c31 : index
  %ragged = arith.subi %n, %rest : index
  %neg = arith.constant -0.0 : f32
  loop.nest (%i) = (%c0) to (%rows) step (1) kinds [parallel] {
    %lanes = memref.alloca() : memref<32xf32>
    loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
      memref.store %neg, %lanes[%l] : memref<32xf32>
    }
    loop.nest (%first) = (%c0) to (%ragged) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %lanes[%l] : memref<32xf32>
        %k = arith.addi %first, %l : index
        %v = memref.load %x[%i, %k] : memref<?x?xf32>
        %t = arith.addf %s, %v : f32
        memref.store %t, %lanes[%l] : memref<32xf32>
      }
    }
    loop.nest (%l) = (%c0) to (%rest) step (1) kinds [parallel] {
      %s = memref.load %lanes[%l] : memref<32xf32>
      %k = arith.addi %ragged, %l : index
      %v = memref.load %x[%i, %k] : memref<?x?xf32>
      %t = arith.addf %s, %v : f32
      memref.store %t, %lanes[%l] : memref<32xf32>
    }
FOLDS
    %r = memref.load %lanes[%c0] : memref<32xf32>
    memref.store %r, %y[%i] : memref<?xf32>
  }
  func.return
}
"""
FOLD = """
    loop.nest (%l) = (%c0) to (%cHALF) step (1) kinds [parallel] {
      %s = memref.load %lanes[%l] : memref<32xf32>
      %k = arith.addi %cHALF, %l : index
      %v = memref.load %lanes[%k] : memref<32xf32>
      %t = arith.addf %s, %v : f32
      memref.store %t, %lanes[%l] : memref<32xf32>
    }
"""
FOLDS = "".join(FOLD.replace("HALF", str(half)) for half in (16, 8, 4, 2, 1))


@pytest.mark.parametrize("features", LEVELS)
@pytest.mark.parametrize("length", [0, 1, 31, 32, 70])
def test_sum_in_lanes(features: str, length: int) -> None:
    module = check(
        SUM.replace("FOLDS", FOLDS),
        pipeline(features),
        lambda: [numbers(3, length), np.zeros(3, "f4")],
    )
    assert "iter_args" in str(module)  # the lanes are carried, not kept in memory


ELEMENTWISE = """
func.func @f(%x: memref<{n}xf32>, %q: memref<{n}xi8>, %s: f32, %y: memref<{n}xf32>, %z: memref<{n}xi8>,
             %w: memref<{n}xi64>, %lower: index, %upper: index) attributes {{loop.noalias}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i8
  loop.nest (%i) = (%lower) to (%upper) step (1) kinds [parallel] {{
    %a = memref.load %x[%i] : memref<{n}xf32>
    %b = arith.mulf %a, %s : f32
    %c = arith.cmpf olt, %b, %zero : f32
    %t = memref.load %q[%i] : memref<{n}xi8>
    %u = arith.cmpi ne, %t, %c0 : i8
    %v = arith.andi %c, %u : i1
    %d = arith.select %v, %a, %b : f32
    memref.store %d, %y[%i] : memref<{n}xf32>
    %e = arith.extui %v : i1 to i8
    memref.store %e, %z[%i] : memref<{n}xi8>
    %f = arith.extsi %t : i8 to i64
    %g = arith.sitofp %f : i64 to f32
    %h = arith.addf %g, %d : f32
    %k = arith.cmpf uno, %h, %h : f32
    %l = arith.extui %k : i1 to i64
    %m = arith.muli %l, %f : i64
    memref.store %m, %w[%i] : memref<{n}xi64>
  }}
  func.return
}}
"""


def elementwise_arguments(length: int, lower: int, upper: int) -> list:
    flags = (np.arange(length) % 3 == 0).astype(np.int8)
    outputs = [np.zeros(length, dtype) for dtype in ("f4", "i1", "i8")]
    return [numbers(length), flags, np.float32(1.5), *outputs, lower, upper]


@pytest.mark.parametrize("features", LEVELS)
@pytest.mark.parametrize("length", [0, 1, 4, 7, 16, 37])
def test_elementwise(features: str, length: int) -> None:
    text = ELEMENTWISE.format(n="?")
    check(text, pipeline(features), lambda: elementwise_arguments(length, 0, length))


@pytest.mark.parametrize(("lower", "upper"), [(3, 3), (5, 2), (4, 29), (1, 2), (-5, -2), (-3, -9)])
def test_elementwise_with_other_bounds(lower: int, upper: int) -> None:
    """A trip count is signed and may be negative; indices here are shifted to stay in bounds.

    llvm/llvm-project#223232 (bounds that cross: nothing runs), #223233 (bounds below zero).
    """
    text = ELEMENTWISE.format(n="?").replace(
        "%a = memref.load", "%j = arith.addi %i, %shift : index\n    %a = memref.load"
    )
    text = text.replace("[%i]", "[%j]").replace(
        "%zero = arith", "%shift = arith.constant 9 : index\n  %zero = arith", 1
    )
    check(text, pipeline("x86-64-v3"), lambda: elementwise_arguments(40, lower, upper))


CHAIN = """
func.func @f(%x: memref<?xf32>, %lower: index, %upper: index, %step: index, %init: f32) -> f32 {
  %r = scf.for %i = %lower to %upper step {step} iter_args(%s = %init) -> (f32) {
    %c20 = arith.constant 20 : index
    %j = arith.addi %i, %c20 : index
    %v = memref.load %x[%j] : memref<?xf32>
    %t = arith.mulf %s, %v : f32
    %u = arith.addf %t, %v : f32
    memref.store %u, %x[%j] : memref<?xf32>
    scf.yield %u : f32
  }
  func.return %r : f32
}
"""


@pytest.mark.parametrize("factor", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (4, 1), (0, 4), (0, 7), (-3, 4), (0, 1), (-9, 9), (2, 18)]
)
def test_unroll(factor: int, step: int, lower: int, upper: int) -> None:
    """Xilinx/mlir-aie#1556: each iteration once, also with fewer of them than the factor.

    llvm/llvm-project#223232 (bounds that cross: nothing runs), #223233 (bounds below zero).
    """

    def arguments() -> list:
        return [np.linspace(0.5, 1.5, 40, dtype="f4"), lower, upper, step, np.float32(0.25)]

    check(CHAIN.replace("{step}", "%step"), [LoopUnrollPass(factor)], arguments)
    static = CHAIN.replace("{step}", "%c").replace(
        "%r = scf", f"%c = arith.constant {step} : index\n  %r = scf"
    )
    check(static, [LoopUnrollPass(factor)], arguments)
    constants = f"%lo = arith.constant {lower} : index\n  %up = arith.constant {upper} : index\n"
    fixed = static.replace("%r = scf", constants + "  %r = scf").replace(
        "%lower to %upper", "%lo to %up"
    )
    check(fixed, [LoopUnrollPass(factor)], arguments)


def test_unroll_with_a_step_near_the_largest_integer() -> None:
    """`i < 1 step x` is one iteration, however large x: four steps wrap, and must not be taken."""
    largest = 2**63 - 1
    text = CHAIN.replace("{step}", "%step")

    def arguments() -> list:
        return [np.ones(40, "f4"), 0, 1, largest, np.float32(0.25)]

    for factor in (2, 4, 8):
        module = parse(text)
        LoopUnrollPass(factor).apply(CONTEXT, module)
        expected, actual = arguments(), arguments()
        want = interpret(parse(text), "f", *expected)
        loops = [op for op in module.walk() if op.name == "scf.for"]
        assert len(loops) == 2
        loops[0].operands[2] = loops[1].operands[2]  # any step does for a loop that never runs
        assert list(interpret(module, "f", *actual)) == list(want)
        assert actual[0].tobytes() == expected[0].tobytes()


ROWS = """
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {attributes} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %{step} {{
    %first = memref.load %y[%i, %c0] : memref<?x?xf32>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%s = %first) -> (f32) {{
      %v = memref.load %x[%i, %k] : memref<?x?xf32>
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }}
    memref.store %r, %{out}[%i, %c0] : memref<?x?xf32>
  }} {{loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [{jam}]>}}
  func.return
}}
"""


@pytest.mark.parametrize("jam", ["3", "3], rest = 2", "4], rest = 3"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("out", ["x", "y"])
@pytest.mark.parametrize("attributes", ["", "attributes {loop.noalias}"])
def test_jam(rows: int, out: str, attributes: str, jam: str) -> None:
    """In place or not: `y` reads what it writes, so its rows must never be done twice."""
    text = ROWS.format(attributes=attributes, out=out, step="c1", jam=jam)
    text = text.replace("]>", ">") if "rest" in jam else text
    check(text, [LoopUnrollAndJamPass()], lambda: [numbers(rows, 4), numbers(rows, 1, seed=3)])


SHIFTED_ROWS = """
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %lower: index, %upper: index) {attributes} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %step = arith.constant {step} : index
  %m = memref.dim %x, %c1 : memref<?x?xf32>
{bounds}
  scf.for %i = %lo to %up step %step {{
    %r = arith.addi %i, %c8 : index
    scf.for %k = %c0 to %m step %c1 {{
      %v = memref.load %x[%r, %k] : memref<?x?xf32>
      %w = memref.load %{out}[%r, %k] : memref<?x?xf32>
      %t = arith.addf %w, %v : f32
      memref.store %t, %{out}[%r, %k] : memref<?x?xf32>
    }}
  }} {{loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [{factor}]>}}
  func.return
}}
"""


@pytest.mark.parametrize("factor", [2, 4, 6])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (4, 1), (-3, 4), (-3, -8), (0, 7), (-8, 8), (2, 3)]
)
def test_jam_with_other_bounds(factor: int, step: int, lower: int, upper: int) -> None:
    """Each row once: it is added to what is there, so that a second time would show.

    llvm/llvm-project#223232, #223233; Xilinx/mlir-aie#1556.
    """
    dynamic = "  %lo = arith.addi %lower, %c0 : index\n  %up = arith.addi %upper, %c0 : index"
    static = f"  %lo = arith.constant {lower} : index\n  %up = arith.constant {upper} : index"
    for bounds in (dynamic, static):
        for out in "xy":
            text = SHIFTED_ROWS.format(
                attributes="attributes {loop.noalias}",
                step=step,
                bounds=bounds,
                out=out,
                factor=factor,
            )
            check(
                text,
                [LoopUnrollAndJamPass()],
                lambda: [numbers(16, 3), numbers(16, 3, seed=3), lower, upper],
            )


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (4, 1), (-3, 4), (-9, -8), (0, 16), (-8, 8), (3, 17)]
)
def test_vectorize_with_other_bounds(width: int, lower: int, upper: int) -> None:
    """Each element once, with constant and dynamic bounds: llvm/llvm-project#223232, #223233."""
    text = (
        CHAIN.split("%r = scf")[0].replace("-> f32", "")
        + """
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  BOUNDS
  scf.for %i = %lo to %up step %c1 {
    %j = arith.addi %i, %c20 : index
    %v = memref.load %x[%j] : memref<?xf32>
    %t = arith.mulf %init, %v : f32
    memref.store %t, %x[%j] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}
"""
    )
    dynamic = "%lo = arith.addi %lower, %lower : index\n  %up = arith.addi %upper, %lower : index"
    static = f"%lo = arith.constant {lower} : index\n  %up = arith.constant {upper} : index"
    from_lower = (
        f"%n = arith.constant {upper - lower} : index\n"
        "  %lo = arith.addi %lower, %step : index\n  %up = arith.addi %lo, %n : index"
    )
    for bounds in (dynamic, static, from_lower):
        check(
            text.replace("BOUNDS", bounds),
            [LoopVectorizePass(width)],
            lambda: [numbers(40), lower // 2, upper - lower // 2, 0, np.float32(0.25)],
        )


@pytest.mark.parametrize("step", [0, -2])
@pytest.mark.parametrize("name", ["vector = 4", "jam = [2]", "unroll = 4", ""])
def test_a_step_that_is_not_positive_is_left_alone(step: int, name: str) -> None:
    """llvm/llvm-project#75758: in code that is never reached; no pass divides by it, or runs for ever."""
    schedule = f", loop.schedule = #loop.schedule<{name}>" if name else ""
    text = f"""
func.func @f(%x: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %step = arith.constant {step} : index
  scf.for %never = %c1 to %c0 step %c1 {{
    scf.for %i = %c0 to %c9 step %step {{
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %x[%i] : memref<?xf32>
    }} {{loop.kind = "parallel"{schedule}}}
  }}
  func.return
}}
"""
    passes = [
        LoopTilePass((4,)),
        LoopPackPass(),
        LoopHoistAccumulatorsPass(),
        LoopVectorizePass(4),
        LoopUnrollPass(4),
        LoopUnrollAndJamPass(),
    ]
    for each in passes:
        module = parse(text)
        each.apply(CONTEXT, module)
        module.verify()
        interpret(module, "f", numbers(9))
    module = parse(text)
    LowerScfToCfPass().apply(CONTEXT, module)
    ConvertToLlvmPass().apply(CONTEXT, module)
    module.verify()


TILED = """
func.func @f(%x: memref<?x?xf32>, %lower: index, %m: index, %n: index) {{
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  loop.nest (%i, %j) = (%lower, %lower) to (%m, %n) step (1, {step}) kinds [parallel, parallel] {{
    %r = arith.addi %i, %c8 : index
    %c = arith.addi %j, %c8 : index
    %v = memref.load %x[%r, %c] : memref<?x?xf32>
    %w = arith.addf %v, %one : f32
    memref.store %w, %x[%r, %c] : memref<?x?xf32>
  }}
  func.return
}}
"""


@pytest.mark.parametrize("sizes", [(4, 4), (0, 3), (2, 0), (5, 1)])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("lower", "m", "n"), [(-3, 4, 4), (0, 0, 5), (2, 1, 9), (0, 9, 8)])
def test_tile(sizes: tuple[int, int], step: int, lower: int, m: int, n: int) -> None:
    """Each point once: `-3 .. 4` by 4 is seven of them, also with bounds that go down.

    llvm/llvm-project#223233, #223232.
    """
    passes = [LoopTilePass(sizes), LoopInterchangePass((1, 0)), ConvertLoopToScfPass()]
    text = TILED.format(step=step)
    check(text, passes, lambda: [np.zeros((20, 20), "f4"), lower, m, n])


DIVISION = """
func.func @f(%x: memref<?xi64>, %y: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi64>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xi64>
    %b = memref.load %y[%i] : memref<?xi64>
    %q = arith.divsi %a, %b : i64
    memref.store %q, %y[%i] : memref<?xi64>
  } {loop.kind = "parallel"}
  func.return
}
"""


def test_vectorize_does_not_divide_by_lanes_that_do_not_exist() -> None:
    """What is left over stays scalar: masked lanes would hold zeros."""
    for length in (0, 3, 4, 11):
        check(
            DIVISION,
            [LoopVectorizePass(4)],
            lambda length=length: [np.arange(length), np.arange(1, length + 1)],
        )


@pytest.mark.parametrize("features", LEVELS)
@pytest.mark.parametrize("n", [10, 16, 37, 64, 85])
def test_a_constant_matrix_packed_by_the_caller(features: str, n: int) -> None:
    k, m = 12, 9
    text = MATMUL.format(m="?", k=k, n=n, M="%m", N="%n")
    text = text.replace("%n = memref.dim %B, %c1", f"%n = arith.constant {n} : index //")
    text = text.replace(
        f"%B: memref<{k}x{n}xf32>", f"%B: memref<{k}x{n}xf32> {{tssa.constant = 0}}"
    )
    module = parse(text)
    a, b, bias = numbers(m, k), numbers(k, n, seed=1), numbers(n, seed=2)
    expected, actual = np.zeros((2, m, n), np.float32)
    interpret(module, "f", a, b, bias, expected)
    for one in pipeline(features):
        one.apply(CONTEXT, module)
        module.verify()
    packed = next(iter(module.ops)).body.block.args[1].type
    if packed.get_num_dims() == 3:
        panels, _, columns = packed.get_shape()
        padded = np.zeros((k, panels * columns), np.float32)
        padded[:, :n] = b
        b = np.ascontiguousarray(padded.reshape(k, panels, columns).swapaxes(0, 1))
    assert packed.get_num_dims() == 3 or n <= 16
    interpret(module, "f", a, b, bias, actual)
    assert actual.tobytes() == expected.tobytes()
