"""Quality and speed of a translator on a test set, and the `metrics.json` that records them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.data.trees import Tree, punctuation, spans, tree_of
from keras_transformer.evaluation.scores import evaluate, moses, published_bleu, rouge
from keras_transformer.evaluation.spans import bracket_f1
from keras_transformer.running.inputs import same_number
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.system.files import read_json, write_json
from keras_transformer.translate.document_translation import translate_documents
from keras_transformer.translate.translator import METRICS, Translator

if TYPE_CHECKING:  # a server with CTranslate2 does not import Keras
    from keras_transformer.tasks.learned_metric import LearnedMetric


@spelled_out(Search, TRANSLATE)
def assess(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    *,
    tokens_per_batch: int = 4096,
    lowercase: bool = False,
    tokenize: str | None = None,
    published_language: str | None = None,
    summaries: bool = False,
    context_sentences: int = 0,
    learned: Mapping[str, LearnedMetric] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Translate a test set, and compare the translations with the references.

    Args:
        translator: Translator to measure.
        pairs: (source, reference) texts, at least one pair. Pairs of empty texts do not count.
        tokens_per_batch, options: See `Translator.translate`.
        lowercase: Whether BLEU, chrF and the exact match ignore case.
        tokenize: Tokenizer of BLEU, see `scores.evaluate`; None: that of the translator's target
            language.
        published_language: Code of the target language, such as "de", to also compute BLEU as in
            papers on Multi30k (lower-cased, Moses-tokenised); None: it is not computed.
        summaries: Whether the translations are summaries, for which ROUGE is computed, too.
        context_sentences: Number of earlier sentences that are read with each, see
            `translate_documents`; an empty pair ends a document. 0: none.
        learned: Learned metrics by name; None: none.

    Returns:
        - The results of `scores.evaluate`: `bleu`, `bleu_signature`, `chrf`, `ter`, `exact_match`,
          `sentences` and others.
        - With `published_language`: `published_bleu` and `published_bleu_signature`.
        - With `summaries`: the results of `scores.rouge`: `rouge1`, `rouge2` and `rougeL`.
        - `metric_NAME`: the mean score by each learned metric.
        - `perplexity`: e to the mean negative log-probability of the references' tokens, EOS
          included, over the pairs within the model's `max_length`; None if there are no such pairs,
          or the translator needs two steps, see `Translator`.
        - `beam_size` and `length_penalty` of the search.
        - `seconds`: wall time of translating, compilation included.
        - `tokens_per_second`: the tokens of the translations divided by `seconds`.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If there are no pairs, or an option is out of range.
        ImportError: If `published_language` is given and sacremoses is not installed, or
            `summaries` and rouge-score is not.
    """
    if published_language is not None:
        moses([], published_language)  # raises before translating if sacremoses is missing
    if summaries:
        rouge([""], [""])  # raises if rouge-score is missing
    sources = [source for source, _ in pairs]
    search = translator.options(options)
    begin = time.perf_counter()
    options["tokens_per_batch"] = tokens_per_batch
    if context_sentences:
        hypotheses = translate_documents(translator, sources, context_sentences, **options)
    else:
        hypotheses = translator.translate(sources, **options)
    seconds = time.perf_counter() - begin
    pairs, hypotheses = _filled(pairs, hypotheses)
    words: dict[str, Any] = dict(lowercase=lowercase, tokenize=tokenize)
    metrics = measured(
        translator, pairs, hypotheses, search, seconds, tokens_per_batch=tokens_per_batch, **words
    )
    references = [target for _, target in pairs]
    if published_language is not None:
        bleu, signature = published_bleu(hypotheses, references, published_language)
        metrics |= {"published_bleu": bleu, "published_bleu_signature": signature}
    if summaries:
        metrics |= rouge(hypotheses, references)
    texts = [source for source, _ in pairs], hypotheses, references
    for name, metric in (learned or {}).items():
        metrics[f"metric_{name}"] = float(metric.score(*texts).mean())
    return metrics


