"""Stop texts in a text that grows."""

import random
import time

import pytest

from keras_transformer.language.prompts import before_stop
from keras_transformer.language.stops import Stops

pytestmark = pytest.mark.once("knows no tensors")


def searched(text, stop, sizes):
    """Where the first stop text begins if the parts have these sizes, and what it may begin with"""
    stops, matched, at = Stops(stop), [], 0
    while at < len(text):
        part = text[at : at + next(sizes)]
        begin, matched = stops.search(matched, part)
        if begin is not None:
            return at + begin, 0
        at += len(part)
    return None, max(matched, default=0)


def test_it_finds_what_find_finds():
    draw = random.Random(0)
    for _ in range(2000):
        text, stop = (
            "".join(draw.choices("ab", k=draw.randint(0, 12))),
            ["".join(draw.choices("ab", k=draw.randint(1, 5)))],
        )
        begin, matched = searched(text, stop, iter(lambda: draw.randint(1, 4), 0))
        assert text[:begin] == before_stop(text, stop)
        if begin is None:  # the longest beginning of a stop text at the end
            sizes = range(len(stop[0]))
            assert matched == max(size for size in sizes if text.endswith(stop[0][:size]))


def test_the_first_of_several():
    assert Stops(["cd", "bc"]).search([], "abcd")[0] == 1
    assert Stops(["bcd", "xy"]).search([2, 0], "d")[0] == -2
    assert Stops(()).search([], "abc") == (None, [])
    assert Stops([""]).search([], "abc")[0] == 0


def test_time_grows_linearly():
    for text in ("a" * 100_000, "ab" * 50_000):
        stops, matched = Stops([text + "!"] * 4), []
        begun = time.monotonic()
        for start in range(0, len(text), 1000):
            _, matched = stops.search(matched, text[start : start + 1000])
        assert time.monotonic() - begun < 2 and matched == [len(text)] * 4
