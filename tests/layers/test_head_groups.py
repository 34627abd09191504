"""The order of columns by key/value head."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import MultiHeadAttention
from keras_transformer.layers.head_groups import FORMAT, FusedDense, fuse, unfuse

APART = np.arange(16.0)[None]  # 4 query heads, 2 key heads, 2 value heads, each 2 wide
FUSED = np.array([[0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15.0]])
HEADS = (4, 2, 2)


def fused(**options):
    layer = FusedDense(HEADS, 2, **options)
    layer.build((None, 3))
    return layer


def test_the_order_by_hand():
    parts = np.split(APART, [8, 12], axis=1)
    np.testing.assert_array_equal(fuse(parts, 2), FUSED)
    for one, other in zip(unfuse(FUSED, HEADS), parts, strict=True):
        np.testing.assert_array_equal(one, other)
    key, value = np.arange(6.0), np.arange(6.0, 12)
    np.testing.assert_array_equal(fuse([key, value], 3), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11])


def test_stores_say_their_format():
    layer, store = fused(), {}
    layer.save_own_variables(store)
    assert int(store["format"]) == FORMAT
    saved = {name: ops.convert_to_numpy(x) for name, x in store.items()}
    other = fused()
    other.load_own_variables(saved)
    for one, two in zip(layer.weights, other.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(two))
    del saved["format"]
    for values, found in ((saved, 1), (saved | {"format": np.int32(3)}, 3)):
        message = f"format of .* must be 2: another version .* wrote it, got {found}"
        with pytest.raises(ValueError, match=message):
            fused().load_own_variables(values)


def test_config():
    layer = FusedDense.from_config(fused(name="x", use_bias=False).get_config())
    assert (layer.heads, layer.head_dim, layer.units, layer.use_bias) == (HEADS, 2, 16, False)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(num_kv_heads=2), "num_kv_heads must be a multiple of 4, the devices .*, got 2"),
        (dict(num_kv_heads=2, cross_attention=True), "num_kv_heads must be a multiple of 4"),
        (dict(), "num_heads must be a multiple of 4, the devices along the model axis .*, got 6"),
    ],
)
def test_heads_that_the_model_axis_does_not_divide(monkeypatch, options, message):
    mesh = SimpleNamespace(axis_names=("data", "model"), shape=(2, 4))
    layout = SimpleNamespace(device_mesh=mesh)
    monkeypatch.setattr(keras.distribution, "distribution", lambda: layout)
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(6, **options).build((None, None, 12))
