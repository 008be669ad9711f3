"""Tiers of one function with a compiler and a clock of the test: what is asked for when, what is left, what comes back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.errors import ConfigError
from jitdialects.runtime.cost_model import CostModel, Work
from jitdialects.runtime.explain import explain
from jitdialects.runtime.policy import Decision, Evidence, Experience, Policy
from jitdialects.runtime.profile import MAX_SHAPES, RECENT, Profile, ShapeHistory, Times
from jitdialects.runtime.thresholds import Spent, Thresholds
from jitdialects.runtime.tiers import MOST_POSTPONED, Standing, Tiers
from jitdialects.runtime.totals import Totals
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service

MS, US = 1e-3, 1e-6


class FixedModel(CostModel):
    """Compiling takes `compile` seconds, compiled runs take none."""

    def __init__(self, compile: float) -> None:
        super().__init__()
        self.compile = compile

    def compile_seconds(self, work: Work) -> float:
        return self.compile

    def compiled_seconds(self, interpreted: float, operators: float) -> float:
        return 0.0


@dataclass
class Asked:
    """A compiler that remembers what it was asked for."""

    signatures: list[str] = field(default_factory=list[str])
    there: set[str] = field(default_factory=set[str])
    failed: set[str] = field(default_factory=set[str])
    prepared: bool = False
    start_seconds: float = 0.0

    def standing(self, signature: Signature, history: ShapeHistory) -> Standing:
        text = str(signature)
        if text in self.failed:
            return Standing.FAILED
        if text in self.there:
            return Standing.REFUSES
        return Standing.PENDING if text in self.signatures else Standing.ABSENT

    def prepare(self) -> None:
        self.prepared = True

    def submit(self, signature: Signature, history: ShapeHistory) -> None:
        self.signatures.append(str(signature))


class Scene:
    """A function of one block and one array argument."""

    def __init__(self, policy: Policy, compile: float = 10 * MS, others: float = 0.0) -> None:
        """`others`: what the process has spent running functions."""
        self.now = 0.0
        spent = Totals(run_seconds=others)
        quiet = Thresholds(lambda: Spent(Totals(), spent), lambda: self.now)
        self.experience = Experience(FixedModel(compile), quiet, lambda: self.now)
        self.profile = Profile([0])
        self.tiers = Tiers("main", self.profile, [Work(4, 4.0)], False, policy, self.experience)
        self.history = ShapeHistory((ArgumentType(FLOAT32, (8,)),))
        self.compiler = Asked()

    def run(self, size: int, seconds: float, times: int = 1) -> None:
        """Interpreted calls, as the machine counts them."""
        for _ in range(times):
            shapes = ((size,),)
            if self.profile.hot and self.tiers.is_time(self.history, shapes):
                self.tiers.ask(self.history, shapes, self.compiler)
            self.profile.counts[0] += 1
            self.history.add(shapes, seconds)
            if not self.profile.hot and self.tiers.is_time(self.history, shapes):
                self.tiers.ask(self.history, shapes, self.compiler)

    def compiled(self, signature: str, size: int, seconds: float, times: int) -> bool:
        """Compiled calls; whether the last one made the tiers leave the code."""
        left = False
        for _ in range(times):
            left = self.tiers.measured(signature, self.history, ((size,),), seconds)
        return left


# ---- asking for code -----------------------------------------------------------------------------


def test_code_is_asked_for_when_as_many_runs_again_would_save_what_it_costs() -> None:
    scene = Scene(Policy(), compile=10 * MS)
    scene.run(8, 100 * US, 90)
    assert not scene.compiler.signatures
    assert not scene.profile.hot
    scene.run(8, 100 * US, 40)  # looked at when a quarter more runs have come
    assert scene.compiler.signatures == ["main(f32[8])"]
    assert scene.profile.hot


def test_the_compiler_gets_ready_when_a_tenth_is_saved() -> None:
    scene = Scene(Policy(), compile=100 * MS)
    scene.run(8, 100 * US, 60)
    assert not scene.compiler.prepared
    scene.run(8, 100 * US, 80)
    assert scene.compiler.prepared and not scene.compiler.signatures


def test_the_start_of_a_compiler_on_the_only_cpu_is_to_be_saved_too() -> None:
    scene = Scene(Policy(), compile=10 * MS)
    scene.compiler.start_seconds = 90 * MS
    scene.run(8, 100 * US, 900)
    assert not scene.compiler.signatures
    assert not scene.compiler.prepared, "what would be started early may be started in vain"
    (waiting,) = scene.tiers.postponed.values()
    assert "its part in the start of the compiler on this CPU 90 ms" in waiting.why
    scene.run(8, 100 * US, 400)
    assert scene.compiler.signatures


def test_units_share_the_start_by_the_time_they_take() -> None:
    scene = Scene(Policy(), compile=10 * MS, others=1.0)
    scene.compiler.start_seconds = 90 * MS
    scene.run(8, 100 * US, 90)  # 9 ms of a second: the start is for others
    assert not scene.compiler.signatures
    scene.run(8, 100 * US, 40)
    assert scene.compiler.signatures


def test_a_given_threshold_asks_whatever_the_start_takes() -> None:
    scene = Scene(Policy(threshold=3))
    scene.compiler.start_seconds = 1e3
    scene.run(8, 100 * US, 3)
    assert scene.compiler.signatures


def test_below_the_threshold_nothing_is_asked_for_whatever_it_saves() -> None:
    scene = Scene(Policy(), compile=1 * US)
    scene.run(8, 1.0, 9)
    assert not scene.compiler.signatures and not scene.tiers.postponed
    scene.run(8, 1.0)
    assert scene.compiler.signatures


def test_a_threshold_that_is_given_means_that_number() -> None:
    scene = Scene(Policy(threshold=3), compile=1e9)
    scene.run(8, 1 * US, 2)
    assert not scene.compiler.signatures
    scene.run(8, 1 * US)
    assert scene.compiler.signatures == ["main(f32[8])"]


def test_so_does_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jd.config, "threshold", 2)
    scene = Scene(Policy(), compile=1e9)
    scene.run(8, 1 * US, 2)
    assert scene.compiler.signatures == ["main(f32[8])"]


def test_a_block_of_a_loop_counts_for_the_threshold() -> None:
    scene = Scene(Policy(), compile=10 * MS)
    scene.profile.counts[0] = 1000
    scene.run(8, 5 * MS, 2)
    assert not scene.compiler.signatures
    scene.run(8, 5 * MS, 1)
    assert scene.compiler.signatures == ["main(f32[8])"]


def test_runs_of_all_shapes_count_for_general_code() -> None:
    scene = Scene(Policy(), compile=10 * MS)
    for size in range(1, 140):
        scene.run(size, 100 * US)
    assert scene.compiler.signatures == ["main(f32[n0])"]


def test_general_code_that_does_not_pay_yet_is_not_looked_at_for_every_new_shape() -> None:
    """A look costs as much as a short call."""
    looks: list[int] = []

    class Counting(Policy):
        def decide(self, evidence: Evidence, experience: Experience) -> Decision:
            looks.append(evidence.runs)
            return super().decide(evidence, experience)

    scene = Scene(Counting(), compile=1e9)
    for size in range(1, 1000):
        scene.run(size, 100 * US)
    assert len(looks) < 30


def test_runs_of_one_shape_count_for_exact_code() -> None:
    """Exact code for each of many shapes would cost a hundred times what it saves."""
    scene = Scene(Policy(shapes="exact"), compile=10 * MS)
    for size in range(1, 90):
        scene.run(size, 100 * US)
    scene.run(7, 100 * US, 150)
    assert scene.compiler.signatures == ["main(f32[7])"]


def test_the_gpu_profile_waits_longer() -> None:
    for name, threshold in (("cpu", 10), ("gpu", 50)):
        scene = Scene(Policy.profile(name), compile=0.0)
        scene.run(8, 1 * MS, threshold - 1)
        assert not scene.compiler.signatures
        scene.run(8, 1 * MS)
        assert scene.compiler.signatures


def test_a_profile_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="no profile 'tpu'; there are 'cpu', 'gpu'"):
        Policy.profile("tpu")


def test_raised_thresholds_hold_back_and_say_so() -> None:
    scene = Scene(Policy(), compile=0.0)
    scene.experience.thresholds.steps = 1
    scene.run(8, 1 * MS, 40)
    assert not scene.compiler.signatures
    (waiting,) = scene.tiers.postponed.values()
    assert "the threshold is 50 (raised: too much compiling)" in waiting.why
    scene.run(8, 1 * MS, 30)
    assert scene.compiler.signatures


def test_raised_thresholds_do_not_touch_one_that_is_given() -> None:
    scene = Scene(Policy(threshold=2))
    scene.experience.thresholds.steps = 3
    scene.run(8, 1 * MS, 2)
    assert scene.compiler.signatures


# ---- waiting -------------------------------------------------------------------------------------


def test_who_waits_gets_what_was_put_off() -> None:
    scene = Scene(Policy(), compile=1e9)
    scene.run(8, 1 * MS, 10)
    assert not scene.compiler.signatures
    scene.tiers.demand(scene.compiler)
    assert scene.compiler.signatures == ["main(f32[8])"]
    assert not scene.tiers.postponed and scene.profile.hot
    assert scene.tiers.reasons["main(f32[8])"].startswith("somebody waits for it; 10 run(s)")


def test_who_waits_gets_nothing_that_is_below_the_threshold() -> None:
    scene = Scene(Policy(), compile=1e9)
    scene.run(8, 1 * MS, 9)
    scene.tiers.demand(scene.compiler)
    assert not scene.compiler.signatures


def test_general_code_takes_the_place_of_what_was_put_off_before() -> None:
    scene = Scene(Policy(), compile=1e9)
    scene.run(8, 1 * MS, 10)
    scene.run(9, 1 * MS)
    scene.tiers.demand(scene.compiler)
    assert scene.compiler.signatures == ["main(f32[n0])"]


def test_what_is_put_off_is_bounded() -> None:
    scene = Scene(Policy(shapes="exact"), compile=1e9)
    for size in range(1, 90):
        scene.run(size, 1 * MS)
    assert len(scene.tiers.postponed) == MOST_POSTPONED
    for size in range(90, 2 * MAX_SHAPES):
        scene.run(size, 1 * MS)
    assert len(scene.history.seen) == MAX_SHAPES
    assert scene.history.others == MAX_SHAPES - 1


def test_what_cannot_be_made_is_not_asked_for_again() -> None:
    scene = Scene(Policy(shapes="exact"), compile=0.0)
    scene.compiler.failed.add("main(f32[8])")
    scene.run(8, 1 * MS, 100)
    assert not scene.compiler.signatures and not scene.profile.hot


# ---- leaving -------------------------------------------------------------------------------------

GENERAL = "main(f32[n0])"


def slower(policy: Policy | None = None) -> Scene:
    """General code that is slower than the interpreter for size 1."""
    scene = Scene(policy or Policy(), compile=0.0)
    scene.run(1, 60 * US, 6)
    scene.run(64, 900 * US, 6)
    assert scene.compiler.signatures == [GENERAL]
    scene.compiler.there.add(GENERAL)
    assert not scene.compiled(GENERAL, 64, 100 * US, 8)
    assert scene.compiled(GENERAL, 1, 80 * US, 8)
    return scene


def test_code_that_is_slower_for_a_shape_is_left_for_that_shape() -> None:
    scene = slower()
    assert scene.tiers.avoids(GENERAL, ((1,),))
    assert not scene.tiers.avoids(GENERAL, ((64,),))
    assert scene.tiers.has_left(GENERAL)


def test_a_function_whose_code_was_left_is_not_hopeless() -> None:
    """It can be compiled: its parts need no code of their own."""
    scene = slower()
    scene.run(1, 60 * US, 2)
    scene.compiler.there.add("main(f32[1])")
    scene.run(1, 60 * US, 20)
    assert not scene.tiers.is_hopeless


def test_exact_code_is_asked_for_where_general_code_was_left() -> None:
    scene = slower()
    scene.run(1, 60 * US, 2)
    assert scene.compiler.signatures == [GENERAL, "main(f32[1])"]


def test_code_that_was_left_is_tried_again_later_and_later() -> None:
    scene = slower()
    waits: list[float] = []
    for _ in range(4):
        started = scene.now
        while scene.tiers.avoids(GENERAL, ((1,),)):
            scene.now += 0.5
        waits.append(scene.now - started)
        assert scene.compiled(GENERAL, 1, 80 * US, 8)
    assert waits == [1, 2, 4, 8]


def test_code_that_has_become_faster_stays() -> None:
    scene = slower()
    scene.now += 2
    assert not scene.tiers.avoids(GENERAL, ((1,),))
    assert not scene.compiled(GENERAL, 1, 20 * US, 64)
    assert not scene.tiers.left


@pytest.mark.parametrize(
    ("interpreted", "compiled", "microseconds"),
    [(6, 7, 80), (3, 8, 80), (6, 8, 65), (6, 8, 60)],
    ids=["few compiled runs", "few interpreted runs", "within the margin", "as fast"],
)
def test_do_not_leave(interpreted: int, compiled: int, microseconds: float) -> None:
    scene = Scene(Policy(), compile=0.0)
    scene.run(1, 60 * US, interpreted)
    assert not scene.compiled(GENERAL, 1, microseconds * US, compiled)
    assert not scene.tiers.left


def test_one_slow_run_is_no_reason_to_leave() -> None:
    scene = Scene(Policy(), compile=0.0)
    scene.run(1, 60 * US, 6)
    scene.compiled(GENERAL, 1, 1.0, 1)
    assert not scene.compiled(GENERAL, 1, 20 * US, 31)


def test_code_of_shapes_that_were_never_interpreted_is_not_judged() -> None:
    scene = Scene(Policy(), compile=0.0)
    scene.run(1, 60 * US, 6)
    assert not scene.compiled(GENERAL, 2, 1.0, 64)


# ---- in a machine --------------------------------------------------------------------------------

TEXT = "func @main(%0, %1) -> 1 {\n^entry:\n  %2 = multiply %0, %1\n  %3 = add %2, %1\n  return %3\n}\n"


def machine(model: CostModel, policy: Policy | None = None) -> tuple[VM, FakeCompiler]:
    compiler = FakeCompiler(lambda s: [(FLOAT32, [str(x) for x in s.arguments[0].shape])])
    experience = Experience(model)
    return VM(Program.from_text(TEXT), policy, None, fake_service(compiler), experience), compiler


def test_explain_shows_why_nothing_is_compiled_yet() -> None:
    vm, compiler = machine(FixedModel(40 * MS))
    x = np.ones(8, np.float32)
    for _ in range(12):
        vm.run("main", x, x)
    text = explain(vm)
    assert "past the threshold, not worth compiling yet" in text
    assert "not compiled yet: main(f32[8], f32[8]): 10 run(s) of " in text
    assert "compiling takes about 40 ms" in text
    assert "mean time of an interpreted block: entry " in text
    assert not compiler.requests
    vm.wait()
    assert compiler.requests == ["main(f32[8], f32[8])"]
    assert "asked for after somebody waits for it; 10 run(s) of " in explain(vm)


def test_calls_before_code_pays_are_no_misses() -> None:
    vm, _ = machine(FixedModel(1e9))
    x = np.ones(8, np.float32)
    for _ in range(50):
        vm.run("main", x, x)
    assert vm.functions["main"].profile.missed == 0


def test_a_machine_leaves_code_that_is_slower_and_says_so() -> None:
    """The code of the fake compiler interprets, and is slower than the interpreter by what it adds."""
    vm, _ = machine(CostModel(), Policy(threshold=5))
    x = np.ones(8, np.float32)
    for _ in range(40):
        (result,) = vm.run("main", x, x)
        assert (result == 2).all()
        vm.wait()
        if vm.functions["main"].tiers.left:
            break
    code = vm.functions["main"]
    assert code.entries and not code.free
    assert "left: compiled " in explain(vm) and " us for main(f32[8], f32[8])" in explain(vm)
    before = code.profile.counts[0]
    vm.run("main", x, x)
    assert code.profile.counts[0] == before + 1


def formula(x: Any, y: Any) -> Any:
    return x * y + x


def jitted_with_code() -> tuple[Any, Any, np.ndarray]:
    """A jitted function whose calls stubs take, its code, an argument."""
    f, x = jd.jit(formula), np.arange(8, dtype=np.float32)
    for _ in range(12):
        f(x, x)
        f.wait()
    f(x, x)
    (vm,) = f.machines()
    return f, vm.functions["main"], x


def test_stubs_let_a_call_go_through_python_now_and_then() -> None:
    """What is timed is the stub: the way through Python takes twenty times as long and would count for the code."""
    f, code, x = jitted_with_code()
    for _ in range(40_000):
        f(x, x)
    (((_, shapes), times),) = code.tiers.compiled.items()
    assert shapes == (x.shape, x.shape)
    assert 1 <= times.count < 300
    assert times.typical < code.profile.times[0].typical
    assert code.profile.served >= 40_000


def test_stubs_refuse_code_that_is_left_and_take_it_again_later() -> None:
    """The interpreter is said to have taken no time: no code is as fast."""
    f, code, x = jitted_with_code()
    (history,) = code.profile.histories.values()
    times = history.seen[x.shape, x.shape]
    times.recent = deque([1e-9] * len(times.recent), maxlen=times.recent.maxlen)
    interpreted = code.profile.counts[0]
    for _ in range(60):
        for _ in range(20_000):
            f(x, x)
            if code.profile.counts[0] != interpreted:
                break
        else:
            continue
        break
    assert code.tiers.left and not code.free
    assert code.profile.counts[0] == interpreted + 1
    assert "left: compiled " in explain(f)
    assert f(x, x).tobytes() == (x * x + x).tobytes()
    ((key, left),) = code.tiers.left.items()
    left.until = 0.0  # the time has come
    times.recent.extend([1.0] * RECENT)
    served = code.profile.served
    for _ in range(100):
        assert f(x, x).tobytes() == (x * x + x).tobytes()
    assert not code.tiers.left and code.free
    assert code.profile.served >= served + 99
    assert code.tiers.compiled[key].count < 50  # stubs take most of them


def test_block_times_and_the_histogram_of_shapes_are_kept() -> None:
    vm, _ = machine(CostModel(), Policy(threshold=10**9))
    for n in (3, 4, 4):
        x = np.ones(n, np.float32)
        vm.run("main", x, x)
    profile = vm.functions["main"].profile
    (history,) = profile.histories.values()
    assert history.counts() == {((3,), (3,)): 1, ((4,), (4,)): 2}
    assert profile.times[0].count == 3 and profile.times[0].mean > 0
    assert profile.runs == 3 and profile.seconds >= profile.times[0].seconds
    (row,) = vm.block_counts()
    assert row["mean_seconds"] == profile.times[0].mean


def test_times_are_typical_by_their_median() -> None:
    times = Times()
    for seconds in (3.0, 1e-3, 1e-3, 2e-3):
        times.add(seconds)
    assert times.count == 4
    assert times.typical == pytest.approx(1.5e-3)
    assert times.mean == pytest.approx(3.004 / 4)
    assert Times().typical == Times().mean == 0


def test_a_policy_of_ones_own_decides() -> None:
    """Policies are objects that may be replaced."""

    class Never(Policy):
        def decide(self, evidence: Evidence, experience: Experience) -> Decision:
            return Decision(False, f"never, {evidence.runs} run(s) or not")

    scene = Scene(Never(), compile=0.0)
    scene.run(8, 1.0, 30)
    assert not scene.compiler.signatures
    (waiting,) = scene.tiers.postponed.values()
    assert waiting.why.startswith("never, ")
