"""On its way through library, command and server, a text is checked once and tokenized once."""

from collections import Counter

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from keras_transformer.cli import app as commands
from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.text import SentencePieceTokenizer, tokenizer
from keras_transformer.text.glossary import Glossary
from keras_transformer.translate.translator import Translator

TEXTS = ["one two.", "three four five.", "ten nine.", " ".join(["six seven"] * 5) + "."]
OPTIONS = dict(beam_size=2, max_extra_length=4)


@pytest.fixture
def counts(monkeypatch):
    """Two counters by text: checks, and tokenizations."""
    checked, tokenized = Counter(), Counter()
    check, encode = tokenizer._require_strings, SentencePieceTokenizer._encode

    def counting_check(texts, name):
        checked.update(texts)
        return check(texts, name)

    def counting_encode(own, side, texts, *options):
        tokenized.update(texts)
        return encode(own, side, texts, *options)

    monkeypatch.setattr(tokenizer, "_require_strings", counting_check)
    monkeypatch.setattr(SentencePieceTokenizer, "_encode", counting_encode)
    return checked, tokenized


def once(counts):
    return all([count[text] for text in TEXTS] == [1] * len(TEXTS) for count in counts)


def test_library(translators, folders, counts):
    translators[0].translate(TEXTS, **OPTIONS)
    assert once(counts)
    for own in counts:
        own.clear()
    translators[0].translate(TEXTS, constraint=Glossary({"two": ["zwei"]}), **OPTIONS)
    assert once(counts)
    translator = Translator.load(folders[0], engine="ctranslate2")
    for own in counts:
        own.clear()
    translator.translate(TEXTS, **OPTIONS)
    assert once(counts)


def test_command(folders, counts):
    arguments = ["translate", str(folders[0]), "--beam-size=2", "--max-extra-length=4"]
    result = CliRunner().invoke(commands, arguments, input="\n".join(TEXTS))
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == len(TEXTS)
    assert once(counts)


@pytest.mark.parametrize("path", ["/translate", "/v1/models/en-de:predict"])
def test_server(folders, counts, path):
    asked = {
        "/translate": dict(q=TEXTS, source="en", target="de"),
        "/v1/models/en-de:predict": dict(instances=TEXTS),
    }
    with TestClient(
        create_app(lambda: Catalogue.load(folders[:1], **OPTIONS), Settings())
    ) as client:
        for own in counts:
            own.clear()
        assert client.post(path, json=asked[path]).status_code == 200
    assert once(counts)
