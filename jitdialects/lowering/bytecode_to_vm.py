"""Bytecode programs as `vm` modules and back: inverse of each other, locations included.

    #0 = float 0.0                        vm.pool ["float 0.0"]
    func @main(%0) -> 1 {                 vm.func @main(1) -> 1 registers 2 {
    ^entry:                               ^entry:
      %1 = const #0                <->      vm.const r1 = 0
      %1 = maximum %0, %1                   vm.apply r1 = maximum(r0, r1)
      return %1                             vm.return(r1)
    }                                     }

A module that comes back is verified as a whole, calls and constants included.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation

from jitdialects.bytecode.program import Constant, Function, Instruction, Program
from jitdialects.bytecode.verifier import verify
from jitdialects.dialects import vm
from jitdialects.dialects.interfaces import name_of
from jitdialects.dialects.vm_attributes import ConstantAttr, RegistersAttr, to_attribute
from jitdialects.errors import BytecodeError


def program_to_module(program: Program) -> ModuleOp:
    """The `vm` module of a valid program."""
    operations: list[Operation] = []
    if program.constants:
        pool = ArrayAttr(map(ConstantAttr, program.constants))
        operations.append(vm.PoolOp.create(properties={"constants": pool}))
    operations.extend(map(_function, program.functions))
    return ModuleOp(operations)


def module_to_program(module: ModuleOp) -> Program:
    """The verified program of a `vm` module; `BytecodeError` for anything else in it."""
    constants: tuple[Constant, ...] = ()
    functions: list[Function] = []
    for number, operation in enumerate(module.ops):
        if isinstance(operation, vm.FuncOp):
            functions.append(operation.function())
        elif isinstance(operation, vm.PoolOp) and number == 0:
            constants = tuple(c.data for c in operation.constants)
        else:
            raise BytecodeError(
                f"'{name_of(operation)}' is not part of a vm module; it has one vm.pool, first, and "
                "vm.func operations"
            )
    program = Program(constants, tuple(functions))
    verify(program)
    return program


def _function(function: Function) -> vm.FuncOp:
    blocks = [Block() for _ in function.blocks]
    for block, source in zip(blocks, function.blocks, strict=True):
        block.add_ops(_operation(i, blocks) for i in source.instructions)
    return vm.FuncOp.build_from(function, blocks)


def _operation(instruction: Instruction, blocks: Sequence[Block]) -> Operation:
    properties: dict[str, Attribute] = {
        "writes": RegistersAttr(instruction.results),
        "reads": RegistersAttr(instruction.operands),
    }
    kind: type[vm.VMOperation] | None = vm.CORE_OPERATIONS.get(instruction.opcode)
    attributes = instruction.attributes
    if kind is None:
        kind = vm.ApplyOp
        properties["operator"] = StringAttr(instruction.opcode)
        properties["arguments"] = DictionaryAttr(
            {name: to_attribute(value) for name, value in attributes.items()}
        )
    else:
        for name, value in attributes.items():
            properties[name] = (
                SymbolRefAttr(str(value)) if name == "callee" else to_attribute(value)
            )
    operation = kind.create(
        properties=properties, successors=[blocks[t] for t in instruction.targets]
    )
    vm.set_location(operation, instruction.location)
    return operation
