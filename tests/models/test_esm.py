"""ESM-2 beside what tests/hub/families/test_esm_map.py compares with `transformers`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.data.masking import Masking
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.models.esm import MaskDropout

CONFIG = ESMConfig(d_model=8, d_ff=12, num_layers=2, num_heads=2)
IDS = np.array([[0, 5, 32, 6, 7, 2], [0, 9, 4, 2, 1, 1]], "int32")


def outputs(model, ids=IDS):
    return ops.convert_to_numpy(model({"token_ids": ids}))


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(ESM(CONFIG))


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "esm.keras")
    again = keras.saving.load_model(tmp_path / "esm.keras")
    assert again.config == CONFIG
    np.testing.assert_allclose(outputs(again), outputs(model), atol=1e-6)


def test_mask_dropout(rng):
    layer = MaskDropout(mask_id=32, pad_id=1)
    x = rng.standard_normal((2, 6, 4)).astype("float32")
    found = ops.convert_to_numpy(layer(x, IDS))
    np.testing.assert_array_equal(found[0, 2], 0)
    np.testing.assert_allclose(found[0, 3], x[0, 3] * 0.88 / (1 - 1 / 6), rtol=1e-6)
    np.testing.assert_allclose(found[1], x[1] * 0.88, rtol=1e-6)
    whole = np.full((1, 6), 32, "int32"), np.full((1, 6), 1, "int32")  # no row is no number
    assert all(np.isfinite(ops.convert_to_numpy(layer(x[:1], ids))).all() for ids in whole)
    assert MaskDropout.from_config(layer.get_config()).options == layer.options


@pytest.mark.once("made of parts that are tested under each backend")
def test_padding_changes_nothing(model):
    longer = np.pad(IDS, ((0, 0), (0, 3)), constant_values=1)
    is_token = IDS != 1
    np.testing.assert_allclose(
        outputs(model, longer)[:, :6][is_token], outputs(model)[is_token], atol=1e-5
    )
    np.testing.assert_allclose(outputs(model, IDS[1:, :4])[0], outputs(model)[1, :4], atol=1e-5)


CHANGES = {
    "num_heads": 4, "theta": 2.0, "token_dropout": False, "mask_id": 5, "pad_id": 9,
    "epsilon": 0.5, "activation": "relu",
}  # fmt: skip


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize("name", CHANGES)
def test_each_field_counts(name, model, randomize):
    other = randomize(ESM(dataclasses.replace(CONFIG, **{name: CHANGES[name]})))
    assert np.abs(outputs(model) - outputs(other)).max() > 1e-3


def test_dropout():
    model = ESM(dataclasses.replace(CONFIG, dropout=0.5))
    one, other = (ops.convert_to_numpy(model({"token_ids": IDS}, training=True)) for _ in range(2))
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.once("made of parts that are tested under each backend")
def test_masked_lm_trains(rng):
    keras.utils.set_random_seed(0)
    model = ESM(CONFIG)
    ids = np.tile(np.arange(4, 12, dtype="int32"), (64, 1))
    masking = Masking(33, mask_id=32, pad_id=1, special_ids=(0, 2, 3))
    masked, labels = masking(ids, rng)
    model.compile(
        adam(2e-2), LabelSmoothedCrossentropy(0.0, pad_id=1), metrics=[Perplexity(pad_id=1)]
    )
    losses = model.fit({"token_ids": masked}, labels, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


CASES = {
    "vocab_size": 0, "d_model": 0, "num_layers": 1.5, "dropout": 1.0, "epsilon": 0, "theta": 0,
    "pad_id": 33, "mask_id": 33, "head": "lm", "labels": (1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got "):
        dataclasses.replace(CONFIG, **{name: CASES[name]})


def test_config():
    assert ESMConfig.from_dict(CONFIG.to_dict()) == CONFIG
    with pytest.raises(
        ValueError, match="d_model / num_heads must be even for rotary positions, got 3"
    ):
        dataclasses.replace(CONFIG, d_model=6)
