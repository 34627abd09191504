"""Shared parts of all plots: figures without pyplot, colours, and fonts for any script."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from keras_transformer.system.extras import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours without the yellow: colour-blind readers can tell them apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#595959"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes are in inches.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing("drawing", "plots") from error
    return Figure((width, height), dpi=150, facecolor="white", layout="constrained")


def plain(axes: Axes) -> Axes:
    """Give axes a light horizontal grid, and borders on the left and below only; return them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def families_for(text: str) -> list[str]:
    """Return names of installed fonts that together have as many characters of a text as possible.

    Only upright fonts of normal weight are used.
    """
    from matplotlib import font_manager

    families = ["DejaVu Sans"]  # comes with matplotlib
    path = font_manager.findfont(families[0])
    missing = set(map(ord, text)) - _characters(path)
    for font in font_manager.fontManager.ttflist:
        if not missing:
            break
        # The font Last Resort has no characters, only a box for each.
        usable = font.style == "normal" and font.weight == 400 and "Last Resort" not in font.name
        if usable and missing & _characters(font.fname):
            families.append(font.name)
            missing -= _characters(font.fname)
    return families


@functools.cache
def _characters(path: str) -> frozenset[int]:
    """Return the characters of a font file, as code points.

    The set is empty for a broken file, and for a bitmap font, which matplotlib cannot scale.
    """
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):
        return frozenset()
