"""Marian, the C++ program, from the package `pymarian`, as a contestant.

`peers.marian` is MarianMT of `transformers`, which computes in PyTorch. `decoders.pymarian` exports
our model with `keras_transformer.export.marian`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import machine
from keras_transformer.config import TransformerConfig


def write_vocabulary(path: Path, pieces: Sequence[str]) -> None:
    """Write pieces, ordered by id, as a vocabulary in YAML, of which JSON is a part."""
    path.write_text(json.dumps({x: i for i, x in enumerate(pieces)}), "utf-8")


def rows_of(
    ids: Sequence[Sequence[int]], batch_size: int
) -> tuple[list[Sequence[int]], list[int | None]]:
    """Return rows in the order of Marian's batches, the longest first, and the place of each.

    The layers of an exported model do not mask padding, in Marian 1.12, in a batch whose width is a
    multiple of 4. Such a batch gets a longer row, which has no place.
    """
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    rows, places = [], []
    while order:
        longest = ids[order[0]]
        if len(longest) % 4 == 0 and len(order) > 1:
            rows.append([longest[0], *longest])
            places.append(None)
        size = batch_size - len(rows) % batch_size
        rows += [ids[i] for i in order[:size]]
        places += order[:size]
        order = order[size:]
    return rows, places


def training_command(
    config: TransformerConfig,
    files: Mapping[str, Path],
    rows: int,
    steps: int,
    more: Mapping[str, object],
) -> list[str]:
    """Return the command of a training of twice `steps` updates, with a line of log per `steps`.

    Args:
        config: Sizes of the model.
        files: Paths of "source", "target", "pieces.yml" and "model.npz", the model to write.
        rows: Rows of a batch, which all threads share.
        steps: Updates between two lines.
        more: Further options.
    """
    from keras_transformer.hub.marian.outgoing import options_of  # peers do not import Keras

    arguments = options_of(config) | {
        "train-sets": [files["source"], files["target"]],
        "vocabs": [files["pieces.yml"]] * 2,
        "model": files["model.npz"],
        "cpu-threads": machine.count_threads(),
        "sync-sgd": True,
        "mini-batch": rows,
        "maxi-batch": 1,
        "max-length": config.max_length,
        "shuffle": "none",
        "no-reload": True,
        "after": f"{2 * steps}u",
        "disp-freq": f"{steps}u",
        **more,
    }
    command = [sys.executable, "-m", "pymarian", "train"]
    for name, value in arguments.items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        command += [f"--{name}", *map(str, values)]
    return command


def last_shown(log: str) -> tuple[int, float]:
    """Return target tokens and tokens per second of a log's last line of progress."""
    tokens, rate = re.findall(r" \* ([\d,]+) .* : ([\d.]+) words/s", log)[-1]
    return int(tokens.replace(",", "")), float(rate)
