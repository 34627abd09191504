"""Plots of translation quality by length, and by the model's confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.analysis.plots.figures import COLORS, GREY, new_figure, plain
from keras_transformer.config import require, require_whole
from keras_transformer.evaluation.tokenizers import bleu_metric, lengths_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    bins: int = 5,
    language: str | None = None,
) -> Figure:
    """Draw BLEU by sentence length, as in Koehn and Knowles 2017, section 3.4.

    The test set is sorted by the number of source words (in scripts without spaces: characters),
    and split into parts of about equal size. Each bar is the corpus BLEU of a part, by sacreBLEU.

    Args:
        sources, hypotheses, references: Texts, the same number of each.
        bins: Maximum number of parts; sentences of equal length stay together.
        language: Code of the translations' language, which determines the tokenizer of BLEU; None:
            the script of the references determines it.

    Raises:
        ValueError: If the numbers of texts differ or are 0, or `bins` is below 1.
        ImportError: If matplotlib is not installed.
    """
    require_whole("bins", bins, 1)
    counts = len(sources), len(hypotheses), len(references)
    require(
        min(counts) == max(counts) > 0,
        "sources, hypotheses, references",
        counts,
        "of the same length, at least 1",
    )
    figure = new_figure(6, 3.5)
    axes = plain(figure.subplots())
    labels: list[str] = []
    metric = bleu_metric(None, language, references)
    for least, most, chosen in parts_by_length(sources, bins):
        texts = [hypotheses[i] for i in chosen]
        bleu = metric.corpus_score(texts, [[references[i] for i in chosen]]).score
        bars = axes.bar(len(labels), bleu, color=COLORS[0], width=0.7)
        axes.bar_label(bars, [f"{bleu:.1f}"], fontsize=9)
        labels.append(f"{least}" if least == most else f"{least}–{most}")
        labels[-1] += f"\n{len(chosen):,} texts"
    axes.set_xticks(range(len(labels)), labels)
    axes.set(xlabel=f"{lengths_of(sources)[0]} of the source", ylabel="BLEU")
    axes.margins(y=0.12)
    return figure


def parts_by_length(sources: Sequence[str], bins: int) -> list[tuple[int, int, np.ndarray]]:
    """Split texts by length, see `tokenizers.lengths_of`, into parts of about equal size.

    Args:
        sources: Texts, at least one.
        bins: Maximum number of parts, at least 1; texts of equal length stay together.

    Returns:
        Minimum length, maximum length, and indices of the texts of each part.
    """
    lengths = np.array(lengths_of(sources)[1])
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:], method="lower"))
    owners = np.searchsorted(edges, lengths)
    parts = [np.flatnonzero(owners == part) for part in np.unique(owners)]
    return [(int(lengths[x].min()), int(lengths[x].max()), x) for x in parts]


def reliability(scores: Sequence[float], qualities: Sequence[float], bins: int = 10) -> Figure:
    """Draw a reliability diagram: quality by confidence (Guo et al. 2017, section 2).

    Texts are sorted by confidence into bins of equal width. A bar is the mean quality of the texts
    in a bin, a dot their mean confidence; in a calibrated model, both are equal. A second panel
    shows the number of texts in each bin.

    The expected calibration error is the sum over bins of |mean quality - mean confidence|,
    weighted by the fraction of the texts. It is meaningful only if the confidence predicts this
    quality: if the quality is an accuracy, such as the fraction of correct tokens, or if the
    confidence comes from a `QualityEstimator`. For plain confidence and a similarity such as chrF,
    consider only whether the bars rise.

    Args:
        scores: Confidence of each text in [0, 1], such as the geometric mean of its tokens'
            probabilities: exp(`Translator.score` / tokens); or its estimated quality.
        qualities: Quality of each text in [0, 1], such as the sentence's chrF / 100.
        bins: Number of bins, at least 1.

    Raises:
        ValueError: If the numbers of scores and qualities differ or are 0, a value is not in
            [0, 1], or `bins` is below 1.
        ImportError: If matplotlib is not installed.
    """
    require_whole("bins", bins, 1)
    counts = len(scores), len(qualities)
    require(
        counts[0] == counts[1] > 0, "scores, qualities", counts, "of the same length, at least 1"
    )
    for name, values in dict(scores=scores, qualities=qualities).items():
        array = np.asarray(values)
        require(((array >= 0) & (array <= 1)).all(), name, array, "in [0, 1]")
    confidence, quality, count = calibration(scores, qualities, bins)
    filled = count > 0
    error = np.sum(count[filled] * np.abs(quality - confidence)[filled]) / count.sum()
    figure = new_figure(5, 5.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    centres = (np.arange(bins) + 0.5) / bins
    plain(upper).bar(centres[filled], quality[filled], 0.92 / bins, color=COLORS[0])
    upper.plot(confidence[filled], confidence[filled], "o", color=COLORS[1], label="confidence")
    upper.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1)
    upper.set(ylabel="mean quality", xlim=(0, 1), ylim=(0, 1))
    upper.set_title(f"expected calibration error {error:.3f}", fontsize=10)
    upper.legend(frameon=False, loc="upper left", fontsize=9)
    plain(lower).bar(centres, count, 0.92 / bins, color="#999999")
    lower.set(xlabel="confidence", ylabel="texts")
    return figure


def calibration(
    scores: Sequence[float], qualities: Sequence[float], bins: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean score, the mean quality and the number of texts of each bin, each (bins,).

    Both means are NaN for a bin without texts.

    Args:
        scores, qualities, bins: See `reliability`.
    """
    pair = np.asarray(scores, float), np.asarray(qualities, float)
    owners = np.minimum((pair[0] * bins).astype(int), bins - 1)
    count = np.bincount(owners, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence, quality = (np.bincount(owners, x, minlength=bins) / count for x in pair)
        return confidence, quality, count
