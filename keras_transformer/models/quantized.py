"""Models with 8-bit weights as float models, which compute faster on most machines."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer.backend.private import layers_inside
from keras_transformer.layers.layer import skip_init
from keras_transformer.models.configured import ConfiguredModel


def widened(model: ConfiguredModel) -> ConfiguredModel:
    """Return a float32 copy of a model whose weights are quantized to "int8".

    `save_folder` quantizes the copy's weights again when it writes them: rounding weights that are
    rounded already changes them by a millionth at most.

    Args:
        model: A model with quantization "int8".
    """
    config = dict(model.get_config())
    del config["quantization"]
    config.pop("remainders", None)
    with skip_init():
        copy = type(model).from_config(config)
    values = {weight.path: weight for weight in model.weights}
    for layer in layers_inside(model):
        if layer.quantization_mode == "int8":
            matrix = _matrix_of(layer)
            values[matrix.path] = _whole(layer, matrix)
    for weight in copy.weights:
        weight.assign(values[weight.path])
    copy.saved_quantization = "int8"
    return copy


def _matrix_of(layer):
    """Return the int8 variable of a quantized Keras layer."""
    return layer._kernel if hasattr(layer, "_kernel") else layer._embeddings


def _whole(layer, matrix):
    if hasattr(layer, "whole_matrix"):
        return layer.whole_matrix()
    if isinstance(layer, keras.layers.Embedding):
        return ops.cast(matrix, "float32") / layer.embeddings_scale[:, None]
    return ops.cast(matrix, "float32") / layer.kernel_scale
