"""Signatures as a LiteRT file, with weights of 32, 16 or 8 bits."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

STEPS = range(127, 95, -1)  # levels that the largest weight of a row may get
GATHER, DEQUANTIZE = (
    schema.BuiltinOperator.GATHER,
    schema.BuiltinOperator.DEQUANTIZE,
)


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
        if quantization != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization in ("float16", "int8-weights"):
            converter.target_spec.supported_types = [tf.float16]
        try:
            content = converter.convert()
        except Exception as error:  # of a class that is not public
            lacking = re.findall(r"(?:TF Select|Custom) ops: (.*)", str(error))
            reason = f"it has no operation {lacking[0]}" if lacking else f"{error}"
            raise ValueError(
                f"LiteRT cannot represent this {type(model).__name__}: {reason:.300}"
            ) from error
    path.write_bytes(_with_int8(content) if quantization == "int8-weights" else content)


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


def levels(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 levels of a matrix and the scale of each row, with the least squared error.

    The largest weight of a row gets one of the levels `STEPS`. The levels of a row that consists of
    multiples of some scale are found again.
    """
    matrix = matrix.astype("float32")
    largest = np.abs(matrix).max(axis=1)
    least, scales = np.full(len(matrix), np.inf), np.ones(len(matrix), "float32")
    for step in STEPS:
        scale = np.maximum(largest / step, 1e-10)
        error = np.square(np.rint(matrix / scale[:, None]) * scale[:, None] - matrix).sum(axis=1)
        scales = np.where(error < least, scale, scales)
        least = np.minimum(error, least)
    return np.rint(matrix / scales[:, None]).astype("int8"), scales


def _with_int8(content: bytes) -> bytes:
    """Return a LiteRT file with its float16 matrices as int8, with a scale for each row.

    Tables of vectors stay float16: their rounding errors would reach every layer. The file already
    converts constants of fewer bits to float32 before it uses them.
    """
    model = flatbuffer_utils.convert_bytearray_to_object(content)
    kept, scales = _tables(model), dict[int, Any]()  # by the number of a buffer
    for tensor in (x for graph in model.subgraphs for x in graph.tensors):
        buffer = model.buffers[tensor.buffer]
        is_matrix = tensor.type == schema.TensorType.FLOAT16 and len(tensor.shape) == 2
        if not is_matrix or buffer.data is None or tensor.buffer in kept:
            continue
        if tensor.buffer not in scales:  # several tensors may share a buffer
            matrix = np.frombuffer(buffer.data.tobytes(), "float16").reshape(tensor.shape)
            rounded, scales[tensor.buffer] = levels(matrix)
            buffer.data = rounded.view("uint8").ravel()
        tensor.type = schema.TensorType.INT8
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = scales[tensor.buffer].tolist()
        tensor.quantization.zeroPoint = [0] * len(scales[tensor.buffer])
        tensor.quantization.quantizedDimension = 0  # rows
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _tables(model):
    """Return the numbers of the buffers from which rows are gathered."""
    codes = [max(x.builtinCode, x.deprecatedBuiltinCode) for x in model.operatorCodes]
    buffers = set()
    for graph in model.subgraphs:
        kinds = [(codes[x.opcodeIndex], x) for x in graph.operators]
        origins = {x.outputs[0]: x.inputs[0] for kind, x in kinds if kind == DEQUANTIZE}
        tables = [x.inputs[0] for kind, x in kinds if kind == GATHER]
        buffers |= {graph.tensors[origins.get(x, x)].buffer for x in tables}
    return buffers
