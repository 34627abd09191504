"""What runs a batch: a translator, a SavedModel, the replicas."""

import keras
import pytest

from keras_transformer import export
from keras_transformer.inference.pipeline import Hypothesis
from keras_transformer.serving import Catalogue
from keras_transformer.serving.engines import ReplicaEngine, TranslatorEngine, count_tokens
from keras_transformer.serving.queue import Batcher


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_a_batch_is_not_split_again(catalogue, monkeypatch):
    (engine,) = catalogue.route("en", "de")
    asked = []

    def nbest(texts, **options):
        asked.append((len(texts), options["tokens_per_batch"]))
        return [[Hypothesis("", 0.0)]] * len(texts)

    monkeypatch.setattr(engine.translator, "nbest", nbest)
    batcher = Batcher(tokens_per_batch=9000, delay=0)
    batcher.submit(engine, ["one"] * 3000, costs=[3] * 3000).result(10)
    batcher.close()
    assert asked == [(3000, 9000)]


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_replicas_are_asked_for_what_a_translator_does(translators):
    asked = []

    def ask(*arguments):
        asked.append(arguments)
        return "found"

    own = TranslatorEngine(translators[0])
    engine = ReplicaEngine(ask, "en-de", ("en", "de"), translators[0].tokenizer, 48, True)
    assert engine.costs(["one two", ""]) == own.costs(["one two", ""])
    assert (engine.max_length, engine.can_attend) == (own.max_length, own.can_attend)
    assert engine.search(("one",), 2, 9) == "found"
    assert engine.align([("one", "eins")]) == "found"
    assert engine.attention("one", "eins") == "found"
    assert asked == [
        ("en-de", ("en", "de"), "search", ["one"], 2, 9),
        ("en-de", ("en", "de"), "align", [("one", "eins")]),
        ("en-de", ("en", "de"), "attention", "one", "eins"),
    ]


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_tokens_without_a_tokenizer_are_estimated():
    assert count_tokens(None, ["", "x" * 40]) == [1, 11]


@pytest.mark.once("names, folders and languages: no tensor differs")
def test_what_cannot_be_aligned(translators):
    engine = TranslatorEngine(translators[0])
    links, nothing = engine.align([("one two", "six"), ("one", "one " * 100)])
    assert len(links) == 1 and nothing is None


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exports are TensorFlow's")
def test_saved_models(translators, folders, tmp_path):
    path = export.saved_model(folders[0], tmp_path / "served", beam_size=4)
    with pytest.raises(ValueError, match="must be SOURCE-TARGET="):
        Catalogue.load([tmp_path / "served"])
    for folder in (tmp_path / "served", path):
        catalogue = Catalogue.load([f"en-de={folder}"])
        (engine,) = catalogue.route("en", "de")
        texts = ["one two three.", "six"]
        assert [x[0] for x in engine.search(texts, 1)] == translators[0].translate(texts)
        expected = [[x.text for x in y] for y in translators[0].nbest(texts, num_hypotheses=3)]
        assert engine.search(texts, 3) == expected
        assert list(catalogue.models) == ["served"] and not engine.can_attend
