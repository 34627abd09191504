"""Scores of spans: F1 of named entities and of brackets, answers by SQuAD's rules."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from keras_transformer.system.extras import missing


def span_f1(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 of spans by seqeval: a span counts if its ends and kind are right.

    Args:
        found, expected: tags of each sentence, such as "B-person", "I-person" and "O".

    Raises:
        ImportError: without seqeval.
        ValueError: if the two differ in length.
    """
    try:
        from seqeval import metrics
    except ImportError as error:
        raise missing("the F1 of spans", "entities") from error
    found, expected = ([list(tags) for tags in side] for side in (found, expected))
    if list(map(len, found)) != list(map(len, expected)):
        raise ValueError("found and expected must have as many sentences, of as many tags each")
    names = ("precision_score", "recall_score", "f1_score")
    scores = (getattr(metrics, name)(expected, found, zero_division=0) for name in names)
    return dict(zip(("precision", "recall", "f1"), map(float, scores), strict=True))


def bracket_f1(
    found: Sequence[Iterable[Hashable]], expected: Sequence[Iterable[Hashable]]
) -> dict[str, float]:
    """Labelled precision, recall and F1 over all sentences together, as EVALB counts (PARSEVAL).

    Args:
        found, expected: of each sentence, what `data.trees.spans` gives: one that is there twice
            is right as often as it is expected. No tree, no spans.

    Returns:
        `precision`, `recall` and `f1` in percent, and `exact_match`, the share of sentences
        without a wrong or a missing one.

    Raises:
        ValueError: if the two differ in length, or there are no sentences.
    """
    if len(found) != len(expected) or not expected:
        raise ValueError(
            f"found and expected must be as many, one at least, got {len(found)}, {len(expected)}"
        )
    ours, theirs = [Counter(x) for x in found], [Counter(x) for x in expected]
    common = sum((x & y).total() for x, y in zip(ours, theirs, strict=True))
    num_found, num_expected = (sum(x.total() for x in side) for side in (ours, theirs))
    return {
        "precision": 100.0 * common / max(num_found, 1),
        "recall": 100.0 * common / max(num_expected, 1),
        "f1": 200.0 * common / max(num_found + num_expected, 1),
        "exact_match": 100.0 * sum(map(Counter.__eq__, ours, theirs)) / len(expected),
    }


def answer_scores(
    found: Mapping[str, str], expected: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Exact match and F1 of answers by the rules of SQuAD (Rajpurkar et al. 2016, section 6.1).

    Case, punctuation, articles and white space do not count. Of several right answers the one
    that is nearest counts; F1 is of the words in common.

    Args:
        found: the answer to each question, by its id; one that is missing is wrong.
        expected: right answers to each question; none or only empty ones: it has no answer, and
            "" is right.

    Returns:
        `exact_match` and `f1` in percent.

    Raises:
        ValueError: if there are no questions.
    """
    if not expected:
        raise ValueError("expected must have a question, got none")
    exact = f1 = 0.0
    for question, answers in expected.items():
        if question not in found:
            continue
        ours = _words(found[question])
        right = [words for answer in answers if (words := _words(answer))] or [[]]
        exact += any(ours == words for words in right)
        f1 += max(_overlap(ours, words) for words in right)
    count = len(expected)
    return {"exact_match": 100.0 * exact / count, "f1": 100.0 * f1 / count}


def _words(text: str) -> list[str]:
    text = "".join(x for x in text.lower() if x not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def _overlap(ours: list[str], right: list[str]) -> float:
    if not ours or not right:
        return float(ours == right)
    common = (Counter(ours) & Counter(right)).total()
    return 2.0 * common / (len(ours) + len(right))
