"""Train a small BERT that recognises splice junctions in DNA, with naive Bayes as a baseline.

The data are UCI's (Noordewier et al. 1991): sequences of 60 bases. In the middle, an exon ends
(EI), an intron ends (IE), or neither (N). A fixed random fifth of the distinct sequences is for
testing; another tenth is for validation, which chooses the epoch. Each sequence becomes a text of
overlapping words of a few bases (Ji et al. 2021), for `text_classification`. The saved
`TextClassifier` takes the original sequences.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.biology import overlapping_words, read_splice_junctions
from keras_transformer.data.tagged import numbered
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.training.task import TaskRun, task
from keras_transformer.training.text_classification import classify


@task(
    vocab_size=8000,
    d_model=64,
    num_layers=2,
    num_heads=4,
    dropout=0.3,
    tokens_per_batch=2048,
    epochs=30,
    peak_learning_rate=1e-3,
    warmup_steps=100,
)
def train(run: TaskRun, sequences: Path, bases: int = 3) -> None:
    """Train a classifier of DNA; save it with its accuracy and that of naive Bayes.

    Args:
        sequences: UCI's splice.data; may be a .gz.
        bases: Bases per word.
    """
    require_whole("bases", bases, 1)
    rows = sorted(read_splice_junctions(sequences).items())
    require(len(rows) >= 10, f"sequences in {sequences}", len(rows), "10 or more")
    longest = len(rows[0][0])
    require(bases <= longest, "bases", bases, f"at most {longest}, the length of a sequence")
    names = ("test", "validation", "train")
    letters, classes, words = {}, {}, {}
    labels = tuple(sorted({label for _, label in split(rows)[-1]}))
    for name, part in zip(names, split(rows), strict=True):
        letters[name], known = zip(*part, strict=True)
        classes[name] = numbered(known, labels, sequences)
        words[name] = [overlapping_words(x, bases) for x in letters[name]]
    run.max_length = longest + 2
    classify(run, {name: (words[name], classes[name]) for name in names}, labels, bases)
    accuracies = _naive_bayes(letters, classes, len(labels))
    save_metrics(run.output, "naive_bayes", accuracies)
    print(f"accuracy of naive Bayes {accuracies['test_accuracy']:.4f}")


def split(rows: list) -> list[list]:
    """Return three parts of the rows: a fifth for testing, a tenth for validation, the rest."""
    order = np.random.default_rng(0).permutation(len(rows))
    ends = [len(rows) // 5, len(rows) * 3 // 10]
    return [[rows[i] for i in part] for part in np.split(order, ends)]


def _naive_bayes(sequences, classes, num_classes):
    """Return the accuracies of naive Bayes.

    The letters are counted per class and position, with add-one (Laplace) smoothing.
    """
    letters = sorted(set("".join("".join(part) for part in sequences.values())))
    one_hot = {
        name: np.array([[[x == y for y in letters] for x in sequence] for sequence in part])
        for name, part in sequences.items()
    }
    trained = np.array(classes["train"])
    counts_CTV = [1 + one_hot["train"][trained == c].sum(0) for c in range(num_classes)]
    logs_CTV = np.log([counts_TV / counts_TV.sum(-1, keepdims=True) for counts_TV in counts_CTV])
    prior_C = np.log(np.bincount(trained))
    accuracies = {}
    for name in ("validation", "test"):
        scores_BC = np.einsum("btv,ctv->bc", one_hot[name], logs_CTV) + prior_C
        accuracies[f"{name}_accuracy"] = np.mean(scores_BC.argmax(-1) == classes[name]).item()
    return accuracies
