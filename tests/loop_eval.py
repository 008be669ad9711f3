"""A small interpreter of loops, so that a test can ask whether a pass kept the meaning of its input.

Executes functions over `loop`, `scf`, `cf`, `arith`, `math`, `memref` and `vector` as they are written, before or
after any pass, and shares nothing with the code generator. Memrefs are NumPy arrays (strides and all),
vectors are lists of scalars, floats are NumPy scalars, integers Python's, wrapped to their width. Every
access is checked against the bounds of its memref, lane by lane, so a missing mask is an `IndexError`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from jitdialects.dialects.loop import NestOp

Value: TypeAlias = Any
Environment: TypeAlias = dict[SSAValue, Value]

MAX_BLOCKS = 10_000
_BRANCH = {True: "then_arguments", False: "else_arguments"}
_LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
_LIBM.fmaf.restype, _LIBM.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
_LIBM.fma.restype, _LIBM.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3


def interpret(module: ModuleOp, name: str, *arguments: Value) -> Sequence[Value]:
    """Call the function `name`; memref arguments are arrays that it may write to."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == name:
            block = op.body.blocks[0]
            with np.errstate(all="ignore"):
                return _run_graph(block, dict(zip(block.args, arguments, strict=True)))
    raise KeyError(f"no function {name} in this module")


def _run_graph(block: Block, values: Environment) -> Sequence[Value]:
    """Execute blocks from `block` on until one returns."""
    for _ in range(MAX_BLOCKS):
        results = _run(block, values)
        terminator = block.last_op
        if terminator is None or not terminator.successors:
            return results
        taken = terminator.name == "cf.br" or values[terminator.operands[0]]
        name = "arguments" if terminator.name == "cf.br" else _BRANCH[bool(taken)]
        passed = [values[operand] for operand in getattr(terminator, name)]
        block = terminator.successors[0 if taken else 1]
        values.update(zip(block.args, passed, strict=True))
    raise AssertionError(f"no return after {MAX_BLOCKS} blocks")


def _run(block: Block, values: Environment) -> Sequence[Value]:
    """Execute a block; returns the operands of its terminator."""
    for op in block.ops:
        if op.successors:
            return []
        if op.next_op is None and not op.results and op.name.endswith(("yield", "return")):
            return [values[operand] for operand in op.operands]
        results = _execute(op, values)
        values.update(zip(op.results, results, strict=True))
    return []


def _execute(op: Operation, values: Environment) -> Sequence[Value]:
    if op.name in _STRUCTURED:
        return _STRUCTURED[op.name](op, values)
    operands = [values[operand] for operand in op.operands]
    if op.name == "cf.assert":
        assert operands[0], "a cf.assert fails"
        return []
    if op.name in _MEMORY:
        return _MEMORY[op.name](op, operands)
    kind = op.results[0].type
    if op.name == "arith.constant":
        return [_constant(op.properties["value"], kind)]
    source = op.operands[0].type
    if isinstance(kind, VectorType):
        lanes = kind.get_shape()[0]
        wide = [o if isinstance(o, list) else [o] * lanes for o in operands]
        scalar = kind.element_type
        return [[_scalar(op, lane, _element(source), scalar) for lane in zip(*wide, strict=True)]]
    return [_scalar(op, operands, source, kind)]


def _element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, VectorType) else type


# ---- scalars


def _width(type: Attribute) -> int:
    return type.width.data if isinstance(type, IntegerType) else 64


def wrap(value: int, type: Attribute) -> int:
    """`value` as a signed number of the type's width; i1 is 0 or 1."""
    width = _width(type)
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def _unsigned(value: int, type: Attribute) -> int:
    return value & ((1 << _width(type)) - 1)


def _float(value: float, type: Attribute) -> Value:
    return np.float32(value) if isinstance(type, Float32Type) else np.float64(value)


def _constant(attribute: Attribute, type: Attribute) -> Value:
    if isinstance(attribute, IntegerAttr):
        return wrap(attribute.value.data, type)
    if isinstance(attribute, FloatAttr):
        return _float(attribute.value.data, type)
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    element = _element(type)
    is_float = isinstance(element, Float32Type | Float64Type)
    values = list(attribute.get_values())
    lanes = type.get_shape()[0]
    numbers = values if len(values) == lanes else values * lanes
    return [_float(v, element) if is_float else wrap(int(v), element) for v in numbers]


def _maximum(a: Value, b: Value) -> Value:
    if np.isnan(a) or np.isnan(b):
        return a if np.isnan(a) else b
    return (b if np.signbit(a) else a) if a == b else max(a, b)


def _minimum(a: Value, b: Value) -> Value:
    return -_maximum(-a, -b)


