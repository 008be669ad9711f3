"""Texts of every stage in files with stable names, so that two shapes can be compared with `diff`.

`<folder>/<function>-<first 8 digits of the fingerprint>/<signature>/<NN-pass>.mlir` (behind the signature the balance of
judges, where it is not 1), and `llvm-ir.ll` beside them, of
which the line tables of code speak that was compiled while dumping is on.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from jitdialects.runtime.cache import CacheKey
from jitdialects.runtime.messages import LLVM_IR, CompileReply
from jitdialects.runtime.notices import notice

LONGEST_SLUG = 200
"""File systems take 255 bytes in a name."""


def folder_of(base: Path, key: CacheKey) -> Path:
    """Where the stages of `key` lie."""
    function, _, arguments = key.signature.partition("(")
    slug = signature_slug(arguments.rstrip(")"))
    told = "" if key.balance == 1.0 else f"-balance-{key.balance:g}"
    return base / f"{function}-{key.fingerprint[:8]}" / f"{slug}{told}"


def signature_slug(arguments: str) -> str:
    """`f32[n,784], float` as the name of a folder: `f32-nx784_float`; a digest ends what is too long."""
    parts: list[str] = []
    for argument in arguments.split(", "):
        words = re.sub(r"[\[\]:]+", "-", argument.replace(",", "x")).strip("-")
        parts.append(re.sub(r"[^\w.-]+", "", words))
    slug = "_".join(parts) or "none"
    if len(slug) <= LONGEST_SLUG:
        return slug
    digest = hashlib.blake2b(slug.encode(), digest_size=8).hexdigest()
    return f"{slug[:LONGEST_SLUG]}-{digest}"


def write(base: Path, key: CacheKey, reply: CompileReply) -> Path:
    """Write the stages of a reply; returns their folder. Where that fails a warning says so: the code
    is as good without them."""
    folder = folder_of(base, key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in reply.stages.items():
            (folder / (name if name == LLVM_IR else f"{name}.mlir")).write_text(text)
    except OSError as error:
        notice(
            f"the stages of {key.signature} are not dumped: {error}; "
            "set JITDIALECTS_DUMP to a folder that may be written",
        )
    return folder
