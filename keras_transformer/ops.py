"""The one room that knows which backend runs: cache writes, compilation, random state.

Everything else is written on `keras.ops`. Each function here has a plain meaning that holds on
every backend, and a faster way to it on one of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

BACKEND = keras.backend.backend()

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util
elif BACKEND == "torch":
    import torch

    from keras_transformer import torch_graph, torch_kernels
else:
    raise ImportError(
        f"KERAS_BACKEND must be 'tensorflow', 'jax' or 'torch' for keras_transformer, "
        f"got {BACKEND!r}"
    )

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # of glibc's malloc.h

# A new shape costs a compilation under JAX only: TensorFlow's graphs take any, PyTorch is eager.
COMPILES_EACH_SHAPE = BACKEND == "jax"


def _grows() -> bool:
    """Whether caches grow: in TensorFlow's own graphs, where to cut one to size is a copy too."""
    return BACKEND == "tensorflow" and not control_flow_util.GraphOrParentsInXlaContext(
        tf.compat.v1.get_default_graph()
    )


def new_cache(first_BNPH: Any, length: Any, beam_size: int = 1) -> Any:
    """A cache (B, N, length K, H) with the first P positions in the places of beam 0 of K.

    What lies behind them is undefined, on PyTorch memory as it was found: to fill with zeros what
    is seldom reached would cost more than the encoder. In a TensorFlow graph it is not even there.
    """
    rows, heads, filled, width = ops.shape(first_BNPH)
    if BACKEND == "torch":
        cache_BNLKH = first_BNPH.new_empty((rows, heads, length, beam_size, width))
        cache_BNLKH[:, :, :filled] = 0
        cache_BNLKH[:, :, :filled, 0] = first_BNPH
        return cache_BNLKH.view(rows, heads, length * beam_size, width)
    beams = ((0, 0), (0, 0), (0, 0), (0, beam_size - 1), (0, 0))
    cache_BNPKH = ops.pad(ops.expand_dims(first_BNPH, 3), beams)
    cache_BNSH = ops.reshape(cache_BNPKH, (rows, heads, filled * beam_size, width))
    if _grows():
        return cache_BNSH
    return ops.pad(cache_BNSH, ((0, 0), (0, 0), (0, (length - filled) * beam_size), (0, 0)))


def write_cache(cache_BNSH: Any, update_BNTH: Any, index: Any) -> Any:
    """Returns the cache with `update` written at positions [index, index + T).

    On PyTorch without gradients it is written in place: `slice_update` would clone the whole
    cache at every step. In a TensorFlow graph what lies behind is dropped.
    """
    if BACKEND == "torch" and not torch.is_grad_enabled():
        start = int(index) if isinstance(index, torch.Tensor) else index
        cache_BNSH[:, :, start : start + update_BNTH.shape[2]] = update_BNTH
        return cache_BNSH
    if _grows():
        return tf.concat([cache_BNSH[:, :, :index], update_BNTH], axis=2)
    return ops.slice_update(cache_BNSH, (0, 0, index, 0), update_BNTH)


def reuse_memory() -> None:
    """Lets the process keep freed memory on a CPU instead of giving it back at once.

    A training step asks for the same large buffers again and again; from the system they come
    empty, a page fault every 4 KiB: up to a third of a step. glibc only; elsewhere nothing.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, -1)
        mallopt(_M_TOP_PAD, 64 << 20)


def linear(x: Any, kernel: Any, bias: Any, activation: Callable | None = None) -> Any:
    """activation(x @ kernel + bias) of the last axis; bias and activation may be None."""
    # Without gradients the plain operations, which a traced search replaces by packed weights.
    if BACKEND == "torch" and bias is not None and torch.is_grad_enabled():
        bias, kernel = ops.convert_to_tensor(bias), ops.convert_to_tensor(kernel)
        shape = (*x.shape[:-1], kernel.shape[1])
        x_ND = torch.addmm(bias, x.reshape(-1, x.shape[-1]), kernel)
        if activation is keras.activations.relu:
            return torch.relu_(x_ND).view(shape)
        x = x_ND.view(shape)
    else:
        x = ops.matmul(x, kernel)
        if bias is not None:
            x = x + bias
    return x if activation is None else activation(x)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Layer normalization of the last axis, computed in float32 and returned in x's type."""
    if BACKEND == "torch" and x.device.type != "meta":
        # The kernel itself sums in float32: no copy of x is needed.
        weights = ops.cast(gamma, x.dtype), ops.cast(beta, x.dtype)
        return torch.nn.functional.layer_norm(x, x.shape[-1:], *weights, epsilon)
    x_ = ops.cast(x, "float32")
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return ops.cast(ops.layer_normalization(x_, gamma, beta, -1, epsilon), x.dtype)


