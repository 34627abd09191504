"""Counting pronouns by hand."""

import pytest

from benchmarks.documents import right_pronouns

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_right_pronouns_by_hand():
    references = ["Er ist alt.", "Sie ist neu.", "Karl hat ihn gesehen.", "", "Es ist da.", "Nein."]
    translations = ["Sie ist alt.", "Sie war neu.", "Karl hat es gesehen.", "", "Er ist da.", "Ja."]
    # The first sentence of a document does not count, nor does one without a pronoun.
    assert right_pronouns(translations, references) == (1, 2)
    assert right_pronouns(references, references) == (2, 2)
