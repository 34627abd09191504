"""A learned attention bias for the distance of two positions (Raffel et al. 2020, 2.1)."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import constant, quick
from keras_transformer.layers.layer import Layer, claim, initializer


def distance_buckets(num_buckets: int, max_distance: int) -> np.ndarray:
    """Return the bucket of each distance from 0 to `max_distance`.

    Each bucket in the first half holds one distance; the others hold ranges that grow
    logarithmically. The caller puts longer distances into the bucket of `max_distance`, the last.

    Args:
        num_buckets: Number of buckets.
        max_distance: Longest distance that is returned.

    Returns:
        (max_distance + 1,) int32.
    """
    claim(max_distance + 1)
    exact = num_buckets // 2
    distances = np.arange(max_distance + 1)
    # float32, as in T5's training: its rounding decides at the edges of buckets.
    far = np.log(np.maximum(distances, 1).astype("float32") / np.float32(exact))
    scaled = far / np.float32(math.log(max_distance / exact))
    far = exact + (scaled * (num_buckets - exact)).astype("int32")
    return np.where(distances < exact, distances, np.minimum(far, num_buckets - 1)).astype("int32")


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeBias(Layer):
    """T5's positions: a bias b[bucket(s - t)], a learned number per head and distance bucket.

    Args:
        num_heads: N.
        num_buckets: Number of distance buckets; half of them for each direction if
            `bidirectional`.
        max_distance: This distance and all longer ones share a bucket.
        bidirectional: Whether keys later than the query have separate buckets; if not, they are
            in the bucket of distance 0.

    Call arguments:
        query_positions: (T,) int32.
        key_positions: (S,) int32.

    Returns:
        (1, N, T, S), to add to the products of queries and keys.

    Raises:
        ValueError: If `num_buckets` is odd or below 4, or `max_distance` is not above half of it.
    """

    whole_arguments = ("query_positions", "key_positions")

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        **kwargs: Any,
    ):
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
            num_buckets,
            num_heads,
            embeddings_initializer=initializer("uniform"),
            dtype=self.dtype_policy,
            name="embedding",
        )

    def build(self, query_positions_shape: Any = None, key_positions_shape: Any = None) -> None:
        self.embedding.build()

    def call(self, query_positions: Any, key_positions: Any) -> Any:
        offset_TS: Any = 0
        ahead_TS = quick.expand_dims(key_positions, 0) - quick.expand_dims(query_positions, 1)
        if self.options["bidirectional"]:
            offset_TS = quick.where(ahead_TS > 0, self.half, 0)
            distance_TS = keras.ops.abs(ahead_TS)
        else:
            distance_TS = quick.maximum(-ahead_TS, 0)
        distance_TS = keras.ops.minimum(distance_TS, self.options["max_distance"])
        buckets_TS = quick.take(constant(self.buckets), distance_TS, axis=0)
        bias_TSN = self.embedding(buckets_TS + offset_TS)
        return quick.expand_dims(quick.transpose(bias_TSN, (2, 0, 1)), 0)
