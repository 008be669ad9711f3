"""The C view, built with gcc, against the interpreter of loops: the same bits at every scalar stage."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from loop_eval import interpret
from unit.test_loop_passes_keep_meaning import (
    ELEMENTWISE,
    FOLDS,
    SUM,
    elementwise_arguments,
    matmul,
    numbers,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from jitdialects.dialects.context import make_context
from jitdialects.lowering.c_view import module_to_c
from jitdialects.lowering.convert_loop_to_scf import ConvertLoopToScfPass
from jitdialects.passes.loop_hoist_accumulators import LoopHoistAccumulatorsPass
from jitdialects.passes.loop_interchange import LoopInterchangePass
from jitdialects.passes.loop_tile import LoopTilePass
from jitdialects.passes.loop_unroll import LoopUnrollPass

CONTEXT = make_context()
FLAGS = [
    "-std=c99",
    "-O1",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-Wall",
    "-Werror",
    "-shared",
    "-fPIC",
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ctypes.CDLL]:
    """C text to a loaded library, each text once."""
    folder = tmp_path_factory.mktemp("c_view")

    @cache
    def compiled(text: str) -> ctypes.CDLL:
        source = Path(folder, f"view{abs(hash(text))}.c")
        source.write_text(text)
        library = source.with_suffix(".so")
        subprocess.run(["gcc", *FLAGS, str(source), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))

    return compiled


def slots_of(arguments: Sequence) -> ctypes.Array:
    """The kernel ABI, version 1: pointer, sizes, strides in elements; scalars in one slot."""
    slots: list[int] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            strides = [stride // value.itemsize for stride in value.strides]
            slots += [value.ctypes.data, *value.shape, *strides]
        elif isinstance(value, float):
            slots.append(int(np.float64(value).view(np.int64)))
        else:
            slots.append(int(value))
    return (ctypes.c_int64 * len(slots))(*slots)


def parse(text: str) -> ModuleOp:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


STAGES: dict[str, list[ModulePass]] = {
    "nests": [],
    "tiled": [LoopTilePass((2, 4)), LoopInterchangePass((1, 0)), ConvertLoopToScfPass()],
    "hoisted": [ConvertLoopToScfPass(), LoopHoistAccumulatorsPass(), LoopUnrollPass(4)],
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("program", ["matmul", "sum", "elementwise"])
def test_same_bits_as_the_interpreter(build: Callable, stage: str, program: str) -> None:
    def arguments() -> list:
        if program == "matmul":
            inputs = [numbers(5, 7), numbers(7, 9, seed=1), numbers(9, seed=2)]
            return [*inputs, np.zeros((5, 9), "f4")]
        if program == "sum":
            return [numbers(3, 77), np.zeros(3, "f4")]
        given = elementwise_arguments(37, 0, 37)
        return [*given[:2], 1.5, *given[3:]]

    text = {
        "matmul": matmul(5, 7, 9, static=False),
        "sum": SUM.replace("FOLDS", FOLDS),
        "elementwise": ELEMENTWISE.format(n="?")
        .replace("%s: f32", "%s64: f64")
        .replace("%zero =", "%s = arith.truncf %s64 : f64 to f32\n  %zero =", 1),
    }[program]
    module = parse(text)
    for one in STAGES[stage]:
        one.apply(CONTEXT, module)
    expected, actual = arguments(), arguments()
    interpret(module, "f", *expected)
    assert build(module_to_c(module)).jd_entry(slots_of(actual)) == 0
    for have, want in zip(actual, expected, strict=True):
        if isinstance(want, np.ndarray):
            np.testing.assert_array_equal(have, want)
            finite = ~np.isnan(want) if want.dtype.kind == "f" else np.ones(want.shape, bool)
            assert have[finite].tobytes() == want[finite].tobytes()


BRANCHES = """
func.func @f(%x: memref<4xi64>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%zero, %one : i64, i64)
^head(%a: i64, %b: i64):
  %go = arith.cmpi slt, %a, %n : i64
  cf.cond_br %go, ^body, ^done
^body:
  %even = arith.andi %a, %one : i64
  %odd = arith.cmpi ne, %even, %zero : i64
  %s = scf.if %odd -> (i64) {
    scf.yield %b : i64
  } else {
    %t = arith.addi %b, %a : i64
    scf.yield %t : i64
  }
  %next = arith.addi %b, %one : i64
  cf.br ^head(%s, %next : i64, i64)
