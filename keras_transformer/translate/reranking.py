"""Reranking of n-best lists by a weighted sum of features, and tuning of the weights."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from keras_transformer.config import require, require_whole
from keras_transformer.evaluation.tokenizers import bleu_metric
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.attention_weights import (
    alignment_weights,
    attention_weights,
    coverage,
)
from keras_transformer.running.inputs import encoded_pairs, same_number
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.text.languages import short_code
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.translator import Translator

FEATURES = ("forward", "reverse", "language_model", "metric", "coverage", "length")
# Values that tuning tries for a weight; of equally good values, the first is taken.
GRID = (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, -0.1, -0.2, -0.5, -1)


@dataclass(frozen=True)
class Reranker:
    """A reranker: chooses among translations by a weighted sum of features of several models.

    Examples are the noisy channel, log p(y|x) + a log p(x|y) + b log p(y) (Yee et al. 2019; Ng et
    al. 2019, section 4.4), and the reranking of GNMT (Wu et al. 2016, section 7). The features of a
    translation y of x are

    - `forward`: log p(y|x) of the translator; its weight is 1 if none is given;
    - `reverse`: log p(x|y) of a translator with the languages swapped;
    - `language_model`: log p(y), with a line break before and after y;
    - `metric`: the score of y by a learned metric that needs no reference (Fernandes et al. 2022),
      negative if lower scores are better;
    - `coverage`: sum_i log min(sum_j p_ij, 1), with the translator's attention p of target token j
      to source token i (see `running.attention_weights`);
    - `length`: the number of the translator's target tokens, EOS included.

    ```python
    weights = dict(reverse=0.5, language_model=0.2, length=0.3)
    channel = Reranker(translator, weights, reverse=back, language_model=writer)
    channel.translate(texts, 8)
    ```

    Args:
        translator: The translator.
        weights: Weight of each feature, a finite number by the feature's name. A feature without a
            weight is not computed, except `forward`.
        reverse: Translator with the languages swapped, for the weight `reverse`; None: without
            this feature. Its tokenizer may differ.
        language_model: Language model of the target language, for the weight `language_model`;
            None: without this feature. Its tokenizer may differ.
        metric: Metric for the weight `metric`; None: without this feature.

    Raises:
        ValueError: If only `forward` or no feature has a weight, a weight is no finite number or
            its name is unknown, a feature has a weight but no model or a model but no weight, or
            the languages of `reverse` are not swapped.
    """

    translator: Translator
    weights: Mapping[str, float]
    reverse: Translator | None = None
    language_model: CausalLM | None = None
    metric: LearnedMetric | None = None

    def __post_init__(self) -> None:
        accepted = f"some of {FEATURES[1:]} with their numbers"
        names = set(self.weights) if isinstance(self.weights, Mapping) else set()
        are_known = bool(names - {"forward"}) and names <= set(FEATURES)
        require(are_known, "weights", self.weights, accepted)
        for name, value in self.weights.items():
            is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
            accepted = "a finite number"
            require(is_real and math.isfinite(value), f"the weight of {name}", value, accepted)
        object.__setattr__(self, "weights", {"forward": 1.0, **self.weights})
        for name in ("reverse", "language_model", "metric"):
            model = getattr(self, name)
            if (model is None) != (name not in self.weights):
                problem = "no model" if model is None else "no weight"
                raise ValueError(f"{name} must have a model and a weight, got {problem}")
        if self.metric is not None:
            accepted = "one that needs no reference"
            needs = "a metric that needs references"
            require(not self.metric.needs_reference, "metric", needs, accepted)
        if self.reverse is not None:
            there, back = _languages(self.translator), _languages(self.reverse)[::-1]
            pairs = zip(there, back, strict=True)
            same = all(None in pair or pair[0] == pair[1] for pair in pairs)
            accepted = f"a translator from {there[1]} to {there[0]}"
            require(same, "reverse", f"{back[1]} to {back[0]}", accepted)

    def features(
        self, sources: Sequence[str], targets: Sequence[str], *, tokens_per_batch: int = 4096
    ) -> dict[str, np.ndarray]:
        """Return the values (N,) of each feature that has a weight, by the feature's name.

        Args:
            sources: N source texts.
            targets: A translation of each.
            tokens_per_batch: Maximum tokens per side of a batch, padding included.

        Raises:
            ValueError: If the numbers of texts differ, a text is longer than the `max_length` of a
                model, or the translator gives no attention weights for `coverage`.
        """
        sources, targets = checked_texts(sources, "sources"), checked_texts(targets, "targets")
        same_number(sources, targets)
        batch: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch)
        values: dict[str, Any] = {"forward": self.translator.score(sources, targets, **batch)}
        if self.reverse is not None:
            values["reverse"] = self.reverse.score(targets, sources, **batch)
        if self.language_model is not None:
            lines = [f"\n{text}\n" for text in targets]
            values["language_model"] = self.language_model.score(lines, **batch)
        if self.metric is not None:
            values["metric"] = self.metric.sign * self.metric.score(sources, targets, **batch)
        if "coverage" in self.weights:
            values["coverage"] = _coverages(self.translator, sources, targets, tokens_per_batch)
        if "length" in self.weights:
            values["length"] = list(map(len, self.translator.tokenizer.encode_target(targets)))
        return {name: np.array(values[name], "float64") for name in self.weights}

    def rank(
        self,
        sources: Sequence[str],
        lists: Sequence[Sequence[str]],
        *,
        tokens_per_batch: int = 4096,
    ) -> list[list[Hypothesis]]:
        """Return the translations of each source with their weighted sums as scores, best first.

        Args:
            sources: Source texts.
            lists: Texts of the translations of each source, such as those of `Translator.nbest`.
            tokens_per_batch: See `features`.

        Raises:
            ValueError: See `features`.
        """
        same_number(sources, lists)
        features = self._features_of(sources, lists, tokens_per_batch)
        totals = sum(self.weights[name] * values for name, values in features.items())
        scores, ranked = iter(np.asarray(totals).tolist()), []
        for row in lists:
            hypotheses = [Hypothesis(text, next(scores)) for text in row]
            ranked.append(sorted(hypotheses, key=lambda x: -x.score))  # equal scores keep order
        return ranked

    def translate(
        self, texts: Sequence[str], count: int, *, tokens_per_batch: int = 4096, **options: Any
    ) -> list[str]:
        """Translate texts: return the translation of each n-best list with the highest sum.

        Args:
            texts: Source texts.
            count: Size of the beam and of the n-best list, at least 2.
            tokens_per_batch: See `Translator.nbest`.
            options: Further options of `Translator.nbest`.

        Raises:
            TypeError, ValueError: If an option is unknown or out of range, or a text is too long
                (also with `strict=False`); see also `features`.
        """
        lists = self._nbest(texts, count, dict(options, tokens_per_batch=tokens_per_batch))
        ranked = self.rank(texts, lists, tokens_per_batch=tokens_per_batch)
        return [row[0].text for row in ranked]

    def _features_of(self, sources, lists, tokens_per_batch):
        """Return the features of all texts of the lists, concatenated: (N,) for N texts in all."""
        repeated = [x for x, row in zip(sources, lists, strict=True) for _ in row]
        texts = list(itertools.chain.from_iterable(lists))
        return self.features(repeated, texts, tokens_per_batch=tokens_per_batch)

    def _nbest(self, texts, count, options):
        require_whole("count", count, 2)
        sizes = dict(beam_size=count, num_hypotheses=count, strict=True)  # a cut text has no score
        lists = self.translator.nbest(texts, **options | sizes)
        return [[x.text for x in row] for row in lists]


@dataclass(frozen=True)
class Tuned:
    """A reranker with tuned weights.

    Args:
        reranker: The reranker.
        bleu: BLEU on the validation set with the tuned weights.
        bleu_before: BLEU with the weights before tuning.
    """

    reranker: Reranker
    bleu: float
    bleu_before: float


def tune_weights(
    reranker: Reranker,
    sources: Sequence[str],
    references: Sequence[str],
    count: int,
    *,
    tokens_per_batch: int = 4096,
    **options: Any,
) -> Tuned:
    """Find the weights with which the reranker's translations have the highest BLEU.

    The weights are changed one by one, each to the best value of `GRID`, until no change improves
    BLEU. The weight of `forward` is not changed.

    Args:
        reranker: The reranker. Its weights name the features, and are the start of the search.
        sources: Source texts of a validation set, not of the test set.
        references: Reference translations, one per source.
        count, tokens_per_batch, options: See `Reranker.translate`.

    Raises:
        TypeError, ValueError: If there are no texts, or the numbers of texts differ; see also
            `Reranker.translate`.
    """
    sources, references = checked_texts(sources, "sources"), checked_texts(references, "references")
    same_number(sources, references)
    require(len(sources) > 0, "sources", sources, "one or more texts")
    lists = reranker._nbest(sources, count, dict(options, tokens_per_batch=tokens_per_batch))
    features = reranker._features_of(sources, lists, tokens_per_batch)
    metric = bleu_metric(None, reranker.translator.target_language, references)
    statistics = np.array(
        [
            _statistics(x, reference, metric)
            for row, reference in zip(lists, references, strict=True)
            for x in row
        ]
    )
    starts = np.cumsum([0, *map(len, lists)])

    def bleu(weights):
        totals = sum(weights[name] * values for name, values in features.items())
        spans = itertools.pairwise(starts)
        return _bleu(statistics[[start + totals[start:end].argmax() for start, end in spans]])

    weights = dict(reranker.weights)
    best = before = bleu(weights)
    is_better = True
    while is_better:
        is_better = False
        for name in [x for x in FEATURES[1:] if x in weights]:
            tried = {value: bleu({**weights, name: value}) for value in GRID}
            value = max(tried, key=lambda x: tried[x])
            if tried[value] > best:
                weights[name], best, is_better = float(value), tried[value], True
    return Tuned(replace(reranker, weights=weights), best, before)


def _languages(translator):
    codes = translator.source_language, translator.target_language
    return tuple(code and short_code(code) for code in codes)


def _coverages(translator, sources, targets, tokens_per_batch):
    """Return the coverage of each source by its translation: (N,)."""
    has_model = isinstance(translator.model, EncoderDecoder)
    accepted = "a saved translator with one model, for the weight of coverage"
    require(has_model, "translator", type(translator.model).__name__, accepted)
    model, tokenizer = translator.require_direct().model, translator.tokenizer
    limit, frame = model.config.max_length, tokenizer.source_frame
    source_ids, target_ids = encoded_pairs(tokenizer, sources, targets, limit)
    coverages = np.zeros(len(sources))
    guided = getattr(model.config, "guided_alignment", 0) > 0
    for chosen, weights in attention_weights(model, source_ids, target_ids, tokens_per_batch):
        weights_BTS = alignment_weights(weights["cross"], guided)
        for i, weights_TS in zip(chosen, weights_BTS, strict=False):
            content = slice(len(frame.before), len(source_ids[i]) - len(frame.after))
            coverages[i] = coverage(weights_TS[: len(target_ids[i]), content])
    return coverages


def _statistics(text, reference, metric):
    """Return the counts of a text that add up to corpus BLEU: matches, n-grams, lengths."""
    score = metric.corpus_score([text], [[reference]])
    return [*score.counts, *score.totals, score.sys_len, score.ref_len]


def _bleu(statistics_NC):
    *counts, system, reference = statistics_NC.sum(axis=0).tolist()
    half = len(counts) // 2
    return BLEU.compute_bleu(counts[:half], counts[half:], system, reference, "exp").score
