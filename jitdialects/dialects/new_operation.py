"""Operations made the short way.

`Operation.create` takes 10 us for an operation with two operands, and operations made are what compile time
goes into. Half of that is spent on successors and regions that are not there, and on looking through the
definition for default values. `new_operation` asks once for each class whether there is anything to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

OperationT = TypeVar("OperationT", bound=Operation)
_NOTHING: Mapping[str, Attribute] = {}


def new_operation(
    kind: type[OperationT],
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    attributes: Mapping[str, Attribute] = _NOTHING,
    location: LocationAttr = UNKNOWN_LOC,
    successors: Sequence[Block] = (),
) -> OperationT:
    """What `kind.create` gives for an operation without regions."""
    op = kind.__new__(kind)
    if operands:
        op.operands = operands
    if result_types:
        op.results = SSAValues([OpResult(type, op, i) for i, type in enumerate(result_types)])
    op.properties = {**properties}
    op.attributes = {**attributes}
    op.location = location
    if successors:
        op.successors = successors
    defaults = _defaults(kind)
    if defaults is None:
        op.__post_init__()
    else:
        for target, name, value in defaults:
            (op.properties if target else op.attributes).setdefault(name, value)
    return op


@cache
def _defaults(kind: type[Operation]) -> tuple[tuple[bool, str, Attribute], ...] | None:
    """(is a property, name, value) of what is filled in after an operation of `kind` was made; None if the
    class has its own way to do that."""
    if not issubclass(kind, IRDLOperation) or kind.__post_init__ is not IRDLOperation.__post_init__:
        return None
    definition = kind.get_irdl_definition()
    members = [(True, *member) for member in definition.properties.items()]
    members += [(False, *member) for member in definition.attributes.items()]
    return tuple(
        (is_property, name, member.default_value)
        for is_property, name, member in members
        if member.default_value is not None and not isinstance(member, OptionalDef)
    )
