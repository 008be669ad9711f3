"""Traces of what policies decide by: what is written, what is refused, and what the simulator makes of it.

Decisions are compared, not times: times of the traces in `tests/data` are those of the machine that recorded them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quiet import quiet

import jitdialects as jd
from jitdialects.bytecode.program import Program
from jitdialects.runtime import policy_trace
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.policy_simulator import Outcome, simulate
from jitdialects.runtime.policy_trace import (
    CallEvent,
    CompileEvent,
    Event,
    FunctionEvent,
    PolicyTraceError,
    Recorder,
    read,
)
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service
from jitdialects.tools.jit_run import main

DATA = Path(__file__).parents[1] / "data"
TRACES = ("mlp_stream", "shape_storm", "one_shot", "one_row_server")
LOOP = """\
#0 = int 0
#1 = int 1

func @main(%0) -> 1 {
^entry:
  %1 = const #0
  br ^header
^header:
  %2 = less %1, %0
  cond_br %2, ^body, ^done
^body:
  %3 = const #1
  %1 = add %1, %3
  br ^header
^done:
  return %1
}
"""
TEXT = "func @main(%0, %1) -> 1 {\n^entry:\n  %2 = multiply %0, %1\n  return %2\n}\n"


def machine() -> VM:
    return VM(Program.from_text(TEXT), Policy(threshold=3))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where machines of this test record."""
    monkeypatch.setattr(jd.config, "policy_trace", tmp_path / "a.trace")
    return tmp_path / "a.trace"


def double(x: Any) -> Any:
    return x * 2


def finished() -> None:
    recorder = policy_trace.recorder()
    assert recorder is not None
    recorder.close()


def test_calls_and_compiles_are_written_down(path: Path) -> None:
    vm, x = machine(), np.ones(8, np.float32)
    for _ in range(5):
        vm.run("main", x, x)
        vm.wait()
    finished()
    function, *events = read(path)
    assert isinstance(function, FunctionEvent)
    assert function.name == "main" and [w.operators for w in function.works] == [1]
    codes = [e.code for e in events if isinstance(e, CallEvent)]
    assert codes == [None] * 3 + ["main(f32[8], f32[8])"] * 2
    (compiled,) = [e for e in events if isinstance(e, CompileEvent)]
    assert compiled.signature == "main(f32[8], f32[8])"
    assert compiled.seconds and 0 < compiled.seconds < 10
    calls = [e for e in events if isinstance(e, CallEvent)]
    assert all(str(e.signature) == "main(f32[8], f32[8])" for e in calls)
    assert [e.at for e in calls] == sorted(e.at for e in calls)
    assert all(e.seconds > 0 for e in calls)


def test_what_cannot_be_compiled_is_written_down(path: Path) -> None:
    service = fake_service(FakeCompiler(lambda signature: [], error="no"))
    vm, x = VM(Program.from_text(TEXT), Policy(threshold=3), None, service), np.ones(8, np.float32)
    for _ in range(5):
        vm.run("main", x, x)
        vm.wait()
    finished()
    failed = [e for e in read(path) if isinstance(e, CompileEvent)]
    assert [(e.signature, e.seconds) for e in failed] == [("main(f32[8], f32[8])", None)]


def test_executions_of_blocks_are_written_down(path: Path) -> None:
    program = Program.from_text(LOOP)
    VM(program, Policy(threshold=10**9)).run("main", 5)
    finished()
    (call,) = [e for e in read(path) if isinstance(e, CallEvent)]
    assert call.blocks == (1, 6, 5, 1)


def test_two_machines_of_one_program_are_two_functions(path: Path) -> None:
    x = np.ones(8, np.float32)
    for vm in (machine(), machine()):
        vm.run("main", x, x)
    finished()
    names = [e.id for e in read(path) if isinstance(e, FunctionEvent)]
    assert len(set(names)) == 2


def test_calls_of_jitted_functions_go_through_python_while_recorded(path: Path) -> None:
    f, x = jd.jit(double), np.ones(8, np.float32)
    for _ in range(60):
        f(x)
        f.wait()
    finished()
    calls = [e for e in read(path) if isinstance(e, CallEvent)]
    assert len(calls) == 60
    assert sum(e.code is not None for e in calls) >= 45


