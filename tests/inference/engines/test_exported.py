"""Exported translators: what they do as a translator does, and what they refuse.

The SavedModel and the ONNX graphs are made by hand. The tests of the exports compare real ones with
the translators that they came from.
"""

import json
import sys

import pytest

from keras_transformer.inference.engines import exported
from keras_transformer.inference.pipeline import Hypothesis
from keras_transformer.inference.translator import Translator
from keras_transformer.text import SentencePieceTokenizer
from tests.inference.engines import test_onnx_runner as graphs

pytestmark = pytest.mark.once("TensorFlow's and onnxruntime's own graphs")
BEAMS = 3


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A SavedModel that answers with its input, and its batch's size as score."""
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    texts = tf.TensorSpec([None], tf.string)

    class Echo(tf.Module):
        @tf.function(input_signature=[texts])
        def translate(self, texts):
            return {"translations": tf.strings.join(["best ", texts])}

        @tf.function(input_signature=[texts])
        def nbest(self, texts):
            count = tf.cast(tf.shape(texts)[0], "float32")
            rows = [tf.strings.join([x, texts]) for x in ("best ", "other ", "none ")]
            scores = tf.stack([-count, -count - 1, tf.constant(-1e9)])
            ones = tf.ones([tf.shape(texts)[0], 1])
            return {"translations": tf.stack(rows, 1), "scores": ones * scores}

        @tf.function(input_signature=[texts, texts])
        def score(self, sources, targets):
            length = tf.strings.length(sources) - 2 * tf.strings.length(targets)
            return {"scores": tf.cast(length, "float32")}

    folder = tmp_path_factory.mktemp("serving") / "echo"
    echo = Echo()
    signatures = {name: getattr(echo, name) for name in ("translate", "nbest", "score")}
    for version in ("1", "12"):
        tf.saved_model.save(echo, str(folder / version), signatures)
    tf.saved_model.save(tf.Module(), str(folder.parent / "other" / "1"))
    return folder


@pytest.fixture(scope="module")
def onnx_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    graphs.write_encoder(folder / "encoder.onnx")
    graphs.write_decoder(folder / "decoder.onnx")
    tokenizer = SentencePieceTokenizer.train(
        [" ".join("abc"), " ".join("cab")] * 9, ["a b c"] * 9, vocab_size=16, byte_fallback=False
    )
    for name in ("source", "target"):
        (folder / f"{name}.spm").write_bytes(tokenizer.source_model)
    facts = dict(
        pad_id=0, bos_id=2, eos_id=1, unk_id=6, never_ids=[0, 2], max_length=8,
        skipped_ids=[0, 1, 2], symbols="", source_frame=[[], [1]], target_frame=[[], [1]],
        source_pieces=[*graphs.TARGET, "<unk>"], target_pieces=graphs.TARGET,
    )  # fmt: skip
    (folder / "translator.json").write_text(json.dumps(facts))
    return folder


def test_a_saved_model(saved_model):
    assert exported.saved_model_in(saved_model) == saved_model / "12"
    for folder in (saved_model, saved_model / "1"):
        translator = Translator.load(folder)
        texts = ["one two", "", "three " * 9]
        assert translator.translate(texts) == ["best " + x for x in texts]
        assert list(translator.translate_stream(iter(texts), chunk_size=2)) == [
            "best " + x for x in texts
        ]
        assert translator.translate([]) == []
    whole, alone = (translator.nbest(texts, tokens_per_batch=x) for x in (4096, 1))
    assert whole[0] == [Hypothesis("best one two", -3.0), Hypothesis("other one two", -4.0)]
    assert alone[0] == [Hypothesis("best one two", -1.0), Hypothesis("other one two", -2.0)]
    assert translator.nbest(texts, num_hypotheses=1)[2] == [Hypothesis("best " + texts[2], -3.0)]
    assert translator.score(["one", "two!"], ["", "a"], tokens_per_batch=1) == [3.0, 2.0]
    with pytest.raises(ValueError, match="sources and targets must have the same length"):
        translator.score(["one"], [])


def test_onnx_graphs(onnx_folder):
    translator, texts = Translator.load(onnx_folder), ["a", "", "b a", "c c b"]
    program = graphs.OnnxTranslator(onnx_folder)
    assert translator.translate(texts) == [program.translate(x) for x in texts]
    options = dict(beam_size=2, length_penalty=0.0, max_extra_length=3)
    assert translator.translate(texts, **options) == [
        program.translate(x, **options) for x in texts
    ]
    found = translator.nbest(texts, num_hypotheses=2, **options)
    assert [len(x) for x in found] == [2, 1, 2, 2] and found[1] == [Hypothesis("", 0.0)]
    assert all(one[0].score >= one[-1].score for one in found)
    with pytest.raises(ValueError, match="score needs a saved translator or a SavedModel"):
        translator.score(["a"], ["b"])
    for name, value in dict(min_length=2, scoring="wu").items():
        with pytest.raises(ValueError, match=f"{name} must be left out for ONNX graphs, got"):
            translator.translate(texts, **{name: value})


def test_what_an_exported_translator_refuses(saved_model):
    translator, texts = Translator.load(saved_model), ["one"]
    for name, value in dict(beam_size=BEAMS, length_penalty=0.6, min_length=0).items():
        with pytest.raises(ValueError, match=f"{name} must be left out for a SavedModel, .*got"):
            translator.translate(texts, **{name: value})
    with pytest.raises(TypeError, match="beams is not an option"):
        translator.translate(texts, beams=3)
    with pytest.raises(ValueError, match=f"num_hypotheses must be at most beam_size={BEAMS}"):
        translator.nbest(texts, num_hypotheses=4)
    for name, value in dict(prefixes=["a"], constraint=object()).items():
        with pytest.raises(ValueError, match=f"{name} must be None for a SavedModel"):
            translator.translate(texts, **{name: value})
    with pytest.raises(ValueError, match="strict must be False for a SavedModel"):
        translator.translate(texts, strict=True)
    with pytest.raises(ValueError, match="temperature must be left out for a SavedModel"):
        translator.sample(texts)
    with pytest.raises(ValueError, match="texts must hold strings"):
        translator.translate([None])
    for part in ("model", "config", "tokenizer"):
        with pytest.raises(AttributeError, match=f"shows no {part}, .*load the folder that it was"):
            getattr(translator, part).max_length  # noqa: B018


def test_what_loading_refuses(saved_model, tmp_path, monkeypatch):
    for options, name in (
        (dict(engine="ctranslate2"), "engine"),
        (dict(precision="int8"), "precision"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be left out for a SavedModel"):
            Translator.load(saved_model, **options)
    with pytest.raises(ValueError, match="target_language must be None: those of an exported"):
        Translator.load(saved_model, target_language="de")
    with pytest.raises(ValueError, match=r"must have the signatures \['nbest', 'translate'\]"):
        Translator.load(saved_model.parent / "other")
    assert exported.exported_engine(tmp_path) is None


@pytest.mark.parametrize(
    ("module", "extra"), [("tensorflow_text", "tensorflow"), ("onnxruntime", "onnx")]
)
def test_a_missing_package(module, extra, saved_model, onnx_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    runner = "keras_transformer.inference.engines.onnx_runner"
    monkeypatch.delitem(sys.modules, runner, raising=False)
    folder = saved_model if extra == "tensorflow" else onnx_folder
    with pytest.raises(ImportError, match=f'running it needs the extra "{extra}"'):
        Translator.load(folder)
