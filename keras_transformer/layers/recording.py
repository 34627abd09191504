"""Attention weights of a forward pass, recorded for plots and alignments."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Recorders(threading.local):
    """The active `record_attention`s of a thread: for each, its weights and its `only`."""

    active: tuple[tuple[dict[str, Any], str | None], ...] = ()


_recorders = _Recorders()


@contextlib.contextmanager
def record_attention(only: str | None = None) -> Iterator[dict[str, Any]]:
    """Collect the attention weights of the layers called in the context, for plots.

    ```python
    with record_attention() as weights:
        model({"source_ids": source_ids, "target_ids": target_ids})
    weights["decoder/block_0/cross_attention"]  # (B, N, T, S), rows sum to 1
    ```

    Call the model itself: `predict` and `fit` usually run compiled code, from which nothing is
    collected. Calls in other threads are not collected. If a layer is called several times, the
    weights of its last call are kept.

    Args:
        only: Path of the one layer whose weights are collected; None: all layers.

    Yields:
        A dict from layer path to weights (B, N, T, S), filled by the calls.
    """
    weights: dict[str, Any] = {}
    outer = _recorders.active
    _recorders.active = (*outer, (weights, only))
    try:
        yield weights
    finally:
        _recorders.active = outer


def is_recorded(path: str) -> bool:
    """Return whether a `record_attention` in this thread collects the weights of a layer."""
    return any(only in (None, path) for _, only in _recorders.active)


def record(path: str, weights_BNTS: Any) -> None:
    """Give the weights of a layer to each active `record_attention`."""
    for weights, only in _recorders.active:
        if only in (None, path):
            weights[path] = weights_BNTS


def aligning_layer(num_layers: int) -> int:
    """Return the index of the decoder layer whose cross-attention aligns words best.

    It is the last layer but one, which Garg et al. 2019 ("Jointly Learning to Align and Translate
    with Transformer Models", section 4.1) find best of six. With one or two layers, it is the last.
    """
    return num_layers - 2 if num_layers > 2 else num_layers - 1
