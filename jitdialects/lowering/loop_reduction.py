"""Sums, maxima and dot products along one axis, in 32 lanes.

The order of a sum of floats is the numerics contract's and a function of the logical index only:

    blocks of 4096 elements; inside a block lane = index mod 32, each lane ascending from -0.0;
    lanes folded by halves (16, 8, 4, 2, 1); block sums joined by the binary tree that is aligned at 0,
    a missing partner passing on; finally + (+0.0)

-0.0 is what changes no sum, so lanes and partners without elements do no harm. The tree needs a stack only:
after block b, as many pairs are complete as b + 1 has trailing zeros. A dot product is the same with
`fma(x, y, lane)`. Integers and maxima may be taken in any order (a maximum is exact): one block.

Where there is only one row, its blocks are a parallel axis, up to 1024 at a time, so that threads share them out; their
results lie side by side, and enter the tree behind it. Maxima and integers go the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import I64, DenseArrayBase, i64
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.dialects.loop import PARALLEL, REDUCTION
from jitdialects.dialects.tssa import GroupOp
from jitdialects.dialects.tssa_types import buffer_element_type, shape_of, tensor_of
from jitdialects.lowering.accumulators import FOLDS, Cells, Fold, Parts
from jitdialects.lowering.emitter import INDEX, STRICT, WRAP, Emitter, collapse, memref_of
from jitdialects.lowering.loop_elementwise import Body, is_contiguous, over, store_results
from jitdialects.lowering.loop_matmul import multiply_add
from jitdialects.lowering.scalar_rules import is_float

BLOCK, LANES = 4096, 32
LEVELS = 40
"""Of the tree over blocks where the length is not static: 2^40 blocks take days."""
INDEX_BITS = 64
TOGETHER = 1024
"""Blocks of an only row that threads share out before their results are joined: many times what is worth a thread, and
the results take some pages of the stack."""
FEW = 16
"""Elements of a row or column that need no lanes in memory: one in each."""
LONG = 768
"""Elements of a row that are worth a jump to the next row of a lane."""
MANY = 1024
"""Rows of columns whose order is free that are worth some runs, which threads share out."""
RUNS = 8
STEPS, STEPS_IN_ORDER = 4, 8
"""Rows of columns that are added at a time, so that an accumulator in memory is loaded and stored once for all."""


Elements = Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
"""An index for each axis of the operands -> for each reduction the element there as buffers hold it, emitted at the
emitter's place. It may load, or compute what a fused prologue computes."""
Run = Callable[[], AbstractContextManager[None]]
"""What is emitted in front of a loop down some elements of a column: what they have in common."""
Step = Callable[[SSAValue, Parts], Parts]
"""(index along the axis, lane so far) -> lane with that element."""


def lower_reduction(at: Emitter, group: GroupOp, op: Operation) -> None:
    """One parallel nest over the kept axes, a row of the reduced ones inside it."""
    source = Body(at, group).outer[op.operands[0]]
    axes = axes_of(op)
    rows = rows_of(at, source, group.outs[0], shape_of(op.operands[0]), axes)

    def elements(indices: Sequence[SSAValue]) -> list[SSAValue]:
        return [at.load(rows.source, indices if axes else indices[:-1])]

    with at.nest(*over(at, rows.kept)) as outer:
        (result,) = reduce_together(at, [op], rows.length, outer, elements, rows.axis, cheap=True)
        at.store(result, rows.out, outer)


@dataclass(frozen=True)
class Rows:
    """A reduction of one axis: `out[kept]` from `length` elements at `axis` of `source`."""

    source: SSAValue
    out: SSAValue
    kept: Shape
    axis: int
    length: Dim


def axes_of(op: Operation) -> tuple[int, ...]:
    """The reduced axes of a `tssa` reduction, ascending."""
    axes = cast("DenseArrayBase[I64]", op.properties["axes"])
    return tuple(map(int, axes.get_values()))


