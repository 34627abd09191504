"""Masked tokens and pairs of texts: shares, seeds, what is never chosen, and what labels say."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.masking import Masking, full_sentences, join_pairs, sentence_pairs

CLS, SEP, MASK = 1, 2, 3
MASKING = Masking(50, mask_id=MASK, special_ids=(CLS, SEP))


def rows(rng, count=400, length=62):
    ids = rng.integers(4, 50, (count, length)).astype("int32")
    ids[:, 0], ids[:, 21], ids[:, 60], ids[:, 61:] = CLS, SEP, SEP, 0
    return ids


def test_shares_of_the_paper(rng):
    ids = rows(rng)
    inputs, labels = MASKING(ids, rng)
    chosen = labels != 0
    np.testing.assert_array_equal(chosen.sum(axis=1), round(0.15 * 58))
    np.testing.assert_array_equal(labels[chosen], ids[chosen])
    np.testing.assert_array_equal(inputs[~chosen], ids[~chosen])
    assert inputs.dtype == labels.dtype == np.int32
    is_mask, is_kept = inputs[chosen] == MASK, inputs[chosen] == ids[chosen]
    assert is_mask.mean() == pytest.approx(0.8, abs=0.02)
    assert is_kept.mean() == pytest.approx(0.1 + 0.1 / 46, abs=0.02)
    others = inputs[chosen][~is_mask & ~is_kept]
    assert set(others) == set(range(4, 50))
    assert chosen[:, 1:60].any(axis=0).sum() == 58  # each place, but the middle [SEP]


def test_special_tokens_are_never_chosen_and_a_seed_says_all(rng):
    ids = rows(rng, 50)
    ids[3, 1:] = 0  # a row of padding
    ids[4, 2:] = 0  # and one of one token
    ids[5, 7] = MASK
    one, again, other = (MASKING(ids, np.random.default_rng(seed)) for seed in (1, 1, 2))
    special = np.isin(ids, [0, CLS, SEP, MASK])
    assert (one[1][special] == 0).all() and (one[0][special] == ids[special]).all()
    assert (one[1][3] == 0).all() and one[1][4, 1] == ids[4, 1]
    for a, b in zip(one, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one[1] != other[1]).any()


def test_each_option(rng):
    ids = rows(rng, 100)
    all_of = dataclasses.replace(MASKING, rate=1.0, mask_share=1.0, random_share=0.0)
    inputs, labels = all_of(ids, rng)
    ordinary = ~np.isin(ids, [0, CLS, SEP])
    np.testing.assert_array_equal(inputs, np.where(ordinary, MASK, ids))
    np.testing.assert_array_equal(labels, np.where(ordinary, ids, 0))
    never = dataclasses.replace(MASKING, mask_share=0.0, random_share=0.0)
    np.testing.assert_array_equal(never(ids, rng)[0], ids)
    at_random = dataclasses.replace(MASKING, rate=1.0, mask_share=0.0, random_share=1.0)
    assert (at_random(ids, rng)[0][ordinary] != ids[ordinary]).mean() > 0.9
    padded = dataclasses.replace(MASKING, pad_id=49, mask_id=0, special_ids=())
    inputs, labels = padded(ids, rng)
    assert 0 in inputs and (labels[ids == 49] == 49).all() and (labels == 49).mean() > 0.8


def test_whole_words(rng):
    ids = rows(rng, 200)
    starts = rng.random(ids.shape) < 0.4
    starts |= np.isin(ids, [CLS, SEP, 0]) | np.isin(np.roll(ids, 1, axis=1), [CLS, SEP])
    _, labels = MASKING(ids, rng, starts)
    chosen = labels != 0
    words = np.cumsum(starts, axis=1)
    for row in range(len(ids)):
        hidden = set(words[row][chosen[row]])
        np.testing.assert_array_equal(np.isin(words[row], list(hidden)), chosen[row])
        sizes = [int((words[row] == word).sum()) for word in hidden]
        assert chosen[row].sum() >= 9 and chosen[row].sum() - max(sizes) < 9


def test_neighbours_together(rng):
    """Single tokens, pairs and triples in the ratio 6 : 3 : 2."""
    masking = dataclasses.replace(MASKING, longest=3, rate=0.02)
    _, labels = masking(rng.integers(4, 50, (4000, 50)), rng)
    chosen = labels != 0
    sizes = chosen.sum(axis=1)  # one group is enough for the rate
    assert set(sizes) == {1, 2, 3}
    # A row ends some groups early: they are fewer at length.
    shares = [np.mean(sizes == size) for size in (1, 2, 3)]
    np.testing.assert_allclose(shares, [6 / 11, 3 / 11, 2 / 11], atol=0.03)
    first, last = chosen.argmax(axis=1), 49 - chosen[:, ::-1].argmax(axis=1)
    np.testing.assert_array_equal(last - first + 1, sizes)  # neighbours


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(vocab_size=0), "vocab_size must be a whole number of at least 1, got 0"),
        (dict(mask_id=50), r"mask_id must be in \[0, 50\), got 50"),
        (dict(pad_id=-1), r"pad_id must be in \[0, 50\), got -1"),
        (dict(longest=0), "longest must be a whole number of at least 1, got 0"),
        (dict(rate=0.0), r"rate must be in \(0, 1\], got 0.0"),
        (dict(mask_share=1.1), r"mask_share must be in \[0, 1\], got 1.1"),
        (dict(random_share=0.3), r"random_share must be in \[0, 0.2\], got 0.3"),
        (dict(special_ids=tuple(range(50))), "must leave some ordinary ids, got all 50"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(MASKING, **changes)


def documents(rng, count=6, sentences=12):
    """Each token says where it stands: document x 1000 + its place there."""
    found = []
    for number in range(count):
        ends = np.cumsum(rng.integers(1, 6, sentences))
        tokens = 1000 * (number + 1) + np.arange(ends[-1])
        found.append([part.tolist() for part in np.split(tokens, ends[:-1])])
    return found


@pytest.mark.parametrize("task", ["next_sentence", "sentence_order"])
def test_pairs(rng, task):
    texts = documents(rng, 200)
    pairs = list(sentence_pairs(texts, 16, rng, task))
    assert 0.4 < np.mean([label for *_, label in pairs]) < 0.6
    for first, second, label in pairs:
        assert first and second and len(first) + len(second) <= 16
        same = first[0] // 1000 == second[0] // 1000
        assert same == (label == 0 or task == "sentence_order")
        if same:
            assert (first[0] < second[0]) == (label == 0)
    for text in texts:  # no sentence is lost but for what is cut off, or left over at the end
        seen = {token for first, second, _ in pairs for token in first + second}
        starts = [sentence[0] for sentence in text[:-1]]
        assert np.mean([start in seen for start in starts]) > 0.8
    first, second = (list(sentence_pairs(texts, 16, np.random.default_rng(7))) for _ in "ab")
    assert first == second


@given(st.lists(st.lists(st.lists(st.integers(4, 9), max_size=5), max_size=5), max_size=5))
def test_pairs_of_anything(texts):
    for first, second, _ in sentence_pairs(texts, 4, np.random.default_rng(0), "sentence_order"):
        assert first and second and len(first) + len(second) <= 4


def test_pairs_that_cannot_be():
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match="task must be one of .*, got 'order'"):
        list(sentence_pairs([[[1]]], 8, generator, "order"))
    with pytest.raises(ValueError, match="max_length must be a whole number of at least 2, got 1"):
        list(sentence_pairs([[[1]]], 1, generator))
    with pytest.raises(ValueError, match="documents must be two or more, got 1 that hold tokens"):
        list(sentence_pairs([[[1], [2]], [[]]], 8, generator))


def test_full_sentences(rng):
    texts = documents(rng, 40)
    rows = list(full_sentences(texts, 16, rng, SEP))
    assert all(1 <= len(row) <= 16 for row in rows)
    tokens = [token for row in rows for token in row if token != SEP]
    assert sorted(tokens) == [x for text in texts for sentence in text for x in sentence]
    starts = {sentence[0] for text in texts for sentence in text}
    assert all(row[0] in starts for row in rows)
    for row in rows:  # another document follows a separator
        for one, other in itertools.pairwise(row):
            assert SEP in (one, other) or other == one + 1
    assert list(full_sentences([[[5] * 9, [6]]], 4, rng, SEP)) == [[5] * 4, [6]]
    with pytest.raises(ValueError, match="max_length must be a whole number of at least 1, got 0"):
        list(full_sentences(texts, 0, rng, SEP))


def test_joined():
    inputs = join_pairs([([5, 6], [7]), ([8], [9, 10, 11])], CLS, SEP, pad_id=4, length=8)
    expected = [[CLS, 5, 6, SEP, 7, SEP, 4, 4], [CLS, 8, SEP, 9, 10, 11, SEP, 4]]
    np.testing.assert_array_equal(inputs["token_ids"], expected)
    expected = [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(inputs["type_ids"], expected)
    with pytest.raises(ValueError, match="length must be at least 7, the longest pair, got 6"):
        join_pairs([([8], [9, 10, 11])], CLS, SEP, length=6)
