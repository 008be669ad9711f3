"""How the tiers of one function have code made: what stands behind `tiers.Compiler` in a virtual machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from jitdialects.analysis.typical_sizes import typical_text
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature
from jitdialects.config import config
from jitdialects.runtime import dump
from jitdialects.runtime.cache import CacheKey
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.messages import LLVM_IR, CompileRequest
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.policy_trace import Recorder
from jitdialects.runtime.profile import ShapeHistory, Shapes
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.tiers import Standing


class Machine(Protocol):
    """What is asked of the virtual machine."""

    @property
    def policy(self) -> Policy: ...
    @property
    def service(self) -> CompileService: ...
    @property
    def recorder(self) -> Recorder | None: ...
    def key(self, code: FunctionCode, signature: Signature) -> CacheKey:
        """What to ask for."""
        ...

    def recorded_as(self, code: FunctionCode) -> str:
        """The name of a function in a trace."""
        ...


@dataclass(frozen=True)
class Requests:
    """How the tiers of one function have code made."""

    vm: Machine
    code: FunctionCode

    def standing(self, signature: Signature, history: ShapeHistory) -> Standing:
        """What there is for `signature`."""
        code, service = self.code, self.vm.service
        key = self._key(signature, history)
        asked = key in code.keys
        if service.is_pending(key):
            if not asked:  # somebody else did: wait for it, too
                self.submit(signature, history)
            return Standing.PENDING
        entry = service.cache.find(key)
        if entry is not None:
            if asked and entry.version <= code.version:
                return Standing.REFUSES  # it was tried
            code.version = -1
        elif key not in service.failures:
            return Standing.ABSENT
        code.ask(key)
        if entry is not None:
            return Standing.READY
        if self.vm.recorder is not None:
            self.vm.recorder.failed(self.vm.recorded_as(code), key.signature)
        return Standing.FAILED

    def prepare(self) -> None:
        """Code may be asked for soon."""
        self.vm.service.prepare()

    @property
    def start_seconds(self) -> float:
        """What the start of the compiler would take from the calls."""
        return self.vm.service.start_seconds

    def submit(self, signature: Signature, history: ShapeHistory) -> None:
        """Have it compiled, instead of what it makes superfluous."""
        key = self._key(signature, history)
        self.code.ask(key)
        self.compile(key)
        before = history.asked
        if before is not None and before != signature and signature.covers(before):
            self.vm.service.cancel(self.vm.key(self.code, before), owner=self.vm)
        history.asked = signature

    def compile(self, key: CacheKey) -> None:
        """Have `key` compiled."""
        vm, code = self.vm, self.code
        request = partial(_request_bytes, code.program, code.function.name, key)
        saving = partial(vm.policy.saving, code.profile)
        vm.service.submit(
            key, request, code.program.constants, saving, owner=vm, order=code.constant_order
        )

    def _key(self, signature: Signature, history: ShapeHistory) -> CacheKey:
        """The key of `signature`; what is typical is what was when its code was asked for."""
        key = self.vm.key(self.code, signature)
        if signature.is_exact or key.signature in self.code.told:
            return key
        seen = {shapes: times.seconds for shapes, times in list(history.seen.items())}
        return replace(key, typical=typical_text(typical_sizes(signature, seen)))


def typical_sizes(signature: Signature, seconds: Mapping[Shapes, float]) -> dict[str, int]:
    """Per size that `signature` leaves open, the one at or below which half of the time of calls was spent."""
    found: dict[str, dict[int, float]] = {}
    for shapes, spent in seconds.items():
        for name, size in set(_sizes(signature, shapes)):
            at = found.setdefault(name, {})
            at[size] = at.get(size, 0.0) + spent
    return {name: _median(weights) for name, weights in found.items()}


def _sizes(signature: Signature, shapes: Shapes) -> Iterator[tuple[str, int]]:
    for argument, shape in zip(signature.arguments, shapes, strict=True):
        for size, actual in zip(argument.shape, shape, strict=True):
            if not isinstance(size, int):
                yield str(size), actual


def _median(weights: dict[int, float]) -> int:
    """The value up to which half of the weight lies."""
    total, reached = sum(weights.values()), 0.0
    for value in sorted(weights):
        reached += weights[value]
        if 2 * reached >= total:
            return value
    return max(weights)


def _request_bytes(program: Program, function: str, key: CacheKey) -> bytes:
    """The request to compile a function for what `key` says."""
    folder = None if config.dump is None else dump.folder_of(config.dump.absolute(), key)
    request = CompileRequest(
        program.to_bytes(),
        function,
        key.signature,
        key.features,
        key.numerics,
        key.fuse,
        key.schedule,
        key.typical,
        key.balance,
        dump=folder is not None,
        seconds=config.compile_seconds,
        source="" if folder is None else str(folder / LLVM_IR),
    )
    return request.encode()
