"""Compilation of functions, portable graphs, training steps, random state."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np

from keras_transformer.backend import private
from keras_transformer.backend.private import BACKEND
from keras_transformer.system.files import MOST_CACHED, cache_folder, can_write, removed
from keras_transformer.system.locks import acquired
from keras_transformer.system.memory import reuse_memory

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch
else:
    raise ImportError(
        f"KERAS_BACKEND must be 'tensorflow', 'jax' or 'torch' for keras_transformer, "
        f"got {BACKEND!r}"
    )

# Whether a search is compiled for each new shape. TensorFlow's graphs accept any shape, and PyTorch
# is eager. (TensorFlow's training kernels are compiled for each shape, too.)
COMPILES_EACH_SHAPE = BACKEND == "jax"
# Whether Python code runs in each step, not only while a function is traced.
IS_EAGER = BACKEND == "torch"


class _Portable(threading.local):
    on: bool = False  # whether this thread is inside `portable`
    known: bool | None = None  # the result of `is_portable`, inside `decided_portability`


_portable = _Portable()


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Restrict the code inside to operations that other runtimes have, to export graphs."""
    before = _portable.on, _portable.known
    _portable.on, _portable.known = True, None
    try:
        yield
    finally:
        _portable.on, _portable.known = before


@contextlib.contextmanager
def decided_portability() -> Iterator[None]:
    """Compute `is_portable` once for the code inside; each call would take a microsecond."""
    before, _portable.known = _portable.known, is_portable()
    try:
        yield
    finally:
        _portable.known = before


def is_portable() -> bool:
    """Return whether only operations that other runtimes have may be used.

    True inside `portable`, and while PyTorch records calls (`torch.compile`, `torch.export`,
    `torch.jit.trace`) or transforms them (`torch.func`).
    """
    if _portable.known is not None:
        return _portable.known
    return _portable.on or (BACKEND == "torch" and _is_recorded())


def _is_recorded():
    # Dynamo evaluates the first call to True and does not need to trace the others.
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or private.in_transform()


def keep_compilations() -> None:
    """Let JAX cache compilations for later processes, in the user's cache folder.

    For programs, not for libraries: the settings affect the whole process. A cache folder that is
    already set and JAX's environment variables take precedence. If the folder cannot be written to,
    nothing is cached.
    """
    if BACKEND != "jax" or jax.config.jax_compilation_cache_dir is not None:
        return
    folder = cache_folder("jax")
    if not can_write(folder):  # JAX would warn at each compilation
        return
    _remove_partial(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # JAX removes the least recently used entries. Programs that compile in less than 0.5 s are not
    # cached, because for each new entry JAX reads the times of all entries.
    settings = {
        "jax_compilation_cache_max_size": MOST_CACHED,
        "jax_persistent_cache_min_compile_time_secs": 0.5,
    }
    for name, value in settings.items():
        if name.upper() not in os.environ:
            jax.config.update(name, value)


def _remove_partial(folder):
    """Remove entries of JAX's cache whose process was killed before it wrote their times.

    JAX (0.10) would never replace such an entry, and with one in the folder it writes no others.
    """
    if (lock := acquired(folder / ".lockfile")) is None:
        return  # another process reads or writes
    try:
        for path in folder.glob("*-cache"):
            if not path.with_name(path.name.removesuffix("-cache") + "-atime").is_file():
                removed(path)
    finally:
        lock.release()


class _TrainingStep(threading.local):
    entered = False


_training_step = _TrainingStep()


@contextlib.contextmanager
def training_step() -> Iterator[None]:
    """Mark the code inside as a training step that runs or is traced."""
    before, _training_step.entered = _training_step.entered, True
    try:
        yield
    finally:
        _training_step.entered = before


def in_training_step() -> bool:
    """Return whether the caller is inside `training_step`."""
    return _training_step.entered


def compiled(
    function: Callable,
    model: keras.Model,
    donates: Sequence[int] = (),
    varying: Sequence[int] = (),
) -> Callable:
    """Return `function`, compiled if the backend compiles; for calls without gradients.

    The model's weights are read in each call, so one compilation serves a model in training.

    Args:
        function: Function from trees of tensors to a tree of tensors; may read the variables of
            `model`.
        model: The model whose variables `function` reads.
        donates: Indices of the arguments that the caller does not use again: on JAX, the results
            may take over their memory, so that caches are not copied.
        varying: Indices of the arguments (B,) or (B, S) whose sizes vary: TensorFlow traces the
            function once for all their sizes. Otherwise it traces for the sizes of the first call,
            and again when each size first changes.
    """
    reuse_memory()
    if BACKEND == "jax":

        @functools.partial(jax.jit, donate_argnums=tuple(1 + number for number in donates))
        def stateless(values, *arguments):
            mapping = list(zip(model.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arguments)

        return lambda *arguments: stateless(
            [variable.value for variable in model.variables], *arguments
        )
    if BACKEND == "tensorflow":
        graph = tf.function(function, reduce_retracing=True, autograph=False)
        return _of_any_size(graph, varying) if varying else graph
    return torch.no_grad()(function)


def _of_any_size(graph, varying):
    """Return a TensorFlow function that is traced for any size of its `varying` arguments."""
    known = set()

    def spec(x, number):
        if not tf.is_tensor(x):
            return x
        varies = number in varying and x.shape.rank <= 2
        return tf.TensorSpec([None] * x.shape.rank if varies else x.shape, x.dtype)

    def run(*arguments):
        specs = [
            keras.tree.map_structure(functools.partial(spec, number=number), argument)
            for number, argument in enumerate(arguments)
        ]
        if (key := repr(specs)) not in known:
            graph.get_concrete_function(*specs)
            known.add(key)
        return graph(*arguments)

    return run


@contextlib.contextmanager
def without_gradients() -> Iterator[None]:
    """Keep uncompiled calls inside from storing tensors for a backward pass."""
    with torch.no_grad() if BACKEND == "torch" else contextlib.nullcontext():
        yield


def random_state() -> dict[str, np.ndarray]:
    """Return PyTorch's random state of each device, "cpu" or "cuda:N"; {} on other backends."""
    if BACKEND != "torch":
        return {}
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states = torch.cuda.get_rng_state_all()
        state |= {f"cuda:{device}": value for device, value in enumerate(states)}
    return {device: value.numpy() for device, value in state.items()}


def set_random_state(state: dict[str, np.ndarray]) -> None:
    """Restore the result of `random_state`; devices missing on this machine are skipped.

    Raises:
        ValueError: If a key is neither "cpu" nor "cuda:N".
    """
    if BACKEND != "torch":
        return
    for device, value in state.items():
        value = torch.from_numpy(np.array(value))
        if not re.fullmatch(r"cpu|cuda:\d+", device):
            raise ValueError(f"devices must be cpu or cuda:N, got {device!r}")
        if device == "cpu":
            torch.set_rng_state(value)
        elif torch.cuda.is_available() and int(device[5:]) < torch.cuda.device_count():
            torch.cuda.set_rng_state(value, int(device[5:]))
