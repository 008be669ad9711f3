"""A function as a machine has it: its instructions ready to run, what is known of it, and its compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import cast

import numpy as np

from jitdialects.analysis.padding import padding_of
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.outline import Loop, Part
from jitdialects.bytecode.program import Function, Program
from jitdialects.bytecode.signature import parse
from jitdialects.runtime.alternatives import Alternatives
from jitdialects.runtime.cache import CacheEntry, CacheKey, KernelCache
from jitdialects.runtime.callables import Stub, StubCallable
from jitdialects.runtime.cost_model import work_of
from jitdialects.runtime.dispatch import class_of, type_of
from jitdialects.runtime.hot_shapes import HotShapes
from jitdialects.runtime.identity import constant_order, fingerprint
from jitdialects.runtime.once import once
from jitdialects.runtime.policy import Experience, Policy
from jitdialects.runtime.profile import Profile, ShapeHistory, Shapes
from jitdialects.runtime.tier0 import Site
from jitdialects.runtime.tiers import Tiers
from jitdialects.runtime.units import Step, Stretch, Units
from jitdialects.runtime.values import Array, Value


def has_products(program: Program) -> bool:
    """Whether a matrix product is in the program."""
    blocks = (block for function in program.functions for block in function.blocks)
    return any(i.opcode == "matmul" for block in blocks for i in block.instructions)


def argument_shapes(arguments: Sequence[object]) -> Shapes:
    """Of the arguments of a call, whatever they are."""
    return tuple([cast(Array, a).shape if isinstance(a, np.ndarray) else () for a in arguments])


@lru_cache(4096)
def _is_exact(signature: str) -> bool:
    return parse(signature).is_exact


class Entrance(StubCallable):
    """Gives the results of a call that a stub takes, and None for any other."""

    def __call__(self, *arguments: object) -> tuple[Array, ...] | None:
        return None


class FunctionCode:
    """A function ready to run: its operator instructions as sites, its profile and tiers, its compiled code."""

    def __init__(
        self,
        program: Program,
        function: Function,
        policy: Policy,
        experience: Experience,
        products: bool,
    ) -> None:
        self.function = function
        self.program = program
        self.profile = Profile([0] * len(function.blocks))
        works = [work_of(program, [block]) for block in function.blocks]
        self.tiers = Tiers(
            function.name,
            self.profile,
            works,
            products,
            policy,
            experience,
            partial(padding_of, program),
        )
        self.units = Units(program, function, partial(_code_of_part, policy, experience))
        self._is_cut = False
        self.blocks: list[list[Step]] = [
            [Site(i) if i.opcode in OPERATORS else i for i in block.instructions]
            for block in function.blocks
        ]
        self.keys: dict[CacheKey, None] = {}
        """What was asked for, in this order."""
        self.told: dict[str, tuple[str, float]] = {}
        """By signature, what judges of fusion were told for the code of that: `typical` and `balance` of its key."""
        self.found: list[CacheEntry] = []
        """What of that is compiled."""
        self.superseded: dict[CacheKey, tuple[int, int]] = {}
        """Code that newer code covers: the version of that, and its own calls until then."""
        self.hot = HotShapes()
        self.alternatives = Alternatives()
        self.entries: list[CacheEntry] = []
        """What of that calls may enter, in this order."""
        self.free: list[CacheEntry] = []
        """Those of them that are left for no shapes: calls may enter them without asking here."""
        self.version = -1
        self.stubs = Entrance()
        """Calls of `run` that compiled code takes."""
        self.has_callers = False
        """Whether others have stubs of its code, whose samples come here to be timed."""
        self.offered: list[CacheEntry] = []
        self.stubs_served: list[Stub] = []
        self.looked: dict[tuple[int, Shapes], int] = {}
        """Shapes of calls for which the disk was asked, and what had been evicted by then."""

    @once
    def fingerprint(self) -> str:
        """Of this function and of what it calls."""
        return fingerprint(self.program, self.function.name)

    @property
    def parts(self) -> list[FunctionCode]:
        """Its units, as functions."""
        return [unit.code for unit in (*self.units.loops, *self.units.stretches)]

    def cut(self) -> None:
        """Make stretches of the blocks units of their own, once."""
        if not self._is_cut:
            self._is_cut = True
            self.blocks = [self.units.cut(n, steps) for n, steps in enumerate(self.blocks)]

    def replace(self, stretch: Stretch) -> None:
        """Halve a stretch, unless another thread did."""
        steps = self.blocks[stretch.block]
        for at, step in enumerate(steps):
            if step is stretch:
                halves = self.units.halve(stretch)
                self.blocks[stretch.block] = [*steps[:at], *halves, *steps[at + 1 :]]
                return

    @once
    def constant_order(self) -> tuple[int, ...]:
        """The numbers of its constants, as files with its code count them."""
        return constant_order(self.program, self.function.name)

    def ask(self, key: CacheKey) -> None:
        """Code for this key is there, or will be."""
        self.keys[key] = None
        self.told.setdefault(key.signature, (key.typical, key.balance))

    def learn(self, keys: Sequence[CacheKey]) -> None:
        """There is code for these keys."""
        for key in keys:
            self.ask(key)
        if keys:
            self.version = -1

    def refresh(self, cache: KernelCache) -> list[CacheEntry]:
        """Look up what was asked for in a cache that has changed; the entries that are new."""
        self.version = cache.version
        before, self.found = self.found, cache.find_all(list(self.keys))
        self.order()
        new = [entry for entry in self.found if entry not in before]
        for entry in new:
            self._supersede(entry)
        return new

    def _supersede(self, new: CacheEntry) -> None:
        """Take note of the code that nobody would need any more."""
        for entry in self.found:
            old, kernel = entry.kernel, new.kernel
            if old is None or kernel is None or entry is new or entry.version > new.version:
                continue
            if kernel.signature.covers(old.signature):
                self.superseded[entry.key] = new.version, entry.hits

    def order(self) -> None:
        """Put those entries first that are for hot shapes, and leave out those that are to be tried."""
        exact_first = sorted(self.found, key=lambda entry: not _is_exact(entry.key.signature))
        self.entries = self.hot.ordered(exact_first)
        self._set_free()

    def _set_free(self) -> None:
        exact = {entry.key.signature for entry in self.entries}
        self.free = [e for e in self.entries if not self.tiers.has_left(e.key.signature, exact)]

    def avoids(self, entry: CacheEntry, shapes: Shapes) -> bool:
        """Whether the code of an entry is left for calls of these shapes."""
        left = len(self.tiers.left)
        avoids = self.tiers.avoids(entry.key.signature, shapes)
        if len(self.tiers.left) != left:
            self._set_free()
        return avoids

    def measured(self, entry: CacheEntry, arguments: Sequence[object], seconds: float) -> None:
        """A run of compiled code took so long."""
        history = self.profile.histories.get(class_of(arguments))
        shapes = argument_shapes(arguments)
        if self.tiers.measured(entry.key.signature, history, shapes, seconds):
            self._set_free()

    def history(self, values: Sequence[Value]) -> ShapeHistory:
        """The calls so far of the class of `values`."""
        histories = self.profile.histories
        key = class_of(values)
        found = histories.get(key)
        if found is None:
            found = histories[key] = ShapeHistory(tuple(map(type_of, values)))
        return found


def _code_of_part(policy: Policy, experience: Experience, part: Part) -> FunctionCode:
    """A unit as a function. A loop has run for long when it is asked for: no second question."""
    if isinstance(part, Loop):
        policy = replace(policy, threshold=1)
    products = has_products(part.program)
    return FunctionCode(part.program, part.function, policy, experience, products)
