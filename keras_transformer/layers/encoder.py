"""The encoder: N blocks of self-attention and feed-forward (section 3.1, Figure 1 left)."""

from __future__ import annotations

import keras

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.base import Layer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.residual import AddNorm, normalization


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderBlock(Layer):
    """Self-attention, then feed-forward, each in a residual connection with a norm.

    Args:
        num_heads: attention heads.
        d_ff: width inside the feed-forward.
        dropout: rate in [0, 1) on each sub-layer's output.
        activation: of the feed-forward.
        norm_first: False post-norm (the paper), True pre-norm.

    Call arguments:
        x: (B, T, D).
        attention_mask: boolean, True = attend, broadcasts to (B, N, T, T).

    Returns:
        (B, T, D).
    """

    def __init__(self, num_heads, d_ff, dropout=0.1, activation="relu", norm_first=False, **kwargs):
        super().__init__(**kwargs)
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
        )
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(num_heads, dtype=policy, name="attention")
        self.attention_norm = AddNorm(norm_first, dropout, dtype=policy, name="attention_norm")
        self.feed_forward = FeedForward(d_ff, activation, dtype=policy, name="feed_forward")
        self.feed_forward_norm = AddNorm(
            norm_first, dropout, dtype=policy, name="feed_forward_norm"
        )

    def build(self, x_shape):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(x_shape)

    def call(self, x, attention_mask=None, training=False):
        attended, _ = self.attention(self.attention_norm(x), attention_mask=attention_mask)
        x = self.attention_norm(x, attended, training=training)
        transformed = self.feed_forward(self.feed_forward_norm(x))
        return self.feed_forward_norm(x, transformed, training=training)

    def get_config(self):
        return {**super().get_config(), **self.options}


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(Layer):
    """A stack of `EncoderBlock`s, with a last norm when the blocks are pre-norm.

    Args:
        num_layers: number of blocks.
        num_heads, d_ff, dropout, activation, norm_first: of each block.

    Call arguments:
        x: (B, T, D).
        attention_mask: boolean, True = attend, broadcasts to (B, N, T, T).

    Returns:
        (B, T, D), the memory that a decoder attends to.
    """

    def __init__(
        self,
        num_layers,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
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
        )
        self.blocks = [
            EncoderBlock(**self.options, dtype=self.dtype_policy, name=f"block_{i}")
            for i in range(num_layers)
        ]
        self.norm = normalization("norm", self.dtype_policy) if norm_first else None

    def build(self, x_shape):
        for block in self.blocks:
            block.build(x_shape)
        if self.norm:
            self.norm.build(x_shape)

    def call(self, x, attention_mask=None, training=False):
        for block in self.blocks:
            x = block(x, attention_mask=attention_mask, training=training)
        return self.norm(x) if self.norm else x

    def get_config(self):
        return {**super().get_config(), "num_layers": self.num_layers, **self.options}
