"""Functions over memrefs, compiled down to machine code and compared with NumPy."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from jitdialects.bytecode.elementary import elementary_functions
from jitdialects.config import FEATURE_LEVELS
from jitdialects.dialects.context import make_context
from jitdialects.errors import CompileError
from jitdialects.lowering.pipelines import llvm_passes
from jitdialects.runtime.engines.codegen import (
    compile_llvm_module,
    emit_assembly,
    function_attributes,
)
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.engines.llvm_text import llvm_ir
from jitdialects.runtime.identity import feature_level

Array = NDArray[np.generic]
HERE = feature_level()
LEVELS = FEATURE_LEVELS[: FEATURE_LEVELS.index(HERE) + 1]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e-42], np.float32)
CANARY = 77


def lowered(text: str, context: Context | None = None, features: str = HERE) -> ModuleOp:
    """The module of `text` in the llvm dialect, with its packed entry."""
    context = context or make_context()
    module = Parser(context, text).parse_module()
    module.verify()
    for each in llvm_passes(features):
        each.apply(context, module)
    module.verify()
    return module


def compiled(text: str, features: str = HERE) -> Callable[..., None]:
    """The function of `text` as a callable of arrays and scalars."""
    return loaded(lowered(text, features=features), features)


def loaded(module: ModuleOp, features: str = HERE) -> Callable[..., None]:
    engine = DlopenEngine()
    library = engine.load(compile_llvm_module(module, features), "test")
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library.address("jd_entry"))

    def call(*arguments: Array | float) -> None:
        assert engine.folder.exists()
        packed = np.array([slot for a in arguments for slot in slots(a)], np.int64)
        assert entry(packed.ctypes.data) == 0

    return call


def slots(argument: Array | float) -> list[int]:
    """The kernel ABI: pointer, sizes, strides in elements; or the bits of a scalar."""
    if isinstance(argument, np.ndarray):
        strides = [s // argument.itemsize for s in argument.strides]
        return [argument.ctypes.data, *argument.shape, *strides]
    if isinstance(argument, float):
        return [struct.unpack("<q", struct.pack("<d", argument))[0]]
    return [argument]


def elementwise(body: str, types: Sequence[str], result: str, lanes: int) -> str:
    """A function that applies `body` (%0, %1, ... to %r) to 8 elements; `lanes` at a time, 0: scalars."""
    arguments = ", ".join(f"%m{i}: memref<8x{t}>" for i, t in enumerate(types))
    step = max(lanes, 1)
    lines = [f"func.func @main({arguments}, %out: memref<8x{result}>) {{"]
    lines += [f"  %{name} = arith.constant {n} : index" for name, n in (("b", 0), ("e", 8))]
    lines += [f"  %s = arith.constant {step} : index", "  scf.for %i = %b to %e step %s {"]
    for i, type in enumerate(types):
        of = f"memref<8x{type}>"
        if lanes:
            lines.append(f"    %{i} = vector.load %m{i}[%i] : {of}, vector<{lanes}x{type}>")
        else:
            lines.append(f"    %{i} = memref.load %m{i}[%i] : {of}")
    for type in {*types, result, "i1", "f32", "f64", "i64", "i32", "i8"}:
        body = body.replace(f"<{type}>", f"vector<{lanes}x{type}>" if lanes else type)
    lines.append(f"    {body}")
    if lanes:
        vector = f"vector<{lanes}x{result}>"
        lines.append(f"    vector.store %r, %out[%i] : memref<8x{result}>, {vector}")
    else:
        lines.append(f"    memref.store %r, %out[%i] : memref<8x{result}>")
    return "\n".join([*lines, "  }", "  func.return", "}"])


def same(left: Array, right: Array) -> bool:
    """Equal bits, any NaN equal to any other."""
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    nan = np.isnan(left) & np.isnan(right)
    return bool(np.all(nan | (left.view(f"i{left.itemsize}") == right.view(f"i{right.itemsize}"))))


FLOATS = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
INTEGERS = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": lambda a, b: np.maximum(a.view(np.uint64), b.view(np.uint64)).view(np.int64),
    "minui": lambda a, b: np.minimum(a.view(np.uint64), b.view(np.uint64)).view(np.int64),
    "divsi": lambda a, b: np.trunc(a / b).astype(np.int64),
    "divui": lambda a, b: (a.view(np.uint64) // b.view(np.uint64)).view(np.int64),
    "remsi": np.fmod,
    "remui": lambda a, b: (a.view(np.uint64) % b.view(np.uint64)).view(np.int64),
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": lambda a, b: (a.view(np.uint64) >> b.view(np.uint64)).view(np.int64),
}


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("name", FLOATS)
def test_float_operations(name: str, lanes: int) -> None:
    run = compiled(elementwise(f"%r = arith.{name} %0, %1 : <f32>", ("f32", "f32"), "f32", lanes))
    for shift in range(8):
        a, b, out = SPECIAL, np.roll(SPECIAL, shift), np.empty(8, np.float32)
        run(a, b, out)
        with np.errstate(all="ignore"):
            expected = FLOATS[name](a, b)
        if name in ("maximumf", "minimumf", "maxnumf", "minnumf"):
            equal = a == b  # NumPy may return either zero; -0 < +0 has a test of its own
            out[equal], expected[equal] = 0, 0
        assert same(out, expected), (a, b, out, expected)


@pytest.mark.parametrize("lanes", [0, 4])
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_operations(name: str, lanes: int) -> None:
    run = compiled(elementwise(f"%r = arith.{name} %0, %1 : <i64>", ("i64", "i64"), "i64", lanes))
    a = np.array([0, 1, -1, 7, -7, 100, -(2**40), 2**40 + 3], np.int64)
    b = np.array([3, 1, 5, 2, 3, 63, 7, 40], np.int64)
    out = np.empty(8, np.int64)
    run(a, b, out)
    assert same(out, INTEGERS[name](a, b))


@pytest.mark.parametrize("lanes", [0, 8])
def test_minimum_and_maximum_order_zeros_and_keep_nan(lanes: int) -> None:
    body = "%x = arith.maximumf %0, %1 : <f32>\n%r = arith.minimumf %x, %2 : <f32>"
    run = compiled(elementwise(body, ("f32", "f32", "f32"), "f32", lanes))
    zeros = np.array([0.0, -0.0] * 4, np.float32)
    top, out = np.full(8, np.inf, np.float32), np.empty(8, np.float32)
    run(zeros, -zeros, top, out)
    assert not np.signbit(out).any()
    run(zeros, np.full(8, np.nan, np.float32), top, out)
    assert np.isnan(out).all()


ORDERED = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b)),
}


def float_predicate(name: str, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    fixed = {"false": False, "true": True}
    if name in fixed:
        return np.full(a.shape, fixed[name])
    if name in ("ord", "uno"):
        return unordered if name == "uno" else ~unordered
    ordered = ORDERED[name[1:]](a, b)
    return ordered | unordered if name[0] == "u" else ordered & ~unordered


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize(
    "name",
    [
        "false",
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
        "true",
    ],
)
def test_float_comparisons(name: str, lanes: int) -> None:
    body = f"%c = arith.cmpf {name}, %0, %1 : <f32>\n%r = arith.extui %c : <i1> to <i8>"
    run = compiled(elementwise(body, ("f32", "f32"), "i8", lanes))
    for shift in range(8):
        a, b, out = SPECIAL, np.roll(SPECIAL, shift), np.full(8, 9, np.int8)
        run(a, b, out)
        assert out.tolist() == float_predicate(name, a, b).astype(np.int8).tolist()


@pytest.mark.parametrize("lanes", [0, 4])
@pytest.mark.parametrize(
    "name", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
)
def test_integer_comparisons_and_select(name: str, lanes: int) -> None:
    condition = "<i1>, <i64>" if lanes else "i64"
    body = f"%c = arith.cmpi {name}, %0, %1 : <i64>\n%r = arith.select %c, %0, %1 : {condition}"
    run = compiled(elementwise(body, ("i64", "i64"), "i64", lanes))
    a = np.array([0, 1, -1, 5, 5, -(2**63), 2**63 - 1, -3], np.int64)
    b = np.array([0, -1, 1, 5, 4, 2**63 - 1, -(2**63), -2], np.int64)
    out = np.empty(8, np.int64)
    run(a, b, out)
    left, right = (a.view(np.uint64), b.view(np.uint64)) if name[0] == "u" else (a, b)
    compare = ORDERED[name[-2:]] if name not in ("eq", "ne") else np.not_equal
    chosen = left == right if name == "eq" else compare(left, right)
    assert same(out, np.where(chosen, a, b))


CASTS = {
    "sitofp": ("i32", "f32", np.int32, np.float32),
    "fptosi": ("f32", "i32", np.float32, np.int32),
    "extsi": ("i8", "i64", np.int8, np.int64),
    "trunci": ("i64", "i8", np.int64, np.int8),
    "extf": ("f32", "f64", np.float32, np.float64),
    "truncf": ("f64", "f32", np.float64, np.float32),
}


@pytest.mark.parametrize("lanes", [0, 4])
@pytest.mark.parametrize("name", CASTS)
def test_casts(name: str, lanes: int) -> None:
    source, target, dtype, result = CASTS[name]
    run = compiled(
        elementwise(f"%r = arith.{name} %0 : <{source}> to <{target}>", (source,), target, lanes)
    )
    a = np.array([0, 1, -1, 5, 100, -100, 3.75, -3.75]).astype(dtype)
    out = np.empty(8, result)
    run(a, out)
    assert same(out, a.astype(result))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize(
    ("name", "reference"),
    [("sqrt", np.sqrt), ("absf", np.abs), ("floor", np.floor), ("ceil", np.ceil)]
    + [("trunc", np.trunc), ("roundeven", np.rint)],
)
def test_math(name: str, reference: Callable[[Array], Array], lanes: int) -> None:
    run = compiled(elementwise(f"%r = math.{name} %0 : <f32>", ("f32",), "f32", lanes))
    out = np.empty(8, np.float32)
    run(SPECIAL, out)
    with np.errstate(all="ignore"):
        assert same(out, reference(SPECIAL))


# ---- rounding


@pytest.mark.parametrize("features", LEVELS)
@pytest.mark.parametrize("lanes", [0, 8])
def test_a_product_and_a_sum_are_two_roundings_and_fma_is_one(lanes: int, features: str) -> None:
    x = np.full(8, 1 + 2**-12, np.float32)
    minus = np.full(8, -(1 + 2**-11), np.float32)
    out = np.empty(8, np.float32)
    two = "%p = arith.mulf %0, %0 : <f32>\n%r = arith.addf %p, %1 : <f32>"
    compiled(elementwise(two, ("f32", "f32"), "f32", lanes), features)(x, minus, out)
    assert (out == 0).all()
    one = "%r = math.fma %0, %0, %1 : <f32>"
    compiled(elementwise(one, ("f32", "f32"), "f32", lanes), features)(x, minus, out)
    assert (out == 2.0**-24).all()


@pytest.mark.parametrize("name", elementary_functions())
@pytest.mark.parametrize("features", LEVELS)
def test_elementary_functions_have_the_bits_of_their_specification(
    name: str, features: str
) -> None:
    edges = np.array([88.8, -103.9, 20, -20, 0.6875, 1e-30, -87.4, 3.14])
    wide = np.array([709.9, -745.2, 1.0, -6.1, 0.85, 1e-310, 1e300, -1e-310])
    for type, dtype in (("f32", np.float32), ("f64", np.float64)):
        for lanes in (0, 4, 8):
            known = name in ("exp", "rsqrt", "tanh", "log", "erf")
            function = f"math.{name}" if known else f'loop.elementary "{name}"'
            body = f"%r = {function} %0 : <{type}>"
            run = compiled(elementwise(body, (type,), type, lanes), features)
            for values in (SPECIAL, edges, wide):
                with np.errstate(over="ignore", under="ignore"):
                    x = values.astype(dtype)
                out = np.empty(8, dtype)
                run(x, out)
                assert same(out, oracle.elementary(name, x))


# ---- memory


MASKED = """
func.func @main(%a: memref<?xf32>, %out: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %8 = arith.constant 8 : index
  %pad = arith.constant dense<0.0> : vector<8xf32>
  %n = memref.dim %a, %0 : memref<?xf32>
  scf.for %i = %0 to %n step %8 {
    %left = arith.subi %n, %i : index
    %m = vector.create_mask %left : vector<8xi1>
    %x = vector.maskedload %a[%i], %m, %pad : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
    vector.maskedstore %out[%i], %m, %x : memref<?xf32>, vector<8xi1>, vector<8xf32>
  }
  func.return
}
"""


@pytest.mark.parametrize("features", LEVELS)
def test_masked_stores_touch_nothing_else(features: str) -> None:
    run = compiled(MASKED, features)
    for n in range(20):
        for start in range(3):  # not aligned to a vector either
            a = np.arange(40, dtype=np.float32)[start : start + n]
            buffer = np.full(40, CANARY, np.float32)
            run(a, buffer[8 + start : 8 + start + n])
            assert (buffer[: 8 + start] == CANARY).all()
            assert (buffer[8 + start + n :] == CANARY).all()
            assert (buffer[8 + start : 8 + start + n] == a).all()


def test_strided_arguments_and_scalars() -> None:
    run = compiled("""
