"""The kernel pack: its file, what is wrong with files, and the bits of its kernels."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from quiet import quiet

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.config import config
from jitdialects.errors import CompileError
from jitdialects.runtime import pack
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.messages import CompileRequest, encode_error
from jitdialects.runtime.pack import KERNELS, KernelPack, pack_path
from jitdialects.runtime.pool import MemoryPool

DTYPES = sorted({dtype for dtype, _ in KERNELS})


def asked(level: str, spec: pack.KernelSpec) -> bytes:
    return CompileRequest(spec.program(), "main", spec.signature, level, bare=True).encode()


@pytest.fixture(scope="module")
def replies() -> dict[bytes, bytes]:
    """What the real compiler answers, once."""
    from jitdialects.runtime.compiler import compile_request

    requests = [asked(feature_level(), spec) for spec in KERNELS.values()]
    return {request: compile_request(request) for request in requests}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def make(replies: dict[bytes, bytes]):
    """A pack whose compiler answers from memory."""
    return lambda fill=None: KernelPack(replies.__getitem__, fill)


@pytest.fixture
def filled(make, folder: Path) -> Path:
    """The file of a pack that was made."""
    assert make().prepare(feature_level()) == {}
    return pack_path(feature_level())


def exp_of_zero(made: KernelPack) -> None:
    zeros = np.zeros(5, np.float32)
    assert made.run("exp", zeros, pool=MemoryPool()).tolist() == [1.0] * 5


def pack_files(folder: Path) -> list[Path]:
    """The files of packs; which compiler this is may be kept there, too, by whoever asks first."""
    return [path for path in folder.iterdir() if not path.name.startswith("compiler-")]


def test_a_second_pack_is_read_from_the_file(make, filled: Path) -> None:
    made = make()
    exp_of_zero(made)
    assert made.compiled == 0
    assert [p.name for p in pack_files(filled.parent)] == [filled.name], "no piece is left"


def test_what_a_call_needs_is_made_first_and_kept(make, folder: Path) -> None:
    first, second = make(), make()
    exp_of_zero(first)
    (piece,) = pack_files(folder)
    assert piece.name.endswith("-exp_float32.piece")
    exp_of_zero(second)
    assert (first.compiled, second.compiled) == (1, 0)


def test_the_others_are_made_when_nobody_asks_and_become_one_library(
    make, replies: dict[bytes, bytes], folder: Path
) -> None:
    gate = threading.Event()

    def fill(request: bytes) -> bytes:
        gate.wait(20)
        return replies[request]

    made = make(fill)
    exp_of_zero(made)
    (maker,) = (t for t in threading.enumerate() if t.name == "jitdialects-pack")
    made.run("tanh", np.zeros(5, np.float32), pool=MemoryPool())  # needs not wait for that
    gate.set()
    maker.join(60)
    assert [p.name for p in pack_files(folder)] == [pack_path(feature_level()).name]
    exp_of_zero(made)
    assert not [t for t in threading.enumerate() if t.name == "jitdialects-pack"]
    again = make()
    exp_of_zero(again)
    assert again.compiled == 0


def test_a_library_that_another_process_made_in_the_meantime_is_used(make, folder: Path) -> None:
    started, other = make(), make()
    exp_of_zero(started)
    other.prepare(feature_level())
    started.run("tanh", np.zeros(5, np.float32), pool=MemoryPool())
    assert started.compiled == 1
    assert other.compiled == len(KERNELS) - 1, "the first is there as a piece"


def test_what_is_left_undone_when_the_process_ends_is_done_by_the_next(
    make, replies: dict[bytes, bytes], folder: Path
) -> None:
    left = list(replies.values())[:5]

    def fill(request: bytes) -> bytes:
        if not left:
            raise CompileError("this process compiles nothing any more")
        left.pop()
        return replies[request]

    made = make(fill)
    exp_of_zero(made)
    for thread in threading.enumerate():
        if thread.name == "jitdialects-pack":
            thread.join(60)
    assert len(pack_files(folder)) == 6
    again = make()
    assert again.prepare(feature_level()) == {}
    assert again.compiled == len(KERNELS) - 6


def test_threads_that_need_a_kernel_at_once_have_it_made_once(make, folder: Path) -> None:
    """numba/numba#1791: sixteen first calls."""
    made, barrier = make(), threading.Barrier(16)

    def call() -> None:
        barrier.wait()
        exp_of_zero(made)

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made.compiled == 1


