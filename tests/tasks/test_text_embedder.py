"""TextEmbedder: pooled hidden states of `transformers`; nearest vectors in plain NumPy."""

import json

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import TextClassifier, TextEmbedder, load_pretrained
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
TEXTS = ["a good film", "", "the bad films the good film a film", "bad", "A good  film"]
KINDS = ("Transformer", "Pooling")


def write_modules(folder, pooling, kinds=KINDS):
    modules = [
        {"idx": i, "path": f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def flags(*modes):
    every = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    return {f"pooling_mode_{x}": x in modes for x in every} | {"word_embedding_dimension": 16}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A bare BERT of `transformers`, and its folder."""
    folder = tmp_path_factory.mktemp("source")
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=12, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return model, folder


@pytest.fixture(scope="module", params=["mean", "cls"])
def embedder(request, theirs):
    folder = theirs[1]
    mode = {"mean": "mean_tokens", "cls": "cls_token"}[request.param]
    write_modules(folder, flags(mode))
    found = load_pretrained(folder)
    assert isinstance(found, TextEmbedder) and found.pooling == request.param
    return found


def by_hand(model, tokenizer, text, pooling):
    (ids,) = tokenizer.encode([text])
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
    return hidden[0] if pooling == "cls" else hidden.mean(0)


def test_parity(embedder, theirs):
    expected = np.stack(
        [by_hand(theirs[0], embedder.tokenizer, text, embedder.pooling) for text in TEXTS]
    )
    found = embedder.embed(TEXTS, normalize=False)
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), 16)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    lengths = np.sqrt((expected**2).sum(1, keepdims=True))
    np.testing.assert_allclose(embedder.embed(TEXTS), expected / lengths, atol=1e-4)


def test_a_text_has_the_same_vector_alone(embedder, tmp_path):
    found = embedder.embed(TEXTS)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(found, alone, atol=1e-5)
    few = embedder.embed(TEXTS, tokens_per_batch=24)
    np.testing.assert_allclose(found, few, atol=1e-5)
    assert embedder.embed([]).shape == (0, 16)
    embedder.save(tmp_path)
    again = TextEmbedder.load(tmp_path)
    assert again.pooling == embedder.pooling
    np.testing.assert_allclose(again.embed(TEXTS), found, atol=1e-5)
    other = TextEmbedder.load(tmp_path, pooling={"mean": "cls", "cls": "mean"}[embedder.pooling])
    assert np.abs(other.embed(TEXTS) - found).max() > 0.01


def test_the_head_makes_no_difference(theirs, tmp_path):
    (theirs[1] / "modules.json").unlink(missing_ok=True)
    imported = load_pretrained(theirs[1])
    imported.save(tmp_path)
    found = TextEmbedder.load(tmp_path)
    assert imported.model.config.head == "pooled" and found.pooling == "mean"
    other = TextEmbedder(imported.model.with_head("masked_lm"), imported.tokenizer)
    np.testing.assert_allclose(found.embed(TEXTS), other.embed(TEXTS), atol=1e-5)
    with pytest.raises(ValueError, match="TextEmbedder and the command embed"):
        TextClassifier.load(tmp_path)


def test_the_most_similar(embedder):
    candidates = ["bad films", *TEXTS, "the film"]
    texts = ["bad", "a good film"]
    found = embedder.similar(texts, candidates, 3)
    cosines = embedder.embed(texts) @ embedder.embed(candidates).T
    for row, matches in zip(cosines, found, strict=True):
        best = np.sort(row)[::-1][:3]
        np.testing.assert_allclose([x.score for x in matches], best, atol=1e-5)
        np.testing.assert_allclose(row[[x.index for x in matches]], best, atol=1e-5)
    assert candidates[found[0][0].index] == "bad" and found[0][0].score == pytest.approx(1)
    scaled = 7 * embedder.embed(candidates)
    again = embedder.similar(texts, scaled, 100)
    assert [len(matches) for matches in again] == [len(candidates)] * 2
    assert {x.index for x in again[0]} == set(range(len(candidates)))
    assert embedder.similar([], candidates) == []


@pytest.fixture(scope="module")
def small():
    tokenizer = TextTokenizer.train(["a good film", "bad films"], "wordpiece", 40)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=12)
    return BERT(BERTConfig(tokenizer.vocab_size, **sizes)), tokenizer


@pytest.mark.once("texts and shapes")
def test_bad_input(small):
    with pytest.raises(
        ValueError, match=r"pooling must be one of \('mean', 'cls', 'max'.* got 'sum'"
    ):
        TextEmbedder(*small, "sum")
    embedder = TextEmbedder(*small)
    for texts, message in (("a film", "got the one string"), ([1], "texts must hold strings")):
        with pytest.raises(ValueError, match=message):
            embedder.embed(texts)
    with pytest.warns(UserWarning, match="at most 12 tokens each.*it is cut"):
        embedder.embed(["a film " * 9])
    with pytest.raises(ValueError, match="at most 12 tokens each"):
        embedder.embed(["a film " * 9], strict=True)
    with pytest.raises(ValueError, match="top_k must be a whole number of at least 1, got 0"):
        embedder.similar(["a"], ["a"], 0)
    for candidates, message in (
        ([], r"candidates must be one or more, got \[\]"),
        (np.zeros((0, 8)), "candidates must be one or more"),
        (np.zeros((2, 9)), r"candidates' shape must be \(m, 8\), got \(2, 9\)"),
        (np.zeros(8), r"candidates' shape must be \(m, 8\), got \(8,\)"),
        (np.full((2, 8), np.nan), "candidates must be finite numbers, got 'NaN or infinity'"),
        ("a film", "got the one string"),
    ):
        with pytest.raises(ValueError, match=message):
            embedder.similar(["a"], candidates)
