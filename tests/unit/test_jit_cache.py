"""`jit-cache`: what is there, why a call found none of it, and tidying up."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cache_helpers import call, compiled, files, folder, fresh, keep, key_of, plus

from jitdialects.config import config
from jitdialects.runtime.messages import CompileReply, encode_error
from jitdialects.tools.jit_cache import main

__all__ = ["folder"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output, errors."""
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_ls_lists_what_is_there(folder: Path, capsys) -> None:
    assert run(capsys, "ls") == (
        0,
        f"0 entries, 0 bytes in {folder}/kernels; 0 not of this version\n",
        "",
    )
    key = keep(fresh(), plus())
    keep(fresh(), plus(), "main(f32[n])")
    data = encode_error("recursion", final=True)
    fresh().keep(key_of(plus(), "main(i32[8])"), data, CompileReply.decode(data))
    code, out, _ = run(capsys, "ls")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 4 and "3 entries" in lines[-1]
    assert all(line.startswith(key.fingerprint[:8]) for line in lines[:3])
    assert any("main(f32[n])" in line for line in lines)
    assert any("main(i32[8])" in line and "cannot be compiled: recursion" in line for line in lines)


def program_file(tmp_path: Path, number: float = 1.0) -> str:
    path = tmp_path / f"plus{number}.jbc"
    path.write_bytes(plus(number).to_bytes())
    return str(path)


def test_explain_says_which_field_differs(folder: Path, tmp_path: Path, capsys) -> None:
    """Case 115."""
    cache, program = fresh(), plus()
    key = keep(cache, program)
    data = compiled(program.to_bytes())
    reply = CompileReply.decode(data)
    cache.keep(replace(key, compiler="0123"), data, reply)
    cache.keep(replace(key, fuse=False), data, reply)
    cache.keep(replace(key, schedule="0: vector = 4"), data, reply)
    path = program_file(tmp_path)
    code, out, _ = run(capsys, "explain", path, "--signature", "main(f32[8])")
    assert code == 0 and "    fits\n" in out
    assert f"compiler: {key.compiler}, entry has 0123" in out
    assert "fuse: True, entry has False" in out
    assert "schedule: , entry has 0: vector = 4" in out
    code, out, _ = run(capsys, "explain", path, "--signature", "main(f32[9])")
    assert code == 1 and "dim 0 of argument 0: 9, entry has 8" in out
    code, out, _ = run(capsys, "explain", path, "--signature", "main(f64[8])")
    assert code == 1 and "dtype of argument 0: float64, entry has float32" in out


def test_explain_of_changed_bytecode(folder: Path, tmp_path: Path, capsys) -> None:
    key = keep(fresh(), plus())
    other = program_file(tmp_path, 5.0)
    code, out, _ = run(capsys, "explain", other, "--signature", "main(f32[8])")
    assert code == 1 and "no entry for this bytecode" in out
    assert f"fingerprint: {key_of(plus(5)).fingerprint}, entry has {key.fingerprint}" in out


def test_explain_of_one_entry(folder: Path, capsys) -> None:
    key = keep(fresh(), plus())
    assert run(capsys, "explain", key.fingerprint[:6])[1].endswith("\n  fits\n")
    data = compiled(plus(2).to_bytes())
    reply = replace(CompileReply.decode(data), level="x86-64-v4")
    fresh().keep(replace(key_of(plus(2)), features="x86-64-v4"), data, reply)
    config.features = "x86-64-v2"
    try:
        _, out, _ = run(capsys, "explain", key_of(plus(2)).fingerprint[:8])
    finally:
        config.features = None
    assert "features: this CPU has x86-64-v2, entry needs x86-64-v4" in out


def test_verify_finds_what_is_damaged(folder: Path, capsys) -> None:
    for number in range(3):
        keep(fresh(), plus(number))
    assert run(capsys, "verify")[:2] == (0, "3 entries, 0 damaged\n")
    damaged = files(folder)[1]
    damaged.write_bytes(damaged.read_bytes()[:-5])
    code, out, _ = run(capsys, "verify")
    assert code == 1 and out.startswith(f"{damaged}: ") and out.endswith("3 entries, 1 damaged\n")
    assert "damaged" in run(capsys, "ls")[1]


def test_prune_removes_what_is_of_no_use(folder: Path, capsys) -> None:
    cache = fresh()
    keys = [keep(cache, plus(number)) for number in range(4)]
    data = compiled(plus(0).to_bytes())
    cache.keep(replace(keys[0], compiler="0123"), data, CompileReply.decode(data))
    paths = {key: folder / "kernels" / key.folder / key.file_name for key in keys}
    paths[keys[1]].write_bytes(b"damaged")
    os.utime(paths[keys[2]], (time.time() - 40 * 86400,) * 2)
    (folder / "compiler-0000").write_text("0123")
    assert run(capsys, "prune", "--days", "30")[:2] == (0, "3 entries removed, 2 left\n")
    assert set(files(folder)) == {paths[keys[0]], paths[keys[3]]}
    assert not (folder / "compiler-0000").exists()
    assert run(capsys, "prune", "--bytes", "0")[1] == "2 entries removed, 0 left\n"


def test_clear_removes_entries_and_nothing_else(folder: Path, capsys) -> None:
    cache = fresh()
    key = keep(cache, plus())
    (folder / "pack.so").touch()
    assert run(capsys, "clear")[:2] == (0, "1 entries removed\n")
    assert [p.name for p in folder.rglob("*") if p.is_file() and "compiler-" not in p.name] == [
        "pack.so"
    ]
    assert call(cache, key) == [2.0] * 8  # what is loaded stays


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "COMMAND"),
        (("eat",), "invalid choice"),
        (("explain", "no-such-entry"), "neither a file nor the beginning"),
        (("explain", __file__), "error:"),
        (("prune", "--bytes", "many"), "needs a number of bytes, such as"),
        (("prune", "--bytes", "-1"), "needs a number of bytes, such as"),
        (("prune", "--days", "-1"), "needs a number of days, 0 or more"),
        (("prune", "--days", "nan"), "needs a number of days, 0 or more"),
        (("--folder", "/nowhere", "ls"), "there is no folder /nowhere"),
        (("--folder", __file__, "clear"), "there is no folder"),
    ],
)
def test_wrong_usage_is_one_sentence(folder: Path, capsys, arguments, said: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2 and said in err and "Traceback" not in err


def test_a_signature_of_a_call_has_sizes(folder: Path, tmp_path: Path, capsys) -> None:
    path = program_file(tmp_path)
    code, _, err = run(capsys, "explain", path, "--signature", "main(f32[n])")
    assert code == 2 and "a call has sizes, not names" in err
    assert run(capsys, "explain", path, "--signature", "other(f32[8])")[0] == 2


def test_without_a_folder(monkeypatch, capsys) -> None:
    monkeypatch.setattr(config, "cache_dir", None)
    code, _, err = run(capsys, "ls")
    assert code == 2 and "set JITDIALECTS_CACHE_DIR or give --folder" in err


def test_another_folder(folder: Path, capsys) -> None:
    keep(fresh(), plus())
    config.cache_dir = None
    assert "1 entries" in run(capsys, "--folder", str(folder), "ls")[1]


def test_help_has_an_example(capsys) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0 and "jit-cache explain model.jbc" in out
