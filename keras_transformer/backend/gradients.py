"""Gradients of a loss, where a backend computes them beside a running model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.backend.compilation import BACKEND

if BACKEND == "tensorflow":
    import tensorflow as tf


def gradients(
    function: Callable[[], tuple[Any, Any]], variables: Sequence[keras.Variable]
) -> tuple[Any, list[Any]]:
    """Return the second result of `function`, and the gradients of the first.

    JAX differentiates pure functions only: there, a model's `compute_loss_and_updates` is
    differentiated instead.

    Args:
        function: returns a scalar, and anything else.
        variables: variables that `function` reads.

    Returns:
        what `function` returned besides the scalar, and one gradient per variable (None where the
        scalar does not depend on it).

    Raises:
        NotImplementedError: with JAX.
    """
    if BACKEND == "tensorflow":
        with tf.GradientTape() as tape:
            scalar, result = function()
        return result, tape.gradient(scalar, variables)
    if BACKEND == "torch":
        for variable in variables:
            variable.value.grad = None
        scalar, result = function()
        scalar.backward()
        return result, [variable.value.grad for variable in variables]
    raise NotImplementedError("gradients: JAX differentiates functions without state, jax.grad")
