"""Subword sampling: SentencePiece's segmentation in the limit, the papers' frequencies."""

import functools
import itertools
import math
import random
from collections import Counter

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.subword_sampling import SubwordSampler, bpe_dropout, sample_unigram

TEXTS = [
    f"{who} {does} {what} {where}."
    for who in ("Der Hund", "Die Frau", "Ein Mann", "the dog", "a woman")
    for does in ("sieht", "sucht", "findet", "sees", "is looking for")
    for what in ("den Ball", "das Haus", "the ball", "a green house")
    for where in ("im Garten", "am Fluss", "in the garden", "by the river")
]
DRAWS = 20_000

# A dropout of 0, and an alpha so large that the best segmentation is all that is left.
BEST = {"bpe": 0.0, "unigram": 1e5}


@functools.cache
def sampler_and_processor(kind):
    model = SentencePieceTokenizer.train(TEXTS, [], vocab_size=384, kind=kind).source_model
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return SubwordSampler(processor, kind), processor


def frequencies(segment):
    generator = random.Random(1).random
    counts = Counter(tuple(segment(generator)) for _ in range(DRAWS))
    return {pieces: count / DRAWS for pieces, count in counts.items()}


def assert_probable(frequency, probability):
    """Each frequency within five standard deviations, and nothing impossible drawn."""
    assert frequency.keys() <= probability.keys()
    for pieces, expected in probability.items():
        deviation = math.sqrt(expected * (1 - expected) / DRAWS)
        assert abs(frequency.get(pieces, 0) - expected) < 5 * deviation


@pytest.mark.parametrize("kind", BEST)
@settings(deadline=None, max_examples=200)
@given(text=st.one_of(st.text(), st.text("derhunsaAE .▁"), st.sampled_from(TEXTS)))
def test_without_randomness_equals_sentencepiece(kind, text):
    sampler, processor = sampler_and_processor(kind)
    found, best = sampler(text, BEST[kind], random.Random(0).random), processor.encode(text)
    if kind == "unigram" and found != best:  # of several that are equally probable, any will do
        assert processor.decode(found) == processor.decode(best)
        found, best = (sorted(map(processor.get_score, ids)) for ids in (found, best))
        assert sum(found) == pytest.approx(sum(best), abs=1e-6)
    else:
        assert found == best


@pytest.mark.parametrize("kind", BEST)
@settings(deadline=None, max_examples=100)
@given(text=st.text(), strength=st.floats(0.01, 1), seed=st.integers(0, 2**40))
def test_sampled_ids_spell_the_same_text(kind, text, strength, seed):
    sampler, processor = sampler_and_processor(kind)
    ids = sampler(text, strength, random.Random(seed).random)
    assert processor.decode(ids) == processor.decode(processor.encode(text))


def test_bpe_dropout_frequencies_by_hand():
    # "ab" goes first unless dropped; if it is, "bc" is applied unless dropped as well.
    scores = {"a": -9.0, "b": -9.0, "c": -9.0, "ab": -1.0, "bc": -2.0}
    p = 0.3
    expected = {("ab", "c"): 1 - p, ("a", "bc"): p * (1 - p), ("a", "b", "c"): p * p}
    assert_probable(frequencies(lambda draw: bpe_dropout("abc", scores, p, draw)), expected)


def test_bpe_dropout_gives_a_dropped_merge_another_chance():
    # Each step draws for every merge anew: after "cd" there is "ab" again, and the reverse.
    scores = {"ab": -1.0, "cd": -2.0}
    p = 0.4
    expected = {
        ("ab", "cd"): (1 - p) ** 2 + p * (1 - p) ** 2,
        ("ab", "c", "d"): (1 - p) * p,
        ("a", "b", "cd"): p * (1 - p) * p,
        ("a", "b", "c", "d"): p * p,
    }
    assert sum(expected.values()) == pytest.approx(1)
    assert_probable(frequencies(lambda draw: bpe_dropout("abcd", scores, p, draw)), expected)


def test_full_dropout_leaves_characters():
    assert bpe_dropout("abc", {"ab": -1.0, "abc": -2.0}, 1.0, random.random) == ["a", "b", "c"]


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_unigram_frequencies_are_those_of_all_segmentations(alpha):
    scores = {"a": -2.0, "b": -3.0, "ab": -2.5, "ba": -2.0, "aba": -4.0}
    unknown = -5.0
    word = "abaxb"
    weights = {}
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [len(word)]
        pieces = tuple(word[i:j] for i, j in zip([0, *ends], ends, strict=False))
        if all(piece in scores or len(piece) == 1 for piece in pieces):
            weights[pieces] = math.exp(alpha * sum(scores.get(p, unknown) for p in pieces))
    expected = {pieces: weight / sum(weights.values()) for pieces, weight in weights.items()}
    assert len(expected) == 4
    drawn = frequencies(
        lambda draw: sample_unigram(word, scores, alpha, draw, longest=3, unknown=unknown)
    )
    assert_probable(drawn, expected)
