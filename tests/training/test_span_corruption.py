"""Pretraining a tiny T5, and training it further on a task that is written as text."""

import json
import random

import pytest

from keras_transformer.training.span_corruption import train
from keras_transformer.training.translation import train as train_further
from keras_transformer.translate.translator import Translator

WORDS = "ba be bi bo bu da de di do du".split()


def test_pretrained_and_trained_further(tmp_path):
    generator = random.Random(0)
    lines = []
    for _ in range(400):
        lines.append(" ".join(generator.choice(WORDS) * 2 for _ in range(6)))
    (tmp_path / "text.txt").write_text("\n".join(lines))
    sizes = dict(vocab_size=320, d_model=16, d_ff=32, num_layers=1, num_heads=2, length=24, rows=8)
    options = dict(steps=120, peak_learning_rate=1e-2, warmup_steps=20)
    train([tmp_path / "text.txt"], tmp_path / "pretrained", **sizes, **options)
    found = json.loads((tmp_path / "pretrained" / "metrics.json").read_text())["validation"]
    assert found["loss"] < 4.5  # of log 424
    start = Translator.load(tmp_path / "pretrained")
    assert len(start.tokenizer.sentinel_ids) == 100

    for name, count in (("train", 300), ("validation", 20), ("test", 20)):
        pairs = []
        for _ in range(count):
            words, label = generator.choices(WORDS, k=4), generator.choice(["good", "bad"])
            words[generator.randrange(4)] = label
            pairs.append(f"task: {' '.join(words)}\t{label}\n")
        (tmp_path / f"{name}.tsv").write_text("".join(pairs))
    settings = ["corpus=files", "tokens_per_batch=512", "num_buckets=1", "epochs=12"]
    settings += ["max_length_ratio=99", "warmup_steps=10", "peak_learning_rate=0.01"]
    settings += ["average_last=1", "beam_size=1"]
    train_further(
        output=tmp_path / "task",
        start_from=tmp_path / "pretrained",
        changes=settings,
        **{f"{name}_files": [tmp_path / f"{name}.tsv"] for name in ("train", "validation", "test")},
    )
    found = json.loads((tmp_path / "task" / "metrics.json").read_text())["test"]
    assert found["exact_match"] > 80


def test_bad_input(tmp_path):
    (tmp_path / "text.txt").write_text("one line")
    with pytest.raises(ValueError, match="text must have .* lines or more"):
        train([tmp_path / "text.txt"], tmp_path / "run")
