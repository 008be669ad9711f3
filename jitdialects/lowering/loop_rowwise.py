"""Groups with reductions: one parallel nest over rows, and inside it sweeps along the row, in order.

    softmax over n of x[m, n]:   for i in rows:
                                   m = max of x[i, :]
                                   s = sum of (y[i, j] = exp(x[i, j] - m))     stored while it is summed
                                   for j: y[i, j] = y[i, j] / s

`analysis.row_stages` says which sweeps there are and what each of them stores for later ones. What is not a result
itself (the exponentials) is kept in a row on the stack if rows are short: results are then written once, maybe past the
cache. The row stays in the cache between sweeps. Each operation is the numerics contract's, in its order (a maximum before the
exponentials, no rescaling on the way): what is fused is the traffic, not the arithmetic.

Several reduced axes are one, in C order: buffers of the full shape are contiguous then.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, MemRefType, i1, i8
from xdsl.ir import Operation, SSAValue

from jitdialects.analysis.row_stages import RowStages, Sweep, stages_of_block
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.dialects.interfaces import Reduction, has_trait
from jitdialects.dialects.loop import PARALLEL
from jitdialects.dialects.tssa import GroupOp
from jitdialects.dialects.tssa_types import shape_of
from jitdialects.lowering.emitter import Emitter, collapse, memref_of
from jitdialects.lowering.loop_elementwise import Body, load_element, over, store_element
from jitdialects.lowering.loop_reduction import reduce_together

Indices = tuple[SSAValue, ...]

KEPT_BYTES = 8192
"""Of a row on the stack, at most: some of them and the rows that are read fit a first-level cache."""


def lower_rows(at: Emitter, group: GroupOp) -> None:
    """A group with reductions over the last axes of one shape."""
    _Rows(at, group).emit()


class _RowBody(Body):
    """Elements, at indices in which the reduced axes are one."""

    full: Shape
    rows: dict[SSAValue, SSAValue]
    """What is kept of this row, by itself."""

    def place(
        self, tensor: SSAValue, buffer: SSAValue, indices: Indices
    ) -> tuple[SSAValue, Indices]:
        """Where an element is kept: in its row, or at `indices` of `buffer`."""
        row = self.rows.get(tensor)
        return (buffer, indices) if row is None else (row, indices[-1:])

    def load_kept(self, tensor: SSAValue, indices: Indices) -> SSAValue:
        return load_element(self.at, *self.place(tensor, self.kept[tensor], indices))

    def moved(self, op: Operation, indices: Indices) -> Indices:
        source, target = shape_of(op.operands[0]), shape_of(op.results[0])
        missing = len(target) - len(indices)
        if op.name != "tssa.broadcast" or target != self.full or not missing or source == target:
            return super().moved(op, indices)
        # nothing is repeated along some of the reduced axes only: any index along them is the first one
        padded = (*indices, *(self.at.index(0) for _ in range(missing)))
        return super().moved(op, padded)


class _Rows:
    """Emits one group."""

    def __init__(self, at: Emitter, group: GroupOp) -> None:
        self.at, self.group = at, group
        self.stages: RowStages = stages_of_block(group.block)
        reduction = next(op for op in group.block.ops if has_trait(op, Reduction))
        self.full = self.stages.shape
        self.kept = shape_of(reduction.results[0])
        self.length: Dim = dims.product(self.full[len(self.kept) :])
        self.flat: dict[SSAValue, SSAValue] = {}
        self.yields = list(group.terminator.operands)
        self.body = _RowBody(at, group)
        self.body.full, self.body.rows = self.full, {}
        self.outs = [
            self._rows_of(out) if shape_of(v) == self.full else out
            for v, out in zip(self.yields, group.outs, strict=True)
        ]
        self.body.outer = {
            inner: self._rows_of(outer) if shape_of(inner) == self.full else outer
            for inner, outer in self.body.outer.items()
        }
        self.rows = self._row_operations()

    def _rows_of(self, buffer: SSAValue) -> SSAValue:
        """A buffer of the full shape with its reduced axes as one."""
        if len(self.full) - len(self.kept) == 1 or not isinstance(buffer.type, MemRefType):
            return buffer
        if buffer not in self.flat:
            self.flat[buffer] = collapse(self.at, buffer, (*self.kept, self.length))
        return self.flat[buffer]

    def _row_operations(self) -> list[Operation]:
        """What there is once per row: values of the kept shape, and operands repeated along the row."""
        ones = (*self.kept, *(1 for _ in range(len(self.full) - len(self.kept))))
        per_row = {self.kept, ones} - {self.full} | {()}
        return [
            op
            for op in self.group.block.ops
            if op.results and shape_of(op.results[0]) in per_row and not has_trait(op, Reduction)
        ]

    def emit(self) -> None:
        """The nest over rows."""
        if self.kept:
            self.body.compute_scalars(self.kept)
        with self.at.nest(*over(self.at, self.kept)) as ivs:
            zero = self.at.index(0)
            outer = tuple(
                zero if size == 1 else iv for size, iv in zip(self.kept, ivs, strict=True)
            )
            self.body.rows = self._rows_on_stack()
            for sweep in self.stages.sweeps:
                self._compute_rows(outer, sweep.level)
                self._sweep(outer, sweep)
            self._compute_rows(outer, len(self.stages.sweeps))
            for value, out in zip(self.yields, self.outs, strict=True):
                if shape_of(value) != self.full:
                    index = self._own_index(value, outer)
                    store_element(self.at, self.body.element(value, index), out, index)

    def _rows_on_stack(self) -> dict[SSAValue, SSAValue]:
        """Memory for what is kept until the place of a result is overwritten, where that is not much."""
        found: dict[SSAValue, SSAValue] = {}
        for value, number in self.stages.kept.items():
            element = memref_of(self.outs[number]).get_element_type()
            if self.yields[number] is value or not isinstance(self.length, int):
                continue
            assert isinstance(element, FixedBitwidthType)
            if self.length * element.bitwidth // 8 <= KEPT_BYTES:
                found[value] = self.at.alloca(element, self.length)
        return found

    def _own_index(self, value: SSAValue, outer: Indices) -> Indices:
        """Where a value per row has its element."""
        missing = len(shape_of(value)) - len(outer)
        return () if not shape_of(value) else (*outer, *(self.at.index(0) for _ in range(missing)))

    def _compute_rows(self, outer: Indices, level: int) -> None:
        """Compute what there is once per row, in front of the sweeps that use it."""
        level_of = self.stages.level
        for op in self.rows:
            if level_of[op.results[0]] <= level:
                self.body.element(op.results[0], self._own_index(op.results[0], outer))
        depth = len(self.full) - len(self.kept)
        for op in self.group.block.ops:
            if op.name != "tssa.broadcast" or shape_of(op.results[0]) != self.full:
                continue
            (value,) = op.operands
            if level_of.get(value, 0) > level or any(s != 1 for s in shape_of(value)[-depth:]):
                continue
            padded = (*outer, *(self.at.index(0) for _ in range(depth)))
            self.body.element(value, self.body.moved(op, padded))

    def _sweep(self, outer: Indices, sweep: Sweep) -> None:
        """One pass over the row."""
        if sweep.reductions:
            self._reduce(outer, sweep)
        else:
            self._write(outer, sweep)
        self.body.kept.update({v: self.outs[k] for v, k in sweep.stores.items()})

    def _store(self, sweep: Sweep, indices: Indices) -> None:
        """Write what later sweeps load."""
        for value, number in sweep.stores.items():
            element = self.body.element(value, indices)
            store_element(self.at, element, *self.body.place(value, self.outs[number], indices))

    def _reduce(self, outer: Indices, sweep: Sweep) -> None:
        ops = sweep.reductions

        def elements(indices: Sequence[SSAValue]) -> list[SSAValue]:
            values = [self.body.element(op.operands[0], tuple(indices)) for op in ops]
            self._store(sweep, tuple(indices))
            return [
                self.at.emit(arith.ExtUIOp, (value,), i8) if value.type == i1 else value
                for value in values
            ]

        results = reduce_together(self.at, ops, self.length, outer, elements)
        for op, result in zip(ops, results, strict=True):
            if result.type == i8:
                result = self.at.compare("ne", result, self.at.constant(i8, 0))
            self.body.define(op.results[0], outer, result)

    def _write(self, outer: Indices, sweep: Sweep) -> None:
        """The last sweep: results that there are for each element."""
        at = self.at
        with at.nest([at.index(0)], [at.size(self.length)], [PARALLEL]) as (index,):
            indices = (*outer, index)
            elements = {v: self.body.element(v, indices) for v in sweep.roots}
            for value, out in zip(self.yields, self.outs, strict=True):
                if value in elements:
                    store_element(at, elements[value], out, indices)
