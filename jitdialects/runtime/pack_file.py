"""Code with facts as one file: what the kernel pack is kept in.

    code | facts (JSON) | magic(8) version(u32) lengths(2 x u64) digest(32)

little endian. The code comes first: where it is a shared library, the dynamic linker opens the file as it lies
there and ignores what follows. The digest is BLAKE2b over all that stands before it and over the `origin`: from
what, for what and by which compiler the code was made, so that a renamed file does not fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any, cast

from jitdialects.errors import Error
from jitdialects.runtime.engines import LibraryFile
from jitdialects.runtime.engines.dlopen import private_folder

MAGIC, VERSION = b"JDKPACK\0", 2
_FOOTER = struct.Struct("<8sIQQ32s")
_DIGEST_BYTES = 32


class PackError(Error):
    """Bytes that are no code with facts, or not what they should be."""


def encode(origin: str, facts: dict[str, Any], code: bytes) -> bytes:
    """The bytes of a file."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    body = code + text + _FOOTER.pack(MAGIC, VERSION, len(code), len(text), b"")[:-_DIGEST_BYTES]
    return body + _digest(origin, body)


def decode(origin: str, data: bytes) -> tuple[dict[str, Any], bytes]:
    """Facts and code in `data`; `PackError` where anything is not as it was written."""
    if len(data) < _FOOTER.size:
        raise PackError(f"{len(data)} bytes are too few")
    magic, version, *lengths, digest = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC or version != VERSION:
        raise PackError(f"it ends in {magic!r} version {version}, expected {MAGIC!r} {VERSION}")
    if sum(lengths) + _FOOTER.size != len(data):
        raise PackError("its parts are not as long as it says")
    if _digest(origin, memoryview(data)[:-_DIGEST_BYTES]) != digest:
        raise PackError("its digest is wrong: cut off, altered or made by another version")
    facts = json.loads(data[lengths[0] : lengths[0] + lengths[1]])
    return cast(dict[str, Any], facts), data[: lengths[0]]


def _digest(origin: str, body: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(origin.encode() + b"\0", digest_size=_DIGEST_BYTES)
    digest.update(body)
    return digest.digest()


def read(path: Path, origin: str) -> tuple[dict[str, Any], bytes, LibraryFile] | None:
    """Facts and code in the file, and which file that is; None if there is none. Raises `Error` or `OSError`
    for one that cannot be used."""
    try:
        with path.open("rb") as file:
            data, inode = file.read(), os.fstat(file.fileno()).st_ino
        private_folder(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return *decode(origin, data), LibraryFile(str(path), inode)