def test_a_forked_child_has_the_kernels_and_makes_others(make, folder: Path) -> None:
    made = make()
    exp_of_zero(made)
    made._changed.acquire()  # as another thread might when the process forks
    child = os.fork()
    if not child:
        made.after_fork()
        exp_of_zero(made)
        made.run("tanh", np.zeros(5, np.float32), pool=MemoryPool())
        os._exit(0 if made.compiled == 2 else 1)
    made._changed.release()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: b"ELF!" + data[4:],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
    ],
    ids=["half", "one byte short", "empty", "foreign", "one bit"],
)
def test_a_damaged_file_is_replaced_with_one_warning(make, filled: Path, damage) -> None:
    whole = filled.read_bytes()
    filled.write_bytes(damage(whole))
    again = make()
    with pytest.warns(RuntimeWarning, match="is not used and made again") as caught:
        exp_of_zero(again)
    assert again.compiled == 1
    with quiet():
        assert again.prepare(feature_level()) == {}
    assert len(caught) == 1
    assert again.compiled == len(KERNELS)
    assert filled.read_bytes() == whole


def test_a_damaged_piece_is_replaced(make, folder: Path) -> None:
    exp_of_zero(make())
    (piece,) = pack_files(folder)
    whole = piece.read_bytes()
    piece.write_bytes(whole[:-100])
    again = make()
    with pytest.warns(RuntimeWarning, match="is not used and made again"):
        exp_of_zero(again)
    assert again.compiled == 1
    assert piece.read_bytes() == whole


def test_a_folder_that_cannot_be_written_keeps_the_pack_in_memory(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "cache_dir", tmp_path / "file" / "cache")
    made = make()
    with pytest.warns(RuntimeWarning, match="in memory only") as caught:
        exp_of_zero(made)
    exp_of_zero(made)
    assert len(caught) == 1


def test_a_folder_that_others_may_write_is_not_trusted(make, folder: Path) -> None:
    exp_of_zero(make())
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="may be written by others"):
        exp_of_zero(make())


def test_without_a_cache_folder_nothing_is_written(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "cache_dir", None)
    with quiet():
        exp_of_zero(make())


def test_a_kernel_that_cannot_be_compiled_is_one_sentence(folder: Path) -> None:
    made = KernelPack(lambda request: encode_error("no such target"))
    with pytest.raises(
        CompileError, match="exp of float32 cannot be interpreted, .* no such target"
    ):
        made.run("exp", np.zeros(3, np.float32), pool=MemoryPool())
    assert not folder.exists()


WARM_START = """
import sys
import numpy as np
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.runtime import pack
from jitdialects.runtime.vm import VM

x, w1, b1, w2, b2 = (np.ones(s, np.float32) for s in ((2, 8), (8, 4), (4,), (4, 3), (3,)))
(y,) = VM(Program.load(sys.argv[1])).run("main", x, w1, b1, w2, b2)
assert y.shape == (2, 3) and (abs(y - 5) < 1e-3).all(), y
assert not pack.default_pack.compiled
assert not {m.partition(".")[0] for m in sys.modules} & {"xdsl", "llvmlite"}
"""


def mlp() -> Program:
    builder = ProgramBuilder()
    main = builder.function("main", 5)
    x, w1, b1, w2, b2 = main.parameters
    hidden = main.apply("tanh", main.apply("add", main.apply("matmul", x, w1), b1))
    main.returns(main.apply("add", main.apply("matmul", hidden, w2), b2))
    return builder.finish()


def test_a_warm_start_imports_no_compiler(make, folder: Path, tmp_path: Path) -> None:
    make().prepare(feature_level())
    mlp().save(tmp_path / "mlp.jbc")
    environment = os.environ | {"JITDIALECTS_CACHE_DIR": str(folder)}
    script = [sys.executable, "-c", WARM_START, str(tmp_path / "mlp.jbc")]
    subprocess.run(script, check=True, env=environment)


def test_a_pack_of_another_compiler_is_not_loaded_under_any_name(
    make, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "compiler_version", lambda: "0123456789abcdef")
    theirs = pack_path(feature_level())
    assert theirs != filled
    theirs.write_bytes(filled.read_bytes())
    again = make()
    with pytest.warns(RuntimeWarning, match="made by another version"):
        exp_of_zero(again)
    assert again.compiled == 1


