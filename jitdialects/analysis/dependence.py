"""Dependences that a loop carries from one iteration to another.

`carried_dependence` proves that the iterations of a loop are independent, or names what it cannot exclude.
Indices are read as sums of values times constants. Two accesses of one memref are told apart by one axis
in which their indices differ in every pair of different iterations; sizes and signs of other values do not
matter. Anything else (other memrefs that may overlap, indices of another form, unknown operations) counts as
a dependence.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

from xdsl.dialects import scf
from xdsl.ir import Block, OpResult, SSAValue

from jitdialects.analysis.body import body_of
from jitdialects.analysis.bounds import constant_of, constant_trip_count
from jitdialects.analysis.memory import (
    Access,
    has_identity_layout,
    is_fresh,
    may_alias,
    root_of,
)
from jitdialects.dialects.interfaces import name_of

LinearForm = tuple[Mapping[SSAValue, int], int]
"""Coefficients of values, none zero, and a constant."""


def linear_form(index: SSAValue) -> LinearForm:
    """`index` as a sum, looked into through additions, subtractions and products with constants."""
    number = constant_of(index)
    if number is not None:
        return {}, number
    if not isinstance(index, OpResult) or len(index.op.operands) != 2:
        return {index: 1}, 0
    name = index.op.name
    left, right = index.op.operands
    if name in ("arith.addi", "arith.subi"):
        sign = 1 if name == "arith.addi" else -1
        return _sum(linear_form(left), linear_form(right), sign)
    if name == "arith.muli":
        factor = constant_of(right)
        if factor is not None:
            return _sum(({}, 0), linear_form(left), factor)
        factor = constant_of(left)
        if factor is not None:
            return _sum(({}, 0), linear_form(right), factor)
    return {index: 1}, 0


def _sum(left: LinearForm, right: LinearForm, factor: int) -> LinearForm:
    terms = dict(left[0])
    for value, coefficient in right[0].items():
        terms[value] = terms.get(value, 0) + factor * coefficient
    return {v: c for v, c in terms.items() if c != 0}, left[1] + factor * right[1]


def carried_dependence(loop: scf.ForOp) -> str | None:
    """A sentence part naming the first dependence that cannot be excluded, or `None`."""
    block = loop.body.block
    body = body_of(block)
    unknown = body.unknown_effect
    if unknown is not None:
        return f"the effects of {name_of(unknown)} are not known"
    accesses = [a for a in body.accesses if not _is_private(a.base, block)]
    for first, second in combinations_with_replacement(accesses, 2):
        if not (first.is_store or second.is_store):
            continue
        if not may_alias(first.base, second.base):
            continue
        if first.base is not second.base:
            return f"{_name(first.base)} and {_name(second.base)} may overlap"
        distance = carried_distance(first, second, loop)
        if distance != 0:
            how = (
                "at an unknown distance" if distance is None else f"over {abs(distance)} iterations"
            )
            return f"{_name(first.base)} is written and used again {how}"
    return None


def carried_distance(first: Access, second: Access, loop: scf.ForOp) -> int | None:
    """Iterations between two accesses of one element of one memref; 0: never in different iterations.

    `None` if that cannot be told.
    """
    if not has_identity_layout(first.base) and not is_fresh(root_of(first.base)):
        return None
    iv = loop.body.block.args[0]
    step = constant_of(loop.step)
    trips = constant_trip_count(loop)
    found: int | None = None
    for a, b in zip(first.indices, second.indices, strict=True):
        if first.lanes != 1 or second.lanes != 1 or step is None or step <= 0:
            return None
        (left, left_number), (right, right_number) = linear_form(a), linear_form(b)
        coefficient = left.get(iv, 0)
        if right.get(iv, 0) != coefficient or not _same_invariants(left, right, loop):
            continue
        delta = right_number - left_number
        if coefficient == 0:
            if delta != 0:
                return 0
            continue
        distance, rest = divmod(delta, coefficient * step)
        if rest != 0 or distance == 0 or (trips is not None and abs(distance) >= trips):
            return 0
        found = distance
    return found


def _same_invariants(
    left: Mapping[SSAValue, int], right: Mapping[SSAValue, int], loop: scf.ForOp
) -> bool:
    """Apart from the induction variable the two sums agree, in values that the loop does not change."""
    iv = loop.body.block.args[0]
    rest = {value: c for value, c in left.items() if value is not iv}
    if rest != {value: c for value, c in right.items() if value is not iv}:
        return False
    return all(not _inside(value, loop.body.block) for value in rest)


def _is_private(base: SSAValue, block: Block) -> bool:
    """Allocated anew in each iteration."""
    root = root_of(base)
    return is_fresh(root) and _inside(root, block)


def _inside(value: SSAValue, block: Block) -> bool:
    where = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while where is not None:
        if where is block:
            return True
        around = where.parent_op()
        where = around.parent if around is not None else None
    return False


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a memref"
