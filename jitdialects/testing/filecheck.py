"""FileCheck tests of IR in one process: RUN lines, a pytest collector, and a lint.

A test is a `.mlir` file with lines `// RUN: command | command` that `lit` understands as well. Here
the commands are functions of this process, so hundreds of files take seconds: a command is looked
up in `COMMANDS`, `|` connects standard output to standard input, `2>&1` joins the streams, `not`
inverts the exit code, `%s` is the file. As in lit, a pipe fails if any of its commands fails.

The lint refuses what would pass without checking anything: files without RUN lines or directives,
`CHECK-NEXT` without its colon, misspelt directives, prefixes that nobody uses.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

SUFFIXES = r"NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+"
Command = Callable[[list[str]], int]
NodeT = TypeVar("NodeT")


# ---- commands ----------------------------------------------------------------------------------


def _jit_opt(arguments: list[str]) -> int:
    from jitdialects.tools.jit_opt import main

    return main(arguments)


def _filecheck(arguments: list[str]) -> int:
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options

    return Matcher.from_opts(parse_argv_options(["filecheck", *arguments])).run()


COMMANDS: dict[str, Command] = {"jit-opt": _jit_opt, "filecheck": _filecheck}
"""What a RUN line may call."""


@dataclass(frozen=True)
class Outcome:
    """Exit code of a whole RUN line, its last standard output, all of its standard error."""

    code: int
    output: str
    errors: str


@contextmanager
def _standard_input(text: str) -> Generator[None]:
    saved = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = saved


def _call(words: Sequence[str], standard_input: str) -> tuple[int, str, str]:
    """Run one command; returns exit code, standard output, standard error."""
    arguments = [w for w in words if w != "2>&1"]
    output = io.StringIO()
    errors = output if "2>&1" in words else io.StringIO()
    inverted = arguments[0] == "not"
    name, *rest = arguments[inverted:]
    if name not in COMMANDS:
        raise ValueError(f"RUN line calls '{name}'; known: not, {', '.join(COMMANDS)}")
    with _standard_input(standard_input), redirect_stdout(output), redirect_stderr(errors):
        try:
            code = COMMANDS[name](rest)
        except SystemExit as stop:  # argparse leaves this way
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    if inverted:
        code = int(code == 0)
    return code, output.getvalue(), "" if errors is output else errors.getvalue()


def execute(line: str, path: Path) -> Outcome:
    """Execute one RUN line (without `RUN:`) of the test `path`."""
    lexer = shlex.shlex(line.replace("%s", str(path)), posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    failed, text, errors = 0, "", ""
    for command in commands:
        code, text, more = _call(command, text)
        failed = failed or code
        errors += more
    return Outcome(failed, text, errors)


def run_lines(text: str) -> list[str]:
    """The RUN lines of a test, those that end in a backslash joined with the next."""
    lines: list[str] = []
    continued = False
    for part in re.findall(r"^\s*//\s*RUN:[ \t]*(.*?)\s*$", text, re.MULTILINE):
        body = part.removesuffix("\\")
        if continued:
            lines[-1] += body
        else:
            lines.append(body)
        continued = part.endswith("\\")
    return lines


# ---- lint --------------------------------------------------------------------------------------


def prefixes_of(line: str) -> list[str]:
    """The check prefixes that the filecheck calls of a RUN line use."""
    found: list[str] = []
    for call in line.split("|"):
        if call.split()[:1] == ["filecheck"]:
            named = re.findall(r"--?check-prefix(?:es)?[= ](\S+)", call)
            found += [p for names in named for p in names.split(",")] or ["CHECK"]
    return found


def lint(text: str) -> list[str]:
    """Problems of a test file, one sentence each: directives that check nothing."""
    runs = run_lines(text)
    if not runs:
        return ["no RUN line: nothing executes this file"]
    prefixes = {p for line in runs for p in prefixes_of(line)}
    if not prefixes:
        return ["no RUN line pipes into filecheck: nothing is checked"]
    problems: list[str] = []
    used: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*//\s*([A-Za-z][\w-]*)(\{LITERAL\})?(\s*:)?", line)
        if comment is None:
            continue
        word, colon = comment[1], comment[3]
        if word == "RUN":
            if colon != ":":
                problems.append(f"line {number}: 'RUN' needs a colon directly behind it")
        elif (prefix := _directive(word, prefixes)) and colon == ":":
            used.add(prefix)
        elif problem := _almost(word, colon, prefixes):
            problems.append(f"line {number}: '{word}' {problem}")
    problems += [f"prefix {p} is never used by a directive" for p in sorted(prefixes - used)]
    return problems


def _directive(word: str, prefixes: set[str]) -> str | None:
    """The prefix of a correctly spelt directive."""
    return next(
        (p for p in prefixes if re.fullmatch(rf"{re.escape(p)}(-({SUFFIXES}))?", word)), None
    )


def _almost(word: str, colon: str | None, prefixes: set[str]) -> str | None:
    """Why `word`, the first one of a comment, is a directive gone wrong; None if it is prose."""
    if _directive(word, prefixes):
        return "needs a colon directly behind it"
    if colon is None and not word.isupper():
        return None
    stem = re.sub(rf"-({SUFFIXES})$", "", word.upper())
    if stem != word.upper() and colon:
        return "is not a directive: no RUN line uses its prefix"
    for prefix in prefixes:
        if stem.startswith(prefix) or SequenceMatcher(None, stem, prefix).ratio() > 0.7:
            return f"is misspelt: directives are {prefix}, {prefix}-NEXT, {prefix}-SAME, ..."
    return None


# ---- pytest ------------------------------------------------------------------------------------


def _child(kind: type[NodeT], parent: pytest.Collector, **options: object) -> NodeT:
    """`kind.from_parent`, whose keyword arguments pytest leaves untyped."""
    return cast(Any, kind).from_parent(parent, **options)


class FileCheckFile(pytest.File):
    """A `.mlir` file: an item for the lint, and one for each RUN line."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the items."""
        text = self.path.read_text(encoding="utf-8")
        yield _child(LintItem, self, name="lint")
        for number, line in enumerate(run_lines(text)):
            item = _child(RunItem, self, name=f"run{number}")
            item.line = line
            yield item


class FileCheckFailure(Exception):
    """What a failed item shows."""


class _Item(pytest.Item):
    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        """A failed check is its message; a fault of a tool needs its traceback."""
        if isinstance(excinfo.value, FileCheckFailure):
            return str(excinfo.value)
        return str(excinfo.getrepr(style="short"))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where pytest says that the test is."""
        return self.path, 0, f"{self.path.name}::{self.name}"


class LintItem(_Item):
    """The file has only directives that check something."""

    def runtest(self) -> None:
        """Raise `FileCheckFailure` with all problems."""
        problems = lint(self.path.read_text(encoding="utf-8"))
        if problems:
            raise FileCheckFailure("\n".join(f"{self.path}: {p}" for p in problems))


class RunItem(_Item):
    """One RUN line succeeds."""

    line: str

    def runtest(self) -> None:
        """Raise `FileCheckFailure` with the line and what the tools said."""
        outcome = execute(self.line, self.path)
        if outcome.code:
            raise FileCheckFailure(
                f"RUN: {self.line}\nexit code {outcome.code}\n{outcome.errors}{outcome.output}"
            )


def collect_mlir(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    """The body of a `pytest_collect_file` hook: `.mlir` files are FileCheck tests."""
    return _child(FileCheckFile, parent, path=file_path) if file_path.suffix == ".mlir" else None
