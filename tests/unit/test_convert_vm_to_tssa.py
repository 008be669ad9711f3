"""SSA construction and inference: block arguments where they are needed, nowhere else; and what the
converted function computes is what the virtual machine computes.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tssa_eval import run
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from jitdialects.analysis.dominance import check_dominance
from jitdialects.bytecode import inlining
from jitdialects.bytecode.program import Program
from jitdialects.dialects.context import make_context
from jitdialects.dialects.tssa_types import GuardAttr
from jitdialects.errors import CompileError
from jitdialects.lowering.bytecode_to_vm import program_to_module
from jitdialects.lowering.convert_vm_to_tssa import ConvertVmToTssaPass
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.vm import VM

CONTEXT = make_context()
CONSTANTS = "#0 = int 0\n#1 = int 1\n#2 = float 0.5\n#3 = float -0.0\n#4 = int 2\n"


def program(body: str, header: str = "func @main(%0, %1) -> 1") -> Program:
    return Program.from_text(f"{CONSTANTS}{header} {{\n{body}\n}}")


def convert(source: Program, signature: str) -> ModuleOp:
    module = program_to_module(source)
    ConvertVmToTssaPass(signature=signature).apply(CONTEXT, module)
    module.verify()
    check_dominance(module)
    return module


def function_of(module: ModuleOp) -> FuncOp:
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return function


def block_arguments(module: ModuleOp) -> list[int]:
    return [len(b.args) for b in tuple(function_of(module).body.blocks)[1:]]


def guards(module: ModuleOp) -> list[str]:
    attribute: Any = function_of(module).attributes.get("tssa.guards", ())
    texts = []
    for guard in attribute:
        assert isinstance(guard, GuardAttr)
        relation, left, right = guard.data
        texts.append(f"{left} {relation} {right}")
    return texts


def agrees(source: Program, module: ModuleOp, *arguments: Any) -> None:
    """The virtual machine and the converted function give the same bits."""
    machine = VM(source, policy=Policy(threshold=1 << 30))
    wanted = machine.run("main", *arguments)
    for x, y in zip(wanted, run(module, arguments), strict=True):
        x = np.asarray(x)
        assert x.dtype == y.dtype and x.shape == y.shape
        nan = np.isnan(x) & np.isnan(y)
        assert np.where(nan, 0, x).tobytes() == np.where(nan, 0, y).tobytes()


# ---- block arguments ---------------------------------------------------------------------------

NESTED = """
^entry:
  %2 = const #0
  %4 = const #0
  br ^outer
^outer:
  %3 = const #0
  br ^inner
^inner:
  %4 = add %4, %3
  %5 = const #1
  %3 = add %3, %5
  %6 = less %3, %1
  cond_br %6, ^inner, ^next
^next:
  %2 = add %2, %5
  %6 = less %2, %1
  cond_br %6, ^outer, ^exit
^exit:
  %7 = add %0, %4
  return %7
"""


def test_nested_loops() -> None:
    source = program(NESTED)
    module = convert(source, "main(i64[n], int)")
    assert sorted(block_arguments(module)) == [0, 0, 2, 2]  # outer: sum, %2; inner: sum, %3
    agrees(source, module, np.arange(3), 4)


def test_a_register_that_a_loop_leaves_alone_needs_no_argument() -> None:
    source = program(
        """
^entry:
  %2 = negative %0
  %3 = const #0
  br ^head
^head:
  %4 = const #1
  %3 = add %3, %4
  %2 = move %2
  %5 = less %3, %1
  cond_br %5, ^head, ^exit
^exit:
  %2 = add %2, %3
  return %2
"""
    )
    module = convert(source, "main(i64[n], int)")
    assert sorted(block_arguments(module)) == [0, 1]
    agrees(source, module, np.arange(3), 4)


def test_swapped_registers() -> None:
    source = program(
        """
^entry:
  %2 = negative %0
  br ^head
^head:
  %3 = move %0
  %0 = move %2
  %2 = move %3
  %4 = const #1
  %1 = subtract %1, %4
  cond_br %1, ^head, ^exit
