"""Line tables: which line of the LLVM IR an instruction of the machine comes from.

LLVM IR text has one instruction per line. `with_lines` says of each line where it is, so that debuggers and
profilers show the text beside the code; the lines stay the same, so that the text without this is what they show.
Metadata as LLVM's LangRef, "Specialized metadata nodes", has it; emission kind `LineTablesOnly`, DWARF 4.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_FIRST = 6
"""Number of the first node that belongs to a line; those before are the same in each module."""


def with_lines(llvm_ir: str, path: str, title: Callable[[str], str]) -> str:
    """`llvm_ir` with locations: line n of it is line n of the file `path`. `title` maps the name of a function to
    what people call it."""
    folder, name = os.path.split(path)
    nodes: list[str] = []
    lines: list[str] = []
    scope = 0
    for number, line in enumerate(llvm_ir.splitlines(), 1):
        if line.startswith("define "):
            scope = _FIRST + len(nodes)
            nodes.append(
                f"distinct !DISubprogram(name: {_quoted(title(_name_of(line)))}, scope: !1, file: !1, "
                f"line: {number}, type: !4, unit: !0, spFlags: DISPFlagDefinition)"
            )
            line = f"{line.removesuffix('{')}!dbg !{scope} {{"
        elif line.startswith("  "):
            line += f", !dbg !{_FIRST + len(nodes)}"
            nodes.append(f"!DILocation(line: {number}, column: 3, scope: !{scope})")
        lines.append(line)
    lines += [
        "!llvm.dbg.cu = !{!0}",
        "!llvm.module.flags = !{!2, !3}",
        "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, "
        + 'producer: "jitdialects", emissionKind: LineTablesOnly)',
        f"!1 = !DIFile(filename: {_quoted(name)}, directory: {_quoted(folder)})",
        '!2 = !{i32 2, !"Debug Info Version", i32 3}',
        '!3 = !{i32 7, !"Dwarf Version", i32 4}',
        "!4 = !DISubroutineType(types: !5)",
        "!5 = !{null}",
        *(f"!{_FIRST + at} = {node}" for at, node in enumerate(nodes)),
    ]
    return "\n".join(lines) + "\n"


def _name_of(definition: str) -> str:
    return definition.partition("@")[2].partition("(")[0].strip('"')


def _quoted(text: str) -> str:
    """A string of LLVM IR: what is not plain ASCII as `\\xx`."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(plain)}"'