def rows_of(
    at: Emitter, source: SSAValue, out: SSAValue, shape: Shape, axes: Sequence[int]
) -> Rows:
    """One axis in place of neighbouring ones, where memory is contiguous: those before the reduced ones,
    the reduced ones, those behind them. Without reduced axes, rows of one element."""
    if not axes:
        return Rows(source, out, shape, len(shape), 1)
    first, behind = axes[0], axes[-1] + 1
    if behind - first != len(axes):
        raise PassFailedException(
            f"convert-tssa-to-loop: the reduced axes {tuple(axes)} are not neighbours; "
            "run tssa-simplify, which transposes"
        )
    if is_contiguous(source) and is_contiguous(out):
        length = dims.product(shape[first:behind])
        before, after = joined(shape[:first]), joined(shape[behind:])
        whole = (*before, length, *after)
        source = collapse(at, source, whole)
        return Rows(source, collapse(at, out, before + after), before + after, len(before), length)
    if len(axes) > 1:
        raise PassFailedException(
            f"convert-tssa-to-loop: the reduced axes {tuple(axes)} of a strided buffer are no rows; "
            "run tssa-bufferize, which copies"
        )
    return Rows(source, out, shape[:first] + shape[behind:], first, shape[first])


def joined(shape: Shape) -> Shape:
    """The axes as one; none where there is one index only."""
    size = dims.product(shape)
    return () if size == 1 else (size,)


def reduce_together(
    at: Emitter,
    ops: Sequence[Operation],
    length: Dim,
    outer: Sequence[SSAValue],
    elements: Elements,
    axis: int | None = None,
    *,
    cheap: bool = False,
    run: Run = nullcontext,
) -> list[SSAValue]:
    """What several reductions make of a row of `length` elements in one pass over it, at the emitter's place.
    The order is that of any sum among them: others have none.

    The row's index is number `axis` (default: the last) among those of `elements`, the others are `outer`.
    Results are scalars of the type in which buffers hold them: an epilogue may follow. `cheap`: an element is little
    work, so that a short row needs no loop. `run` is around each of the loops down some elements of a column.
    """
    axis = len(outer) if axis is None else axis
    before, behind = tuple(outer[:axis]), tuple(outer[axis:])
    folds = [_fold_of(op) for op in ops]
    whole = Fold(tuple(part for fold in folds for part in fold.parts))
    blocked = any(map(_is_blocked, ops))

    def entered(index: SSAValue) -> Parts:
        found = zip(folds, elements((*before, index, *behind)), strict=True)
        return tuple(part for fold, element in found for part in fold.enter(at, element))

    def step(index: SSAValue, lane: Parts) -> Parts:
        return whole.combine(at, lane, entered(index))

    if length == 1:
        results = elements((*before, at.index(0), *behind))
    else:
        if cheap and isinstance(length, int) and 1 < length <= FEW:
            parts = _fold_few(at, [entered(at.index(i)) for i in range(length)], whole)
        elif not behind:
            parts = reduce_axis(at, length, whole, step, blocked=blocked, alone=not outer)
        elif blocked:
            add = partial(_add_columns, run=run, long=_has_long_rows(ops[0]))
            parts = reduce_axis(at, length, whole, step, blocked=True, add=add)
        elif isinstance(length, int) and length >= MANY:
            runs = Lanes(Cells.on_stack(at, whole, RUNS), step, RUNS)
            parts = _reduce_block(at, 0, length, runs, partial(_add_runs, run=run))
        else:
            parts = _reduce_in_order(at, length, whole, step, run)
        each = iter(parts)
        results = [fold.leave(at, tuple(islice(each, len(fold.parts)))) for fold in folds]
    return [_finished(at, op, result) for op, result in zip(ops, results, strict=True)]


def _has_long_rows(op: Operation) -> bool:
    """Whether what lies behind the reduced axes is long, as far as is known."""
    columns = dims.product(shape_of(op.operands[0])[axes_of(op)[-1] + 1 :])
    return isinstance(columns, int) and columns >= LONG


