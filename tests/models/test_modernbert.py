"""ModernBERT beside what tests/hub/families compare with `transformers`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.models import ModernBERT, ModernBERTConfig

CONFIG = ModernBERTConfig(
    23, d_model=8, d_ff=12, num_layers=2, num_heads=2, window=2, window_layers=(1,), theta=50.0,
    local_theta=7.0, pad_id=0, num_kv_heads=1, labels=("x", "y", "z"),
)  # fmt: skip
EURO = dataclasses.replace(
    CONFIG, norm="rms", embedding_norm=False, transform=False, tie_output=False, window=None,
    window_layers=None,
)  # fmt: skip
IDS = np.array([[5, 6, 7, 8, 9, 2], [5, 9, 4, 2, 0, 0]], "int32")


def outputs(model, ids=IDS):
    return ops.convert_to_numpy(model({"token_ids": ids}))


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize(
    "change",
    [
        dict(num_kv_heads=2),
        dict(theta=5.0),
        dict(local_theta=None),
        dict(window=3),
        dict(window_layers=None),
        dict(norm="rms"),
        dict(embedding_norm=False),
        dict(transform=False),
        dict(tie_output=False),
        dict(activation="silu"),
        dict(epsilon=0.5),
        dict(head="sequence_classification"),
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_each_field_counts(change, assert_counts):
    assert_counts(ModernBERT, CONFIG, {"token_ids": IDS}, **change)


@pytest.mark.once("fields of a config reach the layers alike")
def test_the_pooling_counts(assert_counts):
    config = dataclasses.replace(CONFIG, head="sequence_classification")
    for pooling in ("mean", "late"):
        assert_counts(ModernBERT, config, {"token_ids": IDS}, pooling=pooling)


@pytest.mark.once("test_bert.py and test_decoder_only.py train by both ways under each")
@pytest.mark.parametrize("config", [CONFIG, EURO], ids=["modern", "euro"])
def test_it_learns_and_the_two_ways_to_the_loss_agree(config, randomize):
    """With a bias in the table of the fused loss, and without."""
    model, loss = randomize(ModernBERT(config)), LabelSmoothedCrossentropy(0.1, pad_id=0)
    model.compile(adam(1e-2), loss, metrics=[Perplexity(pad_id=0)])
    fused, _ = model.loss_and_likelihood({"token_ids": IDS}, IDS)
    plain = loss(IDS, model({"token_ids": IDS}))
    np.testing.assert_allclose(*(ops.convert_to_numpy(x) for x in (fused, plain)), rtol=1e-5)
    losses = model.fit({"token_ids": IDS}, IDS, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded_with_another_head(randomize, tmp_path):
    model = randomize(ModernBERT(CONFIG))
    model.with_head("token_classification").save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert outputs(again).shape == (2, 6, 3)
    np.testing.assert_array_equal(*(outputs(x.with_head("hidden")) for x in (model, again)))


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(norm="layer"), r"norm must be one of \('layer_no_bias', 'rms'\), got 'layer'"),
        (dict(pooling="max"), r"pooling must be one of \('cls', 'mean', 'late'\), got 'max'"),
        (dict(theta=0), "theta must be above 0, got 0"),
        (dict(local_theta=0), "local_theta must be above 0, got 0"),
        (dict(d_model=6), "d_model / num_heads must be even for rotary positions, got 3"),
        (dict(num_kv_heads=3), "num_heads must be divisible by num_kv_heads"),
        (dict(window=None), "window must be given with window_layers, got None"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)


def test_config():
    assert ModernBERTConfig.from_dict(CONFIG.to_dict()) == CONFIG
    assert CONFIG.takes_pairs
