"""Weight files: write, read, check against a model, and average."""

from keras_transformer.checkpoints.averaging import average, average_weights
from keras_transformer.checkpoints.weights import (
    WEIGHTS,
    assign_weights,
    load_weights,
    read_weights,
    save_weights,
    weights_of,
    write_weights,
)

__all__ = [
    "WEIGHTS",
    "assign_weights",
    "average",
    "average_weights",
    "load_weights",
    "read_weights",
    "save_weights",
    "weights_of",
    "write_weights",
]
