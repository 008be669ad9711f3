"""`jit-default`: its list is the one in the docs, every pass and every table of it is needed, no state."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.reconcile_unrealized_casts import ReconcileUnrealizedCastsPass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.bytecode import signature
from jitdialects.bytecode.builder import FunctionBuilder, ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.dialects.context import make_context
from jitdialects.errors import CompileError, Error
from jitdialects.lowering import (
    convert_arith_to_llvm,
    convert_cf_to_llvm,
    convert_func_to_llvm,
    convert_loop_to_llvm,
    convert_math_to_llvm,
    convert_memref_to_llvm,
    convert_to_llvm,
    convert_vector_to_llvm,
)
from jitdialects.lowering.bytecode_to_vm import program_to_module
from jitdialects.lowering.llvm_conversion import convert_module
from jitdialects.lowering.pipelines import JitDefaultPass, cpu_passes, lower_program
from jitdialects.runtime.engines.codegen import compile_llvm_module
from jitdialects.runtime.engines.llvm_text import llvm_ir
from jitdialects.runtime.identity import feature_level
from jitdialects.testing.filecheck import execute
from jitdialects.universe import JITDIALECTS_UNIVERSE

ROOT = Path(__file__).parents[2]
FEATURES = "x86-64-v3"


# ---- programs that are small and need many passes ----------------------------------------------


def _program(parameters: int, body: Callable[[FunctionBuilder], int]) -> Program:
    builder = ProgramBuilder()
    main = builder.function("main", parameters)
    main.returns(body(main))
    return builder.finish()


def _wasteful(main: FunctionBuilder) -> int:
    """2 * 3 to fold, --x to simplify, exp(x) twice, and a tanh that nobody reads."""
    (x,) = main.parameters
    six = main.apply("multiply", main.constant(2.0), main.constant(3.0))
    back = main.apply("negative", main.apply("negative", x))
    twice = main.apply("add", main.apply("exp", back), main.apply("exp", x))
    main.apply("tanh", twice)
    return main.apply("multiply", twice, six)


def _weights(main: FunctionBuilder) -> int:
    """A product with a constant matrix that is long enough to be an argument."""
    matrix = np.arange(8 * 40, dtype=np.float32).reshape(8, 40) / 64
    return main.apply("matmul", *main.parameters, main.constant(matrix))


def _count(main: FunctionBuilder) -> int:
    """A loop that reads a constant of the block before it, and takes the same root again and again."""
    (limit,) = main.parameters
    number, step = main.move(limit), main.constant(-2)
    head, exit = main.block("head"), main.block("exit")
    main.branch(head)
    main.enter(head)
    root = main.apply("sqrt", main.apply("cast", limit, dtype="float64"))
    main.apply("add", number, step, into=number)
    main.apply("minimum", number, main.apply("cast", root, dtype="int64"), into=number)
    main.branch_if(main.apply("greater", number, step), head, exit)
    main.enter(exit)
    return number


def _steps(main: FunctionBuilder) -> int:
    """A matrix that meets a vector again and again."""
    matrix, vector = main.parameters
    number, step, limit = main.move(main.constant(0)), main.constant(1), main.constant(100)
    result = main.move(vector)
    head, body, exit = main.block("head"), main.block("body"), main.block("exit")
    main.branch(head)
    main.enter(head)
    main.branch_if(main.apply("less", number, limit), body, exit)
    main.enter(body)
    main.apply("matmul", matrix, result, into=result)
    main.apply("add", number, step, into=number)
    main.branch(head)
    main.enter(exit)
    return result


def _choice(main: FunctionBuilder) -> int:
    """One number doubled or negated."""
    flag, x = main.parameters
    result, other, exit = main.move(x), main.block("other"), main.block("exit")
    main.apply("add", x, x, into=result)
    main.branch_if(flag, exit, other)
    main.enter(other)
    main.apply("negative", x, into=result)
    main.branch(exit)
    main.enter(exit)
    return result


PROGRAMS = {
    "square": (_program(1, lambda f: f.apply("multiply", *f.parameters * 2)), "main(f32[n])"),
    "loop": (_program(1, _count), "main(i64[])"),
    "steps": (_program(2, _steps), "main(f32[16,16], f32[16])"),
    "choice": (_program(2, _choice), "main(bool[], f32[])"),
    "wasteful": (_program(1, _wasteful), "main(f32[n])"),
    "matmul": (_program(2, lambda f: f.apply("matmul", *f.parameters)), "main(f32[m,9], f32[9,n])"),
    "weights": (_program(1, _weights), "main(f32[n,8])"),
    "sum": (_program(1, lambda f: f.apply("sum", *f.parameters)), "main(f32[n])"),
    "share": (_program(2, lambda f: f.apply("divide", *f.parameters)), "main(f32[n], f32[])"),
    "columns": (_program(1, lambda f: f.apply("max", *f.parameters, axis=0)), "main(f32[m,n])"),
}


@cache
def stages(name: str) -> tuple[ModuleOp, ...]:
    """The module before each pass of `jit-default`, and after the last."""
    program, text = PROGRAMS[name]
    module, ctx = program_to_module(program), make_context()
    found = [module.clone()]
    for each in cpu_passes(text, FEATURES):
        each.apply(ctx, module)
        found.append(module.clone())
    return tuple(found)


# ---- what passes make possible for each other -------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "signature"),
    [("sum", "main(f32[64,256])"), ("matmul", "main(f32[64,256], f32[256])")],
)
def test_lanes_of_a_row_are_never_in_memory(operator: str, signature: str) -> None:
    attributes = {"axis": 1} if operator == "sum" else {}
    count = signature.count("f32")
    module = program_to_module(
        _program(count, lambda f: f.apply(operator, *f.parameters, **attributes))
    )
    ctx = make_context()
    for each in cpu_passes(signature, FEATURES):
        if each.name == "expand-elementary":
            break
        each.apply(ctx, module)
    assert not [op for op in module.walk() if op.name == "memref.alloca"]


# ---- the list ----------------------------------------------------------------------------------


def names() -> list[str]:
    """What `jit-default{target=cpu}` runs."""
    return [p.name for p in JitDefaultPass("main(f32[n])", "cpu").passes()]


def test_the_list_is_the_one_in_the_docs() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    (listed,) = re.findall(
        r"^## The list behind jit-default$.*?```text\n(.*?)```", text, re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"[\w-]+", listed) == names()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_a_pass_that_the_docs_name_exists(page: str) -> None:
    families = "tssa|loop|llvm|convert|lower|expand"
    named = set(re.findall(rf"`((?:{families})-[a-z-]+)[`{{]", (ROOT / page).read_text()))
    assert named <= set(JITDIALECTS_UNIVERSE.all_passes)


def test_every_pass_is_in_the_list_or_made_of_its_tables() -> None:
    single = {f"convert-{d}-to-llvm" for d in TABLES}
    assert set(JITDIALECTS_UNIVERSE.all_passes) == {*names(), *single, "jit-default"}


# ---- every pass is needed ----------------------------------------------------------------------

NEEDED_BY = {
    "loop-stream": "square",
    "loop-prefetch": "square",
    "loop-divide-by-invariant": "share",
    "loop-unroll": "square",
    "tssa-align": "steps",
    "tssa-hoist": "loop",
    "tssa-if-convert": "choice",
    "tssa-sink-constants": "loop",
    "loop-schedule": "matmul",
    "loop-tile": "matmul",
    "loop-distribute": "columns",
    "loop-interchange": "matmul",
    "loop-pack-constants": "weights",
    "loop-pack": "matmul",
    "loop-unroll-and-jam": "matmul",
}
"""Pass -> the program that shows it. The others are shown by `wasteful`."""


def without(position: int, program: str) -> str:
    """The module after `jit-default` without one pass; raises where it does not reach LLVM."""
    module, ctx = stages(program)[position].clone(), make_context()
    for each in cpu_passes(PROGRAMS[program][1], FEATURES)[position + 1 :]:
        each.apply(ctx, module)
    module.verify()
    llvm_ir(module)
    return str(module)


def is_missed(position: int, program: str) -> bool:
    """Without the pass at `position` there is no code, or other code."""
    try:
        return without(position, program) != str(stages(program)[-1])
    except (PassFailedException, CompileError):
        return True


@pytest.mark.parametrize(("position", "name"), list(enumerate(names())))
def test_without_a_pass_there_is_no_code_or_other_code(position: int, name: str) -> None:
    hoists = [p for p, n in enumerate(names()) if n == "loop-hoist-accumulators"]
    by_position = dict(zip(hoists, ("matmul", "sum"), strict=True))
    program = by_position.get(position) or NEEDED_BY.get(name, "wasteful")
    assert is_missed(position, program), f"no difference to {program}"


def test_the_check_would_see_a_pass_that_is_not_needed() -> None:
    position = names().index("loop-pack-constants")
    assert not is_missed(position, "sum")


# ---- convert-to-llvm is seven tables -------------------------------------------------------------

TABLES = {
    "arith": convert_arith_to_llvm.TABLE,
    "cf": convert_cf_to_llvm.TABLE,
    "func": convert_func_to_llvm.TABLE,
    "loop": convert_loop_to_llvm.TABLE,
    "math": convert_math_to_llvm.TABLE,
    "memref": convert_memref_to_llvm.TABLE,
    "vector": convert_vector_to_llvm.TABLE,
}
SINGLE: tuple[ModulePass, ...] = (
    convert_vector_to_llvm.ConvertVectorToLlvmPass(),
    convert_memref_to_llvm.ConvertMemrefToLlvmPass(),
    convert_arith_to_llvm.ConvertArithToLlvmPass(),
    convert_math_to_llvm.ConvertMathToLlvmPass(),
    convert_cf_to_llvm.ConvertCfToLlvmPass(),
    convert_func_to_llvm.ConvertFuncToLlvmPass(),
    convert_loop_to_llvm.ConvertLoopToLlvmPass(),
    ReconcileUnrealizedCastsPass(),
)
ONE_WALK = names().index("convert-to-llvm")


def test_the_tables_are_the_whole_and_share_nothing() -> None:
    assert convert_to_llvm.TABLE == {k: v for table in TABLES.values() for k, v in table.items()}
    assert len(convert_to_llvm.TABLE) == sum(map(len, TABLES.values()))


@pytest.mark.parametrize("left_out", TABLES)
def test_without_a_table_there_is_no_code(left_out: str) -> None:
    module = stages("wasteful")[ONE_WALK].clone()
    convert_module(
        module, {k: v for k, v in convert_to_llvm.TABLE.items() if k not in TABLES[left_out]}
    )
    with pytest.raises((PassFailedException, CompileError)):
        for each in cpu_passes("main(f32[n])", FEATURES)[ONE_WALK + 1 :]:
            each.apply(make_context(), module)
        llvm_ir(module)


class PassByPass(Compiled):
    """A program whose way to `llvm` is the seven passes one by one."""

    def __init__(self, program: Program, text: str, position: int) -> None:
        target = feature_level()
        parsed = signature.parse(text)
        _, facts = lower_program(program, parsed, target)
        passes = list(cpu_passes(text, target))
        passes[position : position + 1] = SINGLE
        module, ctx = program_to_module(program), make_context()
        for each in passes:
            each.apply(ctx, module)
        module.verify()
        self._load(program, parsed, facts, compile_llvm_module(module, target))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("wasteful", [(0,), (1,), (37,)]), ("matmul", [(5, 9, 19)]), ("sum", [(0,), (4133,)])],
)
def test_pass_by_pass_gives_the_same_bits(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    program, text = PROGRAMS[name]
    single = PassByPass(program, text, ONE_WALK)
    rng = np.random.default_rng(len(name))
    for shape in shapes:
        pairs = [shape[:2], shape[1:]] if len(shape) == 3 else [shape]
        arguments = [rng.standard_normal(s, np.float32) for s in pairs]
        assert_same(single.run(arguments), by_oracle(program, arguments), f"{name} {shape}")


# ---- jit-default as a pass ---------------------------------------------------------------------


def jit_opt(path: Path, passes: str) -> str:
    """What the tool prints; fails with what it says."""
    outcome = execute(f"jit-opt %s -p '{passes}'", path)
    assert outcome.code == 0, outcome.errors
    return outcome.output


def test_one_pass_is_the_list_by_name(tmp_path: Path) -> None:
    path = tmp_path / "wasteful.jbc"
    program, text = PROGRAMS["wasteful"]
    program.save(path)
    options = {
        "convert-vm-to-tssa": f'{{signature="{text}"}}',
        "loop-schedule": f'{{features="{FEATURES}"}}',
    }
    by_name = ",".join(name + options.get(name, "") for name in names())
    whole = jit_opt(path, f'jit-default{{target="cpu" signature="{text}" features="{FEATURES}"}}')
    assert whole == jit_opt(path, by_name)
    assert whole.strip() == str(stages("wasteful")[-1]).strip()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "gpu"}, "jit-default: unknown target 'gpu'; known: cpu"),
        ({"features": "avx9"}, "tssa-if-convert: unknown features 'avx9'; known are x86-64-v1"),
        ({"signature": "main(f32[n)"}, "signature"),
        ({"signature": "other(f32[n])"}, "other"),
        ({"signature": "main(f32[n], f32[n])"}, "2"),
    ],
)
def test_a_bad_option_is_one_sentence(options: dict[str, str], sentence: str) -> None:
    module = program_to_module(PROGRAMS["wasteful"][0])
    chosen = {"signature": "main(f32[n])"} | options
    with pytest.raises((PassFailedException, Error)) as caught:
        JitDefaultPass(**chosen).apply(make_context(), module)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_passes_keep_no_state_between_modules() -> None:
    passes, ctx = cpu_passes("main(f32[n])", FEATURES), make_context()
    program = PROGRAMS["wasteful"][0]
    for other in (PROGRAMS["sum"][0], program, program):
        module = program_to_module(other)
        for each in passes:
            each.apply(ctx, module)
    assert str(module) == str(stages("wasteful")[-1])
