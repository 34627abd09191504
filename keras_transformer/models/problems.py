"""Problem types, the meaning of a classifier's outputs, with the names of `transformers`."""

from __future__ import annotations

from typing import Any

from keras_transformer.config import require

SINGLE, MULTI = "single_label_classification", "multi_label_classification"
REGRESSION = "regression"
PROBLEM_TYPES = (SINGLE, MULTI, REGRESSION)


def check_problem(problem_type: str | None, num_labels: int) -> None:
    """Raise ValueError if a `problem_type` is unknown, or does not fit the number of labels."""
    require(
        problem_type in (*PROBLEM_TYPES, None),
        "problem_type",
        problem_type,
        f"one of {PROBLEM_TYPES} or None",
    )
    accepted = f"{MULTI!r}, {REGRESSION!r} or None for one label"
    is_possible = problem_type != SINGLE or num_labels != 1
    require(is_possible, "problem_type", problem_type, accepted)


def check_labels(config: Any) -> None:
    """Raise ValueError if a classifier's `labels` are not names, or its `problem_type` is wrong."""
    if isinstance(config.labels, list):  # from JSON
        object.__setattr__(config, "labels", tuple(config.labels))
    names = isinstance(config.labels, tuple) and all(isinstance(x, str) for x in config.labels)
    require(names and len(config.labels) > 0, "labels", config.labels, "one name or more")
    check_problem(config.problem_type, len(config.labels))


def problem_of(problem_type: str | None, num_labels: int) -> str:
    """Return the `problem_type`, or if it is None the one that `transformers` assumes.

    Without a `problem_type` several labels exclude each other (softmax), and a single one has a
    probability of its own (sigmoid).
    """
    return problem_type or (MULTI if num_labels == 1 else SINGLE)
