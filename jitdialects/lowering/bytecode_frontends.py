"""Bytecode files as inputs of `jit-opt` and `xdsl-opt`: `.jbc` (binary) and `.jasm` (text) give `vm` IR.

jit-opt model.jbc -p 'convert-vm-to-tssa{signature="main(f32[n,784])"}'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from jitdialects.bytecode.program import Program
from jitdialects.lowering.bytecode_to_vm import program_to_module


@dataclass(frozen=True)
class JbcFrontend(Frontend):
    """Reads the binary format; `BytecodeError` with the offset of what is wrong."""

    name = "jbc"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str = "input") -> ModuleOp:
        """The `vm` module of a `.jbc` file."""
        return program_to_module(Program.from_bytes(input.read()))


@dataclass(frozen=True)
class JasmFrontend(Frontend):
    """Reads program text; `BytecodeError` with file, line and column of what is wrong."""

    name = "jasm"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str = "input") -> ModuleOp:
        """The `vm` module of program text."""
        return program_to_module(Program.from_text(input.read().decode(), input_name))
