"""From the texts of a request to its answer, over a handler of capitals and a small translator."""

import asyncio

import numpy as np
import pytest

from keras_transformer.serving import handlers
from keras_transformer.serving.answers import attend, translate_html, translate_texts
from keras_transformer.serving.handlers import TranslatorHandler
from keras_transformer.serving.queue import Batcher
from keras_transformer.serving.turns import Workers

WORKERS = Workers("texts", 1)


class Capitals:
    """Translates by capitals; the further translations end in exclamation marks."""

    can_attend, can_estimate = False, True

    def __init__(self, max_length=None, suffix=""):
        self.max_length, self.suffix, self.searched = max_length, suffix, []

    def read(self, texts):
        return texts, [len(text) for text in texts]

    def search(self, texts, num_hypotheses, tokens_per_batch):
        self.searched += texts
        return [
            [text.upper() + self.suffix + "!" * i for i in range(num_hypotheses)] for text in texts
        ]

    def estimate(self, pairs):
        assert all(target == source.upper() for source, target in pairs)
        return [None if source == "?" else 1 / len(source) for source, _ in pairs]


@pytest.fixture
def batcher():
    one = Batcher(tokens_per_batch=1000, delay=0.0, most_waiting=100_000)
    yield one
    one.close()


def translated(batcher, handlers, texts, alternatives=0):
    found = asyncio.run(translate_texts(batcher, WORKERS, handlers, "en", texts, alternatives))
    assert all(one.quality is None for one in found)
    return [one.texts for one in found]


def html(batcher, handlers, *sources):
    return asyncio.run(translate_html(batcher, WORKERS, handlers, "en", sources))


def test_sentences_are_searched_one_by_one_and_joined_with_their_space(batcher):
    handler = Capitals()
    texts = ["  A dog runs.  A cat sleeps.\n", "", " \t", "No end"]
    expected = [["  A DOG RUNS.  A CAT SLEEPS.\n"], [""], [" \t"], ["NO END"]]
    assert translated(batcher, [handler], texts) == expected
    assert sorted(handler.searched) == ["A cat sleeps.", "A dog runs.", "No end"]


def test_alternatives_differ_in_each_sentence(batcher):
    (found,) = translated(batcher, [Capitals()], ["One dog. Two cats."], alternatives=2)
    assert found == ["ONE DOG. TWO CATS.", "ONE DOG.! TWO CATS.!", "ONE DOG.!! TWO CATS.!!"]


def test_quality_is_the_mean_over_the_characters(batcher):
    texts = ["One dog. Two cats.", "", "?", " four "]
    handler = Capitals()
    found = asyncio.run(
        translate_texts(batcher, WORKERS, [handler], "en", texts, 1, estimates=True)
    )
    assert [one.quality for one in found] == [round(2 / 17, 4), None, None, 0.25]
    several = asyncio.run(
        translate_texts(batcher, WORKERS, [handler] * 2, "en", texts, 0, estimates=True)
    )
    assert all(one.quality is None for one in several)  # of a chain of models nothing is known


def test_a_second_handler_takes_the_best_of_the_first(batcher):
    handlers = [Capitals(suffix="a"), Capitals(suffix="b")]
    assert translated(batcher, handlers, ["one"], 1) == [["ONEAb", "ONEAb!"]]
    assert handlers[1].searched == ["ONEa"]


def test_a_long_sentence_is_split_into_what_the_model_reads(batcher):
    handler = Capitals(max_length=10)
    assert translated(batcher, [handler], ["one, two, three four"]) == [["ONE, TWO, THREE FOUR"]]
    assert len(handler.searched) > 1 and max(map(len, handler.searched)) <= 10


def test_tags_stay_around_their_words(batcher):
    source = "<p>A <b>big</b> dog.</p>\n<ul><li>one<li>two</ul><!-- c -->"
    expected = "<p>A <b>BIG</b> DOG.</p>\n<ul><li>ONE<li>TWO</ul><!-- c -->"
    assert html(batcher, [Capitals()], source, "plain") == [expected, "PLAIN"]
    assert html(batcher, [Capitals(), Capitals()], source) == [expected]


def test_several_sentences_in_one_block(batcher):
    source = "<p>One <i>dog</i>. Two <b>cats</b>.</p>"
    assert html(batcher, [Capitals()], source) == ["<p>ONE <i>DOG</i>. TWO <b>CATS</b>.</p>"]


def test_attention_to_a_sentence(batcher, translators, monkeypatch):
    handler = TranslatorHandler(translators[0])
    found = asyncio.run(attend(batcher, WORKERS, handler, "one two", None))
    ((best,),) = handler.search(handler.read(["one two"])[0], 1, 100)
    assert found["translation"] == best
    for name, rows, columns in (
        ("encoder", "source_tokens", "source_tokens"),
        ("decoder", "target_tokens", "input_tokens"),
        ("cross", "target_tokens", "source_tokens"),
    ):
        weights = np.array(found[name])  # layers, heads, queries, keys
        assert weights.shape[2:] == (len(found[rows]), len(found[columns]))
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)
    given = asyncio.run(attend(batcher, WORKERS, handler, "one two", "six"))
    assert given["translation"] == "six" and given["target_tokens"] != found["target_tokens"]
    monkeypatch.setattr(handlers, "MOST_WEIGHTS", 20)
    with pytest.raises(ValueError, match="q must be shorter: .* 20 "):
        asyncio.run(attend(batcher, WORKERS, handler, "one two", "six"))