def _fold_of(op: Operation) -> Fold:
    return FOLDS[op.name][buffer_element_type(tensor_of(op.operands[0]).get_element_type())]


def _is_blocked(op: Operation) -> bool:
    """Whether the order of a reduction is the contract's: sums and products of floats."""
    element = tensor_of(op.operands[0]).get_element_type()
    return is_float(element) and op.name in ("tssa.sum", "tssa.prod")


def _finished(at: Emitter, op: Operation, result: SSAValue) -> SSAValue:
    return plus_zero(at, result) if _is_blocked(op) and op.name == "tssa.sum" else result


def plus_zero(at: Emitter, sum: SSAValue) -> SSAValue:
    """A sum of nothing, or of negative zeros, is +0.0 in the end."""
    return at.emit(arith.AddfOp, (sum, at.constant(sum.type, 0.0)), sum.type, STRICT)


def _fold_few(at: Emitter, lanes: list[Parts], fold: Fold) -> Parts:
    """One element per lane, folded by halves; lanes without elements change nothing."""
    half = FEW // 2
    while half:
        pairs = list(zip(lanes, lanes[half:], strict=False))
        lanes = [*(fold.combine(at, a, b) for a, b in pairs), *lanes[len(pairs) : half]]
        half //= 2
    return lanes[0]


def _reduce_in_order(at: Emitter, length: Dim, fold: Fold, step: Step, run: Run) -> Parts:
    """Elements that are not next to each other, in any order: one accumulator, some steps at a time."""
    lane = Cells.on_stack(at, fold)
    lane.store(at, fold.identities(at))

    def steps(first: SSAValue, end: SSAValue) -> None:
        with run(), at.nest([first], [end], [REDUCTION]) as (index,):
            lane.store(at, step(index, lane.load(at)))

    whole = dims.scale(dims.floordiv(length, STEPS_IN_ORDER), STEPS_IN_ORDER)
    if whole != 0:
        bounds = [at.index(0)], [at.size(whole)]
        with at.nest(*bounds, [REDUCTION], [STEPS_IN_ORDER]) as (first,):
            steps(first, at.add(first, at.index(STEPS_IN_ORDER)))
    if whole != length:
        steps(at.size(whole), at.size(length))
    return lane.load(at)


def lower_dot(at: Emitter, group: GroupOp, op: Operation) -> None:
    """A product whose right operand has rank 1, and its epilogue."""
    body = Body(at, group)
    x, y = (body.outer[v] for v in op.operands)
    shape = shape_of(op.results[0])
    body.compute_scalars(shape)
    element = memref_of(x).get_element_type()
    with at.nest(*over(at, shape)) as outer:

        def step(index: SSAValue, lane: Parts) -> Parts:
            left, right = at.load(x, (*outer, index)), at.load(y, (index,))
            return (multiply_add(at, left, right, lane[0]),)

        length = shape_of(op.operands[1])[0]
        fold, blocked = FOLDS["tssa.sum"][element], is_float(element)
        sum = fold.leave(at, reduce_axis(at, length, fold, step, blocked=blocked, alone=not outer))
        if blocked:
            sum = plus_zero(at, sum)
        body.define(op.results[0], outer, sum)
        store_results(body, group.terminator.operands, group.outs, outer)


@dataclass(frozen=True)
class Lanes:
    """Accumulators in memory, and what an element does to one of them."""

    cells: Cells
    step: Step
    count: int = LANES
    """A power of two."""

    @property
    def fold(self) -> Fold:
        return self.cells.fold

    def add(self, at: Emitter, index: SSAValue, lane: SSAValue) -> None:
        """Add the element at `index` to a lane."""
        self.cells.store(at, self.step(index, self.cells.load(at, lane)), lane)


Bound = Dim | SSAValue
Add = Callable[[Emitter, Lanes, Bound, Bound], None]
"""Adds the elements from one index (a multiple of 32) up to another to the lanes, each lane ascending."""


