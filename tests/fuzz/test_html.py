"""Foreign HTML: every tag is kept, whatever it is, in time that grows with the length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.serving.markup import blocks, placed
from keras_transformer.text.word_spans import words
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("no tensors")

PARTS = [
    "<b>",
    "</b>",
    "<p class=notranslate>",
    "</p>",
    "<a href='x>y'>",
    "<!--",
    "-->",
    "<![CDATA[",
]
PARTS += [
    "<script>",
    "</script>",
    "<",
    ">",
    "&",
    "&amp;",
    "&#x0;",
    "&#99999999;",
    "\0",
    "a ",
    "word",
]
PARTS += ["<b" + " x" * 500, "<svg/>", "<img src=x onerror=y>", '"', "'", "\u202e", "\ud800", "\n"]


@fuzz(150)
@given(
    st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=4)), max_size=30),
    st.integers(1, 60),
)
def test_html(parts, times):
    source = "".join(parts) * times

    def read():
        result = []
        for block in blocks(source):
            spans = words(block.text)
            order = list(range(len(spans)))
            result.append(placed(block, block.text, order, spans) if block.text else block.raw)
        return "".join(result)

    assert outcome("HTML", read) is not None
