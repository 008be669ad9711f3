"""Runs `tssa` functions on NumPy arrays, to compare what they mean before and after a pass.

Shares no code with the passes: min, max, casts and shifts are written element by element in Python.
exp, log, tanh, sums and products of matrices are NumPy's, which is enough to compare a function with its
rewritten self; elementary functions that NumPy lacks are the oracle's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oracle import elementary
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from jitdialects.bytecode.dims import Expr, Symbol, evaluate
from jitdialects.bytecode.operators import ELEMENTARY
from jitdialects.dialects.tssa_types import dtype_of, shape_of

MAX_BLOCKS = 10_000


def run(module: ModuleOp, arguments: Sequence[Any]) -> list[np.ndarray]:
    """Run the only function of `module`; results as arrays. Arguments must satisfy its guards."""
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    entry = function.body.blocks[0]
    values: dict[SSAValue, Any] = {}
    symbols: dict[str, int] = {}
    for k, (formal, actual) in enumerate(zip(entry.args, arguments, strict=True)):
        array = np.asarray(actual, dtype_of(formal).numpy)
        assert array.ndim == len(shape_of(formal))
        values[formal] = array
        if array.ndim == 0 and array.dtype.kind == "i":
            symbols[f"s{k}"] = int(array)
        for size, expression in zip(array.shape, shape_of(formal), strict=True):
            if isinstance(expression, Expr) and isinstance(expression.terms[0][0], Symbol):
                symbols.setdefault(expression.terms[0][0].name, size)
    block: Block | None = entry
    for _ in range(MAX_BLOCKS):
        assert block is not None
        for op in block.ops:
            if op.name == "func.return":
                return [values[v] for v in op.operands]
            if op.name.startswith("cf."):
                block, passed = _branch(op, values)
                taken = [values[v] for v in passed]
                values.update(zip(block.args, taken, strict=True))
                break
            if op.name == "tssa.check_bounds":
                lower, upper = (evaluate(d.data[0], symbols) for d in (op.lower, op.upper))
                checked = [lower, *(int(values[v]) for v in op.operands), upper]
                assert checked == sorted(checked), "out of bounds"
                continue
            values[op.results[0]] = _result(op, [values[v] for v in op.operands], symbols)
    raise AssertionError(f"no return after {MAX_BLOCKS} blocks")


def _branch(op: Operation, values: dict[SSAValue, Any]) -> tuple[Block, Sequence[SSAValue]]:
    if op.name == "cf.br":
        return op.successors[0], tuple(op.operands)
    taken = bool(values[op.operands[0]])
    name = "then_arguments" if taken else "else_arguments"
    return op.successors[0 if taken else 1], tuple(getattr(op, name))


def _result(op: Operation, operands: list[Any], symbols: dict[str, int]) -> Any:
    if op.name == "tensor.extract":
        return operands[0][tuple(operands[1:])]
    if op.name == "arith.constant":
        value = op.properties["value"]
        assert isinstance(value, IntegerAttr)
        return value.value.data
    dtype = dtype_of(op.results[0]).numpy
    shape = tuple(evaluate(s, symbols) for s in shape_of(op.results[0]))
    with np.errstate(all="ignore"):
        result = np.asarray(_tensor_result(op, operands, dtype, shape, symbols))
    assert result.dtype == dtype, f"{op}: {result.dtype}"
    assert result.shape == shape, f"{op}: {result.shape}"
    return result


def _tensor_result(
    op: Operation, operands: list[Any], dtype: Any, shape: tuple[int, ...], symbols: dict[str, int]
) -> Any:
    name = op.name.removeprefix("tssa.")
    match name:
        case "constant":
            value = op.properties["value"]
            assert isinstance(value, DenseIntOrFPElementsAttr)
            return np.array(list(value.iter_values()), dtype).reshape(shape)
        case "size":
            return np.array(evaluate(op.value.data[0], symbols), np.int64)
        case "broadcast":
            return np.broadcast_to(operands[0], shape)
        case "reshape":
            return operands[0].reshape(shape)
        case "transpose":
            return operands[0].transpose(op.permutation.get_values())
        case "extract":
            return operands[0][_region(op, operands[1:], shape, symbols)]
        case "insert":
            out = operands[0].copy()
            out[_region(op, operands[2:], operands[1].shape, symbols)] = operands[1]
            return out
        case "sum" | "prod" | "max" | "min":
            axes = tuple(op.axes.get_values())
            return getattr(np, name)(operands[0], axis=axes).astype(dtype)
        case "matmul":
            return np.matmul(*operands)
        case "cast":
            return _each(lambda x: _cast(x, dtype), operands, dtype)
        case "sigmoid":
            return dtype.type(1) / (dtype.type(1) + np.exp(-operands[0]))
        case _ if name in ELEMENTARY and not hasattr(np, name):
            return elementary(name, operands[0])
        case "minimum" | "maximum":
            return _each(globals()[f"_{name}"], operands, dtype)
        case "left_shift" | "right_shift":
            bits = 8 * dtype.itemsize
            shift = _left_shift if name == "left_shift" else _right_shift
            return _each(lambda x, y: shift(x, y, bits), operands, dtype)
        case _:
            return getattr(np, name)(*operands)


def _region(
    op: Any, values: list[Any], shape: tuple[int, ...], symbols: dict[str, int]
) -> tuple[Any, ...]:
    symbols = symbols | {f"_{k}": int(value) for k, value in enumerate(values)}
    starts = [evaluate(o, symbols) for o in op.offsets.data]
    steps = op.steps.get_values()
    return np.ix_(
        *(start + step * np.arange(n) for start, step, n in zip(starts, steps, shape, strict=True))
    )


def _each(function: Callable[..., Any], operands: list[Any], dtype: Any) -> np.ndarray:
    columns = zip(*(x.reshape(-1).tolist() for x in operands), strict=True)
    return np.array([function(*row) for row in columns], dtype).reshape(operands[0].shape)


def _cast(x: Any, dtype: Any) -> Any:
    if dtype.kind == "i":
        half = 2 ** (8 * dtype.itemsize - 1)
        if isinstance(x, float):
            return int(x) if not math.isnan(x) and -half <= x < half else -half
        return (x + half) % (2 * half) - half
    if dtype == np.float32 and isinstance(x, int):
        return np.int64(x).astype(np.float32)  # one rounding, not by way of a double
    return x


def _minimum(x: Any, y: Any) -> Any:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == y:
        return x if math.copysign(1, x) < 0 else y
    return min(x, y)


def _maximum(x: Any, y: Any) -> Any:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == y:
        return y if math.copysign(1, x) < 0 else x
    return max(x, y)


def _left_shift(x: int, y: int, bits: int) -> int:
    half = 2 ** (bits - 1)
    return ((x << y) + half) % (2 * half) - half if 0 <= y < bits else 0


def _right_shift(x: int, y: int, bits: int) -> int:
    return x >> (y if 0 <= y < bits else bits - 1)
