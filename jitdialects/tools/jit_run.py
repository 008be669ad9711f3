"""`jit-run`: run a program on inputs, at one tier or at both and compare; replay a trace under a policy."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode import signature
from jitdialects.bytecode.program import Program
from jitdialects.config import config
from jitdialects.errors import CompileError, ConfigError, Error
from jitdialects.runtime import policy_trace
from jitdialects.runtime.policy import TUNINGS, Policy
from jitdialects.runtime.policy_simulator import simulate
from jitdialects.runtime.shape_policies import POLICIES
from jitdialects.runtime.stats import stats
from jitdialects.runtime.vm import VM
from jitdialects.tools import program_file

Results: TypeAlias = tuple[NDArray[Any], ...]

_DESCRIPTION = "Run a program (.jbc or program text) on inputs and print a summary of the results."
_EPILOG = """\
inputs, in the order of the parameters:
  data.npy                 an array from a file
  random:f32[64,784]       random numbers; dtypes f32, f64, i32, i64, bool (see --seed)
  3  0.5  true             Python scalars, which take the dtype of what they meet

examples:
  jit-run model.jasm random:f32[64,784] weights.npy 0.5 --tier both --repeat 100
  jit-run model.jasm random:f32[64,784] weights.npy 0.5 --tier policy --repeat 1000 --record-trace run.trace
  jit-run --simulate-policy run.trace --threshold 50 --shapes exact

A trace of any program of yours: JITDIALECTS_POLICY_TRACE=run.trace python program.py

exit code: 0 done, 1 the program fails or the tiers differ, 2 wrong usage or unreadable files
"""
_NEVER = 2**62
MOST_ELEMENTS = 2**30
"""Of a random input."""


class UsageError(Exception):
    """The command line is wrong; the message is one sentence."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with `args` (the command line's by default); the exit code."""
    parser = argparse.ArgumentParser(
        prog="jit-run",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", nargs="?", help=".jbc file or program text")
    parser.add_argument("inputs", nargs="*", metavar="input", help="see below")
    parser.add_argument("--function", default="main", help="function to call (default: main)")
    parser.add_argument(
        "--tier",
        choices=("interpreted", "compiled", "both", "policy"),
        default="both",
        help="both (default): compare the results bit by bit; policy: what the policy decides, call by call",
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="timed calls per tier")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (default: 0)")
    policy = parser.add_argument_group("policies")
    policy.add_argument("--record-trace", metavar="FILE", help="write down what policies decide by")
    policy.add_argument(
        "--simulate-policy", metavar="TRACE", help="run nothing, replay a trace under a policy"
    )
    policy.add_argument("--threshold", type=int, metavar="N", help="compile after N executions")
    policy.add_argument("--shapes", help=f"one of {', '.join(POLICIES)}")
    policy.add_argument("--profile", default="cpu", help=f"one of {', '.join(TUNINGS)}")
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    recorded_before = config.policy_trace
    try:
        config.check()
        policy = replace(
            Policy.profile(options.profile), threshold=options.threshold, shapes=options.shapes
        )
        if options.simulate_policy is not None:
            if options.program is not None:
                raise UsageError("--simulate-policy runs no program; leave it out")
            return _simulate(options.simulate_policy, policy)
        if options.program is None:
            raise UsageError("which program? (or --simulate-policy TRACE)")
        if options.repeat < 1:
            raise UsageError(f"--repeat {options.repeat}: at least one call is needed")
        rng = np.random.default_rng(options.seed)
        program = _load(options.program)
        inputs = [parse_input(text, rng) for text in options.inputs]
        with _recording(options.record_trace):
            return _run(program, inputs, options, policy)
    except UsageError as error:
        print(f"jit-run: error: {error}", file=sys.stderr)
        return 2
    except ConfigError as error:
        print(f"jit-run: error: {error.message}", file=sys.stderr)
        return 2
    except Error as error:
        where = error.location or options.program or "jit-run"
        print(f"{where}: error: {error.message}", file=sys.stderr)
        return 1
    finally:
        config.policy_trace = (
            recorded_before  # who calls this in a process of his own records no more
        )


def _load(path: str) -> Program:
    try:
        return program_file.load(path)
    except OSError as error:
        raise UsageError(f"cannot open '{path}': {error.strerror}") from None


def parse_input(text: str, rng: np.random.Generator) -> object:
    """The argument that `text` describes; `UsageError` if it is none of the forms."""
    if text.startswith("random:"):
        return _random(text.removeprefix("random:"), rng)
    if text.endswith(".npy"):
        try:
            return np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read '{text}': {' '.join(str(error).split())}") from None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise UsageError(
        f"input '{text}' is neither an .npy file, nor random:f32[64,784], nor a number"
    )


