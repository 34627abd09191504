"""Alignments learned from text: words that are known to translate each other find each other."""

import random

import numpy as np
import pytest

from keras_transformer.data.alignments import NONE, align_tokens, in_rows
from keras_transformer.data.ragged import Ragged
from tests.data.batches import EOS, PAD, assert_same, both_layouts, make_batches, make_pairs


def corpus(order, count=300):
    """Sentences of words 0 to 9 and their translations 20 to 29, in another order."""
    generator = random.Random(0)
    sources = [generator.sample(range(10), generator.randint(1, 6)) for _ in range(count)]
    return sources, [[20 + word for word in order(source)] for source in sources]


# The preference for the diagonal is against the reversed order: the words must outweigh it.
@pytest.mark.parametrize("order,least", [(list, 1.0), (lambda x: x[::-1], 0.9)])
def test_words_find_their_translations(order, least):
    sources, targets = corpus(order)
    found = align_tokens(sources, targets)
    correct = [
        place != NONE and 20 + source[place] == word
        for source, target, places in zip(sources, targets, found, strict=True)
        for word, place in zip(target, places, strict=True)
    ]
    assert np.mean(correct) >= least
    assert all(places.dtype == np.int32 for places in found)


def test_words_without_a_counterpart():
    sources, targets = corpus(list)
    generator = random.Random(1)
    targets = [[50 + generator.randrange(20), *target] for target in targets]
    found = align_tokens(sources, targets)
    assert np.mean([places[0] == NONE for places in found]) > 0.95
    assert np.mean([list(places[1:]) == [*range(len(places) - 1)] for places in found]) > 0.95


def test_repeated_words_follow_the_diagonal():
    sources, targets = corpus(list)
    found = align_tokens([*sources, [1, 2, 1]], [*targets, [21, 22, 21]])
    assert found[-1].tolist() == [0, 1, 2]


def test_pairs_that_nothing_was_learned_from():
    sources, targets = corpus(list)
    extra = [1, 2], [21, 99]  # 99 is new
    found = align_tokens([*sources, extra[0], []], [*targets, extra[1], [21]], len(sources))
    assert found[-2].tolist() == [0, NONE] and found[-1].tolist() == [NONE]
    (one,) = align_tokens([[1]], [[2]])
    assert one.tolist() == [0]


def test_places_in_rows():
    # Two rows: pairs 0 and 1, whose sources have 3 and 2 tokens, and pair 2.
    links = Ragged.pack([[0, NONE], [1, 0, NONE], [2]])
    sources = Ragged.pack([[5, 6, 7], [8, 9], [4, 4, 4]])
    found = in_rows(links, sources, np.array([0, 2, 3]))
    assert [x.tolist() for x in found] == [[0, NONE], [4, 3, NONE], [2]]
    without = in_rows(Ragged.pack([[1], [0]]), Ragged.pack([[5, 6], [7]]), np.array([0, 2]))
    assert [x.tolist() for x in without] == [[1], [2]]


@pytest.mark.parametrize(
    "sources,targets,options,message",
    [
        ([[1]], [], {}, "targets must be 1 sequences, one per source, got '?0 sequences"),
        ([[], [1]], [[2], []], {}, "sources must be token ids, with targets"),
        ([], [], {}, "sources must be token ids"),
        ([[1]], [[2]], dict(learn_from=0), "learn_from must be a whole number of at least 1"),
    ],
)
def test_bad_input(sources, targets, options, message):
    with pytest.raises(ValueError, match=message):
        align_tokens(sources, targets, **options)


@both_layouts
def test_labels_are_aligned_with_tokens_of_their_source(layout):
    pairs = make_pairs(200)
    batches = make_batches(pairs, aligned=True, **layout)
    plain = make_batches(pairs, **layout)
    count = 0
    for step in range(2 * len(batches)):
        inputs, labels = batches.batch(step)
        (expected, same), links = plain.batch(step), inputs.pop("alignment")
        assert_same([(inputs, labels)], [(expected, same)])
        assert links.dtype == np.int32 and links.shape == labels.shape
        rows, columns = np.nonzero(links >= 0)
        assert (labels[rows, columns] != PAD).all()
        sources = inputs["source_ids"][rows, links[rows, columns]]
        assert (sources != PAD).all()
        # Each text ends in EOS, in the last place of both.
        ends = labels[rows, columns] == EOS
        assert ends.any() and (sources[ends] == EOS).mean() > 0.9
        if "source_segments" in inputs:
            own = inputs["target_segments"][rows, columns]
            assert (inputs["source_segments"][rows, links[rows, columns]] == own).all()
        count += len(rows)
    assert count > 2 * len(pairs)


def test_sampled_tokens_are_not_aligned():
    with pytest.raises(ValueError, match="sampling must be 0 with aligned tokens, got 0.1"):
        make_batches(aligned=True, sampling=0.1)
