"""jit-opt: parse IR, run passes, print IR; `xdsl-opt` with our passes, dialects and diagnostics.

Everything is inherited from `xDSLOptMain` through its hooks; dialects and passes arrive through the
`xdsl.universe` entry point. Added here: dominance is checked wherever xDSL verifies, errors are one
sentence that names the pass, unknown names come with the nearest known one.

Exit codes: 0 done, 1 the program or a pass refused, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from typing import IO, ClassVar, NoReturn, Protocol, runtime_checkable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass, PassPipeline, PassPipelineCallbackType
from xdsl.printer import Printer
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
    PassFailedException,
)
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from jitdialects.analysis.dominance import check_dominance
from jitdialects.dialects.context import dialect_factories
from jitdialects.dialects.loop import REMARK
from jitdialects.errors import Error
from jitdialects.universe import JITDIALECTS_UNIVERSE

EXAMPLE = """\
example:
  jit-opt model.mlir -p 'tssa-fuse,tssa-bufferize,convert-tssa-to-loop' --verify-each
  jit-opt kernel.mlir -p 'jit-default{target="cpu"}' -t llvm -o kernel.ll
"""


class UsageError(Exception):
    """The command line is wrong; the message is one sentence."""


@runtime_checkable
class PassSequence(Protocol):
    """A pass that is a pipeline of others."""

    def passes(self) -> Sequence[ModulePass]:
        """The passes, in order."""
        ...


@runtime_checkable
class Remarking(Protocol):
    """A pass that remembers what it refused."""

    @property
    def remarks(self) -> Sequence[str]:
        """A sentence for each refusal."""
        ...


@dataclass(frozen=True)
class LLVMTextTarget(Target):
    """LLVM IR text of a module in the `llvm` dialect, as the JIT compiles it."""

    name = "llvm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text."""
        from jitdialects.runtime.engines.llvm_text import llvm_ir

        output.write(llvm_ir(module))


class JitOptMain(xDSLOptMain):
    """The driver. `stage` says, for messages, where the module is between parsing and printing."""

    version_format: ClassVar[str] = "jit-opt of jitdialects 0.1.0 (xdsl {xdsl_version})"
    stage: str = "in the input"

    @cached_property
    def remarks(self) -> dict[str, None]:
        """The remarks that were printed."""
        return {}

    def register_all_dialects(self) -> None:
        """All dialects, with the completed `arith` and `llvm` in place of xDSL's."""
        known = Universe.get_multiverse().all_dialects | dialect_factories()
        for name, factory in known.items():
            self.ctx.register_dialect(name, factory)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Add our options, and let the errors of argparse name the nearest option."""
        super().register_all_arguments(arg_parser)
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        arg_parser.epilog = EXAMPLE
        arg_parser.add_argument(
            "--verify-each",
            action="store_true",
            help="run pipelines such as jit-default pass by pass, with all checks after each",
        )
        arg_parser.add_argument(
            "--print-ir-after-all",
            action="store_true",
            help="print the module to stderr after each pass",
        )
        arg_parser.add_argument(
            "--remarks",
            action="store_true",
            help="print to stderr what passes refused, and why, as 'remark: @function: sentence'",
        )
        arg_parser.add_argument(
            "--list-passes",
            action="store_true",
            help="list the passes of jitdialects, one sentence each, and exit",
        )
        options = re.findall(r"--[a-z-]+", arg_parser.format_help())

        def refuse(message: str) -> NoReturn:
            option = message.removeprefix("unrecognized arguments: ").split()[0]
            if option.startswith("-"):
                message = f"unknown option '{option}'{_nearest(option, options)}"
            raise UsageError(message)

        arg_parser.error = refuse

    def register_all_targets(self) -> None:
        """All targets, with our emitter as `llvm`: xDSL's lacks operations and drops attributes."""
        super().register_all_targets()
        self.available_targets["llvm"] = lambda: LLVMTextTarget

    def setup_pipeline(self) -> None:
        """Check names and options of passes, build the pipeline, put our checks between passes."""
        try:
            for spec in parse_pipeline(self.args.passes):
                self._check_spec(spec)
                self._check_values(spec)
            super().setup_pipeline()
            passes = self.pipeline.passes
            if self.args.verify_each or self.args.remarks:
                passes = tuple(single for p in passes for single in flatten(p))
        except (ArgSpecParseError, PassFailedException, ValueError) as error:
            raise UsageError(_sentence(error)) from None
        self.pipeline = PassPipeline(passes, self._between_passes(self.pipeline))

    def _check_spec(self, spec: ArgSpec) -> None:
        if spec.name not in self.available_passes:
            raise UsageError(
                f"unknown pass '{spec.name}'{_nearest(spec.name, self.available_passes)}"
            )
        known = [f.name.replace("_", "-") for f in fields(self.available_passes[spec.name]())]
        for option in spec.parameters:
            if option.replace("_", "-") not in known:
                raise UsageError(
                    f"pass '{spec.name}' has no option '{option}'"
                    + (_nearest(option, known) or f" (it has: {', '.join(known) or 'none'})")
                )

    def _check_values(self, spec: ArgSpec) -> None:
        try:
            self.available_passes[spec.name]().from_spec(spec)
        except ValueError as error:
            message = _sentence(error)
            where = "" if message.startswith(spec.name) else f"pass '{spec}': "
            raise UsageError(f"{where}{message}") from None

    def _between_passes(self, inherited: PassPipeline) -> PassPipelineCallbackType:
        """xDSL's callback (verification, timing), then dominance; the IR is printed before both."""

        def callback(previous: ModulePass | None, module: ModuleOp, following: ModulePass | None):
            self.stage = f"after pass '{previous.name}'" if previous else "in the input"
            if previous and self.args.remarks:
                self._print_remarks(previous, module)
            if previous and self.args.print_ir_after_all:
                print(f"// ----- IR after {previous.name} ----- //", file=sys.stderr)
                Printer(stream=sys.stderr).print_op(module)
                print(file=sys.stderr)
            if inherited.callback:
                inherited.callback(previous, module, following)
            if not self.args.disable_verify:
                check_dominance(module)
            self.stage = f"in pass '{following.name}'" if following else "in the output"

        return callback

    def _print_remarks(self, done: ModulePass, module: ModuleOp) -> None:
        """Print the remarks that the pass keeps, and those that it left on operations, each once."""
        sentences = list(done.remarks) if isinstance(done, Remarking) else []
        for function in module.ops:
            name = function.properties.get("sym_name")
            for op in function.walk():
                remark = op.attributes.get(REMARK)
                if isinstance(remark, StringAttr) and isinstance(name, StringAttr):
                    sentences.append(f"@{name.data}: {op.name}: {remark.data}")
        for sentence in sentences:
            if sentence not in self.remarks:
                self.remarks[sentence] = None
                print(f"remark: {sentence}", file=sys.stderr)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Open the input; a missing file or unknown extension is a `UsageError`."""
        try:
            return super().prepare_input()
        except (OSError, ValueError) as error:
            raise UsageError(_cannot_open(error)) from None

    def prepare_output(self) -> IO[str]:
        """Open the output; a path that cannot be written is a `UsageError`."""
        try:
            return super().prepare_output()
        except OSError as error:
            raise UsageError(_cannot_open(error)) from None

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the pipeline; our errors become diagnostics, which `--verify-diagnostics` sees."""
        try:
            super().apply_passes(prog)
        except Error as error:
            raise PassFailedException(error.message) from error

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """Print for the target; what it cannot express is a diagnostic."""
        self.stage = f"in target '{self.args.target}'"
        try:
            return super().output_resulting_program(prog)
        except Error as error:
            raise PassFailedException(error.message) from error

    def run(self) -> None:
        """List passes, or do what xDSL's driver does."""
        if self.args.list_passes:
            print(list_passes())
        else:
            super().run()


