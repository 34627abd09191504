"""The encoder: N blocks of self-attention and feed-forward (section 3.1, Figure 1 left)."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.block_options import (
    AddNormOptions,
    AttentionOptions,
    BlockOptions,
)
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.mixture_of_experts import new_feed_forward
from keras_transformer.layers.output_specs import EncoderSpecMixin
from keras_transformer.layers.residual import AddNorm
from keras_transformer.layers.stack import Stack


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderBlock(Layer):
    """An encoder block: self-attention and feed-forward, each with residual connection and norm.

    Args:
        num_heads: Number of attention heads.
        d_ff: Width inside the feed-forward.
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, D).
        attention_mask: Boolean, True = attend, broadcasts to (B, N, T, T).
        bias: Attention bias, broadcasts to (B, N, T, T).
        rotation: Output of `Rotary` for the positions of `x`.

    Returns:
        (B, T, D).
    """

    mask_sources = MappingProxyType({"attention_mask": "x"})
    attention_class: type[MultiHeadAttention] = MultiHeadAttention

    options_class = BlockOptions

    def __init__(self, num_heads: int, d_ff: int, **options: Any):
        block_options = self.options_class.pop_from(options, num_heads=num_heads, d_ff=d_ff)
        super().__init__(**options)
        self.options, policy = block_options, self.dtype_policy
        add_norm = block_options.part(AddNormOptions)
        self.attention = self.attention_class(
            **block_options.part(AttentionOptions), dtype=policy, name="attention"
        )
        of_attention = block_options.of_attention_norm()
        self.attention_norm = AddNorm(**of_attention, dtype=policy, name="attention_norm")
        self.feed_forward = new_feed_forward(block_options, policy, name="feed_forward")
        self.feed_forward_norm = AddNorm(**add_norm, dtype=policy, name="feed_forward_norm")

    def build(self, x_shape: Any) -> None:
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(x_shape)

    def call(
        self,
        x: Any,
        attention_mask: Any = None,
        bias: Any = None,
        rotation: tuple[Any, Any] | None = None,
        training: bool = False,
    ) -> Any:
        attended, _ = self.attention(
            self.attention_norm(x), attention_mask=attention_mask, bias=bias, rotation=rotation
        )
        x = self.attention_norm(x, attended, training=training)
        transformed = self.feed_forward(self.feed_forward_norm(x), training=training)
        return self.feed_forward_norm(x, transformed, training=training)


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(EncoderSpecMixin, Stack):
    """A stack of `EncoderBlock`s, with a final norm if the blocks are pre-norm.

    Args:
        num_layers: Number of blocks that run one after the other.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        shared: Whether one block is run `num_layers` times (Lan et al. 2020, section 3.1); or the
            number of distinct blocks, each run about `num_layers / shared` times in a row. False:
            each block runs once.
        options: Other arguments of `Stack`.

    Raises:
        ValueError: If `shared` is below 0 or above `num_layers`, or is set together with
            `by_layer`.

    Call arguments:
        x: (B, T, D).
        attention_mask: Boolean, True = attend, broadcasts to (B, N, T, T); None: attend to all.
        positions: (T,) or (B, T) token positions for `rotary`; None: 0, 1, 2 ...

    Returns:
        (B, T, D), the memory that a decoder attends to.
    """

    mask_sources = EncoderBlock.mask_sources
    block_class: type[EncoderBlock] = EncoderBlock

    def __init__(
        self, num_layers: int, num_heads: int, d_ff: int, shared: bool | int = False, **options: Any
    ):
        super().__init__(num_layers, num_heads, d_ff, **options)
        require(not (shared and self.by_layer), "by_layer", self.by_layer, "() with shared=True")
        accepted = f"True, False or a number of blocks up to {num_layers}"
        require(0 <= shared <= num_layers, "shared", shared, accepted)
        self.shared = shared
        self.distinct_blocks = self._new_blocks(self.block_class, int(shared) or num_layers)
        self._add_norm_and_positions(bidirectional=True)

    def build(self, x_shape: Any) -> None:
        self._build(self.distinct_blocks, x_shape)

    @property
    def blocks(self) -> list[EncoderBlock]:
        """The block of each layer; with `shared`, several layers have the same block."""
        # A float: as in ALBERT's code, the shares differ if the division leaves a remainder.
        share = self.num_layers / len(self.distinct_blocks)
        return [self.distinct_blocks[int(i / share)] for i in range(self.num_layers)]

    def call(
        self,
        x: Any,
        attention_mask: Any = None,
        positions: Any = None,
        training: bool = False,
    ) -> Any:
        for state in self.states(x, attention_mask, positions, training):
            x = state
        return self.norm(x) if self.norm else x

    def states(
        self,
        x: Any,
        attention_mask: Any = None,
        positions: Any = None,
        training: bool = False,
    ) -> Iterator[Any]:
        """Yield x, then the output (B, T, D) of each block; the arguments are those of `call`."""
        yield x
        # All None in the paper's model.
        biases_and_rotations = self._biases_and_rotations(x, positions)
        for block, bias, rotation in zip(self.blocks, *biases_and_rotations, strict=True):
            options = dict(attention_mask=attention_mask, bias=bias, rotation=rotation)
            if self.remat and training:
                output = self._rematerialized(block, x, **options)
            else:
                output = block(x, training=training, **options)
            x = self._dropped(x, output) if training else output
            yield x

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "shared": self.shared}
