"""The numerics contract stated once more, in NumPy and exact integers only.

It is written from the definitions of docs/numerics.md and shares no code with the compiler or the runtime. What both
read are specifications: the operator table (which dtypes an operator computes in) and the steps of
the elementary functions. Slow and plain on purpose: each function is its definition.

`apply(name, values, attributes)` evaluates one operator, `run_program(program, arguments)` a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitdialects.bytecode import attributes as attr
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.elementary import elementary_functions
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import Function, Program

Array = np.ndarray[Any, Any]
F32 = np.float32


@dataclass(frozen=True)
class Value:
    """An array with the dtype that the language gives it; weak ones have rank 0."""

    dtype: DType
    array: Array


# ---- primitives of floats -------------------------------------------------------------------------


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once: in float64 if an operand is, else in float32.

    float32: the product is exact in float64. The float64 sum is rounded to odd (of the two neighbours of the
    exact sum the one with an odd significand), after which rounding to float32 gives the correctly
    rounded result, since 53 >= 2 * 24 + 2. Boldo, Melquiond, "Emulation of FMA and correctly
    rounded sums: proved algorithms using rounding to odd", 2008.
    """
    with np.errstate(all="ignore"):
        if np.result_type(x, y, z) == np.float64:
            return np.asarray(_FMA64(x, y, z), np.float64)
        product = np.asarray(x, np.float64) * np.asarray(y, np.float64)
        addend = np.asarray(z, np.float64)
        total = np.asarray(product + addend)
        # Knuth's two-sum: total + error is the exact sum
        back = total - product
        error = (product - (total - back)) + (addend - back)
        bits = total.view(np.int64)
        to_odd = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
        away_from_zero = (error > 0) == (total > 0)
        bits = bits + np.where(to_odd, np.where(away_from_zero, 1, -1), 0)
        return bits.view(np.float64).astype(F32)


def _fma64(x: float, y: float, z: float) -> float:
    """In float64, by exact integers; their quotient is correctly rounded in Python."""
    x, y, z = float(x), float(y), float(z)
    if not np.isfinite(x) or not np.isfinite(y) or x == 0 or y == 0:
        return np.float64(x) * np.float64(y) + np.float64(z)
    if not np.isfinite(z):
        return z  # the exact product is finite, the rounded one may not be
    (a, p), (b, q), (c, r) = (v.as_integer_ratio() for v in (x, y, z))
    exact, denominator = a * b * r + c * p * q, p * q * r
    if exact == 0:
        return 0.0
    try:
        rounded = exact / denominator
    except OverflowError:
        rounded = float("inf") if exact > 0 else float("-inf")
    return rounded if rounded else -0.0 if exact < 0 else 0.0


_FMA64 = np.frompyfunc(_fma64, 3, 1)


def lesser(x: Array, y: Array) -> Array:
    """The smaller; NaN propagates, -0 < +0."""
    smaller = np.where(x < y, x, np.where(y < x, y, np.where(np.signbit(x), x, y)))
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), smaller)


def greater(x: Array, y: Array) -> Array:
    """The larger; NaN propagates, -0 < +0."""
    return -lesser(-x, -y)


def elementary(name: str, x: Array) -> Array:
    """exp, tanh, gelu, ... by the steps of the specification, in the dtype of `x` (float32, float64)."""
    return elementary_steps(name, x)["result"]


def elementary_steps(name: str, x: Array) -> Mapping[str, Array]:
    """The same with everything that it is computed from, by the names of the specification."""
    x = np.asarray(x)
    function = elementary_functions(x.dtype.name)[name]
    integer = np.int64 if x.dtype == np.float64 else np.int32
    steps = _STEPS | {
        "to_bits": lambda x: np.asarray(x).view(integer),
        "from_bits": lambda i: np.asarray(i).view(x.dtype),
        "shift_right_logical": lambda x, k: (x.view(unsigned) >> k.view(unsigned)).view(integer),
    }
    unsigned = np.dtype(integer.__name__.replace("int", "uint"))
    env: dict[str, Array] = {"x": x}
    env |= {k: np.asarray(v, x.dtype) for k, v in function.floats.items()}
    env |= {k: np.asarray(v, integer) for k, v in function.ints.items()}
    with np.errstate(all="ignore"):
        for step in function.steps:
            env[step.name] = np.asarray(steps[step.op](*(env[o] for o in step.operands)))
    return env


