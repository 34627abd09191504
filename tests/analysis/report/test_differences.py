"""Words that differ, by hand; and nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.analysis.report.differences import differences

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_words_that_differ():
    reference, translation = differences("Der alte Hund schläft.", "Der Hund schlief ein.")
    marked = (
        [x for x, differs in reference if differs],
        [x for x, differs in translation if differs],
    )
    assert marked == (["alte", "schläft"], ["schlief ein"])
    assert reference[:2] == [("Der", False), (" ", False)]
    assert differences("", "Ein Hund") == ([], [("Ein Hund", True)])
    assert not any(differs for _, differs in differences(" a  b ", "a b")[0])


@settings(max_examples=50, deadline=None)
@given(*[st.text("ab .-\n狗", max_size=12)] * 2)
def test_the_parts_are_the_texts(one, other):
    found = differences(one, other)
    assert tuple("".join(part for part, _ in parts) for parts in found) == (one, other)
