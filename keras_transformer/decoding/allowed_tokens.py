"""Shortlists: the part of a vocabulary from which each row of a search takes its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras import ops

NONE = -1  # fills the list of a row that may use fewer tokens than A


def allowed_ids(
    source_ids_BS: Any,
    candidates_VN: Any,
    frequent_F: Any,
    special_ids: Sequence[int],
    prefix_BP: Any = None,
    placed_ids: Sequence[int] = (),
) -> Any:
    """Return the ids of the tokens that each row may use, each once: (B, A) int32, padded with -1.

    The entries of padding may be anywhere in a row, except among the special ids.

    Args:
        source_ids_BS: Source ids.
        candidates_VN: Target ids for each source id, padded with -1.
        frequent_F: Target ids that every row may use.
        special_ids: First ids of every row's list, in this order.
        prefix_BP: Further ids of each row; None: no others.
        placed_ids: Ids that follow the special ones, in this order; -1 in rows that may not use
            them.
    """
    rows = ops.shape(source_ids_BS)[0]
    candidates_BSN = ops.take(candidates_VN, source_ids_BS, axis=0)
    size = candidates_VN.shape[1]
    parts = [ops.reshape(candidates_BSN, (rows, ops.shape(source_ids_BS)[1] * size))]
    parts.append(ops.tile(frequent_F[None], (rows, 1)))
    if prefix_BP is not None:
        parts.append(prefix_BP)
    sorted_BA = ops.sort(ops.concatenate([ops.cast(x, "int32") for x in parts], axis=1), axis=1)
    repeated = ops.equal(sorted_BA[:, 1:], sorted_BA[:, :-1])
    is_repeated_BA = ops.concatenate([ops.zeros_like(repeated[:, :1]), repeated], axis=1)
    first = [ops.tile(ops.convert_to_tensor([list(special_ids)], "int32"), (rows, 1))]
    for placed_id in placed_ids:
        is_used_B1 = ops.any(ops.equal(sorted_BA, placed_id), axis=1, keepdims=True)
        first.append(ops.cast(ops.where(is_used_B1, placed_id, NONE), "int32"))
    for known_id in (*special_ids, *placed_ids):
        is_repeated_BA = ops.logical_or(is_repeated_BA, ops.equal(sorted_BA, known_id))
    return ops.concatenate([*first, ops.where(is_repeated_BA, NONE, sorted_BA)], axis=1)


def places_of(ids_BP: Any, allowed_BA: Any) -> Any:
    """Return the index (B, P), int32, of each id in its row's list of allowed ids; 0 if absent."""
    same_BPA = ops.equal(ops.expand_dims(ids_BP, 2), ops.expand_dims(allowed_BA, 1))
    return ops.cast(ops.argmax(ops.cast(same_BPA, "int32"), axis=-1), "int32")
