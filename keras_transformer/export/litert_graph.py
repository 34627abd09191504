"""A model as two signatures of a LiteRT file; `export.litert` runs this as a program."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.backend import fixed_caches
from keras_transformer.models import EncoderDecoder
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.system.files import write_json
from keras_transformer.translate.translator import Translator

FACTS = "model.json"  # describes the model's signatures
KEYS = "key", "value"  # names of the tensors in an attention's cache

_function = functools.partial(tf.function, autograph=False)


def _named(kind: str, caches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tensors of all blocks' caches by names such as `<kind>_key_i`."""
    return {f"{kind}_{x}_{i}": y for i, cache in enumerate(caches) for x, y in cache.items()}


def functions(model: EncoderDecoder) -> dict[str, Callable]:
    """Return the functions `encode` and `decode` of a model, traced; see `export.litert`.

    Args:
        model: The model, on the TensorFlow backend.
    """
    config = model.config

    @_function
    def encode(source_ids):
        _, state, _ = model.prefill(source_ids, tf.fill([1, 1], config.bos_id), 1)
        caches = [cache["cross"] for cache in state["caches"]]
        return {"source_mask": state["source_mask"], **_named("cross", caches)}

    first_ids = tf.fill([1, 1], config.bos_id)
    _, state, _ = model.prefill(tf.fill([1, 2], config.bos_id), first_ids, 1)
    parts = list(state["caches"][0]["self"])

    @_function
    def decode(token_ids, position, source_mask, **tensors):
        caches = [
            {
                "cross": {x: tensors[f"cross_{x}_{i}"] for x in KEYS},
                "self": {x: tensors[f"past_{x}_{i}"] for x in parts},
            }
            for i in range(config.num_decoder_layers)
        ]
        logits, new = model.step(
            token_ids, {"source_mask": source_mask, "caches": caches}, position
        )
        present = _named("present", [cache["self"] for cache in new["caches"]])
        return {"logits": logits[:, 0], **present}

    def spec(tensor, *free):
        shape = [None if axis in free else size for axis, size in enumerate(tensor.shape)]
        return tf.TensorSpec(shape, tensor.dtype)

    cross = _named("cross", [cache["cross"] for cache in state["caches"]])
    past = _named("past", [cache["self"] for cache in state["caches"]])
    specs = {name: spec(x, 0, 2) for name, x in cross.items()}
    specs |= {name: spec(x, 0, *([2] if len(x.shape) == 4 else [])) for name, x in past.items()}
    with fixed_caches():
        traced = decode.get_concrete_function(
            token_ids=tf.TensorSpec([None, 1], tf.int32),
            position=tf.TensorSpec([], tf.int32),
            source_mask=spec(state["source_mask"], 0, 3),
            **specs,
        )
        return {
            "encode": encode.get_concrete_function(source_ids=tf.TensorSpec([1, None], tf.int32)),
            "decode": traced,
        }


def described(signatures: dict[str, Any]) -> dict[str, Any]:
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


def write(
    model: EncoderDecoder, path: Path, signatures: dict[str, Callable], quantization: str
) -> None:
    """Write a LiteRT file.

    Args:
        model: The model.
        path: The file.
        signatures: The `functions` of the model.
        quantization: See `export.litert`.
    """
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    module.functions = signatures
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, [*signatures])
        if quantization != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization in ("float16", "int8-weights"):
            converter.target_spec.supported_types = [tf.float16]
        content = converter.convert()
    path.write_bytes(_with_int8(content) if quantization == "int8-weights" else content)


def _with_int8(content: bytes) -> bytes:
    """Return a LiteRT file with its float16 matrices as int8, with a scale for each row.

    The file already converts such constants to float32 before it uses them.
    """
    model = flatbuffer_utils.convert_bytearray_to_object(content)
    scales: dict[int, Any] = {}  # by the number of a buffer, which several tensors share
    for tensor in (x for graph in model.subgraphs for x in graph.tensors):
        buffer = model.buffers[tensor.buffer]
        if (
            tensor.type != schema.TensorType.FLOAT16
            or len(tensor.shape) != 2
            or buffer.data is None
        ):
            continue
        if tensor.buffer not in scales:
            matrix = np.frombuffer(buffer.data.tobytes(), "float16").reshape(tensor.shape)
            scale = np.maximum(np.abs(matrix.astype("float32")).max(axis=1) / 127, 1e-10)
            buffer.data = np.rint(matrix / scale[:, None]).astype("int8").view("uint8").ravel()
            scales[tensor.buffer] = scale
        tensor.type = schema.TensorType.INT8
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = scales[tensor.buffer].tolist()
        tensor.quantization.zeroPoint = [0] * len(scales[tensor.buffer])
        tensor.quantization.quantizedDimension = 0  # rows
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def main() -> None:
    """Write the LiteRT file that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        model = Translator.load(task["folder"], "float32").model
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    signatures = functions(model)
    folder = Path(task["path"])
    write(model, folder / "model.tflite", signatures, task["quantization"])
    facts = {"model": type(model).__name__, "quantization": task["quantization"]}
    write_json(folder / FACTS, facts | {"signatures": described(signatures)})


if __name__ == "__main__":
    main()
