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
    """Return the number of threads of `on_all_cores`: that of cores, or OMP_NUM_THREADS.

    It is 1 where the backend has a GPU, which computes one piece of work at a time.
    """
    if count_gpus():
        return 1
    return torch.get_num_threads() if BACKEND == "torch" else num_threads()


def on_all_cores(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return `[function(x) for x in items]`, computed by one thread a core.

    Small matrix products gain little from several threads each. Whole searches do: they share the
    weights, and a backend releases Python's lock while it computes. `interruption.check` in a
    thread answers for the caller.

    Args:
        function: Function that is safe in several threads.
        items: Its arguments, the longest work first.
    """
    workers = min(num_workers(), len(items))
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
