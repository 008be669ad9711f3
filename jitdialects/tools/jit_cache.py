"""`jit-cache`: look at the compiled code on disk, ask why a call found none, and tidy up."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jitdialects.bytecode.assembler import assemble
from jitdialects.bytecode.binary import MAGIC, decode
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.config import config
from jitdialects.errors import Error
from jitdialects.runtime.cache.disk import (
    FOLDER,
    DiskLevel,
    entries_in,
    remove_empty_folders,
    remove_entry,
    verified,
)
from jitdialects.runtime.cache.entry_file import BadEntry, StoredEntry
from jitdialects.runtime.cache.key import CacheKey, is_general
from jitdialects.runtime.cache.process import field_differences
from jitdialects.runtime.dispatch import differences
from jitdialects.runtime.identity import compiler_version, feature_level, fingerprint
from jitdialects.runtime.messages import CompileReply
from jitdialects.tools.jit_pool import bytes_of

_DESCRIPTION = "Look at the code that earlier processes have compiled and kept on disk (JITDIALECTS_CACHE_DIR)."
_EXAMPLE = """\
example:
  jit-cache ls                                     what is there
  jit-cache explain model.jbc                      what of it this program would use, and why not the rest
  jit-cache explain model.jbc --signature 'main(f32[8,784])'
  jit-cache explain 1927df6e                       one entry, by the beginning of its name in `ls`
  jit-cache verify                                 read everything
  jit-cache prune --days 30                        remove what is damaged, of other versions, or not used
  jit-cache clear                                  remove everything

