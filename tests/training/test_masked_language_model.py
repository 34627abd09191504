"""Pretraining on whole sentences: what is measured, saved and used; bad input."""

import json
import random

import numpy as np
import pytest
from keras import ops

from keras_transformer import MaskFiller
from keras_transformer.data.documents import read_sentences
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.saved.folder import load_with_tokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.masked_language_model import batches, train
from keras_transformer.training.task import TaskRun
from tests.text.test_encodings import folder_of

WORDS = "ba be bi bo bu da de di do du".split()
WIDTHS = dict(d_model=16, num_layers=1, num_heads=2)
SIZES = dict(vocab_size=64, dropout=0.0, max_length=32, **WIDTHS)
STEPS = dict(tokens_per_batch=8192, warmup_steps=10, peak_learning_rate=1e-2)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents of three sentences each."""
    generator, path = random.Random(0), tmp_path_factory.mktemp("texts") / "documents.txt"
    documents = []
    for _ in range(200):
        lines = [" ".join(generator.choices(WORDS, k=3)) for _ in range(3)]
        documents.append("\n".join(lines))
    path.write_text("\n\n".join(documents))
    return path


def test_sentence_order(text, tmp_path):
    albert = dict(inputs="sentence_order", longest_mask=3, d_embedding=8, shared_blocks=True)
    train([text], text, tmp_path, **albert, **SIZES, **STEPS, epochs=1)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["validation"]
    model, tokenizer = load_with_tokenizer(tmp_path, "encoder")
    config = model.config
    assert config.head == "pretraining" and config.shared_blocks and config.d_embedding == 8
    run = TaskRun(tokens_per_batch=8192, seed=0)
    options = "sentence_order", 3, read_sentences(text), False
    validation = batches(run, model, tokenizer, *options)
    inputs, labels = validation.batch(0)
    assert len(validation) == 1
    found = {name: ops.convert_to_numpy(x) for name, x in model(inputs).items()}
    right = found["next_sentence"].argmax(-1) == labels["next_sentence"]
    assert metrics["sentence_order_accuracy"] == pytest.approx(right.mean())
    chosen = labels["masked_lm"] != 0
    logits, masked = found["masked_lm"][chosen], labels["masked_lm"][chosen]
    assert metrics["accuracy"] == pytest.approx((logits.argmax(-1) == masked).mean())
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert metrics["loss"] == pytest.approx(-log_p[range(len(masked)), masked].mean(), abs=1e-4)
    ((candidate,),) = MaskFiller.load(tmp_path).fill(["ba [MASK] be"], 1)
    assert 0 < candidate.probability <= 1


def test_full_sentences(text, tmp_path):
    train([text], text, tmp_path, inputs="full_sentences", **SIZES, **STEPS, epochs=2)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["validation"]
    assert 0 < metrics["loss"] < 4.2 and "full_sentences_accuracy" not in metrics


def test_bad_input(text, tmp_path):
    with pytest.raises(ValueError, match="inputs must be one of .*, got 'pairs'"):
        train([text], text, tmp_path, inputs="pairs")
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(ValueError, match=r"empty.txt must have a line of text, got none"):
        train([tmp_path / "empty.txt"], text, tmp_path / "run", inputs="full_sentences")
    (tmp_path / "one.txt").write_text("ba be\nbi bo\n")
    with pytest.raises(ValueError, match="documents must be two or more, got 1"):
        train([tmp_path / "one.txt"], text, tmp_path / "run", inputs="next_sentence", vocab_size=64)


def test_sentences_of_a_document_have_spaces_between_them(tmp_path):
    folder_of("roberta", tmp_path / "tokenizer")
    special = ["<unk>", "<mask>"]
    tokenizer = TextTokenizer.read(tmp_path / "tokenizer").with_special_tokens(special)
    text = ["Rome is old;", "in Rome lives Ann."]
    model = BERT(BERTConfig(tokenizer.vocab_size, max_length=32, **WIDTHS))
    run = TaskRun(tokens_per_batch=8192, seed=0)
    made = batches(run, model, tokenizer, "full_sentences", 1, [text])
    ids = [x for sentence in made.documents[0] for x in sentence]
    assert [ids] == tokenizer.encode([" ".join(text)], framed=False)
