"""The one room that knows which backend runs: cache writes, compilation, random state.

Everything else is written on `keras.ops`. Each function here has a plain meaning that holds on
every backend, and a faster way to it on one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

BACKEND = keras.backend.backend()

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch
else:
    raise ImportError(
        f"KERAS_BACKEND must be 'tensorflow', 'jax' or 'torch' for keras_transformer, "
        f"got {BACKEND!r}"
    )

# A new shape costs a compilation under JAX only: TensorFlow's graphs take any, PyTorch is eager.
COMPILES_EACH_SHAPE = BACKEND == "jax"


def write_cache(cache_BNSH: Any, update_BNTH: Any, index: Any) -> Any:
    """Returns the cache with `update` written at positions [index, index + T).

    On PyTorch without gradients it is written in place: `slice_update` would clone the whole
    cache at every step.
    """
    if BACKEND == "torch" and not torch.is_grad_enabled():
        start = int(index)
        cache_BNSH[:, :, start : start + update_BNTH.shape[2]] = update_BNTH
        return cache_BNSH
    return ops.slice_update(cache_BNSH, (0, 0, index, 0), update_BNTH)


def smoothed_cross_entropy(logits_BTV: Any, labels_BT: Any, label_smoothing: float) -> Any:
    """-sum_v q(v) log p(v) a token, q = (1 - e) onehot(label) + e / V: (B, T) float32.

    With log Z = logsumexp(logits) it is log Z - (1 - e) logit[label] - e mean(logits), which
    builds no distribution over the vocabulary. PyTorch has a function for it: its autograd would
    keep eight copies of (tokens x vocabulary) of the formula, half the time of a small model.
    """
    logits_BTV = ops.cast(logits_BTV, "float32")
    labels_BT = ops.cast(labels_BT, "int32")
    if BACKEND == "torch":
        loss_N = torch.nn.functional.cross_entropy(
            logits_BTV.reshape(-1, logits_BTV.shape[-1]),
            labels_BT.reshape(-1).long(),
            reduction="none",
            label_smoothing=label_smoothing,
        )
        return loss_N.reshape(labels_BT.shape)
    chosen = ops.take_along_axis(logits_BTV, ops.expand_dims(labels_BT, -1), axis=-1)[..., 0]
    loss_BT = ops.logsumexp(logits_BTV, axis=-1) - (1.0 - label_smoothing) * chosen
    if label_smoothing:
        loss_BT = loss_BT - label_smoothing * ops.mean(logits_BTV, axis=-1)
    return loss_BT


def compiled(function: Callable, model: keras.Model) -> Callable:
    """`function` of tensors, run without gradients and compiled where the backend compiles.

    The model's weights are read at each call, so one compilation serves a model in training.

    Args:
        function: takes and returns trees of tensors; reads `model`'s variables.
        model: the model whose variables it reads.
    """
    if BACKEND == "jax":

        @jax.jit
        def stateless(values, *arguments):
            mapping = list(zip(model.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arguments)

        return lambda *arguments: stateless(
            [variable.value for variable in model.variables], *arguments
        )
    if BACKEND == "tensorflow":
        return tf.function(function, reduce_retracing=True)
    return torch.no_grad()(function)


def random_state() -> dict[str, np.ndarray]:
    """The backend's own random state beside Keras's seed generators: PyTorch's, by device."""
    if BACKEND != "torch":
        return {}
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states = torch.cuda.get_rng_state_all()
        state |= {f"cuda:{device}": value for device, value in enumerate(states)}
    return {device: value.numpy() for device, value in state.items()}


def set_random_state(state: dict[str, np.ndarray]) -> None:
    """Takes back what `random_state` gave; devices that are not here are left out."""
    if BACKEND != "torch":
        return
    for device, value in state.items():
        value = torch.from_numpy(np.array(value))
        if device == "cpu":
            torch.set_rng_state(value)
        elif torch.cuda.is_available() and int(device[5:]) < torch.cuda.device_count():
            torch.cuda.set_rng_state(value, int(device[5:]))
