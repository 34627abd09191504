"""Our own model laid out as others do: the same function of the same ids."""

import numpy as np
from keras import ops

from keras_transformer.hub.standard import standard_form
from keras_transformer.models import Transformer
from keras_transformer.weights import assign_weights, weights_of

INPUTS = {
    "source_ids": np.array([[4, 5, 6, 3], [7, 3, 0, 0]], "int32"),
    "target_ids": np.array([[2, 9, 10], [2, 12, 4]], "int32"),
}


def test_same_logits(tiny_transformer):
    for changes in ({}, dict(norm_first=True), dict(tie_output=False, share_embeddings=False)):
        model = tiny_transformer(**changes)
        config, weights = standard_form(model.config, weights_of(model))
        assert config.positions == "sinusoidal_halves" and config.output_bias
        other = Transformer(config)
        assign_weights(weights, other)
        before, after = (ops.convert_to_numpy(x(INPUTS)) for x in (model, other))
        np.testing.assert_allclose(after, before, atol=1e-3)  # but for the norms' epsilon


def test_other_positions_stay(tiny_transformer):
    model = tiny_transformer(positions="learned")
    weights = weights_of(model)
    config, same = standard_form(model.config, weights)
    assert config == model.config and same.keys() == weights.keys()
