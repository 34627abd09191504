"""T5 beside what tests/hub/test_hugging_face_checkpoint.py compares with `transformers`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, adam
from keras_transformer.backend import BACKEND, compiled
from keras_transformer.layers.head_groups import unfuse
from keras_transformer.models import T5, T5Config, T5Encoder, T5EncoderConfig
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search

SIZES = dict(d_model=12, d_ff=16, num_encoder_layers=2, num_decoder_layers=2, num_heads=2)
SIZES |= dict(head_dim=4, dropout=0.0, num_buckets=8, max_distance=9)
SOURCE = np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], "int32")
TARGET = np.array([[0, 7, 9, 3], [0, 5, 1, 0]], "int32")
CONFIG = T5Config(19, **SIZES)


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(T5(CONFIG), scale=0.5)


def logits(model):
    return ops.convert_to_numpy(model({"source_ids": SOURCE, "target_ids": TARGET}))


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "t5.keras")
    again = keras.saving.load_model(tmp_path / "t5.keras")
    assert again.config == CONFIG
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_the_encoder_alone(randomize, tmp_path):
    """Its heads may be more or fewer than divide `d_model`; padding changes nothing."""
    sizes = dict(d_model=12, d_ff=16, num_layers=2, num_heads=5, head_dim=4, num_buckets=8)
    config = T5EncoderConfig(19, **sizes, max_distance=9, head="sentence_embedding")
    model = randomize(T5Encoder(config), scale=0.5)
    model.save(tmp_path / "t5.keras")
    again = keras.saving.load_model(tmp_path / "t5.keras")
    assert again.config == config
    found = [ops.convert_to_numpy(x({"token_ids": SOURCE})) for x in (model, again)]
    np.testing.assert_allclose(*found, atol=1e-6)
    alone = ops.convert_to_numpy(model({"token_ids": SOURCE[1:, :3]}))
    np.testing.assert_allclose(found[0][1:], alone, atol=1e-5)
    with pytest.raises(ValueError, match="num_buckets must be even, got 5"):
        dataclasses.replace(config, num_buckets=5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_trains(randomize):
    model = T5(CONFIG)
    model.compile(adam(1e-2), LabelSmoothedCrossentropy())
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}
    labels = np.concatenate([TARGET[:, 1:], [[1], [0]]], axis=1)
    losses = model.fit(inputs, labels, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.once("made of parts that are tested under each backend")
def test_greedy_search_is_that_of_full_passes(model):
    search = compiled(translation_function(Search(1), model), model)
    limits = ops.convert_to_tensor(np.array([6, 6], "int32"))
    found = ops.convert_to_numpy(search(ops.convert_to_tensor(SOURCE), limits)[0])[:, 0]
    ids = np.zeros((2, 6), "int32")
    for i in range(5):
        scores = ops.convert_to_numpy(model({"source_ids": SOURCE, "target_ids": ids}))[:, i]
        scores[:, CONFIG.pad_id] = -np.inf
        chosen = scores.argmax(-1).astype("int32")
        for row in range(2):
            if CONFIG.eos_id not in ids[row]:
                assert found[row, i] == chosen[row]
        ids[:, i + 1] = chosen


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow's XLA")
def test_search_compiled_by_xla_for_any_shape(model):
    import tensorflow as tf

    function = translation_function(Search(2, max_extra_length=4), model)
    ids = tf.TensorSpec([None, None], tf.int32)
    options = dict(input_signature=[ids, tf.TensorSpec([None], tf.int32)], autograph=False)
    limits = np.array([6, 6], "int32")
    plain = tf.function(function, **options)(SOURCE, limits)[0]
    fast = tf.function(function, jit_compile=True, **options)(SOURCE, limits)[0]
    np.testing.assert_array_equal(fast, plain)


CASES = {
    "vocab_size": 0, "d_model": 0, "d_ff": -1, "num_encoder_layers": 1.5, "num_heads": 0,
    "head_dim": 0, "max_length": 0, "num_buckets": 3, "max_distance": 4, "dropout": 1.0,
    "activation": "mish", "epsilon": 0, "pad_id": 19, "eos_id": -1,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {CASES[name]!r}"):
        dataclasses.replace(CONFIG, **{name: CASES[name]})


def test_padding_is_not_the_end():
    with pytest.raises(ValueError, match="pad_id and eos_id must differ, both are 1"):
        dataclasses.replace(CONFIG, pad_id=1)


def test_unknown_fields():
    with pytest.raises(ValueError, match=r"unknown config fields \['heads'\]"):
        T5Config.from_dict(CONFIG.to_dict() | {"heads": 2})


def test_a_new_model_begins_as_one_that_scales():
    """Embeddings of unit size, and products of queries and keys that are not far above it."""
    model = T5(T5Config(500, d_model=64, d_ff=64, num_heads=4, head_dim=16))
    kernel = ops.convert_to_numpy(model.encoder.blocks[0].attention.query_key_value.kernel)
    x = np.random.default_rng(0).standard_normal((50, 64))
    query, key, _ = unfuse(x @ kernel, (4, 4, 4))
    products = query[:, :16] @ key[:, :16].T
    assert 0.2 < products.std() < 1.0
    table = ops.convert_to_numpy(model.source_embedding.tokens.embeddings)
    assert table.std() == pytest.approx(1.0, abs=0.05)
