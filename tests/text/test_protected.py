"""Protected spans: what is one, what takes its place, and how it returns."""

import re
import time

import hypothesis
import hypothesis.strategies as st
import pytest

from keras_transformer.text.glossary import TERM_TAGS
from keras_transformer.text.protected import PLACEHOLDERS, is_copied, is_protected, masked

pytestmark = pytest.mark.once("texts: no tensor is read")

# Marks and letters with which a pattern may begin, go on or end.
ODD = st.text("aZé1.@/<>{}%+ #:&hw,-_(!\n'狗😀\u200d\ufe0f", max_size=40)


def free(text):
    return [x for x in PLACEHOLDERS if x not in text]


def spans(text):
    mask = masked(text, free(text), at_ends=False)
    return [span for span, *_ in mask.spans.values()]


@pytest.mark.parametrize(
    "text,expected",
    [
        (
            "See https://keras.io/a_b?x=1, (http://x.org/).",
            "https://keras.io/a_b?x=1 http://x.org/",
        ),
        ("Or keras.io! WWW.KERAS.IO? ftp://a.b", "keras.io WWW.KERAS.IO ftp://a.b"),
        ("Write to a.b+c@mail.example.org.", "a.b+c@mail.example.org"),
        ("@tom and #keras, not C# or x@y", "@tom #keras"),
        ("Open README.md, src/v2.tar.gz", "README.md v2.tar.gz"),
        ("e.g. z.B. p.m. Tom.Mary U.S.A. end.That's", ""),
        ("${name} {{user}} {} %(x)s %.2f %d", "${name} {{user}} {} %(x)s %.2f %d"),
        ("100% sure, 50%s, { a }", ""),
        ("Call +49 30 1234567, or +1 (555) 010-9999. 1 + 1", "+49 30 1234567|+1 (555) 010-9999"),
        ('<a href="x">No</a>, a < b > c, <3 <br/>', '<a href="x">|</a>|<br/>'),
        ("No ❤️ and 👩\u200d👩, ™", "❤️ 👩\u200d👩"),
        (f"A {' dog '.join(TERM_TAGS)} b <sep> c", ""),
    ],
)
def test_what_is_a_span(text, expected):
    assert spans(text) == (expected.split("|") if "|" in expected else expected.split())


@pytest.mark.parametrize(
    "text,expected",
    [
        ("12 books in 2026.", [("12",), ("2026",)]),
        ("$10,000 or 3.14", [("10,000", "10.000", "10 000", "10000"), ("3.14", "3,14")]),
        ("12 000 €", [("12 000", "12,000", "12.000", "12000")]),
        ("1,234,567", [("1,234,567", "1.234.567", "1 234 567", "1234567")]),
        ("7 at 2:30, 14 h 30, 10 p.m., 12 o'clock, 21 Uhr, the 20th, 1990s, A380", []),
        ("1.2.3 on 20.10.2026", [("1.2.3", "1,2,3"), ("20.10.2026", "20,10,2026")]),
    ],
)
def test_which_numbers_are_copied(text, expected):
    assert [*masked(text, free(text)).copies()] == expected


def test_a_number_takes_the_place_of_a_span():
    text = "Ask @tom (a@b.org) about 47."
    mask = masked(text, free(text))
    assert mask.text == "Ask 58 (69) about 47."
    assert mask.copies() == {("58",): False, ("69",): True, ("47",): False}
    assert mask.restored("Frag 69 und 58: 47, 690.") == "Frag a@b.org und @tom: 47, 690."
    text = "Press<b>x</b>."
    mask = masked(text, free(text))
    assert mask.text == "Press 47 x 58."
    assert mask.restored("58 x 47 y") == "</b> x<b>y"
    assert masked("@a @b", ["47"]).text == "47 @b"
    assert masked("@a", []).text == "@a"


def test_tags_and_emoji_at_the_ends_are_left_out():
    mask = masked("<p><b>Hi @tom</b> 😀", ["47"])
    assert mask[:3] == ("Hi 47", "<p><b>", "</b> 😀")
    assert mask.restored("Hallo 47!") == "<p><b>Hallo @tom!</b> 😀"
    assert masked("<p>Hi", ["47"], at_ends=False).text == "47 Hi"
    assert masked(" Hi \n", ["47"]).text == " Hi \n"


def test_capitals_are_translated_as_a_sentence():
    mask = masked("ASK TOM. IS IT {name}?", ["47"])
    assert mask.text == "Ask tom. Is it 47?"
    assert mask.restored("Frag Tom. 47 ß?") == "FRAG TOM. {name} SS?"
    for text in ("NATO", "A dog", "12 34", "😀 😀"):
        assert masked(text, []).text.strip() in ("", text)
    assert masked("ASK TOM", [], at_ends=False).text == "ASK TOM"


def test_texts_of_spans_alone():
    for text in ("https://keras.io", "3.14 €", "{a}, {b}: %s", "<br>", "12", "👍👍!"):
        assert is_protected(text)
    for text in ("", "...", "7", "12 dogs", "Hi @tom", "2:30"):
        assert not is_protected(text)


def test_a_copy_is_no_part_of_a_longer_number():
    assert is_copied(("12",), "am 12. Mai") and is_copied(("12",), "12th")
    assert not is_copied(("12",), "1 2, 112 and 120")
    assert is_copied(("1,5", "1.5"), "1.5") and not is_copied(("1.5",), "1x5")


@hypothesis.given(ODD)
def test_what_is_masked_returns(text):
    mask = masked(text, free(text))
    if not mask.is_upper:
        assert mask.restored(mask.text) == text
        assert not set(mask.spans) & set(re.findall(r"\d+", text))
    is_protected(text)


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(ODD.filter(bool))
@hypothesis.example("1 234 ")
@hypothesis.example("a@b")
@hypothesis.example("http://!")
@hypothesis.example("<a")
def test_the_time_grows_with_the_text(unit):
    """If it grew with the square, this would take minutes."""
    text = (unit * 100_000)[:100_000]
    start = time.process_time()
    masked(text, PLACEHOLDERS).copies()
    is_protected(text)
    assert time.process_time() - start < 3
