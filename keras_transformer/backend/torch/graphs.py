"""Searches on a GPU as CUDA graphs: their kernels are recorded once, and replayed.

A turn of a search is hundreds of kernels of a few microseconds, and Python takes ten times as long
to call them. A replay starts all of them in one call.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from keras_transformer.backend import private
from keras_transformer.backend.cache import fixed_caches
from keras_transformer.system import interruption

_SHARE = 8  # of a GPU's memory, one part in so many may be kept for the states of searches
_MOST = 64  # recorded searches that are kept
_TURNS = 4  # from look to look at which rows are done
_POSITIONS = 16  # that attention covers at first; then twice as many, and so on


class NotRecordableError(RuntimeError):
    """Something waits for the GPU, or there is not enough memory."""


class RecordedSearch:
    """A function from the arguments of a search to its ids and scores, recorded for each shape.

    Args:
        begin: Function from tensors and None to a `decoding.SearchLoop`.
        variables: Function that returns the variables that it reads. When these are others or
            one changes, all is recorded again.
        recorder: What records; None: the one of all searches.
    """

    def __init__(
        self,
        begin: Callable,
        variables: Callable[[], Sequence[keras.Variable]],
        recorder: Recorder | None = None,
    ):
        self._begin, self._variables = begin, variables
        self._recorder = recorder or _recorder(torch.cuda.current_device())
        self._versions: Any = None
        self._refused: set[str] = set()  # shapes that cannot be recorded
        weakref.finalize(self, self._recorder.forget, id(self))

    def __call__(self, *arguments: Any) -> Any:
        """Return the result of the search, which is not recorded where that is impossible."""
        shapes = repr([None if x is None else (*x.shape, x.dtype) for x in arguments])
        if shapes not in self._refused:
            try:
                # What is made in inference mode could not be changed outside of it.
                with self._recorder.lock, torch.inference_mode(False), torch.no_grad():
                    return self._recorded(shapes, arguments)
            except (NotRecordableError, torch.OutOfMemoryError) as error:
                warnings.warn(f"a search is slower than others on a GPU: {error}", stacklevel=2)
                self._refused.add(shapes)
        return self._begin(*arguments).run()

    def _recorded(self, shapes, arguments):
        if (versions := [*map(_version, self._variables())]) != self._versions:
            self._recorder.forget(id(self))
            self._versions = versions
        search = self._recorder.kept.pop((id(self), shapes), None)
        if search is None:
            search = _Search(self._begin, arguments, self._recorder)
            self._recorder.make_room(search.size)
        result = search(arguments)
        self._recorder.kept[id(self), shapes] = search  # not if it failed
        return result


class _Search:
    """A search for arguments of the same shapes as the given ones."""

    def __init__(self, begin, arguments, recorder):
        self._given = [None if x is None else x.clone() for x in arguments]
        with fixed_caches():
            loop = begin(*self._given)
        self._state = keras.tree.map_structure(_own, loop.first)
        device = self._state[0].device
        self._i = torch.ones((), dtype=torch.int32, device=device)
        self._done = torch.zeros((), dtype=torch.bool, device=device)
        self._loop = dataclasses.replace(loop, first=None)
        self.size = sum(x.numel() * x.element_size() for x in keras.tree.flatten(self._state))

        def start():
            with fixed_caches():
                _assign(self._state, begin(*self._given).first)
            self._i.fill_(1)

        self._recorder, self._start, self._turns = recorder, recorder.record(start), {}

    def _record_turn(self, positions):
        def turn():
            with fixed_caches(positions):
                _assign(self._state, self._loop.turn(self._i, *self._state))
            self._i.add_(1)
            self._done.copy_(self._state[0].all())

        i = self._i.clone()
        state = keras.tree.map_structure(torch.clone, self._state)
        self._turns[positions] = self._recorder.record(turn)
        _assign((self._i, self._state), (i, state))  # as before the record

    def __call__(self, arguments):
        for own, x in zip(self._given, arguments, strict=True):
            if own is not None:
                own.copy_(x)
        self._start()
        positions = _POSITIONS
        for i in range(1, self._loop.length):
            if i % _TURNS == 0:
                interruption.check()
                if self._done.item():
                    break
            while positions < self._loop.index + i:
                positions *= 2
            if positions not in self._turns:
                self._record_turn(positions)
            self._turns[positions]()
        return self._loop.result(keras.tree.map_structure(torch.clone, self._state[1]))


class Recorder:
    """Records functions as CUDA graphs, which share the memory of what only they need."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[tuple[int, str], _Search] = {}  # the one used last comes last
        self._holder: Any = None  # keeps their memory from one search to the next
        self._constants = _Constants()

    def forget(self, owner: int) -> None:
        """Drop what is recorded for a `RecordedSearch` of this id."""
        for key in list(self.kept):
            if key[0] == owner:
                self.kept.pop(key, None)
        if not self.kept:
            self._holder = None

    def make_room(self, size: int) -> None:
        """Drop what was used longest ago, until one more of so many bytes is not too much.

        Raises:
            NotRecordableError: If it is too large by itself.
        """
        most = self._most_bytes()
        if size > most:
            raise NotRecordableError(f"its state has {size:,} bytes, of at most {most:,}")
        # Searches that end meanwhile drop theirs.
        for key, _ in list(self.kept.items()):
            sizes = [x.size for x in list(self.kept.values())]
            if len(sizes) < _MOST and size + sum(sizes) <= most:
                break
            self.kept.pop(key, None)

    def _most_bytes(self):
        return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory // _SHARE

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats what the given one does, which it does once here.

        Raises:
            NotRecordableError: If it cannot be recorded.
        """
        try:
            return self._record(function)
        except RuntimeError as error:
            raise NotRecordableError(f"it cannot be recorded: {error}") from error

    def _record(self, function):
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        # What is made once, such as constants and copies of weights, is made before.
        with torch.cuda.stream(side), self._constants:
            function()
        current.wait_stream(side)
        try:
            holder = self._holder or self._captured(lambda: torch.zeros(1, device="cuda"), None)
            graph = self._captured(function, holder.pool())
        except BaseException:
            torch.cuda.set_stream(current)  # a capture that fails leaves its own
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
def _recorder(device):
    return Recorder()


class _Constants(TorchFunctionMode):
    """Makes tensors of numbers on the GPU and keeps those of arrays: graphs have no such copies."""

    def __init__(self):
        super().__init__()
        self._kept = {}

    def __torch_function__(self, function, types, arguments=(), options=None):
        """Call a function of PyTorch, or return what it would."""
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


def _own(x):
    """Return a copy that shares its memory with nothing."""
    return x.clone(memory_format=torch.contiguous_format)


def _assign(state, new):
    """Copy the new values into the tensors of a state; those written in place are there."""
    both = zip(keras.tree.flatten(state), keras.tree.flatten(new), strict=True)
    changed = [(own, x) for own, x in both if own is not x]
    storages = {own.untyped_storage().data_ptr() for own in keras.tree.flatten(state)}
    for own, x in [
        (own, x.clone() if x.untyped_storage().data_ptr() in storages else x) for own, x in changed
    ]:
        own.copy_(x)


def _version(variable):
    value = private.own_value(variable)
    return value.data_ptr(), private.version_of(value)
