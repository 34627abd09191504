"""Replicas that share a batch: those of a TensorFlow strategy, or PyTorch's processes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import keras

from keras_transformer.backend.private import BACKEND

if BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch
    import torch.distributed


def num_replicas() -> int:
    """Return how many replicas share a batch, each with its rows and its own gradients.

    Replicas are those of a TensorFlow strategy, or PyTorch's processes. With JAX there is 1: one
    program computes on all rows.
    """
    if BACKEND == "tensorflow":
        return tf.distribute.get_strategy().num_replicas_in_sync
    if BACKEND == "torch" and torch.distributed.is_available():
        return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    return 1


def model_axis() -> int:
    """Return the number of devices along the distribution's axis "model"; 1 without this axis."""
    mesh = getattr(keras.distribution.distribution(), "device_mesh", None)
    axes = {} if mesh is None else dict(zip(mesh.axis_names, mesh.shape, strict=True))
    return axes.get("model", 1)


def replica_number() -> Any:
    """Return the number of the calling replica in a TensorFlow strategy; 0 outside one."""
    context = _context()
    return context.replica_id_in_sync_group if context else 0


def replica_sum(x: Any) -> Any:
    """Return the sum of x over the replicas, see `replica_sums`."""
    return replica_sums([x])[0]


def replica_sums(values: Sequence[Any]) -> list[Any]:
    """Return the sum of each value over the replicas; None stays None.

    The sums of several replicas have no gradient. With one replica, the values are returned
    unchanged.
    """
    present = [x for x in values if x is not None]
    if BACKEND == "torch" and num_replicas() > 1 and present:
        # All values in one message, in float32 or a wider dtype: each message costs a delay.
        dtype = functools.reduce(torch.promote_types, [x.dtype for x in present], torch.float32)
        flat = torch.cat([x.detach().reshape(-1).to(dtype) for x in present])
        torch.distributed.all_reduce(flat)
        parts = flat.split([x.numel() for x in present])
        sums = [part.reshape(x.shape).to(x.dtype) for part, x in zip(parts, present, strict=True)]
    elif context := _context():
        constants = [tf.stop_gradient(tf.convert_to_tensor(x)) for x in present]
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, constants)
    else:
        return list(values)
    remaining = iter(sums)
    return [None if x is None else next(remaining) for x in values]


def first_part(batches: Iterable[Any]) -> Any:
    """Return the part of the first batch that the first replica of a TensorFlow strategy gets.

    Args:
        batches: Keras's iterator over the steps of an epoch, which yields the number of the first
            batch of a step, that of the last, and an iterator over batches.
    """
    _, _, iterator = next(iter(batches))
    local = tf.distribute.get_strategy().experimental_local_results
    return keras.tree.map_structure(lambda x: local(x)[0], next(iterator))


def with_rows(batch: Any) -> Any:
    """Return this replica's batch with a check: the step fails if the batch has no row."""
    if not _context():
        return batch
    rows = tf.shape(next(x for x in keras.tree.flatten(batch) if x is not None))[0]
    message = f"a batch must have a row for each of {num_replicas()} replicas, and a part has none"
    with tf.control_dependencies([tf.debugging.assert_positive(rows, message)]):
        return keras.tree.map_structure(lambda x: x if x is None else tf.identity(x), batch)


def _context():
    """Return TensorFlow's context of several replicas; None outside of one."""
    context = tf.distribute.get_replica_context() if BACKEND == "tensorflow" else None
    return None if context is None or context.num_replicas_in_sync == 1 else context
