"""`new_operation` gives what `Operation.create` gives."""

from __future__ import annotations

import pytest
from xdsl.dialects import cf, llvm, memref, vector
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    IntAttr,
    StringAttr,
    UnitAttr,
    f32,
    i1,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation

from jitdialects.dialects import tssa
from jitdialects.dialects.loop import LOOP
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.upstream import COMPLETED_ARITH, COMPLETED_LLVM

KINDS = [
    kind
    for dialect in (COMPLETED_ARITH, COMPLETED_LLVM, tssa.TSSA, LOOP, memref.MemRef, vector.Vector)
    for kind in dialect.operations
]


def facts(op: Operation) -> tuple[object, ...]:
    """All that an operation says, its results by their types."""
    return (
        type(op),
        tuple(op.operands),
        [(result.type, result.index, result.op is op) for result in op.results],
        op.properties,
        op.attributes,
        op.location,
        tuple(op.successors),
        op.regions,
        op.parent,
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_like_create_with_the_defaults_of_each_class(kind: type[Operation]) -> None:
    values = TestOp.create(result_types=(f32, f32)).results
    given: dict[str, Attribute] = {"mine": UnitAttr()}
    made = new_operation(kind, values, (f32, i1), given, given)
    created = kind.create(
        operands=values, result_types=(f32, i1), properties=given, attributes=given
    )
    assert facts(made) == facts(created)
    assert given == {"mine": UnitAttr()}
    assert made.properties is not given
    assert made.attributes is not given


def test_uses_of_operands_and_successors() -> None:
    value, block = TestOp.create(result_types=(i1,)).results[0], Block()
    location = FileLineColLoc(StringAttr("a"), IntAttr(1), IntAttr(2))
    branch = new_operation(cf.BranchOp, (value, value), location=location, successors=(block,))
    assert [use.index for use in value.uses] == [1, 0]
    assert all(use.operation is branch for use in value.uses)
    assert [use.operation for use in block.uses] == [branch]
    assert branch.location == location


def test_nothing_is_shared_between_operations() -> None:
    first, second = (new_operation(llvm.UndefOp, (), (f32,)) for _ in range(2))
    first.properties["a"] = UnitAttr()
    first.attributes["a"] = UnitAttr()
    assert not second.properties
    assert not second.attributes
    assert second.location == UNKNOWN_LOC
