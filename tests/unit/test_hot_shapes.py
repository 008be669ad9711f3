"""Shapes that have most of the calls of general code: found by samples, tried, kept or left; never many."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.runtime import contest
from jitdialects.runtime.contest import ROUNDS
from jitdialects.runtime.explain import explain
from jitdialects.runtime.hot_shapes import (
    MOST_SPECIAL,
    MOST_TRIED,
    WINDOW,
    HotShapes,
    Special,
    Stage,
)
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service


def signature(n: int) -> Signature:
    return parse(f"main(f32[{n}])")


def samples(hot: HotShapes, *sizes: int) -> list[Special]:
    """What is found in calls of these sizes."""
    found = [hot.sample((1, ((n,),)), signature(n)) for n in sizes]
    return [special for special in found if special is not None]


@dataclass(eq=False)
class Entry:
    """As much of a cache's entry as is looked at."""

    n: int | str
    hits: int = 0

    @property
    def key(self) -> SimpleNamespace:
        return SimpleNamespace(signature=f"main(f32[{self.n}])")


def test_a_shape_with_most_of_the_samples_is_found_once() -> None:
    hot = HotShapes()
    (found,) = samples(hot, *(8 if i % 3 else i for i in range(WINDOW)))
    assert found.signature == signature(8) and 0.6 < found.share < 0.7
    assert samples(hot, *[8] * 5 * WINDOW) == []


def test_shapes_that_share_the_calls_are_not_hot() -> None:
    hot = HotShapes()
    assert samples(hot, *(8 + i % 2 for i in range(10 * WINDOW))) == []
    assert samples(hot, *range(10 * WINDOW)) == []


def test_old_samples_do_not_count() -> None:
    hot = HotShapes()
    assert samples(hot, *range(WINDOW)) == []
    (found,) = samples(hot, *[7] * WINDOW)
    assert found.signature == signature(7)


def test_what_is_tried_has_a_bound() -> None:
    hot = HotShapes()
    found = samples(hot, *(n for n in range(3 * MOST_TRIED) for _ in range(WINDOW)))
    assert len(found) == len(hot.special) == MOST_TRIED


def test_code_on_trial_takes_no_calls() -> None:
    hot = HotShapes()
    (special,) = samples(hot, *[7] * WINDOW)
    own, general = Entry(7), Entry("n0")
    assert hot.ordered([general, own]) == [general]
    special.own, special.general = 1.0, 2.0
    hot.judge(special, own, [general])
    assert hot.ordered([general, own]) == [own, general]
    assert special.stage is Stage.SPECIAL and hot.is_special(own)


def test_code_that_is_not_faster_is_left_for_good() -> None:
    hot = HotShapes()
    (special,) = samples(hot, *[7] * WINDOW)
    special.own, special.general = 0.99, 1.0
    hot.judge(special, Entry(7), [])
    assert special.stage is Stage.SLOWER
    assert hot.ordered([Entry("n0"), Entry(7)])[0].n == "n0"
    assert samples(hot, *[7] * WINDOW) == []
    assert str(special).startswith("left: not faster than general code; 100%")


def test_a_hotter_shape_takes_the_place_of_the_least_called() -> None:
    hot = HotShapes()
    entries: list[Entry] = []
    for n in range(MOST_SPECIAL + 1):
        (special,) = samples(hot, *[n] * WINDOW)
        special.own, special.general = 1.0, 2.0
        entries.append(Entry(n))
        hot.judge(special, entries[-1], entries)
        for entry in entries:
            entry.hits += 1 if entry.n == 2 else 10
    kept = [n for n in range(MOST_SPECIAL + 1) if hot.is_special(entries[n])]
    assert kept == [0, 1, 3, 4]
    assert hot.special["main(f32[2])"].stage is Stage.RETIRED


