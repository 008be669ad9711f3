"""Index arithmetic that folds while it is emitted: what loop passes use to compute bounds.

Numbers stay Python integers until an operation needs them as operands, so static shapes leave no
arithmetic behind and dynamic ones leave only what depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from jitdialects.analysis.bounds import constant_of
from jitdialects.dialects.interned import INDEX, index_attr, integer_attr
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.upstream import CmpiOp, SelectOp

Index: TypeAlias = SSAValue | int
"""A value of the emitter's type, or a number not yet made into one."""

_EQ, _SLT = IntegerAttr(0, i64), IntegerAttr(2, i64)
_WRAPS: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}


def before(anchor: Operation) -> Callable[[Operation], None]:
    """A function that inserts operations in front of `anchor`, one after the other."""
    block = anchor.parent
    assert block is not None
    return lambda op: block.insert_op_before(op, anchor)


class IndexMath:
    """Emits integer arithmetic of one type through `put`. Results are exact modulo 2^width.

    `put` inserts operations in order: `block.add_op`, or `before(op)`.
    """

    def __init__(self, put: Callable[[Operation], None], type: Attribute | None = None) -> None:
        self.put = put
        self.type = INDEX if type is None else type
        self._constants: dict[int, SSAValue] = {}

    def number(self, value: SSAValue) -> Index:
        """`value`, as a number where it is a constant."""
        constant = constant_of(value)
        return value if constant is None else constant

    def value(self, index: Index) -> SSAValue:
        """`index` as an operand."""
        if isinstance(index, SSAValue):
            return index
        if index not in self._constants:
            op = new_operation(
                arith.ConstantOp,
                result_types=(self.type,),
                properties={"value": self._attribute(index)},
            )
            self._constants[index] = self.insert(op)
        return self._constants[index]

    def _attribute(self, number: int) -> Attribute:
        if self.type == INDEX:
            return index_attr(number)
        return integer_attr(number, cast("IntegerType", self.type))

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op`; returns its first result."""
        self.put(op)
        return op.results[0]

    def add(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self._binary(arith.AddiOp, left, right, _WRAPS)

    def sub(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        return left if right == 0 else self._binary(arith.SubiOp, left, right, _WRAPS)

    def mul(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 1 or right == 1:
            return right if left == 1 else left
        return self._binary(arith.MuliOp, left, right, _WRAPS)

    def divui(self, left: Index, right: Index) -> Index:
        """Unsigned quotient; `right` is positive."""
        if isinstance(left, int) and isinstance(right, int) and left >= 0:
            return left // right
        return left if right == 1 else self._binary(arith.DivUIOp, left, right)

    def remui(self, left: Index, right: Index) -> Index:
        """Unsigned remainder; `right` is positive."""
        if isinstance(left, int) and isinstance(right, int) and left >= 0:
            return left % right
        return 0 if right == 1 else self._binary(arith.RemUIOp, left, right)

    def lookup(self, table: Sequence[int], index: Index) -> Index:
        """`table[index]`, for a table of few small numbers: a shift of all of them in one."""
        if isinstance(index, int):
            return table[index]
        bits = max(table).bit_length()
        packed = sum(number << bits * place for place, number in enumerate(table))
        assert packed < 1 << 63, "the table is too long"
        shifted = self._binary(arith.ShRUIOp, packed, self.mul(index, bits))
        return self._binary(arith.AndIOp, shifted, (1 << bits) - 1)

    def minsi(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right)
        return self._binary(arith.MinSIOp, left, right)

    def maxsi(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right)
        return self._binary(arith.MaxSIOp, left, right)

    def andi(self, left: Index, right: Index) -> Index:
        """Bits that both have."""
        return self._binary(arith.AndIOp, left, right)

    def ori(self, left: Index, right: Index) -> Index:
        """Bits that either has."""
        return (
            left if right == 0 else right if left == 0 else self._binary(arith.OrIOp, left, right)
        )

    def less(self, left: Index, right: Index) -> SSAValue:
        """Signed comparison, an i1."""
        return self._compare(left, right, _SLT)

    def equal(self, left: Index, right: Index) -> SSAValue:
        """Comparison, an i1."""
        return self._compare(left, right, _EQ)

    def _compare(self, left: Index, right: Index, predicate: Attribute) -> SSAValue:
        operands = (self.value(left), self.value(right))
        return self.insert(new_operation(CmpiOp, operands, (i1,), {"predicate": predicate}))

    def trips(self, lower: Index, upper: Index, step: Index) -> Index:
        """Iterations from `lower` to below `upper`, 0 where `upper <= lower`; unsigned, so never overflows."""
        if isinstance(lower, int) and isinstance(upper, int):
            if upper <= lower:
                return 0
            extent: Index = upper - lower
        else:
            extent = self.sub(upper, lower)
        if step != 1:
            extent = self.add(self.divui(self.sub(extent, 1), step), 1)
        if isinstance(extent, int):
            return extent
        if lower == 0 and step == 1:
            return self._binary(arith.MaxSIOp, extent, 0)
        runs = self.less(lower, upper)
        operands = (runs, extent, self.value(0))
        return self.insert(new_operation(SelectOp, operands, (self.type,)))

    def _binary(
        self,
        kind: type[Operation],
        left: Index,
        right: Index,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        operands = (self.value(left), self.value(right))
        return self.insert(new_operation(kind, operands, (self.type,), properties or {}))
