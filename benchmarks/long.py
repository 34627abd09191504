"""Time and memory of long inputs, with dense, memory-saving and windowed attention.

    python -m benchmarks.long [--backend torch tensorflow jax] [--lengths 1024 ... 16384] [--save]

Runs a small LLaMA on one row of random tokens.

- `training` is one step: the gradient of the loss and an update by Adam.
- `decoding` is the prefill of a prompt of the given length and `TOKENS` greedy tokens. The cache
  has the whole length, or with `window` the length of the window.
- `dense` computes all attention weights at once, as for short inputs, up to `--dense` positions.
- `frugal` is the default for long inputs: it computes the weights part by part.
- `window` limits attention to the last `WINDOW` positions.

Each figure comes from a separate process, one after another. Memory is the peak less the memory
that was resident after the same work on a short sequence.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import contest, train
from benchmarks.contest import Contestant

WINDOW, TOKENS, SHORTEST = 256, 32, 128
SIZES = dict(d_model=256, d_ff=688, num_layers=2, num_heads=4, max_length=32_768)
PATHS = ("dense", "frugal", "window")


def work(task: str, path: str, length: int) -> tuple[Callable, dict]:
    """A contestant: one training step, or one prompt and the tokens generated from it."""
    from keras_transformer.models import LLaMA, LLaMAConfig

    if path == "dense":
        importlib.import_module("keras_transformer.backend.dot_product_attention").LONG = float(
            "inf"
        )
    window = WINDOW if path == "window" else None
    model = LLaMA(LLaMAConfig(256, **SIZES, window=window))
    return contestant(task, model, length)


def contestant(task: str, model: Any, length: int) -> tuple[Callable, dict]:
    """Make a contestant of a model, after the same work on a short sequence."""
    make = dict(training=_training, decoding=_decoding)[task]
    make(model, SHORTEST)()
    facts = {"resident_bytes": contest.resident_bytes()}
    return make(model, length), facts


def _training(model, length):
    import numpy as np

    from keras_transformer import LabelSmoothedCrossentropy, adam

    model.compile(adam(1e-3), LabelSmoothedCrossentropy(0.0))
    ids = np.random.default_rng(0).integers(3, 256, (1, length + 1)).astype("int32")
    inputs, labels = {"token_ids": ids[:, :-1]}, ids[:, 1:]

    def run():
        model.train_on_batch(inputs, labels)

    return run


def _decoding(model, length):
    import numpy as np
    from keras import ops

    from keras_transformer.backend import compiled
    from keras_transformer.decoding import greedy_search
    from keras_transformer.search import Search

    ids = np.random.default_rng(0).integers(3, 256, (1, length)).astype("int32")
    room = length + TOKENS

    def generate(ids):
        logits, state, step = model.prefill(ids, room)
        limits = ops.full((1,), TOKENS, dtype="int32")
        search = Search(beam_size=1, length_penalty=0.0, min_length=TOKENS)
        options = dict(eos_ids=(2,), length=TOKENS, max_lengths_B=limits, index=length)
        return greedy_search(step, logits, state, search, **options)[0]

    function = compiled(generate, model)

    def run():
        ops.convert_to_numpy(function(ops.convert_to_tensor(ids)))

    return run


def add_options(parser: argparse.ArgumentParser, lengths: list[int]) -> None:
    """Add the options that `measured` needs."""
    installed = [name for name in train.BACKENDS if importlib.util.find_spec(name)]
    parser.add_argument("--backend", nargs="+", choices=train.BACKENDS, default=installed)
    parser.add_argument("--lengths", nargs="+", type=int, default=lengths)
    parser.add_argument("--tasks", nargs="+", default=["training", "decoding"])
    parser.add_argument("--save", action="store_true", help="write the table to results/")


def measured(
    arguments: argparse.Namespace, setup: str, paths: Sequence[str], longest: Mapping[str, int]
) -> tuple[list[str], list[list[str]]]:
    """Run each task with each path at each length; return the header and the rows of the table.

    Args:
        arguments: Values of `add_options`.
        setup: The function that makes a contestant of a task, a path and a length.
        paths: Kinds of attention.
        longest: Maximum length for paths that have one.
    """
    rows = []
    for task in arguments.tasks:
        for backend in arguments.backend:
            for path in paths:
                cells = []
                for length in arguments.lengths:
                    if length > longest.get(path, length):
                        cells.append("")
                        continue
                    name = f"{task} {backend} {path} {length}"
                    options = dict(task=task, path=path, length=length)
                    entry = Contestant(name, setup, options, train.BACKENDS[backend])
                    contest.alone(entry, runs=2)
                    seconds = min(result["seconds"] for result in entry.results)
                    peak = entry.results[-1]["peak_bytes"] - entry.facts["resident_bytes"]
                    cells.append(f"{seconds:.2f} s, {peak / 2**20:,.0f} MiB")
                    print(name, cells[-1], flush=True)
                rows.append([task, backend, path, *cells])
    header = ["", "backend", "attention", *(f"{length:,}" for length in arguments.lengths)]
    return header, rows


def main() -> None:
    """Run one process after another and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, [1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--dense", type=int, default=4096, help="longest input for dense attention")
    arguments = parser.parse_args()
    longest = {"dense": arguments.dense}
    header, rows = measured(arguments, "benchmarks.long:work", PATHS, longest)
    sizes = ", ".join(f"{name} {size:,}" for name, size in SIZES.items() if name != "max_length")
    parts = [f"One row; {sizes}; a window of {WINDOW}.", contest.table(header, rows)]
    contest.report(
        "long", "Long inputs: seconds, and memory above the libraries'", parts, arguments.save
    )


if __name__ == "__main__":
    main()
