"""The best tokens, gathering by indices, and the loop of a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import quick
from keras_transformer.backend.cache import caches_grow
from keras_transformer.backend.compilation import BACKEND

if BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import decoding as kernels


def best_tokens(logits: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the k highest logits of the last axis, their indices, and logsumexp of all logits.

    Args:
        logits: Logits (..., V), of any floating dtype.
        k: Number of tokens, at most V.

    Returns:
        The logits (..., k) float32 in descending order, their indices (..., k) int32, and log Z
        (..., 1) float32.
    """
    if BACKEND == "torch":
        return kernels.best_tokens(logits, k)
    logits = ops.cast(logits, "float32")
    return *quick.top_k(logits, k), ops.logsumexp(logits, axis=-1, keepdims=True)


def gather(x: Any, indices: Any, axis: int) -> Any:
    """Return `ops.take_along_axis` for indices >= 0, whose other axes may have size 1."""
    if BACKEND == "torch":
        shape = list(x.shape)
        shape[axis] = indices.shape[axis]
        return torch.gather(x, axis, indices.long().expand(shape))
    return ops.take_along_axis(x, indices, axis=axis)


def row_loop(body: Callable, length: Any, done_B: Any, found: Any, alive: Any) -> Any:
    """Call `body` for i = 1 to `length` - 1, or until all rows are done.

    Args:
        body: `body(i, done_B, found, alive) -> done_B, found, alive`, a pure function. The results
            of a row depend on that row alone, and do not change once the row is done.
        length: Upper bound of i, exclusive.
        done_B: Boolean, True for rows that are done.
        found: Tree of tensors (B, ...) that is the result.
        alive: Tree of tensors (B, ...) that only the loop needs.

    Returns:
        The final `found`.
    """
    if BACKEND == "torch":
        return kernels.row_loop(body, length, done_B, found, alive)

    def go_on(i, done_B, found, alive):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def turn(i, done_B, found, alive):
        return i + 1, *body(i, done_B, found, alive)

    variables = (ops.convert_to_tensor(1, dtype="int32"), done_B, found, alive)
    if not caches_grow():
        return ops.while_loop(go_on, turn, variables)[2]

    def shape(x):  # caches grow along their third axis
        return tf.TensorShape([*x.shape[:2], None, x.shape[3]]) if len(x.shape) == 4 else x.shape

    invariants = keras.tree.map_structure(shape, variables)
    return tf.while_loop(go_on, turn, variables, shape_invariants=invariants)[2]
