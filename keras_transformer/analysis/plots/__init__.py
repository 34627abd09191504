"""Functions that return plots as matplotlib figures.

`figure.savefig("x.svg")` writes a figure, and a notebook displays it. The figures do not use
pyplot, which would keep them in memory, and is not thread-safe.
"""

from keras_transformer.analysis.plots.attention_maps import attention_lines, attention_maps
from keras_transformer.analysis.plots.head_maps import head_accuracies
from keras_transformer.analysis.plots.history import (
    learning_rate,
    positional_encoding,
    training_history,
)
from keras_transformer.analysis.plots.quality import bleu_by_length, calibration, reliability

__all__ = [
    "attention_lines",
    "attention_maps",
    "bleu_by_length",
    "calibration",
    "head_accuracies",
    "learning_rate",
    "positional_encoding",
    "reliability",
    "training_history",
]
