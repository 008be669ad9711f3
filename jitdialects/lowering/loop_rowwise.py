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

Where kept axes lie behind the reduced ones, a row is a column:

    sqrt of the sum over m of (x[m, n] - a[n]) ** 2:   for j in columns:
                                                         s = sum of (x[:, j] - a[j]) ** 2
                                                         y[j] = sqrt(s)

`loop-distribute` moves the columns into the loops down them. Nothing that differs from column to column may then go
from loop to loop but in memory: what there is once per column is kept on the stack, and loaded in front of each
loop down some of its elements. There is one sweep (`analysis.fusion_legality` says why).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, MemRefType, i1, i8
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.row_stages import RowStages, Sweep, stages_of_block
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.dialects.interfaces import Elementwise, Reduction, has_trait
from jitdialects.dialects.loop import PARALLEL
from jitdialects.dialects.tssa import GroupOp
from jitdialects.dialects.tssa_types import buffer_element_type, shape_of
from jitdialects.lowering.emitter import Emitter, collapse, memref_of
from jitdialects.lowering.joined_axes import join_axes_behind
from jitdialects.lowering.loop_elementwise import (
    Body,
    element_of,
    load_element,
    over,
    store_element,
)
from jitdialects.lowering.loop_reduction import axes_of, reduce_together

Indices = tuple[SSAValue, ...]
T = TypeVar("T")

KEPT_BYTES = 8192
"""Of a row on the stack, at most: some of them and the rows that are read fit a first-level cache."""
STRAIGHT = 64
"""Operations of the elements of a short column, at most, that need no loop."""


def lower_rows(at: Emitter, group: GroupOp) -> None:
    """A group with reductions over neighbouring axes of one shape."""
    join_axes_behind(at, group, next(op for op in group.block.ops if has_trait(op, Reduction)))
    _Rows(at, group).emit()


