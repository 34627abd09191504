"""Exported LiteRT graphs translate like the Translator, without this package."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_transformer import TextClassifier, export, load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.models import BERT, Transformer
from keras_transformer.models.bert import BERTConfig
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.translator import Translator
from tests.backends import sample
from tests.export.test_onnx import ENGLISH, FAMILIES, GERMAN, TEXTS, translated

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
if keras.backend.backend() != "tensorflow":
    reason = "TensorFlow exports, whatever backend runs here; test_onnx.py exports in a process"
    pytest.skip(reason, allow_module_level=True)

from ai_edge_litert.interpreter import Interpreter


@pytest.fixture(scope="session")
def own(randomize, tmp_path_factory):
    """A random translator of our own, saved."""
    folder = tmp_path_factory.mktemp("own")
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360)
    size = tokenizer.source_vocab_size
    config = TransformerConfig(
        source_vocab_size=size, target_vocab_size=size, d_model=32, d_ff=48, num_heads=2,
        num_encoder_layers=1, num_decoder_layers=2, max_length=64,
    )  # fmt: skip
    Translator(randomize(Transformer(config), scale=2.0), tokenizer, "en", "de").save(folder)
    return folder


@pytest.fixture
def exported(in_this_process, tmp_path):
    """`exported(folder, **options)`: `export.litert` in this process."""

    def run(folder, **options):
        with in_this_process("graph_folder"):
            return export.litert(folder, tmp_path / "out", overwrite=True, **options)

    return run


def test_our_own(own, exported):
    ours = Translator.load(own)
    out = exported(own)
    translations = ours.translate(TEXTS)
    assert any(translations) and translated(out, TEXTS) == translations
    theirs = Translator.load(out)
    for beam_size in (1, 4):
        options = dict(beam_size=beam_size, max_length=9)
        for one, other in zip(
            ours.nbest(TEXTS, **options), theirs.nbest(TEXTS, **options), strict=True
        ):
            assert [x.text for x in one] == [x.text for x in other]
            np.testing.assert_allclose([x.score for x in one], [x.score for x in other], atol=1e-4)
    with pytest.raises(ValueError, match="got LiteRT graphs"):
        theirs.score(TEXTS[:1], TEXTS[:1])


@pytest.mark.parametrize("kind", sample(FAMILIES, "t5"))
def test_imported(kind, pretrained_folder, exported, tmp_path):
    (tmp_path / "theirs").mkdir()
    pretrained_folder(kind, tmp_path / "theirs", ENGLISH, GERMAN, layers=1)
    translator = load_pretrained(tmp_path / "theirs", *FAMILIES[kind])
    translator.save(tmp_path / "saved")
    out = exported(tmp_path / "saved")
    options = dict(max_extra_length=10)
    translations = translator.translate(TEXTS, **options)
    assert any(translations)
    assert Translator.load(out).translate(TEXTS, **options) == translations


def test_a_decoder_without_self_attention(own, exported, randomize, tmp_path):
    translator = Translator.load(own)
    config = dataclasses.replace(translator.model.config, decoder_recurrence="ssru")
    translator = Translator(randomize(Transformer(config), scale=2.0), translator.tokenizer)
    translator.save(tmp_path / "saved")
    translations = Translator.load(exported(tmp_path / "saved")).translate(TEXTS)
    assert any(translations) and translations == translator.translate(TEXTS)


def test_the_names_in_the_docs(own, exported):
    """All names of signatures, tensors and facts in the code for phones are those of an export."""
    out = exported(own)
    facts = json.loads((out / "model.json").read_text())
    page = (Path(__file__).parents[2] / "docs" / "litert.md").read_text("utf-8")
    codes = re.findall(r"```(?:kotlin|swift)\n(.*?)```", page, re.DOTALL)
    tensors = [y for x in facts["signatures"].values() for side in x.values() for y in side]
    parts = {f"{x.partition('_')[0]}_" for x in tensors}  # such as "past_"
    described = {"signatures", "inputs", "outputs", "dtype", "shape"}
    known = {*facts["signatures"], *tensors, *parts, *described, *(x.name for x in out.iterdir())}
    known |= {*json.loads((out / "translator.json").read_text())}
    assert len(codes) == 2
    for code in codes:
        named = {*re.findall(r'"(\w+|\w+\.\w+)"', code)} - {"bool"}
        assert named <= known, named - known
        assert named >= {"encode", "decode", "source_ids", "token_ids", "position", "logits"}


def test_a_classifier(in_this_process, tmp_path, randomize):
    tokenizer = TextTokenizer.train(TEXTS, kind="bytes", vocab_size=270)
    config = BERTConfig(
        tokenizer.vocab_size, d_model=16, num_layers=1, num_heads=2, max_length=64,
        head="sequence_classification", labels=("bad", "good"),
    )  # fmt: skip
    classifier = TextClassifier(randomize(BERT(config)), tokenizer)
    classifier.save(tmp_path / "saved")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    options = dict(quantization="int8-weights", calibration=tmp_path / "texts.txt")
    with in_this_process("litert"):
        out = export.litert(tmp_path / "saved", tmp_path / "out", **options)
    facts = json.loads((out / "model.json").read_text())
    assert facts["loader"] == "TextClassifier" and facts["config"]["labels"] == ["bad", "good"]
    runner = Interpreter(str(out / "model.tflite")).get_signature_runner("predict")
    ids = TextTokenizer.read(out).encode(TEXTS[:1])
    rows = runner(token_ids=np.array(ids, "int32"), type_ids=np.zeros_like(ids, "int32"))
    (labels,) = classifier.classify(TEXTS[:1])
    expected = {x.label: x.probability for x in labels}
    assert rows["outputs"][0] == pytest.approx([expected["bad"], expected["good"]], abs=0.02)
    with pytest.raises(ValueError, match="source_language must be None for this text classifier"):
        export.litert(tmp_path / "saved", out, source_language="en", overwrite=True)
    options["quantization"] = "int8"
    with pytest.raises(ValueError, match="calibration must be None without quantization="):
        export.litert(tmp_path / "saved", out, overwrite=True, **options)


def test_what_is_refused(own, tmp_path, monkeypatch):
    config = json.loads((own / "config.json").read_text())
    shutil.copytree(own, tmp_path / "parser")
    (tmp_path / "parser" / "config.json").write_text(json.dumps(config | {"task": "parsing"}))
    with pytest.raises(ValueError, match="to be exported to LiteRT, got a parser"):
        export.litert(tmp_path / "parser", tmp_path / "out")
    with pytest.raises(ValueError, match="quantization must be one of .* for LiteRT, got 'int4'"):
        export.litert(own, tmp_path / "out", quantization="int4")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match='exporting to LiteRT needs the extra "tensorflow"'):
        export.litert(own, tmp_path / "out")
    assert not (tmp_path / "out").exists()