def doubled(compiler: FakeCompiler, shapes: str = "auto") -> VM:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    (x,) = main.parameters
    main.returns(main.apply("add", x, x))
    policy = Policy(threshold=1, shapes=shapes)
    return VM(builder.finish(), policy, MemoryPool(), fake_service(compiler))


def like_first(signature: Signature) -> list:
    return [(FLOAT32, [str(s) for s in signature.arguments[0].shape])]


def run(vm: VM, n: int, times: int = 1) -> None:
    x = np.arange(n, dtype=np.float32)
    for _ in range(times):
        assert (vm.run("main", x)[0] == 2 * x).all()


@pytest.mark.parametrize("gain", [1e9, 0.0])
def test_a_hot_shape_is_compiled_and_tried(monkeypatch: pytest.MonkeyPatch, gain: float) -> None:
    monkeypatch.setattr(contest, "GAIN", gain)
    compiler = FakeCompiler(like_first)
    vm = doubled(compiler)
    for n in (3, 4, 5):
        run(vm, n)
        vm.wait()
    run(vm, 8, 40 * WINDOW)
    vm.wait()
    assert compiler.requests == ["main(f32[3])", "main(f32[n0])", "main(f32[8])"]
    run(vm, 8, 16 * (ROUNDS + 1))
    code = vm.functions["main"]
    served = next(e for e in code.found if e.key.signature == "main(f32[8])")
    assert code.hot.is_special(served) is (gain > 0)
    before = served.hits
    run(vm, 8, 10)
    assert served.hits - before == (10 if gain else 0)
    assert ("specialised; " if gain else "left: not faster than general code; ") in explain(vm)
    run(vm, 9, 10)
    assert len(compiler.requests) == 3


def test_other_policies_have_no_code_for_hot_shapes() -> None:
    compiler = FakeCompiler(like_first)
    vm = doubled(compiler, "symbolic")
    run(vm, 8, 40 * WINDOW)
    assert not vm.functions["main"].hot.special


def test_code_for_a_hot_shape_that_cannot_be_made_is_no_harm() -> None:
    compiler = FakeCompiler(like_first)
    vm = doubled(compiler)
    for n in (3, 4, 5):
        run(vm, n)
        vm.wait()
    compiler.error = "no code for you"
    run(vm, 8, 40 * WINDOW)
    vm.wait()
    run(vm, 8, 16 * WINDOW)
    assert len(compiler.requests) == 3
    assert "not compiled: main(f32[8]): no code for you" in explain(vm)


def test_a_trial_that_fails_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise MemoryError("no room for a trial")

    monkeypatch.setattr("jitdialects.runtime.samples.race", broken)
    vm = doubled(FakeCompiler(like_first))
    for n in (3, 4, 5):
        run(vm, n)
        vm.wait()
    run(vm, 8, 40 * WINDOW)
    vm.wait()
    run(vm, 8, 40)
    assert vm.functions["main"].hot.special["main(f32[8])"].stage is Stage.FAILED
    assert "left: its trial failed" in explain(vm)


def test_calls_of_stubs_are_sampled_too() -> None:
    """Calls of a jitted function that machine code serves are seen often enough."""
    f = jd.jit(lambda x: jnp.tanh(x) * 0.5 + x)
    for n in (4, 5, 6) * 6:
        f(np.ones((n, 3), np.float32))
        f.wait()
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(8, 3)
    want = f(x).tobytes()
    (vm,) = f.machines()
    special = vm.functions["main"].hot.special
    for _ in range(100):
        for _ in range(2000):
            f(x)
        if special:
            f.wait()
        if any(each.rounds == ROUNDS for each in special.values()):
            break
    (each,) = special.values()
    assert str(each.signature) == "main(f32[8,3])" and each.rounds == ROUNDS
    assert each.stage in (Stage.SPECIAL, Stage.SLOWER)
    for _ in range(5000):
        assert f(x).tobytes() == want
    assert jd.stats()["cache_hits"] > 5000
