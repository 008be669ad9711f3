"""Texts of every stage in files with stable names, so that two shapes can be compared with `diff`.

`<folder>/<function>-<first 8 digits of the fingerprint>/<signature>/<NN-pass>.mlir`
"""

from __future__ import annotations

import re
from pathlib import Path

from jitdialects.runtime.cache import CacheKey
from jitdialects.runtime.messages import CompileReply


def folder_of(base: Path, key: CacheKey) -> Path:
    """Where the stages of `key` lie."""
    function, _, arguments = key.signature.partition("(")
    return base / f"{function}-{key.fingerprint[:8]}" / signature_slug(arguments.rstrip(")"))


def signature_slug(arguments: str) -> str:
    """`f32[n,784], float` as the name of a folder: `f32-nx784_float`."""
    parts: list[str] = []
    for argument in arguments.split(", "):
        words = re.sub(r"[\[\]:]+", "-", argument.replace(",", "x")).strip("-")
        parts.append(re.sub(r"[^\w.-]+", "", words))
    return "_".join(parts) or "none"


def write(base: Path, key: CacheKey, reply: CompileReply) -> Path:
    """Write the stages of a reply; returns their folder."""
    folder = folder_of(base, key)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in reply.stages.items():
        (folder / f"{name}.mlir").write_text(text)
    return folder
