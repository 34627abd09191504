"""Searches on a GPU as CUDA graphs: their kernels are captured once, and replayed.

An iteration of a search runs hundreds of kernels of a few microseconds, and Python takes ten times
as long to call them. A replay starts all of them in one call.
"""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import keras
import torch

from keras_transformer.backend import private
from keras_transformer.backend.cache import fixed_caches
from keras_transformer.backend.torch.recorder import NotRecordableError, Recorder, recorder_of
from keras_transformer.system import interruption

_TURNS = 4  # iterations between two checks whether all rows are done
_POSITIONS = 16  # positions that attention covers at first; doubled whenever they are filled


class RecordedSearch:
    """A function from the arguments of a search to its ids and scores, recorded for each shape.

    Args:
        begin: Function from tensors and None to a `decoding.SearchLoop`.
        variables: Function that returns the variables that the search reads. If it returns other
            variables, or the value of one has changed, the search is recorded again.
        recorder: Recorder that captures and keeps the graphs; None: the shared one of the current
            GPU.
    """

    def __init__(
        self,
        begin: Callable,
        variables: Callable[[], Sequence[keras.Variable]],
        recorder: Recorder | None = None,
    ):
        self._begin, self._variables = begin, variables
        self._recorder = recorder or recorder_of(torch.cuda.current_device())
        self._versions: Any = None
        self._refused: set[str] = set()  # shapes that cannot be recorded
        weakref.finalize(self, self._recorder.forget, id(self))

    def __call__(self, *arguments: Any) -> Any:
        """Return the result of the search; if recording fails, warn and run it unrecorded."""
        shapes = repr([None if x is None else (*x.shape, x.dtype) for x in arguments])
        if shapes not in self._refused:
            try:
                # Tensors made in inference mode could not be changed outside of it.
                with self._recorder.lock, torch.inference_mode(False), torch.no_grad():
                    return self._recorded(shapes, arguments)
            except (NotRecordableError, torch.OutOfMemoryError) as error:
                warnings.warn(f"a search is slower than others on a GPU: {error}", stacklevel=2)
                self._refused.add(shapes)
        return self._begin(*arguments).run()

    def _recorded(self, shapes, arguments):
        """Return the result of a recorded search; record it if there is none for these shapes."""
        if (versions := [*map(_version, self._variables())]) != self._versions:
            self._recorder.forget(id(self))
            self._versions = versions
        search = self._recorder.kept.pop((id(self), shapes), None)
        if search is None:
            search = _Search(self._begin, arguments, self._recorder)
            self._recorder.make_room(search.size)
        result = search(arguments)
        self._recorder.kept[id(self), shapes] = search  # kept only if it did not fail
        return result


class _Search:
    """A recorded search for arguments of the same shapes as those that it was made with."""

    def __init__(self, begin, arguments, recorder):
        self._arguments = [None if x is None else x.clone() for x in arguments]
        with fixed_caches():
            loop = begin(*self._arguments)
        self._state = keras.tree.map_structure(_own, loop.first)
        device = self._state[0].device
        self._i = torch.ones((), dtype=torch.int32, device=device)
        self._done = torch.zeros((), dtype=torch.bool, device=device)
        self._loop = dataclasses.replace(loop, first=None)
        self.size = sum(x.numel() * x.element_size() for x in keras.tree.flatten(self._state))

        def start():
            with fixed_caches():
                _assign(self._state, begin(*self._arguments).first)
            self._i.fill_(1)

        self._recorder, self._start, self._turns = recorder, recorder.record(start), {}

    def _record_turn(self, positions):
        """Record an iteration that attends to `positions` positions; the state is restored."""

        def turn():
            with fixed_caches(positions):
                _assign(self._state, self._loop.turn(self._i, *self._state))
            self._i.add_(1)
            self._done.copy_(self._state[0].all())

        i = self._i.clone()
        state = keras.tree.map_structure(torch.clone, self._state)
        self._turns[positions] = self._recorder.record(turn)
        _assign((self._i, self._state), (i, state))  # the state before the recording

    def __call__(self, arguments):
        for copy, x in zip(self._arguments, arguments, strict=True):
            if copy is not None:
                copy.copy_(x)
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


def _own(x):
    """Return a contiguous copy, which shares its memory with no other tensor."""
    return x.clone(memory_format=torch.contiguous_format)


def _assign(state, new):
    """Copy the new values into the tensors of a state, except those written in place."""
    pairs = zip(keras.tree.flatten(state), keras.tree.flatten(new), strict=True)
    changed = [(old, x) for old, x in pairs if old is not x]
    storages = {old.untyped_storage().data_ptr() for old in keras.tree.flatten(state)}
    for old, x in [
        (old, x.clone() if x.untyped_storage().data_ptr() in storages else x) for old, x in changed
    ]:
        old.copy_(x)


def _version(variable):
    value = private.own_value(variable)
    return value.data_ptr(), private.version_of(value)
