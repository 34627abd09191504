"""Exported translators: what they do as a translator does, and what they refuse.

The SavedModel and the ONNX graphs are made by hand. The tests of the exports compare real ones with
the translators that they came from.
"""

import sys

import pytest

from keras_transformer.translate.engines import exported
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.translator import Translator
from tests.translate.engines import test_graph_runner as graphs

pytestmark = pytest.mark.once("TensorFlow's and onnxruntime's own graphs")
BEAMS = 3


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
    program = graphs.GraphTranslator(onnx_folder)
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
    for name, value in dict(min_length=2, no_repeat_ngram_size=2).items():
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
        with pytest.raises(ValueError, match=f"{name} must be left out for a SavedModel"):
            translator.translate(texts, **{name: value})
    with pytest.raises(ValueError, match="strict must be left out for a SavedModel"):
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
    with pytest.raises(ValueError, match="unscored cannot score: it has no signature `score`"):
        Translator.load(saved_model.parent / "unscored").score(["a"], ["b"])
    assert exported.exported_engine(tmp_path) is None


@pytest.mark.parametrize(
    ("module", "extra"), [("tensorflow_text", "tensorflow"), ("onnxruntime", "onnx")]
)
def test_a_missing_package(module, extra, saved_model, onnx_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    runner = "keras_transformer.translate.engines.graph_runner"
    monkeypatch.delitem(sys.modules, runner, raising=False)
    folder = saved_model if extra == "tensorflow" else onnx_folder
    with pytest.raises(ImportError, match=f'running it needs the extra "{extra}"'):
        Translator.load(folder)
