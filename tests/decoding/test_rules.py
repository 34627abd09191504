"""Forced tokens of each row and position, and the length penalty."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding.rules import (
    FREE,
    IMPOSSIBLE,
    LAST,
    LAST_NOT_EOS,
    NOT_EOS,
    Rules,
    length_penalty_factor,
    penalize_repetition,
    pick,
    with_token,
)
from keras_transformer.search import Search

numpy = ops.convert_to_numpy


def test_forced():
    rules = Rules(Search(min_length=1), eos_ids=(1,))
    limits = ops.convert_to_tensor([4, 2], "int32")
    found = numpy(rules.forced(4, limits, None)).tolist()
    assert found == [[NOT_EOS, FREE, FREE, 1], [NOT_EOS, 1, 1, 1]]
    prefix = ops.convert_to_tensor([[7, 8], [9, 0]], "int32")
    found = numpy(rules.forced(4, limits, prefix)).tolist()
    assert found == [[7, 8, FREE, 1], [9, 1, 1, 1]]


def test_a_row_may_end_at_its_limit_with_any_token():
    rules = Rules(Search(min_length=2, forced_eos=False), eos_ids=(1,))
    limits = ops.convert_to_tensor([3, 2], "int32")
    forced = rules.forced(3, limits, None)
    assert numpy(forced).tolist() == [[NOT_EOS, NOT_EOS, LAST], [NOT_EOS, LAST_NOT_EOS, LAST]]
    assert numpy(rules.is_last(forced)).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert numpy(rules.is_early(forced)).tolist() == [[1, 1, 0], [1, 1, 0]]


def test_suppressed_tokens():
    rules = Rules(Search(suppress_tokens=(2,), begin_suppress_tokens=(0, 1)), eos_ids=(1,))
    forced = ops.convert_to_tensor([[FREE, FREE], [3, FREE]], "int32")
    for i, expected in enumerate(([[0, 0, 0, 1], [1, 1, 0, 1]], [[1, 1, 0, 1], [0, 0, 0, 1]])):
        logits = rules.suppress(ops.zeros((2, 4)), forced, i)
        assert (numpy(logits) > IMPOSSIBLE / 2).tolist() == expected


def test_sequences_of_the_prompt_are_not_repeated():
    rules = Rules(Search(no_repeat_ngram_size=2), eos_ids=(1,))
    ids, past = (ops.convert_to_tensor(x, "int32") for x in ([[5, 0]], [[-1, 5, 7]]))
    assert set(numpy(rules.repeats(ids, 1, past))[0].tolist()) == {-1, 7}
    assert set(numpy(rules.repeats(ids, 1))[0].tolist()) == {-1}


def test_the_best_of_several_ends_is_forced():
    rules = Rules(Search(), eos_ids=(1, 3))
    logits = ops.convert_to_tensor([[0.0, 1.0, 9.0, 2.0], [0.0, 5.0, 9.0, 2.0]])
    forced = ops.convert_to_tensor([1, 2], "int32")
    assert numpy(rules.best_end(forced, logits)).tolist() == [3, 2]
    assert numpy(rules.is_end(ops.convert_to_tensor([0, 1, 3]))).tolist() == [False, True, True]


def test_never():
    assert Rules(Search(), eos_ids=(1,), pad_id=0, banned_ids=(2, 1)).never == (0, 2)
    assert Rules(Search(), eos_ids=(0,), pad_id=0).never == ()  # Whisper pads with its EOS


def test_length_penalty():
    assert float(length_penalty_factor(7, 0.5)) == pytest.approx(2**0.5)
    assert float(length_penalty_factor(9, 0.5, "transformers")) == pytest.approx(3)
    assert float(Rules(Search(length_penalty=0.0), (1,)).penalty(9)) == 1


def test_pick():
    x = np.arange(12).reshape(2, 2, 3)
    chosen = ops.convert_to_tensor([[1, 1], [0, 1]], "int32")
    found = numpy(pick(ops.convert_to_tensor(x), chosen))
    np.testing.assert_array_equal(found, [x[0][[1, 1]], x[1][[0, 1]]])


def test_length_penalty_factor_is_equation_14_of_wu_et_al():
    lengths = np.array([1, 7, 13], "int32")
    factor = ops.convert_to_numpy(length_penalty_factor(ops.convert_to_tensor(lengths), 0.6))
    np.testing.assert_allclose(factor, [1, 2**0.6, 3**0.6], rtol=1e-6)


@pytest.mark.parametrize(
    "size,ids,expected",
    [
        (1, [7, 8, 7], {7, 8}),
        (2, [7, 8, 7], {8}),
        (2, [7, 8, 9], set()),
        (3, [7, 8, 9, 7, 8], {9}),
        (3, [7, 7, 7], {7}),
        (3, [7, 7], set()),
        (2, [], set()),
    ],
)
def test_tokens_that_would_repeat_a_sequence(size, ids, expected):
    rules = Rules(Search(no_repeat_ngram_size=size), (3,))
    row = ops.convert_to_tensor([[*ids, 0, 0, 0][:6], [0] * 6][:1], dtype="int32")
    found = ops.convert_to_numpy(rules.repeats(row, len(ids)))
    assert set(found[0]) - {-1} == expected


def test_the_repetition_penalty_by_hand():
    logits = ops.convert_to_tensor([[2.0, -2.0, 3.0, -3.0]])
    seen = ops.convert_to_tensor([[True, True, False, False]])
    found = numpy(penalize_repetition(logits, seen, 4.0))
    np.testing.assert_allclose(found, [[0.5, -8.0, 3.0, -3.0]])


def test_tokens_seen():
    logits, prompt = ops.zeros((2, 3)), ops.convert_to_tensor([[-1, 0]] * 2, "int32")
    rules = Rules(Search(repetition_penalty=2.0), (1,))
    assert Rules(Search(), (1,)).history(logits, prompt) == {}
    assert numpy(rules.history(logits, prompt)["seen"]).tolist() == [[1, 0, 0]] * 2
    first = rules.history(logits, None)["seen"]
    assert not numpy(first).any()
    tokens = ops.convert_to_tensor([2, 0], "int32")
    assert numpy(with_token(first, tokens)).tolist() == [[0, 0, 1], [1, 0, 0]]
