"""A metric, learned from made-up scores of translations."""

import json
import random

import pytest

from keras_transformer import LearnedMetric
from keras_transformer.training.metric_training import train

SIZES = dict(
    vocab_size=60, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=16,
    tokens_per_batch=256, epochs=20, warmup_steps=5, peak_learning_rate=1e-2,
)  # fmt: skip


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("with_reference", [True, False])
def test_a_run(tmp_path, with_reference):
    """A translation is right if it names the source's animal."""
    draw, animals = random.Random(0), {"dog": "Hund", "cat": "Katze"}
    for name, count in (("train", 160), ("test", 20)):
        lines = []
        for _ in range(count):
            animal, other = draw.choice([*animals]), draw.choice([*animals.values()])
            right = animals[animal]
            reference = right if with_reference else ""
            lines.append(f"a {animal}\tdas ist {other}\t{reference}\t{float(right == other)}\n")
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    train(tmp_path / "train.tsv", tmp_path / "test.tsv", tmp_path / "run", **SIZES)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert metrics["pearson"] > 0.9
    metric = LearnedMetric.load(tmp_path / "run")
    references = ["Hund", "Hund"] if with_reference else None
    good, bad = metric.score(["a dog"] * 2, ["das ist Hund", "das ist Katze"], references)
    assert good > 0.7 > 0.3 > bad and metric.needs_reference == with_reference


@pytest.mark.once("files")
@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("", "lines of .*x.tsv must be one or more"),
        ("a\tb\t1\n", "columns in line 1 of .*x.tsv must be 4: source, translation, refer.*got 3"),
        ("a\tb\tc\tnan\n", "the scores in .*x.tsv must be finite numbers"),
        ("a\tb\tc\tx\n", "the scores in .*x.tsv must be finite numbers"),
        ("a\tb\tc\t1\na\tb\t\t1\n", "references in .*x.tsv must be 0 or 2, got 1"),
    ],
)
def test_files_are_checked(tmp_path, lines, error):
    (tmp_path / "x.tsv").write_text(lines)
    with pytest.raises(ValueError, match=error):
        train(tmp_path / "x.tsv", tmp_path / "x.tsv", tmp_path / "run")


@pytest.mark.once("files")
def test_both_files_have_references(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\tc\t1\n")
    (tmp_path / "y.tsv").write_text("a\tb\t\t1\n")
    with pytest.raises(ValueError, match="the texts in .*y.tsv must be .*'reference'.*as in"):
        train(tmp_path / "x.tsv", tmp_path / "y.tsv", tmp_path / "run")
