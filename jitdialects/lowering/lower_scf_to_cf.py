"""`lower-scf-to-cf`: loops and conditionals become branches, loops with the test at the bottom.

    %r = scf.for %i = %lb to %ub step %s iter_args(%a = %x) -> (f32) { ...; scf.yield %b : f32 }
    ->
      %enter = arith.cmpi slt, %lb, %ub : index
      cf.cond_br %enter, ^body(%lb, %x : index, f32), ^end(%x : f32)
    ^body(%i: index, %a: f32):
      ...
      %next = arith.addi %i, %s : index
      %again = arith.cmpi slt, %next, %ub : index
      cf.cond_br %again, ^body(%next, %b : index, f32), ^end(%b : f32)
    ^end(%r: f32):

xDSL's `convert-scf-to-cf` tests at the top, as MLIR does, and relies on LLVM to rotate the loop; no LLVM
pass that would runs here. The first test is left out where both bounds are constants that enter the loop.

    cf.assert %ok, "..."                  ->    cf.cond_br %ok, ^after, ^failed
                                              ^failed:
                                                func.return {jd.status = 1 : i32}

One walk. Lowers `scf.for`, `scf.if` and `cf.assert`; leaves other operations of `scf`, and what is inside
them, and an assertion in a function that returns something.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.arith import AddiOp, IntegerOverflowAttr
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1, i32, i64
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from jitdialects.dialects.interned import i32_array
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.upstream import CmpiOp
from jitdialects.lowering.blocks import split_before

STATUS = "jd.status"
"""Attribute of a return: what the packed entry gives instead of 0."""
_SIGNED_LESS_THAN = IntegerAttr(2, i64)
_WRAPS = {"overflowFlags": IntegerOverflowAttr("none")}


def is_entered(lower: SSAValue, upper: SSAValue) -> bool:
    """True if both bounds are constants and the first iteration runs."""
    numbers: list[int] = []
    for bound in (lower, upper):
        owner = bound.owner
        if not isinstance(owner, Operation) or owner.name != "arith.constant":
            return False
        value = owner.properties["value"]
        if not isinstance(value, IntegerAttr):
            return False
        numbers.append(value.value.data)
    return numbers[0] < numbers[1]


def _compare(block: Block, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    op = new_operation(CmpiOp, (lhs, rhs), (i1,), {"predicate": _SIGNED_LESS_THAN})
    block.add_op(op)
    return op.results[0]


def _branch(block: Block, target: Block, values: Sequence[SSAValue]) -> None:
    block.add_op(new_operation(BranchOp, values, successors=(target,)))


def _conditional_branch(
    block: Block,
    condition: SSAValue,
    taken: tuple[Block, Sequence[SSAValue]],
    otherwise: tuple[Block, Sequence[SSAValue]],
) -> None:
    sizes = i32_array(1, len(taken[1]), len(otherwise[1]))
    op = new_operation(
        ConditionalBranchOp,
        operands=(condition, *taken[1], *otherwise[1]),
        successors=(taken[0], otherwise[0]),
        properties={"operandSegmentSizes": sizes},
    )
    block.add_op(op)


def _split(op: Operation) -> tuple[Block, Block]:
    """The block before `op`, now without terminator, and the one after, with `op`'s results as arguments.

    `op` is taken out of its block and has no uses afterwards.
    """
    before = op.parent
    assert before is not None
    after = split_before(op)
    after.detach_op(op)
    for index, result in enumerate(op.results):
        result.replace_all_uses_with(after.insert_arg(result.type, index))
    return before, after


def _take_terminator(block: Block) -> Sequence[SSAValue]:
    terminator = block.last_op
    assert terminator is not None
    values = tuple(terminator.operands)
    block.erase_op(terminator)
    return values


def lower_for(op: Operation) -> Block:
    """Lower one `scf.for` whose body has no `scf` left. Returns the block after the loop."""
    lower, upper, step, *initial = op.operands
    before, after = _split(op)
    body = op.regions[0]
    first, last = body.first_block, body.last_block
    assert first is not None and last is not None
    yielded = _take_terminator(last)
    body.move_blocks_before(after)
    if is_entered(lower, upper):
        _branch(before, first, (lower, *initial))
    else:
        enter = _compare(before, lower, upper)
        _conditional_branch(before, enter, (first, (lower, *initial)), (after, initial))
    index = first.args[0]
    advance = new_operation(AddiOp, (index, step), (index.type,), _WRAPS)
    last.add_op(advance)
    following = advance.results[0]
    again = _compare(last, following, upper)
    _conditional_branch(last, again, (first, (following, *yielded)), (after, yielded))
    op.erase()
    return after


def lower_if(op: Operation) -> Block:
    """Lower one `scf.if` whose regions have no `scf` left. Returns the block after it."""
    condition = op.operands[0]
    before, after = _split(op)
    targets: list[Block] = []
    for region in op.regions:
        first, last = region.first_block, region.last_block
        if first is None or last is None:
            targets.append(after)
            continue
        values = _take_terminator(last)
        region.move_blocks_before(after)
        _branch(last, after, values)
        targets.append(first)
    _conditional_branch(before, condition, (targets[0], ()), (targets[1], ()))
    op.erase()
    return after


def lower_assert(op: Operation) -> Block:
    """Lower one `cf.assert` of a function that returns nothing: where it fails, the function returns with
    `jd.status`, which `llvm-emit-packed-entry` hands on. Returns the block after it."""
    condition = op.operands[0]
    before, after = _split(op)
    exit = ReturnOp()
    exit.attributes[STATUS] = IntegerAttr(1, i32)
    failed = Block([exit])
    region = after.parent_region()
    assert region is not None
    region.insert_block_before(failed, after)  # the last block is where a loop goes on
    _conditional_branch(before, condition, (after, ()), (failed, ()))
    op.erase()
    return after


def is_kept(op: Operation) -> bool:
    """An assertion whose failure has no way out: its function has results."""
    if op.name != "cf.assert":
        return False
    function = op.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    return function is None or len(function.function_type.outputs) > 0


_LOWER = {"scf.for": lower_for, "scf.if": lower_if, "cf.assert": lower_assert}


def lower_region(region: Region) -> None:
    """Lower everything inside `region`, inner operations first."""
    for block in tuple(region.blocks):
        op = block.first_op
        while op is not None:
            for inner in op.regions:
                lower_region(inner)
            lower = None if is_kept(op) else _LOWER.get(op.name)
            op = lower(op).first_op if lower is not None else op.next_op


class LowerScfToCfPass(ModulePass):
    """`scf.for` and `scf.if` to branches; see the module."""

    name = "lower-scf-to-cf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_region(op.body)
