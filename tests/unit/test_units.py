"""Compiled parts of functions: loops that are entered while they run, stretches of what cannot be compiled whole."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.bytecode.program import Program
from jitdialects.errors import ConfigError, Error
from jitdialects.runtime.interpreter import ASK_EVERY, CLOCK_EVERY
from jitdialects.runtime.policy import LOOP_SECONDS
from jitdialects.runtime.pool import MemoryPool

NEVER = jd.Policy(threshold=10**9, loop_seconds=1e9)

COUNT = """
#0 = int 1
#1 = float 0.999
func @main(%0, %1, %2) -> 2 {
^entry:
  %3 = const #0
  %4 = subtract %2, %2
  br ^head
^head:
  %5 = less %4, %2
  cond_br %5, ^body, ^done
^body:
  %6 = multiply %0, %1
  %7 = const #1
  %8 = multiply %6, %7
  %0 = add %8, %1
  %4 = add %4, %3
  br ^head
^done:
  %10 = sum %0
  return %0, %10
}
"""
RECURSIVE = """
#0 = int 1
#1 = int 0
func @main(%0, %1) -> 1 {
^entry:
  %2 = const #1
  %3 = greater %1, %2
  cond_br %3, ^more, ^done
^more:
  %4 = negative %0
  %5 = multiply %4, %0
  %6 = add %5, %4
  %7 = const #0
  %8 = subtract %1, %7
  %9 = call @main(%6, %8)
  %10 = add %9, %0
  %11 = multiply %10, %10
  %12 = subtract %11, %4
  return %12
^done:
  return %0
}
"""


def floats(n: int) -> np.ndarray:
    return np.random.default_rng(n).random(n, dtype=np.float32)


def bits(results: tuple[np.ndarray, ...]) -> list[object]:
    return [(r.dtype, r.shape, r.tobytes()) for r in results]


def run_until_served(vm: jd.VM, unit: str, *arguments: object) -> tuple[np.ndarray, ...]:
    """Run long loops, with room for the compiler between them, until a part has served one."""
    for _ in range(20):
        results = vm.run("main", *arguments)
        vm.wait()
        served = {c.function.name: c.profile.served for c in vm.functions["main"].parts}
        if served.get(unit):
            return results
    raise AssertionError(f"no code for {unit}: {jd.explain(vm)}")


# ---- loops


def test_a_loop_is_entered_while_it_runs_and_gives_the_same_bits() -> None:
    program = Program.from_text(COUNT)
    x, y = floats(100), floats(100)
    want = bits(jd.VM(program, NEVER).run("main", x, y, 5000))
    vm = jd.VM(program, jd.Policy(threshold=10**9, loop_seconds=0.0))
    got = run_until_served(vm, "main.head", x, y, 5000)
    assert bits(got) == want
    assert bits(vm.run("main", x, y, 5000)) == want
    interpreted = vm.functions["main"].profile.counts[2]
    assert vm.run("main", x, y, 10**6)[0].shape == (100,)
    assert vm.functions["main"].profile.counts[2] < interpreted + 2 * ASK_EVERY
    assert "main.head(" in jd.explain(vm)


def test_one_call_is_enough() -> None:
    program = Program.from_text(COUNT)
    vm = jd.VM(program)
    vm.run("main", floats(10), floats(10), 10**6)
    assert [c.profile.served for c in vm.functions["main"].parts] == [1]


def test_do_not_compile_loops_of_short_calls() -> None:
    vm = jd.VM(Program.from_text(COUNT), NEVER)
    vm.run("main", floats(10), floats(10), 100 * CLOCK_EVERY)
    assert not vm.functions["main"].parts


def test_a_loop_whose_types_settle_after_an_iteration_is_compiled_for_what_they_become() -> None:
    program = Program.from_text(COUNT)
    x, y = np.ones(3, np.int32), np.full(3, 0.5, np.float32)
    want = bits(jd.VM(program, NEVER).run("main", x, y, 4000))
    vm = jd.VM(program, jd.Policy(threshold=10**9, loop_seconds=0.0))
    assert bits(run_until_served(vm, "main.head", x, y, 4000)) == want


def test_an_error_in_a_compiled_loop_is_the_interpreters() -> None:
    text = """
