"""Plots of attention: heat maps, and lines between words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.analysis.alignment import PARTS, Attention, between_words, weights_of
from keras_transformer.analysis.plots.figures import COLORS, GREY, families_for, new_figure
from keras_transformer.config import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.05  # weights below this have no line


def attention_maps(
    attention: Attention,
    part: str = "cross",
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Figure:
    """Draw heat maps of attention: one row per layer, one column per head, one colour scale.

    The rows of a map are queries. Queries of "decoder" and "cross" are labelled with the token
    that they predict, keys of "decoder" with the token that they read.

    Args:
        attention: Attention to show.
        part: "encoder", "decoder" or "cross".
        layers, heads: Layers and heads to show, from 0; None: all.

    Raises:
        ValueError: If `part` is unknown, or a layer or head does not exist.
        ImportError: If matplotlib is not installed.
    """
    weights, layers, heads = _chosen(attention, part, layers, heads)
    target, inputs = attention.target_tokens, attention.input_tokens
    queries = attention.source_tokens if part == "encoder" else target
    keys = inputs if part == "decoder" else attention.source_tokens
    side = 0.3 if weights[..., 0, 0].size == 1 else 0.19  # inches per cell
    points, family = 42 * side, families_for("".join([*queries, *keys]))
    labels = 0.13 * max(map(len, [*queries, *keys]))
    width = len(heads) * (side * len(keys) + 0.15) + labels + 1.2
    height = len(layers) * (side * len(queries) + 0.35) + labels + 0.6
    figure = new_figure(max(width, 3.5), height)
    grid = figure.subplots(len(layers), len(heads), sharex=True, sharey=True, squeeze=False)
    for row, layer in enumerate(layers):
        for column, head in enumerate(heads):
            axes = grid[row, column]
            limits = dict(vmin=0, vmax=weights.max(), cmap="Blues", aspect="equal")
            image = axes.imshow(weights[row, column], **limits)
            axes.set_title(f"layer {layer}, head {head}", fontsize=9)
            axes.tick_params(length=0)
            for spine in axes.spines.values():
                spine.set_color("#BBBBBB")
    text = dict(fontsize=points, fontfamily=family)
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(queries)), queries, **text)
    for axes in grid[-1]:
        axes.set_xticks(range(len(keys)), keys, rotation=90, **text)
    names = dict(encoder=("source", "source"), decoder=("target", "earlier target"))
    rows, columns = names.get(part, ("target", "source"))
    figure.supylabel(f"query: {rows}", fontsize=9, color=GREY)
    figure.supxlabel(f"key: {columns}", fontsize=9, color=GREY)
    bar = figure.colorbar(image, ax=grid, label="weight", shrink=min(1, 3 / height), aspect=15)
    bar.outline.set_visible(False)
    return figure


def attention_lines(
    attention: Attention,
    part: str = "cross",
    layer: int = -1,
    heads: Sequence[int] | None = None,
    word: int | None = None,
) -> Figure:
    """Draw attention as lines between words, one colour per head (Figures 3 to 5 of the paper).

    Queries are on the left, keys on the right; wider lines show higher weights. Tokens are merged
    into words by `analysis.alignment.between_words`.

    Args:
        attention: Attention to show.
        part: "encoder", "decoder" or "cross".
        layer: Layer to show, from 0; negative numbers count from the last.
        heads: Heads to show, from 0; None: all.
        word: Index of the query whose lines are shown, from 0, special tokens included; None: all.

    Raises:
        ValueError: If `part` is unknown, or the layer, a head or the word does not exist.
        ImportError: If matplotlib is not installed.
    """
    count = len(getattr(attention, part)) if part in PARTS else 0
    _, layers, heads = _chosen(attention, part, [layer + count if layer < 0 else layer], heads)
    queries, keys, weights = between_words(attention, part)
    require(word is None or word in range(len(queries)), "word", word, f"below {len(queries)}")
    chosen = range(len(queries)) if word is None else [word]
    longest = max(len(queries), len(keys))
    figure = new_figure(5.5, 0.3 * longest + 0.9)
    axes = figure.subplots()
    family = families_for("".join([*queries, *keys]))
    for x, align, side in ((-0.02, "right", queries), (1.02, "left", keys)):
        style: dict[str, Any] = dict(ha=align, va="center", fontfamily=family, fontsize=10)
        for y, label in enumerate(side):
            weight = "bold" if x < 0 and y == word else "normal"
            axes.text(x, y, label, fontweight=weight, **style)
    widest = min(6, max(3, 12 / len(heads)))  # points; narrow enough that few lines overlap
    for number, head in enumerate(heads):
        color = COLORS[number % len(COLORS)]
        shift = (number - (len(heads) - 1) / 2) * 0.5 / len(heads)  # lines side by side
        axes.plot([], [], color=color, linewidth=3, label=f"{head}")
        for y in chosen:
            for x, weight in enumerate(weights[layers[0], head, y]):
                if weight >= LEAST:
                    ends = [y + shift, x + shift]
                    axes.plot(
                        *([0, 1], ends),
                        **dict(color=color, linewidth=widest * weight, alpha=0.65),
                        solid_capstyle="butt",
                    )
    axes.set_xlim(-0.7, 1.7)
    axes.set_ylim(longest - 0.5, -0.5)
    axes.axis("off")
    names = dict(encoder="encoder, source to source", decoder="decoder, target to earlier target")
    name = names.get(part, "target to source")
    figure.suptitle(f"{name}, layer {layers[0]}", fontsize=10, color=GREY)
    legend = dict(
        frameon=False, title="head", fontsize=8, title_fontsize=8, ncols=min(8, len(heads))
    )
    figure.legend(loc="outside lower center", **legend)
    return figure


def _chosen(attention, part, layers, heads):
    """Return the weights of the chosen layers and heads, and the indices of these."""
    weights = weights_of(attention, part)
    indices = []
    for name, asked, count in zip(
        ("layers", "heads"), (layers, heads), weights.shape, strict=False
    ):
        asked = list(range(count) if asked is None else asked)
        known = asked and all(i in range(count) for i in asked)
        require(known, name, asked, f"some of 0 to {count - 1}")
        indices.append(asked)
    return weights[np.ix_(*indices)], *indices
