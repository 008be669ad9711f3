"""What was compiled and why, what was fused, and why a call found no code: as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.config import config
from jitdialects.errors import ArgumentError
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.dispatch import differences
from jitdialects.runtime.dump import folder_of
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.shape_report import forgotten, only_shape, staleness, strategy
from jitdialects.runtime.tiers import exact
from jitdialects.runtime.vm import VM, machines

STAGES_SHOWN = 4
_SOURCES = {"compiler": "the compiler", "disk": "disk", "shared": "shared storage"}
MISSES_SHOWN = 5
REASONS, ENTRIES_COMPARED = 32, 64
"""Of a function: signatures whose misses are explained, and entries that each is compared with; the work is their
product."""
NOT_MERGED = "is not merged with"
"""In what `tssa-fuse` says about a fusion that one of its judges refused."""


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
    lines = [f"alarm: {alarm.text}; {alarm.advice}" for alarm in indicators.check()]
    lines += [line for vm in chosen for line in _machine(vm)]
    return "\n".join(lines) or "nothing has run yet"


def _machines_of(target: object) -> list[VM]:
    found = getattr(target, "machines", None)
    if found is None:
        raise ArgumentError(
            f"explain takes a VM, a jitted function or nothing, got {type(target).__name__}"
        )
    return list(found())


def _machine(vm: VM) -> Iterator[str]:
    """Short lines first: what was compiled, what was not and why; then the details of each entry."""
    for name, code in vm.functions.items():
        profile = code.profile
        blocks = zip(code.function.blocks, profile.counts, strict=True)
        counts = ", ".join(f"{block.name} {count}" for block, count in blocks)
        known = f"{title(vm, name)}: " if vm.name else ""
        yield f"{known}@{name} ({code.fingerprint[:8]}): {_heat(vm, code)}; interpreted blocks: {counts}"
        yield f"  calls: {profile.served} compiled, {profile.missed} hot but interpreted"
        yield from _entries(vm, code)
        yield from _tiers(code)
        yield from _shapes(code)
        yield from _misses(vm, code)
        for part in code.parts:
            served = part.profile.served
            yield f"  compiled by itself: @{part.function.name}, entered {served} time(s)"
            yield from (f"  {line}" for line in (*_entries(vm, part), *_tiers(part)))
        for entry in (e for each in (code, *code.parts) for e in _compiled(vm, each)):
            yield from _details(entry)
    if vm.policy.threshold is None and config.threshold is None:
        experience = vm.experience
        yield f"expectations: {experience.model}; thresholds x {experience.thresholds.factor}"


def _compiled(vm: VM, code: FunctionCode) -> list[CacheEntry]:
    return vm.service.cache.find_all(list(code.keys))  # other threads may add to them


def _heat(vm: VM, code: FunctionCode) -> str:
    if code.profile.hot:
        return "hot"
    enough = code.profile.hottest >= vm.policy.least_executions
    return "past the threshold, not worth compiling yet" if enough else "below the threshold"


def _tiers(code: FunctionCode) -> Iterator[str]:
    """What was put off or left, with the numbers."""
    for waiting in list(code.tiers.postponed.values()):
        yield f"  not compiled yet: {waiting.signature}: {waiting.why}"
    for (signature, shapes), left in list(code.tiers.left.items()):
        call = exact(code.function.name, left.history, shapes)
        yield (
            f"  left: compiled {left.compiled * 1e6:.0f} us, interpreted {left.interpreted * 1e6:.0f} us for "
            f"{call}: {signature} is tried again after {left.backoff:.3g} s"
        )
    times = zip(code.function.blocks, code.profile.times, strict=True)
    means = ", ".join(f"{b.name} {t.mean * 1e6:.1f} us" for b, t in times if t.count)
    if means:
        yield f"  mean time of an interpreted block: {means}"


def _entries(vm: VM, code: FunctionCode) -> Iterator[str]:
    for entry in _compiled(vm, code):
        kernel, key = entry.kernel, entry.key
        if kernel is None:
            continue  # evicted meanwhile
        reply = kernel.reply
        yield (
            f"  compiled: {key.signature} for {key.features}, version {entry.version}, "
            f"from {_SOURCES[entry.source]}"
        )
        yield (
            f"    {strategy(code, entry)}; {entry.hits} call(s); {reply.operators_fused} of {reply.operators} operators fused; "
            f"{sum(reply.milliseconds.values()):.1f} ms"
        )
        if key.typical:
            yield f"    for judges of fusion {key.typical}"
        why = code.tiers.reasons.get(key.signature)
        if why is not None:
            yield f"    asked for after {why}"
        special = code.hot.special.get(key.signature)
        if special is not None:
            yield f"    {special}"
        if reply.measured:
            yield f"    fusion, in an earlier process: {reply.measured}"
        stale = staleness(code, entry)
        if stale and special is None:
            yield f"    stale: {stale}"
        names = {
            str(s) for a in kernel.signature.arguments for s in a.shape if not isinstance(s, int)
        }
        only = only_shape(reply, names)
        if only is not None:
            sizes = ", ".join(f"{name} = {size}" for name, size in only.items())
            yield f"    general code that its guards leave one shape: {sizes}"
    for alternative in list(code.alternatives.tried.values()):
        why = vm.service.failures.get(alternative.other)
        yield f"  fusion of {alternative.first.signature}: {alternative}{why and f': {why}' or ''}"
    for signature in forgotten(vm, code):
        yield f"  stale: {signature}: not in the cache any more"
    for key in list(code.keys):
        if key in vm.service.failures:
            yield f"  not compiled: {key.signature}: {vm.service.failures[key]}"
        elif vm.service.is_pending(key):
            yield f"  being compiled: {key.signature}"


def _details(entry: CacheEntry) -> Iterator[str]:
    if entry.kernel is None:
        return
    reply = entry.kernel.reply
    yield f"  details of {entry.key.signature}"
    if reply.stages and config.dump is not None:
        yield f"    stages in {folder_of(config.dump, entry.key)}"
    slowest = sorted(reply.milliseconds.items(), key=lambda item: -item[1])[:STAGES_SHOWN]
    yield f"    milliseconds: {', '.join(f'{name} {time:.1f}' for name, time in slowest)}"
    for relation, left, right in reply.guards:
        yield f"    guard: {left} {relation} {right}"
    for schedule in reply.schedules:
        if not schedule.partition(":")[2].startswith("  ("):  # a nest that stays as it is
            yield f"    nest {schedule}"
    for remark in reply.remarks:
        kind = "fusion refused" if NOT_MERGED in remark else "remark"
        yield f"    {kind}: {remark}"


def _shapes(code: FunctionCode) -> Iterator[str]:
    for history in list(code.profile.histories.values()):
        state = history.policy
        if state.trouble:
            yield f"  shape policy failed: {state.trouble}"
        if state.rows:
            yield f"  padded: {state.wasted_rows} rows added to {state.rows}"
        for signature, padding in list(state.paddings.items()):
            if padding.failure:
                yield f"  {signature}: nothing is padded: {padding.failure}"
            for size, why in padding.refused.items():
                yield f"  {signature}: size {size} is not padded: {why}"


def _misses(vm: VM, code: FunctionCode) -> Iterator[str]:
    for miss in misses(vm, code)[:MISSES_SHOWN]:
        others = f" and {miss.signatures - 1} more" if miss.signatures > 1 else ""
        yield f"  {miss.count} call(s) without code: {miss.reason}: {miss.example}{others}"
    last = code.profile.last_miss
    if last is not None:
        signature = Signature(code.function.name, last.types)
        yield f"  last hot call without code: {signature}"
        names = names_of(vm, code)
        for line in vm.service.cache.explain(
            vm.key(code, signature), last.values, names
        ).splitlines():
            yield f"    {line}"


# ---- calls, their names, and why they found no code ----------------------------------------------


@dataclass(frozen=True)
class ShapeCount:
    """Interpreted calls of one exact signature, called as people know it; `missed` of them were hot."""

    signature: Signature
    count: int
    missed: int


@dataclass
class Misses:
    """Hot calls that found no code for one reason."""

    reason: str
    example: Signature
    """One of their signatures."""
    signatures: int = 0
    count: int = 0


def misses(vm: VM, code: FunctionCode) -> list[Misses]:
    """Hot calls without code by reason, most frequent first. Why calls of rare signatures missed is not asked."""
    found: dict[str, Misses] = {}
    missed = [counted for counted in shape_counts(vm, code) if counted.missed]
    missed.sort(key=lambda miss: -miss.missed)
    for number, miss in enumerate(missed):
        reason = reason_of(vm, code, miss) if number < REASONS else "other sizes"
        group = found.setdefault(reason, Misses(reason, miss.signature))
        group.signatures += 1
        group.count += miss.missed
    return sorted(found.values(), key=lambda group: -group.count)


def title(vm: VM, function: str) -> str:
    """What to call a function of a machine: a jitted function by its Python name, a part of it likewise."""
    first = next(iter(vm.functions))
    if not vm.name:
        return f"@{function}"
    if function == first or function.startswith(f"{first}."):
        return vm.name + function[len(first) :]
    return f"{vm.name} @{function}"


def functions_in_use() -> Iterator[tuple[VM, FunctionCode]]:
    """The functions of all machines, and the parts of them that are compiled by themselves."""
    for vm in machines():
        for code in vm.functions.values():
            yield vm, code
            for part in code.parts:
                yield vm, part


def names_of(vm: VM, code: FunctionCode) -> Sequence[str]:
    """What people call the arguments of a function, as far as it is known."""
    return vm.argument_names if code.function.name == next(iter(vm.functions)) else ()


def shape_counts(vm: VM, code: FunctionCode) -> Iterator[ShapeCount]:
    """The exact signatures of interpreted calls."""
    name = title(vm, code.function.name)
    for history in list(code.profile.histories.values()):
        for shapes, count in history.counts().items():
            pairs = zip(history.types, shapes, strict=True)
            types = tuple(ArgumentType(t.dtype, shape, t.strided) for t, shape in pairs)
            yield ShapeCount(Signature(name, types), count, history.missed.get(shapes, 0))


def reason_of(vm: VM, code: FunctionCode, miss: ShapeCount) -> str:
    """Why such calls found no code, in one sentence: what the nearest entry differs in, or what became of
    the request."""
    names, nearest = names_of(vm, code), None
    for entry in _compiled(vm, code)[-ENTRIES_COMPARED:]:
        if entry.kernel is None:
            continue
        class_of = vm.policy.shape_policy.class_of
        found = list(differences(entry.kernel, miss.signature, (), names, class_of))
        if nearest is None or len(found) < len(nearest):
            nearest = found
    exact = str(Signature(code.function.name, miss.signature.arguments))
    for key in list(code.keys):
        if key.signature == exact and key in vm.service.failures:
            return f"not compiled: {vm.service.failures[key]}"
        if key.signature == exact and vm.service.is_pending(key):
            return "being compiled"
    if nearest is None:
        waits = any(vm.service.is_pending(key) for key in list(code.keys))
        failures = [vm.service.failures[k] for k in list(code.keys) if k in vm.service.failures]
        if waits or failures:
            return "being compiled" if waits else f"not compiled: {failures[0]}"
        return "not worth compiling yet" if code.tiers.postponed else "no code"
    return "; ".join(nearest) or "before its code came"
