"""Positions that the blocks of a stack share."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Decoder, Encoder

ROTARY = dict(head_dim=4)


def test_the_length_at_which_rates_change():
    scaling = dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=9)
    by_layer = [dict(rotary=ROTARY | dict(scaling=scaling)), {}]
    layer = Decoder(2, 2, 16, rotary=ROTARY, by_layer=by_layer)
    assert (layer.length_limit, layer.length_scaling) == (9, "dynamic")
    layer = Decoder(2, 2, 16, rotary=ROTARY)
    assert (layer.length_limit, layer.length_scaling) == (None, None)


def test_own_positions_need_positions():
    with pytest.raises(ValueError, match="relative_by_layer must be False without relative_posit"):
        Encoder(2, 2, 16, relative_by_layer=True)


@pytest.mark.parametrize("options", [dict(relative_positions=(8, 16)), dict(rotary=ROTARY)])
def test_the_beams_of_a_position_have_one_position(options):
    layer = Decoder(2, 2, 16, **options)
    layer.build((None, None, 8))
    apart = layer._biases_and_rotations(ops.zeros((1, 3, 8)), index=5)
    together = layer._biases_and_rotations(ops.zeros((1, 6, 8)), index=5, beam_size=2)
    (bias, _), (rotation, _) = map(numpy_tree, apart)
    (shared, _), (repeated, _) = map(numpy_tree, together)
    if bias is not None:  # of three queries and the keys of all beams
        np.testing.assert_allclose(shared, np.repeat(bias, 2, axis=-1), rtol=1e-6)
    else:
        np.testing.assert_allclose(repeated, np.repeat(rotation, 2, axis=-2), rtol=1e-6)


def numpy_tree(values):
    return [
        None if x is None else np.array([numpy(y) for y in keras.tree.flatten(x)]) for x in values
    ]


def numpy(x):
    return ops.convert_to_numpy(ops.stop_gradient(x))


def test_the_papers_stacks_have_no_positions():
    layer = Encoder(2, 2, 16)
    layer.build((None, None, 8))
    assert layer._biases_and_rotations(ops.zeros((1, 3, 8))) == ([None] * 2, [None] * 2)