def test_the_version_of_the_compiler_is_the_same_in_every_process(tmp_path: Path) -> None:
    script = "from jitdialects.runtime.identity import compiler_version as v; print(v())"
    seen = {
        subprocess.run(
            [sys.executable, "-c", load + script],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed, load in (("1", ""), ("2", "import xdsl, llvmlite; "))
    }
    assert len(seen) == 1


# ---- ahead of time -----------------------------------------------------------------------------


@pytest.fixture
def default(make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> KernelPack:
    """Stands in for the pack of the process."""
    made = make()
    monkeypatch.setattr(pack, "default_pack", made)
    return made


def test_the_pack_is_made_ahead_of_time_and_only_once(
    make, default: KernelPack, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pack.main([]) == 0
    path = pack_path(feature_level())
    expected = f"{path}: {len(KERNELS)} kernels, {path.stat().st_size} bytes, made in"
    assert expected in capsys.readouterr().out
    monkeypatch.setattr(pack, "default_pack", make())
    assert pack.main([]) == 0
    assert "is there" in capsys.readouterr().out


def test_making_the_pack_says_why_there_is_none(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "default_pack", KernelPack(lambda data: encode_error("no target")))
    assert pack.main([]) == 1
    assert "error: exp of float32 was not compiled: no target" in capsys.readouterr().err


def test_making_the_pack_needs_a_folder_that_may_be_written(
    default: KernelPack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "cache_dir", tmp_path / "file" / "cache")
    assert pack.main([]) == 1
    assert "warning: jitdialects: the kernel pack is kept in memory" in capsys.readouterr().err
    monkeypatch.setattr(config, "cache_dir", None)
    assert pack.main([]) == 1
    assert "no cache folder; set JITDIALECTS_CACHE_DIR" in capsys.readouterr().err


def test_making_the_pack_has_a_usage(capsys: pytest.CaptureFixture) -> None:
    for arguments, code in ((["--help"], 0), (["x"], 2)):
        with pytest.raises(SystemExit) as stop:
            pack.main(arguments)
        assert stop.value.code == code
    assert "usage: python -m jitdialects.runtime.pack" in capsys.readouterr().out


# ---- kernels -----------------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1.5], np.float32)


def test_a_dtype_that_is_not_used_is_not_compiled_first(make, folder: Path) -> None:
    made = make()
    made.run("max", np.zeros((2, 2)), pool=MemoryPool())
    assert made.compiled == 1
    assert [p.name[-15:] for p in pack_files(folder)] == ["x_float64.piece"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_minimum_and_maximum_order_zeros_and_propagate_nan(make, folder: Path, dtype: str) -> None:
    made, pool = make(), MemoryPool()
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
    for name, better in (("minimum", np.less), ("maximum", np.greater)):
        result = made.run(name, x, y, pool=pool)
        nan = np.isnan(x) | np.isnan(y)
        assert np.isnan(result[nan]).all()
        first = better(x, y) | ((x == y) & (np.signbit(x) == (name == "minimum")))
        expected = np.where(first, x, y)[~nan]
        assert result[~nan].tobytes() == expected.tobytes()


def sample(name: str, dtype: str) -> list[np.ndarray]:
    """Operands for a kernel."""
    random = np.random.default_rng(3)
    ranks = [len(a.shape) for a in parse(KERNELS[dtype, name].signature).arguments]
    sizes = {1: (70,), 2: (70, 70), 3: (3, 70, 5)}
    values = [random.standard_normal(sizes[rank]).astype(dtype) for rank in ranks]
    return [abs(x) if name in ("log", "rsqrt") else x for x in values]


def test_every_kernel_has_the_same_bits_at_the_lowest_level(
    make, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without vectors beyond 16 bytes and without FMA."""
    from jitdialects.runtime.compiler import compile_request

    made, lowest, pool = make(), KernelPack(compile_request), MemoryPool()
    for dtype, name in KERNELS:
        operands = sample(name, dtype)
        expected = made.run(name, *operands, pool=pool)
        with monkeypatch.context() as limited:
            limited.setattr(config, "features", "x86-64-v1")
            result = lowest.run(name, *operands, pool=pool)
        assert result.tobytes() == expected.tobytes(), (dtype, name)
    assert lowest.compiled == len(KERNELS)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (2, 33), (3, 4097), (1, 9000)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_follow_the_order_of_the_contract(
    make, folder: Path, shape: tuple, dtype: str
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    result = make().run("sum", x, pool=MemoryPool())
    assert result.shape == shape[:1]
    assert np.allclose(result, x.sum(axis=1, dtype=np.float64), rtol=1e-4, atol=1e-3)
    reversed_twice = make().run("sum", np.ascontiguousarray(x[::-1]), pool=MemoryPool())[::-1]
    assert result.tobytes() == np.ascontiguousarray(reversed_twice).tobytes()


@pytest.mark.parametrize("m", [0, 1, 9])
@pytest.mark.parametrize("k", [0, 1, 17, 513])
@pytest.mark.parametrize("n", [0, 1, 19])
def test_matmul_of_any_sizes(make, folder: Path, m: int, k: int, n: int) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((m, k)).astype(np.float32)
    y = random.standard_normal((k, n)).astype(np.float32)
    made, pool = make(), MemoryPool()
    assert np.allclose(made.run("matmul", x, y, pool=pool), x @ y, atol=1e-3)
    if n:
        row = np.ascontiguousarray(y[:, 0])
        assert np.allclose(made.run("matvec", x, row, pool=pool), x @ row, atol=1e-3)


def test_operands_that_are_not_aligned_are_copied(make, folder: Path) -> None:
    values = np.linspace(-2, 2, 9, dtype=np.float32)
    x = np.ndarray(9, np.float32, buffer=bytearray(values.nbytes + 1), offset=1)
    x[:] = values
    assert not x.flags.aligned
    made, pool = make(), MemoryPool()
    result = made.run("tanh", x, pool=pool)
    assert result.tobytes() == made.run("tanh", values, pool=pool).tobytes()
