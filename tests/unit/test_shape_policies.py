"""Which signatures are compiled for which calls, how calls are padded, and what never gets out of hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.config import config
from jitdialects.errors import ConfigError, PoolError, ShapeError
from jitdialects.runtime.explain import explain
from jitdialects.runtime.padded_calls import PaddedCall
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.profile import ShapeHistory
from jitdialects.runtime.shape_policies import (
    Bucketed,
    Exact,
    ShapeCase,
    ShapePolicy,
    generalised,
)
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service


def scaled_sum() -> Program:
    """x * y + y"""
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    x, y = main.parameters
    main.returns(main.apply("add", main.apply("multiply", x, y), y))
    return builder.finish()


def row_sums() -> Program:
    """sum(x, axis=1) for x of rank 2"""
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("sum", main.parameters[0], axis=1, keepdims=False))
    return builder.finish()


def like_first(signature: Signature) -> list:
    return [(FLOAT32, [str(s) for s in signature.arguments[0].shape])]


def rows_of_first(signature: Signature) -> list:
    return [(FLOAT32, [str(signature.arguments[0].shape[0])])]


def array(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


class Site:
    """A machine with a compiler that only interprets, and calls that are checked."""

    def __init__(self, program: Program, results=like_first, **options: object) -> None:
        self.compiler = FakeCompiler(results)
        policy = Policy(**{"threshold": 1} | options)
        self.vm = VM(program, policy, MemoryPool(), fake_service(self.compiler))
        self.reference = VM(program, Policy(threshold=10**9))

    def call(self, *arguments: object) -> None:
        (result,), (want,) = (m.run("main", *arguments) for m in (self.vm, self.reference))
        assert (result.shape, result.tobytes()) == (want.shape, want.tobytes())
        assert result.flags.c_contiguous and result.flags.writeable
        self.vm.wait()

    @property
    def served(self) -> int:
        return self.vm.functions["main"].profile.served


def test_classes_of_the_bucketed_policy() -> None:
    sizes = {1: 1, 2: 8, 8: 8, 9: 16, 16: 16, 17: 32, 32: 32, 33: 64, 65: 128, 1000: 1024}
    assert {n: Bucketed().largest(n) for n in sizes} == sizes
    assert Bucketed((4, 10)).largest(11) == 20


@pytest.mark.parametrize("classes", [(), (0, 8), (8, 8), (8, 4)])
def test_classes_that_are_none(classes: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="needs the largest sizes of the first classes"):
        Bucketed(classes)


def test_bucketed_calls_run_in_code_for_the_largest_size_of_their_class() -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    for n in (40, 50):
        site.call(array(n, 3), array(3))
    assert site.compiler.requests == ["main(f32[40,3], f32[3])", "main(f32[64,3], f32[3])"]
    before = site.served
    for n in range(33, 65):
        site.call(array(n, 3), array(3))
    assert site.served == before + 32
    assert len(site.compiler.requests) == 2
    (history,) = site.vm.functions["main"].profile.histories.values()
    assert history.policy.rows == sum(n for n in range(33, 64) if n != 40)
    assert history.policy.wasted_rows == sum(64 - n for n in range(33, 64) if n != 40)


def test_bucketed_arguments_that_are_not_contiguous_are_copied() -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    for n in (40, 50, 51, 64):
        site.call(array(3, n).T, array(3))
    assert site.compiler.requests[1:] == ["main(f32[64,3], f32[3])"]
    assert site.served == 2


def test_bucketed_calls_for_which_there_is_no_room_are_interpreted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    for n in (33, 34, 35):
        site.call(array(n), array(n))
    assert site.served == 1

    def full(self: PaddedCall, arguments: object, pool: object) -> list[object]:
        raise PoolError("full")

    monkeypatch.setattr(PaddedCall, "bind", full)
    site.call(array(36), array(36))
    assert site.served == 1


def test_bucketed_sizes_that_must_be_equal_share_a_class() -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    for n in (40, 50, 60):
        site.call(array(n), array(n))
    assert site.compiler.requests[1:] == ["main(f32[64], f32[64])"]
    assert site.served == 1
    with pytest.raises(ShapeError, match="do not broadcast"):
        site.vm.run("main", array(40), array(41))


def test_bucketed_sizes_of_one_keep_code_of_their_own() -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    for n in (40, 50, 1, 60, 1):
        site.call(array(n, 3), array(3))
    assert site.compiler.requests[1:] == ["main(f32[64,3], f32[3])", "main(f32[n0,3], f32[3])"]
    assert site.served == 2


def test_bucketed_axes_that_are_summed_over_become_symbolic() -> None:
    site = Site(row_sums(), rows_of_first, shapes="bucketed")
    for m, n in ((40, 7), (50, 9), (60, 11), (33, 2)):
        site.call(array(m, n))
    assert site.compiler.requests == ["main(f32[40,7])", "main(f32[64,n0])"]
    assert site.served == 2
    assert "size n1 is not padded: sum runs over it" in explain(site.vm)


def test_bucketed_code_that_cannot_be_made_gives_way_to_general_code() -> None:
    site = Site(scaled_sum(), shapes="bucketed")
    site.call(array(40), array(40))
    site.compiler.error = "not this one"
    site.call(array(50), array(50))
    site.compiler.error = None
    site.call(array(50), array(50))
    assert site.compiler.requests[1:] == ["main(f32[64], f32[64])", "main(f32[n0], f32[n0])"]


def test_exact_code_is_tried_where_general_code_cannot_be_made() -> None:
    site = Site(scaled_sum())
    site.call(array(4), array(4))
    site.compiler.error = "not this one"
    site.call(array(5), array(5))
    site.compiler.error = None
    for n in (5, 5, 6, 6):
        site.call(array(n), array(n))
    assert site.compiler.requests[2:] == ["main(f32[5], f32[5])", "main(f32[6], f32[6])"]
    assert site.served == 2


def test_exact_code_for_want_of_general_code_has_a_bound() -> None:
    site = Site(scaled_sum())
    site.call(array(4), array(4))
    site.compiler.error = "no code for you"
    for n in range(5, 80):
        site.call(array(n), array(n))
    assert sum(r.startswith("main(") for r in site.compiler.requests) <= 9
    assert len(site.compiler.requests) <= 18  # blocks of the function are tried instead


@pytest.mark.parametrize("shapes", ["auto", "exact", "bucketed", "symbolic", Exact()])
def test_more_shapes_than_allowed_are_generalised_whatever_the_policy(
    shapes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "max_shapes", 12)
    site = Site(scaled_sum(), shapes=shapes)
    for n in range(2, 60):
        site.call(array(n, 2 + n % 5), array(2 + n % 5))
    assert len(site.compiler.requests) <= 14
    before = site.served
    for n in range(300, 320):
        site.call(array(n, n), array(n))
    assert site.served >= before + 18


def test_bucketed_shapes_are_many_and_their_classes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that were interpreted while code was on its way do not count against the policy."""
    monkeypatch.setattr(config, "max_shapes", 12)
    site = Site(scaled_sum(), shapes="bucketed", threshold=30)
    for n in range(2, 40):
        site.call(array(n, 3), array(3))
    assert set(site.compiler.requests) == {f"main(f32[{n},3], f32[3])" for n in (32, 64)}


