"""Readers take time in proportion to the length of a text, whatever its characters are."""

import gc
import time

import pytest

from benchmarks import text_length

pytestmark = pytest.mark.once("texts and marks of punctuation; no tensors")


@pytest.fixture(scope="module")
def works():
    gc.collect()
    gc.disable()
    yield text_length.works()
    gc.enable()


@pytest.mark.parametrize("name", ["tokens", "HTML", "subtitles", "Word document", "language"])
def test_ten_times_the_length_takes_some_ten_times_as_long(name, works):
    work = works[name]
    marks = [*text_length.MARKUP, "e\u0301!", "\u200d?", *text_length.units()[20::40]]
    for mark in marks:
        for _ in range(3):  # another program may have disturbed the first
            short, long = (_seconds(work, text_length.repeated(mark, n)) for n in (1000, 10_000))
            if long < 30 * max(short, 1e-3):
                break
        else:
            raise AssertionError(f"{name} of {mark!r}: {short:.4f} s, then {long:.4f} s")


def _seconds(work, text):
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun


def test_tags_that_stand_for_no_word_are_placed_in_proportion(works):
    """Each of them once looked through all words after it."""
    work = works["HTML"]
    for unit in ("a <img>", "<b>a " + "<img>" * 10 + "b </b>"):
        assert _seconds(work, unit * 10_000) < 30 * max(_seconds(work, unit * 1000), 5e-3), unit
    nested = "<p><b>a " + "<img>" * 10_000 + "</b>" + " b" * 10_000
    assert _seconds(work, nested) < 3
