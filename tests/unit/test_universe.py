"""The registry agrees with the classes, is seen by xDSL's tools, and costs nothing to import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.universe import XDSL_UNIVERSE, Universe

import jitdialects
from jitdialects.universe import JITDIALECTS_UNIVERSE

PASSES = JITDIALECTS_UNIVERSE.all_passes


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_its_name_its_file_and_a_summary(name: str) -> None:
    found = PASSES[name]()
    assert found.name == name
    if name != "jit-default":  # a pipeline, beside the others in pipelines.py
        assert found.__module__.rpartition(".")[2] == name.replace("-", "_")
    assert found.__doc__ and not found.__doc__.startswith(f"{found.__name__}(")


@pytest.mark.parametrize("name", JITDIALECTS_UNIVERSE.all_dialects)
def test_a_dialect_has_its_name(name: str) -> None:
    assert JITDIALECTS_UNIVERSE.all_dialects[name]().name == name


def test_frontends_and_targets_have_their_names() -> None:
    for registry in (JITDIALECTS_UNIVERSE.all_frontends, JITDIALECTS_UNIVERSE.all_targets):
        assert [factory().name for factory in registry.values()] == list(registry)


def test_xdsl_sees_the_universe() -> None:
    seen = Universe.get_multiverse()
    assert PASSES.keys() <= seen.all_passes.keys()
    assert JITDIALECTS_UNIVERSE.all_dialects.keys() <= seen.all_dialects.keys()
    assert JITDIALECTS_UNIVERSE.all_targets.keys() <= seen.all_targets.keys()


def test_no_name_is_taken_from_xdsl() -> None:
    for kind in ("all_dialects", "all_passes", "all_targets", "all_frontends"):
        assert not getattr(JITDIALECTS_UNIVERSE, kind).keys() & getattr(XDSL_UNIVERSE, kind).keys()


def test_importing_the_universe_imports_nothing_heavy() -> None:
    code = (
        "import sys, xdsl.universe; before = set(sys.modules); import jitdialects.universe;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added = set(done.stdout.split())
    assert not {m.partition(".")[0] for m in added} & {"numpy", "llvmlite", "xdsl"}
    assert {m for m in added if m.startswith("jitdialects.")} <= {
        "jitdialects.config",
        "jitdialects.errors",
        "jitdialects.universe",
    }


def test_every_pass_in_the_folders_is_registered() -> None:
    package = Path(jitdialects.__file__).parent
    defined = set[str]()
    for folder in ("passes", "lowering"):
        for path in (package / folder).glob("*.py"):
            defined |= set(
                re.findall(
                    r'\((?:Module|Judging)Pass\):.*?\n    name = "([\w-]+)"',
                    path.read_text(),
                    re.DOTALL,
                )
            )
    assert defined == set(PASSES)


def test_xdsl_opt_runs_our_passes_from_any_folder(tmp_path: Path) -> None:
    Path(tmp_path, "p.jasm").write_text("func @main(%0) -> 1 {\n^b:\n  return %0\n}\n")
    passes = """convert-vm-to-tssa{signature="main(f32[n])"},tssa-fuse"""
    command = [Path(sys.executable).parent / "xdsl-opt", "p.jasm", "-p", passes]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "tensor<?xf32, #tssa.dims<[n]>>" in done.stdout
