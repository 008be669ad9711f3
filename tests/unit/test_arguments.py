"""Arrays that are unusual in memory as arguments of compiled code: the bits of the interpreter, or its
error."""

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.errors import DTypeError
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM


def program() -> Program:
    """tanh(x) * y"""
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    x, y = main.parameters
    main.returns(main.apply("multiply", main.apply("tanh", x), y))
    return builder.finish()


def array(*shape: int) -> np.ndarray:
    return np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def unaligned(x: np.ndarray) -> np.ndarray:
    moved = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def read_only(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)


@pytest.fixture(scope="module")
def vm() -> VM:
    """Has code for (n, m) and (n, m)."""
    policy = Policy(threshold=1, shapes="symbolic")
    made = VM(program(), policy, MemoryPool(), CompileService(KernelCache()))
    made.run("main", array(4, 5), array(4, 5))
    made.wait()
    return made


@pytest.mark.parametrize("change", [unaligned, read_only, np.copy])
@pytest.mark.parametrize("shape", [(4, 5), (0, 5), (3, 0), (1, 1), (7, 33)])
def test_served_by_compiled_code_with_equal_bits(vm: VM, change, shape: tuple) -> None:
    x, y = change(array(*shape)), change(array(*shape))
    (expected,) = VM(program(), Policy(threshold=10**9)).run("main", x, y)
    profile = vm.functions["main"].profile
    before = profile.served
    (result,) = vm.run("main", x, y)
    assert (result.shape, result.tobytes()) == (shape, expected.tobytes())
    assert profile.served == before + 1


def test_foreign_byte_order_is_the_interpreters_error(vm: VM) -> None:
    with pytest.raises(DTypeError, match="foreign byte order"):
        vm.run("main", array(4, 5).astype(">f4"), array(4, 5))
