"""Which cases of a test run under which backend."""

import keras

BACKEND = keras.backend.backend()
# PyTorch starts and compiles soonest, so it runs every case; the others those that differ there.
EVERY_CASE = BACKEND == "torch"
# Each writes what the next one reads, so that among them they all read each other's files.
NEXT = {"torch": "jax", "jax": "tensorflow", "tensorflow": "torch"}


def cases(every, *elsewhere):
    """All of these cases under PyTorch; under the other backends those that are named."""
    assert set(elsewhere) <= set(every), elsewhere
    return list(every) if EVERY_CASE else list(elsewhere)
