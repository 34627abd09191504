"""Exported ONNX graphs translate like the Translator, without this package."""

import contextlib
import dataclasses
import subprocess
import sys

import keras
import numpy as np
import onnxruntime
import pytest

from keras_transformer import export, load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import onnx
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator
from tests.backends import sample

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20
TEXTS = [*ENGLISH[:3], "", "dog ½"]
FAMILIES = {"nllb": ("eng_Latn", "fra_Latn"), "t5": ("en", "de")}


def translated(out, texts):
    """Return the output of the exported program, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(out / "translate.py")],
        input="".join(f"{text}\n" for text in texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split("\n")[:-1]


@pytest.fixture(scope="module")
def own(randomize, tmp_path_factory):
    """A random translator of our own, saved, and its export."""
    folder = tmp_path_factory.mktemp("own")
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360)
    size = tokenizer.source_vocab_size
    config = TransformerConfig(
        source_vocab_size=size, target_vocab_size=size, d_model=8, d_ff=12, num_heads=2,
        num_encoder_layers=1, num_decoder_layers=2, max_length=64, eos_id=(3, 116),
    )  # fmt: skip
    model = randomize(Transformer(config), scale=2.0)
    Translator(model, tokenizer, "en", "de").save(folder / "saved")
    return folder / "saved", onnx(folder / "saved", folder / "out")


def test_our_own(own):
    folder, out = own
    for name in ("encoder", "decoder"):
        assert b".py" not in (out / f"{name}.onnx").read_bytes()  # no path of this machine
    found = Translator.load(folder).translate(TEXTS)
    assert translated(out, TEXTS) == found
    assert any(found)
    exported, ours = Translator.load(out), Translator.load(folder)
    assert exported.translate(TEXTS) == found
    for own in (
        dict(beam_size=3, early_stopping=True),
        dict(beam_size=4, max_length=4, forced_eos=False),
        dict(beam_size=1, max_length=3, forced_eos=False),
        dict(beam_size=2, max_length=5, length_penalty=2.0, scoring="wu"),
    ):  # as of an imported folder
        exported.search = ours.search = dict(scoring="transformers", length_penalty=1.0) | own
        assert exported.translate(TEXTS) == ours.translate(TEXTS)
    assert exported.translate(TEXTS, max_extra_length=20) != exported.translate(TEXTS)


def test_graphs_give_the_logits_of_the_model(own):
    folder, out = own
    model = Translator.load(folder).model
    encoder, decoder = (
        onnxruntime.InferenceSession(str(out / f"{x}.onnx")) for x in ("encoder", "decoder")
    )
    source = np.array([[5, 6, 7, 3, 0, 0], [8, 9, 10, 11, 12, 3], [4, 3, 0, 0, 0, 0]])
    target = np.array([[2, 20, 21], [2, 30, 31], [2, 40, 41]])
    memory = dict(
        zip(
            [x.name for x in encoder.get_outputs()],
            encoder.run(None, {"source_ids": source}),
            strict=True,
        )
    )
    names = [x.name for x in decoder.get_inputs() if x.name.startswith("past_")]
    past = {name: np.zeros((3, 2, 0, 4), "float32") for name in names}
    inputs = {"source_ids": source.astype("int32"), "target_ids": target.astype("int32")}
    expected = keras.ops.convert_to_numpy(model(inputs))
    for i in range(target.shape[1]):
        logits, *present = decoder.run(None, {"token_ids": target[:, i : i + 1], **memory, **past})
        past = dict(zip(names, present, strict=True))
        np.testing.assert_allclose(logits, expected[:, i], atol=1e-4)


@pytest.mark.parametrize("kind", sample(FAMILIES, "nllb"))
def test_imported(kind, pretrained_folder, in_this_process, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    pretrained_folder(kind, folder, ENGLISH, GERMAN, layers=1)  # the graphs of more take minutes
    translator = load_pretrained(folder, *FAMILIES[kind])
    translator.save(tmp_path / "saved")
    with in_this_process("graph_folder"):
        out = onnx(tmp_path / "saved", tmp_path / "out")
    assert translated(out, TEXTS) == translator.translate(TEXTS)


@pytest.mark.parametrize("form", ["onnx", "saved_model"])
def test_a_decoder_without_self_attention(form, own, randomize, in_this_process, tmp_path):
    translator = Translator.load(own[0])
    config = dataclasses.replace(translator.model.config, decoder_recurrence="ssru")
    translator = Translator(randomize(Transformer(config), scale=2.0), translator.tokenizer)
    translator.save(tmp_path / "saved")
    here = in_this_process("graph_folder") if form == "onnx" else contextlib.nullcontext()
    with here:
        out = getattr(export, form)(tmp_path / "saved", tmp_path / "out")
    translations = Translator.load(out).translate(TEXTS)
    assert translations == translator.translate(TEXTS)
    assert any(translations)


def test_bad_input(own, tmp_path, monkeypatch):
    folder, out = own
    with pytest.raises(FileExistsError, match="out exists: choose another"):
        onnx(folder, out)
    with pytest.raises(ValueError, match="is not a saved translator"):
        onnx(tmp_path, tmp_path / "out")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match='pip install "torch>=[^ ]* "onnx>='):
        onnx(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