def _random(text: str, rng: np.random.Generator) -> NDArray[Any]:
    try:
        (kind,) = signature.parse(f"input({text})").arguments
    except (Error, ValueError):
        raise UsageError(f"input 'random:{text}': write for example random:f32[64,784]") from None
    shape = [s for s in kind.shape if isinstance(s, int)]
    if kind.dtype.weak or kind.strided or len(shape) != len(kind.shape):
        raise UsageError(
            f"input 'random:{text}': the dtype is f32, f64, i32, i64 or bool, sizes are numbers"
        )
    if math.prod(shape) > MOST_ELEMENTS:
        raise UsageError(f"input 'random:{text}': more than {MOST_ELEMENTS} random numbers")
    if kind.dtype.name == "float32":
        return rng.standard_normal(shape, np.float32)
    if kind.dtype.is_float:
        return rng.standard_normal(shape)
    if kind.dtype.is_integer:
        return rng.integers(-100, 100, shape).astype(kind.dtype.numpy)
    return rng.random(shape) < 0.5


# ---- running -----------------------------------------------------------------------------------


@contextmanager
def _recording(path: str | None) -> Generator[None]:
    """Record the calls of machines that are made meanwhile, in this file or where the option says."""
    before = config.policy_trace
    if path is not None:
        try:
            open(path, "ab").close()
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None
        config.policy_trace = Path(path)
    try:
        yield
    finally:
        recorder = policy_trace.recorder()
        if recorder is not None:
            recorder.close()
        config.policy_trace = before


def _simulate(path: str, policy: Policy) -> int:
    try:
        events = policy_trace.read(Path(path))
    except OSError as error:
        raise UsageError(f"cannot open '{path}': {error.strerror}") from None
    for line in simulate(events, policy).lines():
        print(line)
    return 0


def _run(
    program: Program, inputs: Sequence[object], options: argparse.Namespace, policy: Policy
) -> int:
    function, repeat = options.function, options.repeat
    tiers = ("interpreted", "compiled") if options.tier == "both" else (options.tier,)
    results: dict[str, Results] = {}
    for tier in tiers:
        if tier == "policy":
            vm = VM(program, policy)
        else:
            prepare = interpreter if tier == "interpreted" else compiled
            vm = prepare(program, function, inputs)
        results[tier], seconds = _timed(vm, function, inputs, repeat)
        print(f"{tier:<12} {seconds * 1e3:.3f} ms per call (median of {repeat})")
    for number, array in enumerate(results[tiers[0]]):
        print(f"result {number}: {summary(array)}")
    if len(tiers) == 2:
        if not same_bits(*results.values()):
            print(f"{options.program}: error: the tiers differ; please report it", file=sys.stderr)
            return 1
        print("interpreted and compiled results have the same bits")
    indicators = stats()
    for name in ("compile_share", "hit_rate", "fusion_rate", "reuse_rate"):
        print(f"{name:<14} {indicators[name]:.1%}")
    return 0


def interpreter(program: Program, function: str, inputs: Sequence[object]) -> VM:
    """A machine that never compiles."""
    return VM(program, Policy(threshold=_NEVER))


def compiled(program: Program, function: str, inputs: Sequence[object]) -> VM:
    """A machine whose next call of `function` with these inputs runs compiled code.

    Raises `CompileError` with the compiler's sentence if there is no such code.
    """
    vm = VM(program, Policy(threshold=1, shapes="exact"))
    for _ in range(2):  # the first call asks for the code, the second one finds it
        vm.run(function, *inputs)
        vm.wait()
    if not vm.functions[function].profile.served:
        own = vm.functions[function].fingerprint
        reasons = [s for k, s in vm.service.failures.items() if k.fingerprint == own]
        raise CompileError(f"@{function} does not compile: {'; '.join(reasons) or 'no reason'}")
    return vm


def _timed(vm: VM, function: str, inputs: Sequence[object], repeat: int) -> tuple[Results, float]:
    """The results, and the median of the seconds of `repeat` calls."""
    seconds: list[float] = []
    results: Results = ()
    for _ in range(repeat):
        started = time.perf_counter()
        results = vm.run(function, *inputs)
        seconds.append(time.perf_counter() - started)
    return results, median(seconds)


def same_bits(xs: Results, ys: Results) -> bool:
    """Equal dtypes, shapes and bits; all NaN are alike."""
    return len(xs) == len(ys) and all(map(_same, xs, ys))


def _same(x: NDArray[Any], y: NDArray[Any]) -> bool:
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind != "f":
        return bool((x == y).all())
    both_nan = np.isnan(x) & np.isnan(y)
    return bool((both_nan | ((x == y) & (np.signbit(x) == np.signbit(y)))).all())


def summary(array: NDArray[Any]) -> str:
    """Dtype and shape, and the elements or their range."""
    head = f"{array.dtype} {array.shape}"
    if array.size <= 8:
        return f"{head} {array.tolist()}"
    if array.dtype.kind == "b":
        return f"{head} {int(array.sum())} true"
    with np.errstate(all="ignore"):
        mean = array.mean(dtype=float)
    return f"{head} from {array.min()} to {array.max()}, mean {mean:.6g}"


if __name__ == "__main__":
    sys.exit(main())
