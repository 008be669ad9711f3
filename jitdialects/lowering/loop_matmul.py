"""Matrix products with their epilogue as three plain loops.

Floats sum in the order of the numerics contract: blocks of 512 along k, inside a block one ascending
chain of fma from +0.0, block results added ascending to -0.0 (so that the first is taken as it is). The
blocks are meaning, not a schedule. Integers wrap, so their order is free and they need no blocks. A bias,
residual or activation is applied to the whole sum.

Operands of rank 1 next to rank 2: `x[k] @ B[k, n]` is a product with one row, `A[m, k] @ y[k]` and
`x[k] @ y[k]` are sums of products and in `loop_reduction`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation, SSAValue

from jitdialects.bytecode import dims
from jitdialects.dialects.loop import REDUCTION
from jitdialects.dialects.tssa import GroupOp
from jitdialects.dialects.tssa_types import shape_of
from jitdialects.lowering.emitter import INDEX, STRICT, WRAP, Emitter
from jitdialects.lowering.loop_elementwise import Body, element_of, over, store_results
from jitdialects.lowering.scalar_rules import is_float

K_BLOCK = 512
"""Length of the fma chains."""


def lower_matmul(at: Emitter, group: GroupOp, op: Operation) -> None:
    """A group with a product whose right operand has rank 2, and its epilogue."""
    body = Body(at, group)
    left, right = op.operands
    shape = shape_of(op.results[0])
    body.compute_scalars(shape)
    a, b = body.outer[left], body.outer[right]
    depth = shape_of(left)[-1]
    with at.nest(*over(at, shape)) as indices:
        row, column = indices[:-1], indices[-1]

        def product(k: SSAValue, sum: SSAValue) -> None:
            x, y = at.load(a, (*row, k)), at.load(b, (k, column))
            at.store(multiply_add(at, x, y, at.load(sum)), sum)

        element = element_of(op.results[0])
        chain = _blocked_chain if is_float(element) else _integer_chain
        body.define(op.results[0], indices, chain(at, element, depth, product))
        store_results(body, group.terminator.operands, group.outs, indices)


def multiply_add(at: Emitter, x: SSAValue, y: SSAValue, sum: SSAValue) -> SSAValue:
    """x * y + sum: of floats rounded once, of integers wrapping."""
    if is_float(x.type):
        return at.emit(math.FmaOp, (x, y, sum), x.type, STRICT)
    return at.add(at.emit(arith.MuliOp, (x, y), x.type, WRAP), sum)


Step = Callable[[SSAValue, SSAValue], None]
"""Adds the product at k to the number in a buffer of rank 0."""


def _integer_chain(at: Emitter, element: Attribute, depth: dims.Dim, product: Step) -> SSAValue:
    sum = at.alloca(element)
    at.store(at.constant(element, 0), sum)
    with at.nest([at.index(0)], [at.size(depth)], [REDUCTION]) as (k,):
        product(k, sum)
    return at.load(sum)


def _blocked_chain(at: Emitter, element: Attribute, depth: dims.Dim, product: Step) -> SSAValue:
    """Sum over k. The outer loop runs once for depth 0: the sum of no products is +0.0."""
    total, sum = at.alloca(element), at.alloca(element)
    end = at.size(depth)
    at.store(at.constant(element, -0.0), total)
    once = at.size(dims.maximum(depth, 1))
    with at.nest([at.index(0)], [once], [REDUCTION], [K_BLOCK]) as (start,):
        at.store(at.constant(element, 0.0), sum)
        stop = at.emit(arith.MinSIOp, (at.add(start, at.index(K_BLOCK)), end), INDEX)
        with at.nest([start], [stop], [REDUCTION]) as (k,):
            product(k, sum)
        at.store(at.emit(arith.AddfOp, (at.load(total), at.load(sum)), element, STRICT), total)
    return at.load(total)
