"""Whole programs: interpreter, compiled, unfused, C view and oracle give the same bits."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import oracle
import pytest
from differential.generator import SIZES, Case, cases, generate
from differential.harness import Compiled, CView, assert_same, by_oracle, interpreted
from differential.programs import EXAMPLES, PROGRAM_CASES, Named
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitdialects.bytecode import signature
from jitdialects.bytecode.program import Program
from jitdialects.errors import Error


def engines_of(case: Case) -> dict[str, Compiled]:
    """Every way to compile a case that this machine can run."""
    program, signature = case.program, case.signature
    return {
        "8 lanes": Compiled(program, signature, "x86-64-v3"),
        "16 lanes": Compiled(program, signature, "x86-64-v4"),
        "unfused": Compiled(program, signature, "x86-64-v3", fuse=False),
        "C view": CView(program, signature),
        "without FMA": Compiled(program, signature, "x86-64-v1", "x86-64-v1"),
    }


@pytest.mark.parametrize("named", PROGRAM_CASES, ids=str)
def test_program_has_the_same_bits_everywhere(named: Named) -> None:
    case = named.case
    engines = engines_of(case)
    for n in range(1, 71):
        arguments = case.arguments({"n": n, "m": 1 + n % 5})
        want = by_oracle(case.program, arguments)
        assert_same(interpreted(case.program, arguments), want, f"interpreter, n={n}")
        for name, compiled in engines.items():
            assert_same(compiled.run(arguments), want, f"{name}, n={n}")


def test_fusion_really_happens() -> None:
    fused = {named.name: engines_facts(named) for named in PROGRAM_CASES}
    for name, (operators, in_groups) in fused.items():
        assert operators > 0
        assert in_groups >= operators // 2, name


def engines_facts(named: Named) -> tuple[int, int]:
    """Operators of the compiled code, and how many of them share a group."""
    facts = Compiled(named.case.program, named.case.signature).facts
    return facts.operators, facts.operators_fused


def test_mlp_of_real_size_against_the_oracle_and_numpy() -> None:
    program = Program.from_text((EXAMPLES / "mlp.jasm").read_text())
    text = "main(f32[n,784], f32[784,512], f32[512], f32[512,256], f32[256], f32[256,10], f32[10])"
    compiled = Compiled(program, signature.parse(text))
    rng = np.random.default_rng(0)
    sizes = ((784, 512), (512,), (512, 256), (256,), (256, 10), (10,))
    weights = [rng.standard_normal(s).astype(np.float32) * np.float32(0.05) for s in sizes]
    for batch in (1, 3):
        images = rng.random((batch, 784)).astype(np.float32)
        (got,) = compiled.run([images, *weights])
        assert_same([got], by_oracle(program, [images, *weights]), f"batch {batch}")
        np.testing.assert_allclose(got.sum(axis=1), 1, rtol=1e-6)


def check(case: Case, engines: dict[str, Compiled]) -> None:
    for sizes in SIZES:
        arguments = case.arguments(sizes)
        want = by_oracle(case.program, arguments)
        where = f"{case.program.to_text()}{case.signature} {sizes}"
        assert_same(interpreted(case.program, arguments), want, f"interpreter: {where}")
        for name, compiled in engines.items():
            assert_same(compiled.run(arguments), want, f"{name}: {where}")


EMPTY = ({"n": 0, "m": 2}, {"n": 0, "m": 0}, {"n": 4, "m": 0})


def check_empty(case: Case, compiled: Compiled) -> None:
    """Sizes of 0: the same bits, or the interpreter raises and the compiled code declines the call."""
    for sizes in EMPTY:
        arguments = case.arguments(sizes)
        where = f"{case.program.to_text()}{case.signature} {sizes}"
        try:
            want = interpreted(case.program, arguments)
        except Error:
            assert not compiled.accepts(arguments), where
            continue
        assert_same(by_oracle(case.program, arguments), want, f"oracle: {where}")
        if case.is_of_its_signature(arguments):
            assert_same(compiled.run(arguments), want, where)


@pytest.mark.parametrize("number", range(48))
def test_generated_program_has_the_same_bits_everywhere(number: int) -> None:
    case = CASES[number]
    variants = ({}, {"schedule": "x86-64-v4"}, {"fuse": False})
    engines = {str(v): Compiled(case.program, case.signature, **v) for v in variants}
    check(case, engines)
    check_empty(case, engines["{}"])


CASES = cases(seed=1, count=48)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_programs_that_hypothesis_finds(rng: random.Random) -> None:
    case = generate(rng, 6)
    check(case, {"compiled": Compiled(case.program, case.signature)})


def test_the_oracle_does_not_come_from_the_compiler() -> None:
    source = Path(oracle.__file__).read_text()
    assert "jitdialects.lowering" not in source and "jitdialects.passes" not in source
