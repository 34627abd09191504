"""TextScorer: what a CrossEncoder of sentence-transformers says of the same folder."""

import json

import numpy as np
import pytest
import sentence_transformers
import torch

from keras_transformer import TextClassifier, TextScorer, load_pretrained
from keras_transformer.hub.hugging_face_checkpoint import write_model
from tests.backends import cases
from tests.tasks.test_labels import write_text_model

QUERIES = ["a good film", "bad films", "the the bad film film good film"]
TEXTS = ["the film", "the bad film the film", "the good bad film the film a film the film"]
IDENTITY = "torch.nn.modules.linear.Identity"
FORMS = {  # how a folder says the activation
    "nothing": {},
    "config.json": {"sentence_transformers": {"activation_fn": IDENTITY}},
    "older": {"sbert_ce_default_activation_function": IDENTITY},
    "sigmoid": {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}},
}


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def pairs_of(queries, texts):
    return list(zip(queries, texts, strict=True))


def check(source, tmp_path):
    theirs = sentence_transformers.CrossEncoder(str(source))
    load_pretrained(source).save(tmp_path / "ours")
    scorer = TextScorer.load(tmp_path / "ours")
    scores = scorer.score(QUERIES, TEXTS)
    expected = theirs.predict(pairs_of(QUERIES, TEXTS))
    assert scores.shape == (3,) and scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    found = scorer.rank(QUERIES[0], TEXTS)
    ranks = theirs.rank(QUERIES[0], TEXTS)
    assert [x.index for x in found] == [x["corpus_id"] for x in ranks]
    np.testing.assert_allclose([x.score for x in found], [x["score"] for x in ranks], atol=1e-5)
    assert scorer.rank(QUERIES[0], TEXTS, 2) == found[:2] and scorer.rank("a", []) == []
    return scorer


@pytest.mark.parametrize("family", cases(["Bert", "Roberta", "DistilBert"], "Bert"))
def test_families(family, tmp_path):
    check(write_text_model(tmp_path / "source", family, None, "x"), tmp_path)


@pytest.mark.once("files: the function is one of test_labels")
@pytest.mark.parametrize("form", FORMS)
def test_the_activation_of_a_folder(form, tmp_path):
    source = write_text_model(tmp_path / "source", "Bert", None, "x")
    edit(source / "config.json", **FORMS[form])
    scorer = check(source, tmp_path)
    write_model(tmp_path / "back", scorer.model)
    scorer.tokenizer.save(tmp_path / "back")
    theirs = sentence_transformers.CrossEncoder(str(tmp_path / "back"))
    expected = theirs.predict(pairs_of(QUERIES, TEXTS))
    np.testing.assert_allclose(scorer.score(QUERIES, TEXTS), expected, atol=1e-5)


@pytest.mark.once("files")
def test_a_folder_that_a_cross_encoder_saved(tmp_path):
    """It has modules.json, an activation and a length in other files."""
    source = write_text_model(tmp_path / "plain", "Bert", None, "x")
    options = dict(max_length=9, activation_fn=torch.nn.Identity())
    sentence_transformers.CrossEncoder(str(source), **options).save(str(tmp_path / "source"))
    scorer = check(tmp_path / "source", tmp_path)
    assert scorer.max_length == 9 and scorer.score(QUERIES, TEXTS).max() > 1
    settings = tmp_path / "source" / "config_sentence_transformers.json"
    edit(settings, activation_fn="torch.nn.modules.activation.Tanh")
    with pytest.raises(ValueError, match="activation_fn must be one of .*, got .*Tanh"):
        load_pretrained(tmp_path / "source")
    edit(settings, activation_fn=IDENTITY, prompts={"a": "bad "}, default_prompt_name="a")
    with pytest.raises(ValueError, match="default_prompt_name in .* must be empty"):
        load_pretrained(tmp_path / "source")


@pytest.mark.once("files: what its labels mean is tested in test_labels")
def test_a_cross_encoder_of_several_labels_is_a_classifier(tmp_path):
    source = write_text_model(tmp_path / "plain", "Bert", None, "xyz")
    theirs = sentence_transformers.CrossEncoder(str(source))
    theirs.save(str(tmp_path / "source"))
    load_pretrained(tmp_path / "source").save(tmp_path / "ours")
    found = TextClassifier.load(tmp_path / "ours").classify(pairs_of(QUERIES, TEXTS)[:2])
    expected = theirs.predict(pairs_of(QUERIES, TEXTS)[:2], apply_softmax=True)
    for own, row in zip(found, expected, strict=True):
        named = {x.label: x.probability for x in own}
        assert named == pytest.approx(dict(zip("xyz", row, strict=True)), abs=1e-5)


@pytest.mark.once("texts")
def test_bad_input(tmp_path):
    source = write_text_model(tmp_path / "source", "Bert", None, "x")
    load_pretrained(source).save(tmp_path / "ours")
    scorer = TextScorer.load(tmp_path / "ours")
    with pytest.raises(ValueError, match="the number of texts must be 3, one for each of the que"):
        scorer.score(QUERIES, TEXTS[:2])
    with pytest.raises(ValueError, match="top_k must be a whole number of at least 1, got 0"):
        scorer.rank("a", TEXTS, 0)
    with pytest.raises(ValueError, match="at most 20 tokens each"):
        scorer.score(["film " * 30], ["film"], strict=True)
    three = scorer.model.with_head("sequence_classification", labels=("a", "b", "c"))
    with pytest.raises(ValueError, match=r"the model's labels must be one .use TextClassifier"):
        TextScorer(three, scorer.tokenizer)
    with pytest.raises(ValueError, match="max_length must be a whole number of at least 1"):
        TextScorer(scorer.model, scorer.tokenizer, 0)