def _elementary(name: str) -> Any:
    return lambda x: elementary(name, x)


def sigmoid(x: Array) -> Array:
    """(x < 0 ? t : 1) / (1 + t) with t = exp(-|x|)."""
    t = elementary("exp", -np.abs(x))
    one = x.dtype.type(1)
    return np.where(x < 0, t, one) / (t + one)


_STEPS: Mapping[str, Any] = {
    "fma": fma,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "copysign": np.copysign,
    "less": lambda x, y: x < y,
    "greater": lambda x, y: x > y,
    "select": np.where,
    "add_int": np.add,
    "sub_int": np.subtract,
    "and_int": np.bitwise_and,
    "or_int": np.bitwise_or,
    "shift_left": np.left_shift,
}


# ---- orders of summation -------------------------------------------------------------------------

BLOCK, LANES, K_BLOCK = 4096, 32, 512


def ordered_sum(rows: Array, factor: Array | None = None) -> Array:
    """The sum of each row of `rows` (r, n), or of rows * factor fused (dot); at last + (+0.0)."""

    def step(old: Array, i: int, stop: int) -> Array:
        part = rows[:, i:stop]
        return old + part if factor is None else fma(part, factor[i:stop], old)

    return _ordered_fold(rows, -0.0, step, np.add) + rows.dtype.type(0.0)


def ordered_product(rows: Array) -> Array:
    """The product of each row, in the order of sums, from 1."""
    return _ordered_fold(rows, 1.0, lambda old, i, stop: old * rows[:, i:stop], np.multiply)


def _ordered_fold(rows: Array, identity: float, step: Any, join: Any) -> Array:
    """Blocks of 4096; in a block, element i goes to lane i mod 32, each lane ascending from the identity;
    lanes folded by halves; blocks joined by the binary tree aligned at 0."""
    count, n = rows.shape
    blocks: list[Array] = []
    for start in range(0, n, BLOCK):
        lanes = np.full((count, LANES), identity, rows.dtype)
        for i in range(start, min(start + BLOCK, n), LANES):
            stop = min(i + LANES, n)
            lanes[:, : stop - i] = step(lanes[:, : stop - i], i, stop)
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = join(lanes[:, :half], lanes[:, half:])
        blocks.append(lanes[:, 0])
    while len(blocks) > 1:
        pairs = [blocks[i : i + 2] for i in range(0, len(blocks), 2)]
        blocks = [join(p[0], p[1]) if len(p) == 2 else p[0] for p in pairs]
    return blocks[0] if blocks else np.full(count, identity, rows.dtype)


def ordered_matmul(x: Array, y: Array) -> Array:
    """(m, k) @ (k, n) of floats: k in blocks of 512, each an ascending chain of FMAs from +0.0;
    block results added ascending, the first taken as it is."""
    total: Array | None = None
    for start in range(0, max(x.shape[1], 1), K_BLOCK):
        chain = np.zeros((x.shape[0], y.shape[1]), x.dtype)
        for k in range(start, min(start + K_BLOCK, x.shape[1])):
            chain = fma(x[:, k, None], y[None, k, :], chain)
        total = chain if total is None else total + chain
    assert total is not None
    return total


def matmul(x: Array, y: Array) -> Array:
    """Operands of rank 1 or 2. A vector on the right takes the order of sums, any other the k-blocks."""
    if x.dtype.kind != "f":
        return np.asarray(np.matmul(x, y))  # integers wrap: any order gives the same
    if y.ndim == 1:
        rows = np.atleast_2d(x)
        return ordered_sum(rows, y).reshape(x.shape[:-1])
    product = ordered_matmul(np.atleast_2d(x), y)
    return product if x.ndim == 2 else product[0]


def _as_rows(x: Array, attributes: attr.Attributes) -> tuple[Array, tuple[int, ...]]:
    """(rows, n) of what a reduction folds, in C order, and the shape of the result."""
    axis: Any = attributes.get("axis")
    named = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis.values
    axes = sorted(a % x.ndim for a in named)
    kept = [a for a in range(x.ndim) if a not in axes]
    count, n = (int(np.prod([x.shape[a] for a in which], dtype=np.int64)) for which in (kept, axes))
    rows = np.ascontiguousarray(np.transpose(x, (*kept, *axes))).reshape(count, n)
    standing = tuple(1 if a in axes else s for a, s in enumerate(x.shape))
    return rows, standing if attributes.get("keepdims") else tuple(x.shape[a] for a in kept)