def attention(
    query_BNTH: Any, key_BNSH: Any, value_BNSH: Any, mask: Any = None, bias: Any = None
) -> Any:
    """softmax(Q K^T / sqrt(H) + bias) V by the backend's fastest way: (B, N, T, H).

    What `attention_weights` times the values gives; the weights are not kept.
    """
    if BACKEND == "torch" and query_BNTH.device.type != "meta":
        return torch_kernels.attention(query_BNTH, key_BNSH, value_BNSH, mask, bias)
    weights_BNTS = attention_weights(query_BNTH, key_BNSH, mask, bias)
    return ops.matmul(weights_BNTS, value_BNSH)


def attention_weights(query_BNTH: Any, key_BNSH: Any, mask: Any = None, bias: Any = None) -> Any:
    """softmax(Q K^T / sqrt(H) + bias), rows sum to 1: (B, N, T, S).

    A query that may see nothing weighs all keys alike.
    """
    scale = query_BNTH.shape[-1] ** -0.5
    logits_BNTS = ops.matmul(query_BNTH * scale, ops.transpose(key_BNSH, (0, 1, 3, 2)))
    if bias is not None:
        logits_BNTS = logits_BNTS + ops.cast(bias, logits_BNTS.dtype)
    if mask is not None:
        # Finite, so that a row without any key stays a number; -1e9 overflows float16.
        lowest = -3e4 if keras.backend.standardize_dtype(logits_BNTS.dtype) == "float16" else -1e9
        logits_BNTS = ops.where(mask, logits_BNTS, ops.cast(lowest, logits_BNTS.dtype))
    if logits_BNTS.shape[-1] == 1:
        return ops.ones_like(logits_BNTS)  # Keras warns of a softmax over one number
    return ops.softmax(logits_BNTS, axis=-1)


def dropout(x: Any, rate: float, seed_generator: Any, residual: Any = None) -> Any:
    """`residual` (or nothing) + x, of which a share `rate` is set to zero and the rest scaled up.

    Args:
        x: any shape.
        rate: in [0, 1); rounded to 1/256 on PyTorch on a CPU.
        seed_generator: a `keras.random.SeedGenerator`; PyTorch has its own generator.
        residual: of x's shape, or None.
    """
    if BACKEND == "torch" and x.device.type != "meta":
        return torch_kernels.dropout(x, rate, residual)
    x = keras.random.dropout(x, rate, seed=seed_generator)
    return x if residual is None else residual + x


def attend_cache(
    attend: Callable,
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any = None,
    filled: Any = None,
    queries: int = 1,
) -> Any:
    """`attend(query, key, value, mask)[0]` over the first `filled` positions: (B, N, T, H).

    Args:
        attend: the equation, for the backends that have no kernel for few queries.
        query_BNTH, key_BNSH, value_BNSH: queries, keys and values, a head apart.
        mask: boolean, broadcasts to (B, N, T, S); None: all if `filled` is None, else each
            query sees all up to its own position, the last T of those filled.
        filled: how many of the S positions are filled; None: all.
        queries: T, with `filled`.
    """
    if filled is None:
        return _attend(attend, query_BNTH, key_BNSH, value_BNSH, mask)

    def over(size):
        allowed = mask
        if mask is not None and mask.shape[-1] != 1:
            allowed = mask[..., :size]
        elif mask is None and (queries != 1 or size is not filled):
            places_S = ops.arange(ops.shape(key_BNSH[:, :, :size])[2], dtype="int32")
            own_T1 = ops.expand_dims(filled - queries + ops.arange(queries, dtype="int32"), 1)
            allowed = ops.expand_dims(places_S <= own_T1, (0, 1))
        return _attend(attend, query_BNTH, key_BNSH[:, :, :size], value_BNSH[:, :, :size], allowed)

    if BACKEND == "jax" and not isinstance(filled, int):
        # Shapes are static: one of a few sizes, the first that holds all that is filled.
        room = key_BNSH.shape[2]
        sizes = [room >> shift for shift in range(4) if room >> shift >= 16] or [room]
        branch = sum((filled <= size).astype("int32") for size in sizes) - 1
        return jax.lax.switch(branch, [functools.partial(over, size) for size in sizes])
    if BACKEND == "tensorflow" and not _grows():
        return over(None)
    return over(filled)


