"""Our own Transformer as others lay it out: the same function, its features in another order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_transformer.config import TransformerConfig

# The axis of each kind of weight, by the end of its path, that is the residual stream's.
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
    """An equal model in the layout of Marian and Pegasus.

    They have all sines of a position before its cosines, where the paper has them in turn: so the
    features of the residual stream change places, in every weight that reads or writes it. They
    have a bias of the logits, here zero. Their norms have an epsilon of 1e-5, ours mostly 1e-6,
    which is the one thing that is not just the same.

    Args:
        config: with the paper's sinusoids; any other comes back as it is.
        weights: by Keras path.

    Returns:
        The new config and weights.
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
    options = dict(positions="sinusoidal_halves", output_bias=True, epsilon=1e-5)
    return dataclasses.replace(config, **options), changed
