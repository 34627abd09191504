"""Which extensions a search with phrases keeps, by hand."""

import numpy as np
from keras import ops

from keras_transformer.decoding import Phrases
from keras_transformer.decoding.banks import best_of_all, in_turn, with_proposals
from keras_transformer.decoding.rules import IMPOSSIBLE


def test_the_best_of_each_bank_come_first():
    total = ops.convert_to_tensor([[-1.0, -2.0, -3.0, -9.0, -8.0, IMPOSSIBLE]])
    progress = ops.convert_to_tensor([[0, 0, 0, 1, 1, 2]], dtype="int32")
    keys = ops.convert_to_numpy(in_turn(total, progress))[0]
    assert np.argsort(-keys).tolist() == [0, 4, 1, 3, 2, 5]
    assert keys[5] == np.float32(IMPOSSIBLE)


def test_equal_sums_have_an_order():
    keys = in_turn(ops.convert_to_tensor([[-1.0, -1.0]]), ops.zeros((1, 2), dtype="int32"))
    first, second = ops.convert_to_numpy(keys)[0]
    assert first > second


def test_proposals_join_the_best_tokens_once():
    phrases = Phrases((1,), "", np.zeros(6, bool))
    state = phrases.start([[[[2, 3]], [[4]], [[2]]]], [9])
    state = {name: ops.expand_dims(ops.convert_to_tensor(x), 1) for name, x in state.items()}
    logits = ops.convert_to_tensor([[[0.0, 5.0, 1.0, 2.0, 3.0, 4.0]]])
    best = ops.convert_to_tensor([[[5.0, 4.0, 3.0]]]), ops.convert_to_tensor([[[1, 5, 4]]], "int32")
    values, tokens = (
        ops.convert_to_numpy(x)[0, 0] for x in with_proposals(phrases, state, *best, logits)
    )
    real = values > IMPOSSIBLE / 2
    # EOS (1) must wait; 4 is among the best and needed, 2 is needed twice.
    assert tokens[real].tolist() == [5, 4, 2]
    assert values[real].tolist() == [4.0, 3.0, 1.0]


def test_the_best_and_the_best_that_may_end():
    phrases = Phrases((1,), "", np.zeros(6, bool))
    state = phrases.start([[[[2]]], [[[2]]]], [9, 9])
    state["met"][1] = True
    state = {name: ops.convert_to_tensor(x)[None] for name, x in state.items()}
    best, whole = best_of_all(phrases, state, ops.convert_to_tensor([[-1.0, -2.0]]))
    assert [float(best[0]), float(whole[0])] == [-1.0, -2.0]
