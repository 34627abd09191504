"""Decoding of real-valued frames, such as spectrograms: one group of frames per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_transformer.backend import quick, row_loop


def decode_frames(
    step: Callable, frames_BR: Any, stop_B: Any, state: Any, length: Any
) -> tuple[Any, Any]:
    """Predict frames from frames until each row stops (Li et al. 2019, section 3.6).

    Args:
        step: `step(frames_BR, state, index) -> frames_BR, stop_B, state`, from the values of one
            position to those of the next; `index` is the position of the former.
        frames_BR: Values of the first position.
        stop_B: Logit of the first position being the last one.
        state: Tree of tensors with B rows.
        length: L, maximum number of positions.

    Returns:
        Values (B, L, R), zeros after the end, and the number of positions of each row (B,), from 1
        to L.
    """
    rows, width = quick.shape(frames_BR)

    def turn(i, done_B, found, frames_BR, stop_B, state):
        here_L1 = quick.expand_dims(quick.arange(length, dtype="int32") == i, -1)
        writes_BL1 = here_L1 & quick.expand_dims(~done_B, (1, 2))
        values_BLR = quick.where(writes_BL1, frames_BR[:, None], found["values_BLR"])
        lengths_B = found["lengths_B"] + quick.cast(~done_B, "int32")
        done_B = done_B | (stop_B > 0)
        found = {"values_BLR": values_BLR, "lengths_B": lengths_B}
        return done_B, found, {"frames_BR": frames_BR, "state": state}

    def body(i, done_B, found, alive):
        return turn(i, done_B, found, *step(alive["frames_BR"], alive["state"], i - 1))

    found = {
        "values_BLR": quick.zeros((rows, length, width), dtype=frames_BR.dtype),
        "lengths_B": quick.zeros((rows,), dtype="int32"),
    }
    done_B = quick.zeros((rows,), dtype="bool")
    found = row_loop(body, length, *turn(0, done_B, found, frames_BR, stop_B, state))
    return found["values_BLR"], found["lengths_B"]
