"""Linear recurrences over the positions of a sequence."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND

if BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch


def linear_recurrence(decay_BTD: Any, input_BTD: Any) -> Any:
    """Return c_t = a_t c_(t-1) + b_t for each position t, where c_(-1) = 0: (B, T, D).

    It computes one position after another. `keras.ops.associative_scan` (Keras 3.15) takes up to 25
    times as long on PyTorch, twice as long on JAX, and needs a known length on TensorFlow, as does
    `keras.ops.scan`.

    Args:
        decay_BTD: a, the factors of the earlier states.
        input_BTD: b, the terms that are added.
    """
    if BACKEND == "torch":
        decays, inputs = decay_BTD.unbind(1), input_BTD.unbind(1)
        states = [inputs[0]]
        for decay_BD, input_BD in zip(decays[1:], inputs[1:], strict=True):
            states.append(torch.addcmul(input_BD, decay_BD, states[-1]))
        return torch.stack(states, 1)
    first_BD = ops.zeros_like(input_BTD[:, 0])
    by_position = [ops.transpose(x, (1, 0, 2)) for x in (decay_BTD, input_BTD)]
    if BACKEND == "tensorflow":
        states = tf.scan(lambda state, x: x[0] * state + x[1], by_position, first_BD)
    else:
        _, states = ops.scan(lambda state, x: (x[0] * state + x[1],) * 2, first_BD, by_position)
    return ops.transpose(states, (1, 0, 2))
