"""Times of translated words, with prepared translations."""

import pytest

from keras_transformer.speech.spoken_translation import (
    MOST_WORDS,
    spread_words,
    translate_spoken,
    translate_words,
)
from keras_transformer.speech.word_times import Word
from keras_transformer.translate.live import WaitK
from tests.translate.live.test_live_loop import Scripted

pytestmark = pytest.mark.once("texts: no tensor is read")


class Capitals:
    """A translator that writes capitals."""

    def translate(self, texts, **options):
        self.asked = texts
        return [x.upper() for x in texts]


def test_a_translation_is_spread_by_its_characters():
    words = [Word("ab", 1.0, 2.0), Word("cd.", 3.0, 4.5)]
    assert spread_words(words, "AB CD.") == [Word("AB", 1.0, 2.0), Word("CD.", 3.0, 4.5)]
    assert spread_words(words, "A") == [Word("A", 1.0, 4.5)]
    assert spread_words(words, "") == []
    halves = spread_words([Word("abcd", 0.0, 1.0)], "今日")
    assert halves == [Word("今", 0.0, 0.5), Word("日", 0.5, 1.0)]


def test_sentences():
    words = [Word("One.", 0, 1), Word("Two", 1, 2), Word("three", 3.5, 4), Word("four", 4, 5)]
    translator = Capitals()
    result = translate_words(translator, words)
    assert translator.asked == ["One.", "Two", "three four"]
    assert [x.word for x in result] == ["ONE.", "TWO", "THREE", "FOUR"]
    assert [result[0], result[1]] == [Word("ONE.", 0, 1), Word("TWO", 1, 2)]
    assert translate_words(translator, []) == []
    translate_words(translator, [Word("a", 0, 1)] * (MOST_WORDS + 1))
    assert [len(x.split()) for x in translator.asked] == [MOST_WORDS, 1]


def test_live_words_have_the_times_of_their_source(translator):
    drafts = ["Ich", "Ich denke", "Ich denke, ja", "Ich denke, ja", "Ich denke, ja."]
    scripted = Scripted(translator, drafts)
    words = [Word(x, i, i + 0.5) for i, x in enumerate(["one", "two", "six", "ten"], 3)]
    assert list(translate_spoken(scripted, words, WaitK(1))) == [
        Word("Ich", 3, 3.5),
        Word("denke,", 4, 4.5),
        Word("ja.", 5, 5.5),
    ]
    assert list(translate_spoken(scripted, [])) == []
