"""Rounding of float32 numbers to bfloat16 that keeps their expected value."""

from __future__ import annotations

from typing import Any

from keras import ops

# Multipliers of the number of an element (Knuth's multiplicative hash, The Art of Computer
# Programming, volume 3, section 6.4) and of the turn (a Weyl sequence). The products overflow int32
# on purpose.
_OF_PLACES, _OF_TURNS = -1640531527, 1013904223


def stochastically_rounded(x: Any, turn: Any) -> Any:
    """Return x in bfloat16, rounded up or down with probabilities that keep its expected value.

    A moving average in bfloat16 needs this: with rounding to the nearest number, all steps of less
    than half a unit in the last place (at most 1/256 of the value) would be lost (Gupta et al.
    2015, "Deep Learning with Limited Numerical Precision", section 3.2). In place of random
    numbers, each element has a sequence that fills [0, 1) evenly over the turns.

    Args:
        x: Float32 tensor.
        turn: Number of the rounding, such as the number of an update: an integer scalar.
    """
    count = 1
    for size in x.shape:
        count *= size
    places = ops.arange(count, dtype="int32") * ops.cast(_OF_PLACES, "int32")
    turns = ops.cast(turn, "int32") * ops.cast(_OF_TURNS, "int32")
    # bfloat16 has the upper half of the bits of float32.
    fractions = ops.bitwise_and(ops.right_shift(places + turns, 16), 0xFFFF)
    bits = ops.view(ops.reshape(x, (-1,)), "int32") + fractions
    upper = ops.view(ops.bitwise_and(bits, -0x10000), "float32")
    return ops.reshape(ops.cast(upper, "bfloat16"), x.shape)
