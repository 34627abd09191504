"""Several processes of one training run: join them, sum, copy and split their variables."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.data_parallel import num_replicas, replica_sums
from keras_transformer.config import require

if BACKEND == "jax":
    import jax
elif BACKEND == "torch":
    import torch
    import torch.distributed


def join_processes(index: int, count: int, address: str, local: int | None) -> None:
    """Join the processes of a run into one group of the backend, before any computation.

    Args:
        index: Number of this process.
        count: Number of processes.
        address: "host:port" of process 0.
        local: Number of this process on its host. It then uses only the GPU of this number, or the
            only one that it sees; None: all devices with JAX, the first GPU with PyTorch.

    Raises:
        ValueError: If this process sees several GPUs, but none of this number.
        NotImplementedError: With TensorFlow.
    """
    if BACKEND == "jax":
        # On CPUs, the collectives of two programs that run at once would deadlock (JAX 0.10).
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        # Otherwise JAX catches SIGTERM, at which a run saves its state.
        jax.config.update("jax_enable_preemption_service", False)
        gpu = _own_gpu(local, _visible_gpus())
        gpus = None if gpu is None else [gpu]
        # Without detection: under Slurm, JAX would use one device even if `gpus` is None (all).
        jax.distributed.initialize(
            address, count, index, gpus, cluster_detection_method="deactivate"
        )
    elif BACKEND == "torch":
        on_gpu = torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(_own_gpu(local, torch.cuda.device_count()) or 0)
        torch.distributed.init_process_group(
            "nccl" if on_gpu else "gloo",
            init_method=f"tcp://{address}",
            world_size=count,
            rank=index,
        )
    else:
        raise NotImplementedError("several processes need JAX or PyTorch, got TensorFlow")


def leave_processes() -> None:
    """End what `join_processes` began: this process computes alone from now on."""
    if BACKEND == "jax":
        jax.distributed.shutdown()
    elif BACKEND == "torch":
        torch.distributed.destroy_process_group()


def _own_gpu(local, visible):
    """Return the number of the one GPU that a process may use; None: the backend chooses."""
    # With Slurm's `--gpus-per-task 1`, each process sees one GPU, with the number 0.
    if local is None or visible == 1:
        return None
    is_visible = local < visible or not visible
    require(is_visible, "number of the process on its host", local, f"below {visible}, its GPUs")
    return local


def _visible_gpus():
    """Return how many Nvidia GPUs JAX will see; it cannot list them before `join_processes`."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(glob.glob("/dev/nvidia[0-9]*") if named is None else named.split(","))


def copy_to_processes(variables: Sequence[keras.Variable]) -> None:
    """Assign the values of process 0 to the variables of all processes; only on PyTorch."""
    if BACKEND == "torch" and num_replicas() > 1:
        for variable in variables:
            value = variable.value.detach().clone().contiguous()
            torch.distributed.broadcast(value, 0)
            variable.assign(value)


def differ_by_process() -> None:
    """Seed PyTorch differently in each process, so that their dropout differs."""
    if BACKEND == "torch" and num_replicas() > 1 and (rank := torch.distributed.get_rank()):
        torch.manual_seed(int(torch.randint(1 << 62, ())) + rank)


@contextlib.contextmanager
def summed(variables: Sequence[keras.Variable]) -> Iterator[None]:
    """Replace values of variables by their sums over PyTorch's processes inside the context."""
    if BACKEND != "torch" or num_replicas() == 1:
        yield
        return
    local_values = [variable.value.clone() for variable in variables]
    try:
        for variable, total in zip(variables, replica_sums(local_values), strict=True):
            variable.assign(total)
        yield
    finally:
        for variable, value in zip(variables, local_values, strict=True):
            variable.assign(value)


def slices_of(variable: keras.Variable, index: int) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return the slices of a variable that a process writes into a checkpoint.

    Together the processes write each value once.

    Args:
        variable: The variable.
        index: Number of this process.

    Returns:
        For each slice the index of its first value along each axis, and the values.
    """
    value = variable.value
    if BACKEND != "jax" or value.is_fully_addressable:
        whole = np.asarray(keras.ops.convert_to_numpy(variable))
        return [] if index else [((0,) * whole.ndim, whole)]
    return [
        (tuple(axis.start or 0 for axis in shard.index), np.asarray(shard.data))
        for shard in value.addressable_shards
        if shard.replica_id == 0
    ]


def assign_slices(
    variable: keras.Variable, read: Callable[[tuple[slice, ...]], np.ndarray]
) -> None:
    """Assign values to a variable; each process reads the slices that its devices hold.

    Args:
        variable: The variable.
        read: Function from a slice of each axis to the values.
    """
    if BACKEND != "jax" or variable.value.is_fully_addressable:
        variable.assign(read((slice(None),) * len(variable.shape)))
        return
    value = variable.value
    variable.assign(jax.make_array_from_callback(value.shape, value.sharding, read))