def total(x: Array, attributes: attr.Attributes) -> Array:
    """The operator sum."""
    rows, shape = _as_rows(x, attributes)
    sums = ordered_sum(rows) if x.dtype.kind == "f" else rows.sum(axis=1, dtype=np.int64)
    return sums.reshape(shape)


def multiplied(x: Array, attributes: attr.Attributes) -> Array:
    """The operator prod."""
    rows, shape = _as_rows(x, attributes)
    products = ordered_product(rows) if x.dtype.kind == "f" else rows.prod(axis=1, dtype=np.int64)
    return products.reshape(shape)


def extreme(x: Array, attributes: attr.Attributes, better: Any) -> Array:
    """The operators max and min."""
    rows, shape = _as_rows(x, attributes)
    best = rows[:, 0]
    for column in rows.T[1:]:
        best = better(best, column)
    return best.reshape(shape)


def mean(x: Array, attributes: attr.Attributes) -> Array:
    """The operator mean."""
    rows, shape = _as_rows(x, attributes)
    return (ordered_sum(rows) / np.asarray(rows.shape[1]).astype(x.dtype)).reshape(shape)


def variance(x: Array, attributes: attr.Attributes) -> Array:
    """The operator var: two passes."""
    rows, shape = _as_rows(x, attributes)
    n = rows.shape[1]
    away = rows - (ordered_sum(rows) / np.asarray(n).astype(x.dtype))[:, None]
    divisor = max(n - int(attributes["correction"]), 0)
    return (ordered_sum(away * away) / np.asarray(divisor).astype(x.dtype)).reshape(shape)


def truth(x: Array, attributes: attr.Attributes, function: Any) -> Array:
    """The operators any and all."""
    rows, shape = _as_rows(x, attributes)
    return function(rows, axis=1).reshape(shape)


# ---- elementwise ---------------------------------------------------------------------------------


def _minimum(x: Array, y: Array) -> Array:
    return lesser(x, y) if x.dtype.kind == "f" else np.minimum(x, y)


def _maximum(x: Array, y: Array) -> Array:
    return greater(x, y) if x.dtype.kind == "f" else np.maximum(x, y)


def _left_shift(x: Array, y: Array) -> Array:
    inside = (y >= 0) & (y < 8 * x.itemsize)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), x.dtype.type(0))


def _right_shift(x: Array, y: Array) -> Array:
    bits = 8 * x.itemsize
    inside = (y >= 0) & (y < bits)
    return np.right_shift(x, np.where(inside, y, bits - 1))


ELEMENTWISE: Mapping[str, Any] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "negative": lambda x: -x,
    "abs": np.abs,
    "minimum": _minimum,
    "maximum": _maximum,
    "sqrt": np.sqrt,
    **{name: _elementary(name) for name in elementary_functions()},
    "sigmoid": sigmoid,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_not": lambda x: ~x,
    "where": np.where,
}


def convert(x: Array, name: str) -> Array:
    """A cast: truncation to int with the smallest integer for NaN and out of range, non-zero to bool,
    one rounding to a float, wrapping to a smaller integer."""
    if name == "bool":
        return x != 0
    if not name.startswith("int") or x.dtype.kind != "f":
        with np.errstate(all="ignore"):
            return x.astype(name)
    smallest = np.iinfo(name).min
    inside = (x >= float(smallest)) & (x < -float(smallest))
    return np.where(inside, np.where(inside, x, 0).astype(name), smallest).astype(name)


# ---- shape ---------------------------------------------------------------------------------------


def _number(x: int | attr.OperandRef | None, values: Sequence[Value]) -> int | None:
    return int(values[x.position].array) if isinstance(x, attr.OperandRef) else x


def _index(spec: attr.IndexSpec, values: Sequence[Value]) -> tuple[Any, ...]:
    def entry(e: attr.IndexEntry) -> Any:
        match e:
            case attr.Slice():
                return slice(_number(e.start, values), _number(e.stop, values), e.step)
            case attr.At():
                return _number(e.index, values)
            case attr.Ellipsis():
                return ...
            case attr.NewAxis():
                return None

    return tuple(entry(e) for e in spec.entries)


