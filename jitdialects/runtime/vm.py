"""The virtual machine: runs any verified program on any input at once.

A function is interpreted (`interpreter`) until its tiers (`tiers`) have it handed to the compile service; calls that
its code fits are served by that from then on. Whatever is raised, machine and pool stay usable.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature
from jitdialects.bytecode.verifier import verify
from jitdialects.config import config, machine_made
from jitdialects.errors import ArgumentError, Error
from jitdialects.runtime import float_environment, policy_trace
from jitdialects.runtime.cache import CacheEntry, CacheKey
from jitdialects.runtime.callables import settle, stub_of
from jitdialects.runtime.dispatch import Kernel, class_of, type_of
from jitdialects.runtime.function_code import (
    FunctionCode,
    argument_shapes,
    has_products,
)
from jitdialects.runtime.identity import (
    compiler_version,
    feature_level,
)
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.interpreter import Activation, ProfiledActivation
from jitdialects.runtime.messages import CompileReply
from jitdialects.runtime.policy import LOOP_SECONDS, Experience, Policy, default_experience
from jitdialects.runtime.pool import MemoryPool, default_pool
from jitdialects.runtime.profile import MAX_SHAPES, Miss, ShapeHistory, Shapes
from jitdialects.runtime.profiler import profiler
from jitdialects.runtime.requests import Requests
from jitdialects.runtime.samples import Samples
from jitdialects.runtime.service import CompileService, default_service
from jitdialects.runtime.tiers import TIMED_EVERY, TIMED_FIRST, exact
from jitdialects.runtime.units import Unit
from jitdialects.runtime.values import (
    Array,
    Value,
    export,
    from_argument,
    from_constant,
    shape_of,
)
from jitdialects.runtime.weak import listed

CALL_DEPTH = 100
"""Bytecode calls that may be active at once."""


class VM:
    """A virtual machine for one program, with its own profile. Threads may share it.

    `policy` decides when and for which shapes functions are compiled, `pool` gives memory, `service`
    compiles, `experience` is what predictions learn from; each is the process's own unless given.
    """

    def __init__(
        self,
        program: Program,
        policy: Policy | None = None,
        pool: MemoryPool | None = None,
        service: CompileService | None = None,
        experience: Experience | None = None,
    ) -> None:
        if not isinstance(cast(object, program), Program):
            raise ArgumentError(
                f"VM takes a Program, got {type(program).__name__}; Program.from_text, from_bytes and "
                "load give one"
            )
        verify(program)
        machine_made()
        self.program = program
        self.policy = Policy() if policy is None else policy
        self.pool = default_pool if pool is None else pool
        self.service = default_service if service is None else service
        self.experience = default_experience if experience is None else experience
        products = has_products(program)
        self.functions = {
            f.name: FunctionCode(program, f, self.policy, self.experience, products)
            for f in program.functions
        }
        self.name = ""
        """What people call the program: for `explain` and the views."""
        self.argument_names: Sequence[str] = ()
        """What they call the arguments of the first function."""
        self.recorder = policy_trace.recorder()
        """Who writes down all calls, for the simulator of policies."""
        self._constants = tuple(map(from_constant, program.constants))
        _machines.add(self)

    def run(self, name: str, *arguments: object) -> tuple[Array, ...]:
        """Call function `name`; the results are arrays that belong to the caller.

        Arguments are NumPy arrays (never written, never aliased by results), NumPy scalars or Python
        scalars. Weak results are rank-0 arrays of bool, int64 or float64, as NumPy would make them.
        """
        code = self.functions.get(name)
        if code is not None:
            results = code.stubs(*arguments)
            if results is not None:
                return results
        if code is None:
            names = ", ".join(f"@{n}" for n in self.functions) or "none"
            raise ArgumentError(f"the program has no function @{name} (it has: {names})")
        if len(arguments) != code.function.parameters:
            raise ArgumentError(
                f"@{name} takes {code.function.parameters} argument(s), got {len(arguments)}"
            )
        started = time.monotonic()
        recording = time.perf_counter() if profiler.is_on else None
        served = None
        callers = float_environment.enter()
        try:
            if code.tiers.constraints is not None:
                given = [from_argument(a, p, f"@{name}") for p, a in enumerate(arguments)]
                code.tiers.constraints.check(given)
            served = self._run_compiled(code, arguments)
            self._offer(code)
            if served is not None:
                return served[1]
            values = [from_argument(a, p, f"@{name}") for p, a in enumerate(arguments)]
            with np.errstate(all="ignore"):
                return export(self._call(code, values, 0), self.pool)
        except Error as error:
            # the frames of the interpreter would keep the arrays of this run alive
            raise error.with_traceback(None) from None
        finally:
            if callers is not None:
                float_environment.leave(callers)
            self.pool.safe_point()
            ended = time.monotonic()
            indicators.add_run(ended, ended - started)
            if recording is not None:
                title = self.name or code.function.name
                profiler.call(title, arguments, served is not None, recording, self.pool)

    def let_through(self, name: str) -> None:
        """Have the next call of function `name` seen here, and timed."""
        code = self.functions[name]
        code.has_callers = True
        for stub in code.stubs_served:
            stub.let_through()

    def call(self, name: str, values: Sequence[Value], depth: int) -> Sequence[Value]:
        """A call from bytecode, `depth` calls below `run`."""
        if depth > CALL_DEPTH:
            raise Error(
                f"@{name}: calls nest deeper than {CALL_DEPTH}; "
                "let the recursion end earlier or write it as a loop"
            )
        return self._call(self.functions[name], values, depth)

    def constant(self, number: int) -> Value:
        """Entry `number` of the constant pool."""
        return self._constants[number]

    def wait(self) -> None:
        """Have compiled now what was used often enough, whether that pays or not; return when nothing of this
        machine's functions waits for the compiler."""
        self.compile_postponed()
        own = {code.fingerprint for code in self._codes()}
        self.service.wait(lambda key: key.fingerprint in own)

    def compile_postponed(self) -> None:
        """Ask for what the policy put off because it did not pay yet."""
        for code in self._codes():
            code.tiers.demand(Requests(self, code))

    def _codes(self) -> list[FunctionCode]:
        """Functions, and those parts that are compiled by themselves."""
        return [c for code in self.functions.values() for c in (code, *code.parts)]

    def block_counts(self) -> list[dict[str, object]]:
        """Interpreted executions of every block; on entry blocks, `served`: compiled calls."""
        indicators.collect()
        rows: list[dict[str, object]] = []
        for name, code in self.functions.items():
            for block, count in zip(code.function.blocks, code.profile.counts, strict=True):
                rows.append({"function": name, "block": block.name, "executions": count})
            for row, times in zip(
                rows[-len(code.function.blocks) :], code.profile.times, strict=True
            ):
                row["mean_seconds"] = times.mean
            rows[-len(code.function.blocks)]["served"] = code.profile.counted
        return rows

    # ---- tiers ---------------------------------------------------------------------------------

    def _run_compiled(
        self, code: FunctionCode, arguments: Sequence[object]
    ) -> tuple[CompileReply, tuple[Array, ...]] | None:
        """The facts of the code that fits the call, and its results; None if there is none."""
        if code.version != self.service.cache.version:
            self._refresh(code)
        served = self._invoke(code, arguments)
        if served is None and code.entries and self.policy.shape_policy.pads:
            return self._run_padded(code, arguments)
        return served

    def _invoke(
        self, code: FunctionCode, arguments: Sequence[object]
    ) -> tuple[CompileReply, tuple[Array, ...]] | None:
        if code.stubs_served and self.recorder is None:
            served = self._run_timed(code, arguments)
            if served is not None:
                return served
        for entry in code.entries:
            if code.tiers.left and code.avoids(entry, argument_shapes(arguments)):
                continue
            kernel = entry.kernel  # which keeps the code loaded while it runs
            stands_for = 1 if self.recorder is not None else _stands_for(entry, kernel)
            started = time.perf_counter() if stands_for else 0.0
            results = None if kernel is None else kernel.invoke(arguments, self.pool)
            if kernel is not None and results is not None:
                if stands_for:
                    seconds = time.perf_counter() - started
                    code.profile.compiled_seconds += seconds * stands_for
                    if not kernel.stub or self.recorder is not None:
                        code.measured(entry, arguments, seconds)
                    Samples(self, code).take(entry, arguments)
                    if self.recorder is not None:
                        self._record(
                            code, arguments, started, seconds, served_by=entry.key.signature
                        )
                reply, now = kernel.reply, indicators.now
                entry.hits += 1
                code.profile.counted += 1
                now.hits += 1
                now.operators += reply.operators
                now.operators_fused += reply.operators_fused
                return reply, results
        return None

    def _run_timed(
        self, code: FunctionCode, arguments: Sequence[object]
    ) -> tuple[CompileReply, tuple[Array, ...]] | None:
        """A call that a stub let through to be timed, by the stub: the way through Python would count for the code."""
        stubs = list(code.stubs_served)
        before = [stub.calls for stub in stubs]
        started = time.perf_counter()
        results = code.stubs(*arguments)
        seconds = time.perf_counter() - started
        if results is None:
            return None
        stub = next((s for s, n in zip(stubs, before, strict=True) if s.calls != n), stubs[0])
        code.measured(stub.entry, arguments, seconds)
        Samples(self, code).take(stub.entry, arguments)
        return stub.reply, results

    def _offer(self, code: FunctionCode) -> None:
        """Let stubs take the calls of `run` that this function's code fits, once it was timed often enough."""
        if self.recorder is not None:
            return  # every call is to be seen here
        settle()
        for stub in code.stubs_served:
            stub.set_period()
        ready = [
            e
            for e in code.free
            if code.has_callers or e.hits >= TIMED_FIRST or code.hot.is_special(e)
        ]
        if ready != code.offered:
            present = {stub.entry: stub for stub in code.stubs_served}
            count = code.profile.count_served
            made = [stub_of(e, count, True, self.pool, present.get(e)) for e in ready]
            stubs = [stub for stub in made if stub is not None]
            code.offered, code.stubs_served = ready, stubs
            code.stubs.serve({(): stubs}, (), self.service.cache)

    def _run_padded(
        self, code: FunctionCode, arguments: Sequence[object]
    ) -> tuple[CompileReply, tuple[Array, ...]] | None:
        """The same in code for larger sizes."""
        history = code.profile.histories.get(class_of(arguments))
        if history is None:
            return None
        shapes, state = argument_shapes(arguments), history.policy
        call = state.padded_call(
            shapes, len(history.seen), lambda: code.tiers.padded(history, shapes)
        )
        if call is None:
            return None
        try:
            served = self._invoke(code, call.bind(arguments, self.pool))
            results = served and call.crop(served[1], self.pool)
        except MemoryError:
            return None  # without further rows there may be enough
        if not served or not results:
            return None
        state.rows += call.rows
        state.wasted_rows += call.wasted
        return served[0], results

    def _call(self, code: FunctionCode, values: Sequence[Value], depth: int) -> Sequence[Value]:
        kind = ProfiledActivation if profiler.is_on else Activation
        results = self._run(code, values, lambda: kind(self, code, depth).run(values))
        if code.tiers.is_hopeless and self.recorder is None:
            code.cut()
        return results

    def _run(
        self, code: FunctionCode, values: Sequence[Value], interpret: Callable[[], Sequence[Value]]
    ) -> Sequence[Value]:
        """A function or a part of one, on the tier where it stands."""
        served = self._run_compiled(code, values)
        if served is not None:
            return _as_values(*served)
        history, shapes = code.history(values), tuple(map(shape_of, values))
        if self._recall(code, history, shapes):
            return self._run(code, values, interpret)
        was_hot = code.profile.hot
        if was_hot:
            self._miss(code, values)
            if code.tiers.is_time(history, shapes):
                code.tiers.ask(history, shapes, Requests(self, code))
        before = None if self.recorder is None else list(code.profile.counts)
        started = time.perf_counter()
        results = interpret()
        seconds = time.perf_counter() - started
        history.add(shapes, seconds)
        if before is not None:
            self._record(code, values, started, seconds, before)
        if not was_hot and code.tiers.is_time(history, shapes):
            code.tiers.ask(history, shapes, Requests(self, code))
        return results

    def _miss(self, code: FunctionCode, values: Sequence[Value]) -> None:
        history = code.history(values)
        history.add_miss(tuple(map(shape_of, values)))
        code.profile.missed += 1
        code.profile.last_miss = Miss.of(history.types, values)
        indicators.now.misses += 1
        self.service.cache.misses += 1

    # ---- parts of functions ---------------------------------------------------------------------

    @property
    def loop_seconds(self) -> float:
        """How long an activation runs before its loops are compiled. A recorder sees whole calls only."""
        given = self.policy.loop_seconds
        if self.recorder is not None:
            return math.inf
        return LOOP_SECONDS + self.service.start_seconds if given is None else given

    def enter_loop(self, unit: Unit, values: Sequence[Value], ask: bool) -> Sequence[Value] | None:
        """The results of a loop if there is code for it; else that is asked for if `ask` says so."""
        code = unit.code
        if code.entries or code.version != self.service.cache.version:
            served = self._run_compiled(code, values)
            if served is not None:
                return _as_values(*served)
        if ask:
            code.profile.counts[0] += 1
            history, shapes = code.history(values), tuple(map(shape_of, values))
            history.note(shapes)
            if code.profile.hot:
                self._miss(code, values)
            code.tiers.ask(history, shapes, Requests(self, code))
        return None

    def run_stretch(
        self, unit: Unit, values: Sequence[Value], interpret: Callable[[], Sequence[Value]]
    ) -> Sequence[Value]:
        """The results of a stretch of a block, by its code or by `interpret`."""

        def counted() -> Sequence[Value]:
            unit.code.profile.counts[0] += 1
            return interpret()

        return self._run(unit.code, values, counted)

    def _refresh(self, code: FunctionCode) -> None:
        for entry in code.refresh(self.service.cache):
            kernel = entry.kernel
            if kernel is None:
                continue  # evicted already
            reply, seconds = kernel.reply, kernel.reply.seconds
            code.tiers.arrived(kernel.signature, seconds)
            if self.recorder is not None:
                self.recorder.compile(
                    self.recorded_as(code),
                    entry.key.signature,
                    seconds,
                    reply.operators,
                    reply.operators_fused,
                )

    def recorded_as(self, code: FunctionCode) -> str:
        """The name of a function in the trace of the recorder."""
        assert self.recorder is not None
        name, tiers = f"{code.function.name}@{code.fingerprint[:8]}", code.tiers
        return self.recorder.name(code, name, tiers.function, tiers.works, tiers.products)

    def _record(
        self,
        code: FunctionCode,
        arguments: Sequence[object],
        started: float,
        seconds: float,
        before: Sequence[int] = (),
        served_by: str | None = None,
    ) -> None:
        """Write down a call that was served by the code for a signature, or else interpreted."""
        assert self.recorder is not None
        types = tuple(map(type_of, cast(Sequence[Value], arguments)))
        counts = [now - then for now, then in zip(code.profile.counts, before, strict=False)]
        signature = Signature(code.function.name, types)
        self.recorder.call(self.recorded_as(code), signature, started, seconds, counts, served_by)

    def _recall(self, code: FunctionCode, history: ShapeHistory, shapes: Shapes) -> bool:
        """Whether there is code on disk for calls like this one; looks when shapes are met first, and
        again when code was evicted. In storage that machines share the service looks, later."""
        cache = self.service.cache
        at, now = (id(history), shapes), cache.evictions
        is_alone = cache.disk is None and cache.shared is None or not self.policy.takes_found_code
        if is_alone or code.looked.get(at) == now or len(code.looked) >= MAX_SHAPES:
            return False
        code.looked[at] = now
        key = self.key(code, exact(code.function.name, history, shapes))
        general, constants = self.policy.is_general, code.program.constants
        found = cache.recall(key, constants, code.constant_order, general=general)
        if found:
            history.note(shapes)
            code.learn(found)
        elif cache.shared is not None and cache.shared.is_on:

            def look_up() -> None:
                order = code.constant_order
                code.learn(cache.fetch_shared(key, constants, order, general=general))

            self.service.look_up(key, look_up, self)
        return bool(found)

    def key(self, code: FunctionCode, signature: Signature) -> CacheKey:
        """The key of `signature` as this machine would have it compiled now."""
        typical, balance = code.told.get(str(signature), ("", 1.0))
        return CacheKey(
            code.fingerprint,
            str(signature),
            feature_level(),
            compiler_version(),
            config.numerics,
            self.policy.fuse,
            self.policy.schedule,
            typical,
            balance,
        )


def _as_values(reply: CompileReply, results: Sequence[Array]) -> Sequence[Value]:
    """What compiled code returned, as the interpreter would have computed it."""
    pairs = zip(reply.results, results, strict=True)
    return [array.item() if fact.dtype.weak else array for fact, array in pairs]


def _stands_for(entry: CacheEntry, kernel: Kernel | None) -> int:
    """How many calls a call in Python stands for if it is timed; 0: it is not. At first all are, then some. Where
    there is a stub, few come here, and those to be timed."""
    hits = entry.hits
    if hits < TIMED_FIRST or (kernel is not None and kernel.stub):
        return 1
    return 0 if hits & TIMED_EVERY - 1 else TIMED_EVERY


_machines: weakref.WeakSet[VM] = weakref.WeakSet()


def machines() -> list[VM]:
    """Every machine that is in use."""
    return listed(lambda: _machines)
