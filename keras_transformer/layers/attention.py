"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2).

`quick` is `keras.ops` without the checks of arguments, see `backend.quick`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import keras

from keras_transformer.backend import (
    Pattern,
    attention,
    attention_weights,
    masked_by,
    quick,
)
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import AttentionOptions
from keras_transformer.layers.cached_attention import CachedAttentionMixin
from keras_transformer.layers.head_groups import FusedDense, check_model_axis, scaled_queries
from keras_transformer.layers.linear_attention import LinearAttentionMixin
from keras_transformer.layers.recording import is_recorded, record
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.rotary import rotate


def dot_product_attention(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any = None,
    bias: Any = None,
    soft_cap: float | None = None,
) -> tuple[Any, Any]:
    """Return softmax(Q K^T / sqrt(H)) V, equation 1 of the paper, and the weights.

    Args:
        query_BNTH, key_BNSH, value_BNSH: Queries, keys and values of each head.
        mask: Boolean, True = attend, broadcasts to (B, N, T, S). A query without any allowed key
            gets the mean of all values, not NaN.
        bias: Added to the scaled products, broadcasts to (B, N, T, S).
        soft_cap: See `AttentionOptions`.

    Returns:
        The attended values (B, N, T, H) and the attention weights (B, N, T, S).
    """
    weights_BNTS = attention_weights(query_BNTH, key_BNSH, mask, bias, soft_cap)
    return keras.ops.matmul(weights_BNTS, value_BNSH), weights_BNTS


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(CachedAttentionMixin, LinearAttentionMixin):
    """MultiHead(Q, K, V) = Concat(head_1 ... head_N) W^O (section 3.2.2).

    Self-attention makes queries, keys and values in one fused projection. Cross-attention makes
    keys and values in one projection of the memory. The module `head_groups` describes the order of
    columns. The base classes compute what the paper's training does not need: the steps of a
    search, and linear attention.

    Args:
        num_heads: N; must divide the width of the query, unless `head_dim` is given.
        cross_attention: Whether queries attend to `memory`; False: self-attention.
        causal: Whether later positions are hidden from a query.
        options: Fields of `AttentionOptions` and arguments of `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D).
        memory: (B, S, E), the sequence that cross-attention attends to; not needed with a `cache`.
        attention_mask: Boolean, True = attend, or the output of `mask_bias` for it; broadcasts to
            (B, N, T, S). It is combined with `causal` and the window. With a self-attention cache
            it replaces both.
        bias: Added to the scaled products, broadcasts to (B, N, T, S).
        rotation: Output of `Rotary` for the query's positions; queries and keys are rotated by it.
        cache: The cache that an earlier call returned; None in training. Self-attention writes the
            new keys and values into it, cross-attention uses it instead of `memory`.
        index: Index along the axis S of a self-attention cache at which the keys of the first query
            are written; see `CachedAttentionMixin`.

    Returns:
        The output (B, T, D) and the cache `{"key", "value"}`, each (B, G, S, H); with a kernel, the
        cache of `LinearAttentionMixin`.

    Raises:
        ValueError: If `AttentionOptions` refuses an option; if D is not divisible by `num_heads`
            and there is no `head_dim`; if `check_model_axis` refuses the number of heads; if
            self-attention gets `memory`, cross-attention gets neither `memory` nor `cache`, or a
            `bias` comes with a kernel.
    """

    @property
    def mask_sources(self) -> Mapping[str, str]:  # type: ignore[override]  # by instance
        """Maps `attention_mask` to the call argument that holds the masked keys; see `Layer`."""
        return {"attention_mask": "memory" if self.cross_attention else "query"}

    options_class = AttentionOptions

    def __init__(
        self,
        num_heads: int,
        cross_attention: bool = False,
        causal: bool = False,
        **options: Any,
    ):
        attention_options = self.options_class.pop_from(options, num_heads=num_heads)
        super().__init__(**options)
        self.options = attention_options
        self.num_heads = num_heads
        self.num_kv_heads = self.options.num_kv_heads or num_heads
        self.cross_attention = cross_attention
        # Hides later positions and those outside the window, see `backend.chunked.Pattern`.
        self.pattern = Pattern(causal, self.options.window, self.options.global_tokens)

    def build(self, query_shape: Any, memory_shape: Any = None) -> None:
        d_model, head_dim = query_shape[-1], self.options.head_dim
        if head_dim is None and d_model % self.num_heads:
            raise ValueError(
                f"num_heads must divide the width of the query, got num_heads={self.num_heads} "
                f"and a width of {d_model}"
            )
        check_model_axis(num_heads=self.num_heads, num_kv_heads=self.options.num_kv_heads)
        self.head_dim = head_dim or d_model // self.num_heads
        width, group_size = self.num_heads * self.head_dim, self.num_heads // self.num_kv_heads
        kv = (self.num_kv_heads,) * 2
        if self.cross_attention:
            self.query = Dense(width, **self._options("query", queries=1, others=0))
            self.key_value = FusedDense(kv, self.head_dim, **self._options("key_value"))
            self.query.build(query_shape)
            self.key_value.build(memory_shape or query_shape)
        else:
            options = self._options("query_key_value", queries=group_size, others=2)
            self.query_key_value = FusedDense((self.num_heads, *kv), self.head_dim, **options)
            self.query_key_value.build(query_shape)
        settings = self.options
        bias = settings.use_bias if settings.output_bias is None else settings.output_bias
        self.output_projection = Dense(
            d_model, use_bias=bias, dtype=self.dtype_policy, name="output"
        )
        self.output_projection.build((*query_shape[:-1], width))
        self._build_kernel(self.head_dim)
        self.query_norm = self.key_norm = None
        if settings.qk_norm:
            shared = ("rms", settings.epsilon, self.dtype_policy)
            self.query_norm = normalization(*shared, "query_norm")
            self.key_norm = normalization(*shared, "key_norm")
            heads = (self.num_heads, self.num_kv_heads) if settings.qk_norm == "whole" else (1, 1)
            for norm, count in zip((self.query_norm, self.key_norm), heads, strict=True):
                norm.build((None, count * self.head_dim))

    def _options(self, name, queries=0, others=1):
        """Return the arguments of a projection.

        Args:
            name: Name of the layer.
            queries: Query heads in each head group.
            others: Key and value heads in each head group.
        """
        settings, initial = self.options, "glorot_uniform"
        use_bias = settings.use_bias if settings.qkv_bias is None else settings.qkv_bias
        if queries and settings.query_scale is not None:
            # With this factor the initial products have the scale that H^-0.5 gives.
            factor = self.head_dim**-0.5 / settings.query_scale
            initial = scaled_queries(queries, others, self.head_dim, factor)
        shared = dict(use_bias=use_bias, dtype=self.dtype_policy)
        return dict(name=name, kernel_initializer=initial, **shared)

    def call(
        self,
        query: Any,
        memory: Any = None,
        attention_mask: Any = None,
        bias: Any = None,
        rotation: tuple[Any, Any] | None = None,
        cache: dict[str, Any] | None = None,
        index: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        if self.options.kernel:  # linear attention
            return self._by_kernel(query, memory, attention_mask, bias, rotation, cache)
        if cache is not None:  # a step of a search
            return self._step(query, memory, attention_mask, bias, rotation, cache, index)
        if self.cross_attention:
            query_BNTH, cache = self._cross(query, memory)
        else:
            query_BNTH, cache = self._self(query, memory, rotation)
        key_BNSH, value_BNSH = self._for_each_head(cache)
        cap = self.options.soft_cap
        if is_recorded(self.path):
            mask = masked_by(self.pattern, query_BNTH, key_BNSH, attention_mask)
            attended_BNTH, weights_BNTS = dot_product_attention(
                query_BNTH, key_BNSH, value_BNSH, mask, bias, cap
            )
            record(self.path, weights_BNTS)
        else:
            attended_BNTH = attention(
                query_BNTH, key_BNSH, value_BNSH, attention_mask, bias, self.pattern, cap
            )
        return self._output(attended_BNTH, query), cache

    def _self(self, query, memory, rotation):
        """Return queries (B, N, T, H), and their keys and values (B, G, T, H)."""
        if memory is not None:
            raise ValueError("memory must be None in self-attention (cross_attention=False)")
        rows = quick.shape(query)[0]
        query_BNTH, key_BNSH, value_BNSH = self._split(self.query_key_value, query, rows)
        query_BNTH = self._positioned(query_BNTH, self.query_norm, rotation)
        key_BNSH = self._positioned(key_BNSH, self.key_norm, rotation)
        return self._rescaled(query_BNTH), {"key": key_BNSH, "value": value_BNSH}

    def _positioned(self, x_BNTH, norm, rotation):
        """Return queries or keys after their norm and rotation."""
        if self.options.qk_norm != "rotated":
            x_BNTH = self._by_norm(norm, x_BNTH)
        x_BNTH = x_BNTH if rotation is None else rotate(x_BNTH, rotation)
        return self._by_norm(norm, x_BNTH) if self.options.qk_norm == "rotated" else x_BNTH

    def _cross(self, query, memory, cache=None):
        """Return queries (B, N, T, H), and the keys and values of the memory, or the cache."""
        if cache is None:
            if memory is None:
                raise ValueError("memory or cache must be given in cross-attention, got neither")
            rows = quick.shape(memory)[0]
            key_BNSH, value_BNSH = self._split(self.key_value, memory, rows)
            key_BNSH = self._by_norm(self.key_norm, key_BNSH)
            cache = {"key": key_BNSH, "value": value_BNSH}
        # In a search, the K beams of a sentence are K queries to its single copy of keys and
        # values: (B, K, D) becomes (B, N, K, H).
        query_BNTH = self._heads(self.query(query), quick.shape(cache["key"])[0], self.num_heads)
        return self._rescaled(self._by_norm(self.query_norm, query_BNTH)), cache

    def _by_norm(self, norm, x_BNTH):
        """Return queries or keys after their norm, over each head or over all heads together."""
        if norm is None or self.options.qk_norm != "whole":
            return norm(x_BNTH) if norm else x_BNTH
        rows, heads, width = quick.shape(x_BNTH)[0], x_BNTH.shape[1], norm.scale.shape[0]
        x = quick.reshape(quick.transpose(x_BNTH, (0, 2, 1, 3)), (rows, -1, width))
        return self._heads(norm(x), rows, heads)

    def _split(self, fused, x, rows):
        """Return the heads (B, N or G, T, H) of each projection that a `FusedDense` joins.

        A head group has C columns. Without shared heads (N = G) a group is one head: its query, its
        key and its value, C = 3 H, or in cross-attention its key and its value, C = 2 H.
        """
        shares = [heads // self.num_kv_heads for heads in fused.heads]
        ends = [share * self.head_dim for share in itertools.accumulate(shares)]
        x_BTGC = quick.reshape(fused(x), (rows, -1, self.num_kv_heads, ends[-1]))
        parts = quick.split(x_BTGC, ends[:-1], axis=-1)
        return map(self._heads, parts, [rows] * len(parts), fused.heads)

    def _heads(self, x, rows, num_heads):
        """Return x (B, T, N H), or x (B, T, G, C) with the columns of G groups, as (B, N, T, H)."""
        if x.shape[2:] != (num_heads, self.head_dim):
            x = quick.reshape(x, (rows, -1, num_heads, self.head_dim))
        return quick.transpose(x, (0, 2, 1, 3))

    def _rescaled(self, query_BNTH):
        """Return the queries times sqrt(H) `query_scale`.

        Attention divides the products by sqrt(H), so `query_scale` remains.
        """
        factor = (self.options.query_scale or self.head_dim**-0.5) * self.head_dim**0.5
        return query_BNTH if math.isclose(factor, 1.0) else query_BNTH * factor

    def _for_each_head(self, cache: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return keys and values (B, N, S, H): each of the G heads repeated for its query heads."""
        group_size = self.num_heads // self.num_kv_heads
        pair = cache["key"], cache["value"]
        return pair if group_size == 1 else tuple(quick.repeat(x, group_size, axis=1) for x in pair)

    def _output(self, attended_BNTH, query):
        """Return the concatenated heads times W^O, (B, T, D)."""
        attended_BTNH = quick.transpose(attended_BNTH, (0, 2, 1, 3))
        rows, length = quick.shape(query)[:2]
        width = self.num_heads * attended_BNTH.shape[-1]
        return self.output_projection(quick.reshape(attended_BTNH, (rows, length, width)))

    def get_config(self) -> dict[str, Any]:
        settings = {"cross_attention": self.cross_attention, "causal": self.pattern.causal}
        return {**super().get_config(), **settings}
