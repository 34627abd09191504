"""Train an encoder, new or pretrained, to predict a number for each word, and measure it.

Each line of a file is a word, a tab and its number, such as a reading time; an empty line ends a
sentence.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keras_transformer.config import require
from keras_transformer.data.tagged import read_tagged
from keras_transformer.losses import MaskedSquaredError
from keras_transformer.tasks.token_regressor import TokenRegressor
from keras_transformer.training.fine_tuning import batches_for
from keras_transformer.training.task import TaskRun, task
from keras_transformer.training.token_classification import WORDS, word_encoder


@task(**WORDS | dict(dropout=0.1))
def train(run: TaskRun, train_file: Path, test_file: Path) -> None:
    """Train a model that predicts a number for each word; save it with its mean squared error.

    --start-from takes a run of `--task fill`, or an imported BERT or variant of it (RoBERTa,
    MPNet, ...), DeBERTa or ESM-2.

    Args:
        train_file: Words and numbers; may be a .gz.
        test_file: The same, for the final measurement.
    """
    words, numbers = _read(train_file)
    test_words, test_numbers = _read(test_file)
    head = dict(labels=("number",), problem_type="regression")
    model, tokenizer, encoded = word_encoder(run, words, **head)

    # The first piece of each word carries its number.
    labels = [_labels(*row) for row in zip(encoded, numbers, strict=True)]
    batches = batches_for(run, model, [ids for ids, _ in encoded], labels)
    model.compile(run.optimizer(run.epochs * len(batches)), MaskedSquaredError())
    run.fit(model, batches.dataset(), len(batches))

    regressor = TokenRegressor(model, tokenizer)
    predicted = [x for row in regressor.regress_words(test_words) for x in row]
    errors = np.array(predicted) - np.concatenate(test_numbers)
    scores = {"mean_squared_error": float(np.nanmean(errors**2))}
    run.save(regressor)
    run.record(scores, "test", model)
    print(f"mean squared error {scores['mean_squared_error']:.4g}; saved to {run.output}")


def _read(path):
    """Return the words and the numbers of each sentence of a file."""
    words, texts = zip(*read_tagged(path), strict=True)
    numbers = []
    for row in texts:
        try:
            numbers.append(np.array(row, "float32"))
            are_finite = np.isfinite(numbers[-1]).all()
        except ValueError:
            are_finite = False
        require(are_finite, f"the numbers of words in {path}", list(row), "finite numbers")
    return words, numbers


def _labels(encoded, numbers):
    """Return a number for each token: that of its word for a word's first token, else NaN."""
    ids, starts = encoded
    row = np.full(len(ids), np.nan, "float32")
    kept = np.less(starts, len(ids))
    row[np.array(starts, int)[kept]] = numbers[kept]
    return row
