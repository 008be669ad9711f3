"""One measured number, with what it is compared to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A number of the runtime's page."""

    name: str
    """What was measured, as a reader of the page would say it."""
    value: float
    unit: str
    """"ns", "us", "ms", "s", "MB", "%", "x NumPy", or "" for a count."""
    aim: str = ""
    """What was hoped for, with its relation: "<= 0.15", ">= 95"."""
    note: str = ""
    """How it was measured, or why it falls short."""

    def cells(self) -> tuple[str, str, str, str]:
        """The cells of its line in a table."""
        number = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        return self.name, f"{number} {self.unit}".strip(), self.aim, self.note
