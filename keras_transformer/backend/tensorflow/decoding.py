"""Search in TensorFlow graphs without XLA: finished rows are removed from the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

_FULL = 0.9  # finished rows are removed once at most this share of rows is unfinished


def row_loop(turn: Callable, length: Any, done_B: tf.Tensor, current: Any, alive: Any) -> Any:
    """Kernel of `backend.row_loop` for TensorFlow without XLA; see `_FULL`."""
    # For each row that is still in the loop, the index of its row in the results.
    row_ids_B = tf.range(tf.shape(done_B)[0])

    def goes_on(i, results, row_ids_B, done_B, current, alive):
        return (i < length) & ~tf.reduce_all(done_B)

    def iteration(i, results, row_ids_B, done_B, current, alive):
        rows = tf.shape(done_B)[0]
        left = tf.math.count_nonzero(~done_B, dtype=tf.int32)
        few = tf.cast(left, tf.float32) <= _FULL * tf.cast(rows, tf.float32)
        state = results, row_ids_B, done_B, current, alive
        results, row_ids_B, *rest = tf.cond(few, lambda: _without_done(*state), lambda: state)
        return i + 1, results, row_ids_B, *turn(i, *rest)

    variables = tf.constant(1), current, row_ids_B, done_B, current, alive
    shapes = keras.tree.map_structure(_without_rows, variables)
    _, results, row_ids_B, _, current, _ = tf.while_loop(
        goes_on, iteration, variables, shape_invariants=shapes
    )
    return _put(results, row_ids_B, current)


def _without_rows(x):
    """Return the shape of x with unknown rows, and for caches (four axes) unknown places."""
    shape = x.shape.as_list()
    if len(shape) == 4:
        shape[2] = None
    return tf.TensorShape([None, *shape[1:]] if shape else [])


def _without_done(results, row_ids_B, done_B, current, alive):
    results = _put(results, row_ids_B, current)
    goes_on = tf.where(~done_B)[:, 0]
    rest = row_ids_B, done_B, current, alive
    return results, *keras.tree.map_structure(lambda x: tf.gather(x, goes_on), rest)


def _put(results, row_ids_B, values):
    row_ids_B1 = row_ids_B[:, None]
    return keras.tree.map_structure(
        lambda x, y: tf.tensor_scatter_nd_update(x, row_ids_B1, y), results, values
    )


def lower_at(x_RV: tf.Tensor, ids_RM: tf.Tensor, values_RM: tf.Tensor) -> tf.Tensor:
    """Kernel of `backend.forbid` for TensorFlow: return x, at most `values_RM` at `ids_RM`."""
    rows_RM = tf.zeros_like(ids_RM) + tf.range(tf.shape(ids_RM)[0])[:, None]
    return tf.tensor_scatter_nd_min(x_RV, tf.stack([rows_RM, ids_RM], axis=-1), values_RM)
