"""Pictures of an error report: histograms as SVG, attention and bars as HTML tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.analysis.report.elements import Element, element, joined

WIDTH, HEIGHT = 320, 120  # of the bars of a histogram
ABOVE, BELOW = 16, 34  # for the number of the highest bar, and for the labels
LEAST = 0.005  # weights below have no colour


def histogram(values: Sequence[float], title: str, edges: Sequence[float]) -> Element:
    """Return a histogram as SVG.

    Args:
        values: Numbers; NaN is left out, and those outside of the edges count in the outer bins.
        title: Label of the axis.
        edges: Edges of the bins (bins + 1,), increasing.
    """
    values = np.asarray(values, float)
    values = np.clip(values[~np.isnan(values)], edges[0], edges[-1])
    counts, _ = np.histogram(values, edges)
    most, step = max(counts.max(), 1), WIDTH / len(counts)
    bars = []
    for i, count in enumerate(counts.tolist()):
        size = HEIGHT * count / most
        place = dict(x=f"{i * step + 1:.1f}", y=f"{ABOVE + HEIGHT - size:.1f}")
        hint = element("title", f"{edges[i]:g} to {edges[i + 1]:g}: {count}")
        bars.append(element("rect", hint, width=f"{step - 2:.1f}", height=f"{size:.1f}", **place))
    highest = int(counts.argmax())
    anchor = ("start", "middle", "end")[3 * highest // len(counts)]
    at = {"start": 0, "middle": 0.5, "end": 1}[anchor]
    place = dict(x=f"{(highest + at) * step:.1f}", y=ABOVE - 4, text_anchor=anchor)
    bars.append(element("text", f"{counts.max():,}", **place))
    labels = [
        element(
            "text", f"{edges[i]:g}", x=f"{i * step:.1f}", y=ABOVE + HEIGHT + 14, text_anchor=anchor
        )
        for i, anchor in ((0, "start"), (len(counts) // 2, "middle"), (len(counts), "end"))
    ]
    name = element("text", title, x=WIDTH // 2, y=ABOVE + HEIGHT + 30, text_anchor="middle")
    view = f"0 0 {WIDTH} {ABOVE + HEIGHT + BELOW}"
    about = f"Histogram of {title}; the highest bar has {most}"
    return element("svg", *bars, *labels, name, viewBox=view, role="img", aria_label=about)


def bar(value: float, most: float = 100.0) -> Element:
    """Return a table cell with a number and a bar.

    Args:
        value: The number, at least 0.
        most: The number whose bar has the full width.
    """
    size = min(100.0, 100 * value / most)
    line = element("span", class_="bar", style=f"width:{size:.1f}%")
    return element("td", element("span", f"{value:.1f}", class_="number"), line)


def heat_map(rows: Sequence[str], columns: Sequence[str], weights: Any) -> Element:
    """Return attention as a table: a row for each word of the translation.

    Args:
        rows, columns: Words of the translation and of the source.
        weights: Numbers in [0, 1] (rows, columns).
    """
    names = [
        element("th", element("span", name, dir="auto"), scope="col", title=name)
        for name in columns
    ]
    head = element("tr", element("td"), *names)
    body = []
    for name, own in zip(rows, np.asarray(weights).tolist(), strict=True):
        cells = joined(*map(_cell, own))
        body.append(element("tr", element("th", name, scope="row", dir="auto"), cells))
    return element("table", element("thead", head), element("tbody", *body), class_="map")


def _cell(weight):
    if weight < LEAST:
        return element("td")
    return element("td", style=f"--w:{weight:.2f}".replace("0.", "."), title=f"{weight:.0%}")
