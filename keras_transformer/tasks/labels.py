"""Labels of texts and images, from the outputs of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.config import is_number, require
from keras_transformer.models.problems import MULTI, REGRESSION, SINGLE


@dataclass(frozen=True)
class Label:
    """A class and its probability in [0, 1]."""

    label: str
    probability: float


@dataclass(frozen=True)
class Value:
    """The name of an output of a regression, and its value, any real number."""

    label: str
    value: float


def activated(logits: Any, problem: str) -> Any:
    """Return the probabilities of logits, or for a regression the logits: (..., C), float32.

    Args:
        logits: Outputs of a classifier (..., C).
        problem: One of `models.problems.PROBLEM_TYPES`.
    """
    logits = ops.cast(logits, "float32")
    if problem == REGRESSION:
        return logits
    return ops.sigmoid(logits) if problem == MULTI else ops.softmax(logits, axis=-1)


def check_threshold(threshold: float | None, problem: str) -> None:
    """Raise ValueError if a threshold is not in [0, 1], or given for a regression.

    Args:
        threshold: Minimum probability of a label; None: not given.
        problem: One of `models.problems.PROBLEM_TYPES`.
    """
    if threshold is not None:
        only = "None: the model is a regression, which has no probabilities"
        require(problem != REGRESSION, "threshold", threshold, only)
        in_range = is_number(threshold) and 0 <= threshold <= 1
        require(in_range, "threshold", threshold, "a number from 0 to 1, or None")


def labelled(
    names: Sequence[str], row: np.ndarray, problem: str, threshold: float | None
) -> list[Any]:
    """Return the labels of a text or image, the most probable first.

    Args:
        names: Name of each label.
        row: The result of `activated` for the text or image: (C,).
        problem: One of `models.problems.PROBLEM_TYPES`.
        threshold: Labels with a lower probability are left out. None: 0.5 if there are several
            labels and a text may have any number of them, else 0.

    Returns:
        A `Label` for each label that is left; for a regression a `Value` for each label, in the
        order of `names`.
    """
    if problem == REGRESSION:
        return [Value(name, float(x)) for name, x in zip(names, row, strict=True)]
    if threshold is None:
        threshold = 0.5 if problem == MULTI and len(names) > 1 else 0.0
    best = (-row).argsort(kind="stable")
    return [Label(names[i], float(row[i])) for i in best if row[i] >= threshold]


def in_a_line(labels: Sequence[Any], problem: str) -> str:
    """Return the labels of a text or image as a line of text, separated by tabs.

    If the labels exclude each other (`SINGLE`), only the most probable one is in the line.

    Args:
        labels: Result of `labelled`.
        problem: One of `models.problems.PROBLEM_TYPES`.
    """
    if problem == REGRESSION:
        return "\t".join(f"{x.label}\t{x.value:.6g}" for x in labels)
    shown = labels[:1] if problem == SINGLE else labels
    return "\t".join(f"{x.label}\t{x.probability:.4f}" for x in shown)
