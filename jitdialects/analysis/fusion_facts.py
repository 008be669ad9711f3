"""How much of a program was fused: operators in groups of two or more, of all operators.

An *operator* here is an operation that computes: elementwise, a reduction, a product, an insertion. Not
counted: casts, broadcasts and constants, which type inference inserts without being asked, and shape-only
operations, which become views and run nothing.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from jitdialects.dialects.interfaces import Contraction, Elementwise, Reduction, has_trait


def is_counted(op: Operation) -> bool:
    """Whether `op` counts as an operator of the program."""
    if op.name in ("tssa.cast", "tssa.insert"):
        return op.name == "tssa.insert"
    return any(has_trait(op, kind) for kind in (Elementwise, Reduction, Contraction))


def count_operators(module: ModuleOp) -> tuple[int, int]:
    """Operators inside the groups of `module`, and those of them in groups of two or more."""
    total = fused = 0
    for op in module.walk():
        if op.name == "tssa.group":
            count = sum(is_counted(inner) for inner in op.regions[0].block.ops)
            total += count
            fused += count if count > 1 else 0
    return total, fused
