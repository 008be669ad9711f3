"""What the cache counts, and how it says once that something is wrong. Neither ever stops a call."""

from __future__ import annotations

from collections import Counter

from jitdialects.runtime.notices import notice


class Events:
    """Counters of one level. Additions race between threads by design, as in `runtime.stats`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._said: set[str] = set()

    def count(self, what: str, number: int = 1) -> None:
        """Count an event."""
        self.counts[what] += number

    def problem(self, what: str, sentence: str) -> None:
        """Count a problem, and warn of it the first time that one of its kind is met."""
        self.counts[what] += 1
        if what in self._said:
            return
        self._said.add(what)
        notice(f"{sentence}; this is said once, jd.stats()['cache'] counts on", stacklevel=3)

    def as_dict(self, *always: str) -> dict[str, int]:
        """The counts; those in `always` also where they are zero."""
        return {
            name: self.counts[name] for name in (*always, *sorted(set(self.counts) - set(always)))
        }
