"""DeBERTa beside what tests/hub/families/test_deberta_map.py compares with `transformers`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.data.masking import Masking
from keras_transformer.models import DeBERTa, DeBERTaConfig

CONFIG = DeBERTaConfig(
    23, d_model=8, d_ff=12, num_layers=2, num_heads=2, dropout=0.0, num_buckets=4, max_distance=5
)
IDS = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0]], "int32")


def outputs(model, ids=IDS):
    return ops.convert_to_numpy(model({"token_ids": ids}))


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(DeBERTa(CONFIG))


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "deberta.keras")
    again = keras.saving.load_model(tmp_path / "deberta.keras")
    assert again.config == CONFIG
    np.testing.assert_allclose(outputs(again), outputs(model), atol=1e-6)


@pytest.mark.parametrize("convolution", [0, 3])
def test_padding_changes_nothing(convolution, randomize):
    model = randomize(DeBERTa(dataclasses.replace(CONFIG, convolution=convolution)))
    longer = np.pad(IDS, ((0, 0), (0, 3)))
    is_token = IDS != 0
    np.testing.assert_allclose(
        outputs(model, longer)[:, :6][is_token], outputs(model)[is_token], atol=1e-5
    )


def test_the_order_of_tokens_counts(model):
    swapped = IDS.copy()
    swapped[0, [2, 3]] = IDS[0, [3, 2]]
    assert np.abs(outputs(model, swapped)[0, 5] - outputs(model)[0, 5]).max() > 1e-3


CHANGES = {
    "num_heads": 4, "activation": "relu", "epsilon": 0.5, "pad_id": 9, "num_buckets": 2,
    "max_distance": 4, "convolution": 3,
}  # fmt: skip


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize("name", CHANGES)
def test_each_field_counts(name, model, randomize):
    other = randomize(DeBERTa(dataclasses.replace(CONFIG, **{name: CHANGES[name]})))
    shapes = [[tuple(w.shape) for w in each.weights] for each in (model, other)]
    assert shapes[0] != shapes[1] or np.abs(outputs(model) - outputs(other)).max() > 1e-3


@pytest.mark.once("made of parts that are tested under each backend")
def test_masked_lm_trains(rng):
    keras.utils.set_random_seed(0)
    model = DeBERTa(CONFIG)
    ids = np.tile(np.arange(4, 12, dtype="int32"), (64, 1))
    masked, labels = Masking(23, mask_id=3)(ids, rng)
    model.compile(adam(2e-2), LabelSmoothedCrossentropy(0.0), metrics=[Perplexity()])
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    losses = model.fit({"token_ids": masked}, labels, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    for weight in model.trainable_weights:
        assert np.abs(before[weight.path] - ops.convert_to_numpy(weight)).max() > 0, weight.path


@pytest.mark.once("made of parts that are tested under each backend")
def test_low_precision(model, randomize):
    rough = randomize(DeBERTa(CONFIG, dtype="mixed_bfloat16"))({"token_ids": IDS})
    rough = ops.convert_to_numpy(ops.cast(rough, "float32"))
    np.testing.assert_allclose(rough, outputs(model), atol=0.3)


def test_other_heads(model):
    config = model.config
    classifier = model.with_head("sequence_classification", labels=("a", "b", "c"))
    assert outputs(classifier).shape == (2, 3)
    np.testing.assert_array_equal(
        outputs(model.with_head("hidden")), outputs(classifier.with_head("hidden"))
    )
    assert DeBERTaConfig.from_dict(config.to_dict()) == config


CASES = {
    "vocab_size": 0, "d_model": 0, "epsilon": 0, "num_buckets": 3, "max_distance": 3, "window": 2,
    "convolution": 2,
    "head": "lm", "pooler": "mish",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got "):
        dataclasses.replace(CONFIG, **{name: CASES[name]})
