"""Gemma's config: each field counts, and bad values are named."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.models import Gemma, GemmaConfig
from keras_transformer.models.continuation import new_caches

V = 17
SIZES = dict(
    d_model=8, d_ff=12, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=4, max_length=24,
    window=3, window_layers=(0, 2),
)  # fmt: skip
INPUTS = {"token_ids": np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")}


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize(
    "options,change",
    [
        ({}, dict(num_kv_heads=4)),
        ({}, dict(head_dim=6)),
        ({}, dict(theta=10.0)),
        ({}, dict(scaling=dict(rope_type="linear", factor=4.0))),
        ({}, dict(local_theta=10.0)),
        (dict(local_theta=10.0), dict(local_theta=20.0)),
        ({}, dict(window=2)),
        ({}, dict(window_layers=None)),
        ({}, dict(query_scale=1.0)),
        ({}, dict(attention_cap=0.5)),
        ({}, dict(logit_cap=0.5)),
        ({}, dict(qk_norm=True)),
        ({}, dict(norm_output=False)),
        ({}, dict(bidirectional=True)),
        ({}, dict(epsilon=0.1)),
    ],
    ids=lambda fields: next(iter(fields), "plain"),
)
def test_each_field_counts(options, change, assert_counts):
    assert_counts(Gemma, GemmaConfig(V, **SIZES | options), INPUTS, **change)


def test_a_bidirectional_model_does_not_generate():
    model = Gemma(GemmaConfig(V, **SIZES, bidirectional=True))
    message = "bidirectional must be False, to generate text: this model gives vectors, got True"
    with pytest.raises(ValueError, match=message):
        model.prefill(INPUTS["token_ids"], 12)
    with pytest.raises(ValueError, match=message):
        new_caches(model, 2, 12)


def test_dropout_is_in_training_only(randomize):
    model = randomize(Gemma(GemmaConfig(V, **SIZES, dropout=0.5)))
    same, trained = model(INPUTS), model(INPUTS, training=True)
    np.testing.assert_array_equal(ops.convert_to_numpy(same), ops.convert_to_numpy(model(INPUTS)))
    assert np.abs(ops.convert_to_numpy(same) - ops.convert_to_numpy(trained)).max() > 1e-3


@pytest.mark.once("made of parts that are tested under each backend")
def test_scaled_embeddings_and_capped_logits(randomize):
    """Embeddings times sqrt(D) in the compute dtype; logits within the cap."""
    model = randomize(Gemma(GemmaConfig(V, **SIZES, logit_cap=0.3), dtype="mixed_bfloat16"))
    ids = ops.convert_to_tensor(INPUTS["token_ids"])
    table = ops.cast(model.embedding.tokens.embeddings, "bfloat16")
    factor = ops.cast(ops.convert_to_tensor(8**0.5), "bfloat16")
    expected = ops.cast(ops.take(table, ids, axis=0) * factor, "float32")
    found = ops.cast(model.embedding(ids), "float32")
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (found, expected)))
    logits = ops.convert_to_numpy(ops.cast(model(INPUTS), "float32"))
    assert 0.1 < np.abs(logits).max() <= 0.3


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(num_kv_heads=3), "num_heads must be divisible by num_kv_heads"),
        (dict(head_dim=3), "head_dim must be even for rotary positions, got 3"),
        (dict(window=0), "window must be a whole number of at least 1, got 0"),
        (dict(theta=0.0), "theta must be above 0, got 0.0"),
        (dict(local_theta=0.0), "local_theta must be above 0 or None, got 0.0"),
        (dict(query_scale=-1.0), "query_scale must be above 0 or None, got -1.0"),
        (dict(attention_cap=0), "attention_cap must be above 0 or None, got 0"),
        (dict(logit_cap=0), "logit_cap must be above 0 or None, got 0"),
        (dict(window=None), "window must be given with window_layers, got None"),
        (dict(window_layers=(3,)), r"indices of blocks below num_layers=3, got \(3,\)"),
    ],
)
def test_bad_configs(change, message):
    with pytest.raises(ValueError, match=message):
        GemmaConfig(**dict(vocab_size=V, **SIZES) | change)
