"""`keras-transformer plot heads`: a table and a picture."""

import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.once("tests/analysis/test_heads.py runs on every backend")


@pytest.fixture(scope="module")
def folder(tiny_transformer, tmp_path_factory):
    texts = ["The lamp is old.", "Die Lampe ist alt."] * 5
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=300)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=250)
    folder = tmp_path_factory.mktemp("heads")
    Translator(model, tokenizer, "en", "de").save(folder)
    return folder


def test_table_and_picture(folder, tmp_path):
    command = ["plot", "heads", str(folder), "-o", str(tmp_path / "a.svg"), "--sentences", "2"]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        *("relation", "attention", "layer.head", "accuracy", "weight", "distance", "chance")
    ]
    assert len(lines) == 1 + 9 + 1 and lines[-1].endswith("a.svg")
    assert any(line.startswith("antecedent        cross") for line in lines)
    assert "antecedent" in (tmp_path / "a.svg").read_text("utf-8")


def test_nothing_is_done_for_another_kind_of_picture(folder, tmp_path):
    command = ["plot", "heads", str(folder), "-o", str(tmp_path / "a.txt")]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code != 0 and not list(tmp_path.iterdir())
