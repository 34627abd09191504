"""The compilation of a search by PyTorch, in a child process.

`python -m keras_transformer.translate.engines.inductor_compiler` reads a request as a line of JSON,
compiles the search into a cache folder and answers; see `system.child`. It is a separate process
because PyTorch's export sets flags of the whole process, which would affect searches in other
threads.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import packages, portable, row_loop, without_gradients
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.search_functions import translation_loop
from keras_transformer.search import Search
from keras_transformer.system.child import Child, serve

COMMAND = (sys.executable, "-m", "keras_transformer.translate.engines.inductor_compiler")
# Rows and tokens of two example batches: sizes in which they differ are variable when compiled.
_EXAMPLES = ((2, 5), (3, 9))


def compiled_search(
    compiled: Callable,
    model: EncoderDecoder,
    search: Search,
    arguments: Sequence[np.ndarray | None],
) -> Callable[..., list[np.ndarray]] | None:
    """Return a search in compiled code, from its arguments to arrays of ids and scores.

    It consists of two functions: the code before the loop, and one iteration of it.

    Args:
        compiled: `Packages.compiled` or `Packages.kept`.
        model: The model.
        search: Options of the search.
        arguments: Source, limits and prefix of an example, see `translation_loop`.

    Returns:
        The search; None if `compiled` returns None.
    """
    are_given = [x is not None for x in arguments]
    begin = translation_loop(search, model)

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
    name = f"{type(model).__name__} {model.config} {search} {are_given}"
    start = compiled(f"start {name}", lambda *x: begin_with(*x).first, examples)
    flat_turn = start and compiled(f"turn {name}", loop.turn, turns)
    if flat_turn is None:
        return None
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


def compile_elsewhere(
    model: EncoderDecoder,
    search: Search,
    arguments: Sequence[np.ndarray | None],
    folder: Path,
) -> None:
    """Compile a search into a cache folder, in a child process.

    Args:
        model, search, arguments: See `compiled_search`.
        folder: Folder of the compiled functions.

    Raises:
        ChildProcessError: If the process ends early.
        ValueError: If the search cannot be compiled.
    """
    with tempfile.TemporaryDirectory() as room:
        path = Path(room, "model.keras")
        model.save(path)
        child = Child(COMMAND, {"KERAS_BACKEND": keras.config.backend()})
        try:
            child.send(
                {
                    "model": str(path),
                    "search": dataclasses.asdict(search),
                    "arguments": [
                        None if x is None else [str(x.dtype), x.ravel()[:64].tolist()]
                        for x in arguments
                    ],
                    "folder": str(folder),
                }
            )
            if error := child.receive()["error"]:
                raise ValueError(error)
        finally:
            child.stop()


def answer(request: dict[str, Any]) -> dict[str, str | None]:
    """Compile the search of a request of `compile_elsewhere`; return {"error": message or None}."""
    arguments = [x and np.array(x[1], x[0]) for x in request["arguments"]]
    try:
        model = keras.saving.load_model(request["model"], compile=False)
        compiled = packages(model, Path(request["folder"])).compiled
        compiled_search(compiled, model, Search(**request["search"]), arguments)
    except Exception as error:  # the parent raises it
        return {"error": f"{error}"}
    return {"error": None}


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # the searches of the parent come first
    serve(answer)
