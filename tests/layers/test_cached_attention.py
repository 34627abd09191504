"""Attention with a cache equals one pass without."""

import numpy as np
from keras import ops

from keras_transformer.layers import MultiHeadAttention

BATCH, KEYS, WIDTH, HEADS = 2, 4, 6, 2

numpy = ops.convert_to_numpy


def test_one_cached_step_at_a_time_equals_one_pass(rng, randomize):
    x = rng.standard_normal((BATCH, KEYS, WIDTH)).astype("float32")
    layer = MultiHeadAttention(HEADS)
    layer.build(x.shape)
    randomize(layer)
    causal = np.tri(KEYS, dtype=bool)[None, None]
    whole, whole_cache = layer(x, attention_mask=causal)

    room = np.zeros((BATCH, HEADS, KEYS, WIDTH // HEADS), "float32")
    cache = {"key": ops.convert_to_tensor(room), "value": ops.convert_to_tensor(room.copy())}
    for i in range(KEYS):
        step, cache = layer(
            x[:, i : i + 1], attention_mask=causal[:, :, i : i + 1], cache=cache, index=i
        )
        np.testing.assert_allclose(numpy(step)[:, 0], numpy(whole)[:, i], atol=1e-5)
    for name in ("key", "value"):
        np.testing.assert_allclose(numpy(cache[name]), numpy(whole_cache[name]), atol=1e-5)


def test_beams_share_one_copy_of_the_memory(rng, randomize):
    beams = 3
    memory = rng.standard_normal((BATCH, KEYS, 10)).astype("float32")  # of another width
    query = rng.standard_normal((BATCH * beams, 1, WIDTH)).astype("float32")
    mask = np.arange(KEYS)[None, None, None] < np.array([2, 5])[:, None, None, None]
    layer = MultiHeadAttention(HEADS, cross_attention=True)
    layer.build(query.shape, memory.shape)
    randomize(layer)
    _, cache = layer(query[::beams], memory=memory, attention_mask=mask)
    together, same_cache = layer(query, cache=cache, attention_mask=mask)
    assert tuple(same_cache["key"].shape) == (BATCH, HEADS, KEYS, WIDTH // HEADS)
    apart, _ = layer(
        query,
        memory=np.repeat(memory, beams, axis=0),
        attention_mask=np.repeat(mask, beams, axis=0),
    )
    np.testing.assert_allclose(numpy(together), numpy(apart), atol=1e-5)
