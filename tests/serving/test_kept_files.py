"""Files are kept for a time, and as many as there is room for."""

import pytest

from keras_transformer.serving.kept_files import KeptFiles

pytestmark = pytest.mark.once("bytes: no tensor is read")


def test_files_expire_and_make_room():
    now = 0.0
    kept = KeptFiles(most_bytes=10, seconds=60, clock=lambda: now)
    first, second = kept.add("a.txt", b"aaaa"), kept.add("b.txt", b"bbbb")
    assert kept.find(first, "a.txt") == b"aaaa" and kept.size == 8
    assert kept.find(first, "b.txt") is None and kept.find("", "a.txt") is None
    third = kept.add("c.txt", b"cccc")  # the oldest makes room
    assert kept.find(first, "a.txt") is None and kept.size == 8
    assert kept.find(second, "b.txt") == b"bbbb"
    now = 59.0
    last = kept.add("d.txt", b"dd")
    now = 60.0
    assert kept.find(third, "c.txt") is None and kept.find(last, "d.txt") == b"dd"
    kept.drop()
    assert kept.size == 2
    large = kept.add("e.txt", b"e" * 11)  # alone it may be larger
    assert kept.find(large, "e.txt") == b"e" * 11 and kept.size == 11
