"""The contents of an error report: scores, signs of errors, the worst sentences."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sacrebleu

from keras_transformer.analysis.alignment import attention, between_words
from keras_transformer.analysis.plots.quality import parts_by_length
from keras_transformer.analysis.suspects import suspects
from keras_transformer.config import require, require_whole
from keras_transformer.evaluation.assess import measured
from keras_transformer.evaluation.significance import Compared, compare, intervals
from keras_transformer.evaluation.tokenizers import bleu_metric
from keras_transformer.running.attention_weights import alignment_weights
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.quality_estimation import (
    QualityEstimator,
    confidences,
    correlation,
    sentence_chrf,
)
from keras_transformer.translate.translator import Translator

BINS = 5  # number of parts by length
MOST_SHOWN = 60  # a side of more words and special tokens gets no picture of attention

# Words of the translation, words of the source, and attention weights (translation, source).
Picture = tuple[list[str], list[str], np.ndarray]


@dataclass(frozen=True)
class Sentence:
    """A sentence of a test set, its translation and its scores.

    Args:
        number: Number in the test set, from 1.
        source, reference, translation: The texts.
        chrf, bleu: Scores of the sentence, in percent; BLEU with effective order.
        confidence: Mean log-probability of the translation's tokens; NaN if the source is empty, or
            source or translation is too long for the model.
        reference_confidence: The same for the tokens of the reference.
        quality: Estimated chrF / 100, in [0, 1]; NaN if `confidence` is. None: there is no
            estimator.
        baseline: The baseline's translation; None: there is no baseline.
        baseline_chrf: chrF of the baseline's translation, in percent; None: there is no baseline.
        picture: Cross-attention between words, as `alignment.align` uses it; None: not drawn.
    """

    number: int
    source: str
    reference: str
    translation: str
    chrf: float
    bleu: float
    confidence: float
    reference_confidence: float
    quality: float | None = None
    baseline: str | None = None
    baseline_chrf: float | None = None
    picture: Picture | None = None


@dataclass(frozen=True)
class LengthScores:
    """Scores of the sentences of a test set whose sources have a length from `least` to `most`.

    Args:
        least, most: Minimum and maximum length, in words or characters, see
            `tokenizers.lengths_of`.
        sentences: Number of sentences.
        bleu, chrf: Corpus scores of these sentences, in percent.
    """

    least: int
    most: int
    sentences: int
    bleu: float
    chrf: float


@dataclass(frozen=True)
class Report:
    """The contents of an error report.

    Args:
        metrics: Metrics of the test set, from `assess.measured`.
        intervals: Half the width of the 95 % confidence intervals of `bleu` and `chrf`.
        sentences: All sentences, in order.
        worst: The sentences with the lowest chrF, worst first, with their attention.
        parts: Scores by the length of the source.
        signs: Indices of the sentences that show each sign in `suspects.SIGNS`.
        compared: Scores of "baseline" and "this system", from `significance.compare`; None: there
            is no baseline.
        correlation: Correlation of estimated quality and chrF, from
            `quality_estimation.correlation`; None: there is no estimator.
    """

    metrics: Mapping[str, Any]
    intervals: Mapping[str, float]
    sentences: Sequence[Sentence]
    worst: Sequence[Sentence]
    parts: Sequence[LengthScores]
    signs: Mapping[str, Sequence[int]]
    compared: Mapping[str, Mapping[str, Compared]] | None = None
    correlation: Mapping[str, float] | None = None


@spelled_out(Search, TRANSLATE)
def measure(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    *,
    worst: int = 30,
    baseline: Sequence[str] | None = None,
    estimator: QualityEstimator | None = None,
    tokenize: str | None = None,
    tokens_per_batch: int = 4096,
    **options: Any,
) -> Report:
    """Translate a test set, and collect the contents of an error report.

    Args:
        translator: Translator to measure, with a Keras model.
        pairs: (source, reference) texts, at least one pair.
        worst: Number of worst sentences to show in full, at least 0.
        baseline: Translations of the sources by another system, to compare with; None: no
            comparison.
        estimator: Quality estimator of the translator; None: qualities are not estimated.
        tokenize: Tokenizer of BLEU, see `assess.assess`.
        tokens_per_batch, options: See `Translator.translate`.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If there are no pairs, the baseline does not have one text per pair, or an
            option is out of range.
    """
    require_whole("worst", worst, 0)
    if baseline is not None:
        baseline = checked_texts(baseline, "baseline")
        accepted = f"{len(pairs)} texts, one per source"
        require(len(baseline) == len(pairs), "baseline", f"{len(baseline)} texts", accepted)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    search = translator.options(options)
    batches: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch)
    begin = time.perf_counter()
    translations = translator.translate(sources, **batches, **options)
    seconds = time.perf_counter() - begin
    metrics = measured(
        translator, pairs, translations, search, seconds, tokenize=tokenize, **batches
    )
    qualities = None
    if estimator is not None:
        qualities = estimator.estimate(translator, sources, translations, **batches)
    words = dict(tokenize=tokenize, language=translator.target_language)
    bleu = partial(bleu_metric, **words, texts=references)
    sentences = _sentences(translator, pairs, translations, qualities, baseline, batches, bleu)
    lowest = sorted(sentences, key=lambda x: x.chrf)[:worst]
    systems = {"baseline": baseline, "this system": translations}
    chrf = np.array([x.chrf for x in sentences])
    return Report(
        metrics,
        {name.lower(): x for name, x in intervals(translations, references, **words).items()},
        sentences,
        [_drawn(translator, x) for x in lowest],
        [_part(*x, translations, references, bleu()) for x in parts_by_length(sources, BINS)],
        suspects(sources, translations),
        None if baseline is None else compare(systems, references, **words),
        None if qualities is None else correlation(qualities, chrf),
    )


def _sentences(translator, pairs, translations, qualities, baseline, batches, metric):
    """Return a `Sentence` for each pair, with its translation and scores."""
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    bleu = metric(effective_order=True)
    others = [None] * len(pairs)
    columns = [
        *(range(1, 1 + len(pairs)), sources, references, translations),
        100 * sentence_chrf(translations, references),
        [bleu.sentence_score(t, [r]).score for t, r in zip(translations, references, strict=True)],
        confidences(translator, sources, translations, **batches),
        confidences(translator, sources, references, **batches),
        others if qualities is None else qualities,
        others if baseline is None else baseline,
        others if baseline is None else 100 * sentence_chrf(baseline, references),
    ]
    return [Sentence(*row) for row in zip(*columns, strict=True)]


def _part(least, most, chosen, translations, references, bleu):
    texts, expected = [translations[i] for i in chosen], [[references[i] for i in chosen]]
    scores = [metric.corpus_score(texts, expected).score for metric in (bleu, sacrebleu.CHRF())]
    return LengthScores(least, most, len(chosen), *scores)


def _drawn(translator: Translator, sentence: Sentence) -> Sentence:
    """Return the sentence with its attention as `picture`.

    It is returned unchanged if a text is empty, has no token, is longer than the model's
    `max_length`, or has more than `MOST_SHOWN` words.
    """
    empty = not (sentence.source.strip() and sentence.translation.strip())
    if empty or np.isnan(sentence.confidence):
        return sentence
    try:
        maps = attention(translator, sentence.source, sentence.translation)
    except ValueError:  # such as a text of characters that the tokenizer does not know
        return sentence
    queries, keys, weights = between_words(maps, "cross")
    if max(len(queries), len(keys)) > MOST_SHOWN:
        return sentence
    guided = getattr(translator.model.config, "guided_alignment", 0) > 0
    (shown,) = alignment_weights(weights[:, None], guided)
    return replace(sentence, picture=(queries, keys, shown))
