"""Choose the devices that a model is trained on."""

from __future__ import annotations

from typing import Any

import keras

from keras_transformer.backend import BACKEND
from keras_transformer.config import require, require_whole
from keras_transformer.distribution.layouts import DATA, MODEL, MeshLayout


def distribute(data: int = -1, model: int = 1, shard_weights: bool = False) -> Any:
    """Spread models that are made from now on over the devices of this process.

    ```python
    kt.distribute(data=4, model=2)  # before the model is made
    model = kt.Transformer(kt.TransformerConfig.base(vocab_size=37_000))
    ```

    Then `fit`, `evaluate` and `predict` are called as on one device; their batches must have a
    multiple of `data` rows. The losses are those of one device, up to rounding.

    Args:
        data: Number of parts of each batch (data parallel); -1: all devices that `model` leaves.
        model: Number of parts of each product (tensor parallel, `layouts`); 1: products are whole.
        shard_weights: Whether weights and the optimizer's state are split over the data axis
            instead of copied (FSDP).

    Returns:
        The distribution that is now the default: `keras.distribution.Distribution` with JAX.

    Raises:
        ValueError: If there are fewer devices than data x model.
        NotImplementedError: If the backend is not JAX, or JAX runs in several processes.
    """
    require_whole("model", model, 1)
    is_whole = isinstance(data, int) and not isinstance(data, bool)
    require(is_whole and (data == -1 or data >= 1), "data", data, "-1 or at least 1")
    if BACKEND != "jax":
        raise NotImplementedError(
            f"distribute needs KERAS_BACKEND=jax, got {BACKEND}: keras.distribution has no devices "
            "of other backends (Keras 3.15)"
        )
    devices = keras.distribution.list_devices()
    if data == -1:
        data = max(1, len(devices) // model)
    fits = data * model <= len(devices)
    require(fits, "data * model", data * model, f"at most {len(devices)}, the devices there are")
    mesh = keras.distribution.DeviceMesh((data, model), (DATA, MODEL), devices[: data * model])
    layout = MeshLayout(mesh, shard_weights)
    if layout.num_processes > 1:
        raise NotImplementedError(
            f"distribute works in one process, got {layout.num_processes} processes"
        )
    keras.distribution.set_distribution(layout)
    return layout
