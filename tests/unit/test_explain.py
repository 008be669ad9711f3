"""`jd.explain`: what is short comes first, arguments have their names, and every miss has a reason."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.bytecode import dims
from jitdialects.bytecode.signature import parse
from jitdialects.frontends.structure import argument_names, flatten
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.dispatch import differences
from jitdialects.runtime.explain import misses
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.shape_policies import Bucketed
from jitdialects.testing.fake_compiler import FakeCompiler

Point = namedtuple("Point", "x y")


def names(function, *args, **kwargs) -> list[str]:
    return argument_names(function, flatten((args, dict(sorted(kwargs.items()))), []))


def test_arguments_are_called_as_in_the_source() -> None:
    def f(x, params, *rest, scale=1): ...

    x = np.zeros(1)
    assert names(f, x, {"w": x, "b": [x, x]}, x, x, scale=x) == [
        "x",
        "params['w']",
        "params['b'][0]",
        "params['b'][1]",
        "rest[0]",
        "rest[1]",
        "scale",
    ]
    assert names(lambda p: p, Point(x, x)) == ["p.x", "p.y"]
    assert names(lambda x, y: x, y=x, x=x) == ["x", "y"]


def kernel(signature: str, *guards: tuple[str, str, str]):
    """What `differences` asks of a kernel."""

    parsed = tuple((r, dims.parse(x), dims.parse(y)) for r, x, y in guards)
    return SimpleNamespace(signature=parse(signature), reply=SimpleNamespace(guards=parsed))


@pytest.mark.parametrize(
    ("entry", "guards", "call", "told"),
    [
        (
            "main(f32[n])",
            [("<=", "33", "n"), ("<=", "n", "64")],
            "main(f32[65])",
            ["dim 0 of x: 65 is outside class 33-64"],
        ),
        (
            "main(f32[n])",
            [("<=", "2", "n")],
            "main(f32[1])",
            ["dim 0 of x: 1 is outside class 2 and up"],
        ),
        (
            "main(f32[n])",
            [("<=", "n", "8")],
            "main(f32[9])",
            ["dim 0 of x: 9 is outside class 0-8"],
        ),
        ("main(f32[n])", [("<=", "33", "n"), ("<=", "n", "64")], "main(f32[64])", []),
        ("main(f32[4,n])", [], "main(f32[5,7])", ["dim 0 of x: 5, entry has 4"]),
        ("main(f32[n])", [], "main(f64[7])", ["dtype of x: float64, entry has float32"]),
        ("main(f32[n])", [], "main(f32[7,7])", ["rank of x: 2, entry has 1"]),
        (
            "main(f32[n])",
            [],
            "main(f32[7]:strided)",
            ["layout of x: strided, entry has contiguous"],
        ),
        (
            "main(f32[n,m])",
            [("==", "n", "2*m")],
            "main(f32[7,3])",
            ["guard n == 2 * m does not hold: 7, 6"],
        ),
    ],
)
def test_a_miss_is_told_in_words(
    entry: str, guards: list[tuple[str, str, str]], call: str, told: list[str]
) -> None:
    """cases.md 115: the field that differs, by the name that the reader knows."""
    assert list(differences(kernel(entry, *guards), parse(call), (), ["x"])) == told


def test_sizes_outside_a_class_are_told_as_such() -> None:
    """The issue's example: bucketed code serves 33 to 64."""
    class_of = Bucketed().class_of
    entry = kernel("main(f32[64])")
    assert list(differences(entry, parse("main(f32[65])"), (), ["x"], class_of)) == [
        "dim 0 of x: 65 is outside class 33-64"
    ]
    assert [class_of(n) for n in (1, 2, 8, 9, 32, 33, 64, 65)] == [
        range(1, 2),
        *[range(2, 9)] * 2,
        range(9, 17),
        range(17, 33),
        *[range(33, 65)] * 2,
        range(65, 129),
    ]


def test_misses_are_grouped_by_reason() -> None:
    f = jd.jit(lambda x: x + x, shapes="exact")
    for _ in range(10):
        f(np.zeros(4, np.float32))
    jd.wait()
    for n in (5, 5, 5, 4):
        f(np.zeros(n, np.float32))
    (vm,) = f.machines()
    text = jd.explain(f)
    (group,) = misses(vm, vm.functions["main"])
    assert group.count >= 1 and str(group.example) == "<lambda>(f32[5])"
    assert f"{group.count} call(s) without code: " in text
    assert "last hot call without code: main(f32[5])" in text
    assert "dim 0 of x: 5, entry has 4" in text


def test_short_lines_come_before_details() -> None:
    f = jd.jit(lambda x: (x @ x).T + x.sum(), shapes="exact")
    for n in (3, 4):
        for _ in range(12):
            f(np.zeros((n, n), np.float32))
        jd.wait()
    lines = jd.explain(f).splitlines()
    details = [i for i, line in enumerate(lines) if "details of" in line]
    short = [i for i, line in enumerate(lines) if line.startswith("  compiled: ")]
    assert len(details) == len(short) == 2 and max(short) < min(details)


def test_refused_fusions_are_told_as_such() -> None:
    @jd.jit
    def two(x, w):
        return (x @ w) @ w

    for _ in range(11):
        two(np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32))
    jd.wait()
    assert "fusion refused: @main: tssa.matmul is not merged with tssa.matmul" in jd.explain(two)


def test_what_cannot_be_compiled_is_the_reason_of_a_miss() -> None:

    program = jd.jit(lambda x: x + x)
    program(np.zeros(4, np.float32))
    fake = FakeCompiler(lambda signature: [], error="no such thing")
    vm = jd.VM(
        program.program,
        jd.Policy(threshold=1),
        service=CompileService(KernelCache(), fake),
    )
    for _ in range(3):
        vm.run("main", np.zeros(4, np.float32))
        vm.wait()
    (group,) = misses(vm, vm.functions["main"])
    assert group.reason == "not compiled: no such thing"
    assert group.count == 2
