"""Minimum Bayes risk: choose the candidate translation that is most similar to all candidates."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import CHRF

from keras_transformer.config import require, require_whole
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.translator import Translator

SOURCES = ("samples", "nbest")


def chrf(text: str, reference: str) -> float:
    """Return the chrF (Popović 2015) of a text against one reference, from 0 to 100."""
    return float(CHRF().sentence_score(text, [reference]).score)


def most_agreed(
    candidates: Sequence[str], utility: Callable[[str, str], float] = chrf
) -> tuple[str, float]:
    """Return the candidate with the highest mean utility against all candidates, and that mean.

    A candidate that occurs n times counts n times in the mean. Of equally good candidates, the
    first is returned.

    Args:
        candidates: Translations of one text.
        utility: Function from a translation and a reference to a number; higher is better.

    Raises:
        ValueError: If there are no candidates.
    """
    counts = Counter(checked_texts(candidates, "candidates"))
    require(len(counts) > 0, "candidates", candidates, "one or more")

    def mean(text):
        return sum(n * utility(text, other) for other, n in counts.items()) / counts.total()

    means = {text: mean(text) for text in counts}
    best = max(means, key=lambda text: means[text])
    return best, means[best]


def translate_by_risk(
    translator: Translator,
    texts: Sequence[str],
    count: int,
    *,
    source: str = "nbest",
    seed: int = 0,
    utility: Callable[[str, str], float] | LearnedMetric = chrf,
    **options: Any,
) -> list[str]:
    """Translate by minimum Bayes risk (Kumar and Byrne 2004; Eikema and Aziz 2020, section 6).

    ```python
    translate_by_risk(translator, ["A dog runs."], 16, source="samples", min_p=0.02)
    ```

    The search takes time proportional to `count`, the comparison of candidates to its square.

    Args:
        translator: The translator.
        texts: Source texts.
        count: Number of candidates per text.
        source: Source of the candidates: "nbest", a beam search with `count` beams; or "samples",
            `count` samples from the model's distribution.
        seed: Seed of the first sample of each text; sample i has the seed `seed + i`.
        utility: See `most_agreed`; or a learned metric that reads references, such as COMET, which
            encodes each candidate once.
        options: Further options of `Translator.nbest` or `Translator.sample`.

    Returns:
        One translation per text, in order.

    Raises:
        TypeError, ValueError: If an option is unknown or out of range.
    """
    require_whole("count", count, 1)
    require(source in SOURCES, "source", source, f"one of {SOURCES}")
    if isinstance(utility, LearnedMetric):
        reads = "reference" in utility.config.segments
        require(reads, "utility", "a metric without reference", "one that compares with references")
    texts = checked_texts(texts)
    if source == "nbest":
        lists = translator.nbest(texts, beam_size=count, num_hypotheses=count, **options)
        candidates = [[x.text for x in hypotheses] for hypotheses in lists]
    else:
        drawn = [translator.sample(texts, seed=seed + i, **options) for i in range(count)]
        candidates = [list(row) for row in zip(*drawn, strict=True)]
    if isinstance(utility, LearnedMetric):
        return _agreed_by(utility, texts, candidates)
    return [most_agreed(row, utility)[0] for row in candidates]


def _agreed_by(metric, texts, lists):
    """Return the candidate of each list with the best mean score against all candidates of it."""
    lists = [Counter(row) for row in lists]
    triples = [
        (text, candidate, other)
        for text, counts in zip(texts, lists, strict=True)
        for candidate, other in itertools.product(counts, repeat=2)
    ]
    columns = zip(*triples, strict=True) if triples else [[], [], []]
    scores, best = metric.sign * metric.score(*map(list, columns)), []
    for counts in lists:
        size = len(counts)
        scores_CC, scores = scores[: size**2].reshape(size, size), scores[size**2 :]
        means_C = scores_CC @ np.array([*counts.values()]) / counts.total()
        best.append([*counts][int(means_C.argmax())])
    return best
