"""Weights by path in files of format 1, where fused projections have another order of columns.

The order depends on the number of heads, which only a model knows, and a file is often read before
there is one, for instance to average it. Until then such arrays have names of their own, so that
they are never mistaken for arrays of the present format, and never mixed with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import keras
import numpy as np

from keras_transformer.layers.head_groups import FORMAT, fused_layers

METADATA = {"keras_transformer_format": str(FORMAT)}  # of a safetensors file
_OLD = " in format 1"
# LoRA's first matrix has the columns of its rank.
_FUSED = re.compile(r"(.*/)?(query_key_value|key_value)/(?!lora_kernel_a)\w+")


def format_of(metadata: Mapping[str, str] | None) -> int:
    """Return the format of a safetensors file from its metadata.

    Raises:
        ValueError: If a newer version wrote the file.
    """
    (name,) = METADATA
    found = int((metadata or {}).get(name, 1))
    if found > FORMAT:
        raise ValueError(f"{name} must be at most {FORMAT}, got {found}: a newer version wrote it")
    return found


def named_by_format(weights: Mapping[str, np.ndarray], found: int) -> dict[str, np.ndarray]:
    """Return weights of a file by path, those with another order of columns marked as such."""
    old = found == 1
    return {f"{x}{_OLD}" if old and _FUSED.fullmatch(x) else x: y for x, y in weights.items()}


def reordered(weights: Mapping[str, np.ndarray], model: keras.Model) -> dict[str, np.ndarray]:
    """Return weights by path, marked ones with their columns in the order that the model has."""
    layers, found = {layer.path: layer for layer in fused_layers(model)}, {}
    for name, value in weights.items():
        path = name.removesuffix(_OLD)
        layer = layers.get(path.rpartition("/")[0]) if path != name else None
        found[path] = value if layer is None else layer.reordered(value)
    return found