def test_a_policy_of_ones_own() -> None:
    class Halves(ShapePolicy):
        """Even sizes are symbols, odd ones are exact."""

        def signatures(self, case: ShapeCase) -> Iterator[Signature]:
            yield generalised(case, {(a, x) for a, x in case.axes if case.shapes[a][x] % 2 == 0})

    site = Site(scaled_sum(), shapes=Halves())
    for n in (4, 6, 3):
        site.call(array(n), array(n))
    assert site.compiler.requests == ["main(f32[n0], f32[n1])"]


def test_a_policy_that_raises_changes_no_result() -> None:
    class Broken(ShapePolicy):
        pads = True

        def signatures(self, case: ShapeCase) -> Iterator[Signature]:
            raise ZeroDivisionError("oh")

        def padded(self, case: ShapeCase) -> None:
            raise KeyError("ah")

    site = Site(scaled_sum(), shapes=Broken())
    with pytest.warns(RuntimeWarning, match="shape policy Broken: ZeroDivisionError: oh"):
        site.call(array(4), array(4))
    for n in (4, 5, 6):
        site.call(array(n), array(n))  # warnings are errors here
    assert site.compiler.requests == ["main(f32[4], f32[4])", "main(f32[n0], f32[n0])"]
    assert "Broken: ZeroDivisionError: oh" in explain(site.vm)


@pytest.mark.parametrize("shapes", ["some", 3, object(), Exact])
def test_options_that_are_no_policy(shapes: object) -> None:
    with pytest.raises(ConfigError, match="use one of 'auto', 'exact', 'bucketed', 'symbolic'"):
        Policy(shapes=shapes)


def test_signatures_apart_leave_equalities_to_the_program() -> None:
    history = ShapeHistory(parse("main(f32[4], f32[4])").arguments)
    history.add(((5,), (5,)), 1e-6)
    case = ShapeCase("main", history, ((4,), (4,)))
    assert str(generalised(case, case.axes)) == "main(f32[n0], f32[n0])"
    assert str(generalised(case, case.axes, apart=True)) == "main(f32[n0], f32[n1])"
