"""Export a trained translator and use the SavedModel without this package, in a new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.config import require
from keras_transformer.data.built_in_corpora import load_corpus
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.evaluation.scores import table
from keras_transformer.export import saved_model
from keras_transformer.training import runs

SENTENCES = 5  # number of sentences shown of each test set, its last ones

# A program that uses the SavedModel without this package.
PROGRAM = """
import sys
import tensorflow as tf
import tensorflow_text  # its operations are in the SavedModel
translator = tf.saved_model.load(sys.argv[1])
sentences = sys.stdin.read().splitlines()
for line in translator.translate(tf.constant(sentences))["translations"].numpy():
    print(line.decode("utf-8"))
"""


def main(folder: Annotated[Path, typer.Argument(help="A run of the grammar recipe.")]) -> None:
    """Export the translator in FOLDER, print its quality, and translate unseen sentences."""
    metrics = read_metrics(folder)
    measured = {"test", "training", "varied"} <= metrics.keys()
    require(
        measured, str(folder), sorted(metrics), "a run with the metrics training, test and varied"
    )
    path = saved_model(folder, folder / "savedmodel", overwrite=True)
    tests = load_corpus("grammar", train_size=1).tests
    unseen = [pair for pairs in tests.values() for pair in pairs[-SENTENCES:]]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        input="\n".join(source for source, _ in unseen),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(done.stderr)
    print("\nUnseen sentences, translated by the SavedModel in a separate process:\n")
    for (source, reference), translation in zip(unseen, done.stdout.splitlines(), strict=True):
        mark = "" if translation == reference else f"\n   (expected: {reference})"
        print(f"   {source}\n-> {translation}{mark}\n")
    for name in tests:
        print(f"{table({'test_set': name, **metrics[name]})}\n")
    run = metrics["training"]
    print(f"Trained on {run['backend']} for {run['seconds']:.0f} s on {run['cores']} cores.")
    print(f"Your own sentences, one per line: keras-transformer translate {folder}")
    print(f"The run, its model, tokenizer and metrics.json: {folder}")
    print(f"The SavedModel, strings in and strings out:     {path}")


if __name__ == "__main__":
    runs.main(main)
