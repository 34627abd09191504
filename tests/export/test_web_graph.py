"""Graphs with 8-bit weights; tests/export/page runs whole ones."""

import json
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from keras_transformer.export import web_graph
from keras_transformer.system.elsewhere import INVALID

pytestmark = pytest.mark.once("works on graphs")


@pytest.fixture
def graph(rng, tmp_path):
    """An embedding and, as with tied embeddings, a product with its table, transposed."""
    table = numpy_helper.from_array(rng.normal(size=(1200, 64)).astype("float32"), "table")
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("Transpose", ["table"], ["projection"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "projection"], ["logits"]),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 1200])
    graph = helper.make_graph(nodes, "tied", [ids], [logits], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "tied.onnx")
    return tmp_path / "tied.onnx"


def run(path):
    return onnxruntime.InferenceSession(path).run(None, {"ids": np.arange(1200)})[0]


def test_a_transposed_table_is_quantized(graph):
    expected = run(graph)
    web_graph.quantize(graph)
    operations = [node.op_type for node in onnx.load(graph).graph.node]
    assert "MatMulInteger" in operations and "Transpose" not in operations
    assert "MatMul" not in operations
    assert np.abs(run(graph) - expected).max() < 0.05 * np.abs(expected).max()
    weights = [x for x in onnx.load(graph).graph.initializer if np.prod(x.dims) > 1200]
    assert {x.data_type for x in weights} == {TensorProto.INT8}


def test_a_weight_of_a_branch_is_quantized(rng, tmp_path):
    weight = numpy_helper.from_array(rng.normal(size=(64, 64)).astype("float32"), "weight")
    x, y = (helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 64]) for x in "xy")
    product = helper.make_node("MatMul", ["x", "weight"], ["product"])
    names = {"then_branch": "product", "else_branch": "copy"}
    nodes = {"product": product, "copy": helper.make_node("Identity", ["x"], ["copy"])}
    branches = {
        branch: helper.make_graph(
            [nodes[name]],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64])],
        )
        for branch, name in names.items()
    }
    condition = helper.make_tensor_value_info("condition", TensorProto.BOOL, [1])
    choice = helper.make_node("If", ["condition"], ["y"], **branches)
    graph = helper.make_graph([choice], "choice", [x, condition], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = tmp_path / "choice.onnx"
    onnx.save(model, path)
    inputs = {"x": rng.normal(size=(3, 64)).astype("float32"), "condition": np.array([True])}
    (expected,) = onnxruntime.InferenceSession(path).run(None, inputs)
    web_graph.quantize(path)
    (rounded,) = onnxruntime.InferenceSession(path).run(None, inputs)
    assert 0 < np.abs(rounded - expected).max() < 0.05 * np.abs(expected).max()


def test_a_model_that_a_page_cannot_hold(tmp_path, capsys):
    web_graph.require_size(5_000_000)
    with pytest.raises(ValueError, match="holds at most 375,000,000 parameters, the model has 6"):
        web_graph.require_size(600_000_000)
    task = json.dumps(dict(folder=str(tmp_path), path=str(tmp_path)))
    with mock.patch("sys.argv", ["program", task]), pytest.raises(SystemExit) as ended:
        web_graph.main()
    assert ended.value.code == INVALID
    assert "is not a saved translator" in capsys.readouterr().out
