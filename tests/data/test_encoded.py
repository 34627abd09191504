"""Encoded pairs: what is kept, what is left out, and how long sampled texts may become."""

import numpy as np
import pytest

from keras_transformer.data.encoded import encode_pairs
from keras_transformer.data.ragged import Ragged
from tests.data.batches import EOS, make_pairs, make_tokenizer

PAIRS = [("ab", "abcd"), ("", "x"), ("abcdefgh", "a")]


def ids_of(side):
    return [side.ids[i].tolist() for i in range(len(side.ids))]


def test_both_sides_are_the_tokenizers():
    tokenizer = make_tokenizer()
    (source, target), kept = encode_pairs(iter(PAIRS), tokenizer, 9, 0.0)
    sources, targets = zip(*PAIRS, strict=True)
    assert ids_of(source) == [list(x) for x in tokenizer.encode_source(sources)]
    assert ids_of(target) == [list(x) for x in tokenizer.encode_target(targets)]
    assert kept.tolist() == [True, True, True]


def test_a_pair_is_left_out_if_one_side_is_too_long():
    (source, target), kept = encode_pairs(PAIRS, make_tokenizer(), 3, 0.0)
    assert kept.tolist() == [True, True, False] and len(source.ids) == len(target.ids) == 2
    assert source.ids.lengths.tolist() == [2, 1] and target.ids.lengths.tolist() == [3, 2]
    with pytest.raises(ValueError, match="max_length .* all 3 are longer than 1 tokens"):
        encode_pairs(PAIRS, make_tokenizer(), 1, 0.0)


def test_many_pairs_are_encoded_in_several_calls():
    pairs = make_pairs(9000, longest=9)
    (source, _), kept = encode_pairs(pairs, make_tokenizer(), 99, 0.0)
    assert len(source.ids) == 9000 and kept.all()
    expected = make_tokenizer().encode_source([text for text, _ in pairs[-5:]])
    assert ids_of(source)[-5:] == [list(x) for x in expected]


@pytest.mark.parametrize("wrong", ["ab", ("a",), ("a", None), 1])
def test_what_is_no_pair(wrong):
    with pytest.raises(TypeError, match=r"pairs\[1\] must be two texts \(str\), got "):
        encode_pairs([("a", "b"), wrong], make_tokenizer(), 9, 0.0)


def test_no_pairs():
    with pytest.raises(ValueError, match="pairs must have at least one pair, got none"):
        encode_pairs([], make_tokenizer(), 9, 0.0)


def visited(side, rows, length, seed=(0, 1, 0)):
    starts = np.cumsum([0, *map(len, rows)])
    found = side.visit(Ragged(np.concatenate(rows), starts), length, seed)
    return [found[i].tolist() for i in range(len(found))]


def test_a_visit_without_sampling_takes_the_plain_ids():
    (source, _), _ = encode_pairs(PAIRS, make_tokenizer(), 9, 0.0)
    assert visited(source, [[2], [0, 1]], 9) == [ids_of(source)[i] for i in (2, 0, 1)]
    lengths = np.array([3, 5])
    np.testing.assert_array_equal(source.planned_lengths(0)(lengths), lengths)


def test_a_sampled_visit_depends_on_the_seed_and_fits_into_its_row():
    tokenizer = make_tokenizer()
    (source, _), _ = encode_pairs(make_pairs(50), tokenizer, 99, 0.5)
    rows = [[i] for i in range(50)]
    first = visited(source, rows, 99, (0, 1, 0))
    assert first == visited(source, rows, 99, (0, 1, 0)) != visited(source, rows, 99, (0, 2, 0))
    plain = ids_of(source)
    assert first != plain and sum(map(len, first)) > sum(map(len, plain))
    for ids, own in zip(first, plain, strict=True):
        assert ids[-1] == EOS and tokenizer.text(ids[:-1]) == tokenizer.text(own[:-1])
    longest = max(map(len, plain))
    assert max(map(len, visited(source, rows, longest))) <= longest
    together = np.arange(50)
    room = sum(map(len, plain))
    assert visited(source, [together], room) == plain  # there is no room for longer texts


def test_planned_lengths_suffice_for_most_sampled_texts():
    (source, _), _ = encode_pairs(make_pairs(500), make_tokenizer(), 99, 0.3)
    planned = source.planned_lengths(seed=0)(source.ids.lengths)
    sampled = visited(source, [[i] for i in range(500)], 999, (7, 7, 7))
    fits = np.array([len(ids) for ids in sampled]) <= np.ceil(planned)
    assert fits.mean() > 0.7
    assert (planned < 2 * source.ids.lengths + 2).all()
