"""What was compiled and why, what was fused, and why a call found no code: as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from jitdialects.bytecode.signature import Signature
from jitdialects.config import config
from jitdialects.errors import ArgumentError
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.dump import folder_of
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.vm import VM, FunctionCode, machines

STAGES_SHOWN = 4


def explain(target: object = None) -> str:
    """The tiers of a `VM`, of an object with `machines()` (such as a jitted function), or of every
    machine in use."""
    if target is None:
        chosen = machines()
    elif isinstance(target, VM):
        chosen = [target]
    else:
        chosen = _machines_of(target)
    indicators.collect()
    lines = [line for vm in chosen for line in _machine(vm)]
    return "\n".join(lines) or "nothing has run yet"


def _machines_of(target: object) -> list[VM]:
    found = getattr(target, "machines", None)
    if found is None:
        raise ArgumentError(
            f"explain takes a VM, a jitted function or nothing, got {type(target).__name__}"
        )
    return list(found())


def _machine(vm: VM) -> Iterator[str]:
    for name, code in vm.functions.items():
        profile = code.profile
        blocks = zip(code.function.blocks, profile.counts, strict=True)
        counts = ", ".join(f"{block.name} {count}" for block, count in blocks)
        heat = "hot" if vm.policy.is_hot(profile) else "below the threshold"
        yield f"@{name} ({code.fingerprint[:8]}): {heat}; interpreted blocks: {counts}"
        yield f"  calls: {profile.served} compiled, {profile.missed} hot but interpreted"
        yield from _entries(vm, code)
        yield from _last_miss(vm, code)


def _entries(vm: VM, code: FunctionCode) -> Iterator[str]:
    for key in list(code.keys):  # other threads may add to them
        entry = vm.service.cache.find(key)
        if entry is not None:
            yield from _entry(entry)
        elif key in vm.service.failures:
            yield f"  not compiled: {key.signature}: {vm.service.failures[key]}"
        elif vm.service.is_pending(key):
            yield f"  being compiled: {key.signature}"


def _entry(entry: CacheEntry) -> Iterator[str]:
    reply = entry.kernel.reply
    slowest = sorted(reply.milliseconds.items(), key=lambda item: -item[1])[:STAGES_SHOWN]
    stages = ", ".join(f"{name} {time:.1f}" for name, time in slowest)
    yield f"  compiled: {entry.key.signature} for {entry.key.features}, version {entry.version}"
    yield f"    {entry.hits} call(s); {reply.operators_fused} of {reply.operators} operators fused"
    yield f"    {sum(reply.milliseconds.values()):.1f} ms ({stages})"
    if reply.stages and config.dump is not None:
        yield f"    stages in {folder_of(config.dump, entry.key)}"
    for relation, left, right in reply.guards:
        yield f"    guard: {left} {relation} {right}"
    for schedule in reply.schedules:
        yield f"    nest {schedule}"
    for remark in reply.remarks:
        yield f"    remark: {remark}"


def _last_miss(vm: VM, code: FunctionCode) -> Iterator[str]:
    miss = code.profile.last_miss
    if miss is None:
        return
    signature = Signature(code.function.name, miss.types)
    yield f"  last hot call without code: {signature}"
    for line in vm.service.cache.explain(vm.key(code, signature), miss.values).splitlines():
        yield f"    {line}"
