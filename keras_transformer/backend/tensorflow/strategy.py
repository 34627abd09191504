"""Devices among which TensorFlow splits a batch."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf


def devices() -> list[str]:
    """Return the names of the GPUs of this process; without any, those of its logical CPUs."""
    logical_devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return [device.name for device in logical_devices]


def mirror(names: Sequence[str]) -> tf.distribute.MirroredStrategy | None:
    """Mirror models that this thread makes from now on to these devices, and return the strategy.

    Without names, models are no longer mirrored, and None is returned.
    """
    strategy = _strategy(tuple(names)) if names else None
    tf.distribute.experimental_set_strategy(strategy)
    return strategy


@functools.cache
def _strategy(names):
    # One strategy for each set of devices: two of them would give their collective operations the
    # same numbers, and TensorFlow (2.21) would confuse these.
    return tf.distribute.MirroredStrategy(names)