def _shape(spec: attr.ShapeSpec, values: Sequence[Value]) -> tuple[int, ...]:
    return tuple(int(_number(s, values) or 0) for s in spec.sizes)


def _setitem(x: Array, y: Array, index: tuple[Any, ...]) -> Array:
    out = x.copy()
    out[index] = y
    return out


def _shaped(name: str, x: Sequence[Array], a: Any, values: Sequence[Value]) -> Array:
    match name:
        case "broadcast_to":
            return np.broadcast_to(x[0], _shape(a["shape"], values))
        case "reshape":
            return np.ascontiguousarray(x[0]).reshape(_shape(a["shape"], values))
        case "transpose":
            axes = a.get("axes")
            return np.transpose(x[0], None if axes is None else axes.values)
        case "getitem":
            return x[0][_index(a["index"], values)]
        case "setitem":
            return _setitem(x[0], x[1], _index(a["index"], values))
        case "size":
            return np.asarray(x[0].shape[a["axis"]], np.int64)
        case _:
            raise KeyError(name)


# ---- operators and programs ----------------------------------------------------------------------


def apply(name: str, values: Sequence[Value], attributes: attr.Attributes) -> Value:
    """One operator on typed values."""
    operator = OPERATORS[name]
    typing = operator.infer_dtypes([v.dtype for v in values], attributes)
    used = zip(values, typing.operands, strict=False)
    x = [convert(v.array, t.name) if v.dtype.name != t.name else v.array for v, t in used]
    with np.errstate(all="ignore"):
        match name:
            case "cast":
                out = convert(x[0], typing.result.name)
            case "sum":
                out = total(x[0], attributes)
            case "prod":
                out = multiplied(x[0], attributes)
            case "max":
                out = extreme(x[0], attributes, _maximum)
            case "min":
                out = extreme(x[0], attributes, _minimum)
            case "mean":
                out = mean(x[0], attributes)
            case "var":
                out = variance(x[0], attributes)
            case "any" | "all":
                out = truth(x[0], attributes, {"any": np.any, "all": np.all}[name])
            case "matmul":
                out = matmul(x[0], x[1])
            case _ if name in ELEMENTWISE:
                out = ELEMENTWISE[name](*x)
            case _:
                out = _shaped(name, x, attributes, values)
    out = np.array(out, order="C")
    assert out.dtype.name == typing.result.name, (name, out.dtype, typing.result)
    return Value(typing.result, out)


def as_value(x: object) -> Value:
    """An argument: Python scalars are weak."""
    weak = isinstance(x, bool | int | float) and not isinstance(x, np.generic)
    array = np.array(x, order="C")
    return Value(DType(array.dtype.name, weak), array)


def run_program(
    program: Program, arguments: Sequence[object], function: str = "main"
) -> list[Value]:
    """The results of `function` on arrays and Python scalars."""
    target = program.function(function)
    assert target is not None, function
    return _run(program, target, [as_value(a) for a in arguments])


def _run(program: Program, function: Function, arguments: Sequence[Value]) -> list[Value]:
    registers: dict[int, Value] = dict(enumerate(arguments))
    block = function.blocks[0]
    while True:
        *body, last = block.instructions
        for op in body:
            operands = [registers[r] for r in op.operands]
            match op.opcode:
                case "const":
                    constant = program.constants[int(op.attributes["constant"])]
                    results = [Value(constant.dtype, np.asarray(constant.value))]
                case "move":
                    results = operands
                case "destroy":
                    results = []
                case "call":
                    callee = program.function(str(op.attributes["callee"]))
                    assert callee is not None
                    results = _run(program, callee, operands)
                case _:
                    results = [apply(op.opcode, operands, op.attributes)]
            registers.update(zip(op.results, results, strict=True))
        operands = [registers[r] for r in last.operands]
        match last.opcode:
            case "return":
                return operands
            case "br":
                block = function.blocks[last.targets[0]]
            case "cond_br":
                block = function.blocks[last.targets[0 if operands[0].array != 0 else 1]]
            case _:
                cases = list(last.attributes["cases"].values)
                value = int(operands[0].array)
                chosen = cases.index(value) if value in cases else -1
                block = function.blocks[last.targets[chosen]]
