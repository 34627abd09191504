"""Trained models made cheaper: to train further (LoRA), to keep and to run (8-bit weights)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from keras_transformer.backend.private import layers_inside
from keras_transformer.config import require_whole
from keras_transformer.layers.layer import unfilled


def enable_lora(model: keras.Model, rank: int, alpha: float | None = None) -> None:
    """Lets only W + (alpha / rank) A B be trained, for each dense layer's W (Hu et al. 2021).

    A is (D, rank), random, and B (rank, F), zero: the model is at first the same. Everything else
    is frozen: embeddings, norms, biases, and what makes logits.

    Args:
        model: built.
        rank: of the products, at least 1.
        alpha: scale; None: `rank`, so that the factor is 1.

    Raises:
        ValueError: if the rank is out of range, or the model has LoRA already or 8-bit weights.
    """
    require_whole("rank", rank, 1)
    layers = [x for x in _layers(model) if isinstance(x, keras.layers.Dense)]
    for problem, has in (
        ("has LoRA already", any(x.lora_enabled for x in layers)),
        ("has quantized weights", any(x.quantization_mode for x in layers)),
    ):
        if has:
            raise ValueError(f"LoRA needs a model without it, in floats: this one {problem}")
    for layer in layers:
        if layer is not getattr(model, "output_layer", None):
            layer.enable_lora(rank, lora_alpha=alpha)
    for weight in model.trainable_weights:
        if "lora_kernel" not in weight.name:
            weight.trainable = False


def lora_rank(weights: Mapping[str, Any]) -> int:
    """The rank of the products that a checkpoint's weights, by path, have; 0 if there are none."""
    ranks = (value.shape[-1] for path, value in weights.items() if "lora_kernel_a" in path)
    return next(ranks, 0)


def merged(model: keras.Model) -> keras.Model:
    """A copy of the model, LoRA's products added to the weights that they belong to.

    The copy has neither optimizer nor loss, and is trainable as a new model is.
    """
    with unfilled():
        copy = type(model).from_config(model.get_config())
    values = {weight.path: weight for weight in model.weights}
    for layer in _layers(model):
        if getattr(layer, "lora_enabled", False):
            values[layer._kernel.path] = layer.kernel
    for weight in copy.weights:
        weight.assign(values[weight.path])
    return copy


def _layers(model):
    return layers_inside(model)
