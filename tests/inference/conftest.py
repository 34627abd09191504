"""A small translator, and its translation of each text."""

import random

import pytest

from keras_transformer.text import SentencePieceTokenizer
from tests.inference.small_translator import SHORT, TEXTS, WORDS, make


@pytest.fixture(scope="session")
def tokenizer():
    choose = random.Random(0).choices
    texts = [" ".join(choose(WORDS, k=1 + i % 6)) for i in range(200)]
    return SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)


@pytest.fixture(scope="session")
def translator(tokenizer):
    return make(tokenizer)


@pytest.fixture(scope="session")
def alone(translator):
    """The translation of each text, alone in its batch."""
    return {text: translator.translate([text], **SHORT)[0] for text in TEXTS}
