"""Parsing a made-up language: a word says which bracket it begins."""

import json
import random
import zipfile

import pytest

from keras_transformer import Parser, Translator
from keras_transformer.data.trees import linearize, read_treebank
from keras_transformer.evaluation.assess import parsing_scores
from keras_transformer.training.parsing import train


def test_a_run(tmp_path):
    generator = random.Random(0)

    def tree():
        phrases = []
        for _ in range(generator.randrange(1, 3)):
            label = generator.choice(["NP", "VP"])
            head = f"(H {label.lower()}{generator.randrange(3)})"
            phrases.append(f"({label}-SBJ {head}{' (X x)' * generator.randrange(2)})")
        return f"( (S {' '.join(phrases)} (. .)) )"

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number, count in {1: 300, 2: 300, 170: 20, 185: 40}.items():
            content = "\n".join(tree() for _ in range(count))
            archive.writestr(f"combined/wsj_{number:04d}.mrg", content)
    train(
        tmp_path / "x.zip", tmp_path / "run", d_model=32, num_layers=1, num_heads=2, dropout=0.0,
        max_length=32, tokens_per_batch=256, epochs=8, peak_learning_rate=1e-2, warmup_steps=20,
    )  # fmt: skip
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert metrics["trees"] == 40
    assert metrics["constrained"]["well_formed"] == 100.0
    assert metrics["constrained"]["f1"] > 80
    assert metrics["constrained"]["f1"] > metrics["right_branching"]["f1"]

    # What was saved gives the trees of the test set.
    trees = read_treebank(tmp_path / "x.zip")[185]
    parser = Parser.load(tmp_path / "run")
    found = parser.parse([" ".join(tree.words()) for tree in trees], max_extra_length=32)
    lines = [linearize(tree, tags=True) for tree in found]
    assert parsing_scores(lines, trees)["f1"] == pytest.approx(metrics["constrained"]["f1"])
    for tree, expected in zip(found, trees, strict=True):
        assert tree.words() == expected.words() and tree.label == "S"
    with pytest.raises(ValueError, match="not a saved translator but a parser: use Parser and the"):
        Translator.load(tmp_path / "run")


def test_nothing_to_test_on(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("combined/wsj_0001.mrg", "( (S (X x)) )")
    with pytest.raises(ValueError, match="trees for validation in .*x.zip must be one or more"):
        train(tmp_path / "x.zip", tmp_path / "run")
