"""Which cases of a test run under which backend."""

import os

import keras

BACKEND = keras.backend.backend()
# PyTorch starts and compiles soonest, so it runs every case; the others those that differ there.
# The variable KT_EVERY_CASE=1 lets each backend run every case.
EVERY_CASE = BACKEND == "torch" or os.environ.get("KT_EVERY_CASE") == "1"
# Each writes what the next one reads, so that among them they all read each other's files.
NEXT = {"torch": "jax", "jax": "tensorflow", "tensorflow": "torch"}


def cases(every, *elsewhere):
    """All of these cases if `EVERY_CASE`, else those that are named."""
    assert set(elsewhere) <= set(every), elsewhere
    return list(every) if EVERY_CASE else list(elsewhere)
