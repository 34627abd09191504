"""A number for each word, learned from made-up sentences."""

import json
import random

import pytest

from keras_transformer import TokenRegressor
from keras_transformer.training.token_regression import train

TIMES = {"ba": 1.0, "be": 2.0, "du": -1.5}


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_run(tmp_path):
    generator = random.Random(0)
    for name, count in (("train", 200), ("test", 20)):
        sentences = [generator.choices(list(TIMES), k=5) for _ in range(count)]
        lines = ["\n".join(f"{word}\t{TIMES[word]}" for word in x) for x in sentences]
        (tmp_path / f"{name}.tsv").write_text("\n\n".join(lines))
    train(
        tmp_path / "train.tsv", tmp_path / "test.tsv", tmp_path / "run", vocab_size=40, d_model=16,
        num_layers=1, num_heads=2, dropout=0.0, max_length=16, tokens_per_batch=256, epochs=12,
        warmup_steps=5, peak_learning_rate=1e-2,
    )  # fmt: skip
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert metrics["mean_squared_error"] < 0.1
    (found,) = TokenRegressor.load(tmp_path / "run").regress(["ba du be"])
    assert [x.value for x in found] == pytest.approx([1.0, -1.5, 2.0], abs=0.7)


@pytest.mark.once("files")
def test_what_is_no_number(tmp_path):
    (tmp_path / "x.tsv").write_text("ba\t1\nbe\tnan\n")
    with pytest.raises(ValueError, match="numbers of words in .*x.tsv must be finite numbers, got"):
        train(tmp_path / "x.tsv", tmp_path / "x.tsv", tmp_path / "run")