^done:
  memref.store %a, %x[%c0] : memref<4xi64>
  memref.store %b, %x[%c1] : memref<4xi64>
  func.return
}
"""


def test_branches_assign_block_arguments_at_once(build: Callable) -> None:
    for n in (0, 1, 5, 40):
        expected, actual = np.zeros(4, np.int64), np.zeros(4, np.int64)
        interpret(parse(BRANCHES), "f", expected, n)
        assert build(module_to_c(parse(BRANCHES))).jd_entry(slots_of([actual, n])) == 0
        assert actual.tolist() == expected.tolist()


SWAP = """
func.func @f(%x: memref<2xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one) -> (i64, i64) {
    %c = arith.addi %a, %b : i64
    scf.yield %b, %c : i64, i64
  }
  memref.store %r, %x[%c0] : memref<2xi64>
  memref.store %s, %x[%c1] : memref<2xi64>
  func.return
}
"""


def test_carried_values_change_at_once(build: Callable) -> None:
    actual = np.zeros(2, np.int64)
    assert build(module_to_c(parse(SWAP))).jd_entry(slots_of([actual, 10])) == 0
    assert actual.tolist() == [55, 89]


SCALARS = """
func.func @f(%x: memref<8xf32>, %a: memref<8xi64>, %out: memref<8x10xi64>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %min = arith.constant -9223372036854775808 : i64
  %three = arith.constant 3 : i64
  %zero = arith.constant -0.0 : f32
  loop.nest (%i) = (%c0) to (%c8) step (1) kinds [parallel] {
STORES
  }
  func.return
}
"""
EXPRESSIONS = (
    "arith.muli %v, %min : i64",
    "arith.shli %v, %three : i64",
    "arith.shrsi %v, %three : i64",
    "arith.shrui %v, %three : i64",
    "arith.remsi %v, %three : i64",
    "arith.divsi %v, %three : i64",
    "arith.maxui %v, %three : i64",
    "arith.extui %one : i1 to i64",
    "arith.extui %ult : i1 to i64",
    "arith.extsi %bits : i32 to i64",
)


def test_scalar_operations(build: Callable) -> None:
    head = """
    %f = memref.load %x[%i] : memref<8xf32>
    %v = memref.load %a[%i] : memref<8xi64>
    %one = arith.cmpf one, %f, %zero : f32
    %ult = arith.cmpf ult, %f, %zero : f32
    %m = arith.maximumf %f, %zero : f32
    %bits = arith.bitcast %m : f32 to i32
    """
    stores = [
        f"%c{n}_ = arith.constant {n} : index\n %r{n} = {text}\n"
        f" memref.store %r{n}, %out[%i, %c{n}_] : memref<8x10xi64>\n"
        for n, text in enumerate(EXPRESSIONS)
    ]
    module = parse(SCALARS.replace("STORES", head + "".join(stores)))
    x = np.array([0.0, -0.0, np.inf, -np.inf, 1.5, -1.5, 1e-45, 3e38], "f4")
    a = np.array([0, 1, -1, 2**63 - 1, -(2**63), 12, -12, 5], np.int64)
    expected, actual = np.zeros((8, 10), np.int64), np.zeros((8, 10), np.int64)
    interpret(module, "f", x, a, expected)
    assert build(module_to_c(module)).jd_entry(slots_of([x, a, actual])) == 0
    assert actual.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("%e = math.exp %s : f32", "math.exp: run expand-elementary first"),
        ("%e = math.rsqrt %s : f32", "math.rsqrt: run expand-elementary first"),
        ('%e = loop.elementary "gelu" %s : f32', "loop.elementary: run expand-elementary first"),
        ("%e = vector.broadcast %s : f32 to vector<4xf32>", "take the view before loop-vectorize"),
        ("%e = math.sin %s : f32", "math.sin: it has no scalar form here"),
    ],
)
def test_refusals_name_the_operation_and_what_helps(line: str, sentence: str) -> None:
    type = "vector<4xf32>" if "vector" in line else "f32"
    store = "memref.store %e, %x[] : memref<f32>"
    if type != "f32":
        store = "%c0 = arith.constant 0 : index\n vector.store %e, %y[%c0] : memref<4xf32>, vector<4xf32>"
    text = (
        "func.func @f(%x: memref<f32>, %y: memref<4xf32>) {\n %s = memref.load %x[] : memref<f32>\n"
        f" {line}\n {store}\n func.return\n}}"
    )
    with pytest.raises(DiagnosticException, match=sentence):
        module_to_c(parse(text))