def measured(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    hypotheses: Sequence[str],
    search: Search,
    seconds: float,
    *,
    tokens_per_batch: int = 4096,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> dict[str, Any]:
    """Return the metrics of `assess`, without published BLEU and ROUGE, for given translations.

    Args:
        translator: Translator that made the translations.
        pairs: (source, reference) texts, at least one pair with text.
        hypotheses: Translations, one per pair.
        search: Options of the search that made them.
        seconds: Wall time of translating.
        tokens_per_batch, lowercase, tokenize: See `assess`.

    Raises:
        ValueError: If there are no pairs, or the numbers of texts differ.
    """
    pairs, hypotheses = _filled(pairs, hypotheses)
    words = dict(lowercase=lowercase, tokenize=tokenize, language=translator.target_language)
    metrics = evaluate(hypotheses, [target for _, target in pairs], **words)
    num_tokens = sum(map(len, translator.tokenizer.encode_target(list(hypotheses))))
    return metrics | {
        "perplexity": perplexity(translator, pairs, tokens_per_batch=tokens_per_batch),
        "beam_size": search.beam_size,
        "length_penalty": search.length_penalty,
        "seconds": seconds,
        "tokens_per_second": num_tokens / seconds,
    }


def _filled(
    pairs: Sequence[tuple[str, str]], hypotheses: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs that have text on at least one side, and their translations."""
    same_number(pairs, hypotheses)
    filled = [i for i, pair in enumerate(pairs) if any(map(str.strip, pair))]
    return [pairs[i] for i in filled], [hypotheses[i] for i in filled]


def perplexity(
    translator: Translator, pairs: Sequence[tuple[str, str]], *, tokens_per_batch: int = 4096
) -> float | None:
    """Return e to the mean negative log-probability of the targets' tokens, EOS included.

    Args:
        translator: Translator to measure.
        pairs: (source, target) texts. A pair is skipped if one of its texts is longer than the
            model's `max_length`.
        tokens_per_batch: See `Translator.score`.

    Returns:
        The perplexity, at least 1; None if all pairs are too long for the model, or the translator
        needs two steps.
    """
    if getattr(translator, "middle", None):
        return None
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    totals, counts = log_probabilities(translator, sources, targets, tokens_per_batch)
    fitting = ~np.isnan(totals)
    if not fitting.any():
        return None
    return math.exp(-math.fsum(totals[fitting]) / counts[fitting].sum())


def log_probabilities(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    tokens_per_batch: int = 4096,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(target | source) of each pair, and the number of its target tokens.

    Args:
        translator: Translator whose model gives the probabilities.
        sources, targets: Texts, the same number of each.
        tokens_per_batch: See `Translator.score`.

    Returns:
        Log-probabilities (N,), NaN if a text of the pair is longer than the model's `max_length`;
        and numbers of target tokens (N,), EOS included, without forced first tokens such as a
        language.

    Raises:
        ValueError: If the numbers of texts differ.
    """
    limit = translator.config.max_length
    source_ids = translator.tokenizer.encode_source(list(sources))
    target_ids = translator.tokenizer.encode_target(list(targets))
    same_number(source_ids, target_ids)
    longest = [max(map(len, pair)) for pair in zip(source_ids, target_ids, strict=True)]
    fitting = [i for i, length in enumerate(longest) if length <= limit]
    totals = np.full(len(longest), np.nan)
    totals[fitting] = translator.score(
        [sources[i] for i in fitting],
        [targets[i] for i in fitting],
        tokens_per_batch=tokens_per_batch,
    )
    prefix_length = len(translator.tokenizer.target_frame.before)  # forced, so not predicted
    return totals, np.array([len(ids) - prefix_length for ids in target_ids])


def parsing_scores(lines: Sequence[str], trees: Sequence[Tree]) -> dict[str, float]:
    """Return the scores of a parser, counted as by EVALB with COLLINS.prm.

    Args:
        lines: Output of the parser for each sentence, in the form of `data.trees.linearize`. If a
            line is not a tree over the words of its sentence, it counts as one without brackets.
        trees: Correct trees, with tags.

    Returns:
        The results of `spans.bracket_f1`, and `well_formed`, the percentage of lines that are
        trees over their words.

    Raises:
        ValueError: If `lines` and `trees` differ in length or are empty.
    """
    predicted, expected, formed = [], [], 0
    for line, tree in zip(lines, trees, strict=True):
        left_out = punctuation(tree)
        expected.append(spans(tree, left_out))
        try:
            predicted.append(spans(tree_of(line, tree.words()), left_out))
            formed += 1
        except ValueError:
            predicted.append([])
    return bracket_f1(predicted, expected) | {"well_formed": 100.0 * formed / len(trees)}


def save_metrics(folder: str | os.PathLike, name: str, metrics: Mapping[str, Any]) -> None:
    """Save the metrics of a test set in the `metrics.json` of a folder.

    Metrics of other test sets are kept; those of the same test set are replaced.

    Args:
        folder: Folder of a saved model.
        name: Name of the test set, such as "test_2016_flickr".
        metrics: Plain values, such as those that `assess` returns.

    Raises:
        ValueError: If the existing `metrics.json` is broken.
    """
    path = Path(folder) / METRICS
    known = read_metrics(folder)
    write_json(path, {**known, name: dict(metrics)})


def read_metrics(folder: str | os.PathLike) -> dict[str, dict[str, Any]]:
    """Return the metrics in the `metrics.json` of a folder, by test set; {} without this file.

    Raises:
        ValueError: If the file is broken.
    """
    path = Path(folder) / METRICS
    known = read_json(path) if path.exists() else {}
    if not isinstance(known, dict):
        raise ValueError(f"{path} must hold an object of metrics by test set, got {known!r:.80}")
    return known
