"""Print and parse again: what every dialect's assembly must survive."""

from __future__ import annotations

from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer


def to_text(module: ModuleOp, *, generic: bool = False) -> str:
    """The module as text, in custom or generic assembly."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def check_round_trip(text: str, context: Context) -> ModuleOp:
    """Parse and verify `text`, print it both ways, parse each and compare; returns the module.

    Raises `AssertionError` where a reading differs from the first one.
    """
    module = Parser(context, text).parse_module()
    module.verify()
    for generic in (False, True):
        printed = to_text(module, generic=generic)
        again = Parser(context, printed).parse_module()
        again.verify()
        if not module.is_structurally_equivalent(again) or to_text(again) != to_text(module):
            form = "generic" if generic else "custom"
            raise AssertionError(f"{form} assembly does not read back:\n{printed}")
    return module
