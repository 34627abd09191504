"""Our Transformer in the layout of Marian and Pegasus: the same function, reordered features."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_transformer.config import TransformerConfig

# The axis of the residual stream in each kind of weight, by the end of its path.
_AXES = {
    "tokens/embeddings": 1,
    "gamma": 0,
    "beta": 0,
    "query_key_value/kernel": 0,
    "query/kernel": 0,
    "key_value/kernel": 0,
    "attention/output/kernel": 1,
    "attention/output/bias": 0,
    "feed_forward/hidden/kernel": 0,
    "feed_forward/output/kernel": 1,
    "feed_forward/output/bias": 0,
}


def standard_form(
    config: TransformerConfig, weights: Mapping[str, np.ndarray]
) -> tuple[TransformerConfig, dict[str, np.ndarray]]:
    """Convert a model to an equivalent one in the layout of Marian and Pegasus.

    Their position encodings list all sines, then all cosines, whereas the paper alternates them.
    So the features of the residual stream are reordered in every weight that reads or writes it.
    Without an output bias, one of zeros is added. The epsilon of the norms becomes 1e-5, while
    models trained here have 1e-6; only this changes the logits.

    Args:
        config: The model's config. If its positions are not the paper's sinusoids, nothing is
            changed.
        weights: Weights by Keras path.

    Returns:
        The config and the weights of the equivalent model.
    """
    if config.positions != "sinusoidal":
        return config, dict(weights)
    order = np.concatenate([np.arange(0, config.d_model, 2), np.arange(1, config.d_model, 2)])
    changed = {}
    for path, value in weights.items():
        axis = next((axis for end, axis in _AXES.items() if path.endswith(end)), None)
        if path == "output/kernel":
            axis = 0
        changed[path] = value if axis is None else np.take(value, order, axis=axis)
    if not config.output_bias:
        changed["output_bias/bias"] = np.zeros(config.target_vocab_size, "float32")
    new = dataclasses.replace(config, positions="sinusoidal_halves", output_bias=True, epsilon=1e-5)
    return new, changed
