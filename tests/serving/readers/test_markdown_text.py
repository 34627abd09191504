"""Markdown: only texts change, and every other byte stays."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from keras_transformer.serving.readers.markdown_text import filled, read

pytestmark = pytest.mark.once("text: no tensor is read")

PAGE = """\ufeff---
title: kept
---
# One *two* #

Three **four**
===
1. one  
   two `kept
   kept` three\\
   four [five](http://kept "kept") [six][kept] [kept] ![kept *kept*](kept)
   - [x] \\* one_two _three_ 2 * 3 <b class="kept">four</b> https://kept.kept

> five
six
> > seven | eight

| one | two \\| three |
|---|:-:|
| four *five* | |

```kept
kept
```
    kept

<div>
kept
</div>

[kept]: /kept
One\r
2. two
"""  # noqa: W291
BLOCKS = (
    "one two", "# one", "one\n---", "- one\n- *two* three\n  four", "> one\n> two",
    "1. one\n\n   two",
    "| a | b |\n|---|---|\n| **c** | `d` |", "```\none\n```", "<p>\none\n</p>", "a [b](c) d  \ne",
    "[a]: /b", "[a] ![b](c) <http://d>", "- [ ] one", "a\\\nb",
)  # fmt: skip


def changed(source, change):
    """The file with `change` applied to the words of its texts, tags left alone."""
    texts, _ = read(source.encode())

    def new(text):
        tag = r"(<[^<>]*>|&(?:lt|gt|amp);)|([^<&]+)"
        return re.sub(tag, lambda x: x[1] or change(x[2]), text)

    return filled(source.encode(), [*map(new, texts)]).decode()


def test_a_page():
    words = r"(?i)(?<![a-z])(one|two|three|four|five|six|seven|eight)(?![a-z])"
    assert changed(PAGE, str.upper) == re.sub(words, lambda x: x[0].upper(), PAGE)
    assert read(PAGE.encode())[1] == ["code", "front matter", "html", "images"]


def test_marks_without_an_end_take_little_time():
    begun = time.process_time()
    for source in ("a *b" * 20_000, "a[" * 20_000, "---\n" + "\r" * 20_000, "](" * 20_000):
        assert changed(source, lambda text: text) == source
    assert time.process_time() - begun < 10


@given(st.text('ab1 \t\n\r#*_`[]()!<>|-=+.:~\\"&;\u00a0\u2028é', max_size=60))
def test_any_text_keeps_every_byte(source):
    assert changed(source, lambda text: text) == source
    assert changed(source, str.swapcase).casefold() == source.casefold()


@given(
    st.lists(st.sampled_from(BLOCKS), max_size=5), st.sampled_from("1. |# |- |* |[|a|`<".split("|"))
)
def test_words_do_not_become_marks(blocks, start):
    source = "\n\n".join(blocks)

    def kinds(text):
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        return [y.type for x in tokens for y in (x.children or [x])]

    result = changed(source, lambda text: f"{start}{text.strip()}" if text.strip() else text)
    assert kinds(result) == kinds(source)
