"""Boolean masks, True = attend, shaped to broadcast over attention weights (B, N, T, S)."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend import quick


def padding_mask(ids_BS: Any, pad_id: int = 0) -> Any:
    """Which key positions hold a token: (B, 1, 1, S).

    Args:
        ids_BS: token ids.
        pad_id: the id that pads.
    """
    return ops.expand_dims(ops.not_equal(ids_BS, pad_id), axis=(1, 2))


def length_mask(lengths_B: Any, key_length: Any) -> Any:
    """Which key positions stand before a row's end: (B, 1, 1, S).

    Args:
        lengths_B: of each row.
        key_length: S.
    """
    places_S = quick.arange(key_length, dtype="int32")
    return quick.expand_dims(places_S < quick.expand_dims(lengths_B, 1), (1, 2))


def segment_mask(query_segments_BT: Any, key_segments_BS: Any) -> Any:
    """Which keys are of the query's own segment: (B, 1, T, S). Padding is seen by none.

    Args:
        query_segments_BT, key_segments_BS: the number of each token's segment in its row, where
            several sequences share one; 0 for padding.
    """
    queries, keys = (
        ops.expand_dims(query_segments_BT, (1, 3)),
        ops.expand_dims(key_segments_BS, (1, 2)),
    )
    return ops.logical_and(ops.equal(queries, keys), ops.not_equal(keys, 0))


def causal_mask(query_length: Any, key_length: Any, index: Any = 0) -> Any:
    """Which keys a query may see, itself and all before it (section 3.2.3): (1, 1, T, S).

    Args:
        query_length: T.
        key_length: S.
        index: position of the first query among the keys; 0 but for cached decoding.
    """
    query_positions = quick.expand_dims(index + quick.arange(query_length, dtype="int32"), 1)
    key_positions = quick.expand_dims(quick.arange(key_length, dtype="int32"), 0)
    return quick.expand_dims(key_positions <= query_positions, (0, 1))


def segment_positions(segments_BT: Any) -> Any:
    """Return the position of each token in its own segment: (B, T) int32.

    Args:
        segments_BT: the number of each token's segment in its row; 0 for padding.
    """
    length = quick.shape(segments_BT)[1]
    before = causal_mask(length, length, index=-1)
    mine_B1TT = segment_mask(segments_BT, segments_BT) & before
    return quick.sum(quick.cast(mine_B1TT, "int32"), axis=-1)[:, 0]
