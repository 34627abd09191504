"""A small translator, and its translation of each text."""

import pytest

from tests.inference.small_translator import SHORT, TEXTS, made_tokenizer, make


@pytest.fixture(scope="session")
def tokenizer():
    return made_tokenizer()


@pytest.fixture(scope="session")
def translator(tokenizer):
    return make(tokenizer)


@pytest.fixture(scope="session")
def alone(translator):
    """The translation of each text, alone in its batch."""
    return {text: translator.translate([text], **SHORT)[0] for text in TEXTS}
