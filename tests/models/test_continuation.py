"""Sequences of different lengths in one cache: chunks and steps give the logits of a full pass."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.models import GPT, Gemma, GemmaConfig, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.models.continuation import extend, longest, new_caches
from tests.backends import cases

V = 17
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=24, dropout=0.0)
MODELS = {
    "gpt": (GPT, GPTConfig(V, **SIZES)),
    "llama": (LLaMA, LLaMAConfig(V, **SIZES, num_kv_heads=2)),
    "gemma": (
        Gemma,
        GemmaConfig(
            V,
            **SIZES,
            num_kv_heads=2,
            head_dim=4,
            window=3,
            window_layers=(0,),
            local_theta=50.0,
            attention_cap=2.0,
            logit_cap=5.0,
            qk_norm=True,
        ),
    ),
    "windowed": (LLaMA, LLaMAConfig(V, **SIZES, num_kv_heads=1, window=3)),
}
IDS = np.random.default_rng(0).integers(3, V, (3, 14)).astype("int32")


@pytest.mark.parametrize("kind", cases(MODELS, "llama"))
def test_chunks_and_steps_are_the_full_pass(kind, randomize):
    family, config = MODELS[kind]
    model = randomize(family(config), scale=2.0)
    full = ops.convert_to_numpy(model({"token_ids": IDS}))
    run = compiled(lambda ids, caches, index: extend(model, ids, caches, index), model)
    caches, lengths = new_caches(model, rows=3, places=16), np.array([0, 0, 0], "int32")
    # Rows go on from different lengths; at last, two are cut and go on again.
    for sizes, width in (([6, 2, 0], 6), ([1, 3, 5], 5), ([1, 1, 1], 1), ([0, 3, 2], 3)):
        ids = np.zeros((3, width), "int32")
        for row, size in enumerate(sizes):
            ids[row, :size] = IDS[row, lengths[row] : lengths[row] + size]
        tensors = map(ops.convert_to_tensor, (ids, lengths))
        logits, caches = run(next(tensors), caches, next(tensors))
        for row, size in enumerate(sizes):
            found = ops.convert_to_numpy(logits)[row, :size]
            expected = full[row, lengths[row] : lengths[row] + size]
            np.testing.assert_allclose(found, expected, atol=2e-5)
        lengths = lengths + np.array(sizes, "int32")
    lengths = np.array([4, 9, 3], "int32")
    ids = np.stack([IDS[row, place : place + 2] for row, place in enumerate(lengths)])
    logits, _ = run(ops.convert_to_tensor(ids), caches, ops.convert_to_tensor(lengths))
    expected = np.stack([full[row, place : place + 2] for row, place in enumerate(lengths)])
    np.testing.assert_allclose(ops.convert_to_numpy(logits), expected, atol=2e-5)


def test_the_longest_sequence():
    model = LLaMA(LLaMAConfig(V, **SIZES))
    assert longest(model) == 24
    scaling = dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=9)
    assert longest(LLaMA(LLaMAConfig(V, **SIZES, head_dim=4, scaling=scaling))) == 9


def test_relative_positions_are_refused():
    model = LLaMA(LLaMAConfig(V, **SIZES))
    model.decoder.relative_bias = object()
    with pytest.raises(NotImplementedError, match="must not have relative positions"):
        new_caches(model, 1, 4)
