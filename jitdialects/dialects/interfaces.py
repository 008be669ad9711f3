"""What a pass may ask an operation, whichever dialect it comes from.

A pass never tests for a class of ours. It asks for a trait (operations that we define carry them) or,
for upstream operations, looks the name up: an embedding compiler may hold its own class of the same name.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation
from xdsl.traits import OpTrait


class Elementwise(OpTrait):
    """Element i of the result depends on element i of each operand only; no side effect."""


class Reduction(OpTrait):
    """Combines the elements along the axes that the operation names, in a fixed order."""


class Contraction(OpTrait):
    """Multiplies and sums over an axis that its operands share, in a fixed order."""


class ShapeOnly(OpTrait):
    """Moves elements to other indices and computes nothing: reshape, transpose, slice."""


class AllocationScope(OpTrait):
    """Stack memory that the body allocates lives as long as one run of the body: MLIR's
    `AutomaticAllocationScope`, which xDSL lacks."""


_LANE_BY_LANE_DIALECTS = ("arith.", "math.")
_ARITH_EXCEPTIONS = frozenset({"arith.constant"})


def has_trait(op: Operation, trait: type[OpTrait]) -> bool:
    """Whether `op` says so itself. An operation of a dialect that is not loaded promises nothing (xDSL's
    `Operation.has_trait` would say yes to anything)."""
    return _class_has_trait(type(op), trait)


@lru_cache(4096)
def _class_has_trait(kind: type[Operation], trait: type[OpTrait]) -> bool:
    """Traits belong to classes; xDSL goes through all of them at each question."""
    return kind.has_trait(trait, value_if_unregistered=False)


def name_of(op: Operation) -> str:
    """The name for messages, also of an operation whose dialect is not loaded."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def is_elementwise(op: Operation) -> bool:
    """True for `Elementwise` operations and for upstream ones that map over vectors lane by lane."""
    if op.name.startswith(_LANE_BY_LANE_DIALECTS):
        return op.name not in _ARITH_EXCEPTIONS
    return has_trait(op, Elementwise)
