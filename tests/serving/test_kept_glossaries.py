"""Glossaries of DeepL's API: whose they are, and how many there may be."""

import pytest

from keras_transformer.serving import kept_glossaries
from keras_transformer.serving.kept_glossaries import KeptGlossaries, KeptGlossary
from keras_transformer.serving.waiting import TooLargeError

pytestmark = pytest.mark.once("no model is used")


def test_limits(monkeypatch):
    monkeypatch.setattr(kept_glossaries, "MOST_OF_A_KEY", 2)
    monkeypatch.setattr(kept_glossaries, "MOST_CHARACTERS", 200)
    kept, terms = KeptGlossaries(), {("en", "de"): {"dog": "Hund"}}
    first, second = (KeptGlossary("anna", name, terms) for name in "ab")
    for glossary in (first, second, second):  # one that is kept already is only replaced
        kept.keep(glossary)
    with pytest.raises(TooLargeError, match="got 3 and"):
        kept.keep(KeptGlossary("anna", "c", terms))
    kept.keep(KeptGlossary("bob", "c", terms))
    with pytest.raises(TooLargeError, match="200 characters in all glossaries, got 2 and 2"):
        kept.keep(KeptGlossary("bob", "d" * 200, {}))
    assert kept.of("anna") == [first, second]
