"""Passes that rewrite functions where judges agree, and say why where they do not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.machine import CORES, Core
from jitdialects.analysis.typical_sizes import parse_typical


@dataclass(frozen=True)
class JudgingPass(ModulePass):
    """`features` names the machine that is judged for. `remarks` has a sentence for each refusal."""

    features: str = "x86-64-v3"

    @cached_property
    def remarks(self) -> list[str]:
        """What was refused and why, by all calls of this object."""
        return []

    def sizes(self, typical: str) -> dict[str, int]:
        """The sizes in an option `typical`."""
        try:
            return parse_typical(typical)
        except ValueError as error:
            raise PassFailedException(f"{self.name}: typical: {error}") from None

    @abstractmethod
    def rewrite(self, function: FuncOp, core: Core) -> Iterable[str]:
        """Change one function; what was refused and why."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.features not in CORES:
            raise PassFailedException(
                f"{self.name}: unknown features '{self.features}'; known are {', '.join(CORES)}"
            )
        for function in op.ops:
            if isinstance(function, FuncOp):
                refused = dict.fromkeys(self.rewrite(function, CORES[self.features]))
                self.remarks.extend(f"@{function.sym_name.data}: {why}" for why in refused)
