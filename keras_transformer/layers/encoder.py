"""The encoder: N blocks of self-attention and feed-forward (section 3.1, Figure 1 left)."""

from __future__ import annotations

from types import MappingProxyType

import keras

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.base import Layer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import AddNorm, normalization
from keras_transformer.layers.rotary import Rotary
from keras_transformer.ops import quick as ops


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderBlock(Layer):
    """Self-attention, then feed-forward, each in a residual connection with a norm.

    Args:
        num_heads: attention heads.
        d_ff: width inside the feed-forward.
        dropout: rate in [0, 1) on each sub-layer's output.
        activation, gated: of the feed-forward.
        norm_first: False post-norm (the paper), True pre-norm.
        norm, epsilon: kind of norm, "layer" or "rms", and its epsilon.
        use_bias: whether projections add a bias.
        head_dim, scaled, num_kv_heads, qkv_bias, window, global_tokens: of the attention.

    Call arguments:
        x: (B, T, D).
        attention_mask: boolean, True = attend, broadcasts to (B, N, T, T).
        bias: of the attention, broadcasts to (B, N, T, T).
        rotation: of the attention.

    Returns:
        (B, T, D).
    """

    mask_sources = MappingProxyType({"attention_mask": "x"})

    def __init__(
        self,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        norm="layer",
        epsilon=1e-6,
        use_bias=True,
        gated=False,
        head_dim=None,
        scaled=True,
        num_kv_heads=None,
        qkv_bias=None,
        window=None,
        global_tokens=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            norm=norm,
            epsilon=epsilon,
            use_bias=use_bias,
            gated=gated,
            head_dim=head_dim,
            scaled=scaled,
            num_kv_heads=num_kv_heads,
            qkv_bias=qkv_bias,
            window=window,
            global_tokens=global_tokens,
        )
        policy = self.dtype_policy
        attention = dict(use_bias=use_bias, head_dim=head_dim, scaled=scaled, dtype=policy)
        attention |= dict(num_kv_heads=num_kv_heads, qkv_bias=qkv_bias)
        attention |= dict(window=window, global_tokens=global_tokens)
        add_norm = dict(
            norm_first=norm_first, dropout=dropout, norm=norm, epsilon=epsilon, dtype=policy
        )
        self.attention = MultiHeadAttention(num_heads, **attention, name="attention")
        self.attention_norm = AddNorm(**add_norm, name="attention_norm")
        self.feed_forward = FeedForward(
            d_ff, activation, gated, use_bias, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = AddNorm(**add_norm, name="feed_forward_norm")

    def build(self, x_shape):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(x_shape)

    def call(self, x, attention_mask=None, bias=None, rotation=None, training=False):
        attended, _ = self.attention(
            self.attention_norm(x), attention_mask=attention_mask, bias=bias, rotation=rotation
        )
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
        num_heads, d_ff, dropout, activation, norm_first, norm, epsilon, use_bias, gated,
            head_dim, scaled, num_kv_heads, qkv_bias, window, global_tokens: of each block.
        relative_positions: number of buckets and largest distance of a `RelativeBias` that all
            blocks share; None: none.
        rotary: arguments of a `Rotary` that all blocks share; None: none.
        shared: whether all blocks are one, run `num_layers` times (Lan et al. 2020, section 3.1).

    Call arguments:
        x: (B, T, D).
        attention_mask: boolean, True = attend, broadcasts to (B, N, T, T).
        positions: (T,) or (B, T), of the tokens, for rotary ones; None: 0, 1, 2 ...

    Returns:
        (B, T, D), the memory that a decoder attends to.
    """

    mask_sources = EncoderBlock.mask_sources

    def __init__(
        self,
        num_layers,
        num_heads,
        d_ff,
        dropout=0.1,
        activation="relu",
        norm_first=False,
        norm="layer",
        epsilon=1e-6,
        use_bias=True,
        gated=False,
        head_dim=None,
        scaled=True,
        num_kv_heads=None,
        qkv_bias=None,
        window=None,
        global_tokens=0,
        relative_positions=None,
        rotary=None,
        shared=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.own = dict(
            num_layers=num_layers,
            relative_positions=relative_positions,
            rotary=rotary,
            shared=shared,
        )
        self.options = dict(
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            norm=norm,
            epsilon=epsilon,
            use_bias=use_bias,
            gated=gated,
            head_dim=head_dim,
            scaled=scaled,
            num_kv_heads=num_kv_heads,
            qkv_bias=qkv_bias,
            window=window,
            global_tokens=global_tokens,
        )
        policy = self.dtype_policy
        self.own_blocks = [
            EncoderBlock(**self.options, dtype=policy, name=f"block_{i}")
            for i in range(1 if shared else num_layers)
        ]
        self.norm = normalization(norm, epsilon, policy, "norm") if norm_first else None
        self.rotary = Rotary(**rotary, dtype=policy, name="rotary") if rotary else None
        self.relative_bias = None
        if relative_positions:
            self.relative_bias = RelativeBias(
                num_heads, *relative_positions, dtype=policy, name="relative_bias"
            )

    def build(self, x_shape):
        for block in self.own_blocks:
            block.build(x_shape)
        for layer in (self.norm, self.relative_bias):
            if layer:
                layer.build(x_shape)

    @property
    def blocks(self):
        """The block of each layer; where `shared`, the same one."""
        return self.own_blocks * (self.num_layers // len(self.own_blocks))

    def call(self, x, attention_mask=None, positions=None, training=False):
        bias = rotation = None
        if self.relative_bias or self.rotary:
            places = ops.arange(ops.shape(x)[1], dtype="int32")
        if self.relative_bias:
            bias = self.relative_bias(places, places)
        if self.rotary:
            rotation = self.rotary(places if positions is None else positions)
        for block in self.blocks:
            x = block(
                x, attention_mask=attention_mask, bias=bias, rotation=rotation, training=training
            )
        return self.norm(x) if self.norm else x

    def get_config(self):
        return {**super().get_config(), **self.own, **self.options}