def reduce_axis(
    at: Emitter,
    length: Dim,
    fold: Fold,
    step: Step,
    *,
    blocked: bool,
    add: Add | None = None,
    alone: bool = False,
) -> Parts:
    """An accumulator of `length` elements; sums and products of floats are `blocked`. `add` says how the elements of
    a block are visited: chunk by chunk if they lie next to each other, as by default. `alone`: this is the only row, whose
    blocks threads may share out, also where the order is free."""
    add = add or _add_chunks
    if isinstance(length, int) and length <= BLOCK or not (blocked or alone):
        return _reduce_block(at, 0, length, Lanes(Cells.on_stack(at, fold, LANES), step), add)
    if alone:
        return _reduce_blocks_together(at, length, fold, step, add)
    return _reduce_blocks(at, length, Lanes(Cells.on_stack(at, fold, LANES), step), add)


def _value(at: Emitter, index: Bound) -> SSAValue:
    return index if isinstance(index, SSAValue) else at.size(index)


def _multiple_below(at: Emitter, first: Bound, stop: Bound, number: int) -> Bound:
    """The last index up to `stop` that is a multiple of `number`, a power of two, away from `first`."""
    if not isinstance(first, SSAValue) and not isinstance(stop, SSAValue):
        count = dims.sub(stop, first)
        return dims.add(first, dims.scale(dims.floordiv(count, number), number))
    count = at.emit(arith.SubiOp, (_value(at, stop), _value(at, first)), INDEX, WRAP)
    rest = at.emit(arith.AndIOp, (count, at.index(number - 1)), INDEX)
    return at.emit(arith.SubiOp, (_value(at, stop), rest), INDEX, WRAP)


def _add_chunks(at: Emitter, lanes: Lanes, first: Bound, stop: Bound) -> None:
    """Neighbours: 32 at a time, a lane each, then the ragged chunk."""

    ragged: Bound
    rest: Bound

    def chunk(start: SSAValue, count: SSAValue) -> None:
        with at.nest([at.index(0)], [count], [PARALLEL]) as (lane,):
            lanes.add(at, at.add(start, lane), lane)

    if isinstance(first, SSAValue) or isinstance(stop, SSAValue):
        count = at.emit(arith.SubiOp, (_value(at, stop), _value(at, first)), INDEX, WRAP)
        rest = at.emit(arith.AndIOp, (count, at.index(LANES - 1)), INDEX)
        ragged = at.emit(arith.SubiOp, (_value(at, stop), rest), INDEX, WRAP)
    else:
        rest = dims.sub(stop, first)
        ragged = dims.add(first, dims.scale(dims.floordiv(rest, LANES), LANES))
        rest = dims.sub(stop, ragged)
    if first != ragged:
        bounds = [_value(at, first)], [_value(at, ragged)]
        with at.nest(*bounds, [REDUCTION], [LANES]) as (start,):
            chunk(start, at.index(LANES))
    if rest != 0:
        chunk(_value(at, ragged), _value(at, rest))


def _add_runs(at: Emitter, lanes: Lanes, first: Bound, stop: Bound, *, run: Run) -> None:
    """Elements of a column, of which any lane may take any: each as many neighbours, some steps at a time."""
    assert isinstance(first, int) and isinstance(stop, int)
    zero, step = at.index(0), at.index(STEPS_IN_ORDER)
    length = (stop - first) // (lanes.count * STEPS_IN_ORDER) * STEPS_IN_ORDER

    def column(lane: SSAValue, start: SSAValue, end: SSAValue) -> None:
        with run(), at.nest([start], [end], [REDUCTION]) as (index,):
            lanes.add(at, index, lane)

    def columns(lane: SSAValue, start: SSAValue, end: SSAValue) -> None:
        with at.nest([start], [end], [REDUCTION], [STEPS_IN_ORDER]) as (base,):
            column(lane, base, at.add(base, step))

    with at.nest([zero], [at.index(lanes.count)], [PARALLEL]) as (lane,):
        begin = at.emit(arith.MuliOp, (lane, at.index(length)), INDEX, WRAP)
        start = at.add(begin, at.index(first)) if first else begin
        columns(lane, start, at.add(start, at.index(length)))
    done = first + lanes.count * length
    whole = stop - (stop - done) % STEPS_IN_ORDER
    if done < whole:
        columns(zero, at.index(done), at.index(whole))
    if whole < stop:
        column(zero, at.index(whole), at.index(stop))


