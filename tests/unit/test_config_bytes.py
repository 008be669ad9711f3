"""Numbers of bytes as text."""

from __future__ import annotations

import pytest

import jitdialects as jd
from jitdialects.config import config as the_config


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        (4096, 4096),
        ("256MiB", 256 << 20),
        (" 5 KiB", 5120),
        ("4GiB", 4 << 30),
        ("", None),
        (None, None),
    ],
)
def test_a_limit_is_a_number_with_or_without_a_unit(text: object, size: int | None) -> None:
    before = the_config.pool_limit
    try:
        the_config.pool_limit = text  # pyright: ignore
        assert the_config.pool_limit == size
    finally:
        the_config.pool_limit = before


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(jd.ConfigError, match="pool_limit='0': needs a whole number of at least 1"):
        the_config.pool_limit = "0"  # pyright: ignore


@pytest.mark.parametrize("text", ["-1", "much", "1e3", "1 GiBs", "5K", True, 0.25, "0.5 B"])
def test_other_text_is_refused(text: object) -> None:
    with pytest.raises(jd.ConfigError, match="pool_limit=.*needs a number of bytes"):
        the_config.pool_limit = text  # pyright: ignore
