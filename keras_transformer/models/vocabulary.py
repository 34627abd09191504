"""Copies of trained models with another config, such as a larger vocabulary."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_transformer.config import require_whole
from keras_transformer.layers.layer import skip_init
from keras_transformer.models.configured import ConfiguredModel

_SPREAD = 0.1  # noise of new rows, as a share of the old rows' standard deviation


def with_config(model: ConfiguredModel, config: Any, dtype: Any = None) -> Any:
    """Return a model with another config and the weights of a trained one.

    If its vocabulary is larger, each new row of a table is the mean of the old rows plus a little
    noise: the logits of new tokens are then about the average, and the old tokens keep nearly all
    of their probability (Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language
    Models").

    Args:
        model: The trained model.
        config: Config of the new model, which differs in `vocab_size`, `dropout` or special ids.
        dtype: Keras dtype policy of the new model; None: the global one.

    Raises:
        ValueError: If the vocabulary is smaller than that of the model.
    """
    require_whole("vocab_size", config.vocab_size, model.config.vocab_size)
    with skip_init():
        made = type(model)(config, dtype=dtype)
    values = {weight.path: weight for weight in model.weights}
    generator = np.random.default_rng(0)
    for weight in made.weights:
        weight.assign(_grown(values[weight.path], tuple(weight.shape), generator))
    return made


def _grown(value, shape, generator):
    """Return a copy of a weight, with further rows or columns if the shape asks for them.

    With JAX, a training step deletes the arrays that it updates: the models must not share them.
    """
    old = np.array(keras.ops.convert_to_numpy(value))
    if old.shape == shape:
        return old
    (axis,) = (i for i, size in enumerate(shape) if size != old.shape[i])
    missing = [*shape[:axis], shape[axis] - old.shape[axis], *shape[axis + 1 :]]
    noise = _SPREAD * old.std(axis, keepdims=True) * generator.standard_normal(missing)
    new = (old.mean(axis, keepdims=True) + noise).astype(old.dtype)
    return np.concatenate([old, new], axis=axis)
