"""A learned attention bias by the distance of two positions (Raffel et al. 2020, section 2.1)."""

from __future__ import annotations

import math

import keras
import numpy as np

from keras_transformer.backend import quick
from keras_transformer.layers.layer import Layer


def distance_buckets(num_buckets: int, max_distance: int) -> np.ndarray:
    """The bucket of each distance from 0 to `max_distance`, all beyond being in the last.

    The first half of the buckets are for one distance each, the others for ever more of them,
    logarithmically.

    Returns:
        (max_distance + 1,) int32.
    """
    exact = num_buckets // 2
    distances = np.arange(max_distance + 1)
    # In float32, which decides at the edges of buckets, as where T5 was trained.
    far = np.log(np.maximum(distances, 1).astype("float32") / np.float32(exact))
    scaled = far / np.float32(math.log(max_distance / exact))
    far = exact + (scaled * (num_buckets - exact)).astype("int32")
    return np.where(distances < exact, distances, np.minimum(far, num_buckets - 1)).astype("int32")


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeBias(Layer):
    """b[bucket(s - t)], a learned number for each head and bucket of distances; T5's positions.

    Args:
        num_heads: N.
        num_buckets: of distances; half of them for each direction if `bidirectional`.
        max_distance: distances from here on share a bucket.
        bidirectional: whether keys after the query have buckets of their own; else they have
            that of distance 0.

    Call arguments:
        query_positions: (T,) int32.
        key_positions: (S,) int32.

    Returns:
        (1, N, T, S), to be added to the products of queries and keys.

    Raises:
        ValueError: if there are fewer than 4 buckets, or `max_distance` has one of its own.
    """

    def __init__(self, num_heads, num_buckets=32, max_distance=128, bidirectional=True, **kwargs):
        super().__init__(**kwargs)
        self.options = dict(
            num_heads=num_heads,
            num_buckets=num_buckets,
            max_distance=max_distance,
            bidirectional=bidirectional,
        )
        if num_buckets < 4 or num_buckets % 2:
            raise ValueError(f"num_buckets must be even and at least 4, got {num_buckets}")
        if max_distance <= num_buckets // 2:
            raise ValueError(
                f"max_distance must be above num_buckets / 2 = {num_buckets // 2}, got "
                f"{max_distance}"
            )
        self.half = num_buckets // 2 if bidirectional else num_buckets
        self.buckets = distance_buckets(self.half, max_distance)
        self.embedding = keras.layers.Embedding(
            num_buckets, num_heads, dtype=self.dtype_policy, name="embedding"
        )

    def build(self, query_positions_shape=None, key_positions_shape=None):
        self.embedding.build()

    def call(self, query_positions, key_positions):
        ahead_TS = quick.expand_dims(key_positions, 0) - quick.expand_dims(query_positions, 1)
        if self.options["bidirectional"]:
            offset_TS = quick.where(ahead_TS > 0, self.half, 0)
            distance_TS = keras.ops.abs(ahead_TS)
        else:
            offset_TS, distance_TS = 0, quick.maximum(-ahead_TS, 0)
        distance_TS = keras.ops.minimum(distance_TS, self.options["max_distance"])
        buckets = keras.ops.convert_to_tensor(self.buckets)
        bias_TSN = self.embedding(quick.take(buckets, distance_TS, axis=0) + offset_TS)
        return quick.expand_dims(quick.transpose(bias_TSN, (2, 0, 1)), 0)

    def get_config(self):
        return {**super().get_config(), **self.options}
