"""Every `.mlir` file below this folder is a test; see `jitdialects.testing.filecheck`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitdialects.testing.filecheck import FileCheckFile, collect_mlir


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    return collect_mlir(file_path, parent)
