"""`tssa-fuse`: wrap every computing operation into a `tssa.group`, merging producers into consumers.

    %0 = tssa.multiply %x, %x : (...)        %1 = tssa.group ins(%x : t) {
    %1 = tssa.add %0, %x : (...)         ->  ^bb0(%a : t):
                                               %0 = tssa.multiply %a, %a : (...)
                                               %2 = tssa.add %0, %a : (...)
                                               tssa.yield %2 : t } -> t

Operations are visited from the last to the first, so all users of a producer are in their groups when
it is asked for. A group has one result and stands where that result was computed; its members keep their
order. Needs nothing but SSA. Never moves an operation to another block, never recomputes what is dear,
never puts work in front of a sum, a maximum or the inner loop of a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from jitdialects.analysis.splats import splat_of
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.interfaces import Contraction, Elementwise, ShapeOnly, has_trait
from jitdialects.dialects.tssa import GroupOp, YieldOp
from jitdialects.dialects.tssa_types import shape_of

DEAR = frozenset(
    f"tssa.{name}" for name in ("exp", "tanh", "log", "erf", "sigmoid", "sqrt", "divide")
)
"""Elementwise operations that cost more than reading their result again."""


@dataclass
class Candidate:
    """A group that is growing towards earlier operations."""

    root: Operation
    members: dict[Operation, None] = field(default_factory=dict[Operation, None])
    """Latest first."""
    shared: set[Operation] = field(default_factory=set[Operation])
    """Members that belong to other groups too: those are copied."""
    inputs: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that the group reads from outside."""

    @cached_property
    def shape(self) -> Shape:
        """The iteration space of the group."""
        return shape_of(self.root.results[0])

    def inputs_with(self, producer: Operation) -> set[SSAValue]:
        """What the group would read from outside with `producer` as its first member."""
        return self.inputs.difference(producer.results).union(producer.operands)

    def add(self, producer: Operation, shared: bool = False) -> None:
        """Make `producer` the first member."""
        self.inputs = self.inputs_with(producer)
        self.members[producer] = None
        if shared:
            self.shared.add(producer)


# ---- what an operation is ----------------------------------------------------------------------


def is_computing(op: Operation) -> bool:
    """Whether `op` ends in a group: it writes a buffer of its own, unlike reshape, transpose, extract."""
    if not op.name.startswith("tssa.") or op.name == "tssa.group" or not op.results:
        return False
    return not has_trait(op, ShapeOnly) or op.name == "tssa.broadcast"


def is_pointwise(op: Operation) -> bool:
    """Whether element i of the result needs only element i (or one broadcast to it) of the operands."""
    return has_trait(op, Elementwise) or op.name == "tssa.broadcast"


def is_constant(op: Operation) -> bool:
    """Whether `op` is one number everywhere, known without reading any buffer."""
    return op.name == "tssa.size" or splat_of(op) is not None


def is_duplicable(op: Operation) -> bool:
    """Whether computing `op` again costs no more than reading its result: one number, a broadcast, or
    cheap arithmetic on rank 0, which a nest does once, outside its loops."""
    if is_constant(op) or op.name == "tssa.broadcast":
        return True
    return has_trait(op, Elementwise) and op.name not in DEAR and not shape_of(op.results[0])


def users_of(op: Operation) -> Iterable[Operation]:
    """The operations that read a result of `op`, in no particular order."""
    return (use.operation for result in op.results for use in result.uses)


# ---- legality ----------------------------------------------------------------------------------


def are_in_one_block(producer: Operation, group: Candidate) -> bool:
    """A group must not make a value that another path needs, nor repeat one around a loop."""
    return producer.parent is group.root.parent


def can_be_inside(producer: Operation) -> bool:
    """Sums and insertions are groups of their own."""
    return is_pointwise(producer) or is_constant(producer) or has_trait(producer, Contraction)


def have_one_iteration_space(producer: Operation, group: Candidate) -> bool:
    """Each element of the producer is computed once, at the index where it is used. A single number has
    no index."""
    shape = shape_of(producer.results[0])
    return shape == group.shape or not shape or is_constant(producer)


def feeds_pointwise_members_only(producer: Operation, group: Candidate) -> bool:
    """A sum, a maximum, a product or an insertion reads buffers, at other indices than it writes."""
    return all(is_pointwise(user) for user in users_of(producer) if user in group.members)


def contraction_comes_first(producer: Operation, group: Candidate) -> bool:
    """A group has at most one product, and nothing but an elementwise epilogue after it."""
    if not has_trait(producer, Contraction):
        return True
    return (
        shape_of(producer.results[0]) == group.shape
        and not any(has_trait(op, Contraction) for op in group.members)
        and not any(user.name == "tssa.broadcast" for user in users_of(producer))
    )


def has_no_use_outside(producer: Operation, group: Candidate) -> bool:
    """The group yields its root only. This also excludes cycles: a path from the producer to the root
    through an operation outside would begin with such a use. A shared user is outside too: its copies
    in other groups read the producer."""
    return all(user in group.members and user not in group.shared for user in users_of(producer))


