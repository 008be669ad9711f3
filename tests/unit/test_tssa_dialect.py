"""`tssa`: text round trips, and what its verifiers refuse."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from jitdialects.bytecode.dims import add, symbol
from jitdialects.bytecode.dtypes import BOOL, FLOAT32
from jitdialects.dialects.tssa import TSSA
from jitdialects.dialects.tssa_types import dtype_of, guards_of, shape_of, tensor_type

N8 = "tensor<?x8xf32, #tssa.dims<[n, 8]>>"
N = "tensor<?xf32, #tssa.dims<[n]>>"


def parse(body: str):
    ctx = Context()
    for dialect in (Builtin, Func, Test, TSSA):
        ctx.load_dialect(dialect)
    module = Parser(ctx, body).parse_module()
    module.verify()
    return module, ctx


def values(*types: str) -> str:
    names = ", ".join(f"%{i}" for i in range(len(types)))
    return f'{names} = "test.op"() : () -> ({", ".join(types)})\n'


ROUND_TRIPS = [
    values(N8, N8) + f"%r = tssa.add %0, %1 : ({N8}, {N8}) -> {N8}",
    values(N) + f"%r = tssa.broadcast %0 : ({N}) -> tensor<2x?xf32, #tssa.dims<[2, n]>>",
    values(N8) + f"%r = tssa.sum %0 {{axes = array<i64: 1>}} : ({N8}) -> {N}",
    values(N8)
    + "%r = tssa.extract %0 {offsets = #tssa.dims<[max(n + -1 * s0, 0), 2]>, "
    + f"steps = array<i64: 1, 3>}} : ({N8}) -> tensor<2x2xf32>",
    values(N8)
    + f"%r = tssa.transpose %0 {{permutation = array<i64: 1, 0>}} : ({N8}) -> "
    + "tensor<8x?xf32, #tssa.dims<[8, n]>>",
    "%r = tssa.size {value = #tssa.dims<[2 * n + -3]>} : () -> tensor<i64>",
    "%r = tssa.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>",
    values(N, "memref<?xf32>", "memref<?xi8>")
    + "tssa.group ins(%1 : memref<?xf32>) outs(%2 : memref<?xi8>) {\n"
    + f"^bb0(%x : {N}):\n"
    + f"  %y = tssa.less %x, %x : ({N}, {N}) -> tensor<?xi1, #tssa.dims<[n]>>\n"
    + "  tssa.yield %y : tensor<?xi1, #tssa.dims<[n]>>\n}",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_text_round_trip(text: str) -> None:
    module, ctx = parse(text)
    again = Parser(ctx, str(module)).parse_module()
    again.verify()
    assert str(again) == str(module)
    assert again.is_structurally_equivalent(module)


REFUSED = [
    (values("tensor<?xf32>") + "%r = tssa.exp %0 : (tensor<?xf32>) -> tensor<?xf32>", "without"),
    (values("tensor<8xf16>") + "%r = tssa.abs %0 : (tensor<8xf16>) -> tensor<8xf16>", "none of"),
    (values(N8, N) + f"%r = tssa.add %0, %1 : ({N8}, {N}) -> {N8}", "broadcast first"),
    (values(N8) + f"%r = tssa.add %0 : ({N8}) -> {N8}", "expected 2 operand"),
    (values("tensor<i64>", "tensor<i1>")
     + "%r = tssa.add %0, %1 : (tensor<i64>, tensor<i1>) -> tensor<i64>", "promoted to"),
    (values("tensor<i64>") + "%r = tssa.sqrt %0 : (tensor<i64>) -> tensor<i64>", "promoted to float64"),
    (values(N8) + f"%r = tssa.sum %0 {{axes = array<i64: 1, 0>}} : ({N8}) -> {N}", "must be ascending"),
    (values(N8) + f"%r = tssa.sum %0 {{axes = array<i64: 1>}} : ({N8}) -> {N8}", "result shape"),
    (values(N8, N8) + f"%r = tssa.matmul %0, %1 : ({N8}, {N8}) -> {N8}", "inner sizes differ"),
    (values(N8) + f"%r = tssa.broadcast %0 : ({N8}) -> {N}", "broadcast"),
    (values("tensor<6xf32>") + "%r = tssa.reshape %0 : (tensor<6xf32>) -> tensor<4xf32>", "differ"),
    ("%r = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<f32>", "value of type"),
    (values("tensor<2xf32, #tssa.dims<[2]>>")
     + "%r = tssa.exp %0 : (tensor<2xf32, #tssa.dims<[2]>>) -> tensor<2xf32>", "must not carry"),
    (values(N, "memref<?xf32>")
     + "tssa.group ins(%1 : memref<?xf32>) outs(%1 : memref<?xf32>) {\n"
     + "^bb0(%x : tensor<?xi64, #tssa.dims<[n]>>):\n"
     + "  tssa.yield %x : tensor<?xi64, #tssa.dims<[n]>>\n}", "does not match"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_verifier_refuses(text: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        parse(text)


def test_an_unknown_function_in_a_size_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match="unknown function 'foo'"):
        parse(values("tensor<?xf32, #tssa.dims<[foo(n, 1)]>>"))


def test_types_are_canonical() -> None:
    n = symbol("n")
    dynamic = tensor_type(FLOAT32, (add(n, 1), 8))
    assert shape_of(dynamic) == (add(1, n), 8)
    assert dtype_of(dynamic) == FLOAT32
    assert str(tensor_type(BOOL, (2, 3))) == "tensor<2x3xi1>"


def test_guards_are_read_back() -> None:
    module, _ = parse(
        "func.func private @f() attributes {tssa.guards = [#tssa.guard<n == m>, #tssa.guard<1 <= n>]}"
    )
    (function,) = module.ops
    n = symbol("n")
    assert [g.data for g in guards_of(function)] == [("==", n, symbol("m")), ("<=", 1, n)]
