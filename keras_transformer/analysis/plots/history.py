"""Plots of the paper's positional encoding and learning rate, and of the history of a run."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from keras_transformer.analysis.plots.figures import COLORS, new_figure, plain
from keras_transformer.config import require, require_whole
from keras_transformer.layers import sinusoids
from keras_transformer.system.files import read_json
from keras_transformer.weights.state import STATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_METRICS = ("seconds",)  # entries in the logs of an epoch that are not plotted


def positional_encoding(d_model: int, length: int) -> Figure:
    """Draw the sinusoids of section 3.5: one row per position, one column per dimension.

    Args:
        d_model: Number of dimensions, even.
        length: Number of positions.

    Raises:
        ValueError: If an argument is not a positive whole number, or `d_model` is odd.
        ImportError: If matplotlib is not installed.
    """
    require_whole("length", length, 1)
    require_whole("d_model", d_model, 2)
    require(d_model % 2 == 0, "d_model", d_model, "even")
    figure = new_figure(7, 4)
    axes = figure.subplots()
    image = axes.imshow(
        sinusoids(length, d_model), "RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    axes.set(xlabel="dimension", ylabel="position")
    figure.colorbar(image, ax=axes, label="sine at even dimensions, cosine at odd")
    return figure


def learning_rate(schedule: Callable[[Any], Any], steps: int) -> Figure:
    """Draw the learning rate by update; `WarmupSchedule.paper(512)` is the paper's base schedule.

    Args:
        schedule: Function from a step, counted from 0, to the rate (section 5.3).
        steps: Number of steps to show, at least 2.

    Raises:
        ValueError: If `steps` is below 2.
        ImportError: If matplotlib is not installed.
    """
    require_whole("steps", steps, 2)
    shown = np.unique(np.linspace(0, steps - 1, 500).astype("int32"))
    rates = [float(ops.convert_to_numpy(schedule(ops.convert_to_tensor(i)))) for i in shown]
    figure = new_figure(6, 3.5)
    axes = plain(figure.subplots())
    axes.plot(shown + 1, rates, color=COLORS[0])
    axes.set(xlabel="update", ylabel="learning rate", xlim=(0, steps))
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", scilimits=(-2, 3))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return figure


def training_history(history: Any) -> Figure:
    """Draw the metrics of each epoch: one panel per metric, training and validation together.

    Args:
        history: Folder of a run, whose last checkpoint has the history; a file of Keras's
            `CSVLogger`; the `history` of Keras's `History`, lists of values by metric; or a list of
            the logs of each epoch, such as `Checkpoints.history`.

    Raises:
        ValueError: If the history has no metrics, or the folder no checkpoint.
        ImportError: If matplotlib is not installed.
    """
    metrics = _metrics(history)
    names = list(dict.fromkeys(name.removeprefix("val_") for name in metrics))
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = new_figure(0.6 + 3.2 * columns, 0.4 + 2.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for name, axes in zip(names, panels, strict=False):
        plain(axes)
        for kind, color, mark in (("", COLORS[0], "o"), ("val_", COLORS[1], "s")):
            values = metrics.get(kind + name, [])
            if values:
                epochs = range(1, len(values) + 1)
                label = "validation" if kind else "training"
                axes.plot(epochs, values, color=color, marker=mark, markersize=3, label=label)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axes.set_xlim(0.5, max(map(len, metrics.values())) + 0.5)
        axes.legend(frameon=False, fontsize=8)
    for axes in list(figure.axes)[len(names) :]:
        axes.remove()
    return figure


def _metrics(history):
    """Return the values of each metric from any history that `training_history` accepts."""
    if isinstance(history, str | os.PathLike):
        path = Path(history)
        if path.is_dir():
            states = sorted(path.glob(f"checkpoints/epoch-*/{STATE}"))
            require(bool(states), "history", str(path), "the folder of a run with its checkpoints")
            history = read_json(states[-1])["history"]
        else:
            with path.open(encoding="utf-8", newline="") as file:
                history = [
                    {k: v for k, v in row.items() if k != "epoch"} for row in csv.DictReader(file)
                ]
    if not isinstance(history, Mapping):
        names = dict.fromkeys(name for logs in history for name in logs)
        history = {name: [logs.get(name, "nan") for logs in history] for name in names}
    metrics = {
        name: [float(value or "nan") for value in values]
        for name, values in history.items()
        if name not in NOT_METRICS
    }
    require(any(metrics.values()), "history", history, "the metrics of at least one epoch")
    return metrics
