"""Attention weights of a forward pass, recorded for plots."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Recorders(threading.local):
    active: tuple[dict[str, Any], ...] = ()  # per thread: calls in other threads are not recorded


_recorders = _Recorders()


@contextlib.contextmanager
def record_attention() -> Iterator[dict[str, Any]]:
    """Collect the attention weights of every layer called in the context, for plots.

    ```python
    with record_attention() as weights:
        model({"source_ids": source_ids, "target_ids": target_ids})
    weights["decoder/block_0/cross_attention"]  # (B, N, T, S), rows sum to 1
    ```

    Call the model itself: `predict` and `fit` run compiled code, from which nothing is collected.
    Calls in other threads are not collected.

    Yields:
        A dict from layer path to weights (B, N, T, S), filled by the calls.
    """
    weights: dict[str, Any] = {}
    outer = _recorders.active
    _recorders.active = (*outer, weights)
    try:
        yield weights
    finally:
        _recorders.active = outer


def is_recording() -> bool:
    """Return whether a `record_attention` is active in this thread."""
    return bool(_recorders.active)


def record(path: str, weights_BNTS: Any) -> None:
    """Give the weights of a layer to each active `record_attention`."""
    for recorder in _recorders.active:
        recorder[path] = weights_BNTS
