"""Cues of words by hand, within their limits, and the two formats."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.serving.readers import subtitles
from keras_transformer.speech.cue_limits import CueLimits
from keras_transformer.speech.cues import (
    cues_of,
    lines_of,
    subtitle_file,
    suffix_of_subtitles,
    wrapped,
)
from keras_transformer.speech.word_times import Word

pytestmark = pytest.mark.once("texts: no tensor")


def spoken(text, seconds=0.5, start=0.0):
    words = text.split()
    return [Word(x, start + i * seconds, start + (i + 1) * seconds) for i, x in enumerate(words)]


def test_sentences_pauses_and_full_lines():
    words = [*spoken("Come in. It is"), *spoken("late,", start=3.5), *spoken("very late", start=4)]
    cues = list(cues_of(words, CueLimits(characters=5, lines=2, rate=100)))
    assert [x.lines for x in cues] == [["Come", "in."], ["It is"], ["late,", "very"], ["late"]]
    assert [(x.start, x.end) for x in cues] == [(0, 1), (1, 2), (3.5, 4.5), (4.5, 5)]
    comma = cues_of(spoken("It is late, you know"), CueLimits(8, 2, rate=100))
    assert [x.lines for x in comma] == [["It is", "late,"], ["you know"]]


def test_a_cue_stays_as_long_as_the_next_one_lets_it():
    words = [*spoken("Yes.", 0.1), *spoken("A long answer.", 0.1, start=0.2)]
    first, last = cues_of(words, CueLimits(rate=10))
    assert (first.start, first.end) == (0, 0.2)  # 0.4 s would be needed
    assert (last.start, last.end) == (0.2, pytest.approx(0.2 + 14 / 10))


@given(
    st.lists(st.tuples(st.text("aé.今,", min_size=1, max_size=9), st.floats(0, 2)), max_size=30),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_limits_hold_and_nothing_is_lost(parts, characters, lines):
    words, now = [], 0.0
    for text, seconds in parts:
        words.append(Word(text, now, now + seconds / 2))
        now += seconds
    cues = list(cues_of(words, CueLimits(characters, lines)))
    assert all(len(x.lines) <= lines for x in cues)
    assert all(len(line) <= characters for x in cues for line in x.lines)
    text = "".join(line for x in cues for line in x.lines).replace(" ", "")
    assert text == "".join(x.word for x in words)
    for cue, following in itertools.pairwise(cues):
        assert cue.start <= cue.end <= following.start
    assert list(cues_of([])) == []


def test_formats():
    words = [*spoken("A <b> & c.", 1.0), *spoken("Two", 0.5, start=3723.0)]
    srt, vtt = ("".join(subtitle_file(cues_of(words), x)) for x in (".srt", ".vtt"))
    assert srt == (
        "1\n00:00:00,000 --> 00:00:04,000\nA <b> & c.\n\n2\n01:02:03,000 --> 01:02:03,500\nTwo\n\n"
    )
    assert vtt == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:04.000\nA &lt;b&gt; &amp; c.\n\n"
        "01:02:03.000 --> 01:02:03.500\nTwo\n\n"
    )
    assert subtitles.read(srt.encode())[0][1] == subtitles.read(vtt.encode())[0][1] == "Two"


def test_bad_input():
    assert suffix_of_subtitles(None) == ".srt" and suffix_of_subtitles("a.VTT") == ".vtt"
    with pytest.raises(ValueError, match=r"output must be a file that ends .*, got 'a.txt'"):
        suffix_of_subtitles("a.txt")
    with pytest.raises(ValueError, match=r"suffix must be one of .*, got '.ass'"):
        list(subtitle_file([], ".ass"))


def test_lines_are_few_and_even():
    words = "a bb ccc dd eeee f".split()
    assert lines_of(words, 10) == ["a bb ccc", "dd eeee f"]
    assert wrapped(words, 14) == ["a bb ccc", "dd eeee f"]
    assert wrapped(words, 20) == ["a bb ccc dd eeee f"]
    assert wrapped(["今", "日", "は。"], 2) == ["今日", "は。"]
