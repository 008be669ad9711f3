"""The wheel works without the checkout: tools, data files, the xDSL entry point, a compiled call.

It is built from a copy of the sources and installed into an environment of its own, which finds the
dependencies, but not this project, in the one that runs the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "jitdialects")
TENSORS = """\
func.func @two(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tssa.negative %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""
CALL = """\
import numpy as np
import jitdialects as jd
import jitdialects.numpy as jnp

@jd.jit
def f(x):
    return jnp.tanh(x) * 2 + 1

x = np.linspace(-1, 1, 50, dtype=np.float32)
first = f(x)
jd.config.threshold = 1
for _ in range(3):
    f(x)
jd.wait()
assert np.array_equal(f(x), first)
assert jd.stats()["cache_hits"] > 0, jd.stats()
import urllib.request
page = jd.dashboard.start()
assert b"<title>jitdialects" in urllib.request.urlopen(page).read()
assert urllib.request.urlopen(page + "dash.js").status == 200
print(jd.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built file."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (built,) = (folder / "dist").iterdir()
    return built


class Installed:
    """An environment with the wheel, and a folder to work in."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        home = folder / "environment"
        venv.create(home, symlinks=True)
        self.bin, self.work = home / "bin", folder
        library = home / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        install = ["-m", "pip", "-qq", "--python", self.bin / "python", "install"]
        options = ["--no-deps", "--no-index", "--ignore-installed", wheel]
        subprocess.run([sys.executable, *install, *options], check=True)
        self.library = library

    def run(self, command: str, *arguments: str) -> str:
        """The output of a program of the environment, whose home is empty."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JITDIALECTS"))}
        done = subprocess.run(
            [self.bin / command, *arguments],
            cwd=self.work,
            env=clean | {"HOME": str(self.work), "XDG_CACHE_HOME": str(self.work / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed."""
    return Installed(wheel, tmp_path_factory.mktemp("elsewhere"))


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert len(tops) == 2 and "jitdialects" in tops
    package = ROOT / "jitdialects"
    sources = {str(p.relative_to(ROOT)) for p in package.rglob("*.py")}
    data = {
        "jitdialects/py.typed",
        "jitdialects/bytecode/elementary.json",
        "jitdialects/runtime/native/arrays.ll",
        "jitdialects/runtime/native/thread_pool.ll",
        "jitdialects/runtime/native/vectorcall.ll",
        "jitdialects/tools/page/dash.css",
        "jitdialects/tools/page/dash.js",
        "jitdialects/tools/page/index.html",
    }
    assert {name for name in names if name.startswith("jitdialects/")} == sources | data
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_our_driver_lists_the_passes(installed: Installed) -> None:
    assert "tssa-fuse" in installed.run("jit-opt", "--list-passes")


def test_xdsls_driver_runs_our_pass(installed: Installed) -> None:
    (installed.work / "two.mlir").write_text(TENSORS)
    # its program is not in this environment, which only borrows the module
    driver = "import sys; from xdsl.tools.xdsl_opt import main; sys.exit(main())"
    output = installed.run("python", "-c", driver, "two.mlir", "-p", "tssa-fuse")
    assert output.count("tssa.group") == 1


def test_a_program_is_assembled_and_its_tiers_agree(installed: Installed) -> None:
    shutil.copy(ROOT / "examples" / "gelu.jasm", installed.work)
    installed.run("jit-asm", "gelu.jasm", "-o", "gelu.jbc")
    report = installed.run("jit-run", "gelu.jbc", "random:f32[40]", "2.0", "0.5")
    assert "results have the same bits" in report


def test_python_finds_the_wheel_and_runs_compiled_code(installed: Installed) -> None:
    (installed.work / "call.py").write_text(CALL)
    assert Path(installed.run("python", "call.py").strip()).is_relative_to(installed.library)
