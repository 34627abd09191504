"""The SSRU: a recurrence in place of a decoder's self-attention."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import linear_recurrence, quick
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.layer import Layer


@keras.saving.register_keras_serializable("keras_transformer")
class SSRU(Layer):
    """The simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and Back").

    f_t = sigmoid(x_t W_f + b_f), c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W), output relu(c_t).

    This is Marian's form, `transformer-decoder-autoreg: rnn` with `dec-cell: ssru`, in which the
    state starts at 0 and the output is not projected (class SSRU of `src/rnn/cells.h`, and
    `DecoderLayerRNN` of `src/models/transformer.h`). The kernels of `candidate` and `forget` are
    its `decoder_l1_rnn_W` and `decoder_l1_rnn_Wf`, the bias of `forget` is `decoder_l1_rnn_bf`. In
    a search, the state of a beam is one vector, whatever the length.

    Args:
        kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, D).
        attention_mask: Boolean, broadcasts to (B, N, T, T), see `MultiHeadAttention`. At each
            position that may not attend to the previous one, such as the first of a text in a
            packed row, the state is reset to 0. Ignored with a cache.
        cache: The cache that an earlier call returned, with a state for each of the T positions,
            (B, T, D): they are the beams of one position. None: no cache.

    Returns:
        The output (B, T, D) and the cache `{"state"}`: (B, D), or (B, T, D) with a cache; float32.
    """

    mask_sources = MappingProxyType({"attention_mask": "x"})

    def build(self, x_shape: Any) -> None:
        width, policy = x_shape[-1], self.dtype_policy
        self.candidate = Dense(width, use_bias=False, dtype=policy, name="candidate")
        self.forget = Dense(width, dtype=policy, name="forget")
        for layer in (self.candidate, self.forget):
            layer.build(x_shape)

    def call(
        self, x: Any, attention_mask: Any = None, cache: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        candidate_BTD = quick.cast(self.candidate(x), "float32")
        forget_BTD = quick.sigmoid(quick.cast(self.forget(x), "float32"))
        input_BTD = (1 - forget_BTD) * candidate_BTD
        if cache is not None:
            states_BTD = state = forget_BTD * cache["state"] + input_BTD
        else:
            if attention_mask is not None:
                forget_BTD = forget_BTD * _continues(attention_mask)
            states_BTD = linear_recurrence(forget_BTD, input_BTD)
            state = states_BTD[:, -1]
        return quick.cast(quick.maximum(states_BTD, 0), self.compute_dtype), {"state": state}


def _continues(mask):
    """Return 1 for positions that may attend to the previous one, else 0: (B, T, 1)."""
    mask_BTS = mask[:, 0]
    if mask_BTS.shape[1] == 1:  # a mask of keys
        seen_BT = mask_BTS[:, 0, :-1]
    else:
        seen_BT = ops.diagonal(mask_BTS, offset=-1, axis1=1, axis2=2)
    # 0 for the first position, which has no previous one.
    return quick.expand_dims(quick.cast(ops.pad(seen_BT, ((0, 0), (1, 0))), "float32"), -1)
