"""The manifest of an output folder: it describes the job that writes the folder.

A second job with other inputs or options is refused, so that their outputs are not mixed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_transformer.corpora.shards import Input, counted
from keras_transformer.system.files import complete, read_json, write_synced
from keras_transformer.system.named_models import ADAPTER, CONFIG, MODEL

MANIFEST = "manifest.json"
FORMAT = 1


def fingerprint(folder: str | os.PathLike) -> str:
    """Return a SHA-256, in hexadecimal digits, of the files that define a saved model.

    The tokenizer counts by its fingerprint in `config.json`. Of an adapter, the files of the base
    model count too; of a base in Hugging Face's layout, only the path counts.

    Raises:
        ValueError: If the folder is not a saved model.
    """
    complete(folder)
    config = Path(folder, CONFIG)
    adapter = read_json(config).get("adapter") if config.is_file() else None
    hashes = []
    for name in (CONFIG, MODEL if adapter is None else ADAPTER):
        path = Path(folder, name)
        if not path.is_file():
            raise ValueError(f"{folder} is not a saved model: it has no {name}")
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    if adapter is not None:
        base = Path(folder, adapter["base"])
        is_saved = any((base / name).is_file() for name in (MODEL, ADAPTER))
        # A base that is not a saved model is a folder in Hugging Face's layout.
        hashes.append(fingerprint(base) if is_saved else str(base.resolve()))
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def planned(
    output: str | os.PathLike,
    facts: dict[str, Any],
    sides: Sequence[tuple[Sequence[str], tuple[str, ...]]],
    shard_lines: int,
) -> list[list[Input]]:
    """Return the inputs of a job from its manifest; if there is none, read the files and write it.

    Args:
        output: The job's output folder; created if missing.
        facts: Task, model and options of the job, as plain values.
        sides: One tuple (files, names of their fields), or two for parallel files.
        shard_lines: Number of lines in a shard.

    Raises:
        ValueError: If the folder belongs to another job (names what differs) or holds other files,
            two sides have different numbers of files, or a line of an input cannot be read.
    """
    if len({len(files) for files, _ in sides}) > 1:
        (sources, _), (targets, _) = sides
        raise ValueError(
            "targets must have a file for each of the inputs, got "
            f"{len(targets)} for {len(sources)}"
        )
    output = Path(output)
    path = output / MANIFEST
    facts = {"format": FORMAT, **facts, "shard_lines": shard_lines}
    if path.exists():
        return _agreed(output, _read(path), facts, sides)
    others = output.is_dir() and any(x.name[0] != "." for x in output.iterdir())
    if others and not path.exists():  # checked again: another part may just have written it
        raise ValueError(f"{output} holds files and no {MANIFEST}: choose a new or empty folder")
    inputs = [[counted(x, fields, shard_lines) for x in files] for files, fields in sides]
    output.mkdir(parents=True, exist_ok=True)
    if path.exists():  # another part of the job has written it meanwhile
        return _agreed(output, _read(path), facts, sides)
    values = [[dataclasses.asdict(entry) for entry in side] for side in inputs]
    write_synced(path, json.dumps({**facts, "inputs": values}, indent=2).encode() + b"\n")
    return inputs


def _read(path):
    """Return the values of a manifest, with its inputs."""
    manifest = read_json(path)
    try:
        sides = [[_input(values) for values in side] for side in manifest["inputs"]]
        return {**manifest, "inputs": sides}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no manifest of a job: choose a new folder") from error


def _input(values):
    """Return an `Input` from its values in a manifest."""
    entry = Input(**{**values, "offsets": tuple(values["offsets"])})
    counts = (entry.size, entry.modified, entry.lines, *entry.offsets)
    if not all(type(x) is int and x >= 0 for x in counts):
        raise TypeError("sizes, times and places must be whole numbers")
    return entry


def _agreed(output, manifest, facts, sides):
    """Return a manifest's inputs with their present paths; refuse the manifest of another job."""
    differing = [
        f"{name} is {manifest.get(name)!r} there and {value!r} here"
        for name, value in facts.items()
        if manifest.get(name) != value
    ]
    stored = manifest["inputs"]
    present: list[list[Input]] = []
    counts = [len(side) for side in stored], [len(files) for files, _ in sides]
    if counts[0] != counts[1]:
        differing.append(f"the numbers of inputs are {counts[0]} there and {counts[1]} here")
    else:
        for side, (files, fields) in zip(stored, sides, strict=True):
            present.append([])
            for known, file in zip(side, files, strict=True):
                entry = dataclasses.replace(known, path=file)
                if tuple(entry.fields) != fields:
                    differing.append(f"fields are {entry.fields} there and {list(fields)} here")
                elif not _is_same(entry):
                    differing.append(f"{file} is not the input {known.path} that was read")
                present[-1].append(dataclasses.replace(entry, fields=fields))
    if differing:
        raise ValueError(
            f"{output} belongs to another job: {'; '.join(differing)}. Choose another folder, or "
            "the model, options and inputs of that job"
        )
    return present


def _is_same(entry: Input) -> bool:
    """Return whether the file at the path of an input is still the one that was read."""
    status = os.stat(entry.path)
    if status.st_size != entry.size:
        return False
    if status.st_mtime_ns == entry.modified:
        return True
    with open(entry.path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
