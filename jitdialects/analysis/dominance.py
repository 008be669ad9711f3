"""SSA dominance: every use of a value is reached only through its definition.

xDSL's verifier has no such check and accepts a use before its definition. This one walks each
region once along its dominator tree and keeps the set of values in scope, so it is near-linear in
the size of the IR. Rules, as in MLIR:

- a region sees what its operation sees, unless the operation is `IsolatedFromAbove`;
- a block sees the arguments and results of the blocks that dominate it;
- a use in a block that no path reaches is not judged; a value defined there is in nobody's
  scope.

Dominators: the algorithm Semi-NCA of Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005.
Climbing the tree from each predecessor of a join (Cooper, Harvey, Kennedy, 2001) takes the square of the number of
branches of a switch.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from jitdialects.dialects.interfaces import has_trait, name_of


def check_dominance(op: Operation) -> None:
    """Raise `VerifyException`, naming value and user, if a use inside `op` is not dominated."""
    _check_regions(op, set())


def _check_regions(op: Operation, outer: set[SSAValue]) -> None:
    visible = set[SSAValue]() if has_trait(op, IsolatedFromAbove) else outer
    for region in op.regions:
        _check_region(region, visible)


def _check_region(region: Region, visible: set[SSAValue]) -> None:
    """Check all blocks; `visible` is extended on the way down the dominator tree and restored."""
    if region.first_block is None:
        return
    children = dominator_tree(region)
    # An explicit stack: a chain of a thousand blocks must not meet Python's recursion limit.
    stack: list[tuple[Block, list[SSAValue] | None]] = [(region.first_block, None)]
    while stack:
        block, added = stack.pop()
        if added is not None:
            visible.difference_update(added)
            continue
        stack.append((block, _check_block(block, visible)))
        stack.extend((child, None) for child in children[block])


def _check_block(block: Block, visible: set[SSAValue]) -> list[SSAValue]:
    """Check the operations of one block in order; return the values that it added to `visible`."""
    added: list[SSAValue] = list(block.args)
    visible.update(added)
    for op in block.ops:
        for operand in op.operands:
            if operand not in visible:
                _refuse(operand, op)
        if op.regions:
            _check_regions(op, visible)
        visible.update(op.results)
        added.extend(op.results)
    return added


def _refuse(value: SSAValue, user: Operation) -> None:
    message = f"{_describe(value)} does not dominate its use by '{name_of(user)}'"
    user.emit_error(message, VerifyException(message))


def _describe(value: SSAValue) -> str:
    name = f"value '%{value.name_hint}', " if value.name_hint else ""
    match value:
        case OpResult():
            return f"{name}result {value.index} of '{name_of(value.op)}'"
        case BlockArgument():
            return f"{name}argument {value.index} of a block"
        case _:
            return f"{name}a value without a definition"


def successors(block: Block) -> Iterable[Block]:
    """The blocks to which the terminator of `block` may jump."""
    return block.last_op.successors if block.last_op is not None else ()


def _depth_first(region: Region) -> tuple[dict[Block, Block], list[Block]]:
    """The blocks reachable from the entry: in the order in which a search meets them, each with the one that it was
    met from (the entry with itself), and in the order in which it leaves them."""
    entry = region.first_block
    if entry is None:
        return {}, []
    parents = {entry: entry}
    left: list[Block] = []
    stack = [(entry, iter(tuple(successors(entry))))]
    while stack:
        block, pending = stack[-1]
        fresh = next((s for s in pending if s not in parents), None)
        if fresh is None:
            left.append(block)
            stack.pop()
        else:
            parents[fresh] = block
            stack.append((fresh, iter(tuple(successors(fresh)))))
    return parents, left


def postorder(region: Region) -> list[Block]:
    """The blocks reachable from the entry, each after all its successors but back edges."""
    return _depth_first(region)[1]


def immediate_dominators(region: Region) -> dict[Block, Block]:
    """The immediate dominator of each reachable block, in reverse postorder; the entry maps to itself."""
    parents, left = _depth_first(region)
    blocks = list(parents)
    number = {block: i for i, block in enumerate(blocks)}
    predecessors: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for successor in successors(block):
            predecessors[number[successor]].append(number[block])
    idom = [number[parent] for parent in parents.values()]
    semi = _semidominators(idom, predecessors)
    for i in range(1, len(blocks)):
        while idom[i] > semi[i]:
            idom[i] = idom[idom[i]]
    return {block: blocks[idom[number[block]]] for block in reversed(left)}


def _semidominators(parents: list[int], predecessors: list[list[int]]) -> list[int]:
    """Per block the least number from which a path of larger numbers than the block's leads to it."""
    semi, best = list(range(len(parents))), list(range(len(parents)))
    above = [-1, *parents[1:]]

    def least(v: int, linked: int) -> int:
        """The semidominator of the best block between `v` and the first one above it that is not linked yet; the
        way there is shortened for those who come after."""
        path: list[int] = []
        while above[v] >= linked:
            path.append(v)
            v = above[v]
        while path:
            w = path.pop()
            above[w] = above[v]
            if semi[best[v]] < semi[best[w]]:
                best[w] = best[v]
            v = w
        return semi[best[v]]

    for i in range(len(parents) - 1, 0, -1):
        semi[i] = min(parents[i], *(least(p, i + 1) for p in predecessors[i]))
    return semi


def dominator_tree(region: Region) -> dict[Block, list[Block]]:
    """The blocks that each reachable block immediately dominates, in reverse postorder."""
    idom = immediate_dominators(region)
    children: dict[Block, list[Block]] = {block: [] for block in idom}
    for block, parent in idom.items():
        if block is not parent:
            children[parent].append(block)
    return children
