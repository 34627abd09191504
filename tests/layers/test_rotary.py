"""Rotary positions: the equation in NumPy, products that depend on distance alone, bad input."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Rotary, rotate
from keras_transformer.layers.rotary import rates

H = 8


def rotated(x, positions, **options):
    rotation = Rotary(H, **options)(ops.convert_to_tensor(positions))
    return ops.convert_to_numpy(rotate(ops.convert_to_tensor(x), rotation))


def test_the_equation(rng):
    x = rng.standard_normal((2, 3, 5, H)).astype("float32")
    positions = np.array([0, 1, 2, 7, 30], "int32")
    # Each pair is a complex number, which is multiplied by e^(i angle).
    pairs = x[..., : H // 2] + 1j * x[..., H // 2 :]
    angles = positions[:, None] * 100.0 ** (-2 * np.arange(H // 2) / H)
    turned = pairs * np.exp(1j * angles)
    expected = np.concatenate([turned.real, turned.imag], axis=-1)
    np.testing.assert_allclose(rotated(x, positions, theta=100.0), expected, atol=1e-5)


def test_products_depend_on_distance_alone(rng):
    query, key = rng.standard_normal((2, 1, 1, 1, H)).astype("float32")
    products = []
    for start in (0, 5, 100):
        q = rotated(query, np.array([start + 3], "int32"))
        k = rotated(key, np.array([[start]], "int32"))
        products.append(float((q * k).sum()))
    assert products[1] == pytest.approx(products[0], abs=1e-4)
    assert products[2] == pytest.approx(products[0], abs=1e-4)


def test_scaling():
    plain, factor = rates(H, 100.0, None)
    assert factor == 1.0
    linear, _ = rates(H, 100.0, dict(rope_type="linear", factor=4.0))
    np.testing.assert_allclose(linear, plain / 4)
    numbers = dict(factor=4.0, original_max_position_embeddings=32)
    for options in (
        dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0, **numbers),
        dict(rope_type="yarn", **numbers),
    ):
        found, factor = rates(H, 100.0, options)
        # The fast ones stay, the slow ones are slowed, none beyond.
        assert found[0] == pytest.approx(plain[0])
        assert found[-1] == pytest.approx(plain[-1] / 4)
        assert np.all(found <= plain) and np.all(found >= plain / 4)
        assert factor == (1.0 if options["rope_type"] == "llama3" else pytest.approx(1.13863))


def test_config_and_bad_input():
    scaling = dict(rope_type="linear", factor=2.0)
    layer = Rotary(H, 500.0, scaling)
    assert Rotary.from_config(layer.get_config()).get_config() == layer.get_config()
    with pytest.raises(ValueError, match="head_dim must be even for rotary positions, got 7"):
        Rotary(7)
    with pytest.raises(ValueError, match="rope_type of scaling must be one of .*, got 'x'"):
        Rotary(H, scaling=dict(rope_type="x"))
    with pytest.raises(ValueError, match=r"of rope_type 'linear' must have \['factor'\]"):
        Rotary(H, scaling=dict(rope_type="linear"))
