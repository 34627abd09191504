"""Independent pieces of work on all cores of a CPU, one single-threaded worker a core."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.devices import count_gpus
from keras_transformer.system import interruption
from keras_transformer.system.processor import num_threads

if BACKEND == "torch":
    import torch


def num_workers() -> int:
    """Return how many pieces of work this machine computes at once: a core or a GPU each one.

    The number of cores is OMP_NUM_THREADS if that is set.
    """
    if count_gpus():
        return 1
    return torch.get_num_threads() if BACKEND == "torch" else num_threads()


def by_workers(function: Callable[[Any], Any], items: Sequence[Any], workers: int) -> list[Any]:
    """Return `[function(x) for x in items]`, computed by so many threads.

    Compiled searches gain from it: they release Python's lock, share the weights, and their matrix
    products are too small for several threads each. `interruption.check` in a thread answers for
    the caller.

    Args:
        function: Function that is safe in several threads.
        items: Its arguments, the longest work first.
        workers: Maximum number of threads; 1: the caller computes.
    """
    workers = min(workers, len(items))
    if workers < 2:
        return [function(x) for x in items]
    work = interruption.inherited(function)
    with _single_threaded(workers) as pool:
        futures = [pool.submit(work, x) for x in items]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _single_threaded(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads in which PyTorch's operations use one thread each."""
    if BACKEND != "torch":
        with ThreadPoolExecutor(workers) as pool:
            yield pool
        return
    before = torch.get_num_threads()
    start = functools.partial(torch.set_num_threads, 1)
    try:
        with ThreadPoolExecutor(workers, initializer=start) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)  # PyTorch also keeps the last number for new threads
