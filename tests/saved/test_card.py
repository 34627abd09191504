"""Model cards: read by huggingface_hub, kept once edited."""

import re

import pytest

from keras_transformer.saved.card import CARD, MISSING, Run, card_text, write_card
from keras_transformer.text import WordTokenizer
from keras_transformer.translate.translator import Translator

pytestmark = pytest.mark.once("text alone")
CONFIG = {
    "source_language": "en",
    "target_language": "de_DE",
    "model": {"d_model": 8, "tie": True, "labels": ["a|b"], "none": None},
}
RUN = Run(
    "python -m training.translation --recipe grammar",
    "training.translation",
    {"recipe": "grammar", "seed": 0, "rate": 0.1},
    [("train.tsv", 1234, "ab" * 32), ("huge.tsv", 2**31, None)],
    {"keras": "3.15", "torch": "2.13"},
    {"test": {"bleu": 41.5, "sentences": 10, "bleu_signature": "x"}, "seconds": 1.23456789},
)


def test_hugging_face_reads_it():
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card_text("my model", CONFIG, RUN)).data
    assert data.language == ["en", "de"]
    assert (data.pipeline_tag, data.library_name) == ("translation", "keras_transformer")
    (result,) = data.eval_results
    assert (result.task_type, result.dataset_name) == ("translation", "test")
    assert (result.metric_type, result.metric_value) == ("bleu", 41.5)
    assert data.model_name == "my model"


def test_it_says_what_is_known():
    text = card_text("my model", CONFIG, RUN)
    for line in (
        "# my model",
        "| d_model | 8 |",
        '| labels | ["a\\|b"] |',
        "keras-transformer translate 'my model' < texts.txt",
        f"| `train.tsv` | 1,234 | {'ab' * 32} |",
        "| `huge.tsv` | 2,147,483,648 |  |",
        "python -m training.translation --recipe grammar",
        "| rate | 0.1 |",
        "keras 3.15, torch 2.13",
        "### test",
        "| bleu | 41.5 |",
        "| seconds | 1.23457 |",
    ):
        assert f"{line}\n" in text, line
    assert "none" not in text
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == [
        *("Model details", "How to use", "Training data", "Training procedure", "Evaluation"),
        "Bias, risks and limitations",
    ]


def test_it_says_what_is_not_known():
    text = card_text("x", {"task": "text_classification", "model": {}})
    assert text.count(MISSING) == 5
    assert 'pipeline_tag: "text-classification"\n' in text and "language" not in text.split("##")[0]
    assert "pipeline_tag" not in card_text("x", {"task": "pretrained"})


def test_an_edited_card_is_kept(tmp_path):
    path = tmp_path / CARD
    assert write_card(tmp_path, CONFIG)
    first = path.read_text("utf-8")
    assert write_card(tmp_path, CONFIG, RUN)  # nobody edited the first one
    second = path.read_text("utf-8")
    assert "train.tsv" in second and "train.tsv" not in first
    path.write_bytes(second.replace("\n", "\r\n").encode())  # what Git does on Windows
    assert write_card(tmp_path, CONFIG, RUN)
    assert path.read_text("utf-8") == second
    path.write_text(second.replace("Intended", "Our intended"), "utf-8")
    edited = path.read_bytes()
    assert not write_card(tmp_path, CONFIG)
    assert path.read_bytes() == edited


@pytest.mark.parametrize("content", [b"", b"# Mine\n", b"\xff\xfe", b"text\nmore"])
def test_another_readme_is_kept(tmp_path, content):
    (tmp_path / CARD).write_bytes(content)
    assert not write_card(tmp_path, CONFIG, RUN)
    assert (tmp_path / CARD).read_bytes() == content


def test_save_writes_a_card(tiny_transformer, tmp_path):
    tokenizer = WordTokenizer.train(["one two"], ["three four"], min_count=1)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size)
    translator = Translator(model, tokenizer, "en", "de")
    translator.save(tmp_path)
    assert f"| d_model | {model.config.d_model} |" in (tmp_path / CARD).read_text("utf-8")
    (tmp_path / CARD).write_text("mine")
    translator.save(tmp_path)
    assert (tmp_path / CARD).read_text() == "mine"