def _attend(attend, query_BNTH, key_BNSH, value_BNSH, mask):
    """PyTorch's fused kernel: for few queries the fastest, in bfloat16 by far."""
    if BACKEND != "torch" or torch.is_grad_enabled():
        return attend(query_BNTH, key_BNSH, value_BNSH, mask)[0]
    bias = None
    if mask is not None:
        lowest = -3e4 if query_BNTH.dtype == torch.float16 else -1e9
        bias = torch.where(mask, 0.0, lowest).to(query_BNTH.dtype)
    if query_BNTH.device.type == "cpu":  # by name: to choose among kernels takes time, too
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return kernel(query_BNTH, key_BNSH, value_BNSH, attn_mask=bias)[0]
    return torch.nn.functional.scaled_dot_product_attention(
        query_BNTH, key_BNSH, value_BNSH, attn_mask=bias
    )


def gather(x: Any, indices: Any, axis: int) -> Any:
    """`ops.take_along_axis` of indices no less than 0, whose other axes may have size 1."""
    if BACKEND == "torch":
        shape = list(x.shape)
        shape[axis] = indices.shape[axis]
        return torch.gather(x, axis, indices.long().expand(shape))
    return ops.take_along_axis(x, indices, axis=axis)


def column(x_BL: Any, i: Any) -> Any:
    """`x_BL[:, i]`, where PyTorch's indexing would make a constant of a traced i: (B,)."""
    return x_BL.select(1, i) if BACKEND == "torch" else x_BL[:, i]


def top_k(x: Any, k: int) -> tuple[Any, Any]:
    """`ops.top_k` along the last axis, indices int32."""
    values, indices = ops.top_k(x, k)
    return values, ops.cast(indices, "int32")


def row_loop(body: Callable, length: Any, done_B: Any, found: Any, alive: Any) -> Any:
    """Calls `body` for i = 1 to `length` - 1, or until all rows are done.

    Args:
        body: `body(i, done_B, found, alive) -> done_B, found, alive`, a function of these alone;
            each row's results depend on that row alone, and no more change once it is done.
        length: most turns, plus one.
        done_B: which rows are done.
        found: tree of tensors (B, ...) that is wanted at the end.
        alive: tree of tensors (B, ...) that the loop needs beside it.

    Returns:
        `found`.
    """
    if BACKEND == "torch":
        return torch_graph.row_loop(body, length, done_B, found, alive)

    def go_on(i, done_B, found, alive):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def turn(i, done_B, found, alive):
        return i + 1, *body(i, done_B, found, alive)

    variables = (ops.convert_to_tensor(1, dtype="int32"), done_B, found, alive)
    if not _grows():
        return ops.while_loop(go_on, turn, variables)[2]

    def shape(x):  # caches grow along their third axis
        return tf.TensorShape([*x.shape[:2], None, x.shape[3]]) if len(x.shape) == 4 else x.shape

    invariants = keras.tree.map_structure(shape, variables)
    return tf.while_loop(go_on, turn, variables, shape_invariants=invariants)[2]


def smoothed_cross_entropy(logits_BTV: Any, labels_BT: Any, label_smoothing: float) -> Any:
    """-sum_v q(v) log p(v) a token, q = (1 - e) onehot(label) + e / V: (B, T) float32.

    With log Z = logsumexp(logits) it is log Z - (1 - e) logit[label] - e mean(logits), which
    builds no distribution over the vocabulary. PyTorch has a function for it: its autograd would
    keep eight copies of (tokens x vocabulary) of the formula, half the time of a small model.
    """
    if BACKEND == "torch":
        logits_BTV, labels_BT = ops.cast(logits_BTV, "float32"), ops.cast(labels_BT, "int64")
        loss_N = torch.nn.functional.cross_entropy(
            logits_BTV.reshape(-1, logits_BTV.shape[-1]),
            labels_BT.reshape(-1),
            reduction="none",
            label_smoothing=label_smoothing,
        )
        return loss_N.reshape(labels_BT.shape)
    return _cross_entropies(logits_BTV, labels_BT, label_smoothing)[0]


