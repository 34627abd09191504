"""The order of columns by key/value head, and weights of format 1, which have another order."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import adam
from keras_transformer.layers import MultiHeadAttention
from keras_transformer.layers.head_groups import (
    FORMAT,
    FusedDense,
    fuse,
    fused_layers,
    reordered_moments,
    unfuse,
)
from keras_transformer.models import LLaMA, LLaMAConfig, enable_lora

OLD = np.arange(16.0)[None]  # 4 query heads, 2 key heads, 2 value heads, each 2 wide
NEW = np.array([[0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15.0]])
HEADS = (4, 2, 2)


def fused(**options):
    layer = FusedDense(HEADS, 2, **options)
    layer.build((None, 3))
    return layer


def test_the_order_by_hand():
    parts = np.split(OLD, [8, 12], axis=1)
    np.testing.assert_array_equal(fuse(parts, 2), NEW)
    for one, other in zip(unfuse(NEW, HEADS), parts, strict=True):
        np.testing.assert_array_equal(one, other)
    key, value = np.arange(6.0), np.arange(6.0, 12)
    np.testing.assert_array_equal(fuse([key, value], 3), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11])


def test_stores_say_their_format():
    layer, store = fused(), {}
    layer.kernel.assign(np.repeat(NEW, 3, axis=0))
    layer.bias.assign(NEW[0])
    layer.save_own_variables(store)
    assert int(store.pop("format")) == FORMAT
    saved = {name: ops.convert_to_numpy(x) for name, x in store.items()}
    for values in (saved | {"format": FORMAT}, {"0": np.repeat(OLD, 3, axis=0), "1": OLD[0]}):
        other = fused()
        other.load_own_variables(values)
        assert other.loaded_format == values.get("format", 1)
        np.testing.assert_array_equal(ops.convert_to_numpy(other.kernel), saved["0"])
        np.testing.assert_array_equal(ops.convert_to_numpy(other.bias), NEW[0])
    with pytest.raises(ValueError, match="format of .* must be at most 2, got 3: a newer version"):
        fused().load_own_variables(saved | {"format": np.int32(3)})


def test_quantized_weights_of_format_1():
    new, old = fused(use_bias=False), fused(use_bias=False)
    new.kernel.assign(np.repeat(NEW, 3, axis=0) + 1)
    old.kernel.assign(np.repeat(OLD, 3, axis=0) + 1)
    store = {}
    for layer in (new, old):
        layer.quantize("int8")
    old.save_own_variables(store)
    del store["format"]
    loaded = fused(use_bias=False)
    loaded.quantize("int8")
    loaded.load_own_variables({name: ops.convert_to_numpy(x) for name, x in store.items()})
    for one, other in zip(loaded.weights, new.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_config():
    layer = FusedDense.from_config(fused(name="x", use_bias=False).get_config())
    assert (layer.heads, layer.head_dim, layer.units, layer.use_bias) == (HEADS, 2, 16, False)


def test_moments_of_format_1():
    """Each moment is reordered as its weight, those of LoRA's first matrix are not."""
    sizes = dict(d_model=4, d_ff=8, num_layers=1, num_heads=4, num_kv_heads=2, head_dim=2)
    model = LLaMA(LLaMAConfig(16, **sizes))
    optimizer = adam(0.1)
    enable_lora(model, 2)
    optimizer.build(model.trainable_variables)
    values = {
        str(i): np.arange(np.prod(x.shape, dtype=int), dtype="float32").reshape(x.shape)
        for i, x in enumerate(optimizer.variables)
    }
    found = reordered_moments(values, optimizer, model)
    (layer,) = fused_layers(model)
    changed = 0
    for name, variable in enumerate(optimizer.variables):
        expected = values[str(name)]
        if "query_key_value_lora_kernel_b" in variable.name:
            changed, expected = changed + 1, layer.reordered(expected)
            assert not np.array_equal(expected, values[str(name)])
        np.testing.assert_array_equal(found[str(name)], expected)
    assert changed == 2


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
