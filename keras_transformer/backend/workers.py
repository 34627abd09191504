"""Independent pieces of work, computed by several threads on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keras_transformer.backend.accelerators import count_gpus
from keras_transformer.system import interruption
from keras_transformer.system.processor import num_threads


def num_workers() -> int:
    """Return how many pieces of work to compute at once: 1 with GPUs, else `num_threads`."""
    return 1 if count_gpus() else num_threads()


def by_workers(function: Callable[[Any], Any], items: Sequence[Any], workers: int) -> list[Any]:
    """Return `[function(x) for x in items]`, computed by up to `workers` threads.

    Compiled searches gain from it: they release Python's lock and share the weights, and their
    matrix products are too small for several threads each. In these threads `interruption.check`
    raises as it would in the calling thread.

    Args:
        function: Function that is safe in several threads.
        items: Its arguments, the longest work first.
        workers: Maximum number of threads; 1: the caller computes.
    """
    workers = min(workers, len(items))
    if workers < 2:
        return [function(x) for x in items]
    work = interruption.inherited(function)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, x) for x in items]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)
