"""Search in TensorFlow graphs: finished rows are removed, as in `backend.torch.decoding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

_FULL = 0.9  # finished rows are removed once at most this share of rows is unfinished


def row_loop(turn: Callable, length: Any, done_B: tf.Tensor, found: Any, alive: Any) -> Any:
    """Kernel of `backend.row_loop` for TensorFlow: removes finished rows once they are a tenth."""
    # For each row that is still in the loop, the number of its row in the results.
    places_B = tf.range(tf.shape(done_B)[0])

    def goes_on(i, results, places_B, done_B, found, alive):
        return (i < length) & ~tf.reduce_all(done_B)

    def iteration(i, results, places_B, done_B, found, alive):
        rows = tf.shape(done_B)[0]
        left = tf.math.count_nonzero(~done_B, dtype=tf.int32)
        few = tf.cast(left, tf.float32) <= _FULL * tf.cast(rows, tf.float32)
        state = results, places_B, done_B, found, alive
        results, places_B, *rest = tf.cond(few, lambda: _without(*state), lambda: state)
        return i + 1, results, places_B, *turn(i, *rest)

    variables = tf.constant(1), found, places_B, done_B, found, alive
    shapes = keras.tree.map_structure(_without_rows, variables)
    _, results, places_B, _, found, _ = tf.while_loop(
        goes_on, iteration, variables, shape_invariants=shapes
    )
    return _put(results, places_B, found)


def _without_rows(x):
    """Return the shape of x with unknown rows, and for caches (four axes) unknown places."""
    shape = x.shape.as_list()
    if len(shape) == 4:
        shape[2] = None
    return tf.TensorShape([None, *shape[1:]] if shape else [])


def _without(results, places_B, done_B, found, alive):
    results = _put(results, places_B, found)
    goes_on = tf.where(~done_B)[:, 0]
    rest = places_B, done_B, found, alive
    return results, *keras.tree.map_structure(lambda x: tf.gather(x, goes_on), rest)


def _put(results, places_B, values):
    places_B1 = places_B[:, None]
    return keras.tree.map_structure(
        lambda x, y: tf.tensor_scatter_nd_update(x, places_B1, y), results, values
    )


def lower_at(x_RV: tf.Tensor, ids_RM: tf.Tensor, values_RM: tf.Tensor) -> tf.Tensor:
    """Kernel of `backend.forbid` for TensorFlow: return x, at most `values_RM` at `ids_RM`."""
    rows_RM = tf.zeros_like(ids_RM) + tf.range(tf.shape(ids_RM)[0])[:, None]
    return tf.tensor_scatter_nd_min(x_RV, tf.stack([rows_RM, ids_RM], axis=-1), values_RM)
