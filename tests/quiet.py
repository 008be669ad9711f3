"""What must not warn."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The runtime gives no notice inside; one would not raise, whatever the filters are."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    assert not [str(w.message) for w in found if issubclass(w.category, RuntimeWarning)]
