"""Imports point down only, the embeddable rooms stay embeddable, files stay short, links lead inside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jitdialects"
LEVELS = (
    {"errors", "config"},
    {"bytecode"},
    {"dialects"},
    {"analysis"},
    {"passes"},
    {"lowering"},
    {"runtime"},
    {"frontends", "numpy"},
    {"tools", "testing", "universe"},
)
"""Rooms from the bottom up. A room may import itself and those below; `__init__` is the public door."""
DOOR = "jitdialects/__init__.py"
MAX_LINES = 600


@dataclass(frozen=True)
class Import:
    """One imported module as text; `lazy` if it is inside a function or for type checkers only."""

    name: str
    line: int
    lazy: bool


def is_type_checking(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:`"""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and (node.test.id == "TYPE_CHECKING")
    )


@cache
def imports(source: str) -> tuple[Import, ...]:
    """Every import of a module, wherever it is; `from a import b` counts as `a` and as `a.b`."""
    return tuple(_imports(source))


def _imports(source: str) -> Iterator[Import]:
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while pending:
        node, lazy = pending.pop()
        if isinstance(node, ast.Import):
            yield from (Import(a.name, node.lineno, lazy) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            yield Import(node.module, node.lineno, lazy)
            yield from (Import(f"{node.module}.{a.name}", node.lineno, lazy) for a in node.names)
        inside = lazy or is_type_checking(node) or isinstance(node, ast.FunctionDef)
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def room_of(module: str) -> str:
    """`jitdialects.passes.tssa_cse` -> `passes`; the door is ``."""
    return module.split(".")[1] if "." in module else ""


def level_of(room: str) -> int:
    """The number of the level of a room."""
    return next(i for i, rooms in enumerate(LEVELS) if room in rooms)


FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]


def test_every_room_has_a_level() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms - {"__init__"} == set().union(*LEVELS)


def upward(name: str, source: str) -> list[str]:
    """The imports of a file that point up or into the public door, one sentence each."""
    room = Path(name).parts[1].removesuffix(".py")
    problems: list[str] = []
    for found in imports(source):
        if found.name.partition(".")[0] != "jitdialects":
            continue
        target = room_of(found.name)
        known = any(target in rooms for rooms in LEVELS)
        if not known and found.name != "jitdialects":
            problems.append(f"{name}:{found.line}: imports the public door")
        elif known and level_of(target) > level_of(room):
            problems.append(f"{name}:{found.line}: {room} imports {found.name}")
    return problems


def test_imports_point_down_only() -> None:
    assert [p for n in NAMES if n != DOOR for p in upward(n, (ROOT / n).read_text())] == []


EMBEDDABLE = ("dialects", "analysis", "passes", "lowering")
NOT_EMBEDDABLE = ("llvmlite", "jitdialects.runtime", "jitdialects.config")


def test_what_strangers_embed_needs_xdsl_only() -> None:
    found = [
        (name, i.name)
        for name in NAMES
        if Path(name).parts[1] in EMBEDDABLE
        for i in imports((ROOT / name).read_text())
    ]
    assert len(found) > 100
    roots = tuple(f"{n}." for n in NOT_EMBEDDABLE)
    assert [pair for pair in found if f"{pair[1]}.".startswith(roots)] == []


def test_llvmlite_is_imported_nowhere_at_the_start() -> None:
    eager = [
        f"{name}:{i.line}"
        for name in NAMES
        for i in imports((ROOT / name).read_text())
        if i.name.partition(".")[0] == "llvmlite" and not i.lazy
    ]
    assert eager == []


def test_the_door_imports_only_options_and_errors_at_the_start() -> None:
    eager = {room_of(i.name) for i in imports((ROOT / DOOR).read_text()) if not i.lazy}
    assert eager & set().union(*LEVELS) == {"config", "errors"}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("from jitdialects.runtime.vm import VM", "passes imports jitdialects.runtime.vm"),
        ("def f():\n    import jitdialects.tools.jit_opt", "passes imports jitdialects.tools"),
        ("from jitdialects import lowering", "passes imports jitdialects.lowering"),
        ("from jitdialects import jit", "imports the public door"),
    ],
)
def test_the_check_sees_imports_that_point_up(source: str, problem: str) -> None:
    problems = upward("jitdialects/passes/example.py", source)
    assert problems and problem in problems[0]


def test_files_are_short() -> None:
    lines = {name: (ROOT / name).read_text().count("\n") for name in NAMES}
    assert {name: n for name, n in lines.items() if n >= MAX_LINES} == {}


@pytest.mark.parametrize("link", ["lowering", "passes", "runtime", "tools"])
def test_links_at_the_root_point_into_the_package(link: str) -> None:
    path = ROOT / link
    assert path.is_symlink() and path.readlink() == Path("jitdialects", link) and path.is_dir()
