"""A published sentence encoder, all-MiniLM-L6-v2, from the zip file of the package with it."""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.cli import app

SPEC = importlib.util.find_spec("all_minilm_l6_v2")
pytestmark = [
    pytest.mark.once("tiny encoders run on each backend"),
    pytest.mark.skipif(SPEC is None, reason="the package all_minilm_l6_v2 is not installed"),
]
TEXTS = [
    "The old man loves the dog.",
    "An elderly man adores his dog.",
    "Interest rates rose again in March.",
    "Naïve café: 12,345 ½ tokens — and a word like antidisestablishmentarianism?",
    "a",
    "A long text. " * 40,
]


@pytest.fixture(scope="module")
def archive():
    return Path(SPEC.submodule_search_locations[0], "model.zip")


def theirs(folder):
    """Return the vectors by `transformers`: a BERT, the mean over its tokens, normalized."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    inputs = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].float()
    mean = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean, dim=-1).numpy()


@pytest.fixture(scope="module")
def embedder(archive):
    return load_pretrained(archive)


def test_its_vectors(archive, embedder, tmp_path):
    assert isinstance(embedder, TextEmbedder)
    vectors = embedder.embed(TEXTS)
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "theirs")
    expected = theirs(tmp_path / "theirs")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-5)
    assert (vectors[0] @ vectors[1:].T).argmax() == 0  # the paraphrase


def test_the_command(archive, embedder, tmp_path):
    arguments = ["import", str(archive), str(tmp_path / "minilm")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    saved = TextEmbedder.load(tmp_path / "minilm")
    np.testing.assert_allclose(saved.embed(TEXTS[:2]), embedder.embed(TEXTS[:2]), atol=1e-6)
