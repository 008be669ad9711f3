"""Meaning: a pass of `tssa` never changes the bits that a function computes, NaN's own bits
apart.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tssa_eval import run
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from jitdialects.analysis.dominance import check_dominance
from jitdialects.bytecode.dims import evaluate
from jitdialects.bytecode.dtypes import INT32
from jitdialects.bytecode.operators import OPERATORS, Kind
from jitdialects.bytecode.program import Program
from jitdialects.dialects.context import make_context
from jitdialects.dialects.tssa_types import dtype_of, shape_of
from jitdialects.lowering.bytecode_to_vm import program_to_module
from jitdialects.lowering.convert_vm_to_tssa import ConvertVmToTssaPass
from jitdialects.passes.exact_numpy import EXACT
from jitdialects.passes.tssa_align import TssaAlignPass
from jitdialects.passes.tssa_cse import TssaCsePass
from jitdialects.passes.tssa_dce import TssaDcePass
from jitdialects.passes.tssa_fold_constants import TssaFoldConstantsPass
from jitdialects.passes.tssa_hoist import TssaHoistPass
from jitdialects.passes.tssa_if_convert import TssaIfConvertPass
from jitdialects.passes.tssa_simplify import RULES, TssaSimplifyPass, simplify_region
from jitdialects.passes.tssa_sink_constants import TssaSinkConstantsPass

CONTEXT = make_context()
PASSES = (
    TssaFoldConstantsPass(),
    TssaSimplifyPass(),
    TssaIfConvertPass(),
    TssaCsePass(),
    TssaDcePass(),
    TssaHoistPass(),
    TssaAlignPass(),
    TssaSinkConstantsPass(),
)
NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, NAN, INF, -INF, 1e-45, 3.4e38, 2.0**63, -(2.0**63)]
INTS = [0, 1, -1, 2, 63, 64, -64, 2**24 + 1, 2**53 + 1, 2**63 - 1, -(2**63)]
NARROW = [0, 1, -1, 2, 31, 32, -32, 2**24 + 1, 2**31 - 1, -(2**31)]
DOUBLES = [*FLOATS, 1e-300, 1e300, 2.0**31, -(2.0**31) - 0.5, 2.0**31 - 0.5, 1 + 2.0**-52]
VALUES = {"f32": FLOATS, "f64": DOUBLES, "i32": NARROW, "i64": INTS, "i1": [False, True]}
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_}


def parse(text: str) -> ModuleOp:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


def same_bits(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    for x, y in zip(left, right, strict=True):
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype.kind == "f":
            both_nan = np.isnan(x) & np.isnan(y)
            x, y = np.where(both_nan, 0, x), np.where(both_nan, 0, y)
        if x.tobytes() != y.tobytes():
            return False
    return True


def check(module: ModuleOp, inputs: Sequence[Sequence[Any]]) -> ModuleOp:
    """Every pass alone and all in a row give the same results on `inputs`; returns the last
    module."""
    wanted = [run(module, arguments) for arguments in inputs]
    everything = module.clone()
    for each in PASSES:
        alone = module.clone()
        for changed in (alone, everything):
            each.apply(CONTEXT, changed)
            changed.verify()
            check_dominance(changed)
            for arguments, results in zip(inputs, wanted, strict=True):
                assert same_bits(run(changed, arguments), results), (
                    f"{each.name}\n{module}\n{changed}"
                )
    return everything


# ---- every operator on every pair of special values --------------------------------------------


def literal(value: Any, kind: str) -> str:
    """The text of an element or a list of them; floats by their bytes."""
    if kind in ("f32", "f64"):
        return f'"0x{np.array(value, DTYPES[kind]).tobytes().hex().upper()}"'
    return str(value).lower()


BINARY = [o.name for o in OPERATORS.values() if o.kind is Kind.ELEMENTWISE and o.arity == 2]


def result_kind(name: str, kind: str) -> str | None:
    dtypes = {k: np.dtype(dtype).name for k, dtype in DTYPES.items()}
    from jitdialects.bytecode.dtypes import DType
    from jitdialects.errors import Error

    operator = OPERATORS[name]
    try:
        typing = operator.infer_dtypes([DType(dtypes[kind])] * operator.arity, {})
    except Error:
        return None
    if any(t.name != dtypes[kind] for t in typing.operands):
        return None
    return {v: k for k, v in dtypes.items()}[typing.result.name]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_with_each_constant_on_each_side(name: str, kind: str) -> None:
    result = result_kind(name, kind)
    if result is None:
        return
    values = np.array(VALUES[kind], DTYPES[kind])
    n = len(values)
    t, r = f"tensor<{n}x{kind}>", f"tensor<{n}x{result}>"
    everything = literal(VALUES[kind], kind)
    body = [f"%all = tssa.constant {{value = dense<{everything}> : {t}}} : () -> {t}"]
    results = []
    for i, value in enumerate(VALUES[kind]):
        body.append(
            f"%s{i} = tssa.constant {{value = dense<{literal(value, kind)}> : tensor<{kind}>}} "
            f": () -> tensor<{kind}>"
        )
        body.append(f"%c{i} = tssa.broadcast %s{i} : (tensor<{kind}>) -> {t}")
    for i in range(n):
        body.append(f"%a{i} = tssa.{name} %x, %c{i} : ({t}, {t}) -> {r}")
        body.append(f"%b{i} = tssa.{name} %c{i}, %x : ({t}, {t}) -> {r}")
        results += [f"%a{i}", f"%b{i}"]
        body.append(f"%d{i} = tssa.{name} %c{i}, %all : ({t}, {t}) -> {r}")
        results.append(f"%d{i}")
    body.append(f"%e = tssa.{name} %x, %x : ({t}, {t}) -> {r}")
    results.append("%e")
    types = ", ".join([r] * len(results))
    text = f"func.func @f(%x : {t}) -> ({types}) {{\n" + "\n".join(body)
    text += f"\nfunc.return {', '.join(results)} : {types}\n}}"
    changed = check(parse(text), [[values], [values[::-1]]])
    if name in EXACT:
        left = sum(op.name == f"tssa.{name}" for op in changed.walk())
        assert left <= 2 * n + 1, "operations on constants are left"


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("middle", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts_of_casts(source: str, middle: str, target: str) -> None:
    x, y, z = (f"tensor<{k}>" for k in (source, middle, target))
    casts = [f"%y = tssa.cast %x : ({x}) -> {y}", f"%z = tssa.cast %y : ({y}) -> {z}"]
    text = f"func.func @f(%x : {x}) -> {z} {{\n{casts[0]}\n{casts[1]}\nfunc.return %z : {z}\n}}"
    check(parse(text), [[v] for v in VALUES[source]])
    body = []
    for k, value in enumerate(VALUES[source]):  # folded as well
        elements = f"dense<{literal(value, source)}> : {x}"
        lines = [f"%x = tssa.constant {{value = {elements}}} : () -> {x}", *casts]
        body += [re.sub(r"%([xyz])", rf"%\g<1>{k}", line) for line in lines]
    results = ", ".join(f"%z{k}" for k in range(len(VALUES[source])))
    types = ", ".join([z] * len(VALUES[source]))
    lines = "\n".join([*body, f"func.return {results} : {types}"])
    changed = check(parse(f"func.func @f() -> ({types}) {{\n{lines}\n}}"), [[]])
    assert not any(op.name == "tssa.cast" for op in changed.walk())


@pytest.mark.parametrize("kind", DTYPES)
def test_unary_operators_and_where(kind: str) -> None:
    t, b = f"tensor<{kind}>", "tensor<i1>"
    lines = []
    if kind != "i1":
        lines += [f"%n = tssa.negative %x : ({t}) -> {t}", f"%m = tssa.negative %n : ({t}) -> {t}"]
        lines += [f"%p = tssa.abs %n : ({t}) -> {t}", f"%q = tssa.abs %p : ({t}) -> {t}"]
    else:
        lines += [f"%n = tssa.logical_not %x : ({t}) -> {t}"]
        lines += [f"%m = tssa.logical_not %n : ({t}) -> {t}"]
        lines += [
            f"%p = tssa.abs %x : ({t}) -> {t}",
            f"%q = tssa.logical_and %x, %p : ({t}, {t}) -> {t}",
        ]
    lines += [
        f"%true = tssa.constant {{value = dense<true> : {b}}} : () -> {b}",
        f"%false = tssa.constant {{value = dense<false> : {b}}} : () -> {b}",
        f"%w0 = tssa.where %true, %x, %y : ({b}, {t}, {t}) -> {t}",
        f"%w1 = tssa.where %false, %x, %y : ({b}, {t}, {t}) -> {t}",
        f"%w2 = tssa.where %c, %x, %x : ({b}, {t}, {t}) -> {t}",
        f"%w3 = tssa.where %c, %x, %y : ({b}, {t}, {t}) -> {t}",
    ]
    names = ["%n", "%m", "%p", "%q", "%w0", "%w1", "%w2", "%w3"]
    types = ", ".join([t] * len(names))
    text = f"func.func @f(%x : {t}, %y : {t}, %c : {b}) -> ({types}) {{\n" + "\n".join(lines)
    text += f"\nfunc.return {', '.join(names)} : {types}\n}}"
    inputs = itertools.product(VALUES[kind], VALUES[kind], (False, True))
    check(parse(text), [list(row) for row in inputs])


UNARY = [o.name for o in OPERATORS.values() if o.kind is Kind.ELEMENTWISE and o.arity == 1]


@pytest.mark.parametrize("kind", DTYPES)
def test_unary_operators_and_where_of_constants(kind: str) -> None:
    values = VALUES[kind]
    n = len(values)
    t, b = f"tensor<{n}x{kind}>", f"tensor<{n}xi1>"
    flags = [k % 2 == 0 for k in range(n)]
    lines = [
        f"%x = tssa.constant {{value = dense<{literal(values, kind)}> : {t}}} : () -> {t}",
        f"%y = tssa.constant {{value = dense<{literal(values[::-1], kind)}> : {t}}} : () -> {t}",
        f"%c = tssa.constant {{value = dense<{literal(flags, 'i1')}> : {b}}} : () -> {b}",
        f"%w = tssa.where %c, %x, %y : ({b}, {t}, {t}) -> {t}",
    ]
    names = ["%w"]
    for name in UNARY:
        if name != "cast" and result_kind(name, kind) == kind:
            lines.append(f"%{name} = tssa.{name} %x : ({t}) -> {t}")
            names.append(f"%{name}")
    types = ", ".join([t] * len(names))
    lines.append(f"func.return {', '.join(names)} : {types}")
    changed = check(parse(f"func.func @f() -> ({types}) {{\n" + "\n".join(lines) + "\n}"), [[]])
    left = {op.name.removeprefix("tssa.") for op in changed.walk()}
    assert not left & set(EXACT)


@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_comparisons_of_int32_with_wide_constants(name: str) -> None:
    t, w = "tensor<i32>", "tensor<i64>"
    lines = [f"%w = tssa.cast %x : ({t}) -> {w}"]
    names = []
    for k, number in enumerate([*NARROW, 2**31, -(2**31) - 1, 2**63 - 1]):
        lines.append(f"%c{k} = tssa.constant {{value = dense<{number}> : {w}}} : () -> {w}")
        lines.append(f"%a{k} = tssa.{name} %w, %c{k} : ({w}, {w}) -> tensor<i1>")
        lines.append(f"%b{k} = tssa.{name} %c{k}, %w : ({w}, {w}) -> tensor<i1>")
        names += [f"%a{k}", f"%b{k}"]
    types = ", ".join(["tensor<i1>"] * len(names))
    lines.append(f"func.return {', '.join(names)} : {types}")
    text = f"func.func @f(%x : {t}) -> ({types}) {{\n" + "\n".join(lines) + "\n}"
    changed = check(parse(text), [[v] for v in NARROW])
    compares = [op for op in changed.walk() if op.name == f"tssa.{name}"]
    narrow = [op for op in compares if dtype_of(op.operands[0]) == INT32]
    assert len(narrow) >= len(NARROW)  # equal operations were made one
    assert len(compares) - len(narrow) <= 6


# ---- generated programs ------------------------------------------------------------------------


def generated_program(rng: random.Random) -> str:
    """A loop around a branch, over mutable registers, with constants that the rules look for."""
    constants = ["float 0.0", "float -0.0", "float 1.0", "float 2.0", "float nan", "int 0", "int 1"]
    lines = [f"#{k} = {c}" for k, c in enumerate(constants)]
    lines += ["func @main(%0, %1, %2) -> 3 {", "^entry:"]
    lines += [f"%{3 + k} = const #{k}" for k in range(7)]
    lines += ["%10 = move %0", "%11 = move %1", "%12 = move %2", "%13 = const #5", "br ^head"]
    lines += [
        "^head:",
        "%14 = const #3",
        "%15 = less %13, %14",
        "cond_br %15, ^body, ^exit",
        "^body:",
    ]
    lines += generated_instructions(rng)
    lines += ["%16 = sum %10", "%17 = less %16, %5", "cond_br %17, ^then, ^else", "^then:"]
    lines += generated_instructions(rng)
    lines += ["br ^join", "^else:"]
    lines += generated_instructions(rng)
    lines += ["br ^join", "^join:", "%13 = add %13, %9", "br ^head"]
    lines += ["^exit:", "return %10, %11, %12", "}"]
    return "\n".join(lines)


def generated_instructions(rng: random.Random) -> list[str]:
    floats, ints = ["%10", "%11"], ["%12"]
    out = []
    for _ in range(rng.randrange(1, 5)):
        if rng.random() < 0.7:
            operator = rng.choice(["add", "subtract", "multiply", "divide", "minimum", "maximum"])
            target, x = rng.choice(floats), rng.choice(floats)
            y = rng.choice([*floats, "%3", "%4", "%5", "%6", "%7"])
            pair = (x, y) if rng.random() < 0.5 else (y, x)
            out.append(f"{target} = {operator} {pair[0]}, {pair[1]}")
        elif rng.random() < 0.3:
            out.append(f"{rng.choice(floats)} = negative {rng.choice(floats)}")
        else:
            operator = rng.choice(["add", "subtract", "multiply", "left_shift", "maximum"])
            out.append(f"{ints[0]} = {operator} %12, {rng.choice(['%12', '%8', '%9'])}")
    return out


@pytest.mark.parametrize("seed", range(15))
def test_generated_programs(seed: int) -> None:
    rng = random.Random(seed)
    module = program_to_module(Program.from_text(generated_program(rng)))
    ConvertVmToTssaPass(signature="main(f32[n], f32[n], i64[m])").apply(CONTEXT, module)
    module.verify()
    check_dominance(module)
    inputs = []
    for n in (0, 1, 3):
        floats = [np.array([rng.choice(FLOATS) for _ in range(n)], np.float32) for _ in range(2)]
        inputs.append([*floats, np.array([rng.choice(INTS) for _ in range(2)], np.int64)])
    check(module, inputs)


# ---- the driver --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("ends", ["^a, ^b", "^j(%x : T), ^b", "^a, ^j(%x : T)"])
def test_what_the_other_side_computes_does_not_leak(ends: str, kind: str) -> None:
    values = np.array(VALUES[kind], DTYPES[kind])
    text = """func.func @f(%p : tensor<i1>, %x : T, %y : T) -> T {
    %c = tensor.extract %p[] : tensor<i1>
    cf.cond_br %c, ENDS
    ^a:
      %u = tssa.subtract %x, %y : (T, T) -> T
      cf.br ^j(%u : T)
    ^b:
      %v = tssa.multiply %x, %y : (T, T) -> T
      cf.br ^j(%v : T)
    ^j(%w : T):
      %z = tssa.negative %w : (T) -> T
      func.return %z : T
    }"""
    text = text.replace("ENDS", ends).replace("T", f"tensor<{len(values)}x{kind}>")
    inputs = [[p, values, y] for p in (False, True) for y in (values, values[::-1])]
    changed = check(parse(text), inputs)
    assert any(op.name == "tssa.where" for op in changed.walk())
    assert not any(op.name == "cf.cond_br" for op in changed.walk())


def test_two_rules_that_undo_each_other_are_named() -> None:
    module = parse(
        """func.func @f(%x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
          %z = tssa.add %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
          func.return %z : tensor<f32>
        }"""
    )

    def swap(op: Any) -> Any:
        op.operands = tuple(reversed(op.operands))
        return op.results[0]

    def swap_left(op: Any) -> Any:
        first = next(iter(module.ops)).body.block.args[0]
        return swap(op) if op.operands[0] is first else None

    def swap_right(op: Any) -> Any:
        first = next(iter(module.ops)).body.block.args[0]
        return swap(op) if op.operands[1] is first else None

    from xdsl.utils.exceptions import PassFailedException

    with pytest.raises(PassFailedException, match="the rules swap_left and swap_right undo"):
        simplify_region(next(iter(module.ops)).body, {"tssa.add": (swap_left, swap_right)})


def test_rules_are_for_operations_that_exist() -> None:
    tssa = CONTEXT.get_optional_op
    assert all(tssa(name) is not None for name in RULES)


def test_every_rule_fires_in_the_filecheck_cases() -> None:
    fired: set[str] = set()
    folder = Path(__file__).parents[1] / "filecheck" / "passes" / "tssa-simplify"
    for file in folder.glob("*.mlir"):
        for function in parse(file.read_text()).ops:
            fired |= set(simplify_region(function.regions[0]))
    named = {rule.__name__ for rules in RULES.values() for rule in rules}
    steps = {"decide_branches", "remove_unreachable_blocks", "merge_blocks"}
    assert named | steps | {"remove_settled_arguments"} <= {r for r in fired}


@pytest.mark.parametrize("n", [1, 2, 32, 33])
def test_copies_in_front_of_loops(n: int) -> None:
    """The cases of `tssa-align`, with the sizes that they leave open."""
    folder = Path(__file__).parents[1] / "filecheck" / "passes" / "tssa-align"
    rng = np.random.default_rng(n)
    for function in parse((folder / "align.mlir").read_text()).ops:
        arguments: list[Any] = []
        for argument in function.regions[0].blocks[0].args:
            shape = [evaluate(size, {"n": n}) for size in shape_of(argument)]
            arguments.append(rng.standard_normal(shape) / 8)
        if all(np.size(argument) < 10_000 for argument in arguments):
            check(ModuleOp([function.clone()]), [arguments])
