"""Labels of classifiers in a `config.json`, and their `problem_type`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.models.problems import MULTI, REGRESSION

ACTIVATION = "sbert_ce_default_activation_function"  # sentence-transformers before 4.0
MOST_LABELS = 1 << 20


def labels_of(theirs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a classifier's classes in the order of their numbers.

    Without `id2label` there are `num_labels`, named "LABEL_0", "LABEL_1" and so on.

    Raises:
        ValueError: If `id2label` is not a map from numbers to names, or `num_labels` exceeds
            `MOST_LABELS`.
    """
    if not theirs["id2label"]:
        count = theirs["num_labels"]  # limited, because names are made before weights are read
        require(count <= MOST_LABELS, "num_labels", count, f"at most {MOST_LABELS}")
        return tuple(f"LABEL_{i}" for i in range(theirs["num_labels"]))
    names = theirs["id2label"]
    if not all(x.isdecimal() and isinstance(name, str | None) for x, name in names.items()):
        raise ValueError(f"id2label must map class numbers to names, got {names}")
    return tuple(names[number] or f"LABEL_{number}" for number in sorted(names, key=int))


def problem_type_of(theirs: Mapping[str, Any]) -> str | None:
    """Return a classifier's `problem_type`, as `transformers` or sentence-transformers reads it.

    A cross-encoder of sentence-transformers names an activation. With one label, the identity means
    regression, whatever `problem_type` says. With several labels, a sigmoid means several labels
    per text, unless the file has a `problem_type`; other activations have no effect.

    Raises:
        ValueError: If the activation is not supported.
    """
    stated, count = theirs["problem_type"], len(labels_of(theirs))
    settings = theirs.get("sentence_transformers")
    newer = settings.get("activation_fn") if isinstance(settings, Mapping) else None
    name = newer or theirs.get(ACTIVATION)
    if name is None:
        return stated
    activation = str(name).rpartition(".")[2]
    accepted = ("Sigmoid", "Identity", *(("Softmax",) if count > 1 else ()))
    require(activation in accepted, "activation_fn", name, f"one of {accepted}")
    if count == 1:
        return REGRESSION if activation == "Identity" else None
    return stated or (MULTI if activation == "Sigmoid" else None)


def label_fields(labels: Sequence[str], problem_type: str | None) -> dict[str, Any]:
    """Return the fields that `labels_of` and `problem_type_of` read, and `label2id`."""
    fields: dict[str, Any] = dict(
        id2label={str(i): name for i, name in enumerate(labels)},
        label2id={name: i for i, name in enumerate(labels)},
        problem_type=problem_type,
    )
    if len(labels) == 1 and problem_type == REGRESSION:
        identity = "torch.nn.modules.linear.Identity"
        fields["sentence_transformers"] = {"activation_fn": identity}
    return fields