class _RowBody(Body):
    """Elements, at indices in which the reduced axes are one."""

    full: Shape
    axis: int
    """The reduced one, at the place of those that it is made of."""
    rows: dict[SSAValue, SSAValue]
    """What is kept of this row, by itself: an element for each of its own, or one number."""

    def place(
        self, tensor: SSAValue, buffer: SSAValue, indices: Indices
    ) -> tuple[SSAValue, Indices]:
        """Where an element is kept: in its row, or at `indices` of `buffer`."""
        row = self.rows.get(tensor)
        if row is None:
            return buffer, indices
        return row, indices[-1:] if memref_of(row).get_num_dims() else ()

    def load_kept(self, tensor: SSAValue, indices: Indices) -> SSAValue:
        return load_element(self.at, *self.place(tensor, self.kept[tensor], indices))

    def moved(self, op: Operation, indices: Indices) -> Indices:
        source, target = shape_of(op.operands[0]), shape_of(op.results[0])
        missing = len(target) - len(indices)
        if target != self.full or not missing or source == target:
            return super().moved(op, indices)
        # nothing is repeated along some of the reduced axes only: any index along them is the first one
        others = (self.at.index(0) for _ in range(missing))
        return super().moved(op, (*indices[: self.axis + 1], *others, *indices[self.axis + 1 :]))

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Elements that are computed inside are not known behind it."""
        known = dict(self._known)
        yield
        self._known = known


class _Rows:
    """Emits one group."""

    def __init__(self, at: Emitter, group: GroupOp) -> None:
        self.at, self.group = at, group
        self.stages: RowStages = stages_of_block(group.block)
        reduction = next(op for op in group.block.ops if has_trait(op, Reduction))
        self.full = self.stages.shape
        self.kept = shape_of(reduction.results[0])
        axes = axes_of(reduction)
        self.axis, self.depth = axes[0], len(axes)
        self.behind = self.axis + self.depth
        self.length: Dim = dims.product(self.full[self.axis : self.behind])
        self.flat: dict[SSAValue, SSAValue] = {}
        self.yields = list(group.terminator.operands)
        self.body = _RowBody(at, group)
        self.body.full, self.body.axis, self.body.rows = self.full, self.axis, {}
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
        if self.depth == 1 or not isinstance(buffer.type, MemRefType):
            return buffer
        if buffer not in self.flat:
            shape = (*self.kept[: self.axis], self.length, *self.kept[self.axis :])
            self.flat[buffer] = collapse(self.at, buffer, shape)
        return self.flat[buffer]

    def _around(self, kept: Sequence[T], *reduced: T) -> tuple[T, ...]:
        """Of kept and reduced axes in order."""
        return (*kept[: self.axis], *reduced, *kept[self.axis :])

    def _row_operations(self) -> list[Operation]:
        """What there is once per row: values of the kept shape, and operands repeated along the row."""
        ones = self._around(self.kept, *(1 for _ in range(self.depth)))
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
            if self.behind == len(self.full):
                self.body.rows = self._rows_on_stack()
                for sweep in self.stages.sweeps:
                    self._compute_rows(outer, sweep.level)
                    self._sweep(outer, sweep)
                self._compute_rows(outer, len(self.stages.sweeps))
            else:
                self._keep_columns(outer)
                self._reduce(outer, self._only_sweep())
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
        zeros = (self.at.index(0) for _ in range(missing))
        return () if not shape_of(value) else self._around(outer, *zeros)

    def _compute_rows(self, outer: Indices, level: int) -> None:
        """Compute what there is once per row, in front of the sweeps that use it."""
        level_of = self.stages.level
        for op in self.rows:
            if level_of[op.results[0]] <= level:
                self.body.element(op.results[0], self._own_index(op.results[0], outer))
        for op in self.group.block.ops:
            if self._is_repeated(op) and level_of.get(op.operands[0], 0) <= level:
                self._compute_repeated(outer, op)

    def _is_repeated(self, op: Operation) -> bool:
        """Whether `op` repeats what there is once per row along the row."""
        if op.name != "tssa.broadcast" or shape_of(op.results[0]) != self.full:
            return False
        source = shape_of(op.operands[0])
        lead = len(self.full) - len(source)
        return all(s == 1 for s in source[max(0, self.axis - lead) : max(0, self.behind - lead)])

    def _compute_repeated(self, outer: Indices, op: Operation) -> None:
        """Compute what `op` repeats."""
        indices = self._around(outer, self.at.index(0))
        self.body.element(op.operands[0], self.body.moved(op, indices))

    # ---- columns

    def _only_sweep(self) -> Sweep:
        if len(self.stages.sweeps) > 1:
            raise PassFailedException(
                "convert-tssa-to-loop: a group would go over its columns more than once; "
                "run tssa-fuse, which makes no such groups"
            )
        return self.stages.sweeps[0]

    def _keep_columns(self, outer: Indices) -> None:
        """Compute what there is once per column and every element needs, and keep it on the stack."""
        for op in self.rows:
            value = op.results[0]
            uses = (use.operation.name for use in value.uses)
            if (
                self.stages.level[value]
                or not (has_trait(op, Elementwise) and shape_of(value))
                or not any(name in ("tssa.broadcast", "tssa.reshape") for name in uses)
            ):
                continue
            memory = self.at.alloca(buffer_element_type(element_of(value)))
            index = self._own_index(value, outer)
            with self.body.scope():
                store_element(self.at, self.body.element(value, index), memory, ())
            self.body.rows[value] = self.body.kept[value] = memory

    @contextmanager
    def _run(self, outer: Indices, sweep: Sweep) -> Generator[None, None, None]:
        """A loop down some elements of a column, behind what they have in common."""
        with self.body.scope():
            for op in reversed(sweep.computes):
                if self._is_repeated(op):
                    self._compute_repeated(outer, op)
            yield

    # ---- sweeps

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

        straight = (
            self.behind < len(self.full)
            and isinstance(self.length, int)
            and len(sweep.computes) * self.length <= STRAIGHT
        )
        run = partial(self._run, outer, sweep)
        results = reduce_together(
            self.at, ops, self.length, outer, elements, self.axis, cheap=straight, run=run
        )
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
