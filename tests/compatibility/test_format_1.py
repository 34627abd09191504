"""Folders of the first version load, and give the same strings and numbers.

`make.py` wrote `format-1/` once, under PyTorch, with the version before any change of format.
"""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.backend import BACKEND
from keras_transformer.callbacks import Checkpoints
from keras_transformer.checkpoints import load_weights
from keras_transformer.checkpoints.state import restore_state
from keras_transformer.models import enable_lora
from tests.backends import EVERY_CASE

FOLDER = Path(__file__).parent / "format-1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
TEXTS, PROMPTS = EXPECTED["texts"], EXPECTED["prompts"]


def assert_same_outputs(model, path):
    """The outputs of the model on the inputs of an `.npz` file are those in the file."""
    values = dict(np.load(path))
    values.pop("labels", None)
    outputs = [values.pop(name) for name in sorted(values) if name.startswith("output_")]
    found = keras.tree.flatten(model(values.get("input", values)))
    for one, other in zip(found, outputs, strict=True):
        one, atol = keras.ops.convert_to_numpy(one), 1e-5 * max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("name", ["post-norm", "pre-norm", "int8", "marian", "t5"])
def test_translators(name):
    translator, expected = kt.Translator.load(FOLDER / name), EXPECTED[name]
    searches = list(zip(EXPECTED["searches"], expected["translations"], strict=True))
    if not EVERY_CASE:  # files are read by the same code; one search is enough
        searches = searches[1:2] if name == "pre-norm" else []
    for search, texts in searches:
        assert translator.translate(TEXTS, max_extra_length=8, **search) == texts
    if "scores" in expected:
        found = translator.score(TEXTS, TEXTS[::-1])
        np.testing.assert_allclose(found, expected["scores"], rtol=1e-5)


@pytest.mark.parametrize("name", ["gpt", "llama"] if EVERY_CASE else ["llama"])
def test_language_models(name):
    writer = kt.CausalLM.load(FOLDER / name)
    generated = zip((1, 3), EXPECTED[name]["generated"], strict=True)
    for beam_size, texts in list(generated)[: None if EVERY_CASE else 1]:
        assert writer.generate(PROMPTS, max_new_tokens=12, beam_size=beam_size) == texts


@pytest.mark.once("tests/inference/test_transcriber.py transcribes under each")
def test_transcriber():
    rng, expected = np.random.default_rng(0), EXPECTED["whisper"]
    clips = [(0.1 * rng.standard_normal(n)).astype("float32") for n in expected["lengths"]]
    transcriber = kt.Transcriber.load(FOLDER / "whisper")
    found = transcriber.transcribe(clips, language="en", max_new_tokens=9)
    assert found == expected["transcribed"]


@pytest.mark.parametrize("name", ["bert", "esm", "vit"])
def test_encoders(name):
    model = keras.saving.load_model(FOLDER / name / "model.keras", compile=False)
    assert_same_outputs(model, FOLDER / name / "expected.npz")


@pytest.mark.parametrize("name", ["functional", "compiled"])
def test_keras_files(name):
    model = keras.saving.load_model(FOLDER / f"{name}.keras", compile=False)
    assert_same_outputs(model, FOLDER / f"{name}.npz")


@pytest.mark.once("classes are registered alike under each")
def test_a_new_process_needs_one_import_to_load_a_compiled_model():
    code = "import keras_transformer.models, keras; keras.saving.load_model({!r}).optimizer.beta_1"
    command = [sys.executable, "-c", code.format(str(FOLDER / "compiled.keras"))]
    subprocess.run(command, check=True, cwd=FOLDER.parents[2])


def test_checkpoint_with_its_optimizer():
    model = keras.saving.load_model(FOLDER / "compiled.keras", compile=False)
    new = type(model)(model.config)
    new.compile(kt.adam(kt.WarmupSchedule(1e-2, 5)), kt.LabelSmoothedCrossentropy(0.1))
    checkpoints = Checkpoints(FOLDER / "checkpoints", run={"name": "toy"})
    assert checkpoints.epoch == 2
    checkpoints.set_model(new)
    checkpoints.on_train_begin()
    assert_same_outputs(new, FOLDER / "checkpoints.npz")
    assert int(new.optimizer.iterations) == 6


def resumed(path):
    """A new model with the weights and the moments of a training state."""
    config = keras.saving.load_model(FOLDER / "compiled.keras", compile=False).config
    new = kt.Transformer(config)
    new.compile(kt.adam(kt.WarmupSchedule(1e-2, 5)), kt.LabelSmoothedCrossentropy(0.1))
    restore_state(path, new)
    return new


@pytest.mark.parametrize(
    "load,path", [(keras.saving.load_model, "compiled.keras"), (resumed, "checkpoints/epoch-0002")]
)
def test_moments_belong_to_their_weights(load, path):
    """One more update, with all gradients 1, depends on the moments of each column."""
    model = load(FOLDER / path)
    gradients = [keras.ops.ones(weight.shape) for weight in model.trainable_variables]
    model.optimizer.apply(gradients, model.trainable_variables)
    assert_same_outputs(model, FOLDER / "updated.npz")


def test_weights_h5():
    model = keras.saving.load_model(FOLDER / "functional.keras", compile=False)
    model.set_weights([0 * weight for weight in model.get_weights()])
    model.load_weights(FOLDER / "functional.weights.h5")
    assert_same_outputs(model, FOLDER / "functional.npz")


def test_weights_of_lora():
    config = keras.saving.load_model(FOLDER / "compiled.keras", compile=False).config
    new = kt.Transformer(config)
    enable_lora(new, 2)
    load_weights(FOLDER / "lora.safetensors", new)
    assert_same_outputs(new, FOLDER / "lora.npz")


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="a SavedModel is TensorFlow's, whatever wrote it"
)
def test_saved_model(tmp_path):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    with tarfile.open(FOLDER / "savedmodel.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    found = loaded.translate(tf.constant(TEXTS))["translations"].numpy().tolist()
    assert [text.decode() for text in found] == EXPECTED["savedmodel"]["translations"]
