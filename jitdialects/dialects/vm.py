"""The `vm` dialect mirrors bytecode one to one: mutable registers, no types, one operation each.

    vm.pool ["float 0.0", "f32[2,2] [1.0, 2.0, 3.0, 4.0]"]
    vm.func @main(1) -> 1 registers 4 {
    ^entry:
      vm.const r1 = 0
      vm.apply r2 = matmul(r0, r1)
      vm.apply r3 = sum(r2) {axis = -1 : i64, keepdims = true}
      vm.destroy r2
      vm.cond_br r3, ^entry, ^exit
    ^exit:
      vm.call r3 = @helper(r3)
      vm.return(r3)
    }

Registers are integers in the properties `writes` and `reads`, not SSA values: a register may be written
many times. Verification is bytecode's own (`bytecode.verifier`), applied to each function; that
callees agree and constants exist is checked when a module becomes a program again
(`lowering.bytecode_to_vm`). Locations are xDSL's operation locations.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnknownLoc,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    successor_def,
    traits_def,
    var_successor_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from jitdialects.bytecode import attributes as bytecode
from jitdialects.bytecode import program
from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.program import Function, Instruction, Location
from jitdialects.bytecode.verifier import verify_function
from jitdialects.dialects.vm_attributes import (
    NO_REGISTERS,
    ConstantAttr,
    IndexAttr,
    RegistersAttr,
    ShapeAttr,
    from_attribute,
    parse_pool_entry,
    print_pool_entry,
)
from jitdialects.errors import BytecodeError

# ---- what all instructions have ----------------------------------------------------------------


def _parse_registers(parser: Parser) -> RegistersAttr:
    numbers: list[int] = []
    while (name := parser.parse_optional_identifier()) is not None:
        if name[0] != "r" or not name[1:].isdecimal():
            parser.raise_error(f"expected a register such as r0, found '{name}'")
        numbers.append(int(name[1:]))
        if parser.parse_optional_punctuation(",") is None:
            break
    return RegistersAttr(tuple(numbers))


def _text(numbers: RegistersAttr) -> str:
    return ", ".join(f"r{n}" for n in numbers.data)


def _parse_results(parser: Parser) -> RegistersAttr:
    writes = _parse_registers(parser)
    if len(writes.data):
        parser.parse_punctuation("=")
    return writes


def _print_results(printer: Printer, writes: RegistersAttr) -> None:
    printer.print_string(f" {_text(writes)} =" if len(writes.data) else "")


def _parse_operands(parser: Parser) -> RegistersAttr:
    with parser.in_parens():
        return _parse_registers(parser)


class VMOperation(IRDLOperation, ABC):
    """An instruction: it writes `writes` after reading `reads`."""

    writes = prop_def(RegistersAttr)
    reads = prop_def(RegistersAttr)

    @property
    def opcode(self) -> str:
        """The opcode in bytecode."""
        return self.name.removeprefix("vm.")

    def bytecode_attributes(self) -> dict[str, bytecode.Attribute]:
        """The attributes of the instruction in bytecode."""
        return {}

    def instruction(self, numbers: Mapping[Block, int]) -> Instruction:
        """This operation in bytecode, where `numbers` counts the blocks of its function."""
        if any(block not in numbers for block in self.successors):
            raise VerifyException(f"{self.name} branches to a block of another region")
        return Instruction(
            self.opcode,
            self.writes.data,
            self.reads.data,
            self.bytecode_attributes() or program.NO_ATTRIBUTES,
            tuple(numbers[b] for b in self.successors),
            location_of(self),
        )

    def _print_discardable(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @staticmethod
    def _discardable(parser: Parser) -> dict[str, Attribute]:
        found = parser.parse_optional_attr_dict_with_keyword()
        return dict(found.data) if found is not None else {}


def location_of(operation: Operation) -> Location | None:
    """The source location, where it is a place in a file."""
    match operation.location:
        case FileLineColLoc(filename=file, line=line, column=column):
            return Location(file.data, line.data, column.data)
        case _:
            return None


def set_location(operation: Operation, location: Location | None) -> None:
    """The inverse of `location_of`."""
    operation.location = (
        FileLineColLoc(StringAttr(location.file), IntAttr(location.line), IntAttr(location.column))
        if location is not None
        else UnknownLoc()
    )


# ---- program and functions ---------------------------------------------------------------------


@irdl_op_definition
class PoolOp(IRDLOperation):
    """The constants of the program, numbered from 0."""

    name = "vm.pool"
    constants = prop_def(ArrayAttr[ConstantAttr])

    @classmethod
    def parse(cls, parser: Parser) -> PoolOp:
        constants = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_pool_entry(parser)
        )
        return cls.create(properties={"constants": ArrayAttr(constants)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_square_brackets():
            printer.print_list(self.constants, lambda c: print_pool_entry(printer, c.data))


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function: its parameters are the first registers. `block_names` is there where the hints of
    the blocks cannot carry the names (xDSL shortens `a_1` to `a`)."""

    name = "vm.func"
    sym_name = prop_def(StringAttr)
    parameter_count = prop_def(IntegerAttr[IntegerType])
    result_count = prop_def(IntegerAttr[IntegerType])
    register_count = prop_def(IntegerAttr[IntegerType])
    block_names = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @staticmethod
    def build_from(function: Function, blocks: Sequence[Block]) -> FuncOp:
        """The operation for `function`, whose blocks are given."""
        names = [b.name for b in function.blocks]
        for block, name in zip(blocks, names, strict=True):
            block.name_hint = name
        counts = {
            "parameter_count": function.parameters,
            "result_count": function.results,
            "register_count": function.registers,
        }
        properties: dict[str, Attribute] = {n: IntegerAttr(c, i64) for n, c in counts.items()}
        properties["sym_name"] = StringAttr(function.name)
        if any(
            b.name_hint != n or Block.is_default_block_name(n)
            for b, n in zip(blocks, names, strict=True)
        ):
            properties["block_names"] = ArrayAttr(map(StringAttr, names))
        return FuncOp.create(properties=properties, regions=[Region(blocks)])

    def function(self) -> Function:
        """The function in bytecode."""
        blocks = list(self.body.blocks)
        numbers = {b: n for n, b in enumerate(blocks)}
        if self.block_names is None:
            names = [b.name_hint or f"bb{n}" for n, b in enumerate(blocks)]
        else:
            names = [s.data for s in self.block_names]
        if len(names) != len(blocks):
            raise VerifyException(
                f"vm.func @{self.sym_name.data} has {len(blocks)} blocks but {len(names)} block "
                "names; drop `block_names` when blocks are added or removed"
            )
        return Function(
            self.sym_name.data,
            self.parameter_count.value.data,
            self.result_count.value.data,
            self.register_count.value.data,
            tuple(
                program.Block(name, tuple(_instruction(op, numbers) for op in block.ops))
                for name, block in zip(names, blocks, strict=True)
            ),
        )

    def verify_(self) -> None:
        try:
            verify_function(self.function())
        except BytecodeError as error:
            raise VerifyException(str(error)) from error

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        with parser.in_parens():
            properties["parameter_count"] = IntegerAttr(parser.parse_integer(), i64)
        parser.parse_punctuation("->")
        properties["result_count"] = IntegerAttr(parser.parse_integer(), i64)
        parser.parse_keyword("registers")
        properties["register_count"] = IntegerAttr(parser.parse_integer(), i64)
        if parser.parse_optional_keyword("blocks") is not None:
            names = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_str_literal
            )
            properties["block_names"] = ArrayAttr(map(StringAttr, names))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            properties=properties,
            attributes=dict(attributes.data) if attributes is not None else {},
            regions=[parser.parse_region()],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        printer.print_string(
            f"({self.parameter_count.value.data}) -> {self.result_count.value.data} "
            f"registers {self.register_count.value.data}"
        )
        if self.block_names is not None:
            printer.print_string(" blocks ")
            with printer.in_square_brackets():
                printer.print_list(
                    self.block_names, lambda name: printer.print_string_literal(name.data)
                )
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        with printer.in_braces():
            for block in self.body.blocks:  # the entry with its label: branches may lead to it
                printer.print_block(block)
            printer.print_string("\n")