def _add_columns(
    at: Emitter, lanes: Lanes, first: Bound, stop: Bound, *, run: Run, long: bool
) -> None:
    """Elements of a column: lane by lane, some steps of one lane at a time, then what is left. All of a lane goes first
    where rows are `long`: its accumulators stay near, and threads share out lanes; short rows are read as they lie."""
    group = LANES * STEPS
    whole = _multiple_below(at, first, stop, group)

    def column(lane: SSAValue, start: SSAValue, end: SSAValue) -> None:
        with run(), at.nest([start], [end], [REDUCTION], [LANES]) as (index,):
            lanes.add(at, at.add(index, lane), lane)

    zero, width = at.index(0), at.index(LANES)
    if first != whole:
        lanes_axis = [zero], [width], [PARALLEL], [1]
        groups_axis = [_value(at, first)], [_value(at, whole)], [REDUCTION], [group]
        outside, inside = (lanes_axis, groups_axis) if long else (groups_axis, lanes_axis)
        with at.nest(*outside) as (one,), at.nest(*inside) as (other,):
            lane, start = (one, other) if long else (other, one)
            column(lane, start, at.add(start, at.index(group)))
    if whole == stop:
        return
    if isinstance(whole, int) and isinstance(stop, int):
        width = at.index(min(LANES, stop - whole))
    with at.nest([zero], [width], [PARALLEL]) as (lane,):
        end = at.emit(arith.SubiOp, (_value(at, stop), lane), INDEX, WRAP)
        column(lane, _value(at, whole), end)


def _reduce_block(at: Emitter, first: Bound, stop: Bound, lanes: Lanes, add: Add) -> Parts:
    """Combine the elements of one block: into lanes, then the lanes by halves."""
    cells, fold = lanes.cells, lanes.fold
    zero = at.index(0)
    used = lanes.count  # the other lanes stay at what changes nothing
    if isinstance(first, int) and isinstance(stop, int):
        used = min(lanes.count, stop - first)
    with at.nest([zero], [at.index(lanes.count)], [PARALLEL]) as (lane,):
        cells.store(at, fold.identities(at), lane)
    add(at, lanes, first, stop)
    half = lanes.count // 2
    while half > 1:
        if half < used:
            with at.nest([zero], [at.index(half)], [PARALLEL]) as (lane,):
                other = cells.load(at, at.add(lane, at.index(half)))
                cells.store(at, fold.combine(at, cells.load(at, lane), other), lane)
        half //= 2
    result = cells.load(at, zero)
    return fold.combine(at, result, cells.load(at, at.index(1))) if used > 1 else result


def _reduce_blocks(at: Emitter, length: Dim, lanes: Lanes, add: Add) -> Parts:
    """Reduce blocks one after the other, joined by the aligned binary tree."""
    tree, end = Tree.on_stack(at, lanes.fold, length), at.size(length)
    with at.nest([at.index(0)], [tree.leaves], [REDUCTION]) as (block,):
        tree.push(at, _reduce_block(at, *_bounds_of(at, block, end), lanes, add), block)
    return tree.joined(at)


