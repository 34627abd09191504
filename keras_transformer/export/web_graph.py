"""A model as two ONNX graphs with 8-bit weights; `export.web` runs this as a program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from keras_transformer.export import onnx_graph
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.translate.translator import Translator


def quantize(path: Path) -> None:
    """Replace the weights of a graph's products and embeddings by 8-bit numbers."""
    model = onnx.load(path)
    fold_transposes(model.graph)
    quantize_dynamic(model, path, per_channel=True, weight_type=QuantType.QInt8)


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
    used = {name for node in graph.node for name in node.input}
    for unused in [x for x in graph.initializer if x.name not in used]:
        graph.initializer.remove(unused)


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
