"""The engine of PyTorch's compiler: our own search, compiled to C++."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import packages, portable, row_loop, without_gradients
from keras_transformer.config import require
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.runner import Runner
from keras_transformer.system.files import cache_folder
from keras_transformer.text.shortlist import Shortlist
from keras_transformer.translate.engines.keras_engine import KerasEngine

NAME = "inductor"
_EXAMPLES = ((2, 5), (3, 9))  # rows and tokens: all sizes that may differ do


class InductorEngine(KerasEngine):
    """The engine that compiles a search of the Keras model, with PyTorch on a processor.

    The options of its first search are compiled, for texts of any number and length: what comes
    before the loop, and a turn of the loop. The code has one thread, and weights of its own.
    Samples, and searches with other options, a constraint or a shortlist are computed as by
    `KerasEngine`, and so are scores.

    Args:
        model: The model, in float32, whose weights do not change.
        shortlist: As in `KerasEngine`.

    Raises:
        ValueError: If the backend, the device or the precision is another.
        ImportError: If there is no C++ compiler.
    """

    def __init__(self, model: EncoderDecoder, shortlist: Shortlist | None = None):
        super().__init__(model, shortlist)
        precision = model.quantization or model.compute_dtype
        require(precision == "float32", "precision", precision, f'float32 for engine="{NAME}"')
        self._runner = _Ahead(packages(model, cache_folder(NAME)))


class _Ahead(Runner):
    """A `Runner` whose first search is compiled ahead of time."""

    def __init__(self, packages: Any):
        super().__init__()
        self._packages = packages
        self._first: tuple[Hashable, Callable] | None = None

    def search(
        self, model: keras.Model, key: Hashable, begin: Callable, arguments: Any, varying: Any = ()
    ) -> list[np.ndarray]:
        source, _, prefix, *others = arguments
        kind = key, prefix is None
        fits = source.shape[1] > 1 and all(x is None for x in others)
        if fits and self._first is None:
            name = f"{type(model).__name__} {model.config} {kind}"
            self._first = kind, _compiled(self._packages, name, begin, arguments[:3])
        if not fits or self._first is None or self._first[0] != kind:
            return super().search(model, key, begin, arguments, varying)
        return self._first[1](*arguments[:3])


def _compiled(packages, name, begin, arguments):
    """Return the function from the arguments of a search to its ids and scores."""
    are_given = [x is not None for x in arguments]

    def begun(*given):
        rest = iter(given)
        return begin(*(next(rest) if is_given else None for is_given in are_given))

    with without_gradients(), portable():
        examples = [_example(arguments, rows, size) for rows, size in _EXAMPLES]
        turns = []
        for i, example in enumerate(examples, 2):
            loop = begun(*example)
            state = loop.first
            for j in range(1, i):
                state = loop.turn(j, *state)
            turns.append((i, *state))
    start = packages.compiled(f"start {name}", lambda *x: begun(*x).first, examples)
    turn = packages.compiled(f"turn {name}", loop.turn, turns)
    # Which leaf is which, found once: to pack leaves into their tree takes long in each search.
    leaves = range(len(keras.tree.flatten(loop.first)))
    _, found, alive = keras.tree.pack_sequence_as(loop.first, leaves)
    names, forced = sorted(found, key=found.get), alive["forced_BL"]

    def parts(leaves):
        return leaves[0], leaves[1 : 1 + len(names)], leaves[1 + len(names) :]

    def find(*arguments):
        leaves = start([x for x in arguments if x is not None])
        body = lambda i, done, found, alive: parts(turn([i, done, *found, *alive]))  # noqa: E731
        with without_gradients():
            found = row_loop(body, leaves[forced].shape[1], *parts(leaves))
            result = loop.result(dict(zip(names, found, strict=True)))
        return [keras.ops.convert_to_numpy(x) for x in result]

    return find


def _example(arguments, rows, size):
    """Return those arguments that are given, of so many rows, with sources of a size."""
    sizes = (size,), (), (size - 2,)
    return [
        keras.ops.convert_to_tensor(np.resize(x, (rows, *own)))
        for x, own in zip(arguments, sizes, strict=True)
        if x is not None
    ]