def _reduce_blocks_together(at: Emitter, length: Dim, fold: Fold, step: Step, add: Add) -> Parts:
    """Reduce up to `TOGETHER` blocks, which do not depend on each other, then put them into the tree; then the next."""
    tree, end, zero = Tree.on_stack(at, fold, length), at.size(length), at.index(0)
    found = Cells.on_stack(at, fold, TOGETHER)

    def reduce(first: SSAValue, count: SSAValue) -> None:
        with at.nest([zero], [count], [PARALLEL]) as (place,):
            lanes = Lanes(Cells.on_stack(at, fold, LANES), step)
            bounds = _bounds_of(at, at.add(first, place), end)
            found.store(at, _reduce_block(at, *bounds, lanes, add), place)
        with at.nest([zero], [count], [REDUCTION]) as (place,):
            tree.push(at, found.load(at, place), at.add(first, place))

    if isinstance(length, int) and length <= TOGETHER * BLOCK:
        reduce(zero, tree.leaves)
    else:
        with at.nest([zero], [tree.leaves], [REDUCTION], [TOGETHER]) as (first,):
            left = at.emit(arith.SubiOp, (tree.leaves, first), INDEX, WRAP)
            reduce(first, at.emit(arith.MinSIOp, (left, at.index(TOGETHER)), INDEX))
    return tree.joined(at)


def _bounds_of(at: Emitter, block: SSAValue, end: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The first index of a block, and the one behind it."""
    start = at.emit(arith.MuliOp, (block, at.index(BLOCK)), INDEX, WRAP)
    return start, at.emit(arith.MinSIOp, (at.add(start, at.index(BLOCK)), end), INDEX)


@dataclass(frozen=True)
class Tree:
    """The binary tree over blocks that is aligned at 0: a counter with a stack of partial sums.

    After leaf b, as many pairs are complete as b + 1 has trailing zeros. `stack[t]` is the sum of 2^t leaves that waits
    for its partner to the right.
    """

    leaves: SSAValue
    stack: Cells
    sum: Cells

    @staticmethod
    def on_stack(at: Emitter, fold: Fold, length: Dim) -> Tree:
        """Over the blocks of `length` elements."""
        count = dims.floordiv(dims.add(length, BLOCK - 1), BLOCK)
        levels = count.bit_length() if isinstance(count, int) else LEVELS
        stack, sum = Cells.on_stack(at, fold, levels), Cells.on_stack(at, fold)
        return Tree(at.size(count), stack, sum)

    def push(self, at: Emitter, leaf: Parts, number: SSAValue) -> None:
        """The next leaf."""
        stack, sum = self.stack, self.sum
        sum.store(at, leaf)
        pairs = _bits(at, math.CountTrailingZerosOp, at.add(number, at.index(1)))
        with at.nest([at.index(0)], [pairs], [REDUCTION]) as (level,):
            sum.store(at, stack.fold.combine(at, stack.load(at, level), sum.load(at)))
        stack.store(at, sum.load(at), pairs)

    def joined(self, at: Emitter) -> Parts:
        """All of it: what waits for a partner is joined from the right."""
        stack, sum, zero, one = self.stack, self.sum, at.index(0), at.index(1)
        nothing = stack.fold.identities(at)
        sum.store(at, nothing)
        absent = _bits(at, math.CountLeadingZerosOp, self.leaves)
        levels = at.emit(arith.SubiOp, (at.index(INDEX_BITS), absent), INDEX, WRAP)
        with at.nest([zero], [levels], [REDUCTION]) as (level,):
            shifted = at.emit(arith.ShRUIOp, (self.leaves, level), INDEX)
            waits = at.compare("ne", at.emit(arith.AndIOp, (shifted, one), INDEX), zero)
            pairs = zip(stack.load(at, level), nothing, strict=True)
            partner = tuple(at.select(waits, there, absent) for there, absent in pairs)
            sum.store(at, stack.fold.combine(at, partner, sum.load(at)))
        return sum.load(at)


def _bits(at: Emitter, count: type[Operation], value: SSAValue) -> SSAValue:
    """Apply a bit count of `math` to an index."""
    number = at.emit(arith.IndexCastOp, (value,), i64)
    return at.emit(arith.IndexCastOp, (at.emit(count, (number,), i64),), INDEX)
