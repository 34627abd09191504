"""Jobs on pairs: words are aligned by attention, else in order."""

from types import SimpleNamespace

from keras_transformer.serving.handlers import TranslatorHandler
from keras_transformer.serving.jobs import Aligner


def test_without_attention_words_are_aligned_in_order():
    aligner = Aligner(
        SimpleNamespace(can_attend=False, read=lambda texts: (texts, [*map(len, texts)]))
    )
    assert aligner.read([("one two", "x")]) == ([("one two", "x")], [7])
    pairs = [("a b c", "A B C"), ("a b c d", "A B"), ("a", "A B C"), ("", "A"), ("a", "")]
    expected = [[0, 1, 2], [0, 2], [0, 0, 0], [None], []]
    assert aligner.search(pairs, 1, 100) == expected


def test_with_attention_each_word_has_a_word_of_the_source(translators):
    handler = TranslatorHandler(translators[0])
    assert handler.can_attend
    source = "one two three."
    ((target,),) = handler.search(handler.read([source])[0], 1, 100)
    (links,) = Aligner(handler).search([(source, target)], 1, 100)
    words = target.split()
    assert len(links) >= len(words)
    assert all(link is None or 0 <= link < 4 for link in links)
