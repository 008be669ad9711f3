"""Predictions of compile time and of what compiled code takes, and what they learn."""

from __future__ import annotations

import pytest

from jitdialects.bytecode.program import Program
from jitdialects.runtime.cost_model import PRODUCT, CostModel, Work, work_of

SMALL, PRODUCTS = Work(1, 1.0), Work(3, 3 * PRODUCT)


def test_before_any_measurement_the_priors_speak() -> None:
    model = CostModel()
    assert model.compile_seconds(SMALL) == pytest.approx(9.5e-3, rel=0.1)
    assert model.compile_seconds(PRODUCTS) == pytest.approx(47e-3, rel=0.1)
    assert model.speedup(5e-6, 1) == pytest.approx(8)
    assert model.speedup(1.0, 1) == pytest.approx(2)
    assert model.compiles == model.runs == 0


def test_compile_seconds_follow_what_was_measured() -> None:
    """A machine that compiles ten times as slowly is known after some tens of compiles."""
    model = CostModel()
    for _ in range(60):
        model.learn_compile(SMALL, 95e-3)
        model.learn_compile(PRODUCTS, 470e-3)
    assert model.compile_seconds(SMALL) == pytest.approx(95e-3, rel=0.15)
    assert model.compile_seconds(PRODUCTS) == pytest.approx(470e-3, rel=0.15)
    assert model.compiles == 120


def test_what_is_measured_last_weighs_most() -> None:
    model = CostModel()
    for seconds in (1e-3, 100e-3):
        for _ in range(100):
            model.learn_compile(SMALL, seconds)
    assert model.compile_seconds(SMALL) > 80e-3


def test_one_compile_that_was_held_up_changes_little() -> None:
    model = CostModel()
    before = model.compile_seconds(PRODUCTS)
    model.learn_compile(PRODUCTS, 10 * before)
    assert model.compile_seconds(PRODUCTS) < 2.5 * before
    assert model.compile_seconds(SMALL) == CostModel().compile_seconds(SMALL)


def test_speedups_are_kept_apart_by_how_long_an_operator_takes() -> None:
    model = CostModel()
    for _ in range(100):
        model.learn_run(interpreted=50e-6, compiled=0.5e-6, operators=10)
    assert model.speedup(40e-6, 10) == pytest.approx(100, rel=0.2)
    assert model.speedup(1e-3, 1) == pytest.approx(2)
    assert model.compiled_seconds(50e-6, 10) == pytest.approx(0.5e-6, rel=0.2)


def test_code_that_is_slower_lowers_the_expectation_below_one() -> None:
    model = CostModel()
    for _ in range(100):
        model.learn_run(interpreted=1e-3, compiled=2e-3, operators=1)
    assert model.compiled_seconds(1e-3, 1) > 1e-3


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_not_learnt(seconds: float) -> None:
    model = CostModel()
    model.learn_compile(SMALL, seconds)
    model.learn_run(seconds if seconds < 0 else 0.0, 1.0, 1)
    model.learn_run(1.0, 0.0, 1)
    assert model.compiles == model.runs == 0


def test_the_model_prints_its_numbers() -> None:
    model = CostModel()
    model.learn_run(50e-6, 1e-6, 10)
    assert "from small to large (0 measured)" in str(model) and "(1 measured)" in str(model)


NESTED = """\
func @main(%0) -> 1 {
^entry:
  %1 = tanh %0
  %2 = call @square(%1)
  %3 = call @square(%2)
  return %3
}
func @square(%0) -> 1 {
^entry:
  %1 = matmul %0, %0
  return %1
}
"""


def test_work_counts_what_calls_inline() -> None:
    program = Program.from_text(NESTED)
    work = work_of(program, program.functions[0].blocks)
    assert work.operators == 3
    assert work.weight == 8 + 2 * PRODUCT


def test_work_of_a_recursive_function_is_finite() -> None:
    text = "func @main(%0) -> 1 {\n^entry:\n  %1 = call @main(%0)\n  %2 = abs %1\n  return %2\n}\n"
    program = Program.from_text(text)
    assert 1 < work_of(program, program.functions[0].blocks).operators < 20
