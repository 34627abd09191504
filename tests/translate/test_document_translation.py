"""Sentences are translated with those before them; what a window loses is translated alone."""

import pytest

from keras_transformer.text.context import SEPARATOR, in_context
from keras_transformer.translate.document_translation import translate_documents, translate_windows
from tests.small_translator import MAX_LENGTH, SHORT, TEXTS, made_tokenizer, make


@pytest.fixture(scope="module")
def small():
    return make(made_tokenizer(SEPARATOR))


@pytest.mark.once("text: no tensor is read")
def test_the_last_sentence_of_each_translation_counts(small):
    texts = [*TEXTS[:3], "", *TEXTS[3:]]
    windows = list(in_context(texts, 1))
    whole = small.translate(windows, **SHORT)
    alone = small.translate(texts, **SHORT)
    expected = []
    for window, translation, own in zip(windows, whole, alone, strict=True):
        fits = window.count(SEPARATOR) == translation.count(SEPARATOR)
        expected.append((translation if fits else own).rpartition(SEPARATOR)[2].strip())
    assert translate_documents(small, texts, 1, **SHORT) == expected
    assert expected[3] == "" and expected[0] == alone[0].replace(SEPARATOR, "").strip()
    assert translate_documents(small, [], 1) == []


class Echo:
    """A translator that gives its source back, up to the second separator."""

    def __init__(self, translator):
        self.tokenizer, self.config, self.asked = translator.tokenizer, translator.config, []

    def translate(self, texts, **options):
        self.asked.append(list(texts))
        return [SEPARATOR.join(x.split(SEPARATOR)[:2]) for x in texts]


@pytest.mark.once("text: no tensor is read")
def test_a_torn_translation_is_made_alone(small):
    echo = Echo(small)
    assert translate_documents(echo, ["one", "two", "three"], 2) == ["one", "two", "three"]
    assert echo.asked == [["one", "one <sep> two", "one <sep> two <sep> three"], ["three"]]


@pytest.mark.once("text: no tensor is read")
def test_a_window_too_long_for_the_model_loses_its_first_sentences(small):
    echo, long = Echo(small), " ".join(["nine"] * (MAX_LENGTH // 2))
    assert translate_documents(echo, ["one", long, long, "two"], 3) == ["one", long, long, "two"]
    whole = len(small.tokenizer.encode_source([f"one <sep> {long}"])[0])
    assert whole <= MAX_LENGTH < 2 * whole - 4
    assert echo.asked[0] == ["one", f"one <sep> {long}", long, f"{long} <sep> two"]


@pytest.mark.once("errors before any computation")
def test_bad_input(small):
    with pytest.raises(ValueError, match="context_sentences must be .*at least 1, got 0"):
        translate_documents(small, ["one"], 0)
    with pytest.raises(ValueError, match="texts must be .*'one'"):
        translate_documents(small, "one", 1)
    with pytest.raises(ValueError, match="prefixes must be left out"):
        translate_windows(small, ["one"], prefixes=["two"])
    with pytest.raises(
        ValueError, match="translator must be a saved one that was trained with context"
    ):
        translate_documents(make(made_tokenizer()), ["one"], 1)
    with pytest.raises(TypeError, match="min_p is not an option here"):
        translate_documents(small, ["one"], 1, min_p=0.1)
