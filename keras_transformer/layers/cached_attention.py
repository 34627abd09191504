"""Attention to keys and values that earlier calls computed: the steps of a search."""

from __future__ import annotations

from keras_transformer.backend import (
    attend_cache,
    attention,
    attention_weights,
    is_by_row,
    minimum,
    most_filled,
    quick,
    write_cache,
)
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.recording import is_recorded, record


class CachedAttentionMixin(Layer):
    """Base class of `MultiHeadAttention`: calls with a cache.

    A cache holds keys and values, each (B, G, S, H). A place is an index along its axis S. With K
    beams, position s has the places s K to s K + K - 1, one for each beam.

    Self-attention writes the keys and values of its T queries into the places from `index` on. The
    queries are new positions, or the beams of one position. A mask and a bias cover all places of
    the cache; without a mask, a query attends to all places up to its own. With a window the cache
    is a ring: the T queries must be the beams of one position, and are written from place `index`
    modulo (T * window) on.

    If `index` is a tensor (B,), each row has its own place. The cache is then not a ring, even with
    a window, and the mask alone decides which places are visible.

    In cross-attention, the T queries may be the beams of one sentence, which share its keys and
    values.
    """

    def _step(self, query, memory, attention_mask, bias, rotation, cache, index):
        """Return what `MultiHeadAttention.call` does with a cache."""
        if self.cross_attention:
            query_BNTH, cache = self._cross(query, memory, cache)
            key_BNSH, value_BNSH = self._for_each_head(cache)
            cap = self.options.soft_cap
            if is_recorded(self.path):
                weights_BNTS = attention_weights(query_BNTH, key_BNSH, attention_mask, bias, cap)
                record(self.path, weights_BNTS)
                attended_BNTH = quick.matmul(weights_BNTS, value_BNSH)
            else:
                attended_BNTH = attention(
                    query_BNTH, key_BNSH, value_BNSH, attention_mask, bias, soft_cap=cap
                )
            return self._output(attended_BNTH, query), cache
        length = query.shape[1]
        if is_by_row(index):  # not a ring: the mask also hides places outside the window
            filled = most_filled(cache["key"], index, quick.shape(query)[1])
        elif self.pattern.window:
            places = self.pattern.window * length
            index, filled = index % places, minimum(index + length, places)
        else:
            filled = index + length
        query_BNTH, new = self._self(query, memory, rotation)
        is_ring = bool(self.pattern.window)
        cache = {name: write_cache(cache[name], new[name], index, rolling=is_ring) for name in new}
        attended_BNTH = self._attend_self(query_BNTH, cache, attention_mask, bias, filled, length)
        return self._output(attended_BNTH, query), cache

    def _attend_self(self, query_BNTH, cache, mask, bias, filled, length):
        """Attend over the filled places of a self-attention cache."""
        options = dict(filled=filled, queries=length, soft_cap=self.options.soft_cap)
        if length != 1 or self.num_kv_heads == self.num_heads or bias is not None:
            key_BNSH, value_BNSH = self._for_each_head(cache)
            return attend_cache(query_BNTH, key_BNSH, value_BNSH, mask, bias, **options)
        # Query heads that share a key head form one axis, so that no keys are repeated.
        rows, _, _, head_dim = quick.shape(query_BNTH)
        group_size = self.num_heads // self.num_kv_heads
        grouped = quick.reshape(query_BNTH, (rows, self.num_kv_heads, group_size, head_dim))
        attended = attend_cache(grouped, cache["key"], cache["value"], mask, None, **options)
        return quick.reshape(attended, (rows, self.num_heads, 1, head_dim))
