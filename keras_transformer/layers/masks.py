"""Boolean masks, True = attend, that broadcast to (B, N, T, S); positions in segments."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend import quick


def padding_mask(ids_BS: Any, pad_id: int = 0) -> Any:
    """Return which key positions hold a token: (B, 1, 1, S).

    Args:
        ids_BS: Token ids.
        pad_id: Id of the padding token.
    """
    return ops.expand_dims(ops.not_equal(ids_BS, pad_id), axis=(1, 2))


def length_mask(lengths_B: Any, key_length: Any) -> Any:
    """Return which key positions are within the length of their row: (B, 1, 1, S).

    Args:
        lengths_B: Number of positions of each row that are not padding.
        key_length: S.
    """
    positions_S = quick.arange(key_length, dtype="int32")
    return quick.expand_dims(positions_S < quick.expand_dims(lengths_B, 1), (1, 2))


def segment_mask(query_segments_BT: Any, key_segments_BS: Any) -> Any:
    """Return which keys are in the query's segment: (B, 1, T, S). No query sees padding.

    Args:
        query_segments_BT, key_segments_BS: Segment number of each token in its row, where several
            sequences share a row; 0 for padding.
    """
    queries, keys = (
        ops.expand_dims(query_segments_BT, (1, 3)),
        ops.expand_dims(key_segments_BS, (1, 2)),
    )
    return ops.logical_and(ops.equal(queries, keys), ops.not_equal(keys, 0))


def causal_mask(query_length: Any, key_length: Any, index: Any = 0) -> Any:
    """Return which keys a query may see: itself and earlier ones (section 3.2.3): (1, 1, T, S).

    Attention layers compute this mask themselves (`backend.chunked.Pattern`).

    Args:
        query_length: T.
        key_length: S.
        index: Position of the first query among the keys, such as the number of cached tokens.
    """
    query_positions = quick.expand_dims(index + quick.arange(query_length, dtype="int32"), 1)
    key_positions = quick.expand_dims(quick.arange(key_length, dtype="int32"), 0)
    return quick.expand_dims(key_positions <= query_positions, (0, 1))


def segment_lengths(segments_BT: Any) -> Any:
    """Return the number of tokens in the segment of each token: (B, T) int32; 0 for padding.

    Args:
        segments_BT: Segment number of each token in its row; 0 for padding.
    """
    same_B1TT = segment_mask(segments_BT, segments_BT)
    return quick.sum(quick.cast(same_B1TT, "int32"), axis=-1)[:, 0]


def segment_positions(segments_BT: Any) -> Any:
    """Return the position of each token within its segment: (B, T) int32; 0 for padding.

    Args:
        segments_BT: Segment number of each token in its row; 0 for padding.
    """
    length = quick.shape(segments_BT)[1]
    earlier = causal_mask(length, length, index=-1)
    same_B1TT = segment_mask(segments_BT, segments_BT) & earlier
    return quick.sum(quick.cast(same_B1TT, "int32"), axis=-1)[:, 0]
