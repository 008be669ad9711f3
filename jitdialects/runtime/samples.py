"""Calls of compiled code that are seen in Python, one of many: what they say about other code for them.

They find shapes that have most of the calls of general code (`hot_shapes`) and code whose fusion should be measured
(`alternatives`), have the other code made, and run it beside the present one on their own arguments (`trial`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jitdialects.runtime import hot_shapes
from jitdialects.runtime.alternatives import (
    PATIENCE,
    Alternative,
    Stage,
    other_key,
)
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.callables import let_through
from jitdialects.runtime.dispatch import class_of
from jitdialects.runtime.function_code import FunctionCode, argument_shapes
from jitdialects.runtime.hot_shapes import Special
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.requests import Machine as Asking
from jitdialects.runtime.requests import Requests, typical_sizes
from jitdialects.runtime.tiers import exact
from jitdialects.runtime.trial import race


class Machine(Asking, Protocol):
    """What is asked of the virtual machine."""

    @property
    def pool(self) -> MemoryPool: ...


@dataclass(frozen=True)
class Samples:
    """What is done with a sample of the calls of one function."""

    vm: Machine
    code: FunctionCode

    def take(self, entry: CacheEntry, arguments: Sequence[object]) -> None:
        """Take note of a call that `entry` has served."""
        if self.vm.policy.shape_policy.respecialises:
            self._look_at_shape(arguments)
        if entry in self.code.entries:
            self._look_at_fusion(entry, arguments)

    # ---- hot shapes

    def _look_at_shape(self, arguments: Sequence[object]) -> None:
        code = self.code
        history = code.profile.histories.get(class_of(arguments))
        if history is None:
            return
        shapes = argument_shapes(arguments)
        signature = exact(code.function.name, history, shapes)
        text = str(signature)
        entry = next((e for e in code.found if e.key.signature == text), None)
        if entry is not None and entry in code.entries:
            return  # a call of code for its shape
        special = code.hot.special.get(text)
        if special is not None and entry is not None and special.stage in _UNTRIED:
            self._try_special(special, entry, arguments)
            return
        hot = code.hot.sample((id(history), shapes), signature)
        if hot is not None:
            code.tiers.specialise(signature, history, hot, Requests(self.vm, code))

    def _try_special(
        self, special: Special, entry: CacheEntry, arguments: Sequence[object]
    ) -> None:
        """Run the code for a hot shape and general code on the same arguments."""
        code, stages = self.code, hot_shapes.Stage
        special.stage = stages.TRIAL
        try:
            race(special, entry, code.entries, arguments, self.vm.pool, self.vm.service.cache)
        except Exception:  # noqa: BLE001 (the call itself has its results)
            special.stage = stages.FAILED
            return
        if special.is_over and special.stage is stages.TRIAL:
            code.hot.judge(special, entry, code.entries)
            code.order()

    # ---- fusion

    def _look_at_fusion(self, entry: CacheEntry, arguments: Sequence[object]) -> None:
        known = self.code.alternatives.of(entry)
        if known is None:
            self._consider(entry)
        elif known.is_open and not known.is_running:
            known.is_running = True
            try:
                self._try_alternative(known, entry, arguments)
            finally:
                known.is_running = False

    def _consider(self, entry: CacheEntry) -> None:
        """Ask for the alternative to an entry, if there is one and it may pay."""
        vm, code, kernel = self.vm, self.code, entry.kernel
        if kernel is None or not (kernel.reply.alternative or kernel.reply.weighed):
            return
        if vm.recorder is not None or not code.alternatives.is_time(entry):
            return
        spent = code.profile.compiled_seconds * entry.hits / max(code.profile.counted, 1)
        if not vm.policy.tries_alternative(spent, _total_seconds(), kernel.reply.seconds):
            return
        seconds = {
            shapes: times.seconds
            for (signature, shapes), times in list(code.tiers.compiled.items())
            if signature == entry.key.signature
        }
        key = other_key(entry, typical_sizes(kernel.signature, seconds))
        if key is None or not seconds:
            return
        alternative = Alternative(entry.key, key, max(seconds, key=seconds.__getitem__))
        code.alternatives.add(alternative)
        if vm.service.cache.find(key) is entry:
            alternative.stage = Stage.ELSEWHERE
        else:
            Requests(vm, code).compile(key)

    def _try_alternative(
        self, known: Alternative, entry: CacheEntry, arguments: Sequence[object]
    ) -> None:
        """Run an entry and its alternative on the same arguments; the verdict, if there is one."""
        vm, cache = self.vm, self.vm.service.cache
        other = cache.find(known.other)
        if other is None:
            if not vm.service.is_pending(known.other):
                known.stage = Stage.FAILED
            return
        if other is entry:
            known.stage = Stage.ELSEWHERE
            return
        known.stage = Stage.TRIAL
        if argument_shapes(arguments) != known.shapes:
            known.missed += 1
            if known.missed < PATIENCE:
                return
            known.stage = Stage.FAILED
        else:
            try:
                race(known, other, [entry], arguments, vm.pool, cache)
            except Exception:  # noqa: BLE001 (the call itself has its results)
                known.stage = Stage.FAILED
        if known.stage is Stage.FAILED:
            cache.drop(other)
        elif known.is_over:
            known.stage = Stage.KEPT if known.is_faster else Stage.SLOWER
            kept, left = (other, entry) if known.is_faster else (entry, other)
            if not cache.settle(kept, left, known.measured):
                known.stage = Stage.ELSEWHERE
        else:
            let_through(entry)  # what is measured soon is measured under the same conditions


_UNTRIED = (hot_shapes.Stage.ASKED, hot_shapes.Stage.TRIAL)


def _total_seconds() -> float:
    """What this process has spent in all calls."""
    return indicators.since_start().run_seconds
