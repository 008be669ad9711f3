"""`tssa-align`: a matrix that meets a vector in every step of a loop is copied, in front of it, to where lines begin.

    ^entry:                                               ^entry:
      cf.br ^loop(%h)                                       %a = tssa.cast %w        // memory of its own
    ^loop(%v):                                              cf.br ^loop(%h)
      %n = tssa.matmul %w, %v                 ->          ^loop(%v):
      ... cf.cond_br %c, ^loop(%n), ^exit                   %n = tssa.matmul %a, %v
                                                            ... cf.cond_br %c, ^loop(%n), ^exit

Such a product does nothing but read its matrix, at the rate of the cache that holds it: a vector that lies in two
lines costs two. A caller's array begins anywhere (NumPy: 16 bytes behind a line, more often than not), temporaries and
constants at a line. Rows that are not whole lines get as much room as if they were; `%a` is then a part of what is copied to. A
matrix that is seen through a transposition is put into the order in which it is read. Never copies what begins at lines
already, what no second-level cache holds, or for a loop whose number of steps is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from jitdialects.analysis.control_loops import Loop, loops_of, steps_of
from jitdialects.analysis.layout import layout_of
from jitdialects.analysis.machine import Core
from jitdialects.analysis.roofline import Costs
from jitdialects.analysis.storage import ALIGNMENT, is_view
from jitdialects.analysis.typical_sizes import TYPICAL
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim
from jitdialects.dialects.constants import CONSTANT, constant_op
from jitdialects.dialects.interfaces import Contraction, has_trait
from jitdialects.dialects.tssa import ELEMENTWISE_OPS, BroadcastOp, ExtractOp, InsertOp
from jitdialects.dialects.tssa_types import dtype_of, shape_of, tensor_of, tensor_type
from jitdialects.passes.judging_pass import JudgingPass
from jitdialects.passes.tssa_hoist import invariants

LARGE = 1 << 20
"""Bytes that a second-level cache holds. Memory further away takes longer than two lines do."""
STEPS = 16
"""Of a loop, at least: writing and reading a copy takes as long as some products, each of which then takes half."""


@dataclass(frozen=True)
class Reading:
    """Operand `index` of the product `op`."""

    op: Operation
    index: int

    @property
    def matrix(self) -> SSAValue:
        return self.op.operands[self.index]


def readings_of(loop: Loop) -> Iterator[Reading]:
    """The matrices that meet a vector in a loop."""
    region = loop.head.parent
    assert region is not None
    for block in region.blocks:
        for op in block.ops if block in loop.blocks else ():
            if has_trait(op, Contraction):
                left, right = (len(shape_of(v)) for v in op.operands)
                if left == 2 and (right == 1 or shape_of(op.operands[1])[1] == 1):
                    yield Reading(op, 0)
                elif right == 2 and (left == 1 or shape_of(op.operands[0])[0] == 1):
                    yield Reading(op, 1)


# ---- legality ----------------------------------------------------------------------------------


def can_be_read_in_front(matrix: SSAValue, loop: Loop) -> bool:
    """It is made outside the loop, or is a view of what is."""
    if not loop.defines(matrix):
        return True
    owner = matrix.owner
    return isinstance(owner, Operation) and is_view(owner) and invariants(owner, loop) is not None


# ---- profitability -----------------------------------------------------------------------------


def begins_at_lines(matrix: SSAValue) -> bool:
    """Each of its rows lies in one piece that begins at a line, as memory of this function and constants do."""
    root = matrix
    while isinstance(root.owner, Operation) and is_view(root.owner):
        root = root.owner.operands[0]
    layout, line = layout_of(matrix, {}), per_line(matrix.type)
    if layout is None or is_of_the_caller(root):
        return False
    rows, columns = layout.strides
    return columns == 1 and all(dims.is_multiple(place, line) for place in (layout.offset, rows))


def is_of_the_caller(value: SSAValue) -> bool:
    """An argument of the function, unless it is a constant."""
    function = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(function, FuncOp) or function.body.blocks.first is not value.owner:
        return False
    assert isinstance(value, BlockArgument)
    marks = function.arg_attrs
    return marks is None or CONSTANT not in marks.data[value.index].data


def stays_near(matrix: SSAValue, costs: Costs) -> bool:
    """A cache that is close holds it from step to step."""
    return costs.bytes_of(matrix.type) <= LARGE


def is_read_often(loop: Loop, typical: Mapping[str, int]) -> bool:
    """The loop takes many steps."""
    steps = steps_of(loop)
    if steps is None:
        return False
    sizes = {name: typical.get(name, TYPICAL) for name in dims.symbols_of(steps)}
    return dims.evaluate(steps, sizes) >= STEPS


# ---- the rewrite -------------------------------------------------------------------------------


def per_line(type: Attribute) -> int:
    """Elements in a line."""
    element = tensor_of(type).get_element_type()
    assert isinstance(element, FixedBitwidthType)
    return ALIGNMENT * 8 // max(8, element.bitwidth)


def copy_of(matrix: SSAValue) -> list[Operation]:
    """Operations of which the last one is `matrix` in memory of its own, each row at the start of a line."""
    rows, columns = shape_of(matrix)
    type, line = tensor_of(matrix), per_line(matrix.type)
    room: Dim = dims.scale(dims.floordiv(dims.add(columns, line - 1), line), line)
    if room == columns:
        return [ELEMENTWISE_OPS["cast"]([matrix], type)]
    dtype = dtype_of(matrix)
    whole = tensor_type(dtype, (rows, room))
    zero = constant_op(dtype, np.zeros((), dtype.numpy))
    empty = BroadcastOp(zero, whole)
    filled = InsertOp(empty, matrix, (0, 0), (1, 1), whole)
    return [zero, empty, filled, ExtractOp(filled, (0, 0), (1, 1), type)]


def put_in_front(matrix: SSAValue, loop: Loop) -> SSAValue:
    """Copy `matrix` at the end of the block in front of `loop`."""
    before = loop.entry.last_op
    assert before is not None
    if loop.defines(matrix):
        assert isinstance(matrix.owner, Operation)
        for each in invariants(matrix.owner, loop) or ():
            each.detach()
            loop.entry.insert_op_before(each, before)
    copy = copy_of(matrix)
    for each in copy:
        loop.entry.insert_op_before(each, before)
    return copy[-1].results[0]


@dataclass(frozen=True)
class TssaAlignPass(JudgingPass):
    """See the module's docstring. `typical="n=65536"` says what sizes to expect that are not known."""

    name = "tssa-align"

    typical: str = ""

    def rewrite(self, function: FuncOp, core: Core) -> Iterator[str]:
        costs = Costs(core, self.sizes(self.typical))
        for loop in reversed(list(loops_of(function.body))):
            copies: dict[SSAValue, SSAValue] = {}
            for reading in readings_of(loop):
                matrix = reading.matrix
                if matrix not in copies:
                    if not can_be_read_in_front(matrix, loop) or begins_at_lines(matrix):
                        continue
                    if not stays_near(matrix, costs):
                        yield f"{reading.op.name} reads its matrix from afar: no copy is nearer"
                        continue
                    if not is_read_often(loop, costs.typical):
                        yield f"{reading.op.name} may not read its matrix often enough for a copy"
                        continue
                    copies[matrix] = put_in_front(matrix, loop)
                reading.op.operands[reading.index] = copies[matrix]
