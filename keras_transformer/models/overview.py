"""The rows of `model.summary()`: inputs, layers and output, not each operation of the graph."""

from __future__ import annotations

from typing import Any

import keras


class _Row(keras.layers.Layer):
    """A row of a summary: a layer and the shape of its output (of a stack, without its caches).

    Args:
        name: Name in the summary.
        shape: Shape of the output.
        layer: The layer, whose weights are counted; None: no weights.
        blocks: The blocks of a stack, which `expand_nested` shows.
    """

    def __init__(self, name: str, shape: Any, layer: Any = None, blocks: Any = ()):
        super().__init__(name=name)
        self.layer, self._shape = layer, tuple(shape)
        self.layers = [_row(block.name, shape, block) for block in blocks]

    def build(self, input_shape: Any) -> None:
        self.built = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._shape


class Overview(keras.Model):
    """A stand-in for a model whose `summary` has a row for each input, layer and output.

    Args:
        model: A functional model.
    """

    def __init__(self, model: Any):
        super().__init__(name=model.name)
        rows = [_row_of(layer) for layer in model.layers]
        if not keras.tree.is_nested(model.output) and rows[-1]._shape != model.output.shape:
            # The token table also makes the logits, but its row shows its first call.
            rows.append(_row("logits", model.output.shape))
        self.rows = rows
        self.compiled, self.optimizer = model.compiled, getattr(model, "optimizer", None)
        self.built = True


def _row_of(layer):
    output = keras.tree.flatten(layer.output)[0]
    return _row(layer.name, output.shape, layer, getattr(layer, "blocks", ()))


def _row(name, shape, layer=None, blocks=()):
    kind = "Output" if layer is None else type(layer).__name__
    row = type(kind, (_Row,), {})(name, shape, layer, blocks)
    row.build(row._shape)
    return row
