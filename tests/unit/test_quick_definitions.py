"""Classes that are defined the quick way are like others."""

import dataclasses
import subprocess
import sys
from pathlib import Path

FRESH = """
import dataclasses
import sys
from pathlib import Path
from jitdialects.runtime.quick_definitions import quick_definitions

with quick_definitions(Path(sys.argv[1]) if sys.argv[1:] else None):
    from xdsl.dialects import arith, llvm, memref
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    @dataclasses.dataclass(frozen=True)
    class First:
        x: int
        y: str = "a"

    @dataclasses.dataclass(frozen=True)
    class Second:
        x: float
        y: str = "b"

assert First(1) == First(1, "a") != Second(1), "classes may share code, not what they are"
assert repr(Second(2)) == "Second(x=2, y='b')" and hash(First(1)) == hash(First(1))
try:
    First(1).x = 2
except dataclasses.FrozenInstanceError:
    pass
else:
    raise AssertionError("frozen no more")

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

context = Context()
for dialect in (Builtin, arith.Arith, llvm.LLVM, memref.MemRef):
    context.load_dialect(dialect)
text = '''builtin.module {
  %0 = arith.constant 1.000000e+00 : f32
  %1 = arith.addf %0, %0 : f32
  %2 = memref.alloca() : memref<f32>
  memref.dealloc %2 : memref<f32>
}'''
assert str(Parser(context, text).parse_module()) == text, "formats are read when they are used"
assert FormatProgram.from_str.__module__ == FormatProgram.__module__, "later definitions are ordinary"
assert "exec" not in vars(dataclasses)
"""


def test_what_is_defined_the_quick_way_is_like_what_is_not() -> None:
    subprocess.run([sys.executable, "-c", FRESH], check=True)


def test_code_is_kept_and_made_again_where_it_cannot_be_used(tmp_path: Path) -> None:
    def run() -> Path:
        subprocess.run([sys.executable, "-c", FRESH, str(tmp_path / "cache")], check=True)
        (path,) = (tmp_path / "cache").iterdir()
        return path

    written = run().stat().st_ino
    assert run().stat().st_ino == written, "nothing was missing"
    path = run()
    path.write_bytes(path.read_bytes()[:-1])
    damaged = path.read_bytes()
    assert run().read_bytes() != damaged


def test_it_is_for_the_process_that_compiles_only() -> None:
    assert "exec" not in vars(dataclasses)
    assert "jitdialects.runtime.quick_definitions" not in sys.modules