def test_without_the_option_nothing_is_recorded() -> None:
    assert machine().recorder is None


def test_a_trace_that_cannot_be_written_is_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jd.config, "policy_trace", tmp_path / "missing" / "a.trace")
    x = np.ones(8, np.float32)
    with pytest.warns(RuntimeWarning, match=r"cannot be written \(No such file or directory\)"):
        vm = machine()
    with quiet():
        for _ in range(3):
            assert (vm.run("main", x, x)[0] == 1).all()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_ends_the_trace_and_no_call() -> None:
    if not Path("/dev/full").exists():
        pytest.fail("this test needs /dev/full")
    recorder = Recorder(Path("/dev/full"))
    with pytest.warns(RuntimeWarning, match="it ends here"):
        recorder.failed("main.0", "x" * (1 << 20))
    recorder.failed("main.1", "x" * (1 << 20))
    recorder.close()


def test_a_child_leaves_the_trace_to_its_parent(path: Path) -> None:
    vm, x = machine(), np.ones(8, np.float32)
    vm.run("main", x, x)
    child = os.fork()
    if not child:
        vm.run("main", x, x)
        policy_trace.Recorder.close(vm.recorder)  # pyright: ignore[reportArgumentType]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    vm.run("main", x, x)
    finished()
    assert sum(isinstance(e, CallEvent) for e in read(path)) == 2


# ---- files that are none -------------------------------------------------------------------------

HEAD = '{"jitdialects_policy_trace":1}'
FUNCTION = '{"function":"f","name":"main","works":[[1,1.0]],"products":false}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no policy trace of version 1; record one with jit-run --record-trace"),
        ("hello", "is no policy trace of version 1"),
        ('{"jitdialects_policy_trace":99}', "is no policy trace of version 1"),
        ("[1]\n", "is no policy trace of version 1"),
        (f"{HEAD}\n[1]\n{FUNCTION}", "line 2 is no JSON object"),
        (f"{HEAD}\nx\n{FUNCTION}", "line 2 is no JSON object"),
        (f'{HEAD}\n{{"function":"f"}}', "line 2: no 'works'"),
        (
            f'{HEAD}\n{{"t":0,"f":"g","call":"main()","interpreted":1}}',
            "function 'g' is not described",
        ),
        (f'{HEAD}\n{FUNCTION}\n{{"t":0,"f":"f","call":"main("}}', "line 3: "),
        (f'{HEAD}\n{FUNCTION}\n{{"t":0,"f":"f","call":"main()"}}', "line 3: no 'interpreted'"),
        (
            f'{HEAD}\n{FUNCTION}\n{{"t":0,"f":"f","call":"main()","interpreted":-1}}',
            "-1 is no number",
        ),
        (f'{HEAD}\n{FUNCTION}\n{{"t":"x","f":"f","call":"main()","interpreted":1}}', "line 3: "),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_text(text)
    with pytest.raises(PolicyTraceError) as caught:
        read(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyTraceError, match="not UTF-8"):
        read(tmp_path / "x.trace")


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text(f'{HEAD}\n{FUNCTION}\n{{"t":0,"f":')
    assert len(read(tmp_path / "x.trace")) == 1


# ---- the simulator -------------------------------------------------------------------------------


def played(name: str, **options: object) -> Outcome:
    return simulate(read(DATA / f"{name}.trace"), replace(Policy(), **options))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", TRACES)
def test_a_policy_that_never_compiles_only_interprets(name: str) -> None:
    outcome = played(name, threshold=10**9)
    assert outcome.compiles == outcome.compiled_calls == outcome.totals.misses == 0
    assert outcome.calls == sum(isinstance(e, CallEvent) for e in read(DATA / f"{name}.trace"))


@pytest.mark.parametrize("name", TRACES)
def test_playing_twice_gives_the_same(name: str) -> None:
    assert played(name) == played(name)


def test_a_stream_of_batches_has_one_general_entry() -> None:
    outcome = played("mlp_stream")
    assert outcome.signatures[0] == "main(f32[n0,784]) where 2 <= n0"
    assert outcome.compiles <= 2
    assert outcome.compiled_calls >= 200


