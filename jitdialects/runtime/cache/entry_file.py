"""An entry of the cache as bytes: one file, a shared library that can be loaded as it lies there.

    library | reply | facts | magic(8) version(u32) reserved(u32) lengths(3 x u64) digest(32) seal(32)

little endian. The library comes first, since the dynamic linker ignores what follows it; it is empty where
the function could not be compiled. The reply is the compiler's, without its library; the facts are JSON:
the `key`, and the `level` of instructions that the code needs. `digest` is BLAKE2b over all that stands
before it: checksum and content hash in one. `seal` is BLAKE2b, with the key that machines share, over all
that and the digest; zeros where nothing was signed. Reading an entry executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, replace
from typing import Any

from jitdialects.config import FEATURE_LEVELS
from jitdialects.errors import Error
from jitdialects.runtime.cache.key import CacheKey, key_from_json
from jitdialects.runtime.messages import CompileReply

MAGIC, VERSION = b"JDKERNEL", 1
_FOOTER = struct.Struct("<8sIIQQQ32s32s")
_HASH_BYTES = 32
_DIGEST_AT = _FOOTER.size - 2 * _HASH_BYTES
LARGEST = 1 << 28
"""Bytes of an entry; what claims to be larger is not read."""


class BadEntry(Error):
    """Bytes that are no entry, or not the one that was asked for. `reason` is one word, for counting."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class StoredEntry:
    """An entry that was read and found whole."""

    key: CacheKey
    level: str
    """What a CPU must have: the lowest feature level with all instructions that the code uses."""
    reply: CompileReply
    """With the library, or the error. Constants are numbered in the order of the fingerprint."""
    frame: bytes
    """The reply without its library, as bytes."""


def encode(key: CacheKey, level: str, frame: bytes, library: bytes, secret: bytes = b"") -> bytes:
    """The bytes of an entry. `frame`: a compile reply without its library."""
    facts = json.dumps({"key": key.as_json(), "level": level}, separators=(",", ":")).encode()
    lengths = len(library), len(frame), len(facts)
    footer = _FOOTER.pack(MAGIC, VERSION, 0, *lengths, b"", b"")
    body = b"".join((library, frame, facts, footer[:_DIGEST_AT]))
    signed = body + _digest(body)
    return signed + (_seal(signed, secret) if secret else bytes(_HASH_BYTES))


def decode(data: bytes, secret: bytes = b"") -> StoredEntry:
    """The entry in `data`; `BadEntry` where anything is not as it was written, or, with a `secret`, was
    not written by someone who has it."""
    if len(data) < _FOOTER.size:
        raise BadEntry("truncated", f"{len(data)} bytes are too few")
    magic, version, _, *lengths, digest, seal = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC:
        raise BadEntry("truncated", "it does not end as an entry does: cut off or overwritten")
    if version != VERSION:
        raise BadEntry("version", f"it has format {version}, this version reads {VERSION}")
    if sum(lengths) + _FOOTER.size != len(data):
        raise BadEntry("truncated", "its parts are not as long as it says")
    signed = memoryview(data)[:-_HASH_BYTES]
    if _digest(signed[:-_HASH_BYTES]) != digest:
        raise BadEntry("checksum", "its checksum is wrong: damaged or altered")
    if secret:
        import hmac  # 2.5 ms, for those who share

        if not hmac.compare_digest(_seal(signed, secret), seal):
            raise BadEntry("forged", "it was not signed with the shared secret")
    return _read(data, lengths[0], lengths[0] + lengths[1], sum(lengths))


def _read(data: bytes, library: int, frame: int, end: int) -> StoredEntry:
    try:
        facts: dict[str, Any] = json.loads(data[frame:end])
        reply = CompileReply.decode(data[library:frame])
        if reply.error is None:
            reply = replace(reply, library=data[:library])
        level = FEATURE_LEVELS[FEATURE_LEVELS.index(facts["level"])]
        return StoredEntry(key_from_json(facts["key"]), level, reply, data[library:frame])
    except (ValueError, LookupError, TypeError, Error) as error:
        raise BadEntry("unreadable", f"its facts cannot be read ({error})") from None


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).digest()


def _seal(data: bytes | memoryview, secret: bytes) -> bytes:
    key = hashlib.blake2b(secret, digest_size=64, person=b"jd shared cache").digest()
    return hashlib.blake2b(data, digest_size=_HASH_BYTES, key=key).digest()
