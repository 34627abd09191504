"""Base class of the encoder and decoder stacks: blocks and a final norm.

The stacks of the paper's model have equal blocks, without shared positions, layer drop or
rematerialization: `_biases_and_rotations` returns None for each block, and `_dropped` the block's
output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_transformer.backend import rematerialized
from keras_transformer.backend.private import layers_inside
from keras_transformer.config import require
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import direct_calls
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.shared_positions import SharedPositionsMixin


class Stack(SharedPositionsMixin):
    """Base class of `Encoder` and `Decoder`.

    A subclass makes its blocks with `_new_blocks`, then the rest with `_add_norm_and_positions`.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        relative_positions: Number of buckets and maximum distance of a `RelativeBias` that all
            blocks share in their self-attention; None: no such bias.
        relative_by_layer: Whether each block has a `RelativeBias` of its own (UMT5).
        rotary: Arguments of a `Rotary` that all blocks share in their self-attention; None: no
            rotary positions.
        layer_drop: Probability in [0, 1) that a block is skipped in a training step (LayerDrop, Fan
            et al. 2020, section 3.1). The stack then also works with some of its blocks removed.
        by_layer: Options that differ between blocks: those of block i are in entry i modulo the
            number of entries. The keys are fields of `BlockOptions` and "rotary".
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`.

    Raises:
        ValueError: If `layer_drop` is out of range, `by_layer` has an unknown key, relative
            positions come with a kernel, or `relative_by_layer` without relative positions.

    Attributes:
        remat: Whether training stores only the input of each block, and computes the block again
            in the backward pass (Chen et al. 2016); set by `models.enable_remat`, not saved.
    """

    remat: bool = False

    options_class = BlockOptions

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        relative_positions: tuple[int, int] | None = None,
        relative_by_layer: bool = False,
        rotary: dict[str, Any] | None = None,
        layer_drop: float = 0.0,
        by_layer: Sequence[Mapping[str, Any]] = (),
        **options: Any,
    ):
        stack_options = self.options_class.pop_from(options, num_heads=num_heads, d_ff=d_ff)
        super().__init__(**options)
        self.options, self.num_layers = stack_options, num_layers
        require(0 <= layer_drop < 1, "layer_drop", layer_drop, "in [0, 1)")
        self.layer_drop = layer_drop
        if layer_drop:
            self.seed_generator = keras.random.SeedGenerator()
        self.by_layer = tuple(dict(entry) for entry in by_layer)
        known = {field.name for field in dataclasses.fields(BlockOptions)} | {"rotary"}
        for entry in self.by_layer:
            if unknown := sorted(entry.keys() - known):
                raise ValueError(f"keys of by_layer must be of {sorted(known)}, got {unknown}")
        self._set_positions(relative_positions, relative_by_layer, rotary)

    def _block_overrides(self, i):
        """Return the options of block i that differ from those of the stack."""
        return self.by_layer[i % len(self.by_layer)] if self.by_layer else {}

    def _new_blocks(self, block_class, count, **block_settings):
        blocks = []
        for i in range(count):
            options = self.options.to_dict() | block_settings | self._block_overrides(i)
            options.pop("rotary", None)
            blocks.append(block_class(**options, dtype=self.dtype_policy, name=f"block_{i}"))
        return blocks

    def _add_norm_and_positions(self, bidirectional):
        self.norm = None
        if self.options.norm_first:
            kind, epsilon = self.options.norm, self.options.epsilon
            self.norm = normalization(kind, epsilon, self.dtype_policy, "norm")
        self._add_positions(bidirectional)

    def _build(self, blocks, *shapes):
        for block in blocks:
            block.build(*shapes)
        for layer in (self.norm, self.relative_bias, *self.own_biases, *self.rotaries):
            if layer:
                layer.build(shapes[0])
        self._width = shapes[0][-1]

    def _dropped(self, x, output):
        """Return a block's output; in training, with probability `layer_drop`, its input x."""
        if not self.layer_drop:
            return output
        is_kept = keras.random.uniform((), seed=self.seed_generator) >= self.layer_drop
        return keras.ops.where(is_kept, output, x)

    def _rematerialized(self, block, x, **options):
        """Return a block's output in training, without a cache; the backward pass recomputes it."""

        def output(arguments):
            # Through Keras's `__call__`: the backward pass runs outside of the stack's call.
            with direct_calls(None):
                outputs = block(arguments["x"], training=True, **arguments["options"])
            return outputs[0] if isinstance(outputs, tuple) else outputs

        layers = layers_inside(block)
        seeds = [layer.seed_generator.state for layer in layers if hasattr(layer, "seed_generator")]
        return rematerialized(output, {"x": x, "options": options}, seeds)

    def get_config(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"num_layers": self.num_layers, **self._positions}
        settings |= {"by_layer": self.by_layer, "layer_drop": self.layer_drop}
        return {**super().get_config(), **settings}
