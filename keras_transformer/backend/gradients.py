"""Gradients of a loss: of a model with state (TensorFlow, PyTorch), or a pure function (JAX)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.data_parallel import replica_sums

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf


def gradients(
    function: Callable[[], tuple[Any, Any]], variables: Sequence[keras.Variable]
) -> tuple[Any, list[Any]]:
    """Return the second result of `function`, and the gradients of its first, a scalar.

    JAX differentiates pure functions only: see `pure_gradients`.

    Args:
        function: Function that returns a scalar and a second result.
        variables: Variables that `function` reads.

    Returns:
        The second result of `function`, and one gradient per variable (None if the scalar does
        not depend on it), summed over PyTorch's processes.

    Raises:
        NotImplementedError: With JAX.
    """
    if BACKEND == "tensorflow":
        with tf.GradientTape() as tape:
            scalar, result = function()
        gradients = tape.gradient(scalar, variables)
        # For a token table, TensorFlow returns a row per occurrence of a token. Clipping needs the
        # norm after the rows of each token are added up.
        return result, [x if x is None else tf.convert_to_tensor(x) for x in gradients]
    if BACKEND == "torch":
        for variable in variables:
            variable.value.grad = None
        scalar, result = function()
        scalar.backward()
        return result, replica_sums([variable.value.grad for variable in variables])
    raise NotImplementedError("gradients does not support JAX: use jax.grad on a pure function")


def pure_gradients(
    function: Callable[..., tuple[Any, Any]], values: Any, *arguments: Any, **options: Any
) -> tuple[Any, Any]:
    """Return the second result of a pure function, and the gradients of its first; JAX only.

    Args:
        function: Function that returns a scalar and a second result.
        values: Its first argument, a tree of tensors: the gradients are of these.
        arguments, options: Its other arguments.
    """
    (_, result), grads = jax.value_and_grad(function, has_aux=True)(values, *arguments, **options)
    return result, grads
