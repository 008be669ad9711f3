"""`tssa-fold-constants`: computes now what depends on constants only.

    %c = tssa.constant {value = dense<5.0e-01> : tensor<f64>}
    %d = tssa.cast %c : (tensor<f64>) -> tensor<f32>

    ->  %d = tssa.constant {value = dense<5.0e-01> : tensor<f32>}

Folds elementwise operators that `exact_numpy` computes bit for bit, reshape, transpose and extract
of constants, and `tssa.size` of a known size. Results have at most `MAX_ELEMENTS` elements. A
broadcast is looked through, never folded: its scalar is cheaper than a table. Never folds
elementary functions, sums and products of matrices, whose bits belong to their own definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from jitdialects.analysis.dominance import postorder
from jitdialects.dialects.constants import constant_array, constant_op
from jitdialects.dialects.interfaces import Elementwise, has_trait
from jitdialects.dialects.tssa_types import DimsAttr, dtype_of, shape_of
from jitdialects.passes.exact_numpy import Array, evaluate

MAX_ELEMENTS = 64


def small_shape(value: SSAValue) -> tuple[int, ...] | None:
    """The shape, where all sizes are known and make at most `MAX_ELEMENTS` elements.

    A shape of 0 x n has no elements, and is not known all the same.
    """
    sizes = shape_of(value)
    known = tuple(s for s in sizes if isinstance(s, int))
    return known if len(known) == len(sizes) and prod(known) <= MAX_ELEMENTS else None


def known_array(value: SSAValue) -> Array | None:
    """The elements of a constant, or of a small broadcast of one."""
    if not isinstance(value, OpResult):
        return None
    if value.op.name == "tssa.constant":
        return constant_array(value.op)
    shape = small_shape(value)
    if value.op.name != "tssa.broadcast" or shape is None:
        return None
    operand = value.op.operands[0]
    if not isinstance(operand, OpResult) or operand.op.name != "tssa.constant":
        return None
    return np.broadcast_to(constant_array(operand.op), shape)


def folded(op: Operation) -> Array | None:
    """The elements of the result of `op`, where they are known and few."""
    if op.name == "tssa.size":
        return _known_size(op)
    elementwise = has_trait(op, Elementwise)
    if not elementwise and op.name not in _MOVES:
        return None
    operands = [known_array(v) for v in op.operands]
    known = [x for x in operands if x is not None]
    if not known or len(known) != len(operands) or small_shape(op.results[0]) is None:
        return None
    if elementwise:
        dtype = dtype_of(op.results[0]).numpy
        return evaluate(op.name.removeprefix("tssa."), known, dtype)
    return _MOVES[op.name](op, known[0])


def _known_size(op: Operation) -> Array | None:
    value = op.properties["value"]
    assert isinstance(value, DimsAttr)
    return np.array(value.data[0], np.int64) if isinstance(value.data[0], int) else None


def _reshape(op: Operation, x: Array) -> Array | None:
    shape = small_shape(op.results[0])
    return None if shape is None else x.reshape(shape)


def _transpose(op: Operation, x: Array) -> Array | None:
    return np.ascontiguousarray(x.transpose(_integers(op, "permutation")))


def _extract(op: Operation, x: Array) -> Array | None:
    offsets = op.properties["offsets"]
    assert isinstance(offsets, DimsAttr)
    index: list[Array] = []
    sizes = shape_of(op.results[0])
    for start, step, size in zip(offsets.data, _integers(op, "steps"), sizes, strict=True):
        if not isinstance(start, int) or not isinstance(size, int):
            return None
        index.append(start + step * np.arange(size))
    return np.ascontiguousarray(x[np.ix_(*index)])


def _integers(op: Operation, name: str) -> tuple[int, ...]:
    values = op.properties[name]
    assert isinstance(values, DenseArrayBase)
    return tuple(int(v) for v in values.get_values())


_MOVES = {"tssa.reshape": _reshape, "tssa.transpose": _transpose, "tssa.extract": _extract}


@dataclass(frozen=True)
class TssaFoldConstantsPass(ModulePass):
    """See the module's docstring."""

    name = "tssa-fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in [r for each in op.walk() for r in each.regions]:
            for block in reversed(postorder(region)):
                for each in block.ops:
                    _fold(each)


def _fold(op: Operation) -> None:
    """Replace `op` by a constant if it has a known value. Operands come first in reverse postorder,
    so one walk folds whole chains."""
    array = folded(op)
    if array is None:
        return
    constant = constant_op(dtype_of(op.results[0]), array)
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(constant, op)
    constant.result.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(constant.result)
    block.erase_op(op)
