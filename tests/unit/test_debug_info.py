"""What profilers and debuggers see: names of kernels, and lines of the LLVM IR. Read with binutils, which comes with gcc."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.program import Program
from jitdialects.runtime.compiler import compile_request
from jitdialects.runtime.dump import LLVM_IR
from jitdialects.runtime.engines.debug_info import with_lines
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.messages import CompileReply, CompileRequest

PROGRAM = Program.from_text("""
func @main(%0, %1) -> 1 {
^b:
  %2 = multiply %0, %1
  %3 = sqrt %2
  return %3
}
""")


def reply(source: str, signature: str = "main(f32[n], f32[n])") -> CompileReply:
    request = CompileRequest(
        PROGRAM.to_bytes(), "main", signature, "x86-64-v3", dump=True, source=source
    )
    return CompileReply.decode(compile_request(request.encode()))


def objdump(library: bytes, folder: Path, *options: str) -> str:
    file = folder / "kernel.so"
    file.write_bytes(library)
    return subprocess.run(
        ["objdump", *options, str(file)], check=True, capture_output=True, text=True
    ).stdout


def test_machine_code_points_to_the_line_of_the_ir_that_it_comes_from(tmp_path: Path) -> None:
    source = tmp_path / LLVM_IR
    made = reply(str(source))
    text = made.stages[LLVM_IR].splitlines()
    source.write_text("\n".join(text))
    listing = objdump(made.library, tmp_path, "-d", "-l", "--no-show-raw-insn")
    found: dict[str, set[str]] = {}
    line = ""
    for each in listing.splitlines():
        place = re.fullmatch(rf"{re.escape(str(source))}:(\d+)(?: .*)?", each)
        if place:
            line = text[int(place.group(1)) - 1]
        elif "vsqrtps" in each or "vmulps" in each:
            found.setdefault(re.findall(r"v\w+ps", each)[0], set()).add(line)
    assert all("fmul" in line for line in found["vmulps"])
    assert all("llvm.sqrt" in line for line in found["vsqrtps"])


def test_line_tables_change_no_instruction(tmp_path: Path) -> None:
    plain, lines = reply(""), reply(str(tmp_path / LLVM_IR))
    code = [objdump(r.library, tmp_path, "-d", "-j", ".text") for r in (plain, lines)]
    assert code[0] == code[1]
    headers = [objdump(r.library, tmp_path, "-h") for r in (plain, lines)]
    assert ".debug_line" not in headers[0]
    assert ".debug_line" in headers[1]


def test_kernels_have_their_signature_as_name(tmp_path: Path) -> None:
    symbols = objdump(reply("").library, tmp_path, "-T")
    assert "main(f32[n], f32[n])" in symbols
    assert "main(f32[n], f32[n]) parallel.0" in symbols
    assert "jd_entry" in symbols


def test_libraries_with_debug_sections_load(tmp_path: Path) -> None:
    library = DlopenEngine(tmp_path / "code").load(reply(str(tmp_path / LLVM_IR)).library, "k")
    assert library.address("jd_entry")
    library.close()


def test_dumps_have_the_text_that_line_tables_speak_of(tmp_path: Path) -> None:
    jd.config.dump = tmp_path
    try:
        f = jd.jit(lambda x: jnp.sqrt(x * 1.5) - 0.125)
        for _ in range(12):
            f(np.ones(100, np.float32))
        f.wait()
    finally:
        jd.config.dump = None
    (file,) = tmp_path.rglob(LLVM_IR)
    assert "define" in file.read_text()
    assert (file.parent / "00-vm.mlir").exists()


def test_names_that_are_no_plain_text_are_quoted() -> None:
    text = with_lines(
        "define void @f() {\nb0:\n  ret void\n}\n", '/tmp/\u00e9"/a.ll', lambda n: n + "[\u221e]"
    )
    assert 'name: "f[\\E2\\88\\9E]"' in text
    assert 'directory: "/tmp/\\C3\\A9\\22"' in text
    assert "  ret void, !dbg !7" in text


@pytest.mark.parametrize("signature", ["main(f32[8], f32[8])", "main(f64[n,m], f64[n,m])"])
def test_lines_hold_for_other_signatures(signature: str, tmp_path: Path) -> None:
    listing = objdump(reply(str(tmp_path / LLVM_IR), signature).library, tmp_path, "-d", "-l")
    assert f"{tmp_path / LLVM_IR}:" in listing
