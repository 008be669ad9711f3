"""What passes ask operations: traits for ours, names for upstream ones of any class."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, math, memref, test
from xdsl.dialects.builtin import MemRefType, UnregisteredOp, f32
from xdsl.ir import Operation

from jitdialects.analysis.memory import has_known_effect, is_pure
from jitdialects.dialects import upstream
from jitdialects.dialects.interfaces import Contraction, Elementwise, has_trait, is_elementwise

X = test.TestOp(result_types=[f32]).results[0]
M = test.TestOp(result_types=[MemRefType(f32, [])]).results[0]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (arith.AddfOp(X, X), True),
        (arith.CmpfOp(X, X, "olt"), True),
        (upstream.CmpfOp(X, X, "olt"), True),
        (math.ExpOp(X), True),
        (arith.ConstantOp.from_int_and_width(1, 32), False),
        (memref.LoadOp.get(M, []), False),
        (test.TestOp(), False),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
def test_is_elementwise(op: Operation, expected: bool) -> None:
    assert is_elementwise(op) is expected


def test_an_operation_of_an_unknown_dialect_promises_nothing() -> None:
    op = UnregisteredOp.with_name("strange.op").create(operands=[X], result_types=[f32])
    assert not has_trait(op, Elementwise) and not has_trait(op, Contraction)
    assert not is_elementwise(op) and not is_pure(op) and not has_known_effect(op)
