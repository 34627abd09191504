"""Exact attention over long inputs in memory that grows linearly with their length.

The weights (T, S) never exist as a whole: each chunk of queries visits the chunks of keys in turn
and keeps the running maximum and sum of its softmax (Rabe and Staats 2021; Dao et al. 2022,
algorithm 1). The backward pass recomputes each chunk of weights (Dao et al. 2022, appendix B).
Chunks that a pattern excludes are skipped, so with a window the time grows linearly with the
length, too (Beltagy et al. 2020, section 3.1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.backend import quick
from keras_transformer.backend.compilation import BACKEND

CHUNK = 512  # maximum number of queries, and of keys, in a chunk
_LOWEST = -1e30  # score of a key that is not allowed


class Pattern(NamedTuple):
    """The keys that a query may attend to, by their positions alone.

    Attributes:
        causal: Whether later positions are hidden from a query (section 3.2.3).
        window: Limits attention to keys less than this many positions away; None: no limit.
        global_tokens: Number of positions at the start that attend to all positions, and that all
            positions attend to, as far as `causal` allows (Beltagy et al. 2020, section 3.1). It
            has an effect only with a window.
    """

    causal: bool = False
    window: int | None = None
    global_tokens: int = 0

    def allows(self, queries: Any, keys: Any) -> Any:
        """Return which keys each query may attend to; None: all.

        Args:
            queries, keys: Positions, int32; they broadcast to the shape of the mask.
        """
        allowed = None
        if self.window is not None:
            allowed = queries - keys < self.window
            if not self.causal:
                allowed = allowed & (keys - queries < self.window)
            if self.global_tokens:
                allowed = allowed | (keys < self.global_tokens) | (queries < self.global_tokens)
        if self.causal:
            past = keys <= queries
            allowed = past if allowed is None else allowed & past
        return allowed

    @property
    def hides(self) -> bool:
        """Whether some keys are hidden from some queries."""
        return self.causal or self.window is not None

    def mask(self, query_length: Any, key_length: Any) -> Any:
        """Return the mask (T, S), or None if all keys are allowed."""
        if not self.hides:
            return None
        queries = quick.arange(query_length, dtype="int32")[:, None]
        return self.allows(queries, quick.arange(key_length, dtype="int32")[None])


def chunked_attention(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any,
    pattern: Pattern,
    soft_cap: float | None = None,
) -> Any:
    """Return softmax(Q K^T / sqrt(H)) V over the keys that mask and pattern allow.

    Args:
        query_BNTH, key_BNSH, value_BNSH: Queries, keys and values per head.
        mask: Boolean, True = attend, broadcasts to (B, N, T, S); None: attend to all.
        pattern: With `causal` or a window, queries and keys must be of the same sequence.
        soft_cap: See `attention_weights`.

    Returns:
        The attended values (B, N, T, H); zeros for a query that may attend to no key.
    """
    size = CHUNK
    if pattern.window is not None:
        size = min(CHUNK, max(64, -(-pattern.window // 64) * 64))
    length, num_keys = ops.shape(query_BNTH)[2], ops.shape(key_BNSH)[2]
    mask = ops.ones((1, 1, 1, 1), dtype="bool") if mask is None else mask

    def padded(x, *axes):
        widths = [(0, -ops.shape(x)[axis] % size if axis in axes else 0) for axis in range(4)]
        return ops.pad(x, widths)

    @ops.custom_gradient
    def attend(query, key, value, mask):
        chunks = _Chunks(size, num_keys, pattern, mask, query.shape[-1] ** -0.5, soft_cap)
        output, log_sum = _forward(chunks, query, key, value)
        kept = ops.stop_gradient(output)  # avoids a reference cycle on PyTorch

        def gradient(*arguments, upstream=None):
            # On PyTorch, Keras passes the arguments again, and the gradient by name.
            upstream = arguments[0] if upstream is None else upstream
            return *_backward(chunks, query, key, value, kept, log_sum, upstream), None

        return output, gradient

    mask = padded(mask, *(axis for axis in (2, 3) if mask.shape[axis] != 1))
    return attend(*(padded(x, 2) for x in (query_BNTH, key_BNSH, value_BNSH)), mask)[:, :, :length]


class _Chunks(NamedTuple):
    """Chunks of queries and keys; keys from `num_keys` on are padding."""

    size: int
    num_keys: Any
    pattern: Pattern
    mask: Any
    scale: float
    soft_cap: float | None

    def of(self, x, i, axis=2):
        """Return chunk i of x along an axis."""
        shape = list(ops.shape(x))
        start = [0] * len(shape)
        start[axis], shape[axis] = i * self.size, self.size
        return ops.slice(x, start, shape)

    def scores(self, query, key, i, j):
        """Return the scaled and capped products of query chunk i and key chunk j, float32."""
        products = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        products = ops.cast(products, "float32") * self.scale
        if self.soft_cap is not None:
            products = self.soft_cap * ops.tanh(products / self.soft_cap)
        offsets = ops.arange(self.size, dtype="int32")
        queries, keys = i * self.size + offsets[:, None], j * self.size + offsets[None]
        allowed, by_pattern = keys < self.num_keys, self.pattern.allows(queries, keys)
        allowed = allowed if by_pattern is None else allowed & by_pattern
        mask = self.mask
        for axis, number in ((2, i), (3, j)):
            mask = mask if mask.shape[axis] == 1 else self.of(mask, number, axis)
        return ops.where(allowed & mask, products, _LOWEST)

    def keys_of(self, i, count):
        """Return (front, low, high): query chunk i needs key chunks [0, front) and [low, high)."""
        low, high = self._near(i, count)
        if self.pattern.causal:
            high = i + 1
        return self._with_global(i, low, high, 0, i + 1 if self.pattern.causal else count)

    def queries_of(self, j, count):
        """Return (front, low, high) of the query chunks that need key chunk j."""
        low, high = self._near(j, count)
        if self.pattern.causal:
            low = j
        return self._with_global(j, low, high, j if self.pattern.causal else 0, count)

    def _near(self, i, count):
        """Return the range [low, high) of chunks with positions in the window of chunk i."""
        window, size = self.pattern.window, self.size
        if window is None:
            return 0, count
        low = ops.maximum(0, (i * size - window + 1) // size)
        return low, ops.minimum(count, ((i + 1) * size + window - 2) // size + 1)

    def _with_global(self, i, low, high, lowest, highest):
        """Return (front, low, high) after adding the chunks of global tokens to [low, high).

        A global chunk i gets the whole range [lowest, highest) that causality leaves.
        """
        first = -(-self.pattern.global_tokens // self.size)
        if self.pattern.window is None or first == 0:
            return 0, low, high
        is_global = i < first
        low, high = ops.where(is_global, lowest, low), ops.where(is_global, highest, high)
        # If only later chunks are allowed (lowest > 0), the front chunks are not among them.
        front = ops.where(is_global | (lowest > 0), 0, ops.minimum(first, low))
        return front, low, high


def _forward(chunks, query, key, value):
    """Return the output, and the logsumexp of each query's scores."""
    rows, heads, _, width = ops.shape(query)
    shape = (rows, heads, chunks.size)
    count_q, count_k = (ops.shape(x)[2] // chunks.size for x in (query, key))

    def of_queries(i):
        query_i = chunks.of(query, i)

        def visit(j, highest, total, output):
            scores = chunks.scores(query_i, chunks.of(key, j), i, j)
            new = ops.maximum(highest, ops.max(scores, axis=-1))
            # Masked keys have weight 0, even if all keys so far are masked.
            weights = ops.where(scores > _LOWEST / 2, ops.exp(scores - new[..., None]), 0.0)
            decay = ops.exp(highest - new)
            products = ops.matmul(ops.cast(weights, value.dtype), chunks.of(value, j))
            output = output * decay[..., None] + ops.cast(products, "float32")
            return new, total * decay + ops.sum(weights, axis=-1), output

        begin = ops.full(shape, _LOWEST), ops.zeros(shape), ops.zeros((*shape, width))
        highest, total, output = _visit(chunks.keys_of(i, count_k), visit, begin)
        seen = total > 0
        total = ops.where(seen, total, 1.0)
        output = ops.cast(output / total[..., None], value.dtype)
        # exp(score - log_sum) is a weight; it is 0 for a query that may attend to no key.
        return output, ops.where(seen, highest + ops.log(total), -_LOWEST)

    return _each(of_queries, count_q)


def _backward(chunks, query, key, value, output, log_sum, upstream):
    """Return the gradients of queries, keys and values."""
    rows, heads, _, width = ops.shape(query)
    upstream = ops.cast(upstream, value.dtype)
    inner = ops.sum(ops.cast(output, "float32") * ops.cast(upstream, "float32"), axis=-1)
    count_q, count_k = (ops.shape(x)[2] // chunks.size for x in (query, key))
    nothing = ops.zeros((rows, heads, chunks.size, width))

    def weights(i, j, query_i, key_j, value_j, upstream_i):
        """Return the weights of two chunks, and the gradient of the products Q K^T."""
        scores = chunks.scores(query_i, key_j, i, j)
        weights = ops.exp(scores - chunks.of(log_sum, i)[..., None])
        through = ops.matmul(upstream_i, ops.transpose(value_j, (0, 1, 3, 2)))
        through = ops.cast(through, "float32") - chunks.of(inner, i)[..., None]
        slope = chunks.scale
        if chunks.soft_cap is not None:
            # Clipped, because the square of a masked score would overflow float32.
            slope = slope * (1 - ops.square(ops.clip(scores / chunks.soft_cap, -1.0, 1.0)))
        return [ops.cast(x, value.dtype) for x in (weights, weights * through * slope)]

    def of_queries(i):
        query_i, upstream_i = chunks.of(query, i), chunks.of(upstream, i)

        def visit(j, total):
            key_j = chunks.of(key, j)
            _, gradient = weights(i, j, query_i, key_j, chunks.of(value, j), upstream_i)
            return (total + ops.cast(ops.matmul(gradient, key_j), "float32"),)

        (total,) = _visit(chunks.keys_of(i, count_k), visit, (nothing,))
        return (ops.cast(total, query.dtype),)

    def of_keys(j):
        key_j, value_j = chunks.of(key, j), chunks.of(value, j)

        def visit(i, key_total, value_total):
            query_i, upstream_i = chunks.of(query, i), chunks.of(upstream, i)
            pair = weights(i, j, query_i, key_j, value_j, upstream_i)
            weights_ji, gradient_ji = (ops.transpose(x, (0, 1, 3, 2)) for x in pair)
            key_part = ops.matmul(gradient_ji, query_i)
            value_part = ops.matmul(weights_ji, upstream_i)
            key_total = key_total + ops.cast(key_part, "float32")
            return key_total, value_total + ops.cast(value_part, "float32")

        totals = _visit(chunks.queries_of(j, count_q), visit, (nothing, nothing))
        return tuple(ops.cast(total, key.dtype) for total in totals)

    return *_each(of_queries, count_q), *_each(of_keys, count_k)


def _each(function, count):
    """Concatenate the results of `function(i)` for all chunks, tuples of tensors (B, N, C, ...)."""
    if BACKEND == "torch":
        return tuple(
            ops.concatenate(x, axis=2) for x in zip(*map(function, range(count)), strict=True)
        )

    def joined(x):
        x = ops.moveaxis(x, 0, 2)
        shape = ops.shape(x)
        return ops.reshape(x, (shape[0], shape[1], shape[2] * shape[3], *shape[4:]))

    return tuple(map(joined, ops.map(function, ops.arange(count, dtype="int32"))))


def _visit(chunks, visit, values):
    """Call `values = visit(j, *values)` for the chunks j in [0, front) and [low, high)."""
    if BACKEND == "torch":
        front, low, high = map(int, chunks)
        for j in (*range(front), *range(low, high)):
            values = visit(j, *values)
        return values
    front, low, high = (ops.convert_to_tensor(x, dtype="int32") for x in chunks)

    def turn(t, *values):
        j = ops.where(t < front, t, low + t - front)
        return t + 1, *visit(j, *values)

    begin = (ops.zeros((), dtype="int32"), *values)
    return ops.while_loop(lambda t, *_: t < front + high - low, turn, begin)[1:]
