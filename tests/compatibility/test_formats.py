"""Folders of each format load, and give the same strings and numbers.

`make.py` wrote `format-2/` under PyTorch. SavedModels are not among them: their format is
TensorFlow's.
"""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.callbacks import Checkpoints
from keras_transformer.models import enable_lora
from keras_transformer.weights import load_weights
from keras_transformer.weights.state import restore_state
from tests.backends import EVERY_CASE, cases

FOLDERS = [Path(__file__).parent / "format-2"]


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture
def expected(folder):
    """The results that the objects in a folder gave when they were saved."""
    return json.loads((folder / "expected.json").read_text("utf-8"))


def assert_same_outputs(model, path):
    """The outputs of the model on the inputs of an `.npz` file are those in the file."""
    values = dict(np.load(path))
    values.pop("labels", None)
    outputs = [values.pop(name) for name in sorted(values) if name.startswith("output_")]
    found = keras.tree.flatten(model(values.get("input", values)))
    for one, other in zip(found, outputs, strict=True):
        one, atol = keras.ops.convert_to_numpy(one), 1e-5 * max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("name", cases(["float32", "int8", "marian"], "float32", "int8"))
def test_translators(folder, expected, name, monkeypatch):
    if name == "int8":  # the results are of products in 8 bits
        monkeypatch.setenv("KERAS_TRANSFORMER_PRECISION", "strict")
    translator, texts = kt.Translator.load(folder / name), expected["texts"]
    searches = list(zip(expected["searches"], expected[name]["translations"], strict=True))
    if not EVERY_CASE:  # files are read by the same code; one search is enough
        searches = searches[1:2] if name == "float32" else []
    for search, translations in searches:
        assert translator.translate(texts, max_extra_length=8, **search) == translations
    if "scores" in expected[name]:
        found = translator.score(texts, texts[::-1])
        np.testing.assert_allclose(found, expected[name]["scores"], rtol=1e-5)


def test_language_model(folder, expected):
    writer = kt.CausalLM.load(folder / "llama")
    generated = zip((1, 3), expected["llama"]["generated"], strict=True)
    for beam_size, texts in list(generated)[: None if EVERY_CASE else 1]:
        assert writer.generate(expected["prompts"], max_new_tokens=12, beam_size=beam_size) == texts


@pytest.mark.once("tests/speech/test_transcriber.py transcribes under each")
def test_transcriber(folder, expected):
    rng, expected = np.random.default_rng(0), expected["whisper"]
    clips = [(0.1 * rng.standard_normal(n)).astype("float32") for n in expected["lengths"]]
    transcriber = kt.Transcriber.load(folder / "whisper")
    found = transcriber.transcribe(clips, language="en", max_new_tokens=9)
    assert found == expected["transcribed"]


def test_encoder(folder):
    model = keras.saving.load_model(folder / "bert" / "model.keras", compile=False)
    assert_same_outputs(model, folder / "bert" / "expected.npz")


def test_keras_file(folder):
    model = keras.saving.load_model(folder / "compiled.keras", compile=False)
    assert_same_outputs(model, folder / "compiled.npz")


def test_checkpoint_with_its_optimizer(folder):
    model = keras.saving.load_model(folder / "compiled.keras", compile=False)
    new = type(model)(model.config)
    new.compile(kt.adam(kt.WarmupSchedule(1e-2, 5)), kt.LabelSmoothedCrossentropy(0.1))
    checkpoints = Checkpoints(folder / "checkpoints", run={"name": "toy"})
    assert checkpoints.epoch == 2
    checkpoints.set_model(new)
    checkpoints.on_train_begin()
    assert_same_outputs(new, folder / "checkpoints.npz")
    assert int(new.optimizer.iterations) == 6


def resumed(path):
    """A new model with the weights and the moments of a training state."""
    folder = path.parents[1]
    config = keras.saving.load_model(folder / "compiled.keras", compile=False).config
    new = kt.Transformer(config)
    new.compile(kt.adam(kt.WarmupSchedule(1e-2, 5)), kt.LabelSmoothedCrossentropy(0.1))
    restore_state(path, new)
    return new


@pytest.mark.parametrize(
    "load,path",
    cases(
        [(keras.saving.load_model, "compiled.keras"), (resumed, "checkpoints/epoch-0002")],
        (keras.saving.load_model, "compiled.keras"),
    ),
)
def test_moments_belong_to_their_weights(folder, load, path):
    """One more update, with all gradients 1, depends on the moments of each column."""
    model = load(folder / path)
    gradients = [keras.ops.ones(weight.shape) for weight in model.trainable_variables]
    model.optimizer.apply(gradients, model.trainable_variables)
    assert_same_outputs(model, folder / "updated.npz")


def test_weights_of_lora(folder):
    config = keras.saving.load_model(folder / "compiled.keras", compile=False).config
    new = kt.Transformer(config)
    enable_lora(new, 2)
    load_weights(folder / "lora.safetensors", new)
    assert_same_outputs(new, folder / "lora.npz")