def flatten(one: ModulePass) -> Sequence[ModulePass]:
    """The passes that a pipeline pass runs, or the pass itself."""
    return one.passes() if isinstance(one, PassSequence) else (one,)


def list_passes() -> str:
    """One line per pass of ours: its name and the first sentence of its documentation, which is that of its
    module where it has one to itself."""
    lines: list[str] = []
    for name, factory in sorted(JITDIALECTS_UNIVERSE.all_passes.items()):
        found = factory()
        texts = (sys.modules[found.__module__].__doc__, found.__doc__)
        first = [" ".join((text or "").strip().split("\n\n")[0].split()) for text in texts]
        summary = first[0] if first[0].startswith(f"`{name}") else first[1]
        lines.append(f"{name:<28} {re.sub(r'^`[^`]*`: ', '', summary)}")
    return "\n".join(lines)


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{matches[0]}'?" if matches else ""


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())


def _cannot_open(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"cannot open '{error.filename}': {error.strerror}"
    return _sentence(error)


def _report(error: Exception, name: str, stage: str) -> None:
    """Print `where: error: sentence`, then what xDSL knows of the place."""
    if isinstance(error, ParseError):
        where, *context = error.span.print_with_context().splitlines()
        print(
            f"{where}: error: {_sentence(Exception(error.msg))}",
            *context,
            sep="\n",
            file=sys.stderr,
        )
        return
    source = error if isinstance(error, Error) else error.__cause__
    if isinstance(source, Error) and source.location is not None:
        print(f"{source.location}: error: {source.message}", file=sys.stderr)
        return
    print(f"{name}: error: {stage}: {_sentence(error)}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(note, file=sys.stderr)


def main(args: Sequence[str] | None = None) -> int:
    """Run jit-opt on the command line `args`; returns the exit code."""
    try:
        tool = JitOptMain("jit-opt: run passes of jitdialects and xDSL over IR", args)
        try:
            tool.run()
        except (DiagnosticException, ParseError, Error) as error:
            _report(error, tool.get_input_name(), tool.stage)
            return 1
        except UnicodeDecodeError as error:
            where = f"{tool.get_input_name()}: error: byte {error.start} is not UTF-8 text"
            print(f"{where}; bytecode files end in .jbc, or use -f jbc", file=sys.stderr)
            return 1
        except RecursionError:
            print(f"{tool.get_input_name()}: error: nested too deeply", file=sys.stderr)
            return 1
    except UsageError as error:
        print(f"jit-opt: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