def _fma(a: Value, b: Value, c: Value) -> Value:
    if isinstance(a, np.float32):
        return np.float32(_LIBM.fmaf(float(a), float(b), float(c)))
    return np.float64(_LIBM.fma(float(a), float(b), float(c)))


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError("division by zero is undefined in arith")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_INTEGER: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - _divide(a, b) * b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
}
_UNSIGNED: Mapping[str, Callable[[int, int], int]] = {
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.minui": min,
    "arith.maxui": max,
    "arith.shrui": lambda a, b: a >> b,
}
_FLOAT: Mapping[str, Callable[..., Value]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.negf": lambda a: -a,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "math.fma": _fma,
    "math.absf": abs,
    "math.sqrt": np.sqrt,
    "math.exp": np.exp,
    "math.tanh": np.tanh,
    "math.log": np.log,
    "math.erf": lambda a: type(a)(math.erf(a)),
    "math.roundeven": np.round,
    "math.copysign": np.copysign,
}
_SIGNED_ORDER = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)


def _compare_floats(predicate: int, a: Value, b: Value) -> bool:
    """Predicates of arith.cmpf: false, o(eq gt ge lt le ne), ord, u(eq gt ge lt le ne), uno, true."""
    unordered = bool(np.isnan(a) or np.isnan(b))
    holds = (a == b, a > b, a >= b, a < b, a <= b, a != b)
    if predicate in (0, 15):
        return predicate == 15
    if predicate in (7, 14):
        return unordered == (predicate == 14)
    if predicate < 7:
        return not unordered and bool(holds[predicate - 1])
    return unordered or bool(holds[predicate - 8])


def _scalar(
    op: Operation, operands: Sequence[Value], source: Attribute, result: Attribute
) -> Value:
    name = op.name
    if name in _INTEGER:
        return wrap(_INTEGER[name](operands[0], operands[1]), result)
    if name in _UNSIGNED:
        return wrap(_UNSIGNED[name](*(_unsigned(o, result) for o in operands)), result)
    if name in _FLOAT:
        return _float(_FLOAT[name](*operands), result)
    if name in ("arith.cmpi", "arith.cmpf"):
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        return int(_compare(name, predicate.value.data, operands, source))
    if name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    return _cast(name, operands[0], source, result)


def _compare(name: str, predicate: int, operands: Sequence[Value], source: Attribute) -> bool:
    a, b = operands
    if name == "arith.cmpf":
        return _compare_floats(predicate, a, b)
    if predicate >= 6:
        a, b, predicate = _unsigned(a, source), _unsigned(b, source), predicate - 4
    return _SIGNED_ORDER[predicate](a, b)


def _cast(name: str, value: Value, source: Attribute, result: Attribute) -> Value:
    match name:
        case "vector.broadcast":
            return value
        case "arith.extui":
            return wrap(_unsigned(value, source), result)
        case "arith.extsi":
            return -value if source == IntegerType(1) else value
        case "arith.trunci" | "arith.index_cast":
            return wrap(value, result)
        case "arith.sitofp" | "arith.extf" | "arith.truncf":
            return _float(value, result)
        case "arith.uitofp":
            return _float(_unsigned(value, source), result)
        case "arith.fptosi":
            return wrap(int(value), result)
        case "math.cttz":
            return (value & -value).bit_length() - 1 if value else _width(source)
        case "math.ctlz":
            return _width(source) - _unsigned(value, source).bit_length()
        case "arith.bitcast":
            kinds = {Float32Type(): "f4", Float64Type(): "f8", IntegerType(32): "i4"}
            raw = np.array(value, kinds.get(source, "i8")).view(kinds.get(result, "i8"))[()]
            return raw if isinstance(result, Float32Type | Float64Type) else int(raw)
        case _:
            raise NotImplementedError(f"{name} is not interpreted")


# ---- memory

_DTYPES = {Float32Type(): np.float32, Float64Type(): np.float64}


def _dtype(type: Attribute) -> Any:
    return _DTYPES.get(type) or np.dtype(f"i{max(1, _width(type) // 8)}")


