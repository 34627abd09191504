"""The decoder: causal self-attention, cross-attention, feed-forward (3.1, Figure 1 right)."""

from __future__ import annotations

from types import MappingProxyType

import keras

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.base import Layer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import AddNorm, normalization
from keras_transformer.layers.rotary import Rotary
from keras_transformer.ops import cache_places
from keras_transformer.ops import quick as ops


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderBlock(Layer):
    """Causal self-attention, cross-attention to the memory, feed-forward; each with its norm.

    Args:
        num_heads: attention heads.
        d_ff: width inside the feed-forward.
        dropout: rate in [0, 1) on each sub-layer's output.
        activation, gated: of the feed-forward.
        norm_first: False post-norm (the paper), True pre-norm.
        cross_attention: False leaves cross-attention out, for a decoder-only model.
        norm, epsilon: kind of norm, "layer" or "rms", and its epsilon.
        use_bias: whether projections add a bias.
        head_dim, scaled, num_kv_heads: of the attention.
        window: of the self-attention.

    Call arguments:
        x: (B, T, D).
        memory: (B, S, D), the encoder's output; not needed with a `cache`.
        attention_mask: boolean, which of the sequence's own positions may be seen *beside* the
            causal order, broadcasts to (B, N, T, T); None: all. With a cache it is the whole
            truth about the cache's positions, (B, N, T, S); None: the causal order.
        cross_attention_mask: boolean, which memory positions may be seen, (B, N, T, S).
        cache: what an earlier call returned, its self-attention part wide enough for all
            positions to come.
        index: place in the cache of the first token of `x`, with a cache.
        bias: of the self-attention, broadcasts to (B, N, T, T), or (B, N, T, S) with a cache.
        rotation: of the self-attention.

    Returns:
        (B, T, D), and the cache `{"self": {"key", "value"}, "cross": {"key", "value"}}`.
    """

    mask_sources = MappingProxyType({"attention_mask": "x", "cross_attention_mask": "memory"})

    def __init__(
        self,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        cross_attention=True,
        norm="layer",
        epsilon=1e-6,
        use_bias=True,
        gated=False,
        head_dim=None,
        scaled=True,
        num_kv_heads=None,
        window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            cross_attention=cross_attention,
            norm=norm,
            epsilon=epsilon,
            use_bias=use_bias,
            gated=gated,
            head_dim=head_dim,
            scaled=scaled,
            num_kv_heads=num_kv_heads,
            window=window,
        )
        policy = self.dtype_policy
        attention = dict(use_bias=use_bias, head_dim=head_dim, scaled=scaled, dtype=policy)
        attention["num_kv_heads"] = num_kv_heads
        add_norm = dict(
            norm_first=norm_first, dropout=dropout, norm=norm, epsilon=epsilon, dtype=policy
        )
        self.self_attention = MultiHeadAttention(
            num_heads, causal=True, window=window, **attention, name="self_attention"
        )
        self.self_attention_norm = AddNorm(**add_norm, name="self_attention_norm")
        if cross_attention:
            self.cross_attention = MultiHeadAttention(
                num_heads, cross_attention=True, **attention, name="cross_attention"
            )
            self.cross_attention_norm = AddNorm(**add_norm, name="cross_attention_norm")
        else:
            self.cross_attention = None
        self.feed_forward = FeedForward(
            d_ff, activation, gated, use_bias, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = AddNorm(**add_norm, name="feed_forward_norm")

    def build(self, x_shape, memory_shape=None):
        self.self_attention.build(x_shape)
        self.self_attention_norm.build(x_shape)
        if self.cross_attention:
            self.cross_attention.build(x_shape, memory_shape)
            self.cross_attention_norm.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_norm.build(x_shape)

    def call(
        self,
        x,
        memory=None,
        attention_mask=None,
        cross_attention_mask=None,
        cache=None,
        index=None,
        bias=None,
        rotation=None,
        training=False,
    ):
        cache = cache or {"self": None, "cross": None}
        attended, self_cache = self.self_attention(
            self.self_attention_norm(x),
            attention_mask=attention_mask,
            bias=bias,
            rotation=rotation,
            cache=cache["self"],
            index=index,
        )
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
        transformed = self.feed_forward(self.feed_forward_norm(x))
        return self.feed_forward_norm(x, transformed, training=training), new_cache

    def get_config(self):
        return {**super().get_config(), **self.options}


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(Layer):
    """A stack of `DecoderBlock`s, with a last norm when the blocks are pre-norm.

    Args:
        num_layers: number of blocks.
        num_heads, d_ff, dropout, activation, norm_first, cross_attention, norm, epsilon, use_bias,
            gated, head_dim, scaled, num_kv_heads, window: of each block.
        relative_positions: number of buckets and largest distance of a `RelativeBias` that the
            self-attention of all blocks shares; None: none.
        rotary: arguments of a `Rotary` that the self-attention of all blocks shares; None: none.

    Call arguments:
        x: (B, T, D).
        memory, attention_mask, cross_attention_mask: as of `DecoderBlock`.
        cache: what an earlier call returned.
        index: position of the first token of `x`, with a cache.
        beam_size: K, tokens that stand side by side at each position of the cache and of `x`.
        positions: (B, T), of the tokens, for rotary ones; None: `index`, `index` + 1 ...

    Returns:
        (B, T, D), and the cache: a list with each block's.
    """

    mask_sources = DecoderBlock.mask_sources

    def __init__(
        self,
        num_layers,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        cross_attention=True,
        norm="layer",
        epsilon=1e-6,
        use_bias=True,
        gated=False,
        head_dim=None,
        scaled=True,
        num_kv_heads=None,
        relative_positions=None,
        rotary=None,
        window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.own = dict(
            num_layers=num_layers,
            relative_positions=relative_positions,
            rotary=rotary,
        )
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            cross_attention=cross_attention,
            norm=norm,
            epsilon=epsilon,
            use_bias=use_bias,
            gated=gated,
            head_dim=head_dim,
            scaled=scaled,
            num_kv_heads=num_kv_heads,
            window=window,
        )
        self.blocks = [
            DecoderBlock(**self.options, dtype=self.dtype_policy, name=f"block_{i}")
            for i in range(num_layers)
        ]
        policy = self.dtype_policy
        self.norm = normalization(norm, epsilon, policy, "norm") if norm_first else None
        self.rotary = Rotary(**rotary, dtype=policy, name="rotary") if rotary else None
        self.relative_bias = None
        if relative_positions:
            self.relative_bias = RelativeBias(
                num_heads, *relative_positions, False, dtype=policy, name="relative_bias"
            )

    def build(self, x_shape, memory_shape=None):
        for block in self.blocks:
            block.build(x_shape, memory_shape)
        for layer in (self.norm, self.relative_bias):
            if layer:
                layer.build(x_shape)

    def call(
        self,
        x,
        memory=None,
        attention_mask=None,
        cross_attention_mask=None,
        cache=None,
        index=0,
        beam_size=1,
        positions=None,
        training=False,
    ):
        bias = self._bias(x, cache, index, beam_size)
        rotation = self._rotation(x, index, beam_size, positions) if self.rotary else None
        caches = []
        for block, block_cache in zip(self.blocks, cache or [None] * self.num_layers, strict=True):
            x, new_cache = block(
                x,
                memory=memory,
                attention_mask=attention_mask,
                cross_attention_mask=cross_attention_mask,
                cache=block_cache,
                index=index * beam_size,
                bias=bias,
                rotation=rotation,
                training=training,
            )
            caches.append(new_cache)
        return (self.norm(x) if self.norm else x), caches

    def _bias(self, x, cache, index, beam_size):
        """(1, N or 1, T, S); all beams of a position are at the same distance from a query."""
        if not self.relative_bias:
            return None
        length = ops.shape(x)[1] // beam_size
        places = length
        if cache is not None:
            room = cache_places(cache[0]["self"]["key"], (index + length) * beam_size)
            places = room // beam_size
        queries, keys = index + ops.arange(length, dtype="int32"), ops.arange(places, dtype="int32")
        bias = self.relative_bias(queries, keys)
        if beam_size == 1:
            return bias
        # One position at a time, whose beams all see the same.
        return ops.repeat(bias, beam_size, axis=3)

    def _rotation(self, x, index, beam_size, positions):
        if positions is None:
            length = ops.shape(x)[1] // beam_size
            positions = index + ops.arange(length, dtype="int32")
            if beam_size > 1:
                positions = ops.repeat(positions, beam_size, axis=0)
        return self.rotary(positions)

    def get_config(self):
        return {**super().get_config(), **self.own, **self.options}
