"""Every stage of every pipeline verifies and keeps dominance, whatever the program."""

from __future__ import annotations

import pytest
from differential.generator import Case, cases
from differential.programs import OPERATOR_CASES, PROGRAM_CASES, Named
from xdsl.dialects.builtin import ModuleOp

from jitdialects.analysis.dominance import check_dominance
from jitdialects.lowering.pipelines import lower_program


def check_stages(case: Case, features: str, fuse: bool) -> int:
    """Lower the case with all checks after each pass; the number of stages."""
    seen: list[str] = []

    def check(stage: str, module: ModuleOp) -> None:
        seen.append(stage)
        module.verify()
        check_dominance(module)
        # an operation that was detached and not erased would keep what it reads alive
        attached = set(module.walk())
        for op in attached:
            for use in (use for result in op.results for use in result.uses):
                assert use.operation in attached, f"after {stage}: {use.operation} is detached"

    lower_program(case.program, case.signature, features, fuse=fuse, observe=check)
    return len(seen)


@pytest.mark.parametrize("named", [*PROGRAM_CASES, *OPERATOR_CASES[::8]], ids=str)
@pytest.mark.parametrize("fuse", [True, False])
def test_stages_of_named_programs_verify(named: Named, fuse: bool) -> None:
    assert check_stages(named.case, "x86-64-v4", fuse) > 10


@pytest.mark.parametrize("number", range(24))
def test_stages_of_generated_programs_verify(number: int) -> None:
    check_stages(CASES[number], "x86-64-v3", fuse=True)


CASES = cases(seed=9, count=24)
