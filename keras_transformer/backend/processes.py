"""Several processes of one training run: join them, and sum tensors over them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.replicas import num_replicas, replica_sums
from keras_transformer.config import require

if BACKEND == "jax":
    import jax
elif BACKEND == "torch":
    import torch
    import torch.distributed


def join_processes(index: int, count: int, address: str, local: int | None) -> None:
    """Join the processes of a run, which then have one backend; before any computation.

    Args:
        index: Number of this process.
        count: Number of processes.
        address: "host:port" of process 0.
        local: Number of this process on its host, which then uses the GPU of this number alone;
            None: it uses all devices.

    Raises:
        ValueError: If the host has no GPU of this number, but others.
        NotImplementedError: With TensorFlow.
    """
    if BACKEND == "jax":
        # On CPUs, collectives of two programs at a time would wait for each other (JAX 0.10).
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        # JAX would take SIGTERM, with which a run saves its state.
        jax.config.update("jax_enable_preemption_service", False)
        own = None if local is None else [local]
        jax.distributed.initialize(address, count, index, local_device_ids=own)
    elif BACKEND == "torch":
        on_gpu = torch.cuda.is_available()
        if on_gpu:
            count_here = torch.cuda.device_count()
            require((local or 0) < count_here, "local process", local, f"below {count_here} GPUs")
            torch.cuda.set_device(local or 0)
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


def differ_by_process() -> None:
    """Give the dropout of each of PyTorch's processes its own random numbers."""
    if BACKEND == "torch" and num_replicas() > 1 and (rank := torch.distributed.get_rank()):
        torch.manual_seed(torch.initial_seed() + rank)


@contextlib.contextmanager
def summed(variables: Sequence[keras.Variable]) -> Iterator[None]:
    """Let variables hold their sums over PyTorch's processes inside the context."""
    if BACKEND != "torch" or num_replicas() == 1:
        yield
        return
    own = [variable.value.clone() for variable in variables]
    try:
        for variable, total in zip(variables, replica_sums(own), strict=True):
            variable.assign(total)
        yield
    finally:
        for variable, value in zip(variables, own, strict=True):
            variable.assign(value)


def slices_of(variable: keras.Variable, index: int) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return the slices of a variable that a process writes into a checkpoint.

    Together the processes write each value once.

    Args:
        variable: The variable.
        index: Number of this process.

    Returns:
        For each slice the place of its first value, and the values.
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
