"""Search steps without a cache: each is a full pass over all tokens so far.

Rotary positions with "dynamic" scaling need them: beyond the original length, each new token
changes the rates, and with them the keys and values of earlier tokens.
"""

from __future__ import annotations

from typing import Any

import keras

from keras_transformer.backend import gather, quick


def prefill(
    model: Any, token_ids_BP: Any, length: Any, beam_size: int, segments_BP: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the hidden states (B, 1, D) of the last tokens, and the state.

    Arguments are those of `DecoderOnly.prefill`.
    """
    token_ids_BP = keras.ops.convert_to_tensor(token_ids_BP, dtype="int32")
    if segments_BP is None:
        segments_BP = quick.ones_like(token_ids_BP)
    hidden = model.compute_hidden({"token_ids": token_ids_BP, "segments": segments_BP})
    prompt = quick.shape(token_ids_BP)[1]
    later_BR = quick.repeat(quick.ones_like(token_ids_BP[:, :1]), length - prompt, axis=1)
    ids_BM = quick.concatenate([token_ids_BP, quick.zeros_like(later_BR)], axis=1)
    ids_BKM = quick.repeat(quick.expand_dims(ids_BM, 1), beam_size, axis=1)
    segments_BM = quick.concatenate([segments_BP, later_BR], axis=1)
    return hidden[:, -1:], {"ids_BKM": ids_BKM, "segments_BM": segments_BM}


def step(
    model: Any, token_ids_BK: Any, state: dict[str, Any], index: Any, ancestors_BKM: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the hidden states (B, K, D) of one token per beam, and the new state.

    Arguments are those of `DecoderOnly.step`.
    """
    ids_BKM, segments_BM = state["ids_BKM"], state["segments_BM"]
    beam_size = token_ids_BK.shape[1]
    positions_M = quick.arange(quick.shape(ids_BKM)[2], dtype="int32")
    ids_BKM = quick.where(positions_M == index, quick.expand_dims(token_ids_BK, -1), ids_BKM)
    beam_ids_BKM = ids_BKM
    if ancestors_BKM is not None:
        slots_BKM = quick.maximum(ancestors_BKM, 0)
        beam_ids_BKM = gather(ids_BKM, slots_BKM, axis=1)
    now_BM = quick.where(positions_M <= index, segments_BM, 0)
    if isinstance(index, int):  # in eager execution, later positions are left out
        beam_ids_BKM, now_BM = beam_ids_BKM[:, :, : index + 1], now_BM[:, : index + 1]
    rows, length = quick.shape(now_BM)
    inputs = {
        "token_ids": quick.reshape(beam_ids_BKM, (rows * beam_size, length)),
        "segments": quick.repeat(now_BM, beam_size, axis=0),
    }
    hidden = model.compute_hidden(inputs)[:, index]
    hidden = quick.reshape(hidden, (rows, beam_size, hidden.shape[-1]))
    return hidden, {**state, "ids_BKM": ids_BKM}