func.func @main(%a: memref<?x?xf32, strided<[?, ?], offset: ?>>, %x: f64, %flip: i1, %k: i64,
                %out: memref<?x?xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = memref.dim %out, %0 : memref<?x?xf64>
  %m = memref.dim %out, %1 : memref<?x?xf64>
  %kf = arith.sitofp %k : i64 to f64
  %f = arith.select %flip, %x, %kf : f64
  scf.for %i = %0 to %n step %1 {
    scf.for %j = %0 to %m step %1 {
      %e = memref.load %a[%i, %j] : memref<?x?xf32, strided<[?, ?], offset: ?>>
      %w = arith.extf %e : f32 to f64
      %r = arith.mulf %w, %f : f64
      memref.store %r, %out[%i, %j] : memref<?x?xf64>
    }
  }
  func.return
}""")
    base = np.arange(60, dtype=np.float32).reshape(6, 10)
    for a in (base, base.T, base[::2, ::3], base[::-1, ::-1], base[:0]):
        for flip, factor in ((1, 2.5), (0, 3.0)):
            out = np.full(a.shape, CANARY, np.float64)
            run(a, 2.5, flip, 3, out)
            assert (out == a * np.float64(factor)).all()


def test_views_compute_the_addresses_of_numpy() -> None:
    run = compiled("""
