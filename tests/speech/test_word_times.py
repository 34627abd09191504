"""Times of words: beside `transformers`, and by attention whose path is known."""

import numpy as np
import pytest
import torch
from transformers.models.whisper import generation_whisper as theirs

from keras_transformer.models import SpeechConfig
from keras_transformer.speech.hearing import Hearing
from keras_transformer.speech.word_times import (
    check_alignment_heads,
    median_filter,
    time_warping,
    token_starts,
    words_of,
)
from keras_transformer.text.text_tokenizer import TextTokenizer

pytestmark = pytest.mark.once("NumPy and texts")


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (4, 9), (9, 4), (7, 60)])
def test_the_path_of_transformers(shape, rng):
    for cost_TS in (rng.standard_normal(shape), rng.integers(0, 2, shape).astype(float)):
        for one, other in zip(
            time_warping(cost_TS), theirs._dynamic_time_warping(cost_TS), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("length", [3, 4, 30])
def test_the_median_filter_of_transformers(length, rng):
    x = rng.standard_normal((2, 3, length))
    expected = theirs._median_filter(torch.tensor(x)[None], 7)[0].numpy()
    np.testing.assert_array_equal(median_filter(x, 7), expected)
    with pytest.raises(ValueError, match="width must be an odd number above 0, got 4"):
        median_filter(x, 4)


def test_a_known_path_is_found(rng):
    places = [0, 12, 30, 37, 60, 80]
    weights_HTS = rng.uniform(0, 0.02, (3, 5, 80))  # a background that differs by head
    for i in range(5):
        weights_HTS[:, i, places[i] : places[i + 1]] += 0.05
    weights_HTS[1] = rng.uniform(0, 0.05, (5, 80))  # a head that follows nothing
    np.testing.assert_allclose(token_starts(weights_HTS), places[:5], atol=1)


def test_tokens_of_a_constant_are_no_error():
    assert token_starts(np.full((1, 3, 5), 0.2))[0] == 0


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_words_and_their_tokens(kind):
    text = " Hé, wörld! 日本。 go 😀"
    tokenizer = TextTokenizer.train([text], kind, 257)
    (ids,) = tokenizer.encode([text])
    found = words_of(tokenizer, ids)
    assert [word for word, *_ in found] == ["Hé,", "wörld!", "日", "本。", "go", "😀"]
    for word, first, end in found:
        assert tokenizer.decode([ids[first:end]])[0].strip() == word
    assert words_of(tokenizer, []) == []
    # A text whose last character is incomplete.
    if kind == "bytes":
        assert [word for word, *_ in words_of(tokenizer, ids[:-1])][:-1] == [
            word for word, *_ in found[:-1]
        ]


def test_alignment_heads_must_be_in_the_model():
    config = SpeechConfig(9, num_decoder_layers=2, num_heads=6)
    check_alignment_heads(Hearing(alignment_heads=((1, 5), (0, 0))), config)
    with pytest.raises(ValueError, match="alignment_heads must be pairs of a layer below 2 and"):
        check_alignment_heads(Hearing(alignment_heads=((2, 0),)), config)
    fewer = SpeechConfig(9, num_decoder_layers=2, num_heads=6, num_decoder_heads=4)
    with pytest.raises(ValueError, match="a head below 4"):
        check_alignment_heads(Hearing(alignment_heads=((1, 5),)), fewer)
