"""How well texts are understood: F1 of named entities, exact match and F1 of answers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence


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
        raise ImportError(
            'the F1 of spans needs seqeval: pip install "keras-transformer[entities]"'
        ) from error
    found, expected = ([list(tags) for tags in side] for side in (found, expected))
    if list(map(len, found)) != list(map(len, expected)):
        raise ValueError("found and expected must have as many sentences, of as many tags each")
    names = ("precision_score", "recall_score", "f1_score")
    scores = (getattr(metrics, name)(expected, found, zero_division=0) for name in names)
    return dict(zip(("precision", "recall", "f1"), map(float, scores), strict=True))


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
