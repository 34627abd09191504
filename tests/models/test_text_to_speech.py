"""Text to speech: steps beside the full pass, what padding changes, saved, trained, refused."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import adam
from keras_transformer.backend import compiled
from keras_transformer.decoding import decode_frames
from keras_transformer.models import TextToSpeech, TextToSpeechConfig

CONFIG = TextToSpeechConfig(
    11, num_mels=5, frames_per_step=2, d_model=12, d_ff=16, num_encoder_layers=1,
    num_decoder_layers=2, num_heads=2, prenet_size=6, max_frames=16, max_length=9,
)  # fmt: skip
IDS = np.array([[3, 4, 5, 0], [6, 7, 8, 9]], "int32")


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(TextToSpeech(CONFIG), scale=1.5)


def arrays(tree):
    return keras.tree.map_structure(ops.convert_to_numpy, tree)


def frames(rng, steps=4):
    return rng.standard_normal((2, steps, 5)).astype("float32")


def test_steps_are_the_full_pass(model):
    steps = 6

    def speak(source_ids):
        frames_BR, _, state, step = model.prefill(source_ids, steps)
        never = ops.full((2,), -1.0)

        def endless(*arguments):
            frames_BR, _, state = step(*arguments)
            return frames_BR, never, state

        return decode_frames(endless, frames_BR, never, state, steps)

    values, lengths = arrays(compiled(speak, model)(ops.convert_to_tensor(IDS)))
    assert lengths.tolist() == [steps, steps]
    previous = np.zeros((2, steps, 5), "float32")
    previous[:, 1:] = values[:, :-1, -5:]
    full = arrays(model({"source_ids": IDS, "previous_frames": previous}))
    np.testing.assert_allclose(values, full["frames"], atol=1e-4)
    assert np.abs(np.diff(values, axis=1)).max() > 0.1
    _, stop_B, *_ = model.prefill(ops.convert_to_tensor(IDS), steps)
    np.testing.assert_allclose(ops.convert_to_numpy(stop_B), full["stop"][:, 0, 0], atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_padding_and_later_frames_change_nothing(model, rng):
    previous = frames(rng)
    together = arrays(model({"source_ids": IDS, "previous_frames": previous}))
    alone = arrays(model({"source_ids": IDS[:1, :3], "previous_frames": previous[:1, :2]}))
    for name in ("frames", "stop"):
        np.testing.assert_allclose(together[name][:1, :2], alone[name], atol=1e-5)


@pytest.mark.once("test_transformer.py saves a model under each backend")
def test_saved_and_loaded(model, saved_and_loaded, rng):
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    inputs = {"source_ids": IDS, "previous_frames": frames(rng)}
    found, before = arrays(again(inputs)), arrays(model(inputs))
    np.testing.assert_allclose(found["frames"], before["frames"], atol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_trains(rng):
    model = TextToSpeech(dataclasses.replace(CONFIG, dropout=0.0, prenet_dropout=0.1))
    weighted = dict(reduction="mean_with_sample_weight")
    losses = {
        "frames": keras.losses.MeanAbsoluteError(**weighted),
        "stop": keras.losses.BinaryCrossentropy(from_logits=True, **weighted),
    }
    model.compile(adam(1e-2), losses)
    inputs = {"source_ids": IDS, "previous_frames": frames(rng)}
    targets = {
        "frames": np.tile(frames(rng), 2),
        "stop": np.eye(4, dtype="float32")[[3, 1], :, None],
    }
    weights = {"frames": np.ones((2, 4), "float32"), "stop": np.ones((2, 4), "float32")}
    weights["frames"][1, 2:] = 0
    history = model.fit(inputs, targets, sample_weight=weights, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.8 * history["loss"][0]


def test_no_more_steps_than_positions(model):
    with pytest.raises(ValueError, match="length must be from 1 to 8, .* max_steps, got 9"):
        model.prefill(ops.convert_to_tensor(IDS), 9)


CASES = {
    "vocab_size": 0, "num_mels": 0, "frames_per_step": 0, "d_model": 7, "d_ff": -1,
    "num_encoder_layers": 1.5, "num_heads": 0, "prenet_size": 0, "prenet_dropout": 1.0,
    "max_frames": 0, "max_length": 0, "dropout": 1.0, "activation": "mish", "epsilon": 0,
    "pad_id": 11,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {CASES[name]!r}"):
        dataclasses.replace(CONFIG, **{name: CASES[name]})


def test_steps_must_fit():
    with pytest.raises(ValueError, match="max_frames must be divisible by frames_per_step, got"):
        dataclasses.replace(CONFIG, max_frames=15)
