"""Warm-up requests, read with protobuf messages of the same fields."""

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("requests are written with TensorFlow", allow_module_level=True)
pytest.importorskip("tensorflow_text")

from keras_transformer.export.warmup import WARMUP_FILE, write_warmup
from tests.export.saved_model_client import inputs_of, requests

BATCHES = [["A dog.", "Größe 犬", ""], ["long " * 30], ["longer " * 5000]]


def test_requests_hold_the_texts(tmp_path):
    """The lengths of the messages take one, two and three bytes."""
    path = tmp_path / "1" / WARMUP_FILE
    write_warmup(path, "grammar", BATCHES)
    found = list(requests(str(path)))
    assert {x.model_spec.name for x in found} == {"grammar"}
    assert {x.model_spec.signature_name for x in found} == {"serving_default"}
    inputs = [inputs_of(x) for x in found]
    assert all(x.keys() == {"texts"} for x in inputs)
    assert [[text.decode() for text in x["texts"]] for x in inputs] == BATCHES
