"""Linear attention: products of feature maps in place of the softmax.

A weight is phi(q) phi(k)^T divided by the sum of a query's weights, so the output is
phi(q) (sum of phi(k)^T v) / phi(q) (sum of phi(k)^T): time and memory grow linearly with the
length, and a decoder keeps one sum, of a constant size, in place of all keys and values
(Katharopoulos et al. 2020, section 3). The map is elu(x) + 1, or random features whose products
approximate the softmax (Performer; Choromanski et al. 2021, section 2).
"""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import Pattern, masked_by, quick
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.recording import is_recorded, record

CHUNK = 128  # queries per chunk; inside a chunk, causal weights are computed as a matrix
_LEAST = 1e-6  # added to random features, so that no sum of weights is 0


def num_features(kernel: str, head_dim: int) -> int:
    """Return F, the number of features: H for "elu"; for "performer" H ln H, at least H."""
    if kernel == "elu":
        return head_dim
    return max(head_dim, round(head_dim * math.log(head_dim)))


def random_directions(shape: tuple[int, int], dtype: Any = None) -> Any:
    """Return F random directions of width H, (H, F), orthogonal within each block of H.

    Their lengths are those of Gaussian vectors (Choromanski et al. 2021, section 2.4).

    Args:
        shape: (H, F).
        dtype: Dtype of the result; None: float32.
    """
    width, count = shape
    blocks = []
    for _ in range(-(-count // width)):
        length_H = ops.sqrt(ops.sum(ops.square(keras.random.normal((width, width))), axis=0))
        blocks.append(keras.initializers.Orthogonal()((width, width)) * length_H)
    return ops.cast(ops.concatenate(blocks, axis=1)[:, :count], dtype or "float32")


def features(kernel: str, x_BNTH: Any, directions_HF: Any = None, of_queries: bool = False) -> Any:
    """Return phi(x), (B, N, T, F) float32, all positive.

    Args:
        kernel: "elu" or "performer".
        x_BNTH: Queries or keys.
        directions_HF: Random directions of "performer".
        of_queries: Whether x are queries, whose features may have any common factor: it cancels.
    """
    x_BNTH = quick.cast(x_BNTH, "float32")
    if kernel == "elu":
        return ops.elu(x_BNTH) + 1.0
    # exp(q k / sqrt(H)) is the expected product of the features exp(w x - |x|^2 / 2) of q and k,
    # where x is q or k times H^(-1/4).
    x_BNTH = x_BNTH * x_BNTH.shape[-1] ** -0.25
    logits = quick.matmul(x_BNTH, ops.cast(directions_HF, "float32"))
    logits = logits - ops.sum(ops.square(x_BNTH), axis=-1, keepdims=True) / 2
    if of_queries:
        logits = logits - ops.max(logits, axis=-1, keepdims=True)
    return ops.exp(logits) + _LEAST


def linear_attention(
    query_BNTF: Any, key_BNSF: Any, value_BNSH: Any, mask: Any = None, causal: bool = False
) -> tuple[Any, Any]:
    """Return the attended values (B, N, T, H) and the state (B, N, F, H + 1), both float32.

    The state is the sum of phi(k)^T [v, 1] over the keys.

    Args:
        query_BNTF, key_BNSF: Features of queries and keys.
        value_BNSH: Values.
        mask: Boolean, True = attend, broadcasts to (B, N, 1, S): a mask of keys; None: all.
        causal: Whether later positions are hidden from a query.
    """
    value = _with_ones(value_BNSH)
    if mask is not None:
        key_BNSF = key_BNSF * quick.cast(ops.transpose(mask, (0, 1, 3, 2)), "float32")
    state = quick.matmul(ops.transpose(key_BNSF, (0, 1, 3, 2)), value)
    if causal:
        return _normalized(_causal(query_BNTF, key_BNSF, value)), state
    return _normalized(quick.matmul(query_BNTF, state)), state


def linear_step(
    query_BNKF: Any, key_BNKF: Any, value_BNKH: Any, state_BKNFI: Any
) -> tuple[Any, Any]:
    """Add one position of K beams to their states; return the attended values and the states.

    Args:
        query_BNKF, key_BNKF: Features of the queries and keys of the beams.
        value_BNKH: Their values.
        state_BKNFI: The state of each beam, I = H + 1.
    """
    by_beam = (0, 2, 1, 3)
    query, key, value = (
        ops.transpose(x, by_beam) for x in (query_BNKF, key_BNKF, _with_ones(value_BNKH))
    )
    state = state_BKNFI + quick.expand_dims(key, -1) * quick.expand_dims(value, 3)
    total_BKNI = quick.matmul(quick.expand_dims(query, 3), state)[:, :, :, 0]
    return ops.transpose(_normalized(total_BKNI), by_beam), state


def linear_weights(query_BNTF: Any, key_BNSF: Any, mask: Any = None) -> Any:
    """Return the weights (B, N, T, S) of linear attention as a matrix; rows sum to 1.

    Args:
        query_BNTF, key_BNSF: Features of queries and keys.
        mask: Boolean, True = attend, broadcasts to (B, N, T, S); None: all.
    """
    weights = quick.matmul(query_BNTF, ops.transpose(key_BNSF, (0, 1, 3, 2)))
    weights = weights if mask is None else weights * quick.cast(mask, "float32")
    return weights / quick.maximum(ops.sum(weights, axis=-1, keepdims=True), 1e-20)


def _with_ones(value):
    """Return the values with a last column of ones, whose weighted sum is the sum of weights."""
    value = quick.cast(value, "float32")
    return quick.concatenate([value, quick.ones_like(value[..., :1])], axis=-1)


def _normalized(total):
    return total[..., :-1] / quick.maximum(total[..., -1:], 1e-20)


def _causal(query, key, value):
    """Return each query's weighted sums: earlier chunks by state, its own chunk by weights."""
    rows, heads, length = quick.shape(query)[:3]
    size = min(CHUNK, length) if isinstance(length, int) else CHUNK

    def in_chunks(x):
        x = ops.pad(x, ((0, 0), (0, 0), (0, -length % size), (0, 0)))
        return quick.reshape(x, (rows, heads, -1, size, x.shape[-1]))

    query, key, value = map(in_chunks, (query, key, value))
    states = quick.matmul(ops.transpose(key, (0, 1, 2, 4, 3)), value)
    earlier = quick.cumsum(states, axis=2) - states
    weights = quick.matmul(query, ops.transpose(key, (0, 1, 2, 4, 3)))
    offsets = quick.arange(size, dtype="int32")
    weights = weights * quick.cast(quick.expand_dims(offsets, 1) >= offsets, "float32")
    total = quick.matmul(query, earlier) + quick.matmul(weights, value)
    return quick.reshape(total, (rows, heads, -1, total.shape[-1]))[:, :, :length]


class LinearAttentionMixin(Layer):
    """Base class of `MultiHeadAttention`: linear attention, for its option `kernel`.

    The cache is `{"state"}`, (B, N, F, H + 1). In steps of self-attention it holds one state for
    each of the T beams, (B, T, N, F, H + 1), and masks and `index` are ignored.
    """

    def _build_kernel(self, head_dim):
        self.directions = None
        kernel = self.options.kernel
        if kernel == "performer":
            shape = head_dim, num_features(kernel, head_dim)
            options = dict(initializer=random_directions, trainable=False, autocast=False)
            options |= dict(name="directions")
            self.directions = self.add_weight(shape, **options)

    def _by_kernel(self, query, memory, mask, bias, rotation, cache):
        """Return the output and the cache of `MultiHeadAttention.call` with a kernel."""
        if bias is not None:
            raise ValueError("bias must be None with a kernel: linear attention has no products")
        kernel, directions = self.options.kernel, self.directions
        if self.cross_attention:
            known = None if cache is None else {"key": cache["state"]}
            query_BNTH, heads = self._cross(query, memory, known)
        else:
            query_BNTH, heads = self._self(query, memory, rotation)
        query_BNTF = features(kernel, query_BNTH, directions, of_queries=True)
        if self.cross_attention and cache is not None:
            attended = _normalized(quick.matmul(query_BNTF, cache["state"]))
            return self._kernel_output(attended, query), cache
        key_BNSH, value_BNSH = self._for_each_head(heads)
        key_BNSF = features(kernel, key_BNSH, directions)
        if cache is not None:
            attended, state = linear_step(query_BNTF, key_BNSF, value_BNSH, cache["state"])
            return self._kernel_output(attended, query), {"state": state}
        if mask is not None and keras.backend.standardize_dtype(mask.dtype) != "bool":
            mask = mask > -1.0  # the output of `mask_bias`
        causal = self.pattern.causal
        of_keys = mask if mask is not None and mask.shape[2] == 1 else None
        attended, state = linear_attention(query_BNTF, key_BNSF, value_BNSH, of_keys, causal)
        if is_recorded(self.path) or (mask is not None and of_keys is None):
            # A mask over pairs, such as that of packed rows, needs the matrix of weights.
            allowed = masked_by(Pattern(causal), query_BNTF, key_BNSF, mask)
            weights_BNTS = linear_weights(query_BNTF, key_BNSF, allowed)
            attended = quick.matmul(weights_BNTS, quick.cast(value_BNSH, "float32"))
            if is_recorded(self.path):
                record(self.path, weights_BNTS)
        return self._kernel_output(attended, query), {"state": state}

    def _kernel_output(self, attended_BNTH, query):
        return self._output(quick.cast(attended_BNTH, self.compute_dtype), query)
