"""The dominance checker accepts what MLIR accepts and names the value that it refuses."""

from __future__ import annotations

import random

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, cf, func, scf, test
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from jitdialects.analysis.dominance import check_dominance, immediate_dominators


def parse(text: str) -> builtin.ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, func.Func, cf.Cf, scf.Scf, arith.Arith, test.Test):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


DIAMOND = """
func.func @f(%c : i1) {{
  %x = "test.op"() : () -> i32
  cf.cond_br %c, ^a, ^b
^a:
  %y = "test.op"(%x) : (i32) -> i32
  cf.br ^join
^b:
  cf.br ^join
^join:
  "test.op"({used}) : (i32) -> ()
  func.return
}}
"""


def test_accepts_a_value_from_the_dominating_block() -> None:
    check_dominance(parse(DIAMOND.format(used="%x")))


def test_refuses_a_value_from_one_arm_at_the_join() -> None:
    """apache/tvm#20191: what one branch makes does not exist after the other."""
    with pytest.raises(VerifyException, match="value '%y', result 0 of 'test.op'.*by 'test.op'"):
        check_dominance(parse(DIAMOND.format(used="%y")))


def test_refuses_a_use_before_the_definition_in_one_block() -> None:
    module = parse('"test.op"(%x) : (i32) -> ()\n%x = "test.op"() : () -> i32')
    with pytest.raises(VerifyException, match="'%x'.* does not dominate"):
        check_dominance(module)


def test_refuses_an_operation_that_uses_its_own_result() -> None:
    with pytest.raises(VerifyException, match="'%x'"):
        check_dominance(parse('%x = "test.op"(%x) : (i32) -> i32'))


def test_refuses_a_value_that_leaves_its_region() -> None:
    inner = test.TestOp(result_types=[builtin.i32])
    inner.results[0].name_hint = "x"
    outer = test.TestOp(regions=[Region(Block([inner]))])
    user = test.TestOp(operands=[inner.results[0]])  # the parser would refuse such a text
    with pytest.raises(VerifyException, match="'%x'"):
        check_dominance(builtin.ModuleOp([outer, user]))


def test_accepts_outer_values_in_a_nested_region_and_loop_carried_ones() -> None:
    check_dominance(
        parse("""
    func.func @f(%n : index, %x : i32) -> i32 {
      %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (i32) {
        %b = arith.addi %a, %x : i32
        scf.yield %b : i32
      }
      func.return %r : i32
    }""")
    )


def test_refuses_outer_values_in_an_isolated_region() -> None:
    text = """
    %x = "test.op"() : () -> i32
    func.func @f() {
      "test.op"(%x) : (i32) -> ()
      func.return
    }
    """
    with pytest.raises(VerifyException, match="'%x'"):
        check_dominance(parse(text))


def test_accepts_a_loop_and_refuses_its_value_before_the_header() -> None:
    loop = """
    func.func @f(%c : i1, %x : i32) {{
      cf.br ^head(%x : i32)
    ^head(%i : i32):
      "test.op"({used}) : (i32) -> ()
      cf.cond_br %c, ^body, ^exit
    ^body:
      %j = "test.op"(%i) : (i32) -> i32
      cf.br ^head(%j : i32)
    ^exit:
      func.return
    }}
    """
    check_dominance(parse(loop.format(used="%i")))
    with pytest.raises(VerifyException, match="'%j'"):
        check_dominance(parse(loop.format(used="%j")))


def test_a_use_in_an_unreachable_block_is_not_judged() -> None:
    check_dominance(
        parse("""
    func.func @f() {
      func.return
    ^dead:
      "test.op"(%x) : (i32) -> ()
      %x = "test.op"() : () -> i32
      func.return
    }""")
    )


def test_dominators_of_an_irreducible_loop() -> None:
    module = parse("""
    func.func @f(%c : i1) {
      cf.cond_br %c, ^a, ^b
    ^a:
      cf.br ^b
    ^b:
      cf.cond_br %c, ^a, ^end
    ^end:
      func.return
    }""")
    (function,) = module.ops
    entry, a, b, end = function.regions[0].blocks
    assert immediate_dominators(function.regions[0]) == {entry: entry, a: entry, b: entry, end: b}


def test_a_long_chain_of_blocks_needs_no_recursion() -> None:
    chain = "".join(f"^b{i}:\n cf.br ^b{i + 1}\n" for i in range(1500))
    check_dominance(parse(f"func.func @f() {{\n cf.br ^b0\n{chain}^b1500:\n func.return\n}}"))


def test_dominators_of_random_graphs_are_those_of_the_definition() -> None:
    """A block dominates those that cannot be reached without it; loops of several entries included."""
    rng = random.Random(7)
    for _ in range(150):
        blocks = [Block() for _ in range(rng.randint(1, 12))]
        for block in blocks:
            targets = rng.choices(blocks, k=rng.randint(0, 3))
            block.add_op(test.TestTermOp(successors=targets))
        idom = immediate_dominators(Region(blocks))
        reached = _reached(blocks[0], None)
        assert idom.keys() == reached
        for block in reached:
            strict = {d for d in reached - {block} if block not in _reached(blocks[0], d)}
            nearest = [
                d for d in strict if all(e is d or d not in _reached(blocks[0], e) for e in strict)
            ]
            assert [idom[block]] == (nearest or [blocks[0]])


def _reached(entry: Block, without: Block | None) -> set[Block]:
    seen = set[Block]()
    work = [entry]
    while work:
        block = work.pop()
        if block is not without and block not in seen:
            seen.add(block)
            assert block.last_op is not None
            work.extend(block.last_op.successors)
    return seen
