"""HTML in, the same tags out."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.serving.markup import blocks, placed
from keras_transformer.text.word_spans import words


def shouted(source, order=None):
    """HTML in capitals, the words of each block in another order."""
    result = []
    for block in blocks(source):
        if not block.text:
            result.append(block.raw)
            continue
        spans = words(block.text)
        aligned = order or list(range(len(spans)))
        text = " ".join(block.text[slice(*spans[i])].upper() for i in aligned)
        result.append(placed(block, text, aligned, words(text)))
    return "".join(result)


@pytest.mark.parametrize(
    "source, order, expected",
    [
        ("<p>a <b>big</b> dog</p>", None, "<p>A <b>BIG</b> DOG</p>"),
        ("a <b>big</b> dog", [0, 2, 1], "A DOG <b>BIG</b>"),
        ("<i>a <b>big</b></i> dog", [2, 1, 0], "DOG <i><b>BIG</b> A</i>"),
        (
            '<a href="x?a=1&amp;b=2">one</a> <b>two</b>',
            [1, 0],
            '<b>TWO</b> <a href="x?a=1&amp;b=2">ONE</a>',
        ),
        ("one <img src=x> two", None, "ONE <img src=x> TWO"),
        ("one <b></b>two", None, "ONE <b></b>TWO"),
        ("one </b>two <i>three", None, "ONE </b>TWO <i>THREE"),
        ("one<br>two", None, "ONE<br>TWO"),
        ("&lt;b&gt; &amp;", None, "&lt; B &gt; &amp;"),
        ("a <code>x = 1</code> b", None, "A <code>x = 1</code> B"),
        ('a <span translate="no">Kai</span> b', None, 'A <span translate="no">Kai</span> B'),
        (
            "<script>if (a < b) run('<p>')</script>x",
            None,
            "<script>if (a < b) run('<p>')</script>X",
        ),
        ("<!-- hidden --><P CLASS=x >y</P >", None, "<!-- hidden --><P CLASS=x >Y</P >"),
        ("  \n ", None, "  \n "),
        ("a < b", None, "A &lt; B"),
        ("a<b class='x", None, "A<b class='x"),
    ],
    ids=lambda x: None if isinstance(x, list) else re.sub(r"\W+", "_", x or "same")[:30],
)
def test_tags_follow_their_words(source, order, expected):
    assert shouted(source, order) == expected


@pytest.mark.parametrize(
    "source, texts",
    [
        (
            "<p>The old man who lives\n in Berlin loves\n the dog.</p>\n<p>\n  He\n",
            ["The old man who lives in Berlin loves the dog.", "\n  He\n"],
        ),
        ("one\ntwo<br>\nthree", ["one two", "\nthree"]),
        ("a <b> big</b>\n\n<i> dog </i>", ["a big dog "]),
        ("<p style='white-space: pre-line'>a\nb<b>\nc</b></p>d\ne", ["a\nb\nc", "d e"]),
        ("a &#10; b&nbsp; c Donau&shy;dampf", ["a b\u00a0 c Donaudampf"]),
        ("a <!-- c --> b", ["a b"]),
        ("press <svg><path/></svg> now <math><mi>x</mi></math>.", ["press  now ."]),
        ("<ruby>東京<rp>(<rt>とう<rp>)</ruby>に<ruby>行<rt>い</rt></ruby>く", ["東京に行く"]),
        ("<textarea>a\nb</textarea>", []),
    ],
)
def test_white_space_is_that_of_html(source, texts):
    assert [block.text for block in blocks(source) if block.text] == texts
    tags = [re.sub(r"\s+", "", x) for x in re.findall(r"<[^>]*>", shouted(source))]
    assert tags == [re.sub(r"\s+", "", x) for x in re.findall(r"<[^>]*>", source)]


def test_what_the_model_left_out_keeps_its_tags():
    (block,) = blocks("one <b>two</b> three")
    assert placed(block, "EINS DREI", [0, 2], words("EINS DREI")) == "EINS DREI<b></b>"
    assert placed(block, "", [], []) == "<b></b>"


tags = st.sampled_from(["<b>", "</b>", "<i>", "</i>", "<img src='a'>", "<br>", "<p>", "</p>"])
parts = st.one_of(tags, st.sampled_from(["one ", "two ", "three. ", "&amp; ", "\n"]))


@given(st.lists(parts), st.randoms(use_true_random=False))
def test_every_tag_comes_out_once(source, random):
    source = "".join(source)
    result = []
    for block in blocks(source):
        if not block.text:
            result.append(block.raw)
            continue
        count = len(words(block.text))
        aligned = [random.randrange(count) for _ in range(random.randrange(6))] if count else []
        text = " ".join(["x"] * len(aligned))
        result.append(placed(block, text, aligned, words(text)))
    found = "".join(result)
    assert sorted(re.findall("<[^>]*>", found)) == sorted(re.findall("<[^>]*>", source))


@given(st.text(alphabet="<>/ab\"' =!-&;x", max_size=60))
def test_anything_is_taken_apart(source):
    assert all(block.raw or block.text for block in blocks(source))


@pytest.mark.parametrize(
    "source",
    [
        "<" + "a" * 60_000,
        "<a " * 20_000,
        "<!" * 30_000,
        "<a '" * 15_000,
        "<b>" * 9_000 + "x" + "</b>" * 9_000,
        "<b>" * 700 + "a " * 5_000 + "</b>" * 700,
        "".join(f"<x{i} translate=no></x{i}>" for i in range(60_000)),
        "<script>" + "<b " * 100_000,
    ],
    ids=["name", "unended", "declaration", "quote", "deep", "deep-and-long", "names", "script"],
)
def test_hostile_html_takes_no_quadratic_time(source):
    begun = time.process_time()
    found = shouted(source)
    assert time.process_time() - begun < 15
    assert found.count("<") == source.count("<")