def test_a_storm_of_shapes_is_one_compile() -> None:
    outcome = played("shape_storm")
    assert outcome.signatures == ["main(f32[8,n0])"]
    assert outcome.compiled_calls >= 300


def test_exact_shapes_in_a_storm_wait_for_a_shape_that_comes_back() -> None:
    """The threshold alone has code made for one shape after another, none of which comes back."""
    by_cost, by_count = (played("shape_storm", shapes="exact", threshold=t) for t in (None, 10))
    assert by_cost.compiles <= 1
    assert by_count.compiles >= 20


def test_a_script_that_runs_everything_once_compiles_nothing() -> None:
    assert played("one_shot").compiles == 0
    assert played("one_shot", threshold=2).compiles >= 40


def test_a_server_of_single_rows_has_code_for_one_row_and_for_many() -> None:
    outcome = played("one_row_server")
    assert "main(f32[1,784], f32[784,512], f32[512,10])" in outcome.signatures
    assert outcome.compiles <= 2
    assert outcome.compiled_calls >= 500
    assert played("one_row_server", shapes="exact", threshold=10).compiles >= 20


def test_the_gpu_profile_compiles_no_more_than_that_of_the_cpu() -> None:
    for name in TRACES:
        events = read(DATA / f"{name}.trace")
        cpu, gpu = (simulate(events, Policy.profile(p)) for p in ("cpu", "gpu"))
        assert gpu.compiles <= cpu.compiles


def synthetic(path: Path, compiled: float) -> list[Event]:
    """General code that is slower for one row than interpreting it, which takes 60 us."""
    lines = [HEAD, FUNCTION]
    for number in range(2000):
        rows, code = (1, 64)[number % 2], number >= 40
        seconds = (compiled if code else 60e-6) if rows == 1 else 1e-3
        event: dict[str, object] = {"t": number * 2e-3, "f": "f", "call": f"main(f32[{rows},8])"}
        tier = (
            {"compiled": seconds, "code": "main(f32[n0,8])"} if code else {"interpreted": seconds}
        )
        lines.append(json.dumps(event | tier))
    path.write_text("\n".join(lines))
    return read(path)


def test_code_that_is_slower_is_left_in_the_simulator_too(tmp_path: Path) -> None:
    policy = Policy(threshold=40, shapes="symbolic")
    assert simulate(synthetic(tmp_path / "slow.trace", compiled=90e-6), policy).left >= 1
    assert simulate(synthetic(tmp_path / "fast.trace", compiled=20e-6), policy).left == 0


# ---- the tool ------------------------------------------------------------------------------------


def test_jit_run_records_and_simulates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jd.config, "policy_trace", None)
    program, trace = tmp_path / "p.jasm", tmp_path / "p.trace"
    program.write_text(TEXT)
    arguments = [str(program), "random:f32[8]", "2.0", "--tier", "policy", "--repeat", "30"]
    assert main([*arguments, "--record-trace", str(trace)]) == 0
    assert jd.config.policy_trace is None
    capsys.readouterr()
    assert main(["--simulate-policy", str(trace), "--threshold", "5", "--shapes", "exact"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("calls            30, ")
    assert "  main(f32[8], float)" in lines
    for name in ("compile_share", "hit_rate", "fusion_rate", "reuse_rate", "time of calls"):
        assert any(line.startswith(name) for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--simulate-policy", "missing.trace"], "cannot open 'missing.trace'"),
        (["--simulate-policy", "x", "program.jasm"], "--simulate-policy runs no program"),
        ([], "which program?"),
        (["--simulate-policy", "x", "--threshold", "0"], "threshold must be an int of at least 1"),
        (["--simulate-policy", "x", "--shapes", "round"], "shapes='round' is not supported"),
        (["--simulate-policy", "x", "--profile", "tpu"], "no profile 'tpu'"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_any_program_records_where_the_variable_says(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    code = (
        "import numpy as np, jitdialects as jd\n"
        "f = jd.jit(lambda x: x + 1)\n"
        "for _ in range(3): f(np.ones(3, np.float32))\n"
    )
    environment = os.environ | {"JITDIALECTS_POLICY_TRACE": str(trace)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert sum(isinstance(e, CallEvent) for e in read(trace)) == 3
