"""The programs and single operators that every engine must agree on, each with a symbolic signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from differential.generator import Case

from jitdialects.bytecode import signature
from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.builder import FunctionBuilder, ProgramBuilder
from jitdialects.bytecode.program import Program

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Named:
    """A case with a name for the test's identifier."""

    name: str
    case: Case

    def __str__(self) -> str:
        return self.name


def _named(name: str, program: Program, arguments: str, positive: bool = False) -> Named:
    parsed = signature.parse(f"main({arguments})")
    return Named(name, Case(program, parsed, hash_of(name), positive))


def hash_of(name: str) -> int:
    """A seed that depends on the name only, in every process."""
    return sum((i + 1) * ord(c) for i, c in enumerate(name))


def _operator(name: str, arguments: str, **attributes: Attribute) -> Named:
    builder = ProgramBuilder()
    main = builder.function("main", len(signature.parse(f"main({arguments})").arguments))
    main.returns(main.apply(name, *main.parameters, **attributes))
    text = f"{name}({arguments})" + "".join(f" {k}={v}" for k, v in attributes.items())
    return _named(text, builder.finish(), arguments)


def _example(name: str, arguments: str, positive: bool = False) -> Named:
    text = (EXAMPLES / f"{name}.jasm").read_text()
    return _named(name, Program.from_text(text, f"{name}.jasm"), arguments, positive)


def _body(name: str, arguments: str, body: Callable[[FunctionBuilder], int]) -> Named:
    builder = ProgramBuilder()
    main = builder.function("main", len(signature.parse(f"main({arguments})").arguments))
    main.returns(body(main))
    return _named(name, builder.finish(), arguments)


def _chain(main: FunctionBuilder) -> int:
    """Ten cheap operators."""
    x, y = main.parameters
    for step in range(5):
        x = main.apply("add" if step % 2 else "multiply", x, y)
        x = main.apply("subtract" if step % 2 else "maximum", x, main.constant(0.25 * step))
    return x


def _layers(main: FunctionBuilder) -> int:
    """Layers with weights of their own: long constants, some packed."""
    (x,) = main.parameters
    rng = np.random.default_rng(3)
    for rows, columns in ((20, 33), (33, 80), (80, 4)):
        weights = rng.standard_normal((rows, columns)).astype(np.float32)
        x = main.apply("matmul", x, main.constant(weights))
        x = main.apply("add", x, main.constant(rng.standard_normal(columns).astype(np.float32)))
        x = main.apply("maximum", x, main.constant(0.0))
    return x


def _repeat(main: FunctionBuilder) -> int:
    (x,) = main.parameters
    size = main.apply("size", x, axis=0)
    return main.apply("broadcast_to", x, size, shape=ShapeSpec((3, OperandRef(1))))


def _index(*entries: object) -> IndexSpec:
    return IndexSpec(tuple(entries))  # pyright: ignore[reportArgumentType]


_F, _FF = "f32[n]", "f32[n], f32[n]"
_ARITHMETIC = ("add", "subtract", "multiply", "minimum", "maximum")
_COMPOSITES = ("sigmoid", "erfc", "softplus", "silu", "gelu", "gelu_tanh")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}

