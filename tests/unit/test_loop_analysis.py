"""The predicates of the loop passes, without a pass: trip counts, lanes, aliasing, dependences, the schedule."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from jitdialects.analysis.body import body_of
from jitdialects.analysis.bounds import (
    constant_extent,
    constant_trip_count,
    extent_at_most,
    is_multiple_of,
    trip_count,
)
from jitdialects.analysis.dependence import carried_dependence, carried_distance, linear_form
from jitdialects.analysis.lanes import lanes_of
from jitdialects.analysis.machine import LEVELS, Level
from jitdialects.analysis.memory import may_alias, overlap_possible
from jitdialects.analysis.nest_facts import NestFacts, facts_of, next_power_of_two
from jitdialects.analysis.row_groups import in_large_groups, iterations_done
from jitdialects.analysis.schedule_product import balanced, rows_for
from jitdialects.dialects.context import make_context
from jitdialects.dialects.loop import PARALLEL, REDUCTION, NestOp, Schedule
from jitdialects.passes.loop_interchange import is_permutation, keeps_reductions_in_order
from jitdialects.passes.loop_schedule import choose_schedule

CONTEXT = make_context()


def parse(body: str, arguments: str = "", attributes: str = "") -> ModuleOp:
    constants = "\n".join(
        f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 7, 8, 15, 16)
    )
    text = f"func.func @f({arguments}) {attributes} {{\n{constants}\n{body}\nfunc.return\n}}"
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


def loop_of(module: ModuleOp) -> ForOp:
    return next(op for op in module.walk() if isinstance(op, ForOp))


def named(module: ModuleOp, name: str) -> SSAValue:
    for op in module.walk():
        values = [*op.results]
        for region in op.regions:
            for block in region.blocks:
                values += block.args
        for value in values:
            if value.name_hint == name:
                return value
    raise KeyError(name)


# ---- trip counts


@pytest.mark.parametrize(
    ("lower", "upper", "step", "count"),
    [(0, 8, 1, 8), (0, 8, 3, 3), (-3, 4, 4, 2), (4, 4, 1, 0), (5, -5, 1, 0), (0, 1, 2**63 - 1, 1)],
)
def test_trip_count(lower: int, upper: int, step: int, count: int) -> None:
    assert trip_count(lower, upper, step) == count == len(range(lower, upper, step))


def test_constant_trip_count() -> None:
    module = parse("scf.for %i = %c1 to %c8 step %c3 {\n}")
    assert constant_trip_count(loop_of(module)) == 3
    module = parse("scf.for %i = %c1 to %c8 step %c0 {\n}")
    assert constant_trip_count(loop_of(module)) is None
    module = parse("scf.for %i = %c1 to %n step %c1 {\n}", "%n: index")
    assert constant_trip_count(loop_of(module)) is None


BOUNDS = """
%end = arith.addi %a, %c8 : index
%least = arith.minsi %end, %n : index
%most = arith.maxsi %end, %n : index
%rest = arith.remui %n, %c8 : index
%low = arith.andi %n, %c7 : index
%other = arith.addi %n, %c8 : index
%narrow = arith.addi %s, %t : i8
"""


def test_extents() -> None:
    module = parse(BOUNDS, "%a: index, %n: index, %s: i8, %t: i8")
    a, zero = named(module, "a"), named(module, "c0")
    assert constant_extent(a, named(module, "end")) == 8
    assert constant_extent(named(module, "c3"), named(module, "c7")) == 4
    assert constant_extent(a, named(module, "other")) is None
    assert extent_at_most(a, named(module, "least")) == 8
    assert extent_at_most(a, named(module, "most")) is None
    assert extent_at_most(zero, named(module, "rest")) == 7
    assert extent_at_most(zero, named(module, "low")) == 7
    assert extent_at_most(a, named(module, "rest")) is None


# ---- lanes

LANES = """
scf.for %i = %c0 to %n step %c1 {
  %twice = arith.muli %i, %c2 : index
  %next = arith.addi %i, %c1 : index
  %back = arith.subi %n, %i : index
  %none = arith.subi %next, %i : index
  %near = memref.load %X[%c0, %next] : memref<?x?xf32>
  %far = memref.load %X[%i, %c0] : memref<?x?xf32>
  %same = memref.load %X[%c0, %c0] : memref<?x?xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %same) -> (f32) {
    %t = arith.addf %s, %near : f32
    scf.yield %t : f32
  }
  %u = scf.for %k2 = %c0 to %n step %c1 iter_args(%v = %same) -> (f32) {
    scf.yield %v : f32
  }
}
"""


def test_lanes() -> None:
    module = parse(LANES, "%X: memref<?x?xf32>, %n: index")
    lanes = lanes_of(loop_of(module))
    growth = {value.name_hint: by for value, by in lanes.growth.items()}
    assert growth == {"i": 1, "twice": 2, "next": 1, "back": -1}
    assert {value.name_hint for value in lanes.varying} == {"near", "far", "s", "t", "r"}
    assert all(lanes.is_uniform(named(module, name)) for name in ("same", "u", "v", "k", "none"))
    near, far, same = body_of(loop_of(module).body.block).accesses
    assert lanes.is_contiguous_access(near) and not lanes.is_uniform_access(near)
    assert not lanes.is_contiguous_access(far)
    assert lanes.is_uniform_access(same)


# ---- aliasing

MEMORY = """
%p = memref.alloca() : memref<8xf32>
%q = memref.alloca() : memref<8xf32>
%pc = "memref.cast"(%p) : (memref<8xf32>) -> memref<?xf32>
%pr = memref.reinterpret_cast %p to offset: [0], sizes: [2, 4], strides: [4, 1] : memref<8xf32> to memref<2x4xf32>
%v0 = "memref.view"(%arena, %c0) : (memref<?xi8>, index) -> memref<4xf32>
%v16 = "memref.view"(%arena, %c16) : (memref<?xi8>, index) -> memref<4xf32>
%w16 = "memref.view"(%arena, %c16) : (memref<?xi8>, index) -> memref<2xf32>
%either = arith.select %b, %x, %y : memref<?xf32>
%mine = arith.select %b, %x, %pc : memref<?xf32>
"""
MEMORY_ARGUMENTS = "%x: memref<?xf32>, %y: memref<?xf32>, %arena: memref<?xi8>, %b: i1"
ALIAS = [
    ("p", "p", True, True),
    ("p", "q", False, False),
    ("p", "pc", True, True),
    ("pr", "pc", True, True),
    ("p", "x", False, False),
    ("x", "y", True, False),
    ("v0", "v16", True, False),
    ("v16", "w16", True, True),
    ("v0", "arena", True, True),
    ("v0", "x", True, False),
    ("v0", "p", False, False),
    ("either", "x", True, True),
    ("either", "p", False, False),
    ("either", "v0", True, False),
    ("mine", "p", True, True),
    ("mine", "q", False, False),
    ("mine", "y", True, False),
    ("mine", "either", True, True),
]


@pytest.mark.parametrize(("left", "right", "plain", "noalias"), ALIAS)
def test_may_alias(left: str, right: str, plain: bool, noalias: bool) -> None:
    for attributes, expected in (("", plain), ("attributes {loop.noalias}", noalias)):
        module = parse(MEMORY, MEMORY_ARGUMENTS, attributes)
        a, b = named(module, left), named(module, right)
        assert may_alias(a, b) == may_alias(b, a) == expected


def test_overlap_of_neighbours() -> None:
    module = parse(
        """
        %p = memref.alloca() : memref<16xf32>
        %a = vector.load %p[%c0] : memref<16xf32>, vector<4xf32>
        %b = vector.load %p[%c4] : memref<16xf32>, vector<4xf32>
        %c = memref.load %p[%c3] : memref<16xf32>
        %d = memref.load %p[%n] : memref<16xf32>
        """,
        "%n: index",
    )
    a, b, c, d = body_of(module.body.block).accesses
    assert not overlap_possible(a, b)
    assert overlap_possible(a, c) and not overlap_possible(b, c)
    assert overlap_possible(d, a)


# ---- dependences


def test_linear_form() -> None:
    module = parse(
        "%a = arith.muli %n, %c3 : index\n%b = arith.addi %a, %c4 : index\n"
        "%c = arith.subi %b, %n : index\n%d = arith.subi %c, %c : index",
        "%n: index",
    )
    n = named(module, "n")
    assert linear_form(named(module, "b")) == ({n: 3}, 4)
    assert linear_form(named(module, "c")) == ({n: 2}, 4)
    assert linear_form(named(module, "d")) == ({}, 0)


def dependence(read: str, write: str, upper: str = "%n", step: str = "%c1") -> str | None:
    module = parse(
        f"""
        scf.for %i = %c0 to {upper} step {step} {{
          %twice = arith.muli %i, %c2 : index
          %odd = arith.addi %twice, %c1 : index
          %next = arith.addi %i, %c1 : index
          %far = arith.addi %i, %c8 : index
          %moved = arith.addi %i, %d : index
          %also = arith.addi %d, %i : index
          %v = memref.load %x[{read}] : memref<?xf32>
          memref.store %v, %x[{write}] : memref<?xf32>
        }}
        """,
        "%x: memref<?xf32>, %n: index, %d: index",
    )
    return carried_dependence(loop_of(module))


def test_dependences() -> None:
    assert dependence("%i", "%i") is None
    assert dependence("%twice", "%odd") is None  # even and odd never meet
    assert dependence("%moved", "%also") is None  # the same sum
    assert dependence("%i", "%next") == "%x is written and used again over 1 iterations"
    assert dependence("%next", "%i") == "%x is written and used again over 1 iterations"
    assert dependence("%i", "%moved") == "%x is written and used again at an unknown distance"
    assert dependence("%i", "%twice") == "%x is written and used again at an unknown distance"
    assert dependence("%i", "%c0") is not None
    assert dependence("%far", "%i", "%c8") is None  # eight apart, eight iterations
    assert dependence("%far", "%i", "%c16") == "%x is written and used again over 8 iterations"
    assert dependence("%next", "%i", step="%c2") is None
    assert dependence("%next", "%i", step="%d") is not None


def test_offset_ranges_that_only_look_alike() -> None:
    """Writing a[1..15] and reading a[0..14] shares fourteen elements, one iteration apart."""
    module = parse(
        """
        scf.for %i = %c1 to %c16 step %c1 {
          %j = arith.subi %i, %c1 : index
          %v = memref.load %a[%j] : memref<16xf32>
          memref.store %v, %a[%i] : memref<16xf32>
        }
        """,
        "%a: memref<16xf32>",
    )
    loop = loop_of(module)
    read, write = body_of(loop.body.block).accesses
    assert abs(carried_distance(read, write, loop) or 0) == 1
    assert carried_dependence(loop) == "%a is written and used again over 1 iterations"


def test_values_that_change_inside_do_not_cancel() -> None:
    module = parse(
        """
        scf.for %i = %c0 to %n step %c1 {
          scf.for %k = %c0 to %n step %c1 {
            %j = arith.addi %i, %k : index
            %v = memref.load %x[%j] : memref<?xf32>
            memref.store %v, %x[%j] : memref<?xf32>
          }
        }
        """,
        "%x: memref<?xf32>, %n: index",
    )
    assert carried_dependence(loop_of(module)) is not None


# ---- order of axes and the schedule


def test_orders() -> None:
    assert is_permutation((1, 0), 2) and is_permutation((), 0)
    assert not is_permutation((1, 1), 2) and not is_permutation((0, 2), 2)
    nest = next(
        op
        for op in parse(
            "loop.nest (%i, %k, %l) = (%c0, %c0, %c0) to (%c8, %c8, %c8) step (1, 1, 1)"
            " kinds [parallel, reduction, reduction] {\n}"
        ).walk()
        if isinstance(op, NestOp)
    )
    assert keeps_reductions_in_order(nest, (1, 0, 2)) and keeps_reductions_in_order(nest, (1, 2, 0))
    assert not keeps_reductions_in_order(nest, (0, 2, 1))


def test_balanced_rows() -> None:
    assert [balanced(extent, 6) for extent in (1, 5, 6, 7, 9, 12, 13, 64)] == [
        1,
        5,
        6,
        4,
        5,
        6,
        5,
        6,
    ]
    assert balanced(0, 8) == 8
    v3 = LEVELS["x86-64-v3"]
    assert rows_for(9, v3) == (5, 0) and rows_for(None, v3) == (6, 4)
    assert rows_for(64, v3) == (6, 4) and rows_for(1000, v3) == (6, 0)
    assert rows_for(8, v3) == (4, 0) and rows_for(9, LEVELS["x86-64-v1"]) == (2, 0)


def test_groups_of_two_sizes_cover_everything_and_waste_little() -> None:
    for large, small in ((6, 4), (8, 4), (5, 2), (3, 2)):
        for trips in range(60):
            first = in_large_groups(trips, large, small)
            assert first % large == 0 and first < trips + large
            done = iterations_done(trips, large, small)
            assert trips <= done <= -(-trips // large) * large
    assert [iterations_done(trips, 6, 4) for trips in range(1, 14)] == [
        *(4, 4, 4, 4, 6, 6),
        *(8, 8, 10, 10, 12, 12, 14),
    ]


def test_multiples() -> None:
    module = parse(
        """
        %k = arith.muli %n, %c16 : index
        scf.for %b = %c8 to %k step %c4 {
          %e = arith.addi %b, %c8 : index
          %m = arith.minsi %e, %k : index
          %o = arith.addi %b, %c2 : index
        }
        """,
        "%n: index",
    )
    assert all(is_multiple_of(named(module, name), 4) for name in ("k", "b", "e", "m", "c8"))
    assert not any(is_multiple_of(named(module, name), 4) for name in ("n", "o", "c7"))
    assert not is_multiple_of(named(module, "b"), 8)


def test_next_power_of_two() -> None:
    assert [next_power_of_two(n) for n in (1, 2, 3, 8, 10, 32)] == [1, 2, 4, 8, 16, 32]


def facts(**changes: object) -> NestFacts:
    given: dict = {
        "kinds": (PARALLEL,),
        "extents": (None,),
        "at_most": None,
        "contiguous": True,
        "encloses_loops": False,
        "accumulators": "none",
        "streams": 2,
        "element_bytes": 4,
        "operations": 20,
        "functions": 0,
        "shares": True,
        "private_bytes": 0,
        "lane_bytes": 0,
        "along": False,
        "read_bytes": None,
        "written_bytes": None,
        "row": None,
        "sweeps": 0,
        "partial": False,
    }
    return NestFacts(**(given | changes))


def test_schedules() -> None:
    """What is said of one thread and its caches; `stream` and `threads` have tests of their own."""
    v3 = LEVELS["x86-64-v3"]

    def chosen(facts: NestFacts, level: Level = v3) -> Schedule:
        return choose_schedule(facts, level).without("stream", "prefetch", "threads")

    assert chosen(facts()) == Schedule(vector=8)
    assert chosen(facts(element_bytes=8)) == Schedule(vector=4)
    assert chosen(facts(operations=4)) == Schedule(vector=8, unroll=2)
    assert chosen(facts(extents=(32,), operations=4)) == Schedule(vector=32)
    assert chosen(facts(extents=(5,))) == Schedule(vector=8)
    assert not chosen(facts(contiguous=False))
    assert not chosen(facts(kinds=(REDUCTION,)))
    assert not chosen(facts(kinds=(REDUCTION,), operations=5))
    dots = facts(encloses_loops=True, accumulators="arrays", contiguous=False)
    assert chosen(dots) == Schedule(tile=(3,), jam=(3,))
    rows = facts(encloses_loops=True, accumulators="scalars", contiguous=False)
    assert chosen(rows) == Schedule(jam=(4,))


@pytest.mark.parametrize(
    ("features", "rows", "columns"),
    [("x86-64-v1", (2, 0), 4), ("x86-64-v3", (6, 4), 16), ("x86-64-v4", (8, 4), 32)],
)
def test_register_tiles(features: str, rows: tuple[int, int], columns: int) -> None:
    product = facts(
        kinds=(PARALLEL, PARALLEL),
        extents=(None, None),
        encloses_loops=True,
        accumulators="scalars",
    )
    schedule = choose_schedule(product, LEVELS[features])
    assert schedule.tile == (0, columns) and schedule.vector == columns
    assert schedule.order == (1, 0) and (schedule.jam, schedule.rest) == ((rows[0], 1), rows[1])


@pytest.mark.parametrize(
    ("features", "lane_bytes", "rows"),
    [("x86-64-v4", 256, 4), ("x86-64-v3", 128, 4), ("x86-64-v3", 256, 2), ("x86-64-v2", 256, 1)],
)
def test_rows_abreast_have_their_accumulators_in_registers(
    features: str, lane_bytes: int, rows: int
) -> None:
    given = facts(
        encloses_loops=True,
        accumulators="arrays",
        contiguous=False,
        shares=False,
        lane_bytes=lane_bytes,
    )
    assert choose_schedule(given, LEVELS[features]).jam == ((rows,) if rows > 1 else ())


@pytest.mark.parametrize(
    ("row", "read_bytes", "sweeps", "abreast"),
    [
        (4096, None, 1, False),
        (128, None, 1, True),
        (None, None, 1, True),
        (1024, 1 << 20, 2, True),
        (1024, 1 << 24, 2, False),
        (128, 1 << 24, 2, True),
    ],
)
def test_long_rows_from_memory_are_one_stream(
    row: int | None, read_bytes: int | None, sweeps: int, abreast: bool
) -> None:
    given = facts(
        encloses_loops=True,
        accumulators="arrays",
        contiguous=False,
        shares=False,
        lane_bytes=128,
        row=row,
        read_bytes=read_bytes,
        sweeps=sweeps,
    )
    chosen = choose_schedule(given, LEVELS["x86-64-v4"])
    assert (chosen.jam == (4,)) is abreast and chosen.threads


@pytest.mark.parametrize(
    ("along", "read_bytes", "prefetch"),
    [(True, 1 << 24, 8192), (True, 1 << 20, 0), (True, None, 0), (False, 1 << 24, 0)],
)
def test_what_comes_from_memory_is_announced(
    along: bool, read_bytes: int | None, prefetch: int
) -> None:
    chunks = facts(kinds=(REDUCTION,), encloses_loops=True, along=along, read_bytes=read_bytes)
    assert choose_schedule(chunks, LEVELS["x86-64-v4"]) == Schedule(prefetch=prefetch)


def test_results_that_are_written_row_by_row_may_be_large() -> None:
    row = facts(extents=(1024,), operations=9, written_bytes=1 << 24)
    assert choose_schedule(row, LEVELS["x86-64-v4"]).stream
    row = facts(extents=(1024,), operations=9, written_bytes=1 << 20)
    assert not choose_schedule(row, LEVELS["x86-64-v4"]).stream


def test_lanes_of_one_loop_count_together() -> None:
    module = parse(
        """
        loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
          %a = memref.alloca() : memref<32xi32>
          %b = memref.alloca() : memref<32xi32>
          %c = memref.alloca() : memref<32xf32>
          %other = memref.alloca() : memref<40xf32>
          loop.nest (%l) = (%c0) to (%c8) step (1) kinds [parallel] {
            memref.store %one, %a[%l] : memref<32xi32>
            memref.store %one, %b[%l] : memref<32xi32>
          }
          loop.nest (%l) = (%c0) to (%c8) step (1) kinds [parallel] {
            memref.store %half, %c[%l] : memref<32xf32>
            memref.store %half, %other[%n] : memref<40xf32>
          }
        }
        """,
        "%n: index, %one: i32, %half: f32",
    )
    found = facts_of(next(op for op in module.walk() if isinstance(op, NestOp)))
    assert (found.lane_bytes, found.private_bytes) == (256, 3 * 128 + 160)


def test_facts_of_a_matmul() -> None:
    module = parse(
        """
        loop.nest (%i, %j) = (%c0, %c0) to (%c8, %n) step (1, 1) kinds [parallel, parallel] {
          %acc = memref.alloca() : memref<f32>
          loop.nest (%k) = (%c0) to (%n) step (1) kinds [reduction] {
            %a = memref.load %A[%i, %k] : memref<?x?xf32>
            %b = memref.load %B[%k, %j] : memref<?x?xf32>
            %s = memref.load %acc[] : memref<f32>
            %t = math.fma %a, %b, %s : f32
            memref.store %t, %acc[] : memref<f32>
          }
        }
        """,
        "%A: memref<?x?xf32>, %B: memref<?x?xf32>, %n: index",
    )
    found = facts_of(next(op for op in module.walk() if isinstance(op, NestOp)))
    assert found.kinds == (PARALLEL, PARALLEL) and found.extents == (8, None)
    assert found.contiguous and found.encloses_loops and found.accumulators == "scalars"
    assert found.element_bytes == 4
