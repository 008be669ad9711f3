"""Other code for the same calls, where fusion was decided by estimates: asked for, tried, kept or left; never many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from cache_helpers import compiled, files, folder, fresh, key_of, plus

import jitdialects as jd
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature
from jitdialects.config import config
from jitdialects.runtime.alternatives import MOST_TRIED, PATIENCE, Alternative, Stage
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.compiler import compile_request
from jitdialects.runtime.contest import ROUNDS, Contest
from jitdialects.runtime.explain import explain
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.messages import CompileReply, CompileRequest, encode_error
from jitdialects.runtime.policy import HOPED, LEAST_SHARE, Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, FakeEngine, FakeLibrary

__all__ = ["folder"]


@dataclass(frozen=True)
class Eager(Policy):
    """Whatever can be compared pays."""

    def tries_alternative(self, spent: float, of: float, cost: float) -> bool:
        return True


class Balanced(FakeCompiler):
    """Remembers what judges of fusion were told; `refuses` the other balance."""

    refuses = False

    def __call__(self, data: bytes) -> bytes:
        request = CompileRequest.decode(data)
        told.append((request.typical, request.balance))
        if self.refuses and request.balance != 1.0:
            return encode_error("no other code for you")
        return super().__call__(data)


class Libraries(FakeEngine):
    """Remembers what was loaded."""

    def __init__(self) -> None:
        self.loaded: list[FakeLibrary] = []

    def load(self, data: bytes, name: str, file: object = None) -> FakeLibrary:
        self.loaded.append(FakeLibrary(data))
        return self.loaded[-1]


told: list[tuple[str, float]] = []


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    told.clear()


def like_first(signature: Signature) -> list:
    return [(FLOAT32, [str(s) for s in signature.arguments[0].shape])]


def doubled() -> Program:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    (x,) = main.parameters
    main.returns(main.apply("add", x, x))
    return builder.finish()


def machine(compiler: FakeCompiler, shapes: str = "exact", policy: type[Policy] = Eager) -> VM:
    service = CompileService(KernelCache(Libraries()), compiler)
    return VM(doubled(), policy(threshold=1, shapes=shapes), service=service)


def run(vm: VM, n: int, times: int = 1) -> None:
    x = np.arange(n, dtype=np.float32)
    for _ in range(times):
        assert (vm.run("main", x)[0] == 2 * x).all()


def code_of(vm: VM) -> FunctionCode:
    return vm.functions["main"]


def measuring(monkeypatch: pytest.MonkeyPatch, general: float, own: float) -> list[Contest]:
    """Let trials end at once with these times; the trials."""
    seen: list[Contest] = []

    def race(contest: Contest, *_: object) -> None:
        contest.general, contest.own, contest.rounds = general, own, ROUNDS
        seen.append(contest)

    monkeypatch.setattr("jitdialects.runtime.samples.race", race)
    return seen


def tried(vm: VM) -> Alternative:
    (alternative,) = code_of(vm).alternatives.tried.values()
    return alternative


def hot(vm: VM, n: int = 8) -> VM:
    """Called until there was a sample of the code and of its alternative."""
    run(vm, n)
    vm.wait()
    run(vm, n, 2)
    vm.wait()
    run(vm, n, 2)
    return vm


# ---- the faster one is kept ------------------------------------------------------------------------


def test_the_other_code_is_made_and_kept_if_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = measuring(monkeypatch, 12.1e-6, 9.8e-6)
    vm = hot(machine(Balanced(like_first, alternative=0.25)))
    assert told == [("", 1.0), ("", 0.25)] and len(seen) == 1
    (entry,) = code_of(vm).entries
    assert entry.key.balance == 0.25
    first, other = vm.service.cache._engine.loaded
    assert first.closed and not other.closed
    before = entry.hits
    run(vm, 8, 40)
    assert entry.hits == before + 40 and len(told) == 2 and len(seen) == 1
    text = "measured 12.1 us against 9.8 us with balance=0.25; kept the latter"
    assert f"fusion of main(f32[8]): {text}" in explain(vm)
    row = {"function": "@main", "signature": "main(f32[8])", "told": "balance=0.25"}
    row |= {"stage": "kept", "seconds": 12.1e-6, "other_seconds": 9.8e-6}
    assert row in jd.stats()["alternatives"]


def test_slower_code_is_dropped_and_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = measuring(monkeypatch, 10e-6, 9.9e-6)
    vm = hot(machine(Balanced(like_first, alternative=4.0)))
    first, other = vm.service.cache._engine.loaded
    assert other.closed and not first.closed and len(vm.service.cache) == 1
    assert tried(vm).stage is Stage.SLOWER
    assert "with balance=4; kept the former" in explain(vm)
    run(vm, 8, 100)
    vm.wait()
    assert len(told) == 2 and len(seen) == 1
    assert [entry.key.balance for entry in code_of(vm).entries] == [1.0]


def test_another_machine_takes_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2.0, 1.0)
    vm = hot(machine(Balanced(like_first, alternative=4.0)))
    second = VM(doubled(), vm.policy, service=vm.service)
    run(second, 8, 3)
    second.wait()
    run(second, 8, 3)
    assert len(told) == 2
    assert [entry.key.balance for entry in code_of(second).found] == [4.0]


def test_a_machine_with_the_same_code_compares_nothing_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measuring(monkeypatch, 1.0, 2.0)
    vm = hot(machine(Balanced(like_first, alternative=4.0)))
    second = hot(VM(doubled(), vm.policy, service=vm.service))
    assert len(told) == 2 and tried(second).stage is Stage.ELSEWHERE


def test_sizes_that_are_far_from_what_was_typical(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2.0, 1.0)
    vm = machine(Balanced(like_first, weighed=True), "symbolic")
    run(vm, 8)
    vm.wait()
    run(vm, 20000, 4)
    vm.wait()
    run(vm, 20000, 2)
    assert told == [("n0=16", 1.0), ("n0=16384", 1.0)]
    (entry,) = code_of(vm).entries
    assert entry.key.typical == "n0=16384"
    assert "with typical sizes n0=16384; kept the latter" in explain(vm)


def test_trials_are_of_calls_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = measuring(monkeypatch, 2.0, 1.0)
    vm = machine(Balanced(like_first, alternative=4.0), "symbolic")
    run(vm, 8)
    vm.wait()
    run(vm, 8, 2)
    vm.wait()
    run(vm, 9, 3)
    assert not seen and tried(vm).stage is Stage.TRIAL
    run(vm, 8)
    assert len(seen) == 1 and tried(vm).stage is Stage.KEPT


# ---- refusals --------------------------------------------------------------------------------------


def test_do_not_compare_where_nothing_was_close() -> None:
    vm = hot(machine(Balanced(like_first)))
    run(vm, 8, 100)
    vm.wait()
    assert told == [("", 1.0)] and not code_of(vm).alternatives.tried


def test_do_not_compare_for_sizes_that_are_near() -> None:
    vm = machine(Balanced(like_first, weighed=True), "symbolic")
    for n in (16, 100, 30):
        run(vm, n, 3)
        vm.wait()
    assert told == [("n0=16", 1.0)]


@dataclass(frozen=True)
class Dear(Policy):
    """Compiling takes a million times as long as it does."""

    def tries_alternative(self, spent: float, of: float, cost: float) -> bool:
        return super().tries_alternative(spent, of, 1e6 * cost)


def test_do_not_compare_for_code_that_is_seldom_called() -> None:
    vm = hot(machine(Balanced(like_first, alternative=4.0), policy=Dear))
    run(vm, 8, 20)
    assert told == [("", 1.0)] and not code_of(vm).alternatives.tried


def test_what_it_costs_must_be_saved_by_as_much_time_again() -> None:
    policy = Policy()
    assert policy.tries_alternative(1.01 / HOPED, 2 / HOPED, 1.0)
    assert not policy.tries_alternative(0.99 / HOPED, 2 / HOPED, 1.0)


def test_do_not_compare_for_a_negligible_share_of_all_time() -> None:
    policy = Policy()
    assert policy.tries_alternative(100.0, 99 / LEAST_SHARE, 1.0)
    assert not policy.tries_alternative(100.0, 101 / LEAST_SHARE, 1.0)


def test_do_not_measure_if_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Policy(measure_fusion=False).tries_alternative(1e9, 1e9, 1.0)
    monkeypatch.setattr(config, "measure_fusion", False)
    assert not Policy().tries_alternative(1e9, 1e9, 1.0)
    assert Policy(measure_fusion=True).tries_alternative(1e9, 1e9, 1.0)


def test_do_not_change_nests_whose_schedule_is_given() -> None:
    compiler = Balanced(like_first, alternative=4.0, weighed=True)
    service = CompileService(KernelCache(Libraries()), compiler)
    policy = Eager(threshold=1, shapes="symbolic", schedule="elementwise: vector = 4")
    vm = hot(VM(doubled(), policy, service=service))
    run(vm, 20000, 40)
    assert len(told) == 1


def test_code_that_cannot_be_made_leaves_everything_as_it_was() -> None:
    compiler = Balanced(like_first, alternative=4.0)
    compiler.refuses = True
    vm = hot(machine(compiler))
    (entry,) = code_of(vm).entries
    assert entry.key.balance == 1.0 and tried(vm).stage is Stage.FAILED
    before = entry.hits
    run(vm, 8, 100)
    assert entry.hits == before + 100 and len(told) == 2
    assert "left: it cannot be made, or tried: no other code for you" in explain(vm)


def test_a_trial_that_fails_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("no room for a trial")

    monkeypatch.setattr("jitdialects.runtime.samples.race", broken)
    vm = hot(machine(Balanced(like_first, alternative=4.0)))
    assert tried(vm).stage is Stage.FAILED
    assert [library.closed for library in vm.service.cache._engine.loaded] == [False, True]
    run(vm, 8, 50)
    assert len(told) == 2


def test_a_trial_whose_calls_do_not_come_again_is_given_up() -> None:
    vm = machine(Balanced(like_first, alternative=4.0), "symbolic")
    run(vm, 8)
    vm.wait()
    run(vm, 8, 2)
    vm.wait()
    run(vm, 9, 16 * (PATIENCE + 1))
    assert tried(vm).stage is Stage.FAILED and len(vm.service.cache) == 1


def test_what_is_tried_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 1.0, 2.0)
    vm = machine(Balanced(like_first, alternative=4.0))
    for n in range(1, MOST_TRIED + 4):
        hot(vm, n)
    assert sum(balance == 4.0 for _, balance in told) == MOST_TRIED


def test_code_that_was_compared_is_not_compared_with_a_third(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measuring(monkeypatch, 2.0, 1.0)
    vm = hot(machine(Balanced(like_first, alternative=4.0, weighed=True), "symbolic"))
    run(vm, 20000, 50)
    vm.wait()
    run(vm, 20000, 50)
    assert len(told) == 2


# ---- the cache -------------------------------------------------------------------------------------

KEY = key_of(plus())
OTHER = replace(KEY, balance=4.0)


def with_both(cache: KernelCache) -> tuple[bytes, CompileReply]:
    data = compiled(plus().to_bytes())
    reply = CompileReply.decode(data)
    for key in (KEY, OTHER):
        cache.keep(key, data, reply, plus().constants)
    return data, reply


def settled(cache: KernelCache, kept: CacheKey, left: CacheKey) -> bool:
    one, other = cache.find(kept), cache.find(left)
    assert one is not None and other is not None
    return cache.settle(one, other, "measured this against that")


@pytest.mark.parametrize(("kept", "left"), [(KEY, OTHER), (OTHER, KEY)])
def test_who_asks_for_what_was_left_gets_what_was_kept(kept: CacheKey, left: CacheKey) -> None:
    cache = KernelCache()
    data, reply = with_both(cache)
    bytes_of_both = cache.bytes
    assert settled(cache, kept, left)
    entry = cache.find(left)
    assert entry is cache.find(kept) and entry is not None and entry.key == kept
    assert cache.find_all([kept, left]) == [entry] and 2 * cache.bytes == bytes_of_both
    assert not cache.settle(entry, entry, "twice") and cache.find(kept) is entry
    cache.clear()
    assert cache.find(left) is cache.find(kept) is None
    cache.keep(left, data, reply, plus().constants)
    assert cache.find(left) is not None and cache.find(kept) is None


def test_what_is_made_again_is_found_again() -> None:
    cache = KernelCache()
    data, reply = with_both(cache)
    assert settled(cache, OTHER, KEY)
    cache.keep(KEY, data, reply, plus().constants)
    entry = cache.find(KEY)
    assert entry is not None and entry.key == KEY


def test_do_not_settle_what_is_gone() -> None:
    cache = KernelCache()
    with_both(cache)
    one, other = cache.find(KEY), cache.find(OTHER)
    assert one is not None and other is not None
    cache.drop(other)
    assert not cache.settle(one, other, "") and not cache.settle(other, one, "")
    assert cache.find(KEY) is one


@pytest.mark.parametrize(("kept", "left"), [(KEY, OTHER), (OTHER, KEY)])
def test_the_next_process_begins_with_what_was_kept(
    folder: Path, kept: CacheKey, left: CacheKey
) -> None:
    cache = fresh()
    with_both(cache)
    assert len(files(folder)) == 2 and settled(cache, kept, left)
    (file,) = files(folder)
    assert file.name == kept.file_name
    vm = VM(plus(), Eager(threshold=1), service=CompileService(fresh(), compile_request))
    assert vm.run("main", np.ones(8, np.float32))[0].tolist() == [2.0] * 8
    (entry,) = code_of(vm).entries
    assert (entry.key, entry.source, entry.hits) == (kept, "disk", 1)
    assert "fusion, in an earlier process: measured this against that" in explain(vm)
    assert entry.kernel is not None and not entry.kernel.reply.alternative
    vm.wait()
    assert len(vm.service.cache) == 1


def test_what_cannot_be_written_leaves_both_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = fresh()
    with_both(cache)
    monkeypatch.setattr(type(cache.disk), "put", lambda *_: None)
    assert settled(cache, OTHER, KEY)
    assert len(files(folder)) == 2


# ---- with the real compiler ------------------------------------------------------------------------


def rows(name: str) -> Callable[[], Program]:
    def make() -> Program:
        builder = ProgramBuilder()
        main = builder.function("main", 2)
        t = main.apply(name, *main.parameters)
        main.returns(main.apply("min", t, axis=1), main.apply("max", t, axis=1))
        return builder.finish()

    return make


def test_both_codes_run_and_the_bits_stay() -> None:
    service = CompileService(KernelCache(), compile_request)
    vm = VM(rows("divide")(), Eager(threshold=1), service=service)
    random = np.random.default_rng(0)
    x, y = (random.random((128, 256), np.float32) + 1 for _ in range(2))
    want = [each.tobytes() for each in vm.run("main", x, y)]
    vm.wait()
    for _ in range(3000):
        assert [each.tobytes() for each in vm.run("main", x, y)] == want
        alternatives = code_of(vm).alternatives.tried
        if alternatives and not tried(vm).is_open:
            break
        if alternatives:
            service.wait()
        vm.let_through("main")
    assert tried(vm).stage in (Stage.KEPT, Stage.SLOWER) and tried(vm).rounds == ROUNDS
    assert len(service.cache) == 1
    for _ in range(100):
        assert [each.tobytes() for each in vm.run("main", x, y)] == want
    kept = "latter" if tried(vm).stage is Stage.KEPT else "former"
    assert f"with balance=0.25; kept the {kept}" in explain(vm)
    service.stop()
