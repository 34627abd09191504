"""Plot of the accuracies of all attention heads for known relations between words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.analysis.alignment import PARTS
from keras_transformer.analysis.heads import Ranking
from keras_transformer.analysis.plots.figures import GREY, new_figure
from keras_transformer.config import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def head_accuracies(rankings: Mapping[tuple[str, str], Ranking]) -> Figure:
    """Draw the accuracy of each head: a heat map per kind of attention, a row per relation.

    Args:
        rankings: Rankings by relation and kind of attention, such as those of
            `analysis.heads.grammar_rankings`; at least one.

    Raises:
        ValueError: If there are no rankings.
        ImportError: If matplotlib is not installed.
    """
    require(len(rankings) > 0, "rankings", 0, "at least one")
    parts = [part for part in PARTS if any(part == kind for _, kind in rankings)]
    rows = {part: [name for name, kind in rankings if kind == part] for part in parts}
    heads = {part: sorted(_places(rankings[rows[part][0], part])) for part in parts}
    cells = max(map(len, heads.values()))
    height = sum(0.5 * len(names) + 0.9 for names in rows.values())
    figure = new_figure(max(0.55 * cells + 2.6, 4.5), height)
    shares = dict(height_ratios=[len(rows[part]) + 0.5 for part in parts])
    panels = figure.subplots(len(parts), 1, squeeze=False, gridspec_kw=shares)[:, 0]
    for axes, part in zip(panels, parts, strict=True):
        accuracies = np.array(
            [[_places(rankings[name, part])[x] for x in heads[part]] for name in rows[part]]
        )
        image = axes.imshow(accuracies, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        for (y, x), value in np.ndenumerate(accuracies):
            color = "white" if value > 0.6 else "black"
            axes.text(x, y, f"{value:.0%}", ha="center", va="center", fontsize=7, color=color)
        axes.set_yticks(range(len(rows[part])), rows[part], fontsize=9)
        labels = [f"{layer}.{head}" for layer, head in heads[part]]
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
        axes.set_title(part, fontsize=9, color=GREY)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    panels[-1].set_xlabel("layer.head", fontsize=9, color=GREY)
    figure.colorbar(image, ax=list(panels), label="accuracy", aspect=30).outline.set_visible(False)
    return figure


def _places(ranking):
    """Return the accuracy of each head, by (layer, head)."""
    return {(x.layer, x.head): x.accuracy for x in ranking.heads}
