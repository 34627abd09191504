"""Training text that translators make: back-translations, and the translations of a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.evaluation.tokenizers import bleu_metric
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.translator import Translator

Pairs = list[tuple[str, str]]


def back_translated(
    reverse: Translator,
    texts: Sequence[str],
    *,
    tag: str = "<BT>",
    seed: int = 0,
    **options: Any,
) -> Pairs:
    """Return pairs of a sampled source and a text (Sennrich et al. 2016; Edunov et al. 2018).

    Sampling gives more varied sources than a beam search, and the tag tells the model that a source
    is synthetic (Caswell et al. 2019, section 3).

    Args:
        reverse: A translator from the language of the texts into the source language.
        texts: Monolingual text in the target language. Empty texts, and those whose translation is
            empty, give no pair.
        tag: Word before each source; "" for none.
        seed: Seed of the samples.
        options: Further options of `Translator.sample`.
    """
    texts = [text for text in checked_texts(texts) if text.strip()]
    sources = reverse.sample(texts, seed=seed, **options)
    tag = f"{tag} " if tag else ""
    return [
        (tag + source, text) for source, text in zip(sources, texts, strict=True) if source.strip()
    ]


def distilled(
    teacher: Translator,
    texts: Sequence[str],
    references: Sequence[str] | None = None,
    *,
    num_hypotheses: int = 1,
    **options: Any,
) -> Pairs:
    """Return pairs of a text and translations of a teacher (Kim and Rush 2016).

    Args:
        teacher: The teacher, or an ensemble of several.
        texts: Source texts of the training data. Empty texts, and empty translations, give no pair.
        references: Reference translations: of the translations of a text, only the one with the
            highest BLEU is taken (section 3.3, sequence-level interpolation). None: all different
            ones are taken.
        num_hypotheses: Number of translations that the teacher makes of each text.
        options: Further options of `Translator.nbest`; `beam_size`, by default 4, is raised to
            `num_hypotheses` if it is less.

    Raises:
        ValueError: If the numbers of texts differ.
    """
    texts = checked_texts(texts)
    if references is not None:
        references = checked_texts(references, "references")
        accepted = f"{len(texts)} texts, one per source"
        require(len(references) == len(texts), "references", f"{len(references)} texts", accepted)
    wide = {"beam_size": max(num_hypotheses, options.pop("beam_size", 4))}
    nbest_lists = teacher.nbest(texts, num_hypotheses=num_hypotheses, **wide, **options)
    if references is not None:
        metric = bleu_metric(None, teacher.target_language, references, effective_order=True)
    pairs = []
    for i, text in enumerate(texts):
        written = [x.text for x in nbest_lists[i] if x.text.strip()]
        if references is not None and written:
            expected = [references[i]]
            written = [max(written, key=lambda x: metric.sentence_score(x, expected).score)]
        pairs += [(text, x) for x in dict.fromkeys(written) if text.strip()]
    return pairs
