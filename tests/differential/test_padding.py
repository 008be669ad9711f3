"""Sizes that may be padded: whatever stands in further rows, the rows of a call have the same bits.

The claim of `analysis.padding` is checked by the interpreter, with rows of any data; then the bucketed policy runs the
same programs in machine code for larger sizes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from differential.generator import Case, cases
from differential.harness import assert_same, by_oracle, interpreted
from differential.programs import OPERATOR_CASES, PROGRAM_CASES, Named

from jitdialects.analysis.padding import Padding, padding_of
from jitdialects.runtime.padded_calls import concrete
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.vm import VM

SIZES = ({"n": 5, "m": 3}, {"n": 2, "m": 9})
MORE = 4
"""Rows that are added."""


def padded_alike(case: Case, padding: Padding, size: str, sizes: dict[str, int]) -> None:
    """With more rows of any data along `size`, the program's results begin with what they were."""
    arguments = case.arguments(sizes)
    larger = sizes | {size: sizes[size] + MORE}
    filled = case.arguments(larger)
    for number, (given, kind) in enumerate(zip(arguments, case.signature.arguments, strict=True)):
        if isinstance(given, np.ndarray) and given.shape:
            whole = filled[number]
            assert isinstance(whole, np.ndarray)
            whole[tuple(map(slice, given.shape))] = given
            assert whole.shape == concrete(kind.shape, larger)
        else:
            filled[number] = given
    want = interpreted(case.program, arguments)
    got = interpreted(case.program, filled)
    cropped = [
        result[tuple(map(slice, concrete(shape, sizes)))]
        for result, shape in zip(got, padding.results, strict=True)
    ]
    assert_same(cropped, want, f"{size} padded, {sizes}")


def ways(case: Case) -> list[str]:
    """The sizes of a case that may be padded, checked."""
    padding = padding_of(case.program, case.signature)
    named = {str(s) for a in case.signature.arguments for s in a.shape if not isinstance(s, int)}
    may = [size for size in sorted(named) if padding.may_pad(size)]
    for size in may:
        for sizes in SIZES:
            padded_alike(case, padding, size, sizes)
    return may


@pytest.mark.parametrize("named", [*PROGRAM_CASES, *OPERATOR_CASES], ids=str)
def test_operators_and_programs_with_more_rows(named: Named) -> None:
    ways(named.case)


def test_random_programs_with_more_rows() -> None:
    found = Counter(size for case in cases(seed=31, count=150) for size in ways(case))
    assert found["n"] >= 15 and found["m"] >= 15, found


BUCKETED = [
    *(n.case for n in PROGRAM_CASES if n.name in ("mlp", "gelu", "layers with weights")),
    *[case for case in cases(seed=7, count=60) if "n" in ways(case)][:4],
]


@pytest.mark.parametrize("case", BUCKETED, ids=range(len(BUCKETED)))
def test_bucketed_exact_and_symbolic_code_have_the_same_bits(case: Case) -> None:
    machines = {
        shapes: VM(case.program, Policy(threshold=1, shapes=shapes))
        for shapes in ("bucketed", "exact", "symbolic")
    }
    for n in (9, 12, 16, 10, 15, 2, 8, 3, 11):
        arguments = case.arguments({"n": n, "m": 3})
        want = by_oracle(case.program, arguments)
        for shapes, vm in machines.items():
            if shapes == "exact" and n in (15, 8, 3, 11):
                continue
            for _ in range(2):
                assert_same(vm.run("main", *arguments), want, f"{shapes}, n={n}")
                vm.wait()
    code = machines["bucketed"].functions["main"]
    (history,) = code.profile.histories.values()
    assert history.policy.wasted_rows > 0 and len(code.entries) == 3
