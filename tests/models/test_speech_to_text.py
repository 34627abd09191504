"""Speech to text: what padding changes, saved, trained; what is refused."""

import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, adam
from keras_transformer.backend import compiled
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search
from tests.backends import cases

CONFIG = SpeechConfig(
    11, num_mels=5, d_model=12, d_ff=16, num_encoder_layers=2, num_decoder_layers=2, num_heads=2,
    max_frames=20, max_length=12,
)  # fmt: skip
TARGET = np.array([[2, 7, 9, 5], [2, 5, 3, 0]], "int32")


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(Speech(CONFIG), scale=1.5)


def features(config, frames=None, rows=3):
    shape = rows, frames or config.max_frames, config.num_mels
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_bias_of_keys_says_nothing(randomize, tmp_path):
    model = randomize(Speech(CONFIG), scale=1.5)
    write_model(tmp_path, model)
    inputs = {"features": features(CONFIG, 9, 2), "target_ids": TARGET}
    found, before = (ops.convert_to_numpy(x(inputs)) for x in (read_model(tmp_path), model))
    np.testing.assert_allclose(found, before, atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("frames", cases([6, 7], 7))
def test_padding_changes_nothing(model, frames):
    clips = features(CONFIG, 15, 2)
    inputs = {"features": clips, "target_ids": TARGET}
    together = model(inputs | {"num_frames": np.array([frames, 15], "int32")})
    alone = model({"features": clips[:1, :frames], "target_ids": TARGET[:1]})
    together, alone, unmasked = map(ops.convert_to_numpy, (together, alone, model(inputs)))
    np.testing.assert_allclose(together[:1], alone, atol=1e-5)
    np.testing.assert_allclose(together[1:], unmasked[1:], atol=1e-5)
    assert np.abs(together[0] - unmasked[0]).max() > 1e-2


@pytest.mark.parametrize("beam_size", cases([1, 3], 3))
def test_search_of_padded_clips(model, beam_size):
    search = compiled(translation_function(Search(beam_size, max_extra_length=8), model), model)
    clips = features(CONFIG, 15, 2)
    source = {"features": clips, "num_frames": np.array([7, 15], "int32")}
    source = {name: ops.convert_to_tensor(x) for name, x in source.items()}
    limits = ops.convert_to_tensor(np.array([8, 8], "int32"))
    ids, scores = map(ops.convert_to_numpy, search(source, limits))
    alone = search(ops.convert_to_tensor(clips[:1, :7]), limits[:1])
    alone_ids, alone_scores = map(ops.convert_to_numpy, alone)
    np.testing.assert_array_equal(ids[:1], alone_ids)
    np.testing.assert_allclose(scores[:1], alone_scores, atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(model, saved_and_loaded):
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    inputs = {"features": features(CONFIG, 9, 2), "target_ids": TARGET}
    found, before = (ops.convert_to_numpy(x(inputs)) for x in (again, model))
    np.testing.assert_allclose(found, before, atol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("dtype", cases(["float32", "mixed_bfloat16"], "mixed_bfloat16"))
def test_trains(dtype):
    model = Speech(dataclasses.replace(CONFIG, dropout=0.1), dtype=dtype)
    model.compile(adam(1e-2), LabelSmoothedCrossentropy())
    inputs = {"features": features(CONFIG, 9, 2), "target_ids": TARGET}
    inputs["num_frames"] = np.array([9, 5], "int32")
    labels = np.concatenate([TARGET[:, 1:], [[3], [0]]], axis=1)
    before = ops.convert_to_numpy(model.source_embedding.positions)
    losses = model.fit(inputs, labels, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_array_equal(ops.convert_to_numpy(model.source_embedding.positions), before)


@pytest.mark.parametrize("shape", [(2, 21, 5), (2, 9, 6), (2, 5)])
def test_other_shapes_are_refused(model, shape):
    message = r"features must be \(batch, at most 20 frames, 5 mels\), got \(2, "
    with pytest.raises(ValueError, match=message):
        model({"features": np.zeros(shape, "float32"), "target_ids": TARGET})
    with pytest.raises(ValueError, match=message):
        model.prefill(np.zeros(shape, "float32"), TARGET[:, :1], 5)


def test_no_more_tokens_than_positions(model):
    with pytest.raises(ValueError, match="length must be at most 12, got 13"):
        model.prefill(features(CONFIG, 9, 2), TARGET[:, :1], 13)


CASES = {
    "vocab_size": 0, "num_mels": 0, "d_model": 7, "d_ff": -1, "num_encoder_layers": 1.5,
    "num_heads": 0, "max_frames": 0, "max_length": 0, "dropout": 1.0, "activation": "mish",
    "epsilon": 0, "pad_id": 11, "eos_id": -1,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {CASES[name]!r}"):
        dataclasses.replace(CONFIG, **{name: CASES[name]})
