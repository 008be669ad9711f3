"""`tssa-simplify`: identities that hold for every bit pattern, and branches that are decided.

    %y = tssa.multiply %x, %ones            %y is %x
    cf.cond_br %true, ^a, ^b         ->     cf.br ^a, and ^b goes if nobody else leads to it

`RULES` lists the identities by operation; each is a function with the identity in its docstring.
They hold for NaN (whose sign and payload are free), for both zeros and for integers that wrap: x +
(-0.0) is x, x + 0.0 is not, since it turns -0.0 into 0.0. A scalar is seen through broadcasts.
Never reassociates and never changes a result's type.

Every rule replaces a result by a value that exists, or by an operation on operands further up, so
it ends. A rule from elsewhere that breaks this is caught by a cap, which names the rules that undo
each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.dominance import postorder
from jitdialects.passes import tssa_identities as identities
from jitdialects.passes.decided_branches import simplify_control_flow

Rule: TypeAlias = Callable[[Operation], SSAValue | None]
"""Gives the value that stands for the only result of an operation, the result itself if the
operation was changed in place, or None if the rule does not apply."""

MAX_CHANGES = 64
"""Changes of one operation in place, at most: chains of casts and reshapes are shorter."""

RULES: Mapping[str, Sequence[Rule]] = {
    "tssa.multiply": (identities.multiply_by_one, identities.multiply_by_zero),
    "tssa.divide": (identities.divide_by_one,),
    "tssa.add": (identities.add_neutral,),
    "tssa.subtract": (identities.subtract_zero, identities.subtract_itself),
    "tssa.left_shift": (identities.shift_by_zero,),
    "tssa.right_shift": (identities.shift_by_zero,),
    "tssa.negative": (identities.undo_itself,),
    "tssa.logical_not": (identities.undo_itself,),
    "tssa.abs": (identities.abs_of_sign_change,),
    "tssa.minimum": (identities.both_operands_equal,),
    "tssa.maximum": (identities.both_operands_equal,),
    "tssa.logical_and": (
        identities.both_operands_equal,
        identities.and_with_constant,
    ),
    "tssa.logical_or": (identities.both_operands_equal, identities.or_with_constant),
    "tssa.equal": (identities.compare_in_int32,),
    "tssa.not_equal": (identities.compare_in_int32,),
    "tssa.less": (identities.compare_in_int32,),
    "tssa.less_equal": (identities.compare_in_int32,),
    "tssa.greater": (identities.compare_in_int32,),
    "tssa.greater_equal": (identities.compare_in_int32,),
    "tssa.where": (identities.where_same, identities.where_decided),
    "tssa.cast": (identities.same_type, identities.cast_of_exact_cast),
    "tssa.broadcast": (identities.same_type, identities.of_same_operation),
    "tssa.reshape": (identities.same_type, identities.of_same_operation),
    "tssa.transpose": (identities.transpose_in_order, identities.transpose_of_transpose),
    **dict.fromkeys(
        ("tssa.sum", "tssa.prod", "tssa.max", "tssa.min"),
        (identities.bring_reduced_axes_together,),
    ),
    "tssa.extract": (identities.extract_everything,),
    "tssa.insert": (identities.insert_everything,),
}
"""The identities tried on each operation, in this order."""


@dataclass(frozen=True)
class TssaSimplifyPass(ModulePass):
    """See the module's docstring."""

    name = "tssa-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in [r for each in op.walk() for r in each.regions]:
            simplify_region(region)


def simplify_region(region: Region, rules: Mapping[str, Sequence[Rule]] = RULES) -> Counter[str]:
    """Apply `rules` and decide branches until nothing changes; how often each rule fired, by
    name."""
    fired: Counter[str] = Counter()
    while True:
        for block in reversed(postorder(region)):
            for op in block.ops:
                _simplify_operation(op, rules.get(op.name, ()), fired)
        decided = simplify_control_flow(region)
        fired.update(decided)
        if not decided:
            return fired


def _simplify_operation(op: Operation, rules: Sequence[Rule], fired: Counter[str]) -> None:
    """Rewrite one operation. Its operands are simplified already, and what a rule gives is one of
    them or built on theirs, so that its users see the final form."""
    history: list[str] = []
    while True:
        for rule in rules:
            value = rule(op)
            if value is not None:
                break
        else:
            return
        history.append(rule.__name__)
        fired[rule.__name__] += 1
        result = op.results[0]
        if value is not result:
            if value.name_hint is None:
                value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
            op.detach()
            op.erase()
            return
        if len(history) > MAX_CHANGES:
            names = " and ".join(sorted(set(history[-2:])))
            raise PassFailedException(
                f"tssa-simplify: {op.name} was changed {MAX_CHANGES} times without an end; "
                f"the rules {names} undo each other"
            )
