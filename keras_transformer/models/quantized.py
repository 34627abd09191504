"""Models with weights of 4 or 8 bits: made from float models, and converted back to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.backend.private import layers_inside
from keras_transformer.layers.blocks import WithBlocks
from keras_transformer.layers.layer import skip_init
from keras_transformer.models.configured import ConfiguredModel


def blocks_of(model: keras.Model) -> dict[str, WithBlocks]:
    """Return the layers with a matrix in blocks, by the path of the matrix in a float model."""
    layers = layers_inside(model)
    return {x.matrix_path: x for x in layers if isinstance(x, WithBlocks) and x.bits}


def assign_matrices(model: keras.Model, value_of: Callable[[str, tuple[int, ...]], Any]) -> None:
    """Assign a model's weights one by one; those kept in blocks are rounded.

    Args:
        model: A model.
        value_of: Function from the path and the shape of a weight in a float model to its value.
    """
    blocks = blocks_of(model)
    for path, layer in blocks.items():
        layer.set_matrix(value_of(path, layer.matrix_shape))
    rounded = {id(x) for layer in blocks.values() for x in (layer.levels, layer.scales)}
    for weight in model.weights:
        if id(weight) not in rounded:
            weight.assign(value_of(weight.path, tuple(weight.shape)))


def narrowed(model: ConfiguredModel, mode: str) -> ConfiguredModel:
    """Return a copy of a float model, with dense layers and token tables in 4- or 8-bit blocks.

    Args:
        model: A model without quantization.
        mode: One of `BLOCKS`.
    """
    with skip_init():
        copy = type(model).from_config(model.get_config() | {"quantization": mode})
    values = {weight.path: weight for weight in model.weights}
    assign_matrices(copy, lambda path, _: values[path])
    return copy


def widened(model: ConfiguredModel) -> ConfiguredModel:
    """Return a float32 copy of a model whose weights are quantized.

    If the mode is "int8", `save_folder` quantizes the copy's weights again when it writes them.

    Args:
        model: A model with quantization "int8" or one of `BLOCKS`.
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
    values |= {path: layer.float_matrix() for path, layer in blocks_of(model).items()}
    for weight in copy.weights:
        weight.assign(values[weight.path])
    copy.saved_quantization = "int8" if model.quantization == "int8" else None
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
