"""The measures of the benchmark of live translation, with prepared drafts."""

import pytest

from benchmarks.live import Remembering, scores, spaced, translate_words
from keras_transformer.translate.live import WaitK
from tests.translate.live.test_live_loop import Scripted

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_pairs_at_equal_distances():
    assert spaced(range(10), 3) == [0, 3, 6]
    assert spaced(range(2), 3) == [0, 1]


def test_delays_and_scores_of_a_sentence(translator):
    drafts = ["Das", "Das ist", "Das ist gut heute", "Das ist gut heute."]
    live = Remembering(Scripted(translator, drafts))
    expected = "Das ist gut heute.", [1, 2, 3, 3]
    sentence = "one two six"
    assert translate_words(live, sentence, WaitK(1)) == expected
    asked = list(live.asked)
    assert translate_words(live, sentence, WaitK(1)) == expected and live.asked == asked
    bleu, chrf, al, laal, ap = scores([(sentence, expected[0])], [expected[0]], [expected[1]])
    assert (bleu, chrf) == ("100.0", "100.0")
    assert (al, laal, ap) == ("1.25", "1.25", "0.75")
