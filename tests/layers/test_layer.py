"""Calls of layers inside one another, direct or through Keras, give the same."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import layers
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.layers import layer as layer_module
from tests.backends import cases


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_direct_calls_change_nothing(rng, monkeypatch, dtype, training):
    encoder = Encoder(2, num_heads=2, d_ff=8, dropout=0.0, norm_first=True, dtype=dtype)
    x = ops.convert_to_tensor(rng.standard_normal((2, 5, 4)).astype("float32"))
    encoder.build(x.shape)
    results = []
    for direct in (True, False):
        monkeypatch.setattr(layer_module, "IS_EAGER", direct)
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


X = np.linspace(-1, 1, 2 * 5 * 4, dtype="float32").reshape(2, 5, 4)
WITH_DROPOUT = {  # a layer, and the arguments of a call
    "AddNorm": (lambda: layers.AddNorm(dropout=0.5), dict(x=X, sublayer_output=X)),
    "AudioEmbedding": (lambda: layers.AudioEmbedding(4, 10, dropout=0.5), dict(features=X)),
    "Decoder": (lambda: layers.Decoder(2, 2, 8, dropout=0.5), dict(x=X, memory=X)),
    "DecoderBlock": (lambda: layers.DecoderBlock(2, 8, dropout=0.5), dict(x=X, memory=X)),
    "DisentangledEncoder": (lambda: layers.DisentangledEncoder(2, 2, 8, dropout=0.5), dict(x=X)),
    "Encoder": (lambda: layers.Encoder(2, 2, 8, dropout=0.5), dict(x=X)),
    "EncoderBlock": (lambda: layers.EncoderBlock(2, 8, dropout=0.5), dict(x=X)),
    "FramePrenet": (lambda: layers.FramePrenet(4, 10), dict(frames=X)),
    "PatchEmbedding": (
        lambda: layers.PatchEmbedding(4, (4, 4), 2, dropout=0.5),
        dict(images=np.ones((2, 4, 4, 1), "float32")),
    ),
    "PositionalEmbedding": (
        lambda: layers.PositionalEmbedding(7, 4, dropout=0.5),
        dict(inputs=np.ones((2, 5), "int32")),
    ),
}


def test_all_layers_that_train_differently_are_below():
    names = {name for name in layers.__all__ if isinstance(getattr(layers, name), type)}
    trained = {
        x for x in names if "training" in inspect.signature(getattr(layers, x).call).parameters
    }
    # A mixture of experts only adds a loss; a feed-forward is called like it.
    assert trained == {*WITH_DROPOUT, "MixtureOfExperts", "FeedForward"}


@pytest.mark.parametrize("name", cases(WITH_DROPOUT, "Decoder", "FramePrenet"))
def test_training_reaches_every_dropout_by_direct_calls(name, monkeypatch):
    """Keras hands `training` on by itself; a direct call that forgets it would lose dropout."""
    monkeypatch.setattr(layer_module, "IS_EAGER", True)
    make, arguments = WITH_DROPOUT[name]
    layer, seen = make(), {}
    arguments = {name: ops.convert_to_tensor(x) for name, x in arguments.items()}
    layer(**arguments)

    def recorded(inner):
        call = inner.call

        def record(*given, **options):
            seen[inner.path] = seen[inner.path] or options.get("training", False)
            return call(*given, **options)

        return record

    for inner in layer._flatten_layers():
        if hasattr(inner, "seed_generator"):
            seen[inner.path] = False
            inner.call = recorded(inner)
    layer(**arguments, training=True)
    assert seen and all(seen.values()), seen


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_quantized_inner_layer_is_called_as_such(rng):
    encoder = Encoder(1, num_heads=2, d_ff=8, dropout=0.0)
    x = ops.convert_to_tensor(rng.standard_normal((2, 5, 4)).astype("float32"))
    before = ops.convert_to_numpy(encoder(x))
    encoder.blocks[0].feed_forward.hidden.quantize("int8")
    after = ops.convert_to_numpy(encoder(x))
    assert 0 < np.abs(after - before).max() < 0.5


def test_the_outer_type_is_forgotten_after_an_error():
    class Broken(layer_module.Layer):
        def call(self, x):
            raise RuntimeError("no")

    layer = Broken()
    layer.built = True
    with pytest.raises(RuntimeError):
        layer(keras.ops.ones((1, 2)))
    assert layer_module._outer.dtype is None


def test_unfilled_weights_are_zeros_and_others_as_ever():
    def zeros():
        encoder = Encoder(1, num_heads=2, d_ff=8, name="encoder")
        encoder.build((None, None, 4))
        embedding = PositionalEmbedding(7, 4, positions="learned", max_length=5)
        embedding.build((None, None))
        weights = [w for w in encoder.weights + embedding.weights if "seed" not in w.path]
        return [not np.any(ops.convert_to_numpy(w)) for w in weights if w.name != "beta"]

    before = zeros()
    with layer_module.skip_init():
        with layer_module.skip_init():
            pass
        inside = zeros()
    assert sum(inside) >= len(inside) - 1  # but the few of learned positions
    assert zeros() == before and sum(before) < len(before) / 2
