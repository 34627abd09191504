"""Saved folders that were edited or damaged: one error that names the file, nothing else."""

import json
import shutil
import zipfile

import keras
import numpy as np
import pytest

from keras_transformer import CausalLM, Synthesizer, Transcriber, Translator
from keras_transformer.backend import precision as precision_module
from keras_transformer.config import TransformerConfig
from keras_transformer.models import (
    BERT,
    GPT,
    BERTConfig,
    GPTConfig,
    Speech,
    SpeechConfig,
    TextToSpeech,
    TextToSpeechConfig,
    Transformer,
)
from keras_transformer.saved.folder import load_with_tokenizer, save_folder
from keras_transformer.saved.model_files import count_parameters
from keras_transformer.speech.hearing import Hearing
from keras_transformer.text import WordTokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases

SIZES = dict(d_model=8, num_heads=2)
LOADERS = {
    "translator": Translator.load,
    "writer": CausalLM.load,
    "transcriber": Transcriber.load,
    "synthesizer": Synthesizer.load,
    "classifier": lambda folder: load_with_tokenizer(folder, "classifier", BERT),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved folder of each kind."""
    root = tmp_path_factory.mktemp("saved")
    blocks = dict(num_encoder_layers=1, num_decoder_layers=1)
    words = WordTokenizer.train(["a b"], ["c d"])
    sides = words.source_vocab_size, words.target_vocab_size
    config = TransformerConfig(*sides, **SIZES, **blocks, d_ff=8, share_embeddings=False)
    Translator(Transformer(config), words, "en", "de").save(root / "translator")
    letters = TextTokenizer.train(["a b"], "characters")
    GPT_ = GPT(GPTConfig(8, **SIZES, num_layers=1, max_length=8))
    CausalLM(GPT_, letters).save(root / "writer")
    ids = dict(pad_id=6, bos_id=7, eos_id=0, max_frames=24, max_length=8)
    speech = Speech(SpeechConfig(8, num_mels=4, **SIZES, **blocks, **ids))
    hearing = Hearing(8000, pads_clips=False, is_multilingual=False, suppressed=(1,))
    Transcriber(speech, letters, hearing).save(root / "transcriber")
    sizes = dict(num_mels=4, max_frames=8, pad_id=0)
    Synthesizer(
        TextToSpeech(TextToSpeechConfig(8, **SIZES, **blocks, **sizes)), letters, 8000, ["ann"]
    ).save(root / "synthesizer")
    bert = BERT(BERTConfig(8, **SIZES, num_layers=1, max_length=8, labels=("x", "y")))
    save_folder(root / "classifier", bert, letters, {"task": "text_classification"})
    return root


def edited(config):
    """The config with one value changed, at each place and in each way."""
    places = [(config, name) for name in config]
    places += [(config["hearing"], name) for name in config.get("hearing", ())]
    for owner, name in places:
        before = dict(owner)
        for value in (None, False, 3, {"x": 1}, ["x"], ...):
            owner[name] = value
            if value is ...:
                del owner[name]
            yield name, value
            owner.clear()
            owner.update(before)


# Changes that leave a folder which means something: languages that nobody has named, another
# rate, other names of speakers; and the model's config, which is there for readers alone.
SENSIBLE = {(x, y) for x in ("source_language", "target_language") for y in ("None", "Ellipsis")}
SENSIBLE |= {
    ("sample_rate", "3"),
    ("pads_clips", "False"),
    ("is_multilingual", "False"),
    ("alignment_heads", "Ellipsis"),  # as older folders have it
    *(("language", x) for x in ("None", "Ellipsis")),  # it is detected
    ("speakers", "['x']"),
    ("model", "{'x': 1}"),
}


@pytest.mark.once("files and texts: no tensor differs")
@pytest.mark.parametrize("kind", LOADERS)
def test_an_edited_config_is_one_error_that_names_it(kind, folders, tmp_path):
    folder = shutil.copytree(folders / kind, tmp_path / kind)
    config = json.loads((folder / "config.json").read_text())
    seen = 0
    for name, value in edited(config):
        (folder / "config.json").write_text(json.dumps(config))
        if (name, str(value)) in SENSIBLE:
            LOADERS[kind](folder)
            continue
        with pytest.raises(ValueError, match=kind) as found:
            LOADERS[kind](folder)
        assert "\n" not in str(found.value) and len(str(found.value)) < 500
        named = name in str(found.value) or "tokenizer" in name
        assert named or ("task" in name and "but a translator" in str(found.value))
        seen += 1
    assert seen > 20


def damaged(path, how):
    content = bytearray(path.read_bytes())
    if how == "flipped":
        with zipfile.ZipFile(path) as archive:
            start = archive.getinfo("model.weights.h5").header_offset + 60
        for place in range(start, len(content) - 2000):
            content[place] ^= 255
    path.write_bytes({"empty": b"", "cut": content[:-100], "flipped": content}[how])


@pytest.mark.once("files and texts: no tensor differs")
@pytest.mark.parametrize("how", ["empty", "cut", "flipped"])
def test_a_damaged_model_is_named_and_not_missed(folders, tmp_path, how):
    folder = shutil.copytree(folders / "writer", tmp_path / "writer")
    damaged(folder / "model.keras", how)
    for load in (CausalLM.load, count_parameters):
        with pytest.raises(ValueError, match=r"writer.model.keras cannot be read: ") as found:
            load(folder)
        told = str(found.value)
        assert "not found" not in told.lower() and "\n" not in told and len(told) < 500
        assert how == "flipped" or "it is damaged" in told


@pytest.mark.once("files and texts: no tensor differs")
def test_a_model_larger_than_its_weights_is_not_made(folders, tmp_path):
    folder = shutil.copytree(folders / "writer", tmp_path / "writer")
    with zipfile.ZipFile(folder / "model.keras") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    whole = found["config.json"]
    own = json.loads(whole)["config"]["config"]
    huge = json.loads(whole)
    huge["config"]["config"] = own | {"d_model": 2**40, "num_heads": 1}
    for changed, message in (
        (json.dumps(huge).encode(), "d_model must be at most .* got 1099511627776"),
        (whole + b" " * (1 << 24), "bytes of its config.json must be at most 16777216"),
    ):
        with zipfile.ZipFile(folder / "model.keras", "w") as archive:
            for name, content in (found | {"config.json": changed}).items():
                archive.writestr(name, content)
        with pytest.raises(ValueError, match=f"model.keras cannot be read: ValueError: {message}"):
            CausalLM.load(folder)


@pytest.mark.once("files and texts: no tensor differs")
def test_a_model_of_another_library(folders, tmp_path):
    folder = shutil.copytree(folders / "writer", tmp_path / "writer")
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(folder / "model.keras")
    with pytest.raises(ValueError, match=r"model.keras is a Sequential, not a model of keras_"):
        CausalLM.load(folder)
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        archive.writestr("config.json", '{"registered_name": "of_nobody"}')
    with pytest.raises(ValueError, match=r"model.keras is a None, not a model of keras_"):
        CausalLM.load(folder)


@pytest.mark.once("what the machine has is a stub")
@pytest.mark.parametrize("precision", cases(["bfloat16", "float16", None], "bfloat16"))
def test_a_precision_that_the_machine_lacks_becomes_float32(
    folders, tmp_path, monkeypatch, precision
):
    monkeypatch.setenv(precision_module.VARIABLE, "strict")
    folder = folders / "writer"
    if precision is None:  # it was saved by another machine
        folder = tmp_path / "half"
        monkeypatch.setattr(precision_module, "_computes_in", lambda dtype: True)
        CausalLM.load(folders / "writer", "bfloat16").save(folder)
    monkeypatch.setattr(precision_module, "_computes_in", lambda dtype: False)
    dtype = precision or "bfloat16"
    with pytest.warns(match=f"precision is float32 in place of {dtype}: this machine does not"):
        writer = CausalLM.load(folder, precision)
    assert {str(x.dtype) for x in writer.model.trainable_variables} == {"float32"}
    whole = CausalLM.load(folders / "writer").score(["a b"])
    np.testing.assert_allclose(writer.score(["a b"]), whole, rtol=1e-5 if precision else 0.1)
    monkeypatch.setenv(precision_module.VARIABLE, "fast")
    monkeypatch.setattr(precision_module, "is_fast", lambda dtype: False)
    with pytest.warns(match=f"in place of {dtype}: this machine is slower in {dtype}"):
        writer = CausalLM.load(folder, precision)
    assert {str(x.dtype) for x in writer.model.trainable_variables} == {"float32"}
