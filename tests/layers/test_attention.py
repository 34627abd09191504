"""Attention against the equation and PyTorch."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    MultiHeadAttention,
    Rotary,
    dot_product_attention,
    record_attention,
    rotate,
)
from keras_transformer.layers.head_groups import unfuse

BATCH, QUERIES, KEYS, WIDTH, HEADS = 2, 5, 4, 6, 2

numpy = ops.convert_to_numpy


def softmax(x):
    exponent = np.exp(x - x.max(-1, keepdims=True))
    return exponent / exponent.sum(-1, keepdims=True)


@pytest.fixture
def heads(rng):
    """Query, key, value (B, N, T or S, H) and a mask in which each query sees something."""
    shape = (BATCH, HEADS, QUERIES, 3), (BATCH, HEADS, KEYS, 3), (BATCH, HEADS, KEYS, 3)
    mask = rng.random((BATCH, 1, QUERIES, KEYS)) < 0.5
    mask[..., 1] = True
    return *(rng.standard_normal(s).astype("float32") for s in shape), mask


def test_equation_1_by_hand():
    # Products 2 log 3 and 0, over sqrt(4): the weights are 3 to 1.
    query = np.array([[[[2 * np.log(3.0), 0, 0, 0]]]], "float32")
    key = np.eye(4, dtype="float32")[None, None, :2]
    value = np.array([[[[4.0, 0.0], [0.0, 8.0]]]], "float32")
    attended, weights = dot_product_attention(query, key, value)
    np.testing.assert_allclose(numpy(weights), [[[[0.75, 0.25]]]], rtol=1e-6)
    np.testing.assert_allclose(numpy(attended), [[[[3.0, 2.0]]]], rtol=1e-6)


@pytest.mark.parametrize("with_bias", [False, True])
def test_equation_1_with_mask_and_bias(heads, rng, with_bias):
    query, key, value, mask = heads
    bias = rng.standard_normal((1, HEADS, QUERIES, KEYS)).astype("float32") if with_bias else None
    attended, weights = dot_product_attention(query, key, value, mask, bias)
    products = np.einsum("bnth,bnsh->bnts", query, key) / np.sqrt(3) + (bias if with_bias else 0)
    expected = softmax(np.where(mask, products, -np.inf))
    np.testing.assert_allclose(numpy(weights), expected, atol=1e-6)
    assert (numpy(weights)[~np.broadcast_to(mask, expected.shape)] == 0).all()
    np.testing.assert_allclose(
        numpy(attended), np.einsum("bnts,bnsh->bnth", expected, value), atol=1e-5
    )


def test_equals_pytorchs_kernel(heads):
    torch = pytest.importorskip("torch")
    attended, _ = dot_product_attention(*heads)
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x) for x in heads[:3]), attn_mask=torch.from_numpy(heads[3])
    )
    np.testing.assert_allclose(numpy(attended), theirs.numpy(), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_query_that_may_see_nothing_gets_the_mean_of_the_values(heads, dtype):
    query, key, value, mask = heads
    mask[0, 0, 2] = False
    query, key, value = (ops.cast(x, dtype) for x in (query, key, value))
    attended, weights = dot_product_attention(query, key, value, mask)
    attended, weights, value = (numpy(ops.cast(x, "float32")) for x in (attended, weights, value))
    assert np.isfinite(attended).all()
    np.testing.assert_allclose(weights[0, :, 2], 1 / KEYS, rtol=1e-2)
    np.testing.assert_allclose(attended[0, :, 2], value[0].mean(1), atol=2e-2)


def test_one_key_takes_all_the_weight(heads):
    query, key, value, _ = heads
    attended, weights = dot_product_attention(query, key[:, :, :1], value[:, :, :1])
    assert (numpy(weights) == 1).all()
    np.testing.assert_allclose(
        numpy(attended), np.repeat(value[:, :, :1], QUERIES, axis=2), rtol=1e-6
    )


@pytest.mark.parametrize("cross_attention", [False, True])
def test_equals_pytorchs_layer(rng, from_torch, shake, cross_attention):
    torch = pytest.importorskip("torch")
    query = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    memory = rng.standard_normal((BATCH, KEYS, WIDTH)).astype("float32")
    memory = memory if cross_attention else query
    real = np.ones(memory.shape[:2], bool)
    real[0, 3:] = False
    theirs = shake(torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    layer = MultiHeadAttention(HEADS, cross_attention=cross_attention)
    layer.build(query.shape, memory.shape)
    from_torch(layer, theirs)

    with record_attention() as recorded:
        ours, _ = layer(
            query,
            memory=memory if cross_attention else None,
            attention_mask=real[:, None, None],
        )
    with torch.no_grad():
        expected, weights = theirs(
            torch.from_numpy(query),
            torch.from_numpy(memory),
            torch.from_numpy(memory),
            key_padding_mask=torch.from_numpy(~real),
            average_attn_weights=False,
        )
    np.testing.assert_allclose(numpy(ours), expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(numpy(recorded[layer.path]), weights.numpy(), atol=1e-6)


def rms_norm(x, scale, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale


@pytest.mark.parametrize(
    "options",
    [
        dict(scaled=False),  # in older files
        dict(query_scale=1.0),
        dict(query_scale=0.3, soft_cap=0.7),
        dict(soft_cap=0.5),
        dict(qk_norm=True, epsilon=0.1),
        dict(qk_norm=True, soft_cap=0.5, query_scale=2.0),
        dict(qk_norm="whole"),
    ],
    ids=str,
)
@pytest.mark.parametrize("cross", [False, True])
def test_scales_caps_and_norms_of_products_by_hand(rng, randomize, cross, options):
    x, memory = (rng.standard_normal((BATCH, n, WIDTH)).astype("float32") for n in (QUERIES, KEYS))
    mask = rng.random((BATCH, 1, QUERIES, KEYS if cross else QUERIES)) < 0.6
    mask[..., 1] = True
    layer = MultiHeadAttention(HEADS, cross, use_bias=False, head_dim=5, **options)
    layer.build(x.shape)
    randomize(layer)
    attended, cache = layer(x, memory=memory if cross else None, attention_mask=mask)

    def heads(x):
        return x.reshape(BATCH, -1, HEADS, 5).transpose(0, 2, 1, 3)

    def joined(x_BNTH):
        return x_BNTH.transpose(0, 2, 1, 3).reshape(BATCH, -1, HEADS * 5)

    if cross:
        query = x @ numpy(layer.query.kernel)
        key, value = unfuse(memory @ numpy(layer.key_value.kernel), (HEADS,) * 2)
    else:
        query, key, value = unfuse(x @ numpy(layer.query_key_value.kernel), (HEADS,) * 3)
    query, key, value = map(heads, (query, key, value))
    if "qk_norm" in options:
        epsilon = options.get("epsilon", 1e-6)
        query, key = (
            heads(rms_norm(joined(x), numpy(norm.scale), epsilon))
            if options["qk_norm"] == "whole"
            else rms_norm(x, numpy(norm.scale), epsilon)
            for x, norm in ((query, layer.query_norm), (key, layer.key_norm))
        )
    np.testing.assert_allclose(numpy(cache["key"]), key, atol=1e-5)
    products = np.einsum("bnth,bnsh->bnts", query, key)
    products *= 1.0 if "scaled" in options else options.get("query_scale", 5**-0.5)
    if cap := options.get("soft_cap"):
        products = cap * np.tanh(products / cap)
    weights = softmax(np.where(mask, products, -1e9))
    attended_BNTH = np.einsum("bnts,bnsh->bnth", weights, value)
    expected = joined(attended_BNTH) @ numpy(layer.output_projection.kernel)
    np.testing.assert_allclose(numpy(attended), expected, atol=1e-5)


@pytest.mark.parametrize("qk_norm", [True, "rotated"])
def test_keys_are_normalized_before_or_after_the_rotation(rng, randomize, qk_norm):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    layer = MultiHeadAttention(HEADS, use_bias=False, head_dim=6, qk_norm=qk_norm)
    layer.build(x.shape)
    randomize(layer)
    rotation = Rotary(6)(ops.arange(QUERIES, dtype="int32"))
    _, cache = layer(x, rotation=rotation)
    _, key, _ = unfuse(x @ numpy(layer.query_key_value.kernel), (HEADS,) * 3)
    key = key.reshape(BATCH, -1, HEADS, 6).transpose(0, 2, 1, 3)

    def turned(x):
        return numpy(rotate(ops.convert_to_tensor(x), rotation))

    def normalized(x):
        return rms_norm(x, numpy(layer.key_norm.scale), 1e-6).astype("float32")

    expected = turned(normalized(key)) if qk_norm is True else normalized(turned(key))
    np.testing.assert_allclose(numpy(cache["key"]), expected, atol=1e-5)


@pytest.mark.parametrize("scale", [None, 1.0, 0.05])
def test_products_begin_at_unit_scale(rng, scale):
    layer = MultiHeadAttention(4, use_bias=False, head_dim=64, query_scale=scale)
    x = rng.standard_normal((2, 50, 256)).astype("float32")
    layer.build(x.shape)
    query, key, _ = unfuse(x @ numpy(layer.query_key_value.kernel), (4,) * 3)
    query, key = (y.reshape(2, 50, 4, 64) for y in (query, key))
    products = np.einsum("btnh,bsnh->bnts", query, key) * (scale or 64**-0.5)
    assert 0.2 < products.std() < 2


def test_use_bias():
    def names(**options):
        layer = MultiHeadAttention(HEADS, **options)
        layer.build((None, None, WIDTH))
        return {weight.name for weight in layer.weights}

    assert names() == {"kernel", "bias"}
    assert names(use_bias=False) == {"kernel"}


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("use_bias,qkv_bias", [(True, False), (False, True)])
def test_bias_of_queries_keys_and_values_alone(cross, use_bias, qkv_bias):
    layer = MultiHeadAttention(HEADS, cross, use_bias=use_bias, qkv_bias=qkv_bias)
    layer = MultiHeadAttention.from_config(layer.get_config())
    layer.build((None, None, WIDTH))
    inputs = [layer.query, layer.key_value] if cross else [layer.query_key_value]
    assert [x.use_bias for x in inputs] == [qkv_bias] * len(inputs)
    assert layer.output_projection.use_bias == use_bias


@pytest.mark.parametrize("output_bias", [True, False])
def test_bias_of_the_output_alone(output_bias):
    layer = MultiHeadAttention(HEADS, use_bias=not output_bias, output_bias=output_bias)
    layer.build((None, None, WIDTH))
    assert layer.output_projection.use_bias == output_bias
    assert layer.query_key_value.use_bias != output_bias


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize(
    "options",
    [{}, {"use_bias": False}, {"dtype": "mixed_bfloat16"}, {"qk_norm": True, "soft_cap": 2.0}],
)
def test_self_attention_round_trips(rng, round_trips, options):
    layer = MultiHeadAttention(HEADS, name="attention", **options)
    round_trips(layer, query=rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32"))


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
def test_cross_attention_round_trips(rng, round_trips):
    layer = MultiHeadAttention(HEADS, cross_attention=True, name="attention")
    round_trips(
        layer,
        query=rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32"),
        memory=rng.standard_normal((BATCH, KEYS, 10)).astype("float32"),
    )


def test_attention_works_on_symbolic_lengths():
    output, cache = MultiHeadAttention(HEADS)(keras.Input((None, WIDTH)))
    assert output.shape == (None, None, WIDTH)
    assert cache["key"].shape == (None, HEADS, None, WIDTH // HEADS)


def test_errors_name_the_argument():
    x = np.zeros((BATCH, QUERIES, WIDTH), "float32")
    with pytest.raises(ValueError, match=r"num_heads must divide .* num_heads=4 and a width of 6"):
        MultiHeadAttention(4)(x)
    with pytest.raises(ValueError, match="memory must be None in self-attention"):
        MultiHeadAttention(HEADS)(x, memory=x)
    with pytest.raises(ValueError, match="memory or cache must be given in cross-attention"):
        MultiHeadAttention(HEADS, cross_attention=True)(x)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(window=0), "window must be at least 1 or None, got 0"),
        (dict(window=2, global_tokens=-1), "global_tokens must be at least 0, got -1"),
    ],
)
def test_patterns_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(2, **options)