func.func @main(%a: memref<4x6xf32>, %i: i64, %out: memref<6xf32>) {
  %at = arith.index_cast %i : i64 to index
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %s = memref.subview %a[%at, 1][2, 2][1, 3] : memref<4x6xf32> to memref<2x2xf32, strided<[6, 3], offset: ?>>
  %x0 = memref.load %s[%0, %1] : memref<2x2xf32, strided<[6, 3], offset: ?>>
  %x1 = memref.load %s[%1, %0] : memref<2x2xf32, strided<[6, 3], offset: ?>>
  %c = memref.collapse_shape %a [[0, 1]] : memref<4x6xf32> into memref<24xf32>
  %x2 = memref.load %c[%5] : memref<24xf32>
  %e = memref.expand_shape %c [[0, 1]] output_shape [3, 8] : memref<24xf32> into memref<3x8xf32>
  %x3 = memref.load %e[%2, %3] : memref<3x8xf32>
  %row = memref.subview %a[%at, 0][1, 6][1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
  %x4 = memref.load %row[%5] : memref<6xf32, strided<[1], offset: ?>>
  %t = memref.reinterpret_cast %a to offset: [2], sizes: [6, 4], strides: [1, 6] : memref<4x6xf32> to memref<6x4xf32, strided<[1, 6], offset: 2>>
  %x5 = memref.load %t[%at, %2] : memref<6x4xf32, strided<[1, 6], offset: 2>>
  memref.store %x0, %out[%0] : memref<6xf32>
  memref.store %x1, %out[%1] : memref<6xf32>
  memref.store %x2, %out[%2] : memref<6xf32>
  memref.store %x3, %out[%3] : memref<6xf32>
  memref.store %x4, %out[%4] : memref<6xf32>
  memref.store %x5, %out[%5] : memref<6xf32>
  func.return
}""")
    a, out = np.arange(24, dtype=np.float32).reshape(4, 6), np.empty(6, np.float32)
    for i in range(3):
        run(a, i, out)
        s = a[i : i + 2, 1:6:3]
        expected = [
            s[0, 1],
            s[1, 0],
            a.ravel()[5],
            a.reshape(3, 8)[2, 3],
            a[i, 5],
            a.ravel()[2 + i + 12],
        ]
        assert out.tolist() == expected


def test_an_alloca_in_a_loop_does_not_grow_the_stack() -> None:
    run = compiled("""
func.func @main(%n: i64, %out: memref<1xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %end = arith.index_cast %n : i64 to index
  %x = arith.constant 1.0 : f32
  scf.for %i = %0 to %end step %1 {
    %buffer = memref.alloca() : memref<64xf32>
    memref.store %x, %buffer[%0] : memref<64xf32>
    %y = memref.load %buffer[%0] : memref<64xf32>
    memref.store %y, %out[%0] : memref<1xf32>
  }
  func.return
}""")
    out = np.zeros(1, np.float32)
    run(1_000_000, out)  # 256 MB if each iteration kept its own
    assert out[0] == 1


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 0, 1), (5, 3, 1), (0, 7, 3), (2, 9, 1)])
def test_loops_carry_values(lower: int, upper: int, step: int) -> None:
    run = compiled("""
func.func @main(%lb: i64, %ub: i64, %st: i64, %out: memref<2xi64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %l = arith.index_cast %lb : i64 to index
  %u = arith.index_cast %ub : i64 to index
  %s = arith.index_cast %st : i64 to index
  %a, %b = scf.for %i = %l to %u step %s iter_args(%x = %zero, %y = %ub) -> (i64, i64) {
    %k = arith.index_cast %i : index to i64
    %even = arith.andi %k, %st : i64
    %c = arith.cmpi eq, %even, %zero : i64
    %d = scf.if %c -> (i64) {
      %sum = arith.addi %x, %k : i64
      scf.yield %sum : i64
    } else {
      scf.yield %x : i64
    }
    scf.yield %y, %d : i64, i64
  }
  memref.store %a, %out[%0] : memref<2xi64>
  memref.store %b, %out[%1] : memref<2xi64>
  func.return
}""")
    x, y = 0, upper
    for k in range(lower, upper, step):
        x, y = y, x + k if not k & step else x
    out = np.zeros(2, np.int64)
    run(lower, upper, step, out)
    assert out.tolist() == [x, y]


# ---- classes of an embedding compiler, text, levels


def test_comparisons_of_xdsl_lower_like_ours() -> None:
    text = elementwise(
        "%c = arith.cmpf ugt, %0, %1 : f32\n%d = arith.cmpi ne, %i, %b : index\n"
        "%x = arith.andi %c, %d : i1\n%r = arith.select %x, %0, %1 : f32",
        ("f32", "f32"),
        "f32",
        0,
    )
    theirs = Context()
    for dialect in (builtin.Builtin, func.Func, scf.Scf, memref.MemRef, arith.Arith):
        theirs.load_dialect(dialect)
    assert (
        type(
            next(op for op in Parser(theirs, text).parse_module().walk() if op.name == "arith.cmpf")
        )
        is arith.CmpfOp
    )
    assert llvm_ir(lowered(text, theirs)) == llvm_ir(lowered(text))


def test_the_widest_level_asks_for_its_vectors() -> None:
    text = elementwise("%r = arith.addf %0, %0 : <f32>", ("f32",), "f32", 8).replace("8x", "16x")
    ir = llvm_ir(lowered(text), function_attributes("x86-64-v4"))
    assert "zmm" in emit_assembly(ir, "x86-64-v4")
    assert "zmm" not in emit_assembly(llvm_ir(lowered(text, features="x86-64-v3")), "x86-64-v3")


def test_other_cpus_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(CompileError, match="needs an x86-64 CPU, this is aarch64"):
        compile_llvm_module(ModuleOp([]), "x86-64-v3")


def test_levels_are_those_of_this_cpu() -> None:
    flags = Path("/proc/cpuinfo").read_text().split()
    assert ("avx2" in flags and "fma" in flags) == (HERE in ("x86-64-v3", "x86-64-v4"))


def test_vectors_of_several_registers_are_interleaved_where_asked() -> None:
    """The option of LLVM behind it holds for the process: it is set for each module."""
    text = elementwise("%r = math.erf %0 : <f32>", ("f32",), "f32", 8).replace("8x", "32x")
    ir = llvm_ir(lowered(text))
    apart, together, again = (emit_assembly(ir, "x86-64-v3", way) for way in (False, True, False))
    assert apart == again != together
