"""Train a text classifier, a small BERT from scratch or a pretrained encoder, and measure it.

Each line of a file is a text, a tab and a label; the first line holds column names, as in GLUE's
form of SST-2 (Socher et al. 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.tasks.text_classifier import TextClassifier
from keras_transformer.training.fine_tuning import ENCODER, batches_for, encoder_for
from keras_transformer.training.task import TaskRun, evaluated, task

Labelled = tuple[Sequence[str], Sequence[int]]  # texts, and the number of the label of each text


@task(
    **ENCODER,
    output=Path("saved_models/text_classification"),
    num_layers=4,
    dropout=0.3,
    max_length=128,
    tokens_per_batch=4096,
    epochs=8,
    peak_learning_rate=1e-3,
    warmup_steps=500,
)
def train(run: TaskRun, train_file: Path, validation_file: Path, test_file: Path) -> None:
    """Train a text classifier; save it with its tokenizer and its accuracy.

    --start-from takes a run of `--task fill`, or an imported BERT or variant of it (RoBERTa,
    MPNet, ...), DeBERTa or ESM-2.

    Args:
        train_file: Column names, then texts and labels; .tsv or .gz.
        validation_file: The same, to choose the epoch.
        test_file: The same, for the final measurement.
    """
    classify(run, *_labelled(train_file, validation_file, test_file))


def classify(
    run: TaskRun,
    parts: dict[str, Labelled],
    labels: Sequence[str],
    letters_per_word: int | None = None,
) -> None:
    """Train a text classifier, measure and save it.

    Args:
        run: The run.
        parts: Texts and label numbers for "train", "validation" and "test".
        labels: Names of the labels.
        letters_per_word: See `TextClassifier`.
    """
    head: dict[str, Any] = dict(labels=tuple(labels), head_dropout=run.dropout)
    texts, new = parts["train"][0], dict(num_types=1)
    model, tokenizer = encoder_for(run, "sequence_classification", texts, new=new, **head)
    training, validation, test = (
        batches_for(
            run,
            model,
            tokenizer.encode(parts[name][0], max_length=model.config.max_length),
            parts[name][1],
            shuffle=name == "train",
        )
        for name in ("train", "validation", "test")
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(run.optimizer(run.epochs * len(training)), loss, metrics=["accuracy"])

    # All epochs are trained; the weights of the best epoch on the validation set are restored.
    best = dict(monitor="val_accuracy", mode="max", restore_best_weights=True, patience=run.epochs)
    data, stopping = training.dataset(), keras.callbacks.EarlyStopping(**best)
    history = run.fit(model, data, len(training), validation_data=validation, callbacks=[stopping])
    run.save(TextClassifier(model, tokenizer, letters_per_word=letters_per_word))
    accuracy = evaluated(model, test)["accuracy"]
    scores = dict(test_accuracy=accuracy, validation_accuracy=max(history["val_accuracy"]))
    run.record(scores, model=model)
    print(f"accuracy {accuracy:.4f}; saved to {run.output}")


def _labelled(*files: Path) -> tuple[dict[str, Labelled], list[str]]:
    """Read the texts of each file with their label numbers; return also the labels."""
    parts: dict[str, Labelled] = {}
    labels: list[str] = []
    for name, path in zip(("train", "validation", "test"), files, strict=True):
        titles, *pairs = read_pairs(path) or [("", "")]
        require(len(pairs) > 0, f"texts below the column names in {path}", 0, "one or more")
        texts, names = zip(*pairs, strict=True)
        labels = labels or sorted(set(names))  # the labels of the first file, the training file
        require(len(labels) > 1, f"labels in {path}", tuple(labels), "two or more")
        accepted = "column names, without a label"
        require(titles[1] not in labels, f"line 1 of {path}", titles[1], accepted)
        parts[name] = texts, numbered(names, tuple(labels), path)
    return parts, labels