_LEGALITY: tuple[tuple[Callable[[Operation, Candidate], bool], str], ...] = (
    (are_in_one_block, "they are in different blocks"),
    (lambda producer, _: can_be_inside(producer), "it is a group of its own"),
    (feeds_pointwise_members_only, "its consumer reads it at other indices than it writes"),
    (have_one_iteration_space, "their shapes differ"),
    (contraction_comes_first, "the group cannot take a product there"),
    (
        lambda producer, group: has_no_use_outside(producer, group) or is_duplicable(producer),
        "its result is used outside too and is not worth computing twice",
    ),
)


def why_fusion_is_illegal(producer: Operation, group: Candidate) -> str | None:
    """The reason why `producer` must not become a member of `group`; None where it may."""
    return next((why for holds, why in _LEGALITY if not holds(producer, group)), None)


def is_fusion_legal(producer: Operation, group: Candidate) -> bool:
    """Whether `producer` may become a member of `group`: every predicate above holds."""
    return why_fusion_is_illegal(producer, group) is None


# ---- profitability -----------------------------------------------------------------------------


def is_fusion_profitable(
    producer: Operation, group: Candidate, max_ops: int, max_inputs: int
) -> bool:
    """Fusion saves writing and reading the producer's result. It stops paying where the body needs more
    values at once than there are registers."""
    if is_constant(producer):
        return True
    return len(group.members) < max_ops and len(group.inputs_with(producer)) <= max_inputs


# ---- the pass ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TssaFusePass(ModulePass):
    """Wrap computing operations into tssa.group, alone or merged with what they feed.

    `merge=false` gives every operation its own group. `remarks` has a sentence for each refusal.
    """

    name = "tssa-fuse"

    merge: bool = True
    max_ops: int = 64
    max_inputs: int = 12

    @cached_property
    def remarks(self) -> list[str]:
        """Why producers were not merged into their consumers, by all calls of this object."""
        return []

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    self._fuse_block(block)

    def _fuse_block(self, block: Block) -> None:
        groups: list[Candidate] = []
        homes: dict[Operation, list[Candidate]] = {}
        for op in reversed(list(block.ops)):
            if not is_computing(op):
                continue
            joined = self._groups_to_join(op, homes)
            if not all(any(user in g.members for g in joined) for user in users_of(op)):
                joined = [*joined, Candidate(op)]
            elif not joined:  # nobody reads it: left to dead code elimination
                joined = [Candidate(op)]
            if joined[-1].root is op:
                groups.append(joined[-1])
            for group in joined:
                group.add(op, shared=len(joined) > 1)
            homes[op] = joined
        shared = {op for op, joined in homes.items() if len(joined) > 1}
        build_groups(reversed(groups), shared)
        for op in homes:  # latest first, so users before what they use
            if op in shared:
                op.detach()
                op.erase()

    def _groups_to_join(
        self, producer: Operation, homes: dict[Operation, list[Candidate]]
    ) -> list[Candidate]:
        """The groups of the users of `producer` that take it as a member."""
        if not self.merge:
            return []
        around: dict[int, Candidate] = {}
        for user in users_of(producer):
            around.update({id(group): group for group in homes.get(user, ())})
        joined: list[Candidate] = []
        for group in around.values():
            why = why_fusion_is_illegal(producer, group)
            if why is None and not is_fusion_profitable(
                producer, group, self.max_ops, self.max_inputs
            ):
                why = "the group would hold more values than there are registers"
            if why is None:
                joined.append(group)
            else:
                self.remarks.append(
                    f"{producer.name} is not merged into the group of {group.root.name}: {why}"
                )
        return joined


def build_groups(groups: Iterable[Candidate], shared: set[Operation]) -> None:
    """Make the `tssa.group` of each candidate, given in program order. Members are moved, those in
    `shared` copied."""
    replaced: dict[SSAValue, GroupOp] = {}
    for group in groups:
        replaced[group.root.results[0]] = _build(group, shared, replaced)
    for result, group in replaced.items():
        inside = group.block
        result.replace_uses_with_if(
            group.res[0], lambda use, b=inside: use.operation.parent is not b
        )


def _build(group: Candidate, shared: set[Operation], replaced: dict[SSAValue, GroupOp]) -> GroupOp:
    """Insert one group in front of its root. Uses of the root outside are the caller's to replace."""
    body = Block()
    inner: dict[SSAValue, SSAValue] = {}
    inputs: dict[SSAValue, SSAValue] = {}

    def inside(value: SSAValue) -> SSAValue:
        if value not in inner:
            argument = body.insert_arg(value.type, len(body.args))
            outer = replaced.get(value)
            inputs[value if outer is None else outer.res[0]] = argument
            inner[value] = argument
        return inner[value]

    block = group.root.parent
    after = group.root.next_op
    assert block is not None and after is not None
    for op in reversed(group.members):
        operands = [inside(v) for v in op.operands]
        if op in shared:
            copy = type(op).create(
                operands=operands,
                result_types=op.result_types,
                properties=op.properties,
                attributes=op.attributes,
            )
            inner[op.results[0]] = copy.results[0]
            body.add_op(copy)
        else:
            op.detach()
            op.operands = operands
            inner[op.results[0]] = op.results[0]
            body.add_op(op)
    result = inner[group.root.results[0]]
    body.add_op(YieldOp(result))
    made = GroupOp(list(inputs), [], [result.type], Region(body))
    block.insert_op_before(made, after)
    return made
