"""Signatures as a LiteRT file, with weights of 32, 16 or 8 bits."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.export.litert_int8 import with_products, with_weights

EDITS = {"int8": with_products, "int8-weights": with_weights}


def write(model: keras.Model, path: Path, signatures: Mapping[str, Any], quantization: str) -> None:
    """Write a LiteRT file.

    Args:
        model: The model.
        path: The file.
        signatures: Traced functions of the model, by name.
        quantization: See `export.litert`.

    Raises:
        ValueError: If LiteRT cannot represent the model.
    """
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    module.functions = dict(signatures)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, module.functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, [*signatures])
        if quantization in ("float16", "int8-weights"):
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.target_spec.supported_types = [tf.float16]
        try:
            content = converter.convert()
        except Exception as error:  # of a class that is not public
            lacking = re.findall(r"(?:TF Select|Custom) ops: (.*)", str(error))
            reason = f"it has no operation {lacking[0]}" if lacking else f"{error}"
            raise ValueError(
                f"LiteRT cannot represent this {type(model).__name__}: {reason:.300}"
            ) from error
    path.write_bytes(EDITS[quantization](content) if quantization in EDITS else content)


def described(signatures: Mapping[str, Any]) -> dict[str, Any]:
    """Return names, dtypes and shapes of the inputs and outputs of signatures, as plain values."""

    def entries(specs):
        return {x: {"dtype": y.dtype.name, "shape": y.shape.as_list()} for x, y in specs.items()}

    results = {}
    for name, traced in signatures.items():
        by_place, by_name = traced.structured_input_signature
        inputs = {x.name: x for x in by_place} | by_name
        outputs = traced.structured_outputs
        results[name] = {"inputs": entries(inputs), "outputs": entries(outputs)}
    return results
