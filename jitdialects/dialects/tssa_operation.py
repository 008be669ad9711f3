"""What the operations of `tssa` on tensors have in common."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, IRDLOperationInvT, base, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from jitdialects.bytecode.dims import Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.shape_rules import shape_text
from jitdialects.dialects.tssa_types import dtype_of, shape_of, verify_tensor
from jitdialects.errors import Error


class TensorOp(IRDLOperation):
    """Common syntax: `tssa.name %a, %b {attributes} : (types) -> type`."""

    arguments = var_operand_def(base(TensorType[Attribute]))
    result = result_def(base(TensorType[Attribute]))

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_operation_type(self)

    @classmethod
    def parse(cls: type[IRDLOperationInvT], parser: Parser) -> IRDLOperationInvT:
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        function = parser.parse_function_type()
        resolved = parser.resolve_operands(operands or [], function.inputs.data, parser.pos)
        names = cls.get_irdl_definition().properties
        return cls.create(
            operands=resolved,
            result_types=function.outputs.data,
            properties={k: v for k, v in attributes.items() if k in names},
            attributes={k: v for k, v in attributes.items() if k not in names},
        )

    def verify_(self) -> None:
        for value in (*self.operands, *self.results):
            verify_tensor(value)
        try:
            self.verify_tensors()
        except Error as error:
            raise VerifyException(error.message) from None

    def verify_tensors(self) -> None:
        """What the operation asks of its types; may raise any `jitdialects.errors.Error`."""

    def expect_operands(self, count: int) -> None:
        """Check the number of operands."""
        if len(self.operands) != count:
            raise VerifyException(f"expected {count} operand(s), got {len(self.operands)}")

    def expect_result(self, shape: Shape, dtype: DType) -> None:
        """Check the result type."""
        if shape_of(self.result) != shape:
            raise VerifyException(
                f"result shape {shape_text(shape_of(self.result))} should be {shape_text(shape)}"
            )
        if dtype_of(self.result).name != dtype.name:
            raise VerifyException(f"result dtype {dtype_of(self.result)} should be {dtype}")
