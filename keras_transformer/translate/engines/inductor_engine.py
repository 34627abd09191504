"""The engine "inductor": our own search, compiled to C++ by PyTorch's compiler."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import packages, portable, row_loop, without_gradients
from keras_transformer.config import require
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.runner import Runner
from keras_transformer.system.files import cache_folder, can_write
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.engines.keras_engine import KerasEngine

NAME = "inductor"
# Rows and tokens of two example batches: sizes in which they differ are variable when compiled.
_EXAMPLES = ((2, 5), (3, 9))


class InductorEngine(KerasEngine):
    """An engine that compiles the search with PyTorch, for the CPU.

    The first search is compiled with its options, for any number and length of texts, in two parts:
    the code before the loop, and one turn of the loop. The compiled code runs on one thread, and
    has copies of the weights that it packs. Sampling, scores, and searches with other options, a
    constraint or a shortlist run as in `KerasEngine`.

    Args:
        model: The model, in float32. Its weights must not change afterwards.
        shortlist: See `KerasEngine`.

    Raises:
        ValueError: If the backend is not PyTorch, the device no CPU, or the precision not float32.
        ImportError: If there is no C++ compiler.
    """

    def __init__(self, model: EncoderDecoder, shortlist: Shortlist | None = None):
        super().__init__(model, shortlist)
        precision = model.quantization or model.compute_dtype
        require(precision == "float32", "precision", precision, f'float32 for engine="{NAME}"')
        folder = cache_folder(NAME)
        if not can_write(folder):
            self._temporary = tempfile.TemporaryDirectory()  # removed with this object
            folder = Path(self._temporary.name)
        self._runner = _Ahead(packages(model, folder))


class _Ahead(Runner):
    """A `Runner` whose first search is compiled ahead of time."""

    def __init__(self, packages: Any):
        super().__init__()
        self._packages = packages
        self._first: tuple[Hashable, Callable] | None = None
        self._compiling = threading.Lock()

    def search(
        self, model: keras.Model, key: Hashable, begin: Callable, arguments: Any, varying: Any = ()
    ) -> list[np.ndarray]:
        source, _, prefix, *others = arguments
        kind = key, prefix is None
        is_plain = source.shape[1] > 1 and all(x is None for x in others)
        if is_plain:
            with self._compiling:
                if self._first is None:
                    name = f"{type(model).__name__} {model.config} {kind}"
                    self._first = kind, _compiled(self._packages, name, begin, arguments[:3])
        if not is_plain or self._first is None or self._first[0] != kind:
            return super().search(model, key, begin, arguments, varying)
        return self._first[1](*arguments[:3])


def _compiled(packages, name, begin, arguments):
    """Compile a search; return the function from its arguments to arrays of ids and scores."""
    are_given = [x is not None for x in arguments]

    def begin_with(*values):
        rest = iter(values)
        return begin(*(next(rest) if is_given else None for is_given in are_given))

    with without_gradients(), portable():
        examples = [_example(arguments, rows, size) for rows, size in _EXAMPLES]
        turns = []
        for i, example in enumerate(examples, 2):
            loop = begin_with(*example)
            state = loop.first
            for j in range(1, i):
                state = loop.turn(j, *state)
            turns.append((i, *state))
    start = packages.compiled(f"start {name}", lambda *x: begin_with(*x).first, examples)
    flat_turn = packages.compiled(f"turn {name}", loop.turn, turns)
    # The index of each leaf is looked up once, because packing leaves into their tree is slow.
    leaves = range(len(keras.tree.flatten(loop.first)))
    _, result_places, alive = keras.tree.pack_sequence_as(loop.first, leaves)
    names, forced = sorted(result_places, key=result_places.get), alive["forced_BL"]

    def parts(leaves):
        return leaves[0], leaves[1 : 1 + len(names)], leaves[1 + len(names) :]

    def find(*arguments):
        leaves = start([x for x in arguments if x is not None])
        turn = lambda i, done, results, alive: parts(flat_turn([i, done, *results, *alive]))  # noqa: E731
        with without_gradients():
            results = row_loop(turn, leaves[forced].shape[1], *parts(leaves))
            result = loop.result(dict(zip(names, results, strict=True)))
        return [keras.ops.convert_to_numpy(x) for x in result]

    return find


def _example(arguments, rows, size):
    """Return the arguments that are not None, resized to `rows` rows and sources of `size`."""
    sizes = (size,), (), (size - 2,)
    return [
        keras.ops.convert_to_tensor(np.resize(x, (rows, *shape)))
        for x, shape in zip(arguments, sizes, strict=True)
        if x is not None
    ]
