"""The models in `data/`, which `make.py` trained with Marian, and its translations of `SOURCES`."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = Path(__file__).with_name("data")
NAMES = ("post_norm", "pre_norm", "tied_all", "untied", "swish", "ssru")
needs_marian = pytest.mark.skipif(
    importlib.util.find_spec("pymarian") is None, reason='needs pymarian, of the extra "marian"'
)
SOURCES: list[str] = json.loads((DATA / "sources.json").read_text("utf-8"))


def facts(name: str) -> tuple[list[str], list[list[dict[str, Any]]]]:
    """Return Marian's greedy translations, and its n-best list of each source."""
    stored = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    lists: list[list[dict[str, Any]]] = [[] for _ in SOURCES]
    for row in stored["nbest"]:
        lists[row["line"]].append(row)
    return stored["greedy"], lists


def copied(name: str, folder: Path) -> Path:
    """Copy a model with its vocabularies and options to a folder; return the model's path."""
    folder.mkdir(exist_ok=True)
    for path in (*DATA.glob(f"{name}.npz*"), *DATA.glob("*.spm"), *DATA.glob("??.yml")):
        shutil.copy(path, folder)
    return folder / f"{name}.npz"


def documented(folder: Path) -> None:
    """Write the model of docs/migrating.md into a folder: `model.npz` with a `decoder.yml`."""
    copied("tied_all", folder).rename(folder / "model.npz")
    (folder / "tied_all.npz.decoder.yml").unlink()
    options = dict(models=["model.npz"], vocabs=["joint.spm"] * 2, normalize=0.6)
    options |= {"relative-paths": True, "beam-size": 4}
    (folder / "decoder.yml").write_text(json.dumps(options))


def changed(path: Path, options: str = "", **arrays: Any) -> None:
    """Change a model file: add lines to its options, and replace arrays, or leave them out (None).

    Later options replace those of the same name.
    """
    with np.load(path) as file:
        values = dict(file)
    text = values["special:model.yml"].tobytes().rstrip(b"\0") + b"\n" + options.encode()
    values["special:model.yml"] = np.frombuffer(text + b"\0", "int8")
    values |= arrays
    np.savez(path, **{name: x for name, x in values.items() if x is not None})
