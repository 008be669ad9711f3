"""Overrides of schedules: their text, one error where a nest cannot do what it shall, the same bits where it can."""

from __future__ import annotations

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, program
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

import jitdialects as jd
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.dialects.context import make_context
from jitdialects.dialects.schedules import Schedule, parse_overrides, parse_schedule
from jitdialects.errors import CompileError, ConfigError
from jitdialects.lowering.pipelines import loop_passes, lower_program

# ---- text


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule(vector=8, unroll=4, stream=4096, threads=1000),
        Schedule(tile=(0, 16), order=(1, 0), vector=16, jam=(6, 1), pack=4),
    ],
)
def test_text_and_schedule_are_inverse(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule


def test_overrides_name_numbers_and_families() -> None:
    text = " elementwise : vector=4,unroll = 2 ; 12: tile = [ 0,16 ];;"
    assert parse_overrides(text) == {
        "elementwise": Schedule(vector=4, unroll=2),
        12: Schedule(tile=(0, 16)),
    }
    assert parse_overrides("") == {}


WRONG = {
    "vector = 8": "is no override",
    "gemm: vector = 8": "is no override",
    "0: speed = 8": "speed is no key",
    "0: vector = fast": "needs a whole number",
    "0: tile = 8": "needs a list of whole numbers",
    "0: jam = [a]": "needs a list of whole numbers",
    "0: vector": "is no field of a schedule",
    "0: vector = 8, vector = 4": "vector is given twice",
    "0: vector = 8; 0: vector = 4": "0 is given twice",
    "0: vector = -8": "are counts",
    "0: tile = [-1]": "a tile size is negative",
    "0: order = [1, 1]": "is no permutation",
    "0: jam = [0]": "a jam factor is less than 1",
}


@pytest.mark.parametrize(("text", "why"), WRONG.items())
def test_do_not_accept_text_that_says_no_schedule(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_overrides(text)
    with pytest.raises(ConfigError, match=why):
        jd.jit(lambda x: x, schedule=text)
    with pytest.raises(ConfigError, match=why):
        jd.Policy(schedule=text)


def test_do_not_accept_a_schedule_that_is_no_text() -> None:
    with pytest.raises(ConfigError, match="needs text"):
        jd.Policy(schedule=8)  # type: ignore[arg-type]


# ---- what a nest cannot do is one error with the predicate and the nest

SUM = """
  %acc = memref.alloca() : memref<f32>
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [reduction] {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = memref.load %acc[] : memref<f32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %acc[] : memref<f32>
  }"""
COPY = """
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %a = memref.load %x[%i] : memref<?xf32>
    memref.store %a, %y[%i] : memref<?xf32>
  }"""
IN_PLACE = COPY.replace("%y", "%x")
SUMS = """
  %acc = memref.alloca() : memref<f32>
  loop.nest (%i, %j) = (%c0, %c0) to (%n, %n) step (1, 1) kinds [reduction, reduction] {
    %a = memref.load %x[%i] : memref<?xf32>
    memref.store %a, %acc[] : memref<f32>
  }"""
GATHER = """
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %j = arith.muli %i, %i : index
    %a = memref.load %x[%j] : memref<?xf32>
    memref.store %a, %y[%i] : memref<?xf32>
  }"""

REFUSED = {
    "lists": (
        COPY,
        "0: tile = [8, 8]",
        "loop-schedule: nest 0 .elementwise.: tile of the schedule has 2",
    ),
    "number": (COPY, "3: vector = 8", "loop-schedule: there is no nest 3; the program has 1"),
    "tile": (SUM, "0: tile = [8]", "loop-tile: nest 0 .reduction.: a tiled axis is a reduction"),
    "order": (
        SUMS,
        "0: order = [1, 0]",
        "loop-interchange: nest 0 .reduction.: two reduction axes",
    ),
    "vector": (SUM, "0: vector = 8", "loop-vectorize: nest 0 .reduction.: it carries values"),
    "vector of strides": (
        GATHER,
        "0: vector = 8",
        "loop-vectorize: nest 0 .other.: an access is not at unit",
    ),
    "jam": (SUM, "0: jam = [2]", "loop-unroll-and-jam: nest 0 .reduction.: "),
    "pack": (
        COPY,
        "elementwise: pack = 2",
        "loop-pack: nest 0 .elementwise.: nothing that the loops inside",
    ),
    "threads": (SUM, "0: threads = 64", "loop-parallelize: nest 0 .reduction.: it carries values"),
    "stream": (
        COPY,
        "0: stream = 64",
        "loop-stream: nest 0 .elementwise.: a store is no whole vector",
    ),
    "stream in place": (
        IN_PLACE,
        "0: vector = 8, stream = 64",
        "loop-stream: nest 0 .elementwise.: it reads",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_do_not_carry_out_what_is_not_legal(name: str) -> None:
    nest, override, why = REFUSED[name]
    text = (
        "func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {loop.noalias} {"
        f"%c0 = arith.constant 0 : index {nest}\n func.return }}"
    )
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    with pytest.raises(PassFailedException, match=why):
        for each in loop_passes("x86-64-v3", override)[1:]:
            each.apply(ctx, module)


# ---- what it can do changes no bit


def _norm(main: FunctionBuilder) -> None:
    x, w = main.parameters
    y = main.apply("matmul", x, w)
    total = main.apply("sum", y, axis=-1, keepdims=True)
    main.returns(main.apply("subtract", y, total))


OVERRIDES = [
    "elementwise: vector = 4, unroll = 3, threads = 64",
    "product: tile = [0, 8], vector = 8, jam = [3, 1]",
    "product: jam = [2, 2]; elementwise:",
    "reduction:; other:; product:; strided-product:; elementwise:",
]


@pytest.mark.parametrize("override", OVERRIDES)
def test_no_schedule_changes_a_result(override: str) -> None:
    made = program(2, _norm)
    signature = parse("main(f32[m,k], f32[k,n])")
    code = Compiled(made, signature, override=override)
    rng = np.random.default_rng(3)
    for m, k, n in ((1, 1, 1), (7, 33, 19), (40, 12, 70)):
        arguments = [rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n))]
        assert_same(code.run(arguments), by_oracle(made, arguments), f"{m}, {k}, {n}")
    assert any(line.endswith("(product)") for line in code.facts.schedules)


def test_jit_takes_a_schedule_and_explain_shows_it() -> None:
    def double(x: np.ndarray) -> np.ndarray:
        return x + x

    x = np.arange(1000, dtype=np.float32)
    plain, other = jd.jit(double), jd.jit(double, schedule="elementwise: vector = 4")
    for each in (plain, other):
        for _ in range(12):
            each(x)
        each.wait()
        np.testing.assert_array_equal(each(x), x + x)
    assert "nest 0: vector = 4 (elementwise)" in jd.explain(other)
    assert "nest 0: vector = 4 (elementwise)" not in jd.explain(plain)
    assert "vector<4xf32>" in other.lower(x, stage="scf")


def test_a_schedule_that_is_not_legal_is_explained_and_interpreted() -> None:
    wrong = jd.jit(lambda x: x * 3, schedule="9: vector = 4")
    x = np.arange(10, dtype=np.float32)
    for _ in range(12):
        np.testing.assert_array_equal(wrong(x), x * 3)
    wrong.wait()
    assert "loop-schedule: there is no nest 9" in jd.explain(wrong)
    with pytest.raises((CompileError, PassFailedException), match="there is no nest 9"):
        wrong.lower(x, stage="scf")


def test_every_nest_has_a_line_that_is_an_override() -> None:
    made, signature = program(2, _two_nests), parse("main(f32[n], f32[64,32])")
    _, facts = lower_program(made, signature, "x86-64-v3")
    assert len(facts.schedules) == 2
    text = "; ".join(line.rpartition(" (")[0] for line in facts.schedules)
    _, again = lower_program(made, signature, "x86-64-v3", schedule=text)
    assert again.schedules == facts.schedules


def _two_nests(main: FunctionBuilder) -> None:
    x, y = main.parameters
    main.returns(main.apply("add", x, x), main.apply("multiply", y, y))


@pytest.mark.parametrize(
    "types", ["f32[n,k], f32[k,m]", "f32[5,300], f32[300,256]", "f64[61,99], f64[99,m]"]
)
def test_what_explain_shows_is_accepted_back(types: str) -> None:
    def product(main: FunctionBuilder) -> None:
        main.returns(main.apply("matmul", *main.parameters))

    bytecode = program(2, product)
    signature = parse(f"main({types})")
    chosen = lower_program(bytecode, signature, "x86-64-v3")[1].schedules
    override = "; ".join(line.rpartition(" (")[0] for line in chosen)
    again = lower_program(bytecode, signature, "x86-64-v3", schedule=override)[1].schedules
    assert again == chosen
