"""How the runtime says that a part of it that is optional does not work here: as a warning that never breaks a call."""

from __future__ import annotations

import sys
import warnings


def notice(text: str, stacklevel: int = 2) -> None:
    """Warn (`RuntimeWarning`); where a filter makes errors of warnings, as test suites have it, print to stderr.
    `stacklevel` as of `warnings.warn` in place of this call."""
    text = f"jitdialects: {text}"
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
    except RuntimeWarning:
        print(text, file=sys.stderr)