def projected_cross_entropy(
    hidden_BTD: Any, table_VD: Any, labels_BT: Any, label_smoothing: float, pad_id: int
) -> tuple[Any, Any]:
    """`smoothed_cross_entropy` of logits hidden @ table^T, with and without smoothing.

    Made for training: what a backend can save between the output projection and the loss, it
    saves. Labels that are `pad_id` get any finite number.

    Args:
        hidden_BTD: the last layer's output.
        table_VD: the output projection, of the same dtype.
        labels_BT: integers.
        label_smoothing: e.
        pad_id: of the labels that do not count.

    Returns:
        The smoothed loss (B, T), and the negative log-likelihood (B, T), which has no gradient.
    """
    if BACKEND == "torch" and hidden_BTD.device.type != "meta":
        return torch_kernels.projected_cross_entropy(
            hidden_BTD, table_VD, labels_BT, label_smoothing, pad_id
        )
    logits_BTV = ops.matmul(hidden_BTD, ops.transpose(table_VD))
    loss_BT, likelihood_BT = _cross_entropies(logits_BTV, labels_BT, label_smoothing)
    return loss_BT, ops.stop_gradient(likelihood_BT)


def _cross_entropies(logits_BTV, labels_BT, label_smoothing):
    logits_BTV = ops.cast(logits_BTV, "float32")
    labels_BT1 = ops.expand_dims(ops.cast(labels_BT, "int32"), -1)
    chosen_BT = ops.take_along_axis(logits_BTV, labels_BT1, axis=-1)[..., 0]
    likelihood_BT = ops.logsumexp(logits_BTV, axis=-1) - chosen_BT
    if not label_smoothing:
        return likelihood_BT, likelihood_BT
    mean_BT = ops.mean(logits_BTV, axis=-1)
    return likelihood_BT + label_smoothing * (chosen_BT - mean_BT), likelihood_BT


def adam_update(parameters, gradients, momentums, velocities, rate, step, beta_1, beta_2, epsilon):
    """One update of Adam in place, all tensors in one pass; PyTorch only."""
    steps = [torch.as_tensor(step, dtype=torch.float32, device=parameters[0].device)]
    torch._fused_adam_(
        parameters,
        gradients,
        momentums,
        velocities,
        [],
        steps * len(parameters),
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )


def compiled(function: Callable, model: keras.Model, varying_axes: int = 1) -> Callable:
    """`function` of tensors, run without gradients and compiled where the backend compiles.

    The model's weights are read at each call, so one compilation serves a model in training.

    Args:
        function: takes and returns trees of tensors; reads `model`'s variables.
        model: the model whose variables it reads.
        varying_axes: how many of the arguments' first axes may vary: PyTorch's graphs take any
            size of these and are traced anew for others. The first one is the same for all.
    """
    if BACKEND == "jax":

        @jax.jit
        def stateless(values, *arguments):
            mapping = list(zip(model.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arguments)

        return lambda *arguments: stateless(
            [variable.value for variable in model.variables], *arguments
        )
    if BACKEND == "tensorflow":
        return tf.function(function, reduce_retracing=True)
    return torch_graph.Traced(function, lambda: [v.value for v in model.variables], varying_axes)


def random_state() -> dict[str, np.ndarray]:
    """The backend's own random state beside Keras's seed generators: PyTorch's, by device."""
    if BACKEND != "torch":
        return {}
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states = torch.cuda.get_rng_state_all()
        state |= {f"cuda:{device}": value for device, value in enumerate(states)}
    return {device: value.numpy() for device, value in state.items()}


def set_random_state(state: dict[str, np.ndarray]) -> None:
    """Takes back what `random_state` gave; devices that are not here are left out."""
    if BACKEND != "torch":
        return
    for device, value in state.items():
        value = torch.from_numpy(np.array(value))
        if device == "cpu":
            torch.set_rng_state(value)
        elif torch.cuda.is_available() and int(device[5:]) < torch.cuda.device_count():
            torch.cuda.set_rng_state(value, int(device[5:]))
