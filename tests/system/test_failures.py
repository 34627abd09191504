"""Errors that the user can fix, in one line."""

import errno

import keras
import pytest

from keras_transformer.system.failures import (
    BAD_INPUT,
    full_disk,
    in_one_line,
    lacks_memory,
    memory_errors,
)


@pytest.mark.parametrize(
    "error,line",
    [
        (ValueError("epochs must be at least 1,\n    got 0\n"), "epochs must be at least 1, got 0"),
        (FileNotFoundError(2, "No such file", "x.txt"), "x.txt: No such file"),
        (OSError(18, "Cross-device link", "a", None, "b"), "a -> b: Cross-device link"),
        (OSError(9, "Bad file descriptor", 3), "3: Bad file descriptor"),
        (FileNotFoundError(2, "No such file", b"a\nb"), "a b: No such file"),
        (FileNotFoundError("folder 'x' lacks a file"), "folder 'x' lacks a file"),
        (ValueError(), "ValueError"),
        (ImportError(" \n "), "ImportError"),
        (MemoryError(), "out of memory"),
        (ValueError(f"got {'a' * 9000}: use b"), f"got {'a' * 996} [...] {'a' * 493}: use b"),
    ],
    ids=["lines", "file", "files", "number", "odd name", "own", "none", "blank", "memory", "long"],
)
def test_the_message_in_one_line(error, line):
    assert in_one_line(error) == line


def test_what_users_can_fix_and_what_they_cannot():
    for error in (ValueError(), FileNotFoundError(), ModuleNotFoundError(), UnicodeError()):
        assert isinstance(error, BAD_INPUT)
    for error in (TypeError(), KeyError(), RuntimeError(), AssertionError()):
        assert not isinstance(error, BAD_INPUT)


@pytest.mark.parametrize(
    "error,number",
    [
        (OSError(errno.ENOSPC, "x"), errno.ENOSPC),
        (RuntimeError("Error: I/O (os error 28)"), errno.ENOSPC),
        (RuntimeError("ResourceExhaustedError: x; No space left on device [Op]"), errno.ENOSPC),
        (RuntimeError("OutOfRangeError: x; File too large [Op:SaveV2]"), errno.EFBIG),
        (OSError(errno.EACCES, "x"), None),
        (RuntimeError("a bug"), None),
    ],
    ids=["python", "rust", "tensorflow", "limit", "permission", "other"],
)
def test_a_full_disk_told_by_any_library(error, number):
    assert full_disk(error) == number


def test_a_backend_that_gets_no_memory():
    with pytest.raises(MemoryError, match="smaller batches .* need less: "), memory_errors():
        keras.ops.convert_to_numpy(keras.ops.ones((1 << 46,), "float32") + 1)


@pytest.mark.once("messages only; no tensors")
def test_other_errors_stay_as_they_are():
    for error in (RuntimeError("a bug"), KeyError("out of memory"), MemoryError("mine")):
        with pytest.raises(type(error)) as caught, memory_errors():
            raise error
        assert caught.value is error

    class ResourceExhaustedError(Exception):
        pass

    assert lacks_memory(ResourceExhaustedError()) and lacks_memory(MemoryError())
    assert lacks_memory(RuntimeError("RESOURCE_EXHAUSTED: Out of memory"))
