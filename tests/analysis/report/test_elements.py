"""Elements: what is text stays text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.analysis.report.elements import element, joined, style

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_children_and_attributes():
    found = element("p", "a < b", element("br"), None, 3, class_="x", data_n=1, open=True, id=None)
    assert found == '<p class="x" data-n="1" open>a &lt; b<br>3</p>'
    assert joined("&", element("b", "c")) == "&amp;<b>c</b>"
    assert style("p { color: red }") == "<style>p { color: red }</style>"
    with pytest.raises(ValueError, match="css must be without"):
        style("</style><script>")


@settings(max_examples=50, deadline=None)
@given(st.text("<>&\"'/ascript=", max_size=20))
def test_no_text_becomes_markup(text):
    inner = element("p", text, title=text).removeprefix('<p title="').removesuffix("</p>")
    title, shown = inner.split('">', 1)
    for part in (title, shown):
        assert not set(part) & set("<>\"'")
