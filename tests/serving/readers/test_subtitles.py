"""SubRip subtitles as they are found, and as nobody wrote them."""

import time

import pytest

from keras_transformer.serving.markup import blocks, placed
from keras_transformer.serving.readers.subtitles import filled, read
from keras_transformer.text.word_spans import words

pytestmark = pytest.mark.once("text: no tensor is read")


def texts(content):
    return read(content)[0]


def shouted(content):
    return filled(content, [text.upper() for text in texts(content)]).decode()


def test_subtitles_of_other_hands():
    source = "1\r\n0:0:1.5 --> 0:0:2.5 X1:10\r\none\r\n\r\n2\r\n0:0:3,0 --> 0:0:4,0\r\n\r\n\r\n"
    source += "3\n0:0:5,0 --> 99999999999:0:6,0\n7"
    assert texts(source.encode()) == ["one"]  # a number is no text
    assert shouted(source.encode()) == source.replace("\r\n", "\n").replace("one", "ONE")


def test_lines_are_as_many_as_before():
    source = b"0:0:1,0 --> 0:0:2,0\none two three\nfour five <i>six</i>\n"
    assert texts(source) == ['one two three four five <span id="0">six</span>']
    found = filled(source, ['a b c <span id="0">d e</span> f']).decode()
    assert found == "0:0:1,0 --> 0:0:2,0\na b c\n<i>d e</i> f\n"


def test_what_is_no_subtitle():
    begun = time.process_time()
    with pytest.raises(ValueError, match="SubRip"):
        texts(b"1" * 300_000 + b"\n" * 300_000)
    assert time.process_time() - begun < 5
    with pytest.raises(UnicodeDecodeError):
        texts(b"\xff")


def in_capitals(content):
    """The file with each text in capitals, as the translation of HTML keeps tags."""
    translated = []
    for text in texts(content.encode()):
        (block,) = blocks(text)
        found = block.text.upper()
        translated.append(placed(block, found, range(len(words(found))), words(found)))
    return filled(content.encode(), translated).decode()


TIMES = "00:00:01,000 --> 00:00:02,000"


@pytest.mark.parametrize(
    "lines,expected,own",
    [
        ("{\\an8}Hi there", "{\\an8}HI THERE", ["Hi there"]),
        ("one {\\pos(1,2)}two", "ONE {\\pos(1,2)}TWO", ['one <img id="0">two']),
        (
            "{\\i1}one{\\i0} <font color='red'>two</font>",
            "{\\i1}ONE{\\i0} <font color='red'>TWO</font>",
            ['<span id="0">one</span> <span id="1">two</span>'],
        ),
        ("♪ I love\nthe dog ♪", "♪ I LOVE\nTHE DOG ♪", ["I love the dog"]),
        ("♪ one ♪\n♪ two ♪", "♪ ONE ♪\n♪ TWO ♪", ["one", "two"]),
        ("<i>♪ one ♪</i>", "<i>♪ ONE ♪</i>", ["one"]),
        ("- Where?\n- Here!", "- WHERE?\n- HERE!", ["Where?", "Here!"]),
        ("-Where?\n>> Here!", "-WHERE?\n>> HERE!", ["Where?", "Here!"]),
        ("a well-known\nman", "A WELL-KNOWN\nMAN", ["a well-known man"]),
        ("one\\Ntwo", "ONE TWO", ["one two"]),
        ("R&D is <3 a & b", "R&D IS <3 A & B", ["R&amp;D is &lt;3 a &amp; b"]),
        ("♪♪", "♪♪", []),
    ],
)
def test_marks_are_kept_aside_and_put_back(lines, expected, own):
    source = f"1\n{TIMES}\n{{}}\n"
    assert texts(source.format(lines).encode()) == own
    assert in_capitals(source.format(lines)) == source.format(expected)


def test_voices_times_and_settings_of_webvtt():
    source = """WEBVTT - title

NOTE a comment

intro
00:01.000 --> 00:04.000 align:start position:10%
<v Roger Bingham>{} <c.yellow>{}</c> &amp; {}
- {}

STYLE
::cue {{}}

1:00:19.000 --> 1:00:21.000
{} <1:00:20.000>{}
"""
    spoken = "we are in|New York|here|really|and|then".split("|")
    found = in_capitals(source.format(*spoken))
    assert found == source.format(*map(str.upper, spoken))


def test_hostile_subtitles_take_no_quadratic_time():
    begun = time.process_time()
    for part in ("<", "{", "<i ", "-", "♪", "<i>", "{\\i1}", "a\n", "- a\n", "\\N"):
        content = f"{TIMES}\n{part * 30_000}a".encode()
        filled(content, texts(content))
    assert time.process_time() - begun < 20