^exit:
  return %0
"""
    )
    module = convert(source, "main(i64[n], int)")
    assert sorted(block_arguments(module)) == [0, 3]
    for count in (1, 2, 3):
        agrees(source, module, np.arange(3), count)


def test_two_entries_into_a_loop() -> None:
    """An irreducible graph: both a and b are entered from outside."""
    source = program(
        """
^entry:
  %2 = const #0
  cond_br %1, ^a, ^b
^a:
  %3 = const #1
  %2 = add %2, %3
  %4 = less %2, %1
  cond_br %4, ^b, ^exit
^b:
  %3 = const #4
  %2 = add %2, %3
  %4 = less %2, %1
  cond_br %4, ^a, ^exit
^exit:
  %0 = add %0, %2
  return %0
"""
    )
    module = convert(source, "main(i64[n], int)")
    assert sorted(block_arguments(module)) == [1, 1, 1]
    for count in (0, 1, 5, 9):
        agrees(source, module, np.arange(3), count)


def test_dead_registers_are_not_passed_and_unreachable_blocks_vanish() -> None:
    source = program(
        """
^entry:
  cond_br %1, ^a, ^b
^a:
  %2 = negative %0
  destroy %0
  %0 = move %2
  br ^join
^b:
  %2 = abs %0
  br ^join
^never:
  br ^join
^join:
  return %0
"""
    )
    module = convert(source, "main(f32[n], int)")
    assert sorted(block_arguments(module)) == [0, 0, 1]


# ---- dtypes, sizes, values ---------------------------------------------------------------------


def test_sizes_flow_through_registers() -> None:
    source = program(
        """
^entry:
  %2 = size %0 {axis = 0}
  %3 = const #1
  %4 = subtract %2, %3
  %5 = getitem %0, %4 {index = [0:$1]}
  %6 = getitem %0, %3 {index = [$1:]}
  %7 = add %5, %6
  return %7
"""
    )
    module = convert(source, "main(f32[5], int)")
    assert not guards(module)
    agrees(source, module, np.arange(5, dtype=np.float32), 0)
    module = convert(source, "main(f32[n], int)")
    agrees(source, module, np.arange(7, dtype=np.float32), 0)


def test_an_argument_as_a_slice_bound_is_never_baked() -> None:
    source = program("^entry:\n  %2 = getitem %0, %1 {index = [$1:]}\n  return %2")
    module = convert(source, "main(f32[n], int)")
    x = np.arange(6, dtype=np.float32)
    for start in (0, 2, 6, 9, -1, -6, -9):
        agrees(source, module, x, start)


def test_an_index_that_may_wrap_is_guarded() -> None:
    source = program(
        "^entry:\n  %2 = const #1\n  %3 = add %1, %2\n"
        "  %4 = getitem %0, %3 {index = [$1:]}\n  return %4"
    )
    module = convert(source, "main(f32[n], int)")
    assert guards(module) == [f"s1 <= {2**63 - 2}"]
    agrees(source, module, np.arange(6, dtype=np.float32), 2)


@pytest.mark.parametrize("index", ["$1:", "0:$1", "$1:4"])
def test_a_size_that_changes_around_a_loop_is_refused(index: str) -> None:
    source = program(
        """
^entry:
  %2 = const #0
  br ^head
^head:
  %3 = getitem %0, %2 {index = [INDEX]}
  %4 = const #1
  %2 = add %2, %4
  %5 = less %2, %1
  cond_br %5, ^head, ^exit
^exit:
  return %3
""".replace("INDEX", index)
    )
    with pytest.raises(CompileError, match="depends on tensor data"):
        convert(source, "main(f32[8], int)")


@pytest.mark.parametrize("index", ["$1", "$1:$2", "$1:$2:2"])
@pytest.mark.parametrize("sizes", ["8", "n"])
def test_an_index_that_changes_around_a_loop_is_an_operand(index: str, sizes: str) -> None:
    source = program(
        """
