"""Decoding of real-valued frames, such as spectrograms: one group of frames per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_transformer.backend import quick, row_loop


def decode_frames(
    step: Callable, frames_BR: Any, stop_B: Any, state: Any, length: Any
) -> tuple[Any, Any]:
    """Predict each group of frames from the previous one, until each row stops.

    See Li et al. 2019, section 3.6.

    Args:
        step: `step(frames_BR, state, index) -> frames_BR, stop_B, state`, which predicts the next
            position from the values at position `index`.
        frames_BR: Values of the first position, R in all: the frames of its group.
        stop_B: Logits that the first position is the last one; a row stops above 0.
        state: Tree of tensors with B rows.
        length: L, maximum number of positions.

    Returns:
        Values (B, L, R), zeros after the end, and the number of positions of each row (B,), from 1
        to L.
    """
    rows, width = quick.shape(frames_BR)

    def write(i, done_B, results, frames_BR, stop_B, state):
        here_L1 = quick.expand_dims(quick.arange(length, dtype="int32") == i, -1)
        writes_BL1 = here_L1 & quick.expand_dims(~done_B, (1, 2))
        values_BLR = quick.where(writes_BL1, frames_BR[:, None], results["values_BLR"])
        lengths_B = results["lengths_B"] + quick.cast(~done_B, "int32")
        done_B = done_B | (stop_B > 0)
        results = {"values_BLR": values_BLR, "lengths_B": lengths_B}
        return done_B, results, {"frames_BR": frames_BR, "state": state}

    def turn(i, done_B, results, alive):
        return write(i, done_B, results, *step(alive["frames_BR"], alive["state"], i - 1))

    results = {
        "values_BLR": quick.zeros((rows, length, width), dtype=frames_BR.dtype),
        "lengths_B": quick.zeros((rows,), dtype="int32"),
    }
    done_B = quick.zeros((rows,), dtype="bool")
    results = row_loop(turn, length, *write(0, done_B, results, frames_BR, stop_B, state))
    return results["values_BLR"], results["lengths_B"]
