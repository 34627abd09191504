"""SubRip subtitles as they are found, and as nobody wrote them."""

import time

import pytest

from keras_transformer.serving.readers.subtitles import filled, read

pytestmark = pytest.mark.once("text: no tensor is read")


def texts(content):
    return read(content)[0]


def shouted(content):
    return filled(content, [text.upper() for text in texts(content)]).decode()


def test_subtitles_of_other_hands():
    source = "1\r\n0:0:1.5 --> 0:0:2.5 X1:10\r\none\r\n\r\n2\r\n0:0:3,0 --> 0:0:4,0\r\n\r\n\r\n"
    source += "3\n0:0:5,0 --> 99999999999:0:6,0\n7"
    assert texts(source.encode()) == ["one", "7"]
    assert shouted(source.encode()) == source.replace("\r\n", "\n").replace("one", "ONE")


def test_lines_are_as_many_as_before():
    source = b"0:0:1,0 --> 0:0:2,0\none two three\nfour five <i>six</i>\n"
    assert texts(source) == ["one two three four five <i>six</i>"]
    found = filled(source, ["a b c <i>d e</i> f"]).decode()
    assert found == "0:0:1,0 --> 0:0:2,0\na b c\n<i>d e</i> f\n"


def test_what_is_no_subtitle():
    begun = time.process_time()
    with pytest.raises(ValueError, match="SubRip"):
        texts(b"1" * 300_000 + b"\n" * 300_000)
    assert time.process_time() - begun < 5
    with pytest.raises(UnicodeDecodeError):
        texts(b"\xff")
