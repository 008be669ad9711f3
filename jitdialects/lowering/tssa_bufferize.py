"""`tssa-bufferize`: tensors become buffers, results are written where the caller wants them.

    func.func @main(%x : tensor<?xf32, ..n>) -> tensor<?xf32, ..n> {
      %0 = tssa.group ins(%x) {...}
      %1 = tssa.group ins(%0) {...}
      func.return %1 }
    ->
    func.func @main(%x : memref<?xf32> {tssa.dims = ..n}, %out : memref<?xf32>, %arena : memref<?xi8>) {
      %t = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?xf32>
      tssa.group ins(%x) outs(%t) {...}
      tssa.group ins(%t) outs(%out) {...}
      func.return }

`analysis.storage` decides what shares memory; here it is carried out. Every buffer and view is made at the
top of the function, so it dominates its uses. Needs groups (`tssa-fuse`) and a graph of `cf.br` and
`cf.cond_br`. Leaves `loop.noalias` and `tssa.arena = #tssa.dims<[bytes]>` on the function. Never writes
an argument; never changes a group's body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    TensorType,
    UnitAttr,
    i1,
    i8,
)
from xdsl.dialects.cf import AssertOp, BranchOp, ConditionalBranchOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.layout import STRIDED, Layout, contiguous, layout_of
from jitdialects.analysis.storage import Edge, Root, Storage, StoragePlan, is_view
from jitdialects.analysis.storage_check import wrong_with
from jitdialects.bytecode.dims import RUN_TIME, Dim, Shape, is_settled
from jitdialects.dialects.interfaces import Contraction, Reduction, has_trait, name_of
from jitdialects.dialects.loop import NOALIAS
from jitdialects.dialects.tssa import CheckBoundsOp, GroupOp, YieldOp
from jitdialects.dialects.tssa_types import DimsAttr, buffer_element_type, shape_of, tensor_of
from jitdialects.lowering.emitter import DIMS, IDENTITY, INDEX, Emitter, memref_of, memref_type

ARENA = "tssa.arena"
"""Attribute of a function: the bytes of temporaries that its last argument must have."""
WEAK = "tssa.weak"
_ARENA_TYPE = memref_type(i8, (DYNAMIC_INDEX,))


@dataclass(frozen=True)
class TssaBufferizePass(ModulePass):
    """Turn tensor functions into destination-passing form over memrefs and one arena.

    `check=true` has the storage plan checked by `analysis.storage_check` before it is carried out.
    """

    name = "tssa-bufferize"

    check: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks and _has_tensors(function):
                check_groups(function)
                copy_what_cannot_be_viewed(function)
                bufferizer = Bufferizer(function)
                wrong = wrong_with(function, bufferizer.plan) if self.check else None
                if wrong is not None:
                    raise PassFailedException(f"tssa-bufferize: wrong storage plan: {wrong}")
                bufferizer.run()


def _has_tensors(function: FuncOp) -> bool:
    types = (*function.function_type.inputs, *function.function_type.outputs)
    return any(isinstance(type, TensorType) for type in types)


def check_groups(function: FuncOp) -> None:
    """Refuse what is not in a group, a view, or control flow."""
    for block in function.body.blocks:
        for op in block.ops:
            known = op.name in ("tssa.group", "tssa.check_bounds") or is_view(op)
            if op.name.startswith("tssa.") and not known:
                raise PassFailedException(
                    f"tssa-bufferize: {op.name} is not in a tssa.group; run tssa-fuse first"
                )
            if op is not block.last_op and is_stranger(op):
                raise PassFailedException(
                    f"tssa-bufferize: {name_of(op)} works on tensors and has no form on buffers here; "
                    "lower it first"
                )
        if block.last_op is None or block.last_op.name not in (
            "cf.br",
            "cf.cond_br",
            "func.return",
        ):
            raise PassFailedException(
                "tssa-bufferize: a block must end in cf.br, cf.cond_br or func.return"
            )


def is_stranger(op: Operation) -> bool:
    """Whether it takes or gives tensors, and is none of ours and no `tensor.extract`."""
    values = (*op.operands, *op.results)
    known = op.name.startswith("tssa.") or op.name == "tensor.extract"
    return not known and any(isinstance(v.type, TensorType) for v in values)


def marked(function: FuncOp, name: str) -> dict[SSAValue, int]:
    """The arguments that carry the unit attribute `name`, with their numbers."""
    arguments = function.body.blocks[0].args
    attributes = function.arg_attrs or ()
    return {
        argument: number
        for number, (argument, marks) in enumerate(zip(arguments, attributes, strict=False))
        if name in marks.data
    }


# ---- copies that no view can spare -------------------------------------------------------------


def copy_what_cannot_be_viewed(function: FuncOp) -> None:
    """Insert groups that copy: in front of a reshape of elements that are not in C order, of a reduction
    of several axes of such or of what begins inside other memory, of a product whose right operand has no contiguous rows (the vectors along them
    are worth one pass over it), and of a view of a plain scalar."""
    strided, weak = marked(function, STRIDED), marked(function, WEAK)
    for block in function.body.blocks:
        for op in block.ops:
            for index in operands_to_copy(op, strided, weak):
                copy = tensor_copy(op.operands[index])
                block.insert_op_before(copy, op)
                op.operands[index] = copy.res[0]


def operands_to_copy(
    op: Operation, strided: Mapping[SSAValue, int], weak: Mapping[SSAValue, int]
) -> list[int]:
    """The operands of a view or group that must be contiguous or in a buffer, and are not."""
    if is_view(op):
        is_plain = op.operands[0] in weak
        return [0] if is_plain or layout_of(op.results[0], strided) is None else []
    if op.name != "tssa.group":
        return []
    out: list[int] = []
    for argument in op.regions[0].block.args:
        outer = op.operands[argument.index]
        if not (is_seen_through_a_view(outer) or outer in strided):
            continue
        layout, shape = layout_of(outer, strided), shape_of(argument)
        assert layout is not None
        uses = [use for use in argument.uses if has_trait(use.operation, Contraction)]
        if (
            any(use.index == 1 for use in uses)
            and layout.strides[-1] != 1
            or is_gone_over_as_one_axis(op, shape)
            and layout != contiguous(shape)
        ):
            out.append(argument.index)
    return out


def is_gone_over_as_one_axis(group: Operation, shape: Shape) -> bool:
    """Whether a reduction in `group` takes several axes of values of this shape."""
    return any(
        has_trait(op, Reduction)
        and shape_of(op.operands[0]) == shape
        and len(shape) - len(shape_of(op.results[0])) > 1
        for op in group.regions[0].block.ops
    )


def is_seen_through_a_view(value: SSAValue) -> bool:
    """Whether `value` is a view: other values have memory in C order, but for strided arguments."""
    return isinstance(value.owner, Operation) and is_view(value.owner)


def identity_body(type: Attribute) -> Region:
    """The body of a group that copies."""
    block = Block(arg_types=[type])
    block.add_op(YieldOp(block.args[0]))
    return Region(block)


def tensor_copy(value: SSAValue) -> GroupOp:
    """A group whose result is `value` in memory of its own."""
    return GroupOp([value], [], [value.type], identity_body(value.type))


# ---- the rewrite -------------------------------------------------------------------------------


class Bufferizer:
    """Rewrites one function after its storage plan."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.strided = marked(function, STRIDED)
        self.plan = StoragePlan(function)
        self.entry = function.body.blocks[0]
        self.bases: dict[Storage, SSAValue] = {}
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.casts: dict[tuple[Storage, Shape, Layout], SSAValue] = {}
        self.bound: set[int] = set()
        self.indices: dict[tuple[Operation, int], SSAValue] = {}
        """The run-time values of views, as they are at the operation that takes them."""

    def run(self) -> None:
        """Replace the arguments, then each operation."""
        blocks = list(self.function.body.blocks)
        operations = [op for block in blocks for op in block.ops]
        old_arguments = list(self.entry.args)
        self._replace_arguments()
        self.at = Emitter(self.function)
        for op in operations:
            self.at.place_before(op)
            self._rewrite(op)
        for op in reversed(operations):
            op.detach()
            op.erase()
        for argument in (*old_arguments, *(a for block in blocks[1:] for a in block.args)):
            argument.block.erase_arg(argument)

    # ---- the signature

    def _replace_arguments(self) -> None:
        """Put the new arguments in front of the old ones, which still have uses, and retype the
        function."""
        function, inputs = self.function, self.function.function_type.inputs.data
        old = (
            function.arg_attrs.data if function.arg_attrs else [DictionaryAttr({}) for _ in inputs]
        )
        types: list[Attribute] = []
        attributes: list[DictionaryAttr] = []
        for number, type in enumerate(inputs):
            weak = WEAK in old[number].data
            types.append(_argument_type(type, weak, STRIDED in old[number].data))
            attributes.append(_with_dims(old[number], type))
        for type in function.function_type.outputs:
            types.append(_argument_type(type, False, False))
            attributes.append(_with_dims(DictionaryAttr({}), type))
        types.append(_ARENA_TYPE)
        attributes.append(DictionaryAttr({}))
        names = [argument.name_hint for argument in self.entry.args]
        names += [f"out{number}" for number in range(len(types) - len(names) - 1)] + ["arena"]
        for number, (type, name) in enumerate(zip(types, names, strict=True)):
            self.entry.insert_arg(type, number).name_hint = name
        self.results = len(inputs)
        function.properties["function_type"] = FunctionType.from_lists(types, [])
        function.properties["arg_attrs"] = ArrayAttr(attributes)
        function.properties.pop("res_attrs", None)
        function.attributes[NOALIAS] = UnitAttr()
        function.attributes[ARENA] = DimsAttr((self.plan.arena_size,))

    # ---- buffers

    def _base(self, storage: Storage) -> SSAValue:
        """The memory of a storage, shaped as its fixed or first root."""
        if storage not in self.bases:
            fixed = storage.fixed
            if fixed is not None:
                number = fixed.number + (self.results if fixed.place == "result" else 0)
                self.bases[storage] = self.entry.args[number]
            else:
                self.bases[storage] = self._view_of_arena(storage)
        return self.bases[storage]

    def _view_of_arena(self, storage: Storage) -> SSAValue:
        tensor = storage.roots[0].tensor
        shape = shape_of(tensor)
        type = memref_type(buffer_element_type(tensor.get_element_type()), tensor.get_shape())
        sizes = [self.at.size(size) for size in shape if not isinstance(size, int)]
        arena, offset = self.entry.args[self.results_end], self.at.size(storage.offset)
        return self.at.top(memref.ViewOp, (arena, offset, *sizes), type)

    @property
    def results_end(self) -> int:
        """The number of the arena's argument."""
        return self.results + len(self.plan.results)

    def buffer(self, value: SSAValue) -> SSAValue:
        """The memref, or plain scalar, in which a tensor value is."""
        if value not in self.buffers:
            self.buffers[value] = self._make_buffer(value)
        return self.buffers[value]

    def _make_buffer(self, value: SSAValue) -> SSAValue:
        root = self.plan.roots[value]
        storage = self.plan.storage[root]
        base = self._base(storage)
        if not isinstance(base.type, MemRefType):
            return base
        if root.value in self.strided:
            if root.value is value:
                return base
            self._bind_strides(root.number, base)
        layout = layout_of(value, self.strided)
        assert layout is not None
        return self._cast(storage, shape_of(value), layout)

    def _buffer_of_root(self, root: Root) -> SSAValue:
        """The memref of a block argument, a result or a temporary, in its own shape."""
        shape = shape_of(root.tensor)
        return self._cast(self.plan.storage[root], shape, contiguous(shape))

    def _cast(self, storage: Storage, shape: Shape, layout: Layout) -> SSAValue:
        """The memory of a storage under a shape and layout."""
        base = self._base(storage)
        fixed = storage.fixed or storage.roots[0]
        base_shape = shape_of(fixed.tensor)
        if shape == base_shape and layout == contiguous(shape) and fixed.value not in self.strided:
            return base
        if not is_settled(layout.offset):
            return self._reinterpret(base, shape, layout)
        key = storage, shape, layout
        if key not in self.casts:
            self.casts[key] = self._reinterpret(base, shape, layout)
        return self.casts[key]

    def _reinterpret(self, base: SSAValue, shape: Shape, layout: Layout) -> SSAValue:
        settled = layout.offset if is_settled(layout.offset) else 0
        offset, sizes, strides = (
            [x if isinstance(x, int) else self.at.size(x) for x in xs]
            for xs in ((settled,), shape, layout.strides)
        )
        plain = layout.offset == 0 and layout == contiguous(shape)
        form = StridedLayoutAttr([_known(s) for s in layout.strides], _known(layout.offset))
        static = tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in shape)
        element = memref_of(base).get_element_type()
        type = memref_type(element, static, IDENTITY if plain else form)
        if not is_settled(layout.offset):
            offset = [self.at.size_here(layout.offset, self._run_time(layout))]
        cast = memref.ReinterpretCastOp.from_dynamic(base, offset, sizes, strides, type)
        if is_settled(layout.offset):
            self.at.insert_at_top(cast)
        else:
            self.at.insert(cast)
        return cast.results[0]

    def _run_time(self, layout: Layout) -> dict[str, SSAValue]:
        return {f"{RUN_TIME}{k}": self.indices[use] for k, use in enumerate(layout.indices)}

    def _bind_strides(self, number: int, argument: SSAValue) -> None:
        """Give the symbols of `layout.strided_argument` their values."""
        if number in self.bound:
            return
        self.bound.add(number)
        metadata = memref.ExtractStridedMetaDataOp(argument)
        self.at.insert_at_top(metadata)
        self.at.bind(f"{number}.offset", metadata.offset)
        for axis, stride in enumerate(metadata.strides):
            self.at.bind(f"{number}.stride.{axis}", stride)

    # ---- operations

    def _rewrite(self, op: Operation) -> None:
        """Emit what takes the place of `op` in front of it; `op` itself is erased later."""
        match op.name:
            case "tssa.group":
                assert isinstance(op, GroupOp)
                ins = [self.buffer(v) for v in op.ins]
                outs = [self.buffer(v) for v in op.res]
                self.at.insert(GroupOp(ins, outs, [], op.detach_region(op.body)))
            case "tensor.extract":
                self._rewrite_extract(op)
            case "tssa.check_bounds":
                assert isinstance(op, CheckBoundsOp)
                self._rewrite_check(op)
            case "func.return":
                for edge in self.plan.edges_of(self._block_of(op)):
                    self._copy(edge)
                self.at.insert(ReturnOp())
            case "cf.br":
                (edge,) = self.plan.edges_of(self._block_of(op))
                self._copy(edge)
                self.at.insert(BranchOp(op.successors[0]))
            case "cf.cond_br":
                targets = [self._edge_block(e) for e in self.plan.edges_of(self._block_of(op))]
                self.at.place_before(op)
                self.at.insert(ConditionalBranchOp(op.operands[0], targets[0], [], targets[1], []))
            case _ if not op.name.startswith("tssa."):
                self._keep(op)
            case _:
                self._rewrite_view(op)

    def _rewrite_view(self, op: Operation) -> None:
        """Most views are made at the top, when a buffer of them is asked for. Where a run-time value says
        where it lies, the view is made here: that value may be gone later."""
        layout = layout_of(op.results[0], self.strided)
        if layout is None or not layout.indices:
            return
        for use in layout.indices:
            if use[0] is op:
                value = self._scalar(op.operands[use[1]])
                self.indices[use] = self.at.emit(arith.IndexCastOp, (value,), INDEX)
        self.buffer(op.results[0])

    def _rewrite_check(self, op: CheckBoundsOp) -> None:
        """One `cf.assert` that the values ascend from the lower to the upper bound."""
        values = [self.at.emit(arith.IndexCastOp, (self._scalar(v),), INDEX) for v in op.arguments]
        (lower,), (upper,) = op.lower.data, op.upper.data
        values = [self.at.size(lower), *values, self.at.size(upper)]
        ascends = [self.at.compare("sle", a, b) for a, b in pairwise(values)]
        holds = reduce(lambda a, b: self.at.emit(arith.AndIOp, (a, b), i1), ascends)
        self.at.insert(AssertOp(holds, "an index, a slice or an integer is out of bounds"))

    def _keep(self, op: Operation) -> None:
        """Leave an operation that is about neither tensors nor buffers as it is: a constant."""
        copy = op.clone()
        self.at.insert(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            old.replace_all_uses_with(new)

    def _rewrite_extract(self, op: Operation) -> None:
        """Read one element of a tensor for control flow."""
        element = self._scalar(op.operands[0], op.operands[1:])
        op.results[0].replace_all_uses_with(element)

    def _scalar(self, tensor: SSAValue, indices: Sequence[SSAValue] = ()) -> SSAValue:
        """One element of a tensor as a value."""
        buffer = self.buffer(tensor)
        if not isinstance(buffer.type, MemRefType):
            return buffer
        element = self.at.load(buffer, indices)
        if element.type == i8:
            element = self.at.compare("ne", element, self.at.constant(i8, 0))
        return element

    def _block_of(self, op: Operation) -> Block:
        block = op.parent
        assert block is not None
        return block

    def _edge_block(self, edge: Edge) -> Block:
        """Where an edge of a conditional branch leads: to a block that copies first, if need be."""
        assert edge.successor is not None
        if not self.plan.steps(edge):
            return edge.successor
        block = Block()
        self.function.body.insert_block_after(block, edge.block)
        self.at.block, self.at.before = block, None
        self._copy(edge)
        self.at.insert(BranchOp(edge.successor))
        return block

    def _copy(self, edge: Edge) -> None:
        """Carry out the moves of an edge."""
        for step in self.plan.steps(edge):
            source = (
                self.buffer(step.source)
                if step.temporary is None
                else self._buffer_of_root(step.temporary)
            )
            target = self._buffer_of_root(step.target)
            body = identity_body(step.target.tensor)
            self.at.insert(GroupOp([source], [target], [], body))


def _argument_type(type: Attribute, weak: bool, strided: bool) -> Attribute:
    """The type of an argument after bufferization."""
    tensor = tensor_of(type)
    if weak:
        return tensor.get_element_type()
    shape = tensor.get_shape()
    layout = StridedLayoutAttr([None] * len(shape), None) if strided else IDENTITY
    return memref_type(buffer_element_type(tensor.get_element_type()), shape, layout)


def _with_dims(attributes: DictionaryAttr, type: Attribute) -> DictionaryAttr:
    """Argument attributes with the symbolic sizes of the tensor type, if it has any."""
    encoding = tensor_of(type).encoding
    if not isinstance(encoding, DimsAttr):
        return attributes
    return DictionaryAttr({**attributes.data, DIMS: encoding})


def _known(size: Dim) -> int | None:
    return size if isinstance(size, int) else None
