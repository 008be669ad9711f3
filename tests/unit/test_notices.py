"""Notices of the runtime: warnings, which break nothing where warnings are errors."""

import warnings

import pytest

from jitdialects.runtime.notices import notice


def test_a_notice_is_a_warning_at_the_line_that_gives_it() -> None:
    with pytest.warns(RuntimeWarning, match="jitdialects: nothing is kept") as found:
        notice("nothing is kept", stacklevel=1)
    assert found[0].filename == __file__


def test_where_warnings_are_errors_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notice("nothing is kept")
    assert capsys.readouterr().err == "jitdialects: nothing is kept\n"
