"""What `import jitdialects` gives, and what it does not bring in."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import jitdialects as jd
from jitdialects.config import default_cache_dir


def run(code: str) -> str:
    """What a fresh interpreter prints for `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_import_is_light() -> None:
    code = """
import numpy, sys
before = set(sys.modules)
import jitdialects as jd
added = set(sys.modules) - before
print(sorted(m for m in added if m.split(".")[0] in ("xdsl", "llvmlite", "jitdialects")))
"""
    assert run(code) == "['jitdialects', 'jitdialects.config', 'jitdialects.errors']"


def test_arrays_and_captures_bring_in_neither_xdsl_nor_llvmlite() -> None:
    code = """
import sys
import numpy as np
import jitdialects as jd
import jitdialects.numpy as jnp
x = np.ones(3, np.float32)
y = jnp.asarray(x) * 2
f = jd.jit(lambda x: jd.while_loop(lambda v: v[0] < 9, lambda v: v * 2, x))
print(y[0].item(), f(x)[0], [m for m in ("xdsl", "llvmlite") if m in sys.modules])
"""
    assert run(code) == "2.0 16.0 []"


@pytest.mark.parametrize("name", jd.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(jd, name) is getattr(jd, name)
    assert name in dir(jd)


def test_a_missing_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="has no 'nothing'; it has: .*while_loop") as caught:
        _ = jd.nothing
    assert "\n" not in str(caught.value)


def test_config_is_the_object_however_it_is_imported() -> None:
    from jitdialects.config import Config, config

    assert jd.config is config and isinstance(config, Config)


def test_errors_are_one_tree_and_what_python_expects() -> None:
    trees = {
        jd.ShapeError: ValueError,
        jd.DTypeError: TypeError,
        jd.IntegerRangeError: OverflowError,
        jd.ArgumentError: TypeError,
        jd.OutOfBoundsError: IndexError,
        jd.TraceError: TypeError,
        jd.ConfigError: ValueError,
        jd.PoolError: MemoryError,
    }
    for error, builtin in trees.items():
        assert issubclass(error, jd.Error) and issubclass(error, builtin)
    assert issubclass(jd.BytecodeError, jd.Error) and issubclass(jd.CompileError, jd.Error)


def test_the_version_is_that_of_the_package() -> None:
    assert jd.__version__ == metadata.version("jitdialects")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("threshold", 0, "config.threshold=0: needs a whole number of at least 1"),
        ("threshold", "many", "config.threshold='many': needs a whole number"),
        ("shapes", "some", "config.shapes='some': needs one of auto, exact, bucketed, symbolic"),
        ("features", "avx", "config.features='avx': needs one of x86-64-v1"),
        ("cache_dir", 3, "config.cache_dir=3: needs the path of a folder"),
        ("code_cap", "64MB", "config.code_cap='64MB': needs a number of bytes, such as"),
        ("disk_cap", -1, "config.disk_cap=-1: needs a number of bytes"),
        ("shared_cache", 3, "config.shared_cache=3: needs a URL"),
        ("shared_cache_secret", 3, "config.shared_cache_secret=...: needs text"),
        ("treshold", 3, "config has no 'treshold'; it has: threshold, "),
    ],
)
def test_options_that_are_not_allowed_are_refused(name: str, value: object, said: str) -> None:
    with pytest.raises(jd.ConfigError) as caught:
        setattr(jd.config, name, value)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("variable", ["THRESHOLD", "SHAPES", "FEATURES", "NUMERICS"])
def test_a_wrong_variable_is_an_error_where_the_option_is_read(variable: str, monkeypatch) -> None:
    monkeypatch.setenv(f"JITDIALECTS_{variable}", "some")
    allowed = {"THRESHOLD": 3, "SHAPES": "exact", "FEATURES": None, "NUMERICS": "strict"}
    code = f"""
import jitdialects as jd
try:
    jd.config.{variable.lower()}
except jd.ConfigError as error:
    print(error)
jd.config.{variable.lower()} = {allowed[variable]!r}
jd.config.{variable.lower()}
"""
    assert run(code).startswith(f"JITDIALECTS_{variable}='some': needs ")


@pytest.mark.parametrize("variable", ["THREADS", "ENGINE", "CODE_CAP", "COMPILE_SECONDS", "DASH"])
def test_a_wrong_variable_is_told_before_anything_runs(variable: str, monkeypatch) -> None:
    monkeypatch.setenv(f"JITDIALECTS_{variable}", "some")
    code = """
import numpy as np, jitdialects as jd
for _ in range(2):
    try:
        print(jd.jit(lambda x: x + 1)(np.zeros(2)))
    except jd.ConfigError as error:
        print(error)
"""
    first, second = run(code).splitlines()
    wrong = f"JITDIALECTS_{variable}='some': needs "  # the page is no reason to compute nothing
    assert first == second and (
        first == "[1. 1.]" if variable == "DASH" else first.startswith(wrong)
    )


def test_a_user_without_a_home_has_no_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # what it does for such a user
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_dir() is None
