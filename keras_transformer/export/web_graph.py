"""A model as two ONNX graphs with 8-bit weights; `export.web` runs this as a program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from keras_transformer.export import onnx_graph
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.translate.translator import Translator

SMALL = 1 << 16  # numbers of a table that is not packed


def quantize(path: Path) -> None:
    """Replace the weights of a graph's products and embeddings by 8-bit numbers."""
    model = onnx.load(path)
    fold_transposes(model.graph)
    pack_tables(model.graph)
    quantize_dynamic(
        model,
        path,
        ["MatMul"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"EnableSubgraph": True},
    )


def fold_transposes(graph: Any) -> None:
    """Replace transposed weights by weights: only a product with a weight itself is quantized.

    The output projection of a model with tied embeddings is a transposed table, for example.
    """
    weights = {x.name: x for x in graph.initializer}
    for node in [x for x in graph.node if x.op_type == "Transpose" and x.input[0] in weights]:
        array = numpy_helper.to_array(weights[node.input[0]])
        axes = [axis for x in node.attribute if x.name == "perm" for axis in x.ints]
        transposed = numpy_helper.from_array(array.transpose(axes or None).copy(), node.output[0])
        graph.initializer.append(transposed)
        graph.node.remove(node)
    _remove_unused(graph)


def pack_tables(graph: Any) -> None:
    """Replace the tables of embeddings by 8-bit numbers, and a factor for each row.

    onnxruntime's own quantization has one factor for a whole table. Small tables, such as that of
    the positions, stay as they are.
    """
    weights = {x.name: x for x in graph.initializer if x.data_type == TensorProto.FLOAT}
    tables = {name for name, x in weights.items() if len(x.dims) == 2 and np.prod(x.dims) > SMALL}
    for place, node in [*enumerate(graph.node)][::-1]:
        if node.op_type != "Gather" or node.input[0] not in tables:
            continue
        (name, ids), (rows,) = node.input, node.output
        table = numpy_helper.to_array(weights[name])
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True) / 127, 1e-12)
        numbers, factors, floats = (f"{rows}_{x}" for x in ("numbers", "factors", "floats"))
        packed = {numbers: np.rint(table / scales).astype("int8"), factors: scales}
        for part, array in packed.items():
            graph.initializer.append(numpy_helper.from_array(array, f"{part}_table"))
        steps = [
            helper.make_node("Gather", [f"{numbers}_table", ids], [numbers]),
            helper.make_node("Gather", [f"{factors}_table", ids], [factors]),
            helper.make_node("Cast", [numbers], [floats], to=TensorProto.FLOAT),
            helper.make_node("Mul", [floats, factors], [rows]),
        ]
        del graph.node[place]
        for step in reversed(steps):
            graph.node.insert(place, step)
    _remove_unused(graph)


def _remove_unused(graph):
    used = {*_used(graph)}
    for unused in [x for x in graph.initializer if x.name not in used]:
        graph.initializer.remove(unused)


def _used(graph):
    """Yield the names that the nodes of a graph use, also those in the branches of an If."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            yield from _used(attribute.g)


def main() -> None:
    """Write the ONNX graphs that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], "float32")
        require_size(translator.model.count_params())
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    onnx_graph.write(translator.model, Path(task["path"]), attention=True)
    for name in ("encoder", "decoder"):
        quantize(Path(task["path"], f"{name}.onnx"))


def require_size(parameters: int) -> None:
    """Raise ValueError if a model has more parameters than a page can hold."""
    most = onnx_graph.LARGEST // 4
    if parameters > most:
        raise ValueError(
            f"a page holds at most {most:,} parameters, the model has {parameters:,}: serve it "
            "with keras-transformer serve"
        )


if __name__ == "__main__":
    main()
