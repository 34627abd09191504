"""The decoder: causal self-attention, cross-attention, feed-forward (3.1, Figure 1 right)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import keras

from keras_transformer.config import RECURRENCES, require
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.block_options import (
    AddNormOptions,
    AttentionOptions,
    BlockOptions,
)
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.mixture_of_experts import new_feed_forward
from keras_transformer.layers.output_specs import DecoderSpecMixin
from keras_transformer.layers.recording import aligning_layer
from keras_transformer.layers.residual import AddNorm
from keras_transformer.layers.ssru import SSRU
from keras_transformer.layers.stack import Stack


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderBlock(Layer):
    """A decoder block: causal self-attention, cross-attention, feed-forward, each with its norm.

    Args:
        num_heads: Number of attention heads.
        d_ff: Width inside the feed-forward.
        cross_attention: Whether there is cross-attention; False for a decoder-only model.
        recurrence: "ssru" for an `SSRU` in place of the self-attention; it needs no positions, so
            `bias` and `rotation` are ignored. None: self-attention.
        causal: Whether later positions are hidden; False: only in a full pass, without a cache.
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`. `window` and
            `global_tokens` apply to the self-attention only.

    Call arguments:
        x: (B, T, D).
        memory: (B, S, D), the encoder's output; not needed with a `cache`.
        attention_mask: Boolean, True = attend, broadcasts to (B, N, T, T): which positions of `x`
            may be seen, as far as the causal mask allows; None: the causal mask alone. With a
            cache it covers the cache's places, (B, N, T, S), and replaces the causal mask.
        cross_attention_mask: Boolean, True = attend, broadcasts to (B, N, T, S): which memory
            positions may be seen; None: all.
        cache: The cache that an earlier call returned, with room for `x` in its self-attention
            part; None: no cache.
        index: Place of the first token of `x` in the cache, see `MultiHeadAttention`.
        bias: Bias of the self-attention, broadcasts to (B, N, T, T), or (B, N, T, S) with a cache.
        rotation: Output of `Rotary` for the positions of `x`, for the self-attention.

    Returns:
        The output (B, T, D) and the cache
        `{"self": {"key", "value"}, "cross": {"key", "value"}}`; "cross" only with
        cross-attention. With a recurrence, "self" is the cache of the `SSRU`.

    Raises:
        ValueError: If `recurrence` is unknown or comes with a `window`, or `BlockOptions` refuses
            an option.
    """

    mask_sources = MappingProxyType({"attention_mask": "x", "cross_attention_mask": "memory"})

    options_class = BlockOptions

    def __init__(
        self,
        num_heads: int,
        d_ff: int,
        cross_attention: bool = True,
        recurrence: str | None = None,
        causal: bool = True,
        **options: Any,
    ):
        block_options = self.options_class.pop_from(options, num_heads=num_heads, d_ff=d_ff)
        super().__init__(**options)
        self.options, policy = block_options, self.dtype_policy
        attention = block_options.part(AttentionOptions)
        add_norm = block_options.part(AddNormOptions)
        self.self_attention: Any = None
        self.causal = causal
        self.recurrence = self._new_recurrence(recurrence)
        if not self.recurrence:
            self.self_attention = MultiHeadAttention(
                **attention, causal=causal, dtype=policy, name="self_attention"
            )
        name = "recurrence_norm" if recurrence else "self_attention_norm"
        of_attention = block_options.of_attention_norm()
        self.self_attention_norm = AddNorm(**of_attention, dtype=policy, name=name)
        self.cross_attention = None
        if cross_attention:
            attention |= dict(window=None, global_tokens=0)
            self.cross_attention = MultiHeadAttention(
                **attention, cross_attention=True, dtype=policy, name="cross_attention"
            )
            self.cross_attention_norm = AddNorm(
                **add_norm, dtype=policy, name="cross_attention_norm"
            )
        self.feed_forward = new_feed_forward(block_options, policy, name="feed_forward")
        self.feed_forward_norm = AddNorm(**add_norm, dtype=policy, name="feed_forward_norm")

    def _new_recurrence(self, kind):
        """Return the layer in place of the self-attention, or None."""
        if kind is None:
            return None
        require(kind in RECURRENCES, "recurrence", kind, f"one of {RECURRENCES} or None")
        window = self.options.window
        require(window is None, "window", window, f"None with recurrence={kind!r}")
        return SSRU(dtype=self.dtype_policy, name="recurrence")

    def build(self, x_shape: Any, memory_shape: Any = None) -> None:
        (self.recurrence or self.self_attention).build(x_shape)
        self.self_attention_norm.build(x_shape)
        if self.cross_attention:
            self.cross_attention.build(x_shape, memory_shape)
            self.cross_attention_norm.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_norm.build(x_shape)

    def call(
        self,
        x: Any,
        memory: Any = None,
        attention_mask: Any = None,
        cross_attention_mask: Any = None,
        cache: dict[str, Any] | None = None,
        index: Any = None,
        bias: Any = None,
        rotation: tuple[Any, Any] | None = None,
        training: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        cache = cache or {"self": None, "cross": None}
        options = dict(attention_mask=attention_mask, cache=cache["self"])
        if self.recurrence:
            attended, self_cache = self.recurrence(self.self_attention_norm(x), **options)
        else:
            options |= dict(bias=bias, rotation=rotation, index=index)
            attended, self_cache = self.self_attention(self.self_attention_norm(x), **options)
        x = self.self_attention_norm(x, attended, training=training)
        new_cache = {"self": self_cache}
        if self.cross_attention:
            attended, new_cache["cross"] = self.cross_attention(
                self.cross_attention_norm(x),
                memory=memory,
                attention_mask=cross_attention_mask,
                cache=cache["cross"],
            )
            x = self.cross_attention_norm(x, attended, training=training)
        transformed = self.feed_forward(self.feed_forward_norm(x), training=training)
        return self.feed_forward_norm(x, transformed, training=training), new_cache

    def get_config(self) -> dict[str, Any]:
        settings = {
            "cross_attention": self.cross_attention is not None,
            "recurrence": "ssru" if self.recurrence else None,
            "causal": self.causal,
        }
        return {**super().get_config(), **settings}


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(DecoderSpecMixin, Stack):
    """A stack of `DecoderBlock`s, with a final norm if the blocks are pre-norm.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        cross_attention, recurrence, causal: See `DecoderBlock`; with a recurrence,
            `relative_positions` and `rotary` must be None.
        options: Other arguments of `Stack`.

    Call arguments:
        x: (B, T, D).
        memory, cross_attention_mask: See `DecoderBlock`.
        attention_mask: See `DecoderBlock`; or a list with one mask for each block, if their caches
            differ in size.
        cache: The cache that an earlier call returned, with room for `x`; None: no cache.
        index: Position of the first token of `x` when there is a cache.
        beam_size: K, the number of beams. In `x` and the cache, the tokens of all beams at one
            position are adjacent.
        positions: (B, T) token positions for `rotary`; None: `index`, `index` + 1 ...
        lengths: (1 or B, 1 or T) lengths of the tokens' sequences, see `Rotary`.

    Returns:
        The output (B, T, D) and the cache, a list with one entry per block; in training with
        `remat`, the entries are empty.
    """

    mask_sources = DecoderBlock.mask_sources

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        cross_attention: bool = True,
        recurrence: str | None = None,
        causal: bool = True,
        **options: Any,
    ):
        super().__init__(num_layers, num_heads, d_ff, **options)
        self.cross_attention, self.recurrence, self.causal = cross_attention, recurrence, causal
        settings = dict(cross_attention=cross_attention, recurrence=recurrence, causal=causal)
        self.blocks = self._new_blocks(DecoderBlock, num_layers, **settings)
        self._add_norm_and_positions(bidirectional=not causal)
        has_positions = self.rotaries or self.has_relative_bias
        accepted = "None with relative_positions or rotary"
        require(not (recurrence and has_positions), "recurrence", recurrence, accepted)

    def build(self, x_shape: Any, memory_shape: Any = None) -> None:
        self._build(self.blocks, x_shape, memory_shape)

    @property
    def aligning(self) -> MultiHeadAttention:
        """The cross-attention that aligns words best, see `aligning_layer`."""
        return self.blocks[aligning_layer(self.num_layers)].cross_attention

    def call(
        self,
        x: Any,
        memory: Any = None,
        attention_mask: Any = None,
        cross_attention_mask: Any = None,
        cache: Any = None,
        index: Any = 0,
        beam_size: int = 1,
        positions: Any = None,
        lengths: Any = None,
        training: bool = False,
    ) -> tuple[Any, list[dict[str, Any]]]:
        shared = dict(memory=memory, cross_attention_mask=cross_attention_mask)
        masks = attention_mask
        if not isinstance(masks, list):
            masks = [attention_mask] * self.num_layers
        old_caches = cache or [None] * self.num_layers
        biases_and_rotations = self._biases_and_rotations(  # all None in the paper's model
            x, positions, lengths, cache, index, beam_size
        )
        of_blocks = zip(self.blocks, old_caches, masks, *biases_and_rotations, strict=True)
        caches = []
        for block, block_cache, mask, bias, rotation in of_blocks:
            options = dict(attention_mask=mask, bias=bias, rotation=rotation, **shared)
            if self.remat and training and cache is None:
                output, new_cache = self._rematerialized(block, x, **options), {}
            else:
                place = dict(cache=block_cache, index=index * beam_size)
                output, new_cache = block(x, training=training, **place, **options)
            x = self._dropped(x, output) if training else output
            caches.append(new_cache)
        return (self.norm(x) if self.norm else x), caches

    def get_config(self) -> dict[str, Any]:
        settings = {"cross_attention": self.cross_attention, "recurrence": self.recurrence}
        settings |= {"causal": self.causal}
        return {**super().get_config(), **settings}
