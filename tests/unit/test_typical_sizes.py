"""Sizes that judges of fusion are told: text, what is made of the calls so far, and that nothing depends on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jitdialects.analysis.typical_sizes import coarse, parse_typical, typical_text
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.runtime.cache import CacheKey, KernelCache
from jitdialects.runtime.cache.key import candidates
from jitdialects.runtime.compiler import compile_request
from jitdialects.runtime.explain import explain
from jitdialects.runtime.messages import CompileRequest
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.requests import typical_sizes
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service

KEY = CacheKey("abc", "main(f32[n])", "x86-64-v3", "1")
LARGE, SMALL = replace(KEY, typical="n=65536"), replace(KEY, typical="n=16")


def test_sizes_come_back_from_their_text() -> None:
    assert parse_typical(" n = 65536,m=16 ") == {"n": 65536, "m": 16}
    assert parse_typical("") == parse_typical("  ") == {}
    assert typical_text({"n": 70000, "m": 15}) == "n=65536, m=16"
    assert parse_typical(typical_text({"n0": 5})) == {"n0": 4}


@pytest.mark.parametrize("text", ["n", "n=", "=4", "n=-4", "n=4;m=4", "n=4,", "n=4 m=4", "n=1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size; write 'n=65536, m=16'"):
        parse_typical(text)


def test_sizes_are_made_coarse() -> None:
    sizes = (0, 1, 2, 3, 9, 127, 129, 256, 500, 520, 10**9)
    assert [*map(coarse, sizes)] == [1, 1, 1, 4, 16, 64, 256, 256, 256, 1024, 4**15]
    assert all(coarse(4**k) == 4**k for k in range(30))


def test_what_would_be_taken_anyway_is_not_said() -> None:
    assert typical_text({"n": 256, "m": 300}) == ""


def history(*calls: tuple[int, int, float]) -> dict[tuple[tuple[int, ...], ...], float]:
    return {((m, n),): seconds for m, n, seconds in calls}


def test_sizes_are_those_at_which_half_of_the_time_was_spent() -> None:
    signature = parse("main(f32[m,n])")
    seen = history((1, 8, 1.0), (1, 9, 1.0), (5, 10, 1.5))
    assert typical_sizes(signature, seen) == {"m": 1, "n": 9}
    assert typical_sizes(signature, history((1, 8, 0.1), (1000, 8, 5.0))) == {"m": 1000, "n": 8}
    assert typical_sizes(parse("main(f32[5,n])"), seen) == {"n": 9}
    assert typical_sizes(parse("main(f32[n,n])"), history((3, 3, 1.0))) == {"n": 3}
    assert typical_sizes(signature, history()) == {}


def test_calls_that_were_not_timed_count_as_nothing() -> None:
    seen = history((4, 4, 1.0), (99, 99, 0.0))
    assert typical_sizes(parse("main(f32[m,n])"), seen) == {"m": 4, "n": 4}


# ---- keys ----------------------------------------------------------------------------------------


def test_a_hint_is_part_of_the_name_and_no_condition() -> None:
    assert LARGE.is_akin(KEY) and replace(KEY, balance=4.0).is_akin(SMALL)
    names = {key.file_name for key in (KEY, LARGE, SMALL, replace(KEY, balance=4.0))}
    assert len(names) == 4
    _, ((first, *_),) = candidates(names, LARGE)
    assert first == LARGE.file_name
    exact, general = candidates([LARGE.file_name], SMALL)
    assert exact == [LARGE.file_name] and general == [[LARGE.file_name]]


def test_the_level_goes_before_the_hint() -> None:
    lower = replace(LARGE, features="x86-64-v2")
    assert candidates([lower.file_name, KEY.file_name], LARGE)[0][0] == KEY.file_name


def test_code_on_trial_comes_last() -> None:
    other = replace(SMALL, balance=0.25)
    for key in (KEY, LARGE, SMALL):
        assert candidates([other.file_name, SMALL.file_name], key)[0][0] == SMALL.file_name


# ---- the machine ---------------------------------------------------------------------------------


def quotients() -> Program:
    """The least and the largest quotient of each row: in memory it pays to divide twice."""
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    t = main.apply("divide", *main.parameters)
    main.returns(main.apply("min", t, axis=1), main.apply("max", t, axis=1))
    return builder.finish()


def test_sizes_of_calls_decide_what_is_fused_and_no_bit() -> None:
    fused: list[int] = []
    random = np.random.default_rng(0)
    small, large = (random.random(shape, np.float32) + 1 for shape in ((4, 16), (2048, 1024)))
    for x in (small, large):
        service = CompileService(KernelCache(), compile_request)
        vm = VM(quotients(), Policy(threshold=1, shapes="symbolic"), service=service)
        want = [r.tobytes() for r in vm.run("main", x, x[::-1].copy())]
        vm.wait()
        assert [r.tobytes() for r in vm.run("main", x, x[::-1].copy())] == want
        (entry,) = vm.functions["main"].found
        assert entry.hits == 1 and entry.kernel is not None
        fused.append(entry.kernel.reply.operators_fused)
        assert f"for judges of fusion {entry.key.typical}" in explain(vm)
        y = small[:3, :5].copy()
        interpreted = VM(quotients(), Policy(threshold=10**9)).run("main", y, y[::-1].copy())
        for a, b in zip(vm.run("main", y, y[::-1].copy()), interpreted, strict=True):
            assert a.tobytes() == b.tobytes()
        service.stop()
    assert fused == [2, 3]


def identity(compiler: FakeCompiler, shapes: str) -> VM:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("abs", main.parameters[0]))
    return VM(builder.finish(), Policy(threshold=1, shapes=shapes), service=fake_service(compiler))


def like_first(signature: Signature) -> list:
    return [(FLOAT32, [str(s) for s in signature.arguments[0].shape])]


def requested(shapes: str, *sizes: int) -> list[str]:
    """What is typical in the requests of calls of these sizes."""
    typical: list[str] = []

    class Listening(FakeCompiler):
        def __call__(self, data: bytes) -> bytes:
            typical.append(CompileRequest.decode(data).typical)
            return super().__call__(data)

    vm = identity(Listening(like_first), shapes)
    for n in sizes:
        vm.run("main", np.ones(n, np.float32))
        vm.wait()
    return typical


def test_general_code_is_asked_for_with_the_sizes_so_far() -> None:
    assert requested("symbolic", 70) == ["n0=64"]


def test_do_not_ask_again_when_sizes_change() -> None:
    assert requested("symbolic", 8, 10**5, 10**6, 8) == ["n0=16"]


def test_do_not_hint_where_sizes_are_exact() -> None:
    assert requested("exact", 8, 10**5) == ["", ""]
