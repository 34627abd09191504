"""A small translator of random weights, and a report of it on texts that try to be markup."""

import pytest

from keras_transformer.analysis.report import measure
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

EVIL = "<script>alert(1)</script> & \"two\" 'one'"
PAIRS = [
    ("one two", "three"),
    (EVIL, f"three <img src=x onerror=alert(1)> {EVIL}"),
    ("", ""),
    ("one " * 50, "two"),  # longer than the model's max_length
    ("two one two three", "two one two three"),
]
SHORT = dict(max_extra_length=4)


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    texts = ["one two three", "three two one", EVIL]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=48, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size)
    return Translator(model, tokenizer, "en", "de")


@pytest.fixture(scope="module")
def baseline():
    return [f"{EVIL} baseline"] * len(PAIRS)


@pytest.fixture(scope="module")
def report(translator, baseline):
    with pytest.warns(UserWarning, match="it is cut"):
        return measure(translator, PAIRS, worst=4, baseline=baseline, **SHORT)
