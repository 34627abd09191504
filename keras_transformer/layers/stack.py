"""Base of the encoder's and decoder's stacks: blocks, shared positions, a last norm."""

from __future__ import annotations

import keras

from keras_transformer.layers.layer import Layer
from keras_transformer.layers.options import BlockOptions
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.rotary import Rotary


class Stack(Layer):
    """Base of `Encoder` and `Decoder`.

    A subclass makes its blocks by `_new_blocks`, and then what stands around them by `_surround`.

    Args:
        num_layers: number of blocks.
        num_heads, d_ff: of each block.
        relative_positions: number of buckets and largest distance of a `RelativeBias` that the
            self-attention of all blocks shares; None: none.
        rotary: arguments of a `Rotary` that the self-attention of all blocks shares; None: none.
        options: those of `BlockOptions`, and of a Keras layer.
    """

    def __init__(
        self, num_layers, num_heads, d_ff, relative_positions=None, rotary=None, **options
    ):
        own = BlockOptions.taken(options, num_heads=num_heads, d_ff=d_ff)
        super().__init__(**options)
        self.options, self.num_layers = own, num_layers
        self._positions = dict(relative_positions=relative_positions, rotary=rotary)

    def _new_blocks(self, block_class, count, **own):
        options = self.options.to_dict() | own
        return [
            block_class(**options, dtype=self.dtype_policy, name=f"block_{i}") for i in range(count)
        ]

    def _surround(self, bidirectional):
        """Makes the last norm and the positions that all blocks share."""
        options, policy = self.options, self.dtype_policy
        relative, rotary = self._positions["relative_positions"], self._positions["rotary"]
        self.norm = None
        if options.norm_first:
            self.norm = normalization(options.norm, options.epsilon, policy, "norm")
        self.rotary = Rotary(**rotary, dtype=policy, name="rotary") if rotary else None
        self.relative_bias = None
        if relative:
            self.relative_bias = RelativeBias(
                options.num_heads, *relative, bidirectional, dtype=policy, name="relative_bias"
            )

    def _build(self, blocks, *shapes):
        for block in blocks:
            block.build(*shapes)
        for layer in (self.norm, self.relative_bias, self.rotary):
            if layer:
                layer.build(shapes[0])
        self._width = shapes[0][-1]

    def _like(self, x):
        """The stack's output for inputs that fit it, or None."""
        fits = len(x.shape) == 3 and x.shape[-1] == self._width
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype) if fits else None

    def get_config(self):
        own = {"num_layers": self.num_layers, **self._positions}
        return {**super().get_config(), **own, **self.options.to_dict()}
