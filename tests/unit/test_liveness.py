"""Liveness over a control-flow graph, and which ranges overlap."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from jitdialects.analysis.liveness import Liveness, Occupied, joined
from jitdialects.dialects.context import make_context

LOOP = """
func.func @f(%x : i64, %c : i1) -> i64 {
  %a = arith.addi %x, %x : i64
  cf.br ^loop(%a : i64)
^loop(%v : i64):
  %w = arith.addi %v, %x : i64
  %u = arith.addi %w, %w : i64
  cf.cond_br %c, ^loop(%w : i64), ^done
^done:
  func.return %a : i64
}
"""


def function(text: str) -> FuncOp:
    (op,) = Parser(make_context(), text).parse_module().ops
    assert isinstance(op, FuncOp)
    return op


def named(func: FuncOp) -> dict[str, SSAValue]:
    values = [
        v for b in func.body.blocks for v in (*b.args, *(r for o in b.ops for r in o.results))
    ]
    return {v.name_hint or "": v for v in values}


def test_live_in_and_out() -> None:
    func = function(LOOP)
    values = named(func)
    live = Liveness(func.body)
    entry, loop, done = func.body.blocks
    assert live.live_in[entry] == set()
    assert live.live_out[entry] == {values["x"], values["c"], values["a"]}
    assert live.live_in[loop] == {values["x"], values["c"], values["a"]}
    assert live.live_out[loop] == {values["x"], values["c"], values["a"]}
    assert live.live_in[done] == {values["a"]}


def test_ranges_end_at_the_last_reader_or_with_the_block() -> None:
    func = function(LOOP)
    values = named(func)
    live = Liveness(func.body)
    entry, loop, done = func.body.blocks
    at = {op.results[0].name_hint: live.position[op] for op in loop.ops if op.results}
    branch = live.end[loop]
    assert list(live.ranges(values["v"])) == [(live.begin[loop], at["w"])]
    assert list(live.ranges(values["w"])) == [(at["w"], branch)]
    assert list(live.ranges(values["u"])) == [(at["u"], at["u"])]  # nobody reads it
    assert list(live.ranges(values["a"])) == [
        (1, live.end[entry]),
        (live.begin[loop], branch),
        (live.begin[done], live.end[done]),
    ]


def test_what_a_region_reads_from_outside_is_read_by_its_operation() -> None:
    func = function("""
    func.func @f(%x : i64, %c : i1) {
      %a = arith.addi %x, %x : i64
      scf.if %c {
        %b = arith.addi %a, %a : i64
      }
      func.return
    }""")
    live = Liveness(func.body)
    assert list(live.ranges(named(func)["a"])) == [(1, 2)]


def test_a_value_of_a_later_block_in_an_inner_loop_is_alive_around_it() -> None:
    func = function("""
    func.func @f(%x : i64, %c : i1) -> i64 {
      cf.br ^outer
    ^outer:
      %a = arith.addi %x, %x : i64
      cf.br ^inner
    ^inner:
      cf.cond_br %c, ^inner, ^after
    ^after:
      %b = arith.addi %a, %a : i64
      cf.cond_br %c, ^outer, ^done
    ^done:
      func.return %b : i64
    }""")
    live = Liveness(func.body)
    inner = func.body.blocks[2]
    assert named(func)["a"] in live.live_in[inner] & live.live_out[inner]


def test_ranges_that_share_a_position_are_joined() -> None:
    assert list(joined([(3, 5), (1, 3), (6, 7), (6, 6)])) == [(1, 5), (6, 7)]
    assert not list(joined([]))


def meeting(occupied: Occupied[str], first: int, last: int) -> list[tuple[int, int, str]]:
    return [(*both, owner) for both, owner in occupied.meeting((first, last))]


def test_what_meets_a_range_is_closed_stretches_with_their_owners() -> None:
    occupied = Occupied[str]()
    assert meeting(occupied, 0, 9) == []
    for range, owner in (((7, 9), "c"), ((1, 3), "a"), ((3, 3), "b"), ((3, 5), "d")):
        occupied.add(range, owner)
    assert meeting(occupied, 3, 3) == [(3, 3, "a"), (3, 3, "b"), (3, 3, "d")]
    assert meeting(occupied, 4, 8) == [(4, 5, "d"), (7, 8, "c")]
    assert meeting(occupied, 6, 6) == []
    assert meeting(occupied, 10, 12) == []
