"""The decoder: causal self-attention, cross-attention, feed-forward (3.1, Figure 1 right)."""

from __future__ import annotations

import keras

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.base import Layer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.masks import causal_mask
from keras_transformer.layers.residual import AddNorm, normalization
from keras_transformer.ops import quick as ops


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderBlock(Layer):
    """Causal self-attention, cross-attention to the memory, feed-forward; each with its norm.

    Args:
        num_heads: attention heads.
        d_ff: width inside the feed-forward.
        dropout: rate in [0, 1) on each sub-layer's output.
        activation: of the feed-forward.
        norm_first: False post-norm (the paper), True pre-norm.
        cross_attention: False leaves cross-attention out, for a decoder-only model.

    Call arguments:
        x: (B, T, D).
        memory: (B, S, D), the encoder's output; not needed with a `cache`.
        attention_mask: boolean, which of the sequence's own positions may be seen *beside* the
            causal order, broadcasts to (B, N, T, T); None: all. With a cache it is the whole
            truth about the cache's positions, (B, N, T, S); None: the causal order.
        cross_attention_mask: boolean, which memory positions may be seen, (B, N, T, S).
        cache: what an earlier call returned, its self-attention part wide enough for all
            positions to come.
        index: position of the first token of `x`, with a cache.

    Returns:
        (B, T, D), and the cache `{"self": {"key", "value"}, "cross": {"key", "value"}}`.
    """

    def __init__(
        self,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        cross_attention=True,
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
        )
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(num_heads, dtype=policy, name="self_attention")
        self.self_attention_norm = AddNorm(
            norm_first, dropout, dtype=policy, name="self_attention_norm"
        )
        if cross_attention:
            self.cross_attention = MultiHeadAttention(
                num_heads, cross_attention=True, dtype=policy, name="cross_attention"
            )
            self.cross_attention_norm = AddNorm(
                norm_first, dropout, dtype=policy, name="cross_attention_norm"
            )
        else:
            self.cross_attention = None
        self.feed_forward = FeedForward(d_ff, activation, dtype=policy, name="feed_forward")
        self.feed_forward_norm = AddNorm(
            norm_first, dropout, dtype=policy, name="feed_forward_norm"
        )

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
        training=False,
    ):
        cache = cache or {"self": None, "cross": None}
        attended, self_cache = self.self_attention(
            self.self_attention_norm(x),
            attention_mask=self._causal(x, attention_mask, cache["self"]),
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

    def _causal(self, x, attention_mask, cache):
        if cache is not None:
            return attention_mask
        length = ops.shape(x)[1]
        mask = causal_mask(length, length)
        return mask if attention_mask is None else mask & attention_mask

    def get_config(self):
        return {**super().get_config(), **self.options}


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(Layer):
    """A stack of `DecoderBlock`s, with a last norm when the blocks are pre-norm.

    Args:
        num_layers: number of blocks.
        num_heads, d_ff, dropout, activation, norm_first, cross_attention: of each block.

    Call arguments:
        x: (B, T, D).
        memory, attention_mask, cross_attention_mask, index: as of `DecoderBlock`.
        cache: what an earlier call returned.

    Returns:
        (B, T, D), and the cache: a list with each block's.
    """

    def __init__(
        self,
        num_layers,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        cross_attention=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            cross_attention=cross_attention,
        )
        self.blocks = [
            DecoderBlock(**self.options, dtype=self.dtype_policy, name=f"block_{i}")
            for i in range(num_layers)
        ]
        self.norm = normalization("norm", self.dtype_policy) if norm_first else None

    def build(self, x_shape, memory_shape=None):
        for block in self.blocks:
            block.build(x_shape, memory_shape)
        if self.norm:
            self.norm.build(x_shape)

    def call(
        self,
        x,
        memory=None,
        attention_mask=None,
        cross_attention_mask=None,
        cache=None,
        index=None,
        training=False,
    ):
        caches = []
        for block, block_cache in zip(self.blocks, cache or [None] * self.num_layers, strict=True):
            x, new_cache = block(
                x,
                memory=memory,
                attention_mask=attention_mask,
                cross_attention_mask=cross_attention_mask,
                cache=block_cache,
                index=index,
                training=training,
            )
            caches.append(new_cache)
        return (self.norm(x) if self.norm else x), caches

    def get_config(self):
        return {**super().get_config(), "num_layers": self.num_layers, **self.options}
