"""Sequences of different lengths that are continued together, each in its row of one cache."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend import mask_bias, quick
from keras_transformer.layers.layer import direct_calls
from keras_transformer.models.decoder_only import DecoderOnly


def longest(model: DecoderOnly) -> int:
    """Return the maximum number of tokens of a sequence for `extend`.

    It is the model's `max_length`, but not more than the length up to which its rotary rates are
    constant: cached keys have the rates of short sequences.
    """
    limit = model.decoder.length_limit
    return model.config.max_length if limit is None else min(model.config.max_length, limit)


def new_caches(model: DecoderOnly, rows: int, places: int) -> list[dict[str, Any]]:
    """Return empty caches of keys and values for `extend`, one for each block.

    Args:
        model: The model.
        rows: B, the number of sequences.
        places: S, the maximum number of tokens of a sequence.

    Raises:
        NotImplementedError: If the model has relative positions, or linear attention.
        ValueError: If the model is bidirectional.
    """
    model.require_causal()
    if model.decoder.has_relative_bias:
        raise NotImplementedError(
            "model must not have relative positions to continue several sequences at once"
        )
    caches = []
    for block in model.decoder.blocks:
        layer = block.self_attention
        if layer.options.kernel:
            raise NotImplementedError(
                "model must not have linear attention to continue several sequences at once"
            )
        shape = rows, layer.num_kv_heads, places, layer.head_dim
        part = {name: ops.zeros(shape, dtype=layer.compute_dtype) for name in ("key", "value")}
        caches.append({"self": part})
    return caches


def extend(
    model: DecoderOnly, token_ids_BT: Any, caches: Any, index_B: Any, predicts: bool = True
) -> tuple[Any, Any]:
    """Process T further tokens of each sequence.

    Token p of a sequence has its key and value at place p of the caches, even in a model with a
    window. To cut a sequence, call with a lower index.

    Args:
        model: The model.
        token_ids_BT: The tokens, int32.
        caches: The caches from `new_caches` or the last call; each row must have room for its
            index + T tokens. On PyTorch they are changed in place.
        index_B: Number of tokens that each sequence has in the caches, int32.
        predicts: Whether to compute the logits.

    Returns:
        The logits (B, T, V), or None, and the caches.
    """
    index_B = ops.convert_to_tensor(index_B, dtype="int32")
    token_ids_BT = ops.convert_to_tensor(token_ids_BT, dtype="int32")
    length, places = token_ids_BT.shape[1], quick.shape(caches[0]["self"]["key"])[2]
    if length is None:
        length = quick.shape(token_ids_BT)[1]
    positions_BT = quick.expand_dims(index_B, 1) + quick.arange(length, dtype="int32")
    windows = [block.options.window for block in model.decoder.blocks]
    visible = {window: _visible(positions_BT, places, window) for window in set(windows)}
    masks = {
        window: mask_bias(quick.expand_dims(mask_BTS, 1), model.compute_dtype)
        for window, mask_BTS in visible.items()
    }
    mask = masks[windows[0]] if len(masks) == 1 else [masks[window] for window in windows]
    # Padding tokens may be beyond the last position.
    positions_BT = ops.minimum(positions_BT, longest(model) - 1)
    with direct_calls(model.decoder):
        x, caches = model.decoder(
            model.embedding(token_ids_BT, positions=positions_BT),
            attention_mask=mask,
            cache=caches,
            index=index_B,
            positions=positions_BT,
        )
        return (model._project(x) if predicts else None), caches


def _visible(positions_BT, places, window):
    """Return which places each token may attend to: its own and earlier ones in its window."""
    position_BT1 = quick.expand_dims(positions_BT, 2)
    places_S = quick.arange(places, dtype="int32")
    visible_BTS = places_S <= position_BT1
    return visible_BTS if window is None else visible_BTS & (places_S > position_BT1 - window)
