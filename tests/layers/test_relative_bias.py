"""Relative positions: distances, their buckets, and what attention adds for them."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import RelativeBias
from keras_transformer.layers.relative_bias import distance_buckets


def test_buckets_grow_logarithmically():
    # By hand: 8 buckets up to distance 16; 4 exact ones, then 4 + floor(4 log(d / 4) / log 4).
    expected = [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7]
    assert distance_buckets(8, 16).tolist() == expected


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_depends_on_the_distance_alone(rng, bidirectional):
    layer = RelativeBias(3, num_buckets=8, max_distance=6, bidirectional=bidirectional)
    layer.build()
    table = rng.standard_normal((8, 3)).astype("float32")
    layer.set_weights([table])
    queries, keys = np.array([4, 5], "int32"), np.arange(9, dtype="int32")
    bias = ops.convert_to_numpy(layer(ops.convert_to_tensor(queries), ops.convert_to_tensor(keys)))
    assert bias.shape == (1, 3, 2, 9)
    np.testing.assert_array_equal(bias[0, :, 0, :8], bias[0, :, 1, 1:])
    buckets = distance_buckets(4 if bidirectional else 8, 6)
    for key in keys:
        ahead = key - 4
        bucket = buckets[min(abs(ahead), 6)] + 4 * (ahead > 0)
        if not bidirectional:
            bucket = buckets[min(max(-ahead, 0), 6)]
        np.testing.assert_array_equal(bias[0, :, 0, key], table[bucket])


def test_round_trip():
    layer = RelativeBias(3, num_buckets=8, max_distance=6, bidirectional=False, name="bias")
    again = RelativeBias.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(num_buckets=2), "num_buckets must be even and at least 4, got 2"),
        (dict(num_buckets=8, max_distance=4), "max_distance must be above num_buckets / 2 = 4"),
    ],
)
def test_bad_sizes(options, message):
    with pytest.raises(ValueError, match=message):
        RelativeBias(3, **options)