def _alloc(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    type = op.results[0].type
    sizes = iter(operands)
    shape = [next(sizes) if size < 0 else size for size in type.get_shape()]
    array = np.empty(shape, _dtype(type.element_type))
    array.view(np.uint8 if array.ndim else array.dtype)[...] = 0x55  # what nobody stored is no zero
    return [array]


def _read(base: Any, indices: Sequence[int]) -> Value:
    _check(base, indices)
    value = base[tuple(indices)]
    return value if isinstance(value, np.floating) else int(value)


def _write(base: Any, indices: Sequence[int], value: Value) -> None:
    _check(base, indices)
    base[tuple(indices)] = value


def _check(base: Any, indices: Sequence[int]) -> None:
    if any(not 0 <= index < size for index, size in zip(indices, base.shape, strict=True)):
        raise IndexError(f"access at {list(indices)} of a memref of shape {base.shape}")


def _lane(indices: Sequence[int], lane: int) -> list[int]:
    return [*indices[:-1], indices[-1] + lane]


def _vector_load(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    lanes = op.results[0].type.get_shape()[0]
    base, *indices = operands
    return [[_read(base, _lane(indices, lane)) for lane in range(lanes)]]


def _vector_store(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    value, base, *indices = operands
    for lane, element in enumerate(value):
        _write(base, _lane(indices, lane), element)
    return []


def _masked_load(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    base, *indices, mask, passed = operands
    lanes = enumerate(zip(mask, passed, strict=True))
    return [[_read(base, _lane(indices, lane)) if on else other for lane, (on, other) in lanes]]


def _masked_store(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    base, *indices, mask, value = operands
    for lane, (on, element) in enumerate(zip(mask, value, strict=True)):
        if on:
            _write(base, _lane(indices, lane), element)
    return []


def _store(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    value, base, *indices = operands
    _write(base, indices, value)
    return []


def _mask(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    lanes = op.results[0].type.get_shape()[0]
    return [[int(lane < operands[0]) for lane in range(lanes)]]


def _view(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Part of an array of bytes, shaped; it must lie within."""
    bytes_, shift, *dynamic = operands
    kind = op.results[0].type
    sizes = iter(dynamic)
    shape = [next(sizes) if size < 0 else size for size in kind.get_shape()]
    dtype = np.dtype(_dtype(kind.element_type))
    count = math.prod(shape) * dtype.itemsize
    if shift < 0 or shift + count > bytes_.size:
        raise IndexError(f"bytes {shift} to {shift + count} of {bytes_.size}")
    return [bytes_[shift : shift + count].view(dtype).reshape(shape)]


def _reinterpret_cast(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """The memory of an array under other sizes and strides; every element must lie within it."""
    base, *rest = operands
    given = iter(rest)
    offset, sizes, strides = (
        [next(given) if x == DYNAMIC_INDEX else x for x in op.properties[name].get_values()]
        for name in ("static_offsets", "static_sizes", "static_strides")
    )
    low = high = offset[0]
    for size, stride in zip(sizes, strides, strict=True):
        low, high = low + min(0, (size - 1) * stride), high + max(0, (size - 1) * stride)
    start, stop = np.lib.array_utils.byte_bounds(base)
    first = base.__array_interface__["data"][0]
    width = base.itemsize
    if not math.prod(sizes):
        return [np.empty(sizes, base.dtype)]
    if first + low * width < start or first + (high + 1) * width > stop:
        raise IndexError(f"elements {low} to {high} of a memref of shape {base.shape}")
    memory = (ctypes.c_char * (stop - start)).from_address(start)
    array = np.ndarray(
        sizes,
        base.dtype,
        memory,
        first - start + offset[0] * width,
        [stride * width for stride in strides],
    )
    return [array]


def _metadata(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    (base,) = operands
    return [base, 0, *base.shape, *(stride // base.itemsize for stride in base.strides)]


def _numbers(op: Operation, name: str) -> list[int]:
    return [int(number) for number in op.properties[name].get_values()]


def _reduced(op: Operation, lanes: Sequence[Value]) -> Value:
    assert "<or>" in str(op.properties["kind"]), "only <or> is interpreted"
    return functools.reduce(operator.or_, lanes)


_MEMORY: Mapping[str, Callable[[Operation, Sequence[Value]], Sequence[Value]]] = {
    "memref.alloca": _alloc,
    "memref.alloc": _alloc,
    "memref.load": lambda op, operands: [_read(operands[0], operands[1:])],
    "memref.store": _store,
    "memref.dim": lambda op, operands: [operands[0].shape[operands[1]]],
    "memref.view": _view,
    "memref.reinterpret_cast": _reinterpret_cast,
    "memref.extract_strided_metadata": _metadata,
    "memref.cast": lambda op, operands: [operands[0]],
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.create_mask": _mask,
    "vector.reduction": lambda op, operands: [_reduced(op, operands[0])],
    "vector.extract": lambda op, operands: [operands[0][_numbers(op, "static_position")[0]]],
    "vector.shuffle": lambda op, operands: [
        [[*operands[0], *operands[1]][lane] for lane in _numbers(op, "mask")]
    ],
    "memref.prefetch": lambda op, operands: [],
}


# ---- structure


def _for(op: Operation, values: Environment) -> Sequence[Value]:
    lower, upper, step, *carried = (values[operand] for operand in op.operands)
    if step <= 0:
        raise ValueError("scf.for needs a positive step")
    block = op.regions[0].block
    for index in range(lower, upper, step):
        values.update(zip(block.args, (index, *carried), strict=True))
        carried = list(_run(block, values))
    return carried


def _if(op: Operation, values: Environment) -> Sequence[Value]:
    region = op.regions[0 if values[op.operands[0]] else 1]
    return _run(region.block, values) if region.blocks else []


def _nest(op: Operation, values: Environment) -> Sequence[Value]:
    assert isinstance(op, NestOp)
    axes = [
        range(values[low], values[high], step)
        for low, high, step in zip(op.lower, op.upper, op.step_values, strict=True)
    ]
    for number in range(math.prod(map(len, axes))):
        point: list[int] = []
        for axis in reversed(axes):
            number, place = divmod(number, len(axis))
            point.append(axis[place])
        values.update(zip(op.ivs, reversed(point), strict=True))
        _run(op.body.block, values)
    return []


_STRUCTURED: Mapping[str, Callable[[Operation, Environment], Sequence[Value]]] = {
    "scf.for": _for,
    "scf.if": _if,
    "loop.nest": _nest,
}
