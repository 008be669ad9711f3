"""Everything that a view of the runtime shows, as plain data: one function for the web page, the terminal, and
whoever else looks. Views arrange it and compute nothing of their own.

Rows are capped, so that a look costs milliseconds whatever the process has grown to; what was left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime.profile import ShapeHistory
from jitdialects.runtime.service import CompileService, default_service
from jitdialects.runtime.vm import VM, FunctionCode, machines


def services() -> list[CompileService]:
    """The services of machines in use, that of the process first."""
    others = {vm.service for vm in machines()} - {default_service}
    return [default_service, *others]


def title(vm: VM, function: str) -> str:
    """What to call a function of a machine: a jitted function by its Python name."""
    if not vm.name:
        return f"@{function}"
    first = next(iter(vm.functions))
    return vm.name if function == first else f"{vm.name} @{function}"


def shape_counts(
    vm: VM, code: FunctionCode, missed: bool
) -> Iterator[tuple[ShapeHistory, Signature, int]]:
    """The exact signatures of interpreted calls, or of those that found no code, with how many."""
    name = title(vm, code.function.name)
    for history in list(code.profile.histories.values()):
        counts = history.missed if missed else history.seen
        for shapes, count in list(counts.items()):
            yield history, Signature(name, exact_types(history, shapes)), count


def exact_types(
    history: ShapeHistory, shapes: Sequence[tuple[int, ...]]
) -> tuple[ArgumentType, ...]:
    """The argument types of a call of these shapes."""
    pairs = zip(history.types, shapes, strict=True)
    return tuple(ArgumentType(t.dtype, shape, t.strided) for t, shape in pairs)


def missed_signatures() -> list[tuple[str, int]]:
    """The signatures of hot calls that found no code, most frequent first."""
    found: dict[str, int] = {}
    for vm in machines():
        for code in vm.functions.values():
            for _, signature, count in shape_counts(vm, code, missed=True):
                text = str(signature)
                found[text] = found.get(text, 0) + count
    return sorted(found.items(), key=lambda item: -item[1])
