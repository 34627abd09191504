"""Weight files: write, read, check against a model, and average."""

from keras_transformer.weights.averaging import average, average_weights
from keras_transformer.weights.weight_files import (
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
