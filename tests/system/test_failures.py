"""Errors that the user can fix, in one line."""

import pytest

from keras_transformer.system.failures import BAD_INPUT, in_one_line


@pytest.mark.parametrize(
    "error,line",
    [
        (ValueError("epochs must be at least 1,\n    got 0\n"), "epochs must be at least 1, got 0"),
        (FileNotFoundError(2, "No such file", "x.txt"), "[Errno 2] No such file: 'x.txt'"),
        (ValueError(), "ValueError"),
        (ImportError(" \n "), "ImportError"),
        (MemoryError(), "out of memory"),
    ],
    ids=["lines", "file", "none", "blank", "memory"],
)
def test_the_message_in_one_line(error, line):
    assert in_one_line(error) == line


def test_what_users_can_fix_and_what_they_cannot():
    for error in (ValueError(), FileNotFoundError(), ModuleNotFoundError(), UnicodeError()):
        assert isinstance(error, BAD_INPUT)
    for error in (TypeError(), KeyError(), RuntimeError(), AssertionError()):
        assert not isinstance(error, BAD_INPUT)
