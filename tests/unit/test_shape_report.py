"""What `explain` and `stats` say of versions: their strategy, which are stale, which fit one shape only."""

from __future__ import annotations

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.explain import explain
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.shape_report import shape_rows, versions


@pytest.fixture
def service() -> CompileService:
    made = CompileService(KernelCache())
    yield made
    made.stop()


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def machine(function, service: CompileService, shapes: str, *example: np.ndarray) -> jd.VM:
    captured = jd.jit(function)
    captured(*example)
    return jd.VM(captured.program, Policy(threshold=1, shapes=shapes), service=service)


def called(vm: jd.VM, *arguments: np.ndarray, times: int = 2) -> None:
    for _ in range(times):
        vm.run("main", *arguments)
        vm.wait()


def affine(x):
    return jnp.tanh(x) * 2 + 1


def test_versions_and_what_supersedes_them(service: CompileService) -> None:
    vm = machine(affine, service, "auto", floats(3))
    called(vm, floats(3))
    called(vm, floats(4))
    code = vm.functions["main"]
    old, new = versions(vm, code)
    assert (old.signature, old.strategy, old.hits, old.stale) == (
        "main(f32[3])",
        "exact",
        1,
        f"superseded by version {new.version}, no call since",
    )
    assert (new.signature, new.strategy, new.hits, new.stale) == (
        "main(f32[n0])",
        "symbolic",
        1,
        "",
    )
    assert old.version < new.version
    assert f"stale: superseded by version {new.version}, no call since" in explain(vm)
    called(vm, floats(3))
    assert not versions(vm, code)[0].stale
    assert "stale" not in explain(vm)


def test_rows_of_the_statistics(service: CompileService) -> None:
    vm = machine(affine, service, "bucketed", floats(3, 5))
    vm.name = "affine"
    for n in (40, 50, 60):
        called(vm, floats(n, 5))
    (row,) = shape_rows(vm)
    assert row["function"] == "affine @main"
    assert row["compiles"] == {"exact": 1, "bucketed": 1}
    assert (row["rows"], row["wasted_rows"]) == (50 + 60 + 60, 14 + 4 + 4)
    assert row["distinct_shapes"] == 2
    assert [v["signature"] for v in row["versions"]] == ["main(f32[40,5])", "main(f32[64,5])"]
    assert row in jd.stats()["shapes"]
    assert "bucketed; 3 call(s)" in explain(vm)
    assert "padded: 22 rows added to 170" in explain(vm)


def test_code_of_a_cleared_cache_is_marked(service: CompileService) -> None:
    vm = machine(affine, service, "exact", floats(3))
    called(vm, floats(3))
    service.cache.clear()
    assert "stale: main(f32[3]): not in the cache any more" in explain(vm)


def test_case_5_general_code_for_one_shape_says_so(service: CompileService) -> None:
    """pytorch/pytorch#191833: sizes that are symbols, and guards that leave them one value."""
    b = floats(5)
    vm = machine(lambda x: x * 2 + b, service, "symbolic", floats(5))
    called(vm, floats(5))
    assert "general code that its guards leave one shape: n0 = 5" in explain(vm)
    free = machine(lambda x: jnp.max(x), service, "symbolic", floats(5))
    called(free, floats(5))
    assert "one shape" not in explain(free)
