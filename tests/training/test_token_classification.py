"""Tagging made-up sentences in which some words are names."""

import json
import random

import pytest

from keras_transformer.training.token_classification import train


def test_a_run(tmp_path):
    generator, words = random.Random(0), "ba be bi bo bu da de di do du".split()
    names = "Ga Ge Gi Go Gu".split()
    for name, count in (("train", 300), ("test", 40)):
        lines = []
        for _ in range(count):
            sentence = [(word, "O") for word in generator.choices(words, k=6)]
            at = generator.randrange(6)
            sentence[at:at] = [("mister", "O"), (generator.choice(names), "B-person")]
            lines += [f"{word}\t{tag}" for word, tag in sentence] + [""]
        (tmp_path / f"{name}.conll").write_text("\n".join(lines))
    sizes = dict(vocab_size=60, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=16)
    train(
        tmp_path / "train.conll", tmp_path / "test.conll", tmp_path / "run", **sizes,
        tokens_per_batch=256, epochs=12, warmup_steps=10, peak_learning_rate=1e-2,
    )  # fmt: skip
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert metrics["f1"] > 0.8


def test_unknown_tag(tmp_path):
    (tmp_path / "train.conll").write_text("Hello\tO\nAnn\tB-person\n")
    (tmp_path / "test.conll").write_text("Hello\tO\nRome\tB-place\n")
    message = r"test.conll: a label must be one of \('B-person', 'O'\), got 'B-place'"
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "train.conll", tmp_path / "test.conll", tmp_path / "run")
