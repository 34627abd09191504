"""BERT beside what tests/hub/families/test_bert_map.py compares with `transformers`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.data.masking import Masking
from keras_transformer.models import BERT, BERTConfig
from tests.backends import cases

CONFIG = BERTConfig(
    23, d_model=8, d_ff=12, num_layers=2, num_heads=2, dropout=0.0, max_length=9, num_types=2
)
IDS = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0]], "int32")
TYPES = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], "int32")
INPUTS = {"token_ids": IDS, "type_ids": TYPES}
VARIANTS = {
    "bert": {},
    "roberta": dict(position_offset=2, num_types=1, pad_id=1),
    "albert": dict(shared_blocks=True, d_embedding=5, activation="gelu_tanh"),
    "groups": dict(shared_blocks=2, num_layers=3),
    "distilbert": dict(num_types=0, head="sequence_classification", pooler="relu"),
    "electra": dict(d_embedding=5, head="replaced_tokens"),
}


def outputs(model, inputs=INPUTS):
    return ops.convert_to_numpy(model(inputs))


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(BERT(CONFIG))


@pytest.mark.once("test_transformer.py saves a model under each backend")
@pytest.mark.parametrize("name", cases(VARIANTS, "groups"))
def test_saved_and_loaded(name, randomize, tmp_path):
    config = dataclasses.replace(CONFIG, **VARIANTS[name])
    model = randomize(BERT(config))
    inputs = INPUTS if config.num_types > 1 else {"token_ids": IDS}
    model.save(tmp_path / "bert.keras")
    again = keras.saving.load_model(tmp_path / "bert.keras")
    assert again.config == config
    np.testing.assert_allclose(outputs(again, inputs), outputs(model, inputs), atol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_padding_changes_nothing(model):
    longer = {name: np.pad(value, ((0, 0), (0, 3))) for name, value in INPUTS.items()}
    found = outputs(model, longer)
    np.testing.assert_allclose(found[:, :6][IDS != 0], outputs(model)[IDS != 0], atol=1e-5)
    alone = {name: value[1:, :3] for name, value in INPUTS.items()}
    np.testing.assert_allclose(found[1:, :3], outputs(model, alone), atol=1e-5)


def test_types_are_optional_and_zero_by_themselves(model):
    zero = {"token_ids": IDS, "type_ids": np.zeros_like(IDS)}
    np.testing.assert_allclose(outputs(model, {"token_ids": IDS}), outputs(model, zero), atol=1e-6)
    assert np.abs(outputs(model) - outputs(model, zero)).max() > 1e-2
    with pytest.raises(ValueError, match="type_ids must not be given: all tokens of this model"):
        BERT(dataclasses.replace(CONFIG, num_types=1))(INPUTS)


def test_all_places_are_seen(model):
    """From each place to each other, either way: the encoder is no causal one."""
    changed = {**INPUTS, "token_ids": IDS.copy()}
    changed["token_ids"][0, 4] = 20
    assert (np.abs(outputs(model, changed) - outputs(model))[0].max(axis=-1) > 1e-4).all()


CHANGES = {
    "d_ff": 16, "num_layers": 3, "num_heads": 4, "activation": "relu", "epsilon": 0.5,
    "pad_id": 7, "shared_blocks": True, "head": "hidden", "vocab_size": 24, "d_model": 12,
    "d_embedding": 8, "num_types": 3, "position_offset": 1, "max_length": 10,
}  # fmt: skip


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize("name", CHANGES)
def test_each_field_counts(name, model, randomize):
    other = randomize(BERT(dataclasses.replace(CONFIG, **{name: CHANGES[name]})))
    shapes = [[(w.path, tuple(w.shape)) for w in each.weights] for each in (model, other)]
    if shapes[0] == shapes[1]:
        assert np.abs(outputs(model) - outputs(other)).max() > 1e-3


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize("name", ["d_ff", "num_layers", "vocab_size", "d_model", "shared_blocks",
                                  "d_embedding", "num_types", "max_length"])  # fmt: skip
def test_each_size_is_that_of_a_weight(name, model):
    other = BERT(dataclasses.replace(CONFIG, **{name: CHANGES[name]}))
    shapes = [{(w.path, tuple(w.shape)) for w in each.weights} for each in (model, other)]
    assert shapes[0] != shapes[1]


def test_dropout():
    model = BERT(dataclasses.replace(CONFIG, dropout=0.5))
    one, other = (ops.convert_to_numpy(model(INPUTS, training=True)) for _ in range(2))
    assert np.abs(one - other).max() > 1e-3
    np.testing.assert_array_equal(outputs(model), outputs(model))


METRICS = {"bert": "accuracy", "albert": Perplexity()}


@pytest.mark.parametrize("name", cases(METRICS, "albert"))
def test_masked_lm_trains(name, rng):
    """By hidden states or logits; labels are padding where no token was masked."""
    keras.utils.set_random_seed(0)
    model = BERT(dataclasses.replace(CONFIG, **VARIANTS[name]))
    ids = np.tile(np.arange(4, 12, dtype="int32"), (64, 1))  # a text that always goes on so
    masked, labels = Masking(23, mask_id=3)(ids, rng)
    model.compile(adam(2e-2), LabelSmoothedCrossentropy(0.0), metrics=[METRICS[name]])
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    losses = model.fit({"token_ids": masked}, labels, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    for weight in model.weights:
        assert np.abs(before[weight.path] - ops.convert_to_numpy(weight)).max() > 0, weight.path


def test_low_precision(randomize):
    model = randomize(BERT(CONFIG, dtype="mixed_bfloat16"))
    rough = ops.convert_to_numpy(ops.cast(model(INPUTS), "float32"))
    np.testing.assert_allclose(rough, outputs(randomize(BERT(CONFIG))), atol=0.3)


CASES = {
    "vocab_size": 0, "d_model": 0, "d_ff": -1, "num_layers": 1.5, "num_heads": 0, "max_length": 0,
    "dropout": 1.0, "activation": "mish", "epsilon": 0, "pad_id": 23, "head": "lm",
    "head_dropout": -0.1, "labels": (), "num_types": -1, "position_offset": -1, "d_embedding": 0,
    "shared_blocks": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got "):
        dataclasses.replace(CONFIG, **{name: CASES[name]})


def test_config():
    assert BERTConfig.from_dict(CONFIG.to_dict()) == CONFIG
    assert dataclasses.replace(CONFIG, labels=["a"]).labels == ("a",)  # as JSON has them
    assert BERTConfig(23).d_ff == 4 * 768 and BERTConfig(23, dropout=0.2).head_dropout == 0.2
    with pytest.raises(ValueError, match="d_model must be divisible by num_heads"):
        dataclasses.replace(CONFIG, num_heads=3)
    with pytest.raises(ValueError, match=r"unknown config fields \['heads'\]"):
        BERTConfig.from_dict(CONFIG.to_dict() | {"heads": 2})
