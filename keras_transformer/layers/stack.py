"""Base class of the encoder and decoder stacks: blocks, shared positions, a final norm."""

from __future__ import annotations

from typing import Any

import keras

from keras_transformer.backend import rematerialized
from keras_transformer.backend.private import layers_inside
from keras_transformer.layers.layer import Layer, direct_calls
from keras_transformer.layers.options import BlockOptions
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.rotary import Rotary


class Stack(Layer):
    """Base class of `Encoder` and `Decoder`.

    A subclass makes its blocks with `_new_blocks`, then the layers around them with `_surround`.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        relative_positions: Number of buckets and maximum distance of a `RelativeBias` that all
            blocks share in their self-attention; None: no such bias.
        rotary: Arguments of a `Rotary` that all blocks share in their self-attention; None: no
            rotary positions.
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`.

    Attributes:
        remat: Whether training stores only the input of each block, and computes the block again
            in the backward pass (Chen et al. 2016); set by `models.enable_remat`, not saved.
    """

    remat: bool = False

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        relative_positions: tuple[int, int] | None = None,
        rotary: dict[str, Any] | None = None,
        **options: Any,
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
        """Make the final norm and the positions that all blocks share."""
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

    def _rematerialized(self, block, x, **options):
        """Return a block's output in training, without cache; its backward pass runs it again."""

        def output(arguments):
            # A complete call of Keras: the backward pass is outside of the stack's call.
            with direct_calls(None):
                found = block(arguments["x"], training=True, **arguments["options"])
            return found[0] if isinstance(found, tuple) else found

        layers = layers_inside(block)
        seeds = [layer.seed_generator.state for layer in layers if hasattr(layer, "seed_generator")]
        return rematerialized(output, {"x": x, "options": options}, seeds)

    def _like(self, x):
        """Return the spec of the stack's output, or None if the input x does not fit the stack."""
        fits = len(x.shape) == 3 and x.shape[-1] == self._width
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype) if fits else None

    def get_config(self) -> dict[str, Any]:
        own = {"num_layers": self.num_layers, **self._positions}
        return {**super().get_config(), **own, **self.options.to_dict()}
