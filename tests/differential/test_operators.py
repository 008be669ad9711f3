"""Every operator: interpreter, compiled code for 8 and 16 lanes, C view and oracle give the same bits.

One compile per schedule with a symbolic length serves all lengths from 1 to 70, which covers every
remainder of the vector loops. Code for SSE2 and SSE4 (`x86-64-v1`, `-v2`) is sampled.
"""

from __future__ import annotations

import pytest
from differential.harness import Compiled, CView, assert_same, by_oracle, interpreted
from differential.programs import OPERATOR_CASES, Named

from jitdialects.bytecode.operators import OPERATORS

LENGTHS = range(1, 71)
SAMPLED = (1, 3, 8, 31, 70)


def test_no_operator_is_missing() -> None:
    used = {
        i.opcode
        for named in OPERATOR_CASES
        for f in named.case.program.functions
        for b in f.blocks
        for i in b.instructions
    }
    assert used >= set(OPERATORS)


@pytest.mark.parametrize("named", OPERATOR_CASES, ids=str)
def test_operator_has_the_same_bits_everywhere(named: Named) -> None:
    case = named.case
    engines = {s: Compiled(case.program, case.signature, s) for s in ("x86-64-v3", "x86-64-v4")}
    engines["C view"] = CView(case.program, case.signature)
    for n in LENGTHS:
        arguments = case.arguments({"n": n, "m": 1 + n % 5})
        want = by_oracle(case.program, arguments)
        assert_same(interpreted(case.program, arguments), want, f"interpreter, n={n}")
        for name, compiled in engines.items():
            assert_same(compiled.run(arguments), want, f"{name}, n={n}")


@pytest.mark.parametrize("named", OPERATOR_CASES[::7], ids=str)
@pytest.mark.parametrize("level", ["x86-64-v1", "x86-64-v2"])
def test_operator_has_the_same_bits_without_fma_instructions(named: Named, level: str) -> None:
    case = named.case
    compiled = Compiled(case.program, case.signature, level, level)
    for n in SAMPLED:
        arguments = case.arguments({"n": n, "m": 3})
        assert_same(compiled.run(arguments), by_oracle(case.program, arguments), f"{level}, n={n}")
