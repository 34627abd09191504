"""Exports a trained translator and uses the SavedModel as a stranger would, in a new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from keras_transformer.assessment import read_metrics
from keras_transformer.data.corpora import load_corpus
from keras_transformer.evaluation import table
from keras_transformer.export import saved_model

SENTENCES = 8

# What anyone needs to use the SavedModel: not this package.
PROGRAM = """
import sys
import tensorflow as tf
import tensorflow_text  # its operations are in the SavedModel
translator = tf.saved_model.load(sys.argv[1])
sentences = sys.stdin.read().splitlines()
for line in translator.translate(tf.constant(sentences))["translations"].numpy():
    print(line.decode("utf-8"))
"""


def main(folder: Path) -> None:
    """Exports the translator in `folder`, prints its quality, and translates unseen sentences."""
    path = saved_model(folder, folder / "savedmodel", overwrite=True)
    unseen = load_corpus("grammar").tests["test"][:SENTENCES]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        input="\n".join(source for source, _ in unseen),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(done.stderr)
    print("\nUnseen sentences, translated by the SavedModel in a process of its own:\n")
    for (source, reference), translation in zip(unseen, done.stdout.splitlines(), strict=True):
        mark = "" if translation == reference else f"\n   (expected: {reference})"
        print(f"   {source}\n-> {translation}{mark}\n")
    metrics = read_metrics(folder)
    print(f"{table(metrics['test'])}\n")
    run = metrics["training"]
    print(f"Trained on {run['backend']} for {run['seconds']:.0f} s on {run['cores']} cores.")
    print(f"The run, its model, tokenizer and metrics.json: {folder}")
    print(f"The SavedModel, strings in and strings out:     {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
