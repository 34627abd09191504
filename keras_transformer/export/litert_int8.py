"""LiteRT files whose matrices have 8 bits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

STEPS = range(127, 95, -1)  # levels that the largest weight of a row may get
DEQUANTIZE, GATHER, PRODUCT = (
    getattr(schema.BuiltinOperator, name) for name in ("DEQUANTIZE", "GATHER", "FULLY_CONNECTED")
)


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


def with_weights(content: bytes) -> bytes:
    """Return a LiteRT file of float16 with its matrices as int8, which become floats when loaded.

    Tables of vectors stay float16: their rounding errors would reach every layer. The file already
    converts constants of fewer bits to float32 before it uses them.
    """
    file = _File(content)
    kept, scales = file.tables(), dict[int, Any]()  # by the number of a buffer
    for tensor in (x for graph in file.graphs for x in graph.tensors):
        is_matrix = tensor.type == schema.TensorType.FLOAT16 and len(tensor.shape) == 2
        if not is_matrix or not file.is_constant(tensor) or tensor.buffer in kept:
            continue
        if tensor.buffer not in scales:  # several tensors may share a buffer
            rounded, scales[tensor.buffer] = levels(file.values(tensor, "float16"))
            file.model.buffers[tensor.buffer].data = rounded.view("uint8").ravel()
        _become_int8(tensor, scales[tensor.buffer])
    return file.content({DEQUANTIZE: 5})  # with a scale for each row


def with_products(content: bytes) -> bytes:
    """Return a LiteRT file of float32 that multiplies by int8 matrices.

    When it runs, LiteRT rounds each row of the other factor to 8 bits. Tables of vectors become
    float16; a table that is also such a matrix is stored twice.
    """
    file = _File(content)
    for graph in file.graphs:
        operators = []
        for operator in graph.operators:
            operators.append(operator)
            kind = file.kind(operator)
            place = {PRODUCT: 1, GATHER: 0}.get(kind)
            if place is None or not file.is_constant(graph.tensors[operator.inputs[place]]):
                continue
            tensor = graph.tensors[operator.inputs[place]]
            if tensor.type != schema.TensorType.FLOAT32:
                continue
            tensor = copy.deepcopy(tensor)
            if kind == PRODUCT:
                rounded, scales = levels(file.values(tensor, "float32"))
                tensor.buffer = file.buffer_of(rounded)
                _become_int8(tensor, scales)
                operator.builtinOptions.asymmetricQuantizeInputs = True
            else:
                tensor.buffer = file.buffer_of(file.values(tensor, "float32").astype("float16"))
                tensor.type = schema.TensorType.FLOAT16
                operators.append(file.conversion(graph, operator))
            operator.inputs = _replaced(operator.inputs, place, _added(graph, tensor))
        graph.operators = operators
    file.drop_unused()
    return file.content({DEQUANTIZE: 3, PRODUCT: 12})  # of float16; with a scale for each row


class _File:
    """The graphs, operators and constants of a LiteRT file.

    Args:
        content: The file.
    """

    def __init__(self, content: bytes):
        self.model = flatbuffer_utils.convert_bytearray_to_object(content)
        self.graphs = self.model.subgraphs
        self._places: dict[bytes, int] = {}  # of added buffers, by content

    def content(self, versions: Mapping[int, int]) -> bytes:
        """Return the file, with at least these versions of some kinds of operators."""
        for code in self.model.operatorCodes:
            code.version = max(code.version, versions.get(_kind(code), 1))
        return bytes(flatbuffer_utils.convert_object_to_bytearray(self.model))

    def kind(self, operator: Any) -> int:
        """Return the kind of an operator, such as `GATHER`."""
        return _kind(self.model.operatorCodes[operator.opcodeIndex])

    def is_constant(self, tensor: Any) -> bool:
        """Return whether a tensor has values in the file."""
        return self.model.buffers[tensor.buffer].data is not None

    def values(self, tensor: Any, dtype: str) -> np.ndarray:
        """Return the values of a constant."""
        data = self.model.buffers[tensor.buffer].data
        return np.frombuffer(data.tobytes(), dtype).reshape(tensor.shape)

    def tables(self) -> set[int]:
        """Return the numbers of the buffers from which rows are gathered."""
        buffers = set()
        for graph in self.graphs:
            kinds = [(self.kind(x), x) for x in graph.operators]
            origins = {x.outputs[0]: x.inputs[0] for kind, x in kinds if kind == DEQUANTIZE}
            tables = [x.inputs[0] for kind, x in kinds if kind == GATHER]
            buffers |= {graph.tensors[origins.get(x, x)].buffer for x in tables}
        return buffers

    def buffer_of(self, values: np.ndarray) -> int:
        """Add values, unless they are there, and return the number of their buffer."""
        data = values.tobytes()
        if data not in self._places:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data, "uint8")
            self.model.buffers.append(buffer)
            self._places[data] = len(self.model.buffers) - 1
        return self._places[data]

    def conversion(self, graph: Any, operator: Any) -> Any:
        """Let an operator give float16; return the operator that converts its output to float32."""
        half = copy.deepcopy(graph.tensors[operator.outputs[0]])
        half.type, half.name = schema.TensorType.FLOAT16, half.name + b"/float16"
        conversion = schema.OperatorT()
        conversion.opcodeIndex = self._code(DEQUANTIZE)
        conversion.builtinOptionsType = schema.BuiltinOptions.DequantizeOptions
        conversion.builtinOptions = schema.DequantizeOptionsT()
        conversion.inputs = np.array([_added(graph, half)], "int32")
        conversion.outputs = operator.outputs
        operator.outputs = conversion.inputs
        return conversion

    def drop_unused(self) -> None:
        """Remove the values of constants that no operator takes."""
        for graph in self.graphs:
            used = {*graph.inputs, *graph.outputs}
            used |= {i for x in graph.operators for i in (*x.inputs, *x.outputs)}
            for i, tensor in enumerate(graph.tensors):
                tensor.buffer = tensor.buffer if i in used else 0
        kept = {x.buffer for graph in self.graphs for x in graph.tensors}
        for i, buffer in enumerate(self.model.buffers):
            buffer.data = buffer.data if i in kept or self._is_note(i) else None

    def _is_note(self, place):
        return any(x.buffer == place for x in self.model.metadata)

    def _code(self, kind):
        """Return the place of a kind of operator in the file's list, after adding it if needed."""
        codes = self.model.operatorCodes
        for place, code in enumerate(codes):
            if _kind(code) == kind:
                return place
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = kind
        codes.append(code)
        return len(codes) - 1


def _kind(code):
    return max(code.builtinCode, code.deprecatedBuiltinCode)


def _become_int8(tensor, scales):
    """Make a tensor one of int8 with a scale for each row."""
    tensor.type = schema.TensorType.INT8
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.scale = scales.tolist()
    tensor.quantization.zeroPoint = [0] * len(scales)
    tensor.quantization.quantizedDimension = 0  # rows


def _added(graph, tensor):
    """Add a tensor to a graph and return its number."""
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _replaced(numbers, place, number):
    numbers = np.array(numbers, "int32")
    numbers[place] = number
    return numbers
