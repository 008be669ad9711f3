"""What memory an operation touches, and which memrefs may share it.

The rules of aliasing, all of them:

- memory from `memref.alloca` or `memref.alloc` overlaps nothing but what is derived from it;
- two different memref arguments of a function that carries `loop.noalias` do not overlap; nor do
  `memref.view`s at different offsets there, nor a view and an argument other than its own source;
- everything else may overlap.

Casts, subviews and reinterpretations are looked through. Operations are known by name, so that an embedding
compiler may bring its own classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IntAttr, MemRefType, NoneAttr, StridedLayoutAttr, VectorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import Pure

from jitdialects.analysis.bounds import constant_of
from jitdialects.dialects.interfaces import has_trait
from jitdialects.dialects.loop import NOALIAS

_FRESH = frozenset({"memref.alloca", "memref.alloc"})
_VIEW_LIKE = frozenset(
    {
        "memref.cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.memory_space_cast",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.transpose",
    }
)
_LOADS = frozenset({"memref.load", "vector.load"})
_STORES = frozenset({"memref.store", "vector.store"})
_MASKED = frozenset({"vector.maskedload", "vector.maskedstore"})
_ACCESSES = _LOADS | _STORES | _MASKED
_SILENT = (
    _FRESH
    | _VIEW_LIKE
    | {
        "memref.dim",
        "memref.view",
        "memref.get_global",
        "memref.prefetch",
        "vector.create_mask",
        "vector.extract",
        "vector.reduction",
        "vector.shuffle",
    }
)
_STRUCTURE = frozenset(
    {"scf.for", "scf.if", "scf.yield", "loop.nest", "loop.parallel", "loop.yield"}
)
_KNOWN = _STRUCTURE | _SILENT | _ACCESSES


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: `lanes` neighbouring elements of `base` from `indices` on (1 for scalars)."""

    op: Operation
    base: SSAValue
    indices: tuple[SSAValue, ...]
    stored: SSAValue | None
    lanes: int

    @property
    def is_store(self) -> bool:
        return self.stored is not None

    @property
    def is_masked(self) -> bool:
        return self.op.name.startswith("vector.masked")

    @property
    def value_type(self) -> Attribute:
        """The type that is loaded or stored."""
        return self.op.results[0].type if self.stored is None else self.stored.type


def access_of(op: Operation) -> Access | None:
    """The access that `op` makes, if it is a load or a store."""
    name = op.name
    if name not in _ACCESSES:
        return None
    operands = tuple(op.operands)
    stored: SSAValue | None = None
    if name in _LOADS:
        base, indices = operands[0], operands[1:]
    elif name in _STORES:
        stored, base, indices = operands[0], operands[1], operands[2:]
    else:
        base, indices = operands[0], operands[1:-2]
        stored = None if op.results else operands[-1]
    type = op.results[0].type if stored is None else stored.type
    lanes = 1
    if name.startswith("vector.") and isinstance(type, VectorType):
        lanes = type.get_shape()[-1]
    return Access(op, base, indices, stored, lanes)


def memref_type(memref: SSAValue) -> MemRefType[Attribute]:
    """The type of a value that is a memref."""
    return cast("MemRefType[Attribute]", memref.type)


def is_pure(op: Operation) -> bool:
    """No effect, and no result that depends on when it runs."""
    return op.name.startswith(("arith.", "math.")) or has_trait(op, Pure)


def has_known_effect(op: Operation) -> bool:
    """`op`, its regions aside, touches no memory but by being an `access_of`."""
    return op.name in _KNOWN or op.name.startswith(("arith.", "math.")) or has_trait(op, Pure)


def root_of(memref: SSAValue) -> SSAValue:
    """The memref that `memref` is a view of, through everything that only renames elements."""
    while isinstance(memref, OpResult) and memref.op.name in _VIEW_LIKE:
        memref = memref.op.operands[0]
    return memref


def is_fresh(root: SSAValue) -> bool:
    """Allocated here: nothing that came from elsewhere points into it."""
    return isinstance(root, OpResult) and root.op.name in _FRESH


def may_alias(left: SSAValue, right: SSAValue) -> bool:
    """False only if no element of one memref is an element of the other."""
    a, b = root_of(left), root_of(right)
    for root, other in ((a, b), (b, a)):
        if a is not b and isinstance(root, OpResult) and root.op.name == "arith.select":
            return any(may_alias(choice, other) for choice in root.op.operands[1:])
    if a is b:
        return True
    source, other = _source(a), _source(b)
    if is_fresh(source) or is_fresh(other):
        return source is other or _is_opaque(a) or _is_opaque(b)
    function = _noalias_function(source)
    if function is None or _noalias_function(other) is not function:
        return True
    if _is_view(a) and _is_view(b):
        return _same_offset(a, b)
    return source is other


def _is_opaque(root: SSAValue) -> bool:
    """Could be a view of anything: the result of a call or a select, an argument of an inner block."""
    if isinstance(root, OpResult):
        return not (is_fresh(root) or _is_view(root) or root.op.name == "memref.get_global")
    assert isinstance(root, BlockArgument)
    return not _is_function_argument(root)


def _is_function_argument(value: SSAValue) -> bool:
    if not isinstance(value, BlockArgument):
        return False
    function = value.block.parent_op()
    return (
        function is not None
        and function.name == "func.func"
        and function.regions[0].blocks.first is value.block
    )


def _is_view(root: SSAValue) -> bool:
    return isinstance(root, OpResult) and root.op.name == "memref.view"


def _source(root: SSAValue) -> SSAValue:
    """The bytes that a `memref.view` is cut from; any other root is its own."""
    return root_of(root.op.operands[0]) if isinstance(root, OpResult) and _is_view(root) else root


def _same_offset(a: SSAValue, b: SSAValue) -> bool:
    assert isinstance(a, OpResult) and isinstance(b, OpResult)
    if _source(a) is not _source(b):
        return False
    left, right = a.op.operands[1], b.op.operands[1]
    constant = constant_of(left)
    return left is right or (constant is not None and constant == constant_of(right))


def _noalias_function(source: SSAValue) -> Operation | None:
    """The function whose arguments (or views of them) do not overlap, if `source` is one of these."""
    if not _is_function_argument(source):
        return None
    assert isinstance(source, BlockArgument)
    function = source.block.parent_op()
    return function if function is not None and NOALIAS in function.attributes else None


def overlap_possible(left: Access, right: Access) -> bool:
    """False only if the two accesses, made in one iteration, cannot touch a common element."""
    if not may_alias(left.base, right.base):
        return False
    if left.base is not right.base:
        return True
    last = len(left.indices) - 1
    for axis, (a, b) in enumerate(zip(left.indices, right.indices, strict=True)):
        low_a, low_b = constant_of(a), constant_of(b)
        if low_a is None or low_b is None:
            continue
        lanes_a, lanes_b = (left.lanes, right.lanes) if axis == last else (1, 1)
        if low_a + lanes_a <= low_b or low_b + lanes_b <= low_a:
            return False
    return True


def has_identity_layout(memref: SSAValue) -> bool:
    """Different indices are different elements, row by row without gaps."""
    return isinstance(memref_type(memref).layout, NoneAttr)


def innermost_stride(memref: SSAValue) -> int | None:
    """Elements from one index of the last axis to the next, if known."""
    layout = memref_type(memref).layout
    if isinstance(layout, NoneAttr):
        return 1
    if isinstance(layout, StridedLayoutAttr) and len(layout.strides) > 0:
        stride = layout.strides.data[-1]
        return stride.data if isinstance(stride, IntAttr) else None
    return None