#0 = int 1
func @main(%0, %1) -> 1 {
^entry:
  %2 = const #0
  %3 = subtract %1, %1
  br ^head
^head:
  %4 = less %3, %1
  cond_br %4, ^body, ^done
^body:
  %5 = getitem %0, %3 {index = [$1]}
  %3 = add %3, %2
  br ^head
^done:
  return %3
}
"""
    vm = jd.VM(Program.from_text(text, "loop.jasm"), jd.Policy(threshold=10**9, loop_seconds=0.0))
    x = floats(3000)
    assert run_until_served(vm, "main.head", x, 3000)[0] == 3000
    for _ in range(3):
        with pytest.raises(Error, match=r"^loop.jasm:12:3: getitem"):
            vm.run("main", x, 3001)
    assert vm.run("main", x, 3000)[0] == 3000


def test_memory_of_the_loop_is_released() -> None:
    pool = MemoryPool()
    vm = jd.VM(Program.from_text(COUNT), jd.Policy(threshold=10**9, loop_seconds=0.0), pool)
    run_until_served(vm, "main.head", floats(100), floats(100), 2000)
    pool.safe_point()
    assert pool.statistics().live_blocks == 0


def test_threads_share_the_loops_of_a_machine() -> None:
    program = Program.from_text(COUNT)
    x, y = floats(20), floats(20)
    want = bits(jd.VM(program, NEVER).run("main", x, y, 3000))
    vm = jd.VM(program, jd.Policy(threshold=10**9, loop_seconds=0.0))
    got: list[list[object]] = []
    threads = [
        threading.Thread(target=lambda: got.append(bits(vm.run("main", x, y, 3000))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [want] * 8
    assert len(vm.functions["main"].parts) == 1


def test_loops_wait_for_as_long_as_the_start_of_the_compiler_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, given = jd.VM(Program.from_text(COUNT)), jd.Policy(loop_seconds=0.5)
    usual = LOOP_SECONDS + asked.service.start_seconds
    assert asked.loop_seconds == usual
    monkeypatch.setattr(type(asked.service), "start_seconds", 0.25)
    assert asked.loop_seconds == LOOP_SECONDS + 0.25
    assert jd.VM(Program.from_text(COUNT), given).loop_seconds == 0.5


def test_loop_seconds_must_be_seconds() -> None:
    with pytest.raises(ConfigError, match="loop_seconds must be 0 or more seconds, got -1"):
        jd.Policy(loop_seconds=-1)


# ---- stretches


def test_a_function_that_calls_itself_is_compiled_between_the_calls() -> None:
    program = Program.from_text(RECURSIVE)
    x = floats(50)
    want = bits(jd.VM(program, NEVER).run("main", x, 5))
    vm = jd.VM(program, jd.Policy(threshold=2))
    for _ in range(10):
        assert bits(vm.run("main", x, 5)) == want
        vm.wait()
    parts = {c.function.name: c.profile.served for c in vm.functions["main"].parts}
    assert set(parts) == {"main.more.0", "main.more.6"}
    assert all(parts.values())
    text = jd.explain(vm)
    assert "@main calls itself" in text
    assert "main.more.6(" in text


def test_a_stretch_that_cannot_be_compiled_is_halved() -> None:
    """A size that depends on tensor data: what comes before and behind it is compiled."""
    text = """
func @main(%0, %1) -> 1 {
^b:
  %2 = add %0, %0
  %3 = multiply %2, %0
  %4 = subtract %3, %2
  %5 = max %1
  %6 = getitem %4, %5 {index = [:$1]}
  %7 = add %6, %6
  %8 = multiply %7, %6
  %9 = subtract %8, %7
  return %9
}
"""
    program = Program.from_text(text)
    x, n = floats(9), np.array([3, 7, 2])
    want = bits(jd.VM(program, NEVER).run("main", x, n))
    vm = jd.VM(program, jd.Policy(threshold=2))
    for _ in range(30):
        assert bits(vm.run("main", x, n)) == want
        vm.wait()
    served = [c for c in vm.functions["main"].parts if c.profile.served]
    assert served, jd.explain(vm)
    assert bits(vm.run("main", x, np.array([5]))) == bits(
        jd.VM(program).run("main", x, np.array([5]))
    )


def test_do_not_cut_what_can_be_compiled() -> None:
    vm = jd.VM(Program.from_text(COUNT), jd.Policy(threshold=2))
    for _ in range(6):
        vm.run("main", floats(10), floats(10), 3)
        vm.wait()
    assert not vm.functions["main"].parts
    assert vm.functions["main"].profile.served
