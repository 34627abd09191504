"""Tests of keras_transformer.text.identification."""

import builtins
import errno
import os
import tempfile

import pytest

from keras_transformer.text import identification
from keras_transformer.text.identification import LanguageFilter, LanguageIdentifier

ENGLISH = "The children are playing in the garden of the old house."
GERMAN = "Die Kinder spielen im Garten des alten Hauses."
FRENCH = "Les enfants jouent dans le jardin de la vieille maison."
DANISH = "Børnene leger i haven ved det gamle hus, og hunden ligger under træet."


@pytest.fixture(scope="module")
def from_english():
    return LanguageFilter("en", "deu_Latn")


def test_candidates_are_ranked():
    identifier = LanguageIdentifier()
    (best, _), *_ = identifier.rank(GERMAN)
    assert best == "de" and {"de", "en", "ja"} < set(identifier.known)
    identifier.restrict(["en", "fr"])
    ranked = identifier.rank(GERMAN)
    assert sorted(code for code, _ in ranked) == ["en", "fr"]
    assert sum(share for _, share in ranked) == pytest.approx(1, abs=1e-3)
    for wrong in (["en", "xx"], []):
        with pytest.raises(ValueError, match="languages must be some of ace .* de .*, got"):
            identifier.restrict(wrong)


def test_sides_in_another_language(from_english):
    assert from_english(ENGLISH, GERMAN) is None
    for pair in [(ENGLISH, ENGLISH), (GERMAN, GERMAN), (ENGLISH, FRENCH), (GERMAN, ENGLISH)]:
        assert from_english(*pair) == "language"


def test_short_and_doubtful_text_stays(from_english):
    assert from_english("Yes.", "Oui, madame.") is None
    assert from_english("1995, 2005, 2015, 2025!", "Oui, 1995, 2005, 2015") is None
    names = "Angela Merkel, Barack Obama, New York"
    assert from_english(names, names) is None


def test_relatives_are_no_evidence():
    assert LanguageFilter("en", "no")(ENGLISH, DANISH) is None
    assert LanguageFilter("en", "de")(ENGLISH, DANISH) == "language"
    assert LanguageFilter("da", "no")(DANISH, DANISH) is None  # close to both


def test_unknown_languages_are_refused():
    known = "a language that identification knows, one of ace .* de .*, got"
    with pytest.raises(ValueError, match=f"target_language must be {known} 'xx'"):
        LanguageFilter("en", "xx")
    with pytest.raises(ValueError, match=f"source_language must be {known} 'Klingon'"):
        LanguageFilter("Klingon", "de")


def test_without_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "py3langid":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match='identifying languages needs the extra "clean"'):
        LanguageIdentifier()


def test_no_file_is_written(monkeypatch):
    def full(**options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    identification._model.cache_clear()
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    one, other = LanguageIdentifier(), LanguageIdentifier()
    one.restrict(["de", "en"])
    assert len(one.rank("Guten Morgen")) == 2 < len(other.rank("Guten Morgen"))
    assert identification._model.cache_info().misses == 1  # as at a reload
