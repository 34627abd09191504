"""Preferences of a learned metric among a translator's own translations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.data.preferences import Preference
from keras_transformer.running.inputs import same_number
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.translate.translator import Translator


def metric_preferences(
    translator: Translator,
    metric: LearnedMetric,
    texts: Sequence[str],
    references: Sequence[str] | None = None,
    *,
    candidates: int = 8,
    min_difference: float = 0.0,
    seed: int = 0,
    tokens_per_batch: int = 4096,
    **options: Any,
) -> Iterator[Preference]:
    """Yield the best and the worst of some translations of each text (Xu et al. 2024, section 3).

    The translations are the one that the search finds, further samples, and the reference.

    Args:
        translator: The translator.
        metric: The metric that judges.
        texts: Source texts.
        references: A reference translation of each; None: there are none. A metric that compares
            with references needs them; it does not judge them.
        candidates: Number of translations of a text, at least 2, the reference not counted.
        min_difference: Least difference of the two scores; texts with less are left out, as are
            those with one distinct translation.
        seed: Seed of the samples, at least 0.
        tokens_per_batch: See `Translator.translate`.
        options: Options of sampling, see `Translator.sample`.

    Raises:
        ValueError: If an argument is out of range, or the metric needs references.
    """
    require_whole("candidates", candidates, 2)
    require(min_difference >= 0, "min_difference", min_difference, "at least 0")
    if references is not None:
        same_number(texts, references)
    batches = dict(tokens_per_batch=tokens_per_batch)
    columns = [translator.translate(texts, **batches)]
    for number in range(1, candidates):
        columns.append(translator.sample(texts, seed=seed + number, **batches, **options))
    if references is not None and not metric.needs_reference:
        columns.append([*references])
    distinct = [[*dict.fromkeys(filter(str.strip, row))] for row in zip(*columns, strict=True)]
    places = [i for i, row in enumerate(distinct) for _ in row]
    repeated = None if references is None else [references[i] for i in places]
    flat = [text for row in distinct for text in row]
    judged = iter(metric.sign * metric.score([texts[i] for i in places], flat, repeated))
    for prompt, row in zip(texts, distinct, strict=True):
        scores = [next(judged) for _ in row]
        if len(row) > 1 and (most := max(scores)) - (least := min(scores)) >= min_difference:
            yield Preference(prompt, row[scores.index(most)], row[scores.index(least)])
