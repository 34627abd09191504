"""Capture of functions as CUDA graphs, and a cache of the searches that consist of them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_SHARE = 8  # the states of kept searches may take 1 / 8 of a GPU's memory
_MOST = 64  # maximum number of recorded searches that are kept


class NotRecordableError(RuntimeError):
    """Raised when a function cannot be captured: it waits for the GPU, or memory is lacking."""


class Recorder:
    """A recorder of functions as CUDA graphs, which share the memory of intermediate results.

    It also keeps the recorded searches of a GPU, up to a limit of number and size.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[tuple[int, str], Any] = {}  # recorded searches, the last used one last
        self._holder: Any = None  # a graph that keeps the shared memory allocated
        self._constants = _Constants()

    def forget(self, owner: int) -> None:
        """Drop all recorded searches of the `RecordedSearch` with this id."""
        for key in list(self.kept):
            if key[0] == owner:
                self.kept.pop(key, None)
        if not self.kept:
            self._holder = None

    def make_room(self, size: int) -> None:
        """Drop the least recently used searches until a new one with `size` bytes of state fits.

        Raises:
            NotRecordableError: If the new search alone is too large.
        """
        most = self._most_bytes()
        if size > most:
            raise NotRecordableError(f"its state has {size:,} bytes, of at most {most:,}")
        # Searches that are deleted meanwhile drop their own entries.
        for key in list(self.kept):
            sizes = [x.size for x in list(self.kept.values())]
            if len(sizes) < _MOST and size + sum(sizes) <= most:
                break
            self.kept.pop(key, None)

    def _most_bytes(self):
        return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory // _SHARE

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Run a function once, capture it, and return a function that replays it.

        Raises:
            NotRecordableError: If the function cannot be captured.
        """
        try:
            return self._record(function)
        except RuntimeError as error:
            raise NotRecordableError(f"it cannot be recorded: {error}") from error

    def _record(self, function):
        """Run a function, capture it as a CUDA graph, and return the function that replays it."""
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        # This run makes constants and converted copies of weights, which the graph must not make.
        with torch.cuda.stream(side), self._constants:
            function()
        current.wait_stream(side)
        try:
            holder = self._holder or self._captured(lambda: torch.zeros(1, device="cuda"), None)
            graph = self._captured(function, holder.pool())
        except BaseException:
            torch.cuda.set_stream(current)  # a failed capture leaves its own stream set
            self._holder = None
            raise
        self._holder = holder
        return graph.replay

    def _captured(self, function, pool):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool, capture_error_mode="thread_local"), self._constants:
            function()
        return graph


@functools.cache
def recorder_of(device: int) -> Recorder:
    """Return the one `Recorder` of a GPU."""
    return Recorder()


class _Constants(TorchFunctionMode):
    """A mode that caches tensors made from arrays: a CUDA graph cannot copy them to the GPU."""

    def __init__(self):
        super().__init__()
        self._kept = {}

    def __torch_function__(self, function, types, arguments=(), options=None):
        """Call a function of PyTorch; return the cached tensor if it converts the same array."""
        options = options or {}
        makes = function in (torch.as_tensor, torch.tensor) and len(arguments) == 1
        if not makes or torch.is_tensor(arguments[0]):
            return function(*arguments, **options)
        if isinstance(arguments[0], bool | int | float):
            return torch.full((), arguments[0], **options)
        array = np.asarray(arguments[0])
        key = array.tobytes(), array.shape, str(array.dtype), str(options)
        if key not in self._kept:
            self._kept[key] = function(*arguments, **options)
        return self._kept[key]
