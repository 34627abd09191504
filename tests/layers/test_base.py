"""Calls of layers inside one another, direct or through Keras, give the same."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Encoder, PositionalEmbedding, base


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_direct_calls_change_nothing(rng, monkeypatch, dtype, training):
    encoder = Encoder(2, num_heads=2, d_ff=8, dropout=0.0, norm_first=True, dtype=dtype)
    x = ops.convert_to_tensor(rng.standard_normal((2, 5, 4)).astype("float32"))
    encoder.build(x.shape)
    results = []
    for direct in (True, False):
        monkeypatch.setattr(base, "IS_EAGER", direct)
        results.append(ops.convert_to_numpy(ops.cast(encoder(x, training=training), "float32")))
    np.testing.assert_allclose(*results, atol=1e-6)


def test_training_reaches_the_inner_layers(rng):
    encoder = Encoder(1, num_heads=2, d_ff=8, dropout=0.5)
    x = ops.convert_to_tensor(rng.standard_normal((2, 5, 4)).astype("float32"))
    plain, again, dropped = (
        ops.convert_to_numpy(encoder(x, training=training)) for training in (False, False, True)
    )
    np.testing.assert_array_equal(plain, again)
    assert np.abs(plain - dropped).max() > 1e-3


def test_a_quantized_inner_layer_is_called_as_such(rng):
    encoder = Encoder(1, num_heads=2, d_ff=8, dropout=0.0)
    x = ops.convert_to_tensor(rng.standard_normal((2, 5, 4)).astype("float32"))
    before = ops.convert_to_numpy(encoder(x))
    encoder.blocks[0].feed_forward.hidden.quantize("int8")
    after = ops.convert_to_numpy(encoder(x))
    assert 0 < np.abs(after - before).max() < 0.5


def test_the_outer_type_is_forgotten_after_an_error():
    class Broken(base.Layer):
        def call(self, x):
            raise RuntimeError("no")

    layer = Broken()
    layer.built = True
    with pytest.raises(RuntimeError):
        layer(keras.ops.ones((1, 2)))
    assert base._outer.dtype is None


def test_unfilled_weights_are_zeros_and_others_as_ever():
    def zeros():
        encoder = Encoder(1, num_heads=2, d_ff=8, name="encoder")
        encoder.build((None, None, 4))
        embedding = PositionalEmbedding(7, 4, positions="learned", max_length=5)
        embedding.build((None, None))
        weights = [w for w in encoder.weights + embedding.weights if "seed" not in w.path]
        return [not np.any(ops.convert_to_numpy(w)) for w in weights if w.name != "beta"]

    before = zeros()
    with base.unfilled():
        with base.unfilled():
            pass
        inside = zeros()
    assert sum(inside) >= len(inside) - 1  # but the few of learned positions
    assert zeros() == before and sum(before) < len(before) / 2
