"""Rematerialization: intermediate results are computed again instead of stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.backend.compilation import BACKEND

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch
    import torch.utils.checkpoint

    from keras_transformer.backend import private


def rematerialized(
    function: Callable[[Any], Any], arguments: Any, seeds: Sequence[keras.Variable]
) -> Any:
    """Return `function(arguments)`; the backward pass computes the results inside it again.

    Random numbers are the same in both computations, and random states advance once. `keras.remat`
    (3.15) ensures neither on TensorFlow, and leaves tracers in the states on JAX.

    Args:
        function: Function from a tree of tensors to one tensor. It may read variables, but changes
            only `seeds`.
        arguments: Tree of tensors and None. Gradients reach only these tensors and the variables
            that `function` reads.
        seeds: States of the seed generators that `function` uses. On PyTorch they are ignored: it
            restores its own random state.
    """
    if BACKEND == "torch":
        if not torch.is_grad_enabled() or private.in_transform():  # `torch.func` refuses hooks
            return function(arguments)
        return torch.utils.checkpoint.checkpoint(function, arguments, use_reentrant=False)
    # A copy: on TensorFlow `seed.value` is the variable, which has another value later.
    before = [seed.value * 1 for seed in seeds]
    compute = _by_jax if BACKEND == "jax" else _by_tensorflow
    after = before
    try:
        result, after = compute(function, arguments, seeds, before)
    finally:  # also after an error, which on JAX would leave tracers in the states
        for seed, value in zip(seeds, after, strict=True):
            seed.assign(value)
    return result


def _by_jax(function, arguments, seeds, before):
    @jax.checkpoint
    def pure(arguments, states):
        for seed, state in zip(seeds, states, strict=True):
            seed.assign(state)
        return function(arguments), [seed.value for seed in seeds]

    return pure(arguments, before)


def _by_tensorflow(function, arguments, seeds, before):
    """Return the results with a gradient that recomputes them, and the new random states."""
    flat = keras.tree.flatten(arguments)
    float_indices = [i for i, x in enumerate(flat) if x is not None and x.dtype.is_floating]
    after = before

    @tf.recompute_grad
    def pure(zero, *floats):
        nonlocal after
        leaves = list(flat)
        for i, x in zip(float_indices, floats, strict=True):
            leaves[i] = x
        # In the recomputation `zero` depends on the gradient. Without this dependence, the
        # graph optimizer keeps the random numbers of the first computation.
        states = [x + tf.cast(zero, x.dtype) for x in before]
        scope = keras.StatelessScope(state_mapping=list(zip(seeds, states, strict=True)))
        with scope:
            result = function(keras.tree.pack_sequence_as(arguments, leaves))
        after = [scope.get_current_value(seed) for seed in seeds]
        return result

    return pure(tf.zeros(()), *(flat[i] for i in float_indices)), after
