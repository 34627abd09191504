"""LoRA: training of low-rank updates of a model's dense layers (Hu et al. 2021)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import keras

from keras_transformer.backend.private import layers_inside
from keras_transformer.config import require_whole
from keras_transformer.layers.layer import skip_init


def enable_lora(
    model: keras.Model, rank: int, alpha: float | None = None, whole: Collection[str] = ()
) -> None:
    """Replace each dense layer's W by W + (alpha / rank) A B; train only A and B (Hu et al. 2021).

    A (D, rank) is random and B (rank, F) is zero, so at first the outputs are the same. All other
    weights are frozen, except those in `whole`. The output projection gets no update.

    Args:
        model: A built model; changed in place.
        rank: Rank of the products, at least 1.
        alpha: Scale of the products; None: `rank`, so that the factor is 1.
        whole: Paths of further weights to train, such as those of a new head. A layer whose kernel
            is among them gets no update.

    Raises:
        ValueError: If the rank is out of range, or the model has LoRA already or quantized weights.
    """
    require_whole("rank", rank, 1)
    layers = [x for x in _layers(model) if isinstance(x, keras.layers.Dense)]
    for problem, has in (
        ("has LoRA already", any(x.lora_enabled for x in layers)),
        ("has quantized weights", any(x.quantization_mode for x in layers)),
    ):
        if has:
            raise ValueError(f"LoRA needs a float model without LoRA: this one {problem}")
    for layer in layers:
        if layer is getattr(model, "output_layer", None) or layer.kernel.path in whole:
            continue
        layer.enable_lora(rank, lora_alpha=alpha)
    for weight in model.trainable_weights:
        if "lora_kernel" not in weight.name and weight.path not in whole:
            weight.trainable = False


def lora_rank(weights: Mapping[str, Any]) -> int:
    """Return the LoRA rank of a checkpoint's weights, given by path; 0 if they have no LoRA."""
    ranks = (value.shape[-1] for path, value in weights.items() if "lora_kernel_a" in path)
    return next(ranks, 0)


def merged(model: keras.Model) -> keras.Model:
    """Return a copy of the model with LoRA's products added to the weights.

    The copy has no optimizer and no loss. Its weights are trainable as in a new model.
    """
    with skip_init():
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
