"""Warmup requests, which TensorFlow Serving runs on a SavedModel before it answers other requests.

The file is a TFRecord of `tensorflow.serving.PredictionLog` messages (apis/prediction_log.proto,
predict.proto and model.proto of TensorFlow Serving). This module encodes their nested fields
itself, so that the package tensorflow-serving-api is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import tensorflow as tf

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"


def write_warmup(path: Path, model_name: str, batches: Iterable[Sequence[str]]) -> None:
    """Write a file of requests: one to `serving_default` for each batch of texts.

    Args:
        path: The file to write, `WARMUP_FILE` in the folder of the version.
        model_name: The name under which the model is served.
        batches: The texts of each request.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for texts in batches:
            writer.write(prediction_log(model_name, "serving_default", texts))


def prediction_log(model_name: str, signature_name: str, texts: Sequence[str]) -> bytes:
    """Return a serialized PredictionLog with one predict request, whose input is `texts`."""
    model_spec = _field(1, model_name.encode()) + _field(3, signature_name.encode())
    tensor = tf.make_tensor_proto(texts, dtype=tf.string).SerializeToString()
    named_input = _field(1, b"texts") + _field(2, tensor)
    request = _field(1, model_spec) + _field(2, named_input)
    return _field(6, _field(1, request))  # predict_log.request


def _field(number: int, content: bytes) -> bytes:
    """Return a serialized field of a protocol buffer: tag, length as varint, content."""
    length, varint = len(content), b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([length]) + content
