"""Choose the devices that a model is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import keras

from keras_transformer.backend import BACKEND, leave_processes
from keras_transformer.config import require, require_whole
from keras_transformer.distribution import processes
from keras_transformer.distribution.layouts import DATA, MODEL, MeshLayout
from keras_transformer.distribution.mirrored import mirrored, unmirrored


@dataclass(frozen=True)
class Spread:
    """Division of the batches of a run among devices and processes.

    Args:
        data: Number of parts of each batch. The number of rows must be a multiple of it, except
            with TensorFlow, see `mirrored`.
        part: Index of the part of a batch that this process makes, and number of these parts:
            (0, 1) means all rows, (1, 2) the second half.
    """

    data: int = 1
    part: tuple[int, int] = (0, 1)


def distribute(data: int = -1, model: int = 1, shard_weights: bool = False) -> Spread:
    """Spread models that are made from now on over the devices of this run.

    ```python
    spread = kt.distribute(data=4, model=2)  # before the model is made
    model = kt.Transformer(kt.TransformerConfig.base(vocab_size=37_000))
    ```

    Then `fit`, `evaluate` and `predict` are called as on one device. The losses are those of one
    device, up to rounding and dropout. If the environment names several processes
    (`places.place_in`), they are joined, and each passes its rows of a batch to `fit`:
    `spread.part`. If their seeds differ, all get one from process 0 (`processes.join`).

    With JAX, the devices are those of all processes. With PyTorch, each process has one device,
    and batches are split over the processes alone. With TensorFlow, one process uses the devices
    of its host (`mirrored`).

    Args:
        data: Number of parts of each batch (data parallel); -1: the number of devices divided by
            `model`. One process with more than data x model devices uses the first ones (JAX,
            TensorFlow).
        model: Number of parts of each product (tensor parallel, `layouts`); 1: products are whole.
        shard_weights: Whether weights and the optimizer's state are split over the data axis
            instead of copied (FSDP).

    Returns:
        The number of parts of a batch, and the part of this process.

    Raises:
        ValueError: If there are fewer devices than data x model, or several processes have more, or
            an argument or a variable of the environment is out of range.
        TimeoutError, OSError: See `processes.join`.
        NotImplementedError: If the backend cannot split products or weights, or trains in one
            process only.
    """
    require_whole("model", model, 1)
    is_whole = isinstance(data, int) and not isinstance(data, bool)
    require(is_whole and (data == -1 or data >= 1), "data", data, "-1 or at least 1")
    if BACKEND != "jax":
        for name, value, whole in (("model", model, 1), ("shard_weights", shard_weights, False)):
            if value != whole:
                raise NotImplementedError(
                    f"{name} must be {whole} with {BACKEND}, which splits batches alone, got "
                    f"{value}: KERAS_BACKEND=jax splits weights, too"
                )
    team = processes.join()
    if BACKEND == "tensorflow":
        return Spread(mirrored(data).num_replicas_in_sync)
    if BACKEND == "torch":
        accepted = f"{team.count}, one for each process, or -1"
        require(data in (-1, team.count), "data", data, accepted)
        return Spread(team.count, (team.index, team.count))
    devices = keras.distribution.list_devices()
    if data == -1:
        data = max(1, len(devices) // model)
    used = data * model
    accepted = f"at most {len(devices)}, the devices there are"
    require(used <= len(devices), "data * model", used, accepted)
    accepted = f"{len(devices)}, the devices of all processes"
    require(team.count == 1 or used == len(devices), "data * model", used, accepted)
    mesh = keras.distribution.DeviceMesh((data, model), (DATA, MODEL), devices[:used])
    part = _part(team, data, model)
    keras.distribution.set_distribution(MeshLayout(mesh, shard_weights, part[1]))
    return Spread(data, part)


def gather() -> None:
    """Undo `distribute`: models made from now on use one device, and this process alone."""
    keras.distribution.set_distribution(None)
    unmirrored()
    if processes.current().count > 1:
        leave_processes()
        processes.leave()


def _part(team, data, model):
    """Return the index of this process's part of a batch, and the number of equal parts."""
    num_devices = data * model // team.count  # devices of this process, adjacent in the mesh
    accepted = f"a divisor of {num_devices}, or a multiple"
    require(num_devices % model == 0 or model % num_devices == 0, "model", model, accepted)
    sharing = max(1, model // num_devices)  # processes that hold the same rows
    return team.index // sharing, team.count // sharing
