"""`jit-diff`: what two shapes changed in the code of one program, at a stage."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jitdialects.bytecode.signature import parse
from jitdialects.errors import ArgumentError, BytecodeError, CompileError, Error
from jitdialects.frontends.stages import STAGES, stage_text
from jitdialects.tools import program_file

_DESCRIPTION = (
    "Show what differs between the code of a program for two signatures, as a unified diff. Lines that differ in "
    "the names of values only are alike. With two folders of a dump (JITDIALECTS_DUMP) instead, their stages are compared."
)
_EXAMPLE = f"""\
example:
  jit-diff model.jbc "main(f32[64,784])" "main(f32[n,784])" --stage loop
  jit-diff model.jasm "main(f32[8])" "main(f64[8])" --stage asm --context 0
  jit-diff dump/main-2e72383b/f32-8 dump/main-2e72383b/f32-n --stage loop-schedule

stages of a program: {", ".join(STAGES)}; of a dump: the name of a pass, or all of them without --stage
exit code: 0 done (with --exit-code: 1 if there are differences), 1 the program is wrong, 2 wrong usage
"""
_NAMES = re.compile(r"%[\w.$-]+|\^\w+|![0-9]+|\.?LBB[0-9_]+")
"""Names that a compiler makes up: values, blocks, metadata, labels."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with `args` (the command line's by default); the exit code."""
    parser = argparse.ArgumentParser(
        prog="jit-diff",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a program (.jbc or text) and two signatures, or two folders of a dump",
    )
    parser.add_argument("--stage", help="the stage to compare (of a program: llvm-ir)")
    parser.add_argument("--context", type=int, default=3, metavar="N", help="lines around (3)")
    parser.add_argument("--exact", action="store_true", help="names of values count, too")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs")
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    try:
        pairs = list(_pairs(options.inputs, options.stage))
    except (BytecodeError, CompileError) as error:
        where = f"{error.location}: " if error.location is not None else ""
        print(f"{where or options.inputs[0] + ': '}error: {error.message}", file=sys.stderr)
        return 1
    except Error as error:
        print(f"jit-diff: error: {error.message}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: error: {error.strerror}", file=sys.stderr)
        return 2
    differ = False
    for titles, texts in pairs:
        lines = list(difference(*texts, *titles, options.context, options.exact))
        differ |= bool(lines)
        print("".join(f"{line}\n" for line in lines), end="")
    if not differ:
        print("no differences")
    return int(differ and options.exit_code)


def difference(
    left: str, right: str, left_title: str, right_title: str, context: int, exact: bool
) -> Iterator[str]:
    """A unified diff; unless `exact`, lines are alike that differ in made-up names only."""
    before, after = left.splitlines(), right.splitlines()
    keys = [lines if exact else [_NAMES.sub("%", x) for x in lines] for lines in (before, after)]
    matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
    groups = list(matcher.get_grouped_opcodes(max(context, 0)))
    if groups:
        yield f"--- {left_title}"
        yield f"+++ {right_title}"
    for group in groups:
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[a:b])
            else:
                yield from (f"-{line}" for line in before[a:b])
                yield from (f"+{line}" for line in after[c:d])


def _range(start: int, end: int) -> str:
    """Lines, as unified diffs name them."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"


_Pair = tuple[tuple[str, str], tuple[str, str]]


def _pairs(inputs: Sequence[str], stage: str | None) -> Iterator[_Pair]:
    """Titles and texts to compare."""
    if len(inputs) == 2 and not Path(inputs[0]).is_file():
        yield from _dumps(Path(inputs[0]), Path(inputs[1]), stage)
    elif len(inputs) == 3:
        stage = stage or "llvm-ir"
        if stage not in STAGES:
            raise ArgumentError(f"no stage {stage!r}; there are {', '.join(STAGES)}")
        program = program_file.load(inputs[0])
        try:
            signatures = [parse(text) for text in inputs[1:]]
        except BytecodeError as error:
            raise ArgumentError(error.message) from None
        for signature in signatures:
            if program.function(signature.function) is None:
                raise ArgumentError(f"{inputs[0]} has no function @{signature.function}")
        left, right = (stage_text(program, s, stage) for s in signatures)
        yield (f"{inputs[1]} ({stage})", f"{inputs[2]} ({stage})"), (left, right)
    else:
        raise ArgumentError("takes a program and two signatures, or two folders of a dump")


def _dumps(left: Path, right: Path, stage: str | None) -> Iterator[_Pair]:
    found = [{_stage_of(f): f for f in sorted(folder.iterdir())} for folder in (left, right)]
    shared = [name for name in found[0] if name in found[1]]
    if stage is not None and stage not in shared:
        raise ArgumentError(f"no stage {stage!r} in both; there are {', '.join(shared) or 'none'}")
    for name in shared if stage is None else [stage]:
        files = found[0][name], found[1][name]
        yield (str(files[0]), str(files[1])), (files[0].read_text(), files[1].read_text())


def _stage_of(file: Path) -> str:
    """`07-loop-tile.mlir` is `loop-tile`."""
    return re.sub(r"^\d+-", "", file.stem)


if __name__ == "__main__":
    sys.exit(main())
