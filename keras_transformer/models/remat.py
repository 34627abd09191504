"""Gradient checkpointing: less memory for more arithmetic (Chen et al. 2016)."""

from __future__ import annotations

import keras

from keras_transformer.backend.private import layers_inside
from keras_transformer.config import require
from keras_transformer.layers.mixture_of_experts import MixtureOfExperts
from keras_transformer.layers.stack import Stack


def enable_remat(model: keras.Model) -> None:
    """Make training store only the input of each block, and compute the block again (remat).

    The backward pass repeats the forward pass of one block at a time, so a step holds the results
    inside one block instead of all, and takes about a third more arithmetic. Losses, gradients and
    dropout are the same. Only training changes, and a saved model does not record it.

    Args:
        model: A model or layer with stacks (`Encoder`, `Decoder`), also a model of your own;
            changed in place.

    Raises:
        ValueError: If the model has no stacks, or mixtures of experts with a `balance_loss`.
    """
    stacks = [layer for layer in (model, *layers_inside(model)) if isinstance(layer, Stack)]
    if not stacks:
        raise ValueError(f"model must contain an Encoder or a Decoder, got {model.name!r}")
    for layer in layers_inside(model):
        if isinstance(layer, MixtureOfExperts):
            loss = layer.options.balance_loss
            require(not loss, "balance_loss", loss, "0 for training with remat")
    for stack in stacks:
        stack.remat = True
    model.train_function = None  # a step compiled before would still store everything
