"""Scores of spans: F1 of named entities, F1 of brackets of trees, and answers as in SQuAD."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from keras_transformer.system.extras import missing


def span_f1(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return precision, recall and F1 of named entities, by seqeval.

    An entity is correct if its start, its end and its kind are correct.

    Args:
        found, expected: Predicted and correct tags of each sentence, such as "B-person", "I-person"
            and "O".

    Returns:
        `precision`, `recall` and `f1` in [0, 1].

    Raises:
        ImportError: If seqeval is not installed.
        ValueError: If `found` and `expected` differ in the numbers of sentences or tags.
    """
    try:
        from seqeval import metrics
    except ImportError as error:
        raise missing("the F1 of spans", "entities") from error
    found, expected = ([list(tags) for tags in side] for side in (found, expected))
    if list(map(len, found)) != list(map(len, expected)):
        raise ValueError(
            "found and expected must have the same number of sentences, and of tags per sentence"
        )
    names = ("precision_score", "recall_score", "f1_score")
    scores = (getattr(metrics, name)(expected, found, zero_division=0) for name in names)
    return dict(zip(("precision", "recall", "f1"), map(float, scores), strict=True))


def bracket_f1(
    found: Sequence[Iterable[Hashable]], expected: Sequence[Iterable[Hashable]]
) -> dict[str, float]:
    """Return labelled precision, recall and F1 of brackets over all sentences, as EVALB (PARSEVAL).

    Args:
        found, expected: Predicted and correct spans of each sentence, from `data.trees.spans`; []
            if there is no tree. A span that occurs several times is correct as often as it is
            expected.

    Returns:
        `precision`, `recall` and `f1` in percent, and `exact_match`, the percentage of sentences
        without a wrong or missing span.

    Raises:
        ValueError: If `found` and `expected` differ in length, or there are no sentences.
    """
    if len(found) != len(expected) or not expected:
        raise ValueError(
            f"found and expected must have the same length, at least 1, got {len(found)} and "
            f"{len(expected)}"
        )
    found_counts, expected_counts = [Counter(x) for x in found], [Counter(x) for x in expected]
    common = sum((x & y).total() for x, y in zip(found_counts, expected_counts, strict=True))
    num_found, num_expected = (
        sum(x.total() for x in side) for side in (found_counts, expected_counts)
    )
    return {
        "precision": 100.0 * common / max(num_found, 1),
        "recall": 100.0 * common / max(num_expected, 1),
        "f1": 200.0 * common / max(num_found + num_expected, 1),
        "exact_match": 100.0
        * sum(map(Counter.__eq__, found_counts, expected_counts))
        / len(expected),
    }


def answer_scores(
    found: Mapping[str, str], expected: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Return exact match and F1 of answers as in SQuAD (Rajpurkar et al. 2016, section 6.1).

    Case, punctuation, articles and white space are ignored. If there are several correct answers,
    the closest one counts. F1 is computed from the common words.

    Args:
        found: Predicted answer to each question, by question id; a missing answer is wrong.
        expected: Correct answers to each question, by question id. If there are none, or only empty
            ones, the question has no answer, and "" is correct.

    Returns:
        `exact_match` and `f1` in percent.

    Raises:
        ValueError: If there are no questions.
    """
    if not expected:
        raise ValueError("expected must have at least one question, got none")
    exact = f1 = 0.0
    for question, answers in expected.items():
        if question not in found:
            continue
        found_words = _words(found[question])
        right = [words for answer in answers if (words := _words(answer))] or [[]]
        exact += any(found_words == words for words in right)
        f1 += max(_overlap(found_words, words) for words in right)
    count = len(expected)
    return {"exact_match": 100.0 * exact / count, "f1": 100.0 * f1 / count}


def _words(text: str) -> list[str]:
    text = "".join(x for x in text.lower() if x not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def _overlap(words: list[str], right: list[str]) -> float:
    if not words or not right:
        return float(words == right)
    common = (Counter(words) & Counter(right)).total()
    return 2.0 * common / (len(words) + len(right))
