"""Training on several devices of one host with TensorFlow's `MirroredStrategy`."""

from __future__ import annotations

from typing import Any

from keras_transformer.backend import BACKEND
from keras_transformer.config import require

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import strategy


def mirrored(data: int = -1) -> Any:
    """Copy models that are made from now on to several devices, which share each batch.

    The devices are the GPUs of this process, or its logical CPUs if there are no GPUs. Each gets
    the same number of rows of a batch, except that the last get fewer if the number of devices does
    not divide the rows; each must get at least one row. `LabelSmoothedCrossentropy` is the mean
    over the tokens of the whole batch.

    Args:
        data: Number of devices, the first ones; -1: all.

    Returns:
        The `tf.distribute.MirroredStrategy` that is now the default of this thread.

    Raises:
        ValueError: If there are fewer devices than `data`.
    """
    names = strategy.devices()
    require(data <= len(names), "data", data, f"at most {len(names)}, the devices there are")
    return strategy.mirror(names if data == -1 else names[:data])


def unmirrored() -> None:
    """End `mirrored`: models made from now on use one device. Other backends: do nothing."""
    if BACKEND == "tensorflow":
        strategy.mirror([])
