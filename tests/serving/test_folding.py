"""White space of HTML."""

import time

import pytest

from keras_transformer.serving.folding import KeptSpaces, folded


@pytest.mark.parametrize(
    "last,text,expected",
    [
        (None, "a\n  b\t c", "a b c"),
        (None, " \n a\n", " \n a "),
        ("a", "\n b", " b"),
        (" ", "\n b", "b"),
        ("a", "\u00a0 \u00a0b", "\u00a0 \u00a0b"),
        (None, "東京\n  に行く", "東京に行く"),
        ("京", "\nに", "に"),
        (None, "東京 に", "東京 に"),
        (None, "노인은\n개를", "노인은 개를"),
        (None, "東京\nBerlin", "東京 Berlin"),
    ],
)
def test_folded(last, text, expected):
    assert folded(last, text) == expected


def test_an_object_parts_white_space():
    assert folded(" ", " b", after_object=True) == " b"
    assert folded(None, " \n b", after_object=True) == " b"


def test_styles_keep_white_space():
    kept = KeptSpaces()
    states = []
    for kind, name, attributes in (
        ("open", "div", " style='color:red; white-space:pre-wrap'"),
        ("open", "div", ""),
        ("open", "p", " style=white-space:normal"),
        ("close", "p", ""),
        ("open", "br", ' style="white-space: pre"'),
        ("close", "div", ""),
        ("close", "div", ""),
        ("close", "div", ""),
    ):
        kept.note(kind, name, attributes)
        states.append(bool(kept))
    assert states == [True, True, False, True, True, True, False, False]


def test_hostile_styles_take_no_quadratic_time():
    begun = time.process_time()
    KeptSpaces().note("open", "p", " style='white-space" * 50_000)
    KeptSpaces().note("open", "p", " white-space:" + " " * 500_000)
    assert time.process_time() - begun < 5
