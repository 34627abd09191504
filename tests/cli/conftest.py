"""A saved translator, and the command line run on it."""

import functools
import warnings

import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

load = functools.cache(Translator.load)


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    texts = ["one two three", "three two one", "two"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=24, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=40)
    return Translator(model, tokenizer, "en", "de")


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "translator"
    translator.save(folder)
    return folder


@pytest.fixture
def run(monkeypatch):
    """`run(*arguments, stdin="")` -> the result; a failure must be asked for by `status`."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(Translator, "load", load)  # and compile once

    def call(*arguments, stdin="", status=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
        assert result.exit_code == status, result.output
        return result

    return call


@pytest.fixture(scope="session")
def failure():
    """`failure(result)`: the one line on stderr."""

    def line_of(result):
        [line] = result.stderr.splitlines()
        assert line.startswith("keras-transformer: ") and result.stdout == ""
        return line

    return line_of
