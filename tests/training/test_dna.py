"""Made-up DNA whose class one place says."""

import random

import numpy as np
import pytest

from keras_transformer import TextClassifier
from keras_transformer.data.biology import read_splice_junctions
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.training import dna

SIZES = dict(d_model=16, num_layers=1, num_heads=2, dropout=0.0)


def test_dna(tmp_path):
    generator, lines = random.Random(0), []
    for number in range(600):
        bases = generator.choices("ACGT", k=12)
        label = "EI" if bases[6] == "G" else "IE" if bases[6] == "A" else "N"
        lines += [f"{label},   NAME-{number},  {''.join(bases)}"] * (1 + number % 2)
    (tmp_path / "splice.data").write_text("\n".join(lines))
    dna.train(
        tmp_path / "splice.data", tmp_path / "run", **SIZES, bases=2, tokens_per_batch=512,
        epochs=8, warmup_steps=10, peak_learning_rate=1e-2,
    )  # fmt: skip
    found = read_metrics(tmp_path / "run")
    assert found["naive_bayes"]["test_accuracy"] > 0.9 and found["test_accuracy"] > 0.8
    classifier = TextClassifier.load(tmp_path / "run")
    assert classifier.letters_per_word == 2
    rows = sorted(read_splice_junctions(tmp_path / "splice.data").items())
    parts = dna.split(rows)
    sequences, labels = zip(*parts[0], strict=True)
    answers = classifier.classify(sequences)
    right = [own[0].label == label for own, label in zip(answers, labels, strict=True)]
    assert np.mean(right) == pytest.approx(found["test_accuracy"], abs=1e-6)
    with pytest.raises(ValueError, match="texts must be strings, not pairs"):
        classifier.classify([("ACGT", "ACGT")])
    assert [len(part) for part in parts] == [120, 60, 420]
    assert len(set().union(*parts)) == 600  # none is on two sides


def test_dna_that_is_too_little(tmp_path):
    path = tmp_path / "splice.data"
    path.write_text("EI, a, ACGT\n")
    with pytest.raises(ValueError, match="sequences in .*splice.data must be 10 or more, got 1"):
        dna.train(path, tmp_path / "run")
    rows = (f"EI, {number}, {number:04b}" for number in range(10))
    path.write_text("\n".join(rows).replace("0", "A").replace("1", "C"))
    with pytest.raises(ValueError, match="bases must be at most 4, the length .*, got 5"):
        dna.train(path, tmp_path / "run", bases=5)