^entry:
  %2 = const #0
  br ^head
^head:
  %4 = const #1
  %6 = add %2, %4
  %6 = add %6, %4
  %3 = getitem %0, %2, %6 {index = [INDEX]}
  %2 = add %2, %4
  %5 = less %2, %1
  cond_br %5, ^head, ^exit
^exit:
  return %3
""".replace("INDEX", index)
    )
    module = convert(source, f"main(f32[{sizes}], int)")
    assert "tssa.check_bounds" in str(module) and not guards(module)
    for last in (1, 5, 7):
        agrees(source, module, np.arange(8, dtype=np.float32), last)


def test_errors_carry_the_location_of_the_instruction() -> None:
    source = program('^entry:\n  %2 = add %0, %1 loc("model.py":3:5)\n  return %2')
    with pytest.raises(CompileError, match=r"^model.py:3:5: add: shapes \(2,\) and \(3,\)"):
        convert(source, "main(f32[2], f32[3])")


def test_a_failed_conversion_leaves_the_module_as_it_was() -> None:
    module = program_to_module(program("^entry:\n  %2 = add %0, %1\n  return %2"))
    before = str(module)
    with pytest.raises(CompileError):
        ConvertVmToTssaPass(signature="main(f32[2], f32[3])").apply(CONTEXT, module)
    assert str(module) == before


def test_equal_symbols_are_equal_sizes() -> None:
    source = program("^entry:\n  %2 = add %0, %1\n  return %2")
    assert guards(convert(source, "main(f32[n], f32[n])")) == []
    assert guards(convert(source, "main(f32[n], f32[m])")) == ["n == m"]


def test_python_integers_beside_int32_are_guarded_where_they_are_known() -> None:
    source = program(
        "^entry:\n  %2 = size %0 {axis = 0}\n  %3 = multiply %1, %2\n  %4 = add %0, %3\n  return %4"
    )
    module = convert(source, "main(i32[n], int)")
    assert guards(module) == ["0 <= mul(n, s1) + 2147483648", "mul(n, s1) <= 2147483647"]
    with pytest.raises(CompileError, match="add: the Python integer 4294967296 does not fit int32"):
        convert(
            Program.from_text(
                "#0 = int 4294967296\nfunc @main(%0) -> 1 {\n^entry:\n  %1 = const #0\n"
                "  %2 = add %0, %1\n  return %2\n}"
            ),
            "main(i32[n])",
        )


def test_the_value_of_an_int32_is_known_until_it_could_wrap() -> None:
    source = program(
        "^entry:\n  %2 = cast %1 {dtype = int64}\n  %3 = broadcast_to %0, %2 {shape = [$1]}\n"
        "  return %3"
    )
    module = convert(source, "main(f32[], i32[])")
    agrees(source, module, np.float32(2), np.array(3, np.int32))
    source = program(
        "^entry:\n  %2 = add %1, %1\n  %3 = broadcast_to %0, %2 {shape = [$1]}\n  return %3"
    )
    with pytest.raises(CompileError, match="depends on"):
        convert(source, "main(f32[], i32[])")


def test_an_array_chosen_by_a_mask_is_not_weak() -> None:
    source = program("^entry:\n  %2 = const #1\n  %3 = where %0, %1, %2\n  return %3")
    module = convert(source, "main(bool[n], int)")
    assert function_of(module).res_attrs is None
    agrees(source, module, np.array([True, False]), 5)
    module = convert(source, "main(bool[n], float)")
    assert function_of(module).res_attrs is None
    agrees(source, module, np.array([True, False]), 5.0)


def test_the_same_constant_on_both_paths_is_no_join() -> None:
    source = program(
        """
^entry:
  cond_br %1, ^a, ^b
^a:
  %2 = const #2
  br ^join
^b:
  %2 = const #2
  br ^join
^join:
  %3 = multiply %0, %2
  return %3