exit code: 0 done, or found; 1 damaged entries, or nothing that fits; 2 wrong usage or no folder
"""
_DAY = 86400


@dataclass(frozen=True)
class Listed:
    """A file of the cache, and what is in it or wrong with it."""

    path: str
    size: int
    used: float
    entry: StoredEntry | None
    problem: str

    @property
    def name(self) -> str:
        """What people call it."""
        folder, file = self.path.rsplit("/", 2)[1:]
        return f"{folder[:8]}-{file.split('-', 1)[-1].removesuffix('.jdk')}"

    @property
    def is_current(self) -> bool:
        """Whether this version of the compiler made it."""
        return self.entry is not None and self.entry.key.compiler == compiler_version()


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with `args` (the command line's by default); the exit code."""
    parser = argparse.ArgumentParser(
        prog="jit-cache",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", type=Path, help="instead of JITDIALECTS_CACHE_DIR")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("ls", help="list entries, those used last first")
    explain = commands.add_parser("explain", help="what differs between entries and what is wanted")
    explain.add_argument(
        "target", help="a program (text or .jbc), or the beginning of an entry's name"
    )
    explain.add_argument("--signature", help="of the call, e.g. 'main(f32[8])'")
    commands.add_parser("verify", help="read every entry and say which are damaged")
    prune = commands.add_parser("prune", help="remove what is of no use, then down to a size")
    prune.add_argument(
        "--bytes", type=bytes_of, help="size to prune to (default: JITDIALECTS_DISK_CAP)"
    )
    prune.add_argument("--days", type=_days, help="remove what was not used for so long")
    commands.add_parser("clear", help="remove every entry")
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    try:
        if options.folder is not None:
            if not options.folder.is_dir():
                raise Error(f"there is no folder {options.folder}")
            config.cache_dir = options.folder
        if config.cache_dir is None:
            raise Error("there is no cache folder; set JITDIALECTS_CACHE_DIR or give --folder")
        return _run(config.cache_dir / FOLDER, options)
    except (Error, OSError) as error:
        print(f"jit-cache: error: {error}", file=sys.stderr)
        return 2


def _days(text: str) -> float:
    """A number of days that is not negative: all entries are older than none."""
    if not (days := float(text)) >= 0:
        raise argparse.ArgumentTypeError("needs a number of days, 0 or more")
    return days


def _run(folder: Path, options: argparse.Namespace) -> int:
    if options.command == "ls":
        return _list(folder)
    if options.command == "explain":
        return _explain(folder, options.target, options.signature)
    if options.command == "verify":
        return _verify(folder)
    if options.command == "prune":
        return _prune(folder, options.bytes, options.days)
    removed = sum(remove_entry(path) for _, _, path in entries_in(folder))
    remove_empty_folders(folder)
    print(f"{removed} entries removed")
    return 0


def _entries(folder: Path) -> Iterator[Listed]:
    """The entries below `folder`, those used last first."""
    for used, size, path in sorted(entries_in(folder), reverse=True):
        try:
            stored, _ = verified(path, touch=False)
            yield Listed(path, size, used, stored, "")
        except FileNotFoundError:
            continue  # removed by someone else
        except (BadEntry, OSError) as error:
            yield Listed(path, size, used, None, str(error))


def _list(folder: Path) -> int:
    entries = list(_entries(folder))
    for each in entries:
        print(f"{each.name}  {each.size:>8}  {_age(each.used):>5}  {_what(each)}")
    total = sum(each.size for each in entries)
    old = sum(not each.is_current for each in entries)
    print(f"{len(entries)} entries, {total} bytes in {folder}; {old} not of this version")
    return 0


def _age(then: float) -> str:
    hours = max(0.0, time.time() - then) / 3600
    return f"{hours / 24:.0f}d" if hours >= 48 else f"{hours:.0f}h"


def _what(each: Listed) -> str:
    if each.entry is None:
        return f"damaged: {each.problem}"
    key, level = each.entry.key, each.entry.level
    made = f"{key.features}" if level == key.features else f"{key.features}, runs on {level}"
    failure = each.entry.reply.error
    return f"{key.signature}  ({made})" + (f": cannot be compiled: {failure}" if failure else "")


# ---- explain -----------------------------------------------------------------------------------


def _explain(folder: Path, target: str, signature: str | None) -> int:
    wanted = None if signature is None else parse(signature)
    if wanted is not None and is_general(str(wanted)):
        raise Error(
            f"--signature {signature}: a call has sizes, not names; write for example main(f32[8])"
        )
    entries = list(_entries(folder))
    if Path(target).is_file():
        program = _program(Path(target))
        names = [f.name for f in program.functions if wanted is None or f.name == wanted.function]
        if not names:
            raise Error(f"{target} has no function of that name")
        return 0 if [name for name in names if _function(program, name, wanted, entries)] else 1
    chosen = [each for each in entries if each.name.startswith(target)]
    if not chosen:
        raise Error(
            f"{target!r} is neither a file nor the beginning of an entry's name in jit-cache ls"
        )
    for each in chosen:
        print(f"{each.name}: {_what(each)}")
        for line in _against(each, None, wanted):
            print(f"  {line}")
    return 0


def _program(path: Path) -> Program:
    data = path.read_bytes()
    if data.startswith(MAGIC[:4]):
        return decode(data)
    return assemble(data.decode(errors="replace"), str(path))


def _function(
    program: Program, name: str, wanted: Signature | None, entries: Sequence[Listed]
) -> bool:
    """Say what there is for a function; whether any of it would be used."""
    digest = fingerprint(program, name)
    print(
        f"@{name} (fingerprint {digest[:8]}), for {feature_level()}, compiler {compiler_version()}"
    )
    found = False
    own = [each for each in entries if each.path.rsplit("/", 2)[1] == digest]
    for each in own:
        lines = list(_against(each, digest, wanted))
        found |= lines == [_FITS]
        print(f"  {each.name}: {_what(each)}")
        for line in lines:
            print(f"    {line}")
    if not own:
        print("  no entry for this bytecode")
        for each in entries:
            text = None if each.entry is None else each.entry.key.signature
            if wanted is not None and text == str(wanted):
                print(f"  {each.name} is for other bytecode of this signature:")
                for line in _against(each, digest, wanted):
                    print(f"    {line}")
    return found


_FITS = "fits"


@dataclass(frozen=True)
class _Code:
    signature: Signature
    reply: CompileReply


def _against(each: Listed, digest: str | None, wanted: Signature | None) -> Iterator[str]:
    """What keeps an entry from being used here, `fits` if nothing does."""
    stored = each.entry
    if stored is None:
        yield f"damaged: {each.problem}"
        return
    key = stored.key
    now = CacheKey(
        key.fingerprint if digest is None else digest,
        key.signature,
        key.features,
        compiler_version(),
        config.numerics,
        typical=key.typical,
        balance=key.balance,
    )
    found = list(field_differences(now, key))
    if stored.level > feature_level():
        found.append(f"features: this CPU has {feature_level()}, entry needs {stored.level}")
    if wanted is not None:
        found += differences(_Code(parse(key.signature), stored.reply), wanted)
    if stored.reply.error is not None:
        found.append(f"cannot be compiled: {stored.reply.error}")
    yield from found or [_FITS]


# ---- tidying up --------------------------------------------------------------------------------


def _verify(folder: Path) -> int:
    damaged, count = 0, 0
    for each in _entries(folder):
        count += 1
        if each.entry is None:
            damaged += 1
            print(f"{each.path}: {each.problem}")
    print(f"{count} entries, {damaged} damaged")
    return 1 if damaged else 0


def _prune(folder: Path, size: int | None, days: float | None) -> int:
    oldest = 0.0 if days is None else time.time() - days * _DAY
    before = after = 0
    for each in list(_entries(folder)):
        before += 1
        if not each.is_current or each.used < oldest:
            remove_entry(each.path)
    level = DiskLevel()
    if config.disk_cap or size is not None:
        level.sweep(config.disk_cap if size is None else size)
    remove_empty_folders(folder)
    after = sum(1 for _ in entries_in(folder))
    for memo in folder.parent.glob("compiler-*"):
        with suppress(OSError):
            if memo.read_text("utf-8") != compiler_version():
                memo.unlink()
    print(f"{before - after} entries removed, {after} left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
