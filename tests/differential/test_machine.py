"""The virtual machine serves every operator and program from compiled code, and the statistics say so."""

from __future__ import annotations

import pytest
from differential.harness import assert_same, by_oracle
from differential.programs import OPERATOR_CASES, PROGRAM_CASES, Named

import jitdialects as jd
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.vm import VM

LENGTHS = (7, 2, 33, 70, 31)


@pytest.mark.parametrize("named", [*PROGRAM_CASES, *OPERATOR_CASES], ids=str)
def test_calls_after_the_warm_up_are_hits(named: Named) -> None:
    case = named.case
    machine = VM(case.program, policy=Policy(threshold=1, shapes="symbolic"))
    for _ in range(3):  # sizes of 1 may need a second signature
        machine.run("main", *case.arguments({"n": 5, "m": 4}))
        machine.wait()
    before = jd.stats()
    for n in LENGTHS:
        arguments = case.arguments({"n": n, "m": 4})
        assert_same(machine.run("main", *arguments), by_oracle(case.program, arguments), f"n={n}")
    after = jd.stats()
    assert after["cache_hits"] - before["cache_hits"] == len(LENGTHS)
    assert after["cache_misses"] == before["cache_misses"]
    (served,) = (row["served"] for row in machine.block_counts() if "served" in row)
    assert served >= len(LENGTHS)
