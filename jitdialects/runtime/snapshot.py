"""Everything that a view of the runtime shows, as plain data: one function for the web page, the terminal, and
whoever else looks. Views arrange it and compute nothing of their own.

Rows are capped, so that a look costs milliseconds whatever the process has grown to; what was left out is counted.
"""

from __future__ import annotations

from jitdialects.runtime.explain import shape_counts
from jitdialects.runtime.service import CompileService, default_service
from jitdialects.runtime.vm import machines


def services() -> list[CompileService]:
    """The services of machines in use, that of the process first."""
    others = {vm.service for vm in machines()} - {default_service}
    return [default_service, *others]


def missed_signatures() -> list[tuple[str, int]]:
    """The signatures of hot calls that found no code, most frequent first."""
    found: dict[str, int] = {}
    for vm in machines():
        for code in vm.functions.values():
            for miss in shape_counts(vm, code, missed=True):
                text = str(miss.signature)
                found[text] = found.get(text, 0) + miss.count
    return sorted(found.items(), key=lambda item: -item[1])