OPERATOR_CASES = (
    *(_operator(o, _FF) for o in ("add", "subtract", "multiply", "divide", "minimum", "maximum")),
    *(_operator(o, "f32[n,m], f32[m]") for o in ("add", "divide", "maximum")),
    *(_operator(o, "f32[n,1], f32[m]") for o in ("subtract", "minimum")),
    *(_operator(o, "f32[n,m]:strided, f32[]") for o in ("multiply", "add")),
    *(_operator(o, f"{t}[n], {t}[n]") for o in _ARITHMETIC for t in ("f64", "i32", "i64")),
    *(_operator("divide", f"{x}[n], {y}[n]") for x, y in (("f64", "f64"), ("i32", "i32"))),
    *(_operator("divide", f"{t}[n], int") for t in ("i64", "bool")),
    # one operand is wider than the other
    *(_operator(o, "i32[n], f32[n]") for o in ("add", "divide", "less")),
    *(_operator(o, "i32[n], i64[n]") for o in ("multiply", "greater", "left_shift")),
    *(_operator(o, "f32[n], f64[n]") for o in ("subtract", "maximum", "equal")),
    *(_operator("add", pair) for pair in ("i64[n], f32[n]", "bool[n], i32[n]", "bool[n], f64[]")),
    *(_operator(o, "f64[n,m]:strided, f32[m]") for o in ("multiply", "minimum")),
    *(_operator(o, "i32[n,m]:strided, i32[]") for o in ("add", "right_shift")),
    *(
        _operator(o, f"{t}[n], {t}[n]")
        for o in ("left_shift", "right_shift")
        for t in ("i32", "i64")
    ),
    *(_operator(o, "i64[n], int") for o in ("left_shift", "right_shift", "add")),
    *(_operator(o, "i32[n], int") for o in ("left_shift", "multiply", "less")),
    *(_operator(o, "f32[n], float") for o in ("add", "multiply", "divide", "maximum")),
    *(_operator(o, "f32[n], bool[n]") for o in ("add", "multiply")),
    *(_operator(o, "bool[n], bool[n]") for o in ("add", "multiply", "minimum", "maximum")),
    *(_operator(o, _F) for o in ("negative", "abs", "sqrt", "exp", "tanh", "logical_not")),
    *(_operator(o, _F) for o in ("log", "erf", "rsqrt", *_COMPOSITES)),
    *(_operator(o, "f32[n,m]:strided") for o in ("negative", "exp")),
    *(_operator(o, "f64[n]") for o in ("negative", "abs", "sqrt", "logical_not")),
    *(_operator(o, "f64[n]") for o in ("exp", "tanh", "log", "erf", "rsqrt", *_COMPOSITES)),
    *(_operator(o, f"{t}[n]") for o in ("negative", "abs", "logical_not") for t in ("i32", "i64")),
    *(_operator("sqrt", f"{t}[n]") for t in ("i32", "i64")),
    *(_operator(o, "bool[n]") for o in ("abs", "logical_not")),
    *(_operator(o, f"{t}[n], {t}[n]") for o in _COMPARISONS for t in _DTYPES),
    *(
        _operator(o, f"{t}[n], {t}[n]")
        for o in ("logical_and", "logical_or")
        for t in ("f32", "f64", "i32", "bool")
    ),
    _operator("where", "bool[n], f32[n], f32[n]"),
    _operator("where", "bool[n], i64[n], i64[]"),
    _operator("where", "f32[n], bool[n], bool[n]"),
    _operator("where", "f64[n], i32[n], f32[n]"),
    _operator("where", "bool[n], i32[n], i32[n]"),
    *(_operator("cast", f"{t}[n]", dtype=d) for t in _DTYPES for d in _DTYPES.values()),
    *(
        _operator(o, f"{t}[n,m]", axis=axis, keepdims=keep)
        for o in ("sum", "max")
        for t in ("f32", "f64", "i32", "i64")
        for axis, keep in ((None, False), (-1, True))
    ),
    *(
        _operator(o, f"{t}[m,n]", axis=-1, keepdims=False)
        for o in ("sum", "max")
        for t in ("f32", "f64", "i32")
    ),
    *(
        _operator(o, f"{t}[n,m]", axis=axis, keepdims=keep)
        for o, t in (("prod", "f32"), ("min", "f64"), ("mean", "f32"), ("mean", "i32"))
        for axis, keep in ((0, True), (-1, False))
    ),
    *(_operator(o, "f32[m,n]", axis=0, keepdims=False) for o in ("sum", "max")),
    *(
        _operator(o, f"{t}[n,m]", axis=0, keepdims=True)
        for o, t in (("sum", "i64"), ("prod", "i32"), ("min", "i32"), ("sum", "f64"))
    ),
    _operator("var", "f32[m,n]", axis=-1, keepdims=True, correction=1),
    _operator("var", "f64[n,m]", axis=0, keepdims=False, correction=0),
    _operator("any", "f32[n,m]", axis=0, keepdims=False),
    _operator("all", "bool[m,n]", axis=-1, keepdims=False),
    _operator("sum", "f32[3,n,m]", axis=Ints((0, 2)), keepdims=False),
    _operator("sum", "f32[2,n,m]:strided", axis=Ints((-2, 0)), keepdims=True),
    _operator("max", "f32[n,m]:strided", axis=0, keepdims=False),
    _operator("sum", "f32[m,n]:strided", axis=-1, keepdims=False),
    _operator("sum", "bool[n,m]", axis=-1, keepdims=False),
    _operator("matmul", "f32[n,m], f32[m,n]"),
    _operator("matmul", "f32[m,n], f32[n,m]"),
    _operator("matmul", "f32[n,m]:strided, f32[m,4]"),
    _operator("matmul", "f32[n], f32[n,m]"),
    _operator("matmul", "f32[m,n], f32[n]"),
    _operator("matmul", "f32[n], f32[n]"),
    *(_operator("matmul", f"{t}[m,n], {t}[n,m]") for t in ("f64", "i32", "i64")),
    *(_operator("matmul", f"{t}[n,m]:strided, {t}[m,4]") for t in ("f64", "i32")),
    _operator("matmul", "f64[m,n], f64[n]"),
    _operator("matmul", "i32[n], f32[n,m]"),
    _operator("matmul", "i64[n], i64[n]"),
    _body("broadcast_to(f32[n]) shape=[3, $1]", "f32[n]", _repeat),
    _operator("reshape", "f32[n,m]", shape=ShapeSpec((-1,))),
    _operator("reshape", "f32[n,m]:strided", shape=ShapeSpec((1, -1))),
    _operator("transpose", "f32[n,m]", axes=None),
    _operator("transpose", "i64[n,m,2]", axes=Ints((2, 0, 1))),
    _operator("getitem", "f32[n,m]", index=_index(Slice(None, None, 2), At(0))),
    _operator("getitem", "i64[n,m]", index=_index(Ellipsis(), Slice(1, None))),
    _operator("getitem", "bool[n]", index=_index(NewAxis(), Slice(None, -1))),
    _operator("getitem", "f32[n,m], int", index=_index(Slice(OperandRef(1), None))),
    _operator("setitem", "f32[n,m], f32[m]", index=_index(At(0))),
    _operator("setitem", "i64[n], int", index=_index(Slice(1, -1))),
    _operator("setitem", "f32[n], f32[]", index=_index(Slice(None, None, 3))),
    _operator("size", "f32[n,m]", axis=0),
)
"""Every operator of the table, in the dtypes and layouts that it takes. A test says that none is missing."""

PROGRAM_CASES = (
    _example("mlp", "f32[n,20], f32[20,33], f32[33], f32[33,17], f32[17], f32[17,10], f32[10]"),
    _example("gelu", "f32[n], f32[n], f32[n]"),
    Named("gelu with scalars", _example("gelu", "f32[n,m], float, f32[m]").case),
    _example("newton", "f32[n], float", positive=True),
    _body("chain of ten", _FF, _chain),
    _body("layers with weights", "f32[n,20]", _layers),
)
"""The programs of the first milestone."""
