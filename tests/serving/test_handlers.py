"""What runs a batch: a translator, a SavedModel, the replicas."""

import keras
import pytest
from fastapi.testclient import TestClient

from keras_transformer import export
from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.serving import catalogue as catalogue_module
from keras_transformer.serving.handlers import ReplicaHandler, TranslatorHandler
from keras_transformer.serving.queue import Batcher
from keras_transformer.translate.engines import exported
from keras_transformer.translate.engines.engine import Hypothesis


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_a_batch_is_not_split_again(catalogue, monkeypatch):
    (handler,) = catalogue.route("en", "de")
    asked = []

    def hypotheses(request, search):
        asked.append((len(request.texts), request.tokens_per_batch))
        return [[Hypothesis("", 0.0)]] * len(request.texts)

    monkeypatch.setattr(handler.translator, "hypotheses", hypotheses)
    batcher = Batcher(tokens_per_batch=9000, delay=0)
    batcher.submit(handler, ["one"] * 3000).result(10)
    batcher.close()
    assert asked == [(3000, 9000)]


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_replicas_are_asked_for_what_a_translator_does(translators):
    asked = []

    def ask(*arguments):
        asked.append(arguments)
        return "found"

    own = TranslatorHandler(translators[0])
    handler = ReplicaHandler(ask, translators[0].tokenizer, 48, True, True)
    assert handler.read(["one two", ""]) == own.read(["one two", ""])
    assert (handler.max_length, handler.can_attend) == (own.max_length, own.can_attend)
    assert handler.search(("one",), 2, 9) == "found"
    assert handler.search(("one",), 2, 9, (("one", ("eins",)),), None) == "found"
    assert handler.align([("one", "eins")]) == "found"
    assert handler.estimate([("one", "eins")]) == "found"
    assert handler.attention("one", "eins") == "found"
    assert handler.live("one", "", "wait-k", None, True) == "found"
    assert asked == [
        ("search", ["one"], 2, 9),
        ("search", ["one"], 2, 9, (("one", ("eins",)),), None),
        ("align", [("one", "eins")]),
        ("estimate", [("one", "eins")]),
        ("attention", "one", "eins"),
        ("live", "one", "", "wait-k", None, True),
    ]


@pytest.mark.once("places of tokens in a text: no tensor differs")
def test_tokens_that_continue_a_word_are_told(translators):
    handler = TranslatorHandler(translators[0])
    found = handler.attention("one xis. two.", "... xes")
    for side, expected in (
        ("source", ["one", "xis", ".", "two", ".", "</s>"]),
        ("target", [".", ".", ".", "xes", "</s>"]),
    ):
        joined = []
        tokens, continues = found[f"{side}_tokens"], found[f"{side}_continues"]
        for token, is_inside in zip(tokens, continues, strict=True):
            joined[-1:] = [joined[-1] + token] if is_inside else [*joined[-1:], token]
        assert [word for word in joined if word != "▁"] == expected
    assert sum(handler.attention("one", "...")["target_continues"]) == 0


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_tokens_without_a_tokenizer_are_estimated():
    texts = ["", "x" * 40]
    assert ReplicaHandler(None, None, 48, True, True).read(texts) == (texts, [1, 11])


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_what_cannot_be_aligned(translators):
    handler = TranslatorHandler(translators[0])
    links, nothing = handler.align([("one two", "six"), ("one", "one " * 100)])
    assert len(links) == 1 and nothing is None


@pytest.mark.once("made of parts that are tested under each backend")
def test_quality_of_pairs(translators, estimator):
    pairs = [("one two", "six"), (" ", ""), ("one", "one " * 100)]
    handler = TranslatorHandler(translators[0], estimator)
    found = handler.estimate(pairs)
    expected = estimator.estimate(translators[0], ["one two"], ["six"]).tolist()
    assert handler.can_estimate and found == [pytest.approx(expected[0], abs=1e-5), None, None]
    assert 0 < found[0] < 1
    assert handler.estimate([]) == []
    plain = TranslatorHandler(translators[0])
    assert not plain.can_estimate and plain.estimate(pairs) == [None] * 3


@pytest.mark.once("CTranslate2 and PyTorch")
def test_another_engine(translators, folders):
    options = dict(engine="ctranslate2", precision="float32", beam_size=1, max_extra_length=5)
    catalogue = Catalogue.load([folders[0]], **options)
    texts = ["one two three.", "six"]
    with TestClient(create_app(lambda: catalogue, Settings())) as client:
        asked = dict(q=texts, source="en", target="de")
        translations = client.post("/translate", json=asked).json()["translatedText"]
        assert client.post("/translate", json=asked | dict(format="html")).status_code == 200
    assert translations == translators[0].translate(texts, beam_size=1, max_extra_length=5)
    assert (folders[0] / ".ctranslate2" / "model.bin").is_file()


@pytest.mark.once("onnxruntime alone")
def test_onnx_graphs(monkeypatch, tmp_path):
    (tmp_path / "graphs").mkdir()
    asked = []

    class Program:
        facts = {"search": {"length_penalty": 1.0, "scoring": "transformers"}}  # noqa: RUF012

        def nbest(self, text, **options):
            asked.append((text, options))
            return [("best", -1.0), ("other", -2.0), ("last", -3.0)]

    monkeypatch.setattr(exported.OnnxEngine, "__init__", exported.ExportedEngine.__init__)
    engine = exported.OnnxEngine()
    engine._translator = Program()
    monkeypatch.setattr(catalogue_module, "exported_engine", lambda folder: engine)
    with pytest.raises(ValueError, match="must be SOURCE-TARGET=.*for ONNX graphs"):
        Catalogue.load([tmp_path / "graphs"])
    with pytest.raises(ValueError, match="min_length must be left out for ONNX graphs, got 3"):
        Catalogue.load([f"en-de={tmp_path / 'graphs'}"], beam_size=2, min_length=3)
    given = dict(beam_size=2, min_length=0)
    catalogue = Catalogue.load([f"en-de={tmp_path / 'graphs'}"], **given)
    (served,) = catalogue.route("en", "de")
    asked.clear()
    assert served.search(["one"], 2) == [["best", "other"]]
    assert served.search(["one"], 3) == [["best", "other", "last"]]
    assert [options["beam_size"] for _, options in asked] == [2, 3]
    own = dict(length_penalty=1.0, scoring="transformers", max_extra_length=50, max_length=None)
    assert all(text == "one" and own.items() <= options.items() for text, options in asked)
    assert list(catalogue.models) == ["graphs"] and served.max_length is None
    assert not catalogue.models["graphs"].any.facts()["can_score"]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exports are TensorFlow's")
def test_saved_models(translators, folders, tmp_path, in_this_process):
    with in_this_process("saved_model"):
        path = export.saved_model(folders[0], tmp_path / "served", beam_size=4)
    with pytest.raises(ValueError, match="must be SOURCE-TARGET="):
        Catalogue.load([tmp_path / "served"])
    catalogue = Catalogue.load([f"en-de={path}"])
    (handler,) = catalogue.route("en", "de")
    texts = ["one two three.", "six"]
    assert [x[0] for x in handler.search(texts, 1)] == translators[0].translate(texts)
    expected = [[x.text for x in y] for y in translators[0].nbest(texts, num_hypotheses=3)]
    assert handler.search(texts, 3) == expected
    assert list(catalogue.models) == ["served"] and not handler.can_attend
