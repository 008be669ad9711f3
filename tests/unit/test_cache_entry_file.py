"""Entries as bytes: whatever is not exactly what was written is refused, with a reason."""

import json
import random
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdialects.runtime.cache.entry_file import MAGIC, BadEntry, decode, encode
from jitdialects.runtime.cache.key import CacheKey, class_prefix, is_general, signature_prefix
from jitdialects.runtime.messages import encode_error, encode_reply, without_library

KEY = CacheKey("ab12", "main(f32[8], f32[8])", "x86-64-v3", "c0")
FACTS = {
    "entry": "jd_entry",
    "arguments": [],
    "constants": [{"index": 7, "tile": 0}],
    "results": [],
    "guards": [],
    "arena": "0",
    "parallel": False,
    "operators": 1,
    "operators_fused": 0,
    "schedules": [],
    "remarks": [],
    "alternative": 0.0,
    "weighed": False,
    "milliseconds": {},
    "cpu_seconds": 0.0,
    "stages": {"00-vm": "text"},
}
LIBRARY = bytes(range(256)) * 4
FRAME = without_library(encode_reply(FACTS, LIBRARY), {7: 0}.__getitem__)
WHOLE = encode(KEY, "x86-64-v2", FRAME, LIBRARY)
SIGNED = encode(KEY, "x86-64-v2", FRAME, LIBRARY, b"secret")


def refused(data: bytes, secret: bytes = b"") -> str:
    """The reason for which `data` is refused."""
    with pytest.raises(BadEntry) as caught:
        decode(data, secret)
    return caught.value.reason


def test_an_entry_comes_back_as_it_was() -> None:
    found = decode(WHOLE)
    assert (found.key, found.level) == (KEY, "x86-64-v2")
    assert found.reply.library == LIBRARY and found.reply.error is None
    assert found.reply.constants[0].index == 0 and found.reply.stages == {}
    assert WHOLE.startswith(LIBRARY)  # the dynamic linker takes the file as it is


def test_a_failure_is_an_entry_without_a_library() -> None:
    found = decode(encode(KEY, "x86-64-v3", encode_error("recursion", final=True), b""))
    assert (found.reply.error, found.reply.final) == ("recursion", True)


def test_every_truncation_is_refused() -> None:
    """Case 103."""
    assert {refused(WHOLE[:length]) for length in range(len(WHOLE))} == {"truncated"}
    assert refused(WHOLE + b"\0") == "truncated"


def test_every_damaged_byte_is_refused() -> None:
    """Case 103. What follows the digest is the seal, which only sharing reads."""
    for at in range(len(SIGNED)):
        damaged = bytearray(SIGNED)
        damaged[at] ^= 1 << at % 8
        assert refused(bytes(damaged), b"secret")


@given(st.binary(max_size=400))
def test_noise_is_refused(noise: bytes) -> None:
    assert refused(noise)
    assert refused(noise + WHOLE[-len(noise) or 1 :])


def test_another_format_is_refused() -> None:
    at = WHOLE.index(MAGIC) + len(MAGIC)
    assert refused(WHOLE[:at] + struct.pack("<I", 99) + WHOLE[at + 4 :]) == "version"


def test_only_who_has_the_secret_can_sign() -> None:
    assert decode(SIGNED, b"secret").key == KEY
    assert decode(SIGNED).key == KEY
    assert refused(WHOLE, b"secret") == "forged"
    assert refused(SIGNED, b"Secret") == "forged"
    assert refused(encode(KEY, "x86-64-v2", FRAME, LIBRARY, b"guess"), b"secret") == "forged"


def test_entries_can_neither_be_mixed_nor_altered() -> None:
    other = encode(replace(KEY, fingerprint="cd34"), "x86-64-v2", FRAME, LIBRARY[::-1], b"secret")
    for at in random.Random(0).sample(range(1, len(SIGNED)), 200):
        assert refused(SIGNED[:at] + other[at:], b"secret")


@pytest.mark.parametrize(
    "facts",
    [
        [],
        {},
        {"key": KEY.as_json()},
        {"key": KEY.as_json() | {"fuse": 1}, "level": "x86-64-v2"},
        {"key": KEY.as_json() | {"more": "x"}, "level": "x86-64-v2"},
        {"key": KEY.as_json(), "level": "x86-64-v9"},
    ],
)
def test_facts_of_another_form_are_refused(facts: object, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(facts)
    monkeypatch.setattr("jitdialects.runtime.cache.entry_file.json.dumps", lambda *a, **k: text)
    assert refused(encode(KEY, "x86-64-v2", FRAME, LIBRARY)) == "unreadable"


def test_names_tell_classes_signatures_and_levels_apart() -> None:
    general = replace(KEY, signature="main(f32[n], f32[n])")
    assert class_prefix(general) == class_prefix(KEY)
    assert signature_prefix(general) != signature_prefix(KEY)
    assert (is_general(KEY.signature), is_general(general.signature)) == (False, True)
    assert KEY.file_name.endswith("-v3.jdk")
    for other in (
        replace(KEY, signature="main(f32[8,1], f32[8])"),
        replace(KEY, signature="main(f32[8]:strided, f32[8])"),
        replace(KEY, signature="main(f64[8], f32[8])"),
        replace(KEY, signature="main(float, f32[8])"),
        replace(KEY, fuse=False),
        replace(KEY, schedule="0: vector = 4"),
        replace(KEY, numerics="fast"),
    ):
        assert class_prefix(other) != class_prefix(KEY)
