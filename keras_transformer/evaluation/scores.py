"""Scores of translations (BLEU, chrF and TER by sacreBLEU) and of summaries (ROUGE)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sacrebleu

from keras_transformer.evaluation.tokenizers import bleu_metric, ter_metric
from keras_transformer.system.extras import missing


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str | None = None,
    language: str | None = None,
    lowercase: bool = False,
) -> dict[str, Any]:
    """Compare translations with one reference each.

    Args:
        hypotheses: The translations, plain text.
        references: Reference translations, in the same order.
        tokenize: Tokenizer of BLEU, by sacreBLEU's name: "13a", "intl", "char", "zh", "flores200",
            "none" (for texts that are already tokenised), ...; None: the one that sacreBLEU
            recommends for the language, see `tokenizers.tokenizer_of`.
        language: Code of the translations' language; None: it is derived from the script of the
            references.
        lowercase: Whether BLEU, chrF and the exact match ignore case; TER always does, as in
            sacreBLEU and the original tool.

    Returns:
        - `bleu` (Papineni et al. 2002) and `chrf` (Popović 2015) in percent.
        - `ter` (Snover et al. 2006) in percent: an error rate, lower is better; in Chinese and
          Japanese, characters count as words.
        - `bleu_signature`, `chrf_signature` and `ter_signature`: sacreBLEU's signatures (Post
          2018).
        - `exact_match`: percentage of hypotheses that are equal to their reference, ignoring
          spaces at both ends.
        - `sentences`: number of sentences.

    Raises:
        ValueError: If hypotheses and references differ in length, are empty or not sequences of
            strings, or `tokenize` is unknown or cannot be loaded.
    """
    hypotheses, references = _checked(hypotheses, references)
    metrics = {
        "bleu": bleu_metric(tokenize, language, references, lowercase=lowercase),
        "chrf": sacrebleu.CHRF(lowercase=lowercase),
        "ter": ter_metric(language, references),
    }
    results: dict[str, Any] = {}
    for name, metric in metrics.items():
        results[name] = metric.corpus_score(hypotheses, [references]).score
        results[f"{name}_signature"] = str(metric.get_signature())
    case = str.lower if lowercase else str
    equal = sum(
        case(hypothesis).strip() == case(reference).strip()
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    results["exact_match"] = 100.0 * equal / len(references)
    results["sentences"] = len(references)
    return results


def moses(texts: Iterable[str], language: str) -> list[str]:
    """Tokenise texts as the Moses scripts do: punctuation normalized, tokens joined by spaces.

    This is sacremoses's port of normalize-punctuation.perl and tokenizer.perl (Koehn et al. 2007),
    without escaping of special characters such as "&", and without splitting at hyphens.

    Args:
        texts: Plain texts. If they are to be lower-cased, do so first: capitals decide which full
            stops end a sentence.
        language: ISO 639-1 code of the texts, such as "de".

    Returns:
        The tokenised texts.

    Raises:
        ImportError: If sacremoses is not installed.
        ValueError: If `texts` is one string, or has an item that is not a string.
    """
    try:
        import sacremoses
    except ImportError as error:
        raise missing("Moses tokenisation", "moses") from error
    normalizer = sacremoses.MosesPunctNormalizer(lang=language)
    tokenizer = sacremoses.MosesTokenizer(lang=language)
    return [
        tokenizer.tokenize(normalizer.normalize(text), return_str=True, escape=False)
        for text in _checked_texts("texts", texts)
    ]


def published_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, str]:
    """Return BLEU as papers on Multi30k report it: lower-cased, Moses-tokenised.

    These papers train and evaluate on the data set's preprocessed files (lower-cased, punctuation
    normalized, tokenised, in this order). Here, plain hypotheses and references are preprocessed in
    the same way, and BLEU compares the resulting tokens.

    Args:
        hypotheses: The translations, plain (detokenised) text in any case.
        references: The references, plain text.
        language: ISO 639-1 code of both, such as "de".

    Returns:
        BLEU in percent, and sacreBLEU's signature for it.

    Raises:
        ImportError: If sacremoses is not installed.
        ValueError: See `evaluate`.
    """
    hypotheses, references = _checked(hypotheses, references)
    bleu = sacrebleu.BLEU(tokenize="none", lowercase=True, force=True)
    hypotheses = moses([text.lower() for text in hypotheses], language)
    references = moses([text.lower() for text in references], language)
    return bleu.corpus_score(hypotheses, [references]).score, str(bleu.get_signature())


def rouge(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compare summaries with one reference each by ROUGE (Lin 2004), without stemming.

    Words are sequences of the letters a to z, in any case, and digits: text in other scripts does
    not count.

    Args:
        hypotheses: The summaries, plain text.
        references: Reference summaries, in the same order.

    Returns:
        `rouge1`, the F1 of words; `rouge2`, the F1 of pairs of words; and `rougeL`, the F1 of the
        longest common subsequence of words. All are means over the summaries, in percent.

    Raises:
        ImportError: If rouge-score is not installed.
        ValueError: See `evaluate`; also if the references have text, but no such word.
    """
    hypotheses, references = _checked(hypotheses, references)
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise missing("ROUGE", "rouge") from error
    if any(map(str.strip, references)) and not re.search("[a-z0-9]", " ".join(references).lower()):
        raise ValueError(
            f"ROUGE counts words of the letters a to z only, and no reference has one, such as "
            f"{references[0]!r:.60}: leave it out"
        )
    kinds = ("rouge1", "rouge2", "rougeL")
    results = list(map(RougeScorer(kinds).score, references, hypotheses))
    return {kind: 100.0 * sum(x[kind].fmeasure for x in results) / len(results) for kind in kinds}


def table(metrics: Mapping[str, Any]) -> str:
    """Return metrics as lines of text: aligned names and values.

    Floats have two decimals; those between -0.01 and 0.01, except 0, two significant digits.
    """
    width = max(map(len, metrics), default=0)
    lines = []
    for name, value in metrics.items():
        shown = f"{value}"
        if isinstance(value, float):
            shown = f"{value:,.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
        lines.append(f"{name:<{width}}  {shown}")
    return "\n".join(lines)


def _checked(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return both as lists; raise ValueError unless they have the same length above 0."""
    hypotheses = _checked_texts("hypotheses", hypotheses)
    references = _checked_texts("references", references)
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses and references must have the same length, got {len(hypotheses)} and "
            f"{len(references)}"
        )
    if not references:
        raise ValueError("hypotheses and references must not be empty")
    return hypotheses, references


def _checked_texts(name: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise ValueError(f"{name} must be a sequence of strings, got the one string {texts!r:.80}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name}[{index}] must be a string, got {type(text).__name__}")
    return texts
