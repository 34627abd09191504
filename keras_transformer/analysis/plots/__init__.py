"""Pictures, as matplotlib's figures: `figure.savefig("x.svg")` writes one, a notebook shows it.

No figure is of pyplot, so that none stays in memory, and threads do not meet.
"""

from keras_transformer.analysis.plots.attention import attention_lines, attention_maps
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
    "learning_rate",
    "positional_encoding",
    "reliability",
    "training_history",
]
