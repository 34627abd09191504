"""Encoder-only models, by a BERT: windows, and training from hidden states."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.models import BERT, BERTConfig, DeBERTaConfig, ESMConfig

CONFIG = BERTConfig(
    23, d_model=8, d_ff=12, num_layers=2, num_heads=2, dropout=0.0, max_length=9, num_types=2
)
IDS = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0]], "int32")
INPUTS = {"token_ids": IDS, "type_ids": np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], "int32")}


def outputs(model, inputs):
    return ops.convert_to_numpy(model(inputs))


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_window_and_global_tokens(randomize):
    """One block passes a token information from its window and the global tokens only."""
    config = dataclasses.replace(CONFIG, num_layers=1, max_length=12, num_types=1)
    changes = dict(window=2, global_tokens=1, max_length=12)
    plain = randomize(BERT(config))
    sparse = randomize(BERT(dataclasses.replace(config, **changes)))
    ids = np.arange(5, 17, dtype="int32")[None]
    other = np.where(np.arange(12) == 6, 22, ids).astype("int32")

    def moved(model):
        found, changed = (outputs(model, {"token_ids": x}) for x in (ids, other))
        return np.flatnonzero(np.abs(found - changed).max(axis=(0, 2)) > 1e-4).tolist()

    assert moved(plain) == list(range(12))
    assert moved(sparse) == [0, 5, 6, 7]


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(window=0), "window must be a whole number of at least 1, got 0"),
        (dict(window=4, global_tokens=-1), "global_tokens must be a whole number of at least 0"),
        (dict(global_tokens=2), "global_tokens must be 0 without a window"),
    ],
)
def test_windows_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


@pytest.mark.once("made of parts that are tested under each backend")
def test_trains_on_batches_of_several_lengths():
    keras.utils.set_random_seed(0)
    texts = [list(range(4, 6 + i % 6)) for i in range(80)]
    batches = SequenceBatches(
        texts, Masking(23, mask_id=3), tokens_per_batch=64, max_length=9, num_buckets=2
    )
    model = BERT(dataclasses.replace(CONFIG, num_layers=1))
    model.compile(adam(1e-2), LabelSmoothedCrossentropy(0.0), metrics=[Perplexity()])
    options = dict(steps_per_epoch=len(batches), epochs=5, shuffle=False, verbose=0)
    losses = model.fit(batches.dataset(), **options).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


def test_loss_of_hidden_states_is_that_of_logits(randomize):
    labels = np.where(np.arange(6) % 3 == 1, IDS, 0)
    losses = []
    for metrics in ([Perplexity()], ["accuracy"]):
        model = randomize(BERT(CONFIG))
        model.compile("sgd", LabelSmoothedCrossentropy(0.1), metrics=metrics)
        losses.append(model.evaluate(INPUTS, labels, verbose=0)[0])
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_no_new_head_on_quantized_weights():
    model = BERT(CONFIG)
    model.quantize("int8")
    with pytest.raises(ValueError, match="the model's weights must be floats, .*, got 'int8'"):
        model.with_head("hidden")


def test_which_families_read_pairs():
    assert BERTConfig(9).takes_pairs and DeBERTaConfig(9).takes_pairs
    assert BERTConfig(9, num_types=1, position_offset=2).takes_pairs  # a RoBERTa
    assert BERTConfig(9, num_types=0).takes_pairs and not ESMConfig().takes_pairs


@pytest.mark.once("made of parts that are tested under each backend")
def test_an_encoder_without_types_is_part_of_a_larger_model(saved_and_loaded):
    encoder = BERT(dataclasses.replace(CONFIG, head="hidden"))
    ids = np.arange(4, 12, dtype="int32").reshape(2, 4)
    inputs = keras.Input((None,), dtype="int32")
    hidden = encoder(inputs)
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(hidden))
    expected = ops.convert_to_numpy(encoder({"token_ids": ids})).mean(axis=1)
    np.testing.assert_allclose(model.predict(ids, verbose=0), expected, atol=1e-5)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(ids, np.zeros_like(expected), verbose=0)
    loaded = saved_and_loaded(model)
    found = loaded.predict(ids, verbose=0)
    np.testing.assert_allclose(found, model.predict(ids, verbose=0), atol=1e-6)
    assert np.abs(found - expected).max() > 1e-4
