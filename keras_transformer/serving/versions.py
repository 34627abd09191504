"""Versions of a translator that are served at the same time, with labels and shares of requests."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_transformer.config import require
from keras_transformer.saved.contents import is_saved

FILE = "versions.toml"


class Version(NamedTuple):
    """A version of a model: number, share of the requests that name no version, and labels."""

    number: str = "1"
    share: float = 1.0
    labels: tuple[str, ...] = ()


FIRST = Version()  # for a folder without versions


class Versions:
    """All served versions of a model; one of them answers each request.

    Args:
        models: The `Model` of each version.

    Raises:
        ValueError: If two versions have the same number, or differ in languages or default pair.
    """

    def __init__(self, models: Sequence[Any]):
        self.by_number = {model.version.number: model for model in models}
        self.labels = {label: model for model in models for label in model.version.labels}
        self.any = first = models[0]
        for other in models[1:]:
            languages = (other.pairs.keys(), other.default), (first.pairs.keys(), first.default)
            if languages[0] != languages[1]:
                raise ValueError(
                    f"versions of a model must have the same languages, got {sorted(other.pairs)} "
                    f"in {other.folder} and {sorted(first.pairs)} in {first.folder}"
                )
        if len(self.by_number) < len(models):
            raise ValueError(f"models must have different names, got {first.name!r} twice")

    def chosen(self) -> Any:
        """Return the model for a request without a version: drawn at random, weighted by shares."""
        models = [*self.by_number.values()]
        (model,) = random.choices(models, [model.version.share for model in models])
        return model


def versions_of(folder: Path) -> list[tuple[Path, Version]]:
    """Return the versions to serve from a folder: (path, version) of each.

    The folder of a model is its only version. Else versions are subfolders named by numbers, and
    `versions.toml` says which to serve:

    ```toml
    [labels]
    stable = 1
    canary = 2

    [shares]  # of requests that name no version
    1 = 0.95
    2 = 0.05
    ```

    Without shares, the highest of these versions gets all requests that name no version. Without
    the file, or if it is empty, only the highest version is served, as by TensorFlow Serving.

    Raises:
        ValueError: If the file is broken or names a version that is not there, or the shares do
            not sum to 1.
    """
    if is_saved(folder) or (folder / "saved_model.pb").is_file():
        return [(folder, FIRST)]
    # As in TensorFlow Serving, 001 is version 1.
    numbers = (x for x in folder.glob("[0-9]*") if x.name.isdecimal() and x.is_dir())
    folders = {str(int(x.name)): x for x in numbers}
    path = folder / FILE
    labels, shares = _read(path) if path.is_file() else ({}, {})
    named = [*labels.values(), *shares]
    for number in named:
        accepted = f"among the folders {', '.join(sorted(folders, key=int)) or '(none)'}"
        require(number in folders, f"a version in {path}", number, accepted)
    if not folders:
        return [(folder, FIRST)]
    if not named:
        return [(folders[last := max(folders, key=int)], Version(last))]
    shares = shares or {max(named, key=int): 1.0}
    require(abs(sum(shares.values()) - 1) < 1e-6, f"the sum of shares in {path}", shares, "1")
    return [
        (folders[x], Version(x, shares.get(x, 0.0), tuple(y for y in labels if labels[y] == x)))
        for x in sorted({*named}, key=int)
    ]


def _read(path):
    """Return the version of each label, and the share of each version."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    tables = [content.pop(name, {}) for name in ("labels", "shares")]
    accepted = "tables labels and shares only"
    require(not content and all(isinstance(x, dict) for x in tables), str(path), content, accepted)
    labels, shares = tables
    for label, number in labels.items():
        require(type(number) is int, f"label {label} in {path}", number, "the number of a version")
    for number, share in shares.items():
        is_share = type(share) in (int, float) and 0 <= share <= 1
        require(is_share, f"the share of {number} in {path}", share, "in [0, 1]")
    labels = {label: str(number) for label, number in labels.items()}
    return labels, {str(int(x)) if x.isdecimal() else x: share for x, share in shares.items()}
