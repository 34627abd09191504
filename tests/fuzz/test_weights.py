"""Foreign weights: safetensors with hostile headers, and `.keras` archives with code in them."""

import base64
import io
import json
import marshal
import struct
import zipfile

import keras
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.config import TransformerConfig
from keras_transformer.hub.tensors import Checkpoint
from keras_transformer.models import Transformer
from keras_transformer.saved.model_files import _whole, count_parameters
from keras_transformer.weights.weight_files import read_weights
from tests.fuzz.mutations import damaged, json_files
from tests.fuzz.outcome import fuzz, outcome

HEADER = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "../b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
}
LENGTHS = [0, 1, 2**31, 2**63, 2**64 - 1]


def tensors(header, length=None):
    size = len(header) if length is None else length
    return struct.pack("<Q", size) + header + bytes(range(32))


headers = st.one_of(json_files(HEADER), damaged(json.dumps(HEADER).encode()))
files = st.one_of(
    headers.map(tensors),
    st.builds(tensors, headers, st.sampled_from(LENGTHS)),
    damaged(tensors(json.dumps(HEADER).encode())),
)


@pytest.mark.once("NumPy alone")
@fuzz(150)
@given(files)
@example(tensors(json.dumps({"a": {"dtype": "F32", "shape": [2**62, 4],
                                   "data_offsets": [0, 32]}}).encode()))  # fmt: skip
def test_safetensors(room, content):
    (room / "model.safetensors").write_bytes(content)
    outcome("safetensors", read_weights, room / "model.safetensors")

    def read():
        checkpoint = Checkpoint(room)
        return {name: checkpoint.read(name) for name in checkpoint.names()}

    outcome("safetensors", read)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The files of a small `.keras` archive, by name."""
    path = tmp_path_factory.mktemp("whole") / "model.keras"
    sizes = dict(d_model=4, d_ff=4, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    Transformer(TransformerConfig(8, 8, **sizes)).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def lambda_layer(marker):
    """A model whose layer holds code that would write a file."""
    code = compile(f"lambda x: open({str(marker)!r}, 'w')", "x", "eval").co_consts[0]
    text = base64.b64encode(marshal.dumps(code)).decode()
    function = {"class_name": "__lambda__", "config": {"code": text, "defaults": None,
                                                       "closure": None}}  # fmt: skip
    layer = {"module": "keras.layers", "class_name": "Lambda", "registered_name": None,
             "config": {"name": "x", "function": function}}  # fmt: skip
    return {"module": "keras", "class_name": "Sequential", "registered_name": "Sequential",
            "config": {"name": "s", "layers": [layer]},
            "build_config": {"input_shape": [1, 2]}}  # fmt: skip


def call(marker):
    """A function of the standard library in the place of a class."""
    return {"module": "os", "class_name": "system", "registered_name": None,
            "config": f"touch {marker}"}  # fmt: skip


@pytest.mark.once("files: each backend reads the same")
@fuzz(12)
@given(st.data())
def test_archives(room, members, data):
    marker, path = room / "marker", room / "model.keras"
    config = json.loads(members["config.json"])
    kind = data.draw(st.sampled_from(("config", "config", "lambda", "call", "weights", "bytes")))
    found = dict(members)
    if kind == "config":
        found["config.json"] = data.draw(json_files(config))
    elif kind == "weights":
        found["model.weights.h5"] = data.draw(damaged(members["model.weights.h5"]))
    elif kind != "bytes":
        hostile = lambda_layer(marker) if kind == "lambda" else call(marker)
        inside = data.draw(st.sampled_from(("whole", "dtype", "compile_config", "build_config")))
        target = config["config"] if inside == "dtype" else config
        target[inside] = hostile
        found["config.json"] = json.dumps(hostile if inside == "whole" else config).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in found.items():
            archive.writestr(data.draw(st.sampled_from((name, name, name, f"../{name}"))), content)
    content = out.getvalue()
    path.write_bytes(data.draw(damaged(content)) if kind == "bytes" else content)
    model = outcome(".keras archives", _whole, path)
    assert model is None or all(np.asarray(x.shape).size < 5 for x in model.weights)
    outcome(".keras archives", count_parameters, room)
    assert not marker.exists()
    keras.backend.clear_session(free_memory=False)  # a collection would take longer than all else
