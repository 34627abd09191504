"""Prefetching of batches with grain: `Stream` calls a function in worker processes or a thread.

The batch of a step depends only on the step, so any process can make it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags, logging

# grain supports JAX's profiler, and would log a warning in each process without JAX.
_verbosity = logging.get_verbosity()
logging.set_verbosity(logging.ERROR)
import grain  # noqa: E402

logging.set_verbosity(_verbosity)

_AHEAD = 4  # batches that each worker process, or the thread, prefetches
# Before training, Keras makes several iterators, and takes one or two batches from each to infer
# shapes. The first batches of an iterator are made in this process: no workers start for them.
_LOOKED_AT = 2


class Stream(grain.IterDataset):
    """The results of `make(step)` for consecutive steps, prefetched.

    Args:
        make: Function from the step to a batch. If there are workers, cloudpickle must be able to
            pickle it. If it returns None, which grain would skip, the stream raises ValueError.
        first_step: First step.
        steps: Number of steps; None: without end.
        num_workers: Number of worker processes that call `make`; 0: a thread of this process.
    """

    def __init__(
        self,
        make: Callable[[int], Any],
        first_step: int = 0,
        steps: int | None = None,
        num_workers: int = 0,
    ):
        super().__init__()
        self.make = make
        self.first_step = first_step
        self.steps = steps
        self.num_workers = num_workers

    def __iter__(self) -> grain.DatasetIterator:
        return _StreamIterator(self)


class _StreamIterator(grain.DatasetIterator):
    """An iterator over a `Stream`; workers start after the first `_LOOKED_AT` batches."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream
        self._step = stream.first_step
        self._stop = sys.maxsize if stream.steps is None else stream.first_step + stream.steps
        self._ahead = None

    def __next__(self):
        if self._closed:
            raise ValueError("this iterator has been closed")
        if self._step >= self._stop:
            raise StopIteration
        if self._step < self._stream.first_step + _LOOKED_AT:
            batch = _made(self._stream.make, self._step)
        else:
            if self._ahead is None:
                self._ahead = _ahead(
                    self._stream.make, self._step, self._stop, self._stream.num_workers
                )
            batch = next(self._ahead)
        self._step += 1
        return batch

    def get_state(self):
        return {"step": self._step}

    def set_state(self, state):
        self._stop_ahead()
        self._step = state["step"]

    def close(self):
        super().close()
        self._stop_ahead()

    def _stop_ahead(self):
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None


def _ahead(make: Callable, first_step: int, stop: int, num_workers: int) -> Iterator[Any]:
    """Yield the results for the steps up to `stop` - 1, prefetched by workers or by a thread."""
    made = _made_by_worker if num_workers else _made
    dataset = grain.MapDataset.range(first_step, stop).map(functools.partial(made, make))
    if num_workers == 0:
        options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=_AHEAD)
        with contextlib.closing(iter(dataset.to_iter_dataset(options))) as batches:
            yield from batches
        return
    if not flags.FLAGS.is_parsed():  # grain reads an absl flag, and fails outside an absl program
        flags.FLAGS.mark_as_parsed()
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    dataset = dataset.to_iter_dataset(options).mp_prefetch(
        grain.MultiprocessingOptions(num_workers, per_worker_buffer_size=_AHEAD)
    )
    with contextlib.closing(iter(dataset)) as batches:
        with _empty_main():
            # Once each worker has returned its first batch, all of them have started.
            first_batches = list(itertools.islice(batches, num_workers))
        yield from first_batches
        yield from batches


def _made(make, step):
    batch = make(step)
    if batch is None:
        raise ValueError(f"make must return a batch for each step, got None for step {step}")
    return batch


def _made_by_worker(make, step):
    _begin_worker()
    return _made(make, step)


@functools.cache
def _begin_worker():
    """Make this worker process ignore Ctrl-C, and exit when the training process exits."""
    with contextlib.suppress(ValueError):  # signals can be set in the main thread only
        # Ctrl-C reaches all processes of a terminal; the training process ends the workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a worker's process"

    def end():
        parent.join()
        os._exit(1)  # a regular exit of grain 0.2 waits forever for room in its queue

    threading.Thread(target=end, daemon=True).start()


@contextlib.contextmanager
def _empty_main():
    """Prevent processes that start in this context from running the program's main module.

    They would import everything that it imports, such as Keras and its backend, which takes seconds
    and half a gigabyte per process. A script without `if __name__ == "__main__"` would even start
    training in each of them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def for_keras(stream: Stream) -> Any:
    """Return a stream in the form that `fit` and `evaluate` accept on the active backend.

    JAX and PyTorch accept the stream itself. TensorFlow gets a `tf.data.Dataset` with unknown axis
    sizes and a known number of batches. Unknown axis sizes: from a plain iterator, Keras 3.15 would
    fix the sizes in which the first two batches agree, and TensorFlow would reject other sizes.
    Known number of batches: in an epoch of unknown length, Keras counts one step too many.
    """
    # Imported here because worker processes import this file, and do not need Keras.
    import keras

    if keras.backend.backend() != "tensorflow":
        return stream
    tf = sys.modules["tensorflow"]  # Keras has imported it; `data` must not import a backend
    signature = keras.tree.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype),
        stream.make(stream.first_step),
    )
    size = tf.data.INFINITE_CARDINALITY if stream.steps is None else stream.steps
    dataset = tf.data.Dataset.from_generator(lambda: stream, output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(size)).prefetch(_AHEAD)
