"""The llvm dialect as LLVM IR text: one table from operation names to instructions, strings all the way.

xDSL's `convert_module` goes through llvmlite's own IR and a second printer, takes four times as long, drops
the attributes of functions, prints vector accesses without alignment and has no hook for operations that
it lacks (docs/upstream-gaps.md). What is not in the table is refused by name.

Block arguments become phis. Constants become operands. Floats are printed as the bits of a double, which
is how LLVM reads every float exactly. No fast-math flag is ever printed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    VectorType,
)
from xdsl.dialects.llvm import (
    ALL_FCMP_FLAGS,
    ALL_ICMP_FLAGS,
    GEP_USE_SSA_VAL,
    FuncOp,
    LLVMArrayType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from jitdialects.dialects.interned import i32_array
from jitdialects.errors import CompileError

_PLAIN_NAME = re.compile(r"[A-Za-z$._][A-Za-z0-9$._]*")
_CONSTANTS = frozenset(
    {"llvm.mlir.constant", "llvm.mlir.undef", "llvm.mlir.zero", "llvm.mlir.addressof"}
)


def llvm_ir(module: ModuleOp, function_attributes: Sequence[str] = ()) -> str:
    """The text of all `llvm.func`s of `module`, each definition with `function_attributes`.

    Raises `CompileError` that names the operation or type which has no form here.
    """
    writer = _Writer()
    parts: list[str] = []
    for op in module.ops:
        if not isinstance(op, FuncOp):
            raise CompileError(
                f"llvm-text: {op.name} at the top of the module is no llvm.func; lower it first"
            )
        parts.append(writer.function(op, function_attributes))
    defined = {function_name(op) for op in module.ops if isinstance(op, FuncOp)}
    declared = [text for name, text in writer.declarations.items() if name not in defined]
    return "\n".join((*declared, *parts, ""))


def function_name(op: FuncOp) -> str:
    """`@name`, quoted where LLVM needs it."""
    return symbol(op.sym_name.data)


def symbol(name: str) -> str:
    """`@name`, quoted where LLVM needs it."""
    if _PLAIN_NAME.fullmatch(name):
        return f"@{name}"
    return '@"' + "".join(c if c.isalnum() else f"\\{ord(c):02X}" for c in name) + '"'


def float_text(value: float, type: Attribute) -> str:
    """The bits of `value`, rounded to `type`, written as a double."""
    if isinstance(type, Float32Type):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    elif not isinstance(type, Float64Type):
        raise CompileError(f"llvm-text: constants of {type} are not supported; use f32 or f64")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


_Argument: TypeAlias = SSAValue | tuple[str, str]
"""Of an intrinsic: a value, or type and text of a constant."""


class _Writer:
    """Text of one module. Types, masks and values, which live as long, are looked up by identity: hashing them costs more."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self._texts: dict[int, tuple[Attribute, str]] = {}
        self._suffixes: dict[int, tuple[Attribute, str]] = {}
        self._refs: dict[int, str] = {}
        self._typed: dict[int, str] = {}
        self._blocks: dict[Block, str] = {}

    # -- types and operands

    def type(self, type: Attribute) -> str:
        known = self._texts.get(id(type))
        if known is None:
            known = self._texts[id(type)] = (type, self._type(type))
        return known[1]

    def _type(self, type: Attribute) -> str:
        match type:
            case IntegerType():
                return f"i{type.width.data}"
            case Float32Type():
                return "float"
            case Float64Type():
                return "double"
            case VectorType() if type.get_num_dims() == 1:
                return f"<{type.get_shape()[0]} x {self.type(type.get_element_type())}>"
            case LLVMPointerType():
                return "ptr"
            case LLVMVoidType():
                return "void"
            case LLVMStructType():
                return "{ " + ", ".join(map(self.type, type.types.data)) + " }"
            case LLVMArrayType():
                return f"[{type.size.data} x {self.type(type.type)}]"
            case _:
                raise CompileError(f"llvm-text: type {type} has no form in LLVM IR")

    def mask(self, mask: Attribute) -> str:
        """The lanes that a shuffle takes."""
        known = self._texts.get(id(mask))
        if known is None:
            known = self._texts[id(mask)] = (mask, self._mask(mask))
        return known[1]

    def _mask(self, mask: Attribute) -> str:
        assert isinstance(mask, DenseArrayBase)
        lanes = [f"i32 {lane if lane >= 0 else 'poison'}" for lane in mask.iter_values()]
        if set(lanes) == {"i32 0"}:
            return f"<{len(lanes)} x i32> zeroinitializer"
        return f"<{len(lanes)} x i32> <{', '.join(lanes)}>"

    def suffix(self, type: Attribute) -> str:
        """How an overloaded intrinsic spells `type` in its name."""
        known = self._suffixes.get(id(type))
        if known is None:
            known = self._suffixes[id(type)] = (type, _suffix(type))
        return known[1]

    def ref(self, value: SSAValue) -> str:
        known = self._refs.get(id(value))
        if known is None:  # the text has not come to its definition
            owner = value.owner
            if isinstance(owner, Operation) and owner.name in _CONSTANTS:
                known = self._refs[id(value)] = self._constant(owner)
            else:
                known = self.new_ref(value)
        return known

    def new_ref(self, value: SSAValue) -> str:
        """The name of a value that is no constant."""
        known = self._refs.get(id(value))
        if known is None:
            known = self._refs[id(value)] = f"%v{len(self._refs)}"
        return known

    def typed(self, value: SSAValue) -> str:
        known = self._typed.get(id(value))
        if known is None:
            known = self._typed[id(value)] = f"{self.type(value.type)} {self.ref(value)}"
        return known

    def _constant(self, op: Operation) -> str:
        if op.name == "llvm.mlir.undef":
            return "undef"
        if op.name == "llvm.mlir.addressof":
            return _symbol_of(op, "global_name")
        if op.name == "llvm.mlir.zero":
            return "null" if isinstance(op.results[0].type, LLVMPointerType) else "zeroinitializer"
        value = op.properties["value"]
        match value:
            case IntegerAttr():
                return str(value.value.data)
            case FloatAttr():
                return float_text(value.value.data, value.type)
            case DenseIntOrFPElementsAttr():
                return self._dense(value)
            case _:
                raise CompileError(f"llvm-text: constant {value} has no form in LLVM IR")

    def _dense(self, value: DenseIntOrFPElementsAttr) -> str:
        element = value.get_element_type()
        type = self.type(element)

        def text(number: float) -> str:
            if isinstance(element, IntegerType):
                return f"{type} {number}"
            return f"{type} {float_text(number, element)}"

        numbers = [n for n in value.get_values() if isinstance(n, (int, float))]
        bits = value.data.data  # 0.0 and -0.0 are equal as numbers
        if bits == bits[: len(bits) // len(numbers)] * len(numbers):
            return f"splat ({text(numbers[0])})"
        return "<" + ", ".join(map(text, numbers)) + ">"

    def intrinsic(self, name: str, result: Attribute, arguments: Sequence[_Argument]) -> str:
        """A call of `name`, which gets declared."""
        type, callee = self.type(result), f"@{name}"
        if callee not in self.declarations:
            types = [self.type(a.type) if isinstance(a, SSAValue) else a[0] for a in arguments]
            self.declarations[callee] = f"declare {type} {callee}({', '.join(types)})"
        given = [self.typed(a) if isinstance(a, SSAValue) else " ".join(a) for a in arguments]
        return f"call {type} {callee}({', '.join(given)})"

    # -- functions and blocks

    def function(self, op: FuncOp, attributes: Sequence[str]) -> str:
        type = op.function_type
        result, name = self.type(type.output), function_name(op)
        entry = op.body.first_block
        if entry is None:
            return f"declare {result} {name}({', '.join(map(self.type, type.inputs))})"
        for index, block in enumerate(op.body.blocks):
            self._blocks[block] = f"b{index}"
        arguments = ", ".join(map(self.typed, entry.args))
        linkage = "" if op.linkage.linkage.data == "external" else f"{op.linkage.linkage.data} "
        words = " ".join((*attributes, *_passthrough(op)))
        lines = [f"define {linkage}{result} {name}({arguments}) {words} {{"]
        incoming = self._incoming(op.body.blocks)
        for block in op.body.blocks:
            lines.append(f"{self._blocks[block]}:")
            if block is not entry:
                self._phis(block, incoming.get(block, ()), lines)
            for inner in block.ops:
                self._operation(inner, lines)
        lines.append("}")
        return "\n".join(lines)

    def _operation(self, op: Operation, lines: list[str]) -> None:
        if op.name in _CONSTANTS:
            return
        form = _FORMS.get(op.name)
        if form is None:
            raise CompileError(f"llvm-text: {op.name} has no form in LLVM IR; lower it first")
        if op.results:
            lines.append(f"  {self.new_ref(op.results[0])} = {form(op, self)}")
        else:
            lines.append(f"  {form(op, self)}")

    def _incoming(
        self, blocks: Sequence[Block]
    ) -> dict[Block, list[tuple[Block, Sequence[SSAValue]]]]:
        """For each block, its predecessors and the values that they pass."""
        incoming: dict[Block, list[tuple[Block, Sequence[SSAValue]]]] = {}
        for block in blocks:
            for target, values in _edges(block.last_op):
                incoming.setdefault(target, []).append((block, values))
        return incoming

    def _phis(
        self,
        block: Block,
        incoming: Sequence[tuple[Block, Sequence[SSAValue]]],
        lines: list[str],
    ) -> None:
        for index, argument in enumerate(block.args):
            pairs = ", ".join(
                f"[ {self.ref(values[index])}, %{self._blocks[source]} ]"
                for source, values in incoming
            )
            lines.append(f"  {self.ref(argument)} = phi {self.type(argument.type)} {pairs}")

    def label(self, block: Block) -> str:
        return f"label %{self._blocks[block]}"


def _edges(terminator: Operation | None) -> list[tuple[Block, Sequence[SSAValue]]]:
    if terminator is None:
        return []
    if terminator.name == "llvm.br":
        return [(terminator.successors[0], terminator.operands)]
    if terminator.name == "llvm.cond_br":
        taken, otherwise = terminator.successors
        count = 1 + len(taken.args)
        first, second = terminator.operands[1:count], terminator.operands[count:]
        if taken is otherwise and tuple(first) != tuple(second):
            raise CompileError(
                "llvm-text: llvm.cond_br passes different values to one block; select them before"
            )
        return [(taken, first), (otherwise, second)]
    return []


def _passthrough(op: FuncOp) -> list[str]:
    """The `passthrough` list: `"flag"` or `["key", "value"]` entries."""
    entries = op.properties.get("passthrough") or op.attributes.get("passthrough")
    if entries is None:
        return []
    if not isa(entries, ArrayAttr[StringAttr | ArrayAttr[StringAttr]]):
        raise CompileError(f"llvm-text: passthrough {entries} is no list of names and pairs")
    return [
        entry.data
        if isinstance(entry, StringAttr)
        else "=".join(f'"{part.data}"' for part in entry)
        for entry in entries
    ]


# ---- the table

_Form = Callable[[Operation, _Writer], str]


def _binary(mnemonic: str) -> _Form:
    def form(op: Operation, w: _Writer) -> str:
        a, b = op.operands
        return f"{mnemonic} {w.typed(a)}, {w.ref(b)}"

    return form


def _unary(mnemonic: str) -> _Form:
    def form(op: Operation, w: _Writer) -> str:
        return f"{mnemonic} {w.typed(op.operands[0])}"

    return form


def _conversion(mnemonic: str) -> _Form:
    def form(op: Operation, w: _Writer) -> str:
        return f"{mnemonic} {w.typed(op.operands[0])} to {w.type(op.results[0].type)}"

    return form


def _all_typed(mnemonic: str) -> _Form:
    def form(op: Operation, w: _Writer) -> str:
        return f"{mnemonic} {', '.join(map(w.typed, op.operands))}"

    return form


def _suffix(type: Attribute) -> str:
    """How an overloaded intrinsic spells `type` in its name."""
    match type:
        case IntegerType():
            return f"i{type.width.data}"
        case Float32Type():
            return "f32"
        case Float64Type():
            return "f64"
        case VectorType():
            return f"v{type.get_shape()[0]}{_suffix(type.get_element_type())}"
        case _:
            raise CompileError(f"llvm-text: no intrinsic is overloaded on {type}")


def _intrinsic(name: str, *flags: tuple[str, str]) -> _Form:
    """An intrinsic overloaded on its result type, with constant arguments after the operands."""

    def form(op: Operation, w: _Writer) -> str:
        result = op.results[0].type
        return w.intrinsic(f"llvm.{name}.{w.suffix(result)}", result, (*op.operands, *flags))

    return form


def _flagged(name: str, flag: str) -> _Form:
    """An intrinsic whose last argument is the boolean property `flag`."""

    def form(op: Operation, w: _Writer) -> str:
        return _intrinsic(name, ("i1", str(abs(_integer(op, flag)))))(op, w)

    return form


def _reduce_or(op: Operation, w: _Writer) -> str:
    (vector,) = op.operands
    name = f"llvm.vector.reduce.or.{w.suffix(vector.type)}"
    return w.intrinsic(name, op.results[0].type, (vector,))


def _integer(op: Operation, name: str) -> int:
    value = op.properties[name]
    assert isinstance(value, IntegerAttr)
    return value.value.data


def _alignment(op: Operation) -> str:
    return f", align {_integer(op, 'alignment')}" if "alignment" in op.properties else ""


def _compare(mnemonic: str, flags: Sequence[str]) -> _Form:
    def form(op: Operation, w: _Writer) -> str:
        a, b = op.operands
        flag = flags[_integer(op, "predicate")].removeprefix("_")
        return f"{mnemonic} {flag} {w.typed(a)}, {w.ref(b)}"

    return form


def _load(op: Operation, w: _Writer) -> str:
    return f"load {w.type(op.results[0].type)}, {w.typed(op.operands[0])}{_alignment(op)}"


def _store(op: Operation, w: _Writer) -> str:
    text = f"store {w.typed(op.operands[0])}, {w.typed(op.operands[1])}{_alignment(op)}"
    return f"{text}, !nontemporal !{{i32 1}}" if "nontemporal" in op.properties else text


def _fence(op: Operation, w: _Writer) -> str:
    return "fence seq_cst"


def _masked_load(op: Operation, w: _Writer) -> str:
    pointer, mask, otherwise = op.operands
    result = op.results[0].type
    alignment = ("i32", str(_integer(op, "alignment")))
    name = f"llvm.masked.load.{w.suffix(result)}.p0"
    return w.intrinsic(name, result, (pointer, alignment, mask, otherwise))


def _masked_store(op: Operation, w: _Writer) -> str:
    value, pointer, mask = op.operands
    alignment = ("i32", str(_integer(op, "alignment")))
    name = f"llvm.masked.store.{w.suffix(value.type)}.p0"
    return w.intrinsic(name, LLVMVoidType(), (value, pointer, alignment, mask))


def _prefetch(op: Operation, w: _Writer) -> str:
    flags = [("i32", str(_integer(op, name))) for name in ("rw", "hint", "cache")]
    return w.intrinsic("llvm.prefetch.p0", LLVMVoidType(), (op.operands[0], *flags))


def _alloca(op: Operation, w: _Writer) -> str:
    return f"alloca {w.type(op.properties['elem_type'])}, {w.typed(op.operands[0])}{_alignment(op)}"


def _gep(op: Operation, w: _Writer) -> str:
    base, *dynamic = op.operands
    indices = op.properties["rawConstantIndices"]
    assert isinstance(indices, DenseArrayBase)
    start = f"getelementptr {w.type(op.properties['elem_type'])}, {w.typed(base)}, "
    if indices is _ONE_VALUE:  # nearly all are like this
        return start + w.typed(dynamic[0])
    rest = iter(dynamic)
    parts = [
        w.typed(next(rest)) if index == GEP_USE_SSA_VAL else f"i32 {index}"
        for index in indices.iter_values()
    ]
    return start + ", ".join(parts)


_ONE_VALUE = i32_array(GEP_USE_SSA_VAL)


def _positions(op: Operation) -> str:
    position = op.properties["position"]
    assert isinstance(position, DenseArrayBase)
    return ", ".join(map(str, position.iter_values()))


def _extract_value(op: Operation, w: _Writer) -> str:
    return f"extractvalue {w.typed(op.operands[0])}, {_positions(op)}"


def _insert_value(op: Operation, w: _Writer) -> str:
    return f"insertvalue {', '.join(map(w.typed, op.operands))}, {_positions(op)}"


def _shuffle(op: Operation, w: _Writer) -> str:
    return f"shufflevector {', '.join(map(w.typed, op.operands))}, {w.mask(op.properties['mask'])}"


def _call(op: Operation, w: _Writer) -> str:
    result = w.type(op.results[0].type) if op.results else "void"
    arguments = list(op.operands)
    callee = _symbol_of(op, "callee") if "callee" in op.properties else w.ref(arguments.pop(0))
    return f"call {result} {callee}({', '.join(map(w.typed, arguments))})"


def _call_intrinsic(op: Operation, w: _Writer) -> str:
    name = op.properties["intrin"]
    assert isinstance(name, StringAttr) and len(op.results) == 1
    return w.intrinsic(name.data, op.results[0].type, op.operands)


def _symbol_of(op: Operation, name: str) -> str:
    value = op.properties[name]
    assert isinstance(value, SymbolRefAttr)
    return symbol(value.root_reference.data)


def _branch(op: Operation, w: _Writer) -> str:
    return f"br {w.label(op.successors[0])}"


def _conditional_branch(op: Operation, w: _Writer) -> str:
    taken, otherwise = op.successors
    return f"br {w.typed(op.operands[0])}, {w.label(taken)}, {w.label(otherwise)}"


def _return(op: Operation, w: _Writer) -> str:
    return f"ret {w.typed(op.operands[0])}" if op.operands else "ret void"


def _unreachable(op: Operation, w: _Writer) -> str:
    return "unreachable"


_FORMS: dict[str, _Form] = {
    **{f"llvm.{name}": _binary(name) for name in (
        "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "ashr",
        "lshr", "fadd", "fsub", "fmul", "fdiv", "frem",
    )},
    **{f"llvm.{name}": _conversion(name) for name in (
        "trunc", "zext", "sext", "fptrunc", "fpext", "sitofp", "uitofp", "fptosi", "fptoui",
        "bitcast", "ptrtoint", "inttoptr",
    )},
    **{f"llvm.intr.{name}": _intrinsic(name) for name in (
        "fma", "sqrt", "fabs", "copysign", "floor", "ceil", "trunc", "roundeven", "maximum",
        "minimum", "maxnum", "minnum", "smax", "smin", "umax", "umin", "ctpop",
    )},
    "llvm.intr.cttz": _flagged("cttz", "is_zero_poison"),
    "llvm.intr.ctlz": _flagged("ctlz", "is_zero_poison"),
    "llvm.intr.abs": _flagged("abs", "is_int_min_poison"),
    "llvm.intr.masked.load": _masked_load,
    "llvm.intr.masked.store": _masked_store,
    "llvm.intr.vector.reduce.or": _reduce_or,
    "llvm.fneg": _unary("fneg"),
    "llvm.icmp": _compare("icmp", ALL_ICMP_FLAGS),
    "llvm.fcmp": _compare("fcmp", ALL_FCMP_FLAGS),
    "llvm.select": _all_typed("select"),
    "llvm.extractelement": _all_typed("extractelement"),
    "llvm.insertelement": _all_typed("insertelement"),
    "llvm.shufflevector": _shuffle,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.fence": _fence,
    "llvm.intr.prefetch": _prefetch,
    "llvm.alloca": _alloca,
    "llvm.getelementptr": _gep,
    "llvm.call": _call,
    "llvm.call_intrinsic": _call_intrinsic,
    "llvm.br": _branch,
    "llvm.cond_br": _conditional_branch,
    "llvm.return": _return,
    "llvm.unreachable": _unreachable,
}  # fmt: skip
