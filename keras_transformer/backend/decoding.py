"""Parts of a search: the best tokens, reading and writing by index, and its loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_transformer.backend import quick
from keras_transformer.backend.cache import caches_grow
from keras_transformer.backend.compilation import BACKEND

if BACKEND == "jax":
    from keras_transformer.backend.jax.decoding import lower_at
    from keras_transformer.backend.jax.decoding import row_loop as loop_over_rows
elif BACKEND == "tensorflow":
    import tensorflow as tf

    from keras_transformer.backend.tensorflow.decoding import lower_at
    from keras_transformer.backend.tensorflow.decoding import row_loop as loop_over_rows
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import decoding as torch_kernels
    from keras_transformer.backend.torch.decoding import lower_at
    from keras_transformer.backend.torch.decoding import row_loop as loop_over_rows


_HIGHEST = 3e38  # float32; above all logits
_GROUP = 64  # tokens per group in the first pass of `_top_k`


def best_tokens(logits: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the k highest logits of the last axis, their indices, and logsumexp of all logits.

    Args:
        logits: Logits (..., V), of any floating dtype.
        k: Number of tokens, at most V.

    Returns:
        The logits (..., k) float32 in descending order, their indices (..., k) int32, and the
        logsumexp (..., 1) float32.
    """
    if BACKEND == "torch":
        return torch_kernels.best_tokens(logits, k)
    logits = ops.cast(logits, "float32")
    values, tokens = _top_k(logits, k)
    if BACKEND == "jax":  # one fused pass
        return values, tokens, ops.logsumexp(logits, axis=-1, keepdims=True)
    highest = values[..., :1]
    sums = ops.sum(ops.exp(logits - highest), axis=-1, keepdims=True)
    return values, tokens, highest + ops.log(sums)


def _top_k(x, k):
    """Return the result of `quick.top_k`, which is slow on TensorFlow and JAX for a large V.

    The k highest values are in the k groups of `_GROUP` tokens with the highest maxima, which one
    pass finds, or in the rest of fewer than `_GROUP` tokens.
    """
    size = x.shape[-1]
    groups = size // _GROUP if size else 0  # the size is unknown only on TensorFlow
    if groups <= k:
        return quick.top_k(x, k)
    x_RV = quick.reshape(x, (-1, size))
    x_RGC = quick.reshape(x_RV[:, : groups * _GROUP], (-1, groups, _GROUP))
    _, chosen_Rk = quick.top_k(ops.max(x_RGC, axis=-1), k)
    chosen_Rk = ops.sort(chosen_Rk, axis=-1)  # of equal values the first is chosen, as in top_k
    within_RkC = gather(x_RGC, quick.expand_dims(chosen_Rk, -1), axis=1)
    candidates_RC = quick.reshape(within_RkC, (-1, k * _GROUP))
    candidates_RC = quick.concatenate([candidates_RC, x_RV[:, groups * _GROUP :]], axis=1)
    values_Rk, choice_Rk = quick.top_k(candidates_RC, k)
    group_Rk = gather(chosen_Rk, quick.minimum(choice_Rk // _GROUP, k - 1), axis=1)
    is_rest_Rk = choice_Rk >= k * _GROUP
    rest_Rk = choice_Rk + (groups - k) * _GROUP
    token_Rk = quick.where(is_rest_Rk, rest_Rk, group_Rk * _GROUP + choice_Rk % _GROUP)
    shape = (*quick.shape(x)[:-1], k)
    return quick.reshape(values_Rk, shape), quick.reshape(token_Rk, shape)


def gather(x: Any, indices: Any, axis: int) -> Any:
    """Return `ops.take_along_axis(x, indices, axis)` for indices that are not negative.

    The axes of `indices` after `axis` have the sizes of x, or size 1.
    """
    if BACKEND == "torch":
        indices = indices.long()  # some devices accept no others
        if later := x.shape[axis + 1 :]:
            indices = indices.expand(*indices.shape[: axis + 1], *later)
        return torch.gather(x, axis, indices)
    later = indices.shape[axis + 1 :]
    if BACKEND == "tensorflow" and all(size == 1 for size in later):
        # `ops.take_along_axis` (Keras 3.15) transposes x and back.
        if len(later):
            indices = tf.squeeze(indices, [*range(axis + 1, len(indices.shape))])
        return tf.gather(x, indices, axis=axis, batch_dims=axis)
    return ops.take_along_axis(x, indices, axis=axis)


def at(x: Any, i: Any) -> Any:
    """Return x[..., i] for a number or a scalar tensor i; a tensor is not copied to the CPU."""
    if BACKEND == "torch" and torch.is_tensor(i):
        return torch.index_select(x, -1, i.reshape(1)).squeeze(-1)
    return x[..., i]


def put(x: Any, value: Any, i: Any) -> Any:
    """Return x (..., L) with `value` (...) at index i, a number or a scalar tensor."""
    if BACKEND == "torch" and not torch.is_tensor(i):
        return torch.select_scatter(x, value, -1, i)
    is_there_L = quick.arange(quick.shape(x)[-1], dtype="int32") == i
    return quick.where(is_there_L, quick.expand_dims(value, -1), x)


def forbid(logits: Any, ids: Any, value: float) -> Any:
    """Return logits (..., V), lowered to at most `value` at the ids (..., M).

    Args:
        logits: Logits in float32.
        ids: Ids of each row, int32, in any order; they may repeat, and -1 is ignored.
        value: Upper bound of their logits.
    """
    logits_RV = quick.reshape(logits, (-1, quick.shape(logits)[-1]))
    ids_RM = quick.reshape(ids, (-1, quick.shape(ids)[-1]))
    values_RM = quick.where(ids_RM >= 0, value, quick.cast(ids_RM * 0, "float32") + _HIGHEST)
    lowered = lower_at(logits_RV, quick.maximum(ids_RM, 0), values_RM)
    return quick.reshape(lowered, quick.shape(logits))


def row_loop(turn: Callable, length: Any, done_B: Any, results: Any, alive: Any) -> Any:
    """Call `turn` for i = 1 to `length` - 1, or until all rows are done.

    Args:
        turn: `turn(i, done_B, results, alive) -> done_B, results, alive`, a pure function. What it
            returns for a row depends on that row alone, and the row's results do not change once
            the row is done.
        length: Upper bound of i, exclusive.
        done_B: Boolean, True for rows that are done.
        results: Tree of tensors (B, ...): the results so far.
        alive: Tree of tensors (B, ...) that only the loop needs, such as caches.

    Returns:
        The final results.
    """
    if BACKEND != "tensorflow" or caches_grow():
        return loop_over_rows(turn, length, done_B, results, alive)

    # TensorFlow with XLA: shapes are static, so finished rows stay in the loop. The stages that JAX
    # has would each be another loop to compile.
    def goes_on(i, done_B, results, alive):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def iteration(i, done_B, results, alive):
        return i + 1, *turn(i, done_B, results, alive)

    variables = (ops.convert_to_tensor(1, dtype="int32"), done_B, results, alive)
    return ops.while_loop(goes_on, iteration, variables)[2]
