"""Attention of given pairs in batches, and coverage by hand."""

import numpy as np
import pytest

from keras_transformer.running.attention_weights import (
    LEAST,
    alignment_weights,
    attention_weights,
    coverage,
)
from tests.small_translator import TEXTS


def test_alone_as_in_a_batch(translator):
    tokenizer = translator.tokenizer
    sides = tokenizer.encode_source(TEXTS), tokenizer.encode_target(TEXTS[::-1])

    def found(tokens_per_batch):
        rows = {}
        for chosen, weights in attention_weights(translator.model, *sides, tokens_per_batch):
            assert weights.keys() == {"encoder", "decoder", "cross"}
            for i, weights_TS in zip(chosen, alignment_weights(weights["cross"]), strict=False):
                rows[i] = weights_TS[: len(sides[1][i]), : len(sides[0][i])]
        return rows

    together, alone = found(4096), found(1)
    assert together.keys() == alone.keys() == set(range(len(TEXTS)))
    for i, weights_TS in together.items():
        np.testing.assert_allclose(weights_TS, alone[i], atol=1e-5)
        np.testing.assert_allclose(weights_TS.sum(axis=1), 1.0, atol=1e-5)  # nothing on padding


@pytest.mark.once("NumPy alone")
def test_the_layer_that_aligns_best():
    layers = [np.full((1, 2, 3, 4), float(i)) for i in range(3)]
    layers[1][:, 1] = 3.0
    assert alignment_weights(layers)[0, 0, 0] == 2.0  # the mean of 1 and 3
    assert alignment_weights(layers, guided=True)[0, 0, 0] == 1.0  # of the first head
    assert alignment_weights(layers[:2])[0, 0, 0] == 2.0
    assert alignment_weights(layers[:1]).shape == (1, 3, 4)


@pytest.mark.once("NumPy alone")
def test_coverage_by_hand():
    weights = np.array([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1]])
    assert coverage(weights) == pytest.approx(np.log(0.2) + np.log(0.1))  # 1.7 counts as 1
    assert coverage(np.eye(3)) == 0.0
    assert coverage(weights[:, :0]) == 0.0
    assert coverage(np.zeros((2, 1))) == pytest.approx(np.log(LEAST))