def _instruction(operation: Operation, numbers: Mapping[Block, int]) -> Instruction:
    if not isinstance(operation, VMOperation):
        raise VerifyException(
            f"'{operation.name}' inside a vm.func; only vm instructions may stand there"
        )
    return operation.instruction(numbers)


# ---- instructions ------------------------------------------------------------------------------


@irdl_op_definition
class ConstOp(VMOperation):
    """Load a constant of the pool: `vm.const r1 = 0`."""

    name = "vm.const"
    constant = prop_def(IntegerAttr[IntegerType])
    traits = traits_def(HasParent(FuncOp))

    def bytecode_attributes(self) -> dict[str, bytecode.Attribute]:
        return {"constant": self.constant.value.data}

    @classmethod
    def parse(cls, parser: Parser) -> ConstOp:
        writes = _parse_results(parser)
        constant = IntegerAttr(parser.parse_integer(), i64)
        return cls.create(
            properties={"writes": writes, "reads": NO_REGISTERS, "constant": constant},
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        _print_results(printer, self.writes)
        printer.print_string(f" {self.constant.value.data}")
        self._print_discardable(printer)


@irdl_op_definition
class MoveOp(VMOperation):
    """Copy a register: `vm.move r1 = r0`."""

    name = "vm.move"
    traits = traits_def(HasParent(FuncOp))

    @classmethod
    def parse(cls, parser: Parser) -> MoveOp:
        writes = _parse_results(parser)
        return cls.create(
            properties={"writes": writes, "reads": _parse_registers(parser)},
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        _print_results(printer, self.writes)
        printer.print_string(f" {_text(self.reads)}")
        self._print_discardable(printer)


@irdl_op_definition
class DestroyOp(VMOperation):
    """Make a register undefined: `vm.destroy r0`."""

    name = "vm.destroy"
    traits = traits_def(HasParent(FuncOp))

    @classmethod
    def parse(cls, parser: Parser) -> DestroyOp:
        return cls.create(
            properties={"writes": NO_REGISTERS, "reads": _parse_registers(parser)},
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_text(self.reads)}")
        self._print_discardable(printer)


@irdl_op_definition
class ApplyOp(VMOperation):
    """Apply an operator of the table: `vm.apply r1 = sum(r0) {axis = -1 : i64, keepdims = true}`."""

    name = "vm.apply"
    operator = prop_def(StringAttr)
    arguments = prop_def(DictionaryAttr)
    """The attributes of the operator."""
    traits = traits_def(HasParent(FuncOp))

    @property
    def opcode(self) -> str:
        return self.operator.data

    def bytecode_attributes(self) -> dict[str, bytecode.Attribute]:
        return {name: from_attribute(a) for name, a in self.arguments.data.items()}

    @classmethod
    def parse(cls, parser: Parser) -> ApplyOp:
        writes = _parse_results(parser)
        operator = StringAttr(parser.parse_identifier())
        reads = _parse_operands(parser)
        arguments = DictionaryAttr(parser.parse_optional_attr_dict())
        return cls.create(
            properties={
                "writes": writes,
                "reads": reads,
                "operator": operator,
                "arguments": arguments,
            },
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        _print_results(printer, self.writes)
        printer.print_string(f" {self.operator.data}({_text(self.reads)})")
        printer.print_op_attributes(self.arguments.data)
        self._print_discardable(printer)


@irdl_op_definition
class CallOp(VMOperation):
    """Call a function of the program: `vm.call r1, r2 = @f(r0)`."""

    name = "vm.call"
    callee = prop_def(SymbolRefAttr)
    traits = traits_def(HasParent(FuncOp))

    def bytecode_attributes(self) -> dict[str, bytecode.Attribute]:
        return {"callee": self.callee.string_value()}

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        writes = _parse_results(parser)
        callee = SymbolRefAttr(parser.parse_symbol_name())
        return cls.create(
            properties={"writes": writes, "callee": callee, "reads": _parse_operands(parser)},
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        _print_results(printer, self.writes)
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.string_value())
        printer.print_string(f"({_text(self.reads)})")
        self._print_discardable(printer)


@irdl_op_definition
class BrOp(VMOperation):
    """Go to a block: `vm.br ^exit`."""

    name = "vm.br"
    target = successor_def()
    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    @classmethod
    def parse(cls, parser: Parser) -> BrOp:
        return cls.create(
            properties={"writes": NO_REGISTERS, "reads": NO_REGISTERS},
            successors=[parser.parse_successor()],
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_name(self.target)
        self._print_discardable(printer)


@irdl_op_definition
class CondBrOp(VMOperation):
    """Go to the first block if the rank-0 register is not zero: `vm.cond_br r0, ^then, ^else`."""

    name = "vm.cond_br"
    then_block = successor_def()
    else_block = successor_def()
    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    @classmethod
    def parse(cls, parser: Parser) -> CondBrOp:
        name = parser.parse_identifier()
        if name[0] != "r" or not name[1:].isdecimal():
            parser.raise_error(f"expected a register such as r0, found '{name}'")
        parser.parse_punctuation(",")
        then_block = parser.parse_successor()
        parser.parse_punctuation(",")
        return cls.create(
            properties={"writes": NO_REGISTERS, "reads": RegistersAttr((int(name[1:]),))},
            successors=[then_block, parser.parse_successor()],
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_text(self.reads)}")
        for block in (self.then_block, self.else_block):
            printer.print_string(", ")
            printer.print_block_name(block)
        self._print_discardable(printer)


@irdl_op_definition
class SwitchOp(VMOperation):
    """Go to the block of the case that the rank-0 integer equals:
    `vm.switch r0 [1: ^one, -2: ^other, default: ^exit]`."""

    name = "vm.switch"
    cases = prop_def(DenseArrayBase.constr(i64))
    targets = var_successor_def()
    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    def bytecode_attributes(self) -> dict[str, bytecode.Attribute]:
        return {"cases": Ints(tuple(self.cases.get_values()))}

    @classmethod
    def parse(cls, parser: Parser) -> SwitchOp:
        reads = _parse_registers(parser)
        cases: list[int] = []
        targets: list[Block] = []

        def case() -> None:
            if parser.parse_optional_keyword("default") is None:
                cases.append(parser.parse_integer())
            parser.parse_punctuation(":")
            targets.append(parser.parse_successor())

        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, case)
        return cls.create(
            properties={
                "writes": NO_REGISTERS,
                "reads": reads,
                "cases": DenseArrayBase.from_list(i64, cases),
            },
            successors=targets,
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_text(self.reads)} ")

        def case(pair: tuple[int | str, Block]) -> None:
            printer.print_string(f"{pair[0]}: ")
            printer.print_block_name(pair[1])

        with printer.in_square_brackets():
            printer.print_list(
                zip((*self.cases.get_values(), "default"), self.targets, strict=True), case
            )
        self._print_discardable(printer)


@irdl_op_definition
class ReturnOp(VMOperation):
    """Return the values of registers: `vm.return(r0, r1)`."""

    name = "vm.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        reads = _parse_operands(parser)
        return cls.create(
            properties={"writes": NO_REGISTERS, "reads": reads},
            attributes=cls._discardable(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f"({_text(self.reads)})")
        self._print_discardable(printer)


CORE_OPERATIONS: Mapping[str, type[VMOperation]] = {
    op.name.removeprefix("vm."): op
    for op in (ConstOp, MoveOp, DestroyOp, CallOp, BrOp, CondBrOp, SwitchOp, ReturnOp)
}
"""Core opcode -> operation; operators are `vm.apply`."""

VM = Dialect(
    "vm",
    [PoolOp, FuncOp, ApplyOp, *CORE_OPERATIONS.values()],
    [ConstantAttr, RegistersAttr, ShapeAttr, IndexAttr],
)