"""
    )
    assert block_arguments(convert(source, "main(f32[n], int)")) == [0, 0, 0]


# ---- calls -------------------------------------------------------------------------------------


def test_results_of_a_call_in_a_loop() -> None:
    text = f"""{CONSTANTS}
func @step(%0, %1) -> 2 {{
^entry:
  cond_br %1, ^a, ^b
^a:
  %2 = const #1
  %3 = subtract %1, %2
  return %0, %3
^b:
  %4 = negative %0
  return %4, %1
}}
func @main(%0, %1) -> 1 {{
^head:
  %0, %1 = call @step(%0, %1)
  cond_br %1, ^head, ^exit
^exit:
  %0, %1 = call @step(%0, %1)
  return %0
}}"""
    source = Program.from_text(text)
    module = convert(source, "main(f32[n], int)")
    for count in (0, 1, 3):
        agrees(source, module, np.array([1.0, -0.0], np.float32), count)


def test_mutual_recursion_is_named() -> None:
    text = """func @f(%0) -> 1 {
^e:
  %1 = call @g(%0)
  return %1
}
func @g(%0) -> 1 {
^e:
  %1 = call @f(%0)
  return %1
}"""
    with pytest.raises(CompileError, match="@f calls itself \\(@f -> @g -> @f\\)"):
        convert(Program.from_text(text), "f(f32[n])")


def chain(length: int, calls: int) -> Program:
    functions = []
    for k in range(length):
        body = "".join(f"  %0 = call @f{k + 1}(%0)\n" for _ in range(calls))
        functions.append(f"func @f{k}(%0) -> 1 {{\n^e:\n{body}  return %0\n}}")
    functions.append(f"func @f{length}(%0) -> 1 {{\n^e:\n  %0 = negative %0\n  return %0\n}}")
    return Program.from_text("\n".join(functions))


def test_calls_too_deep_or_too_many() -> None:
    convert(chain(20, 1), "f0(f32[n])")
    with pytest.raises(CompileError, match=f"nests more than {inlining.MAX_DEPTH} calls"):
        convert(chain(inlining.MAX_DEPTH + 1, 1), "f0(f32[n])")
    with pytest.raises(CompileError, match="instructions with its calls inlined"):
        convert(chain(20, 2), "f0(f32[n])")


# ---- generated control flow --------------------------------------------------------------------


def generated(rng: random.Random) -> Program:
    """Blocks in random order with random targets over five integer registers; a counter bounds the
    run."""
    blocks = rng.randrange(2, 7)
    lines = ["^entry:", "  %2 = const #0", "  %3 = const #1", "  %4 = const #4", "  br ^b0"]
    for k in range(blocks):
        lines.append(f"^b{k}:")
        for _ in range(rng.randrange(4)):
            target, x, y = (rng.choice([0, 2, 3, 4]) for _ in range(3))
            lines.append(
                rng.choice(
                    [
                        f"  %{target} = add %{x}, %{y}",
                        f"  %{target} = move %{x}",
                        f"  %{target} = subtract %{x}, %{y}",
                        f"  %{target} = minimum %{x}, %{y}",
                        f"  %{target} = const #{rng.choice([0, 1, 4])}",
                    ]
                )
            )
        lines += ["  %5 = const #1", "  %1 = subtract %1, %5", "  %6 = const #0"]
        lines += ["  %5 = less %1, %6", f"  cond_br %5, ^exit, ^c{k}", f"^c{k}:"]
        targets = [rng.randrange(blocks) for _ in range(3)]
        lines.append(
            f"  switch %{rng.choice([0, 2, 3])} "
            f"[0: ^b{targets[0]}, 1: ^b{targets[1]}, default: ^b{targets[2]}]"
        )
    lines += ["^exit:", "  return %0, %2, %3, %4"]
    return program("\n".join(lines), "func @main(%0, %1) -> 4")


@pytest.mark.parametrize("seed", range(40))
def test_generated_control_flow(seed: int) -> None:
    source = generated(random.Random(seed))
    module = convert(source, "main(int, int)")
    for first in (0, 1, 7):
        agrees(source, module, first, 12)
