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


DYNAMIC = dict(rope_type="dynamic", factor=4.0, original_max_position_embeddings=6)
LONG = dict(
    rope_type="longrope", factor=4.0, original_max_position_embeddings=6,
    short_factor=[1.0, 1.5, 2.0, 2.5], long_factor=[2.0, 3.0, 5.0, 8.0],
)  # fmt: skip


@pytest.mark.parametrize("scaling", [DYNAMIC, LONG], ids=lambda x: x["rope_type"])
def test_rates_by_the_length(scaling):
    """Rates follow the length of each row's sequence, or of each token's if several share a row."""
    layer = Rotary(H, 100.0, scaling)
    assert layer.limit == 6
    assert Rotary(H, 100.0).limit is None
    for lengths in ([[6], [9]], [[3, 6, 7], [7, 12, 20]]):
        positions = np.array([[0, 1, 2], [3, 4, 8]], "int32")
        given = ops.convert_to_tensor(np.array(lengths, "int32"))
        cos, sin = layer(ops.convert_to_tensor(positions), lengths=given)
        for (b, t), length in np.ndenumerate(np.broadcast_to(lengths, (2, 3))):
            rate, factor = rates(H, 100.0, scaling, int(length))
            angle = positions[b, t] * rate
            for found, expected in ((cos, np.cos(angle)), (sin, np.sin(angle))):
                found = ops.convert_to_numpy(found)[b, 0, t]
                np.testing.assert_allclose(found, expected * factor, atol=1e-5)
    # Without them, of the row's last position.
    positions = ops.convert_to_tensor(np.array([[0, 5], [5, 8]], "int32"))
    lengths = ops.convert_to_tensor(np.array([[6], [9]], "int32"))
    for one, other in zip(layer(positions), layer(positions, lengths=lengths), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_theta_grows_by_the_formula():
    """Theta times (factor * length / original - factor + 1)^(H / (H - 2))."""
    theta = 100.0 * (4.0 * 9 / 6 - 3) ** (H / (H - 2))
    expected = theta ** (-np.arange(0, H, 2) / H)
    np.testing.assert_allclose(rates(H, 100.0, DYNAMIC, 9)[0], expected, rtol=1e-12)
    np.testing.assert_array_equal(rates(H, 100.0, DYNAMIC, 6)[0], rates(H, 100.0, None)[0])


@pytest.mark.parametrize(
    "scaling,message",
    [
        (LONG | dict(short_factor=[1.0]), "short_factor of scaling must have 4 numbers, .* got 1"),
        (LONG | dict(long_factor=[1, 2, 3, 0]), "long_factor of scaling must be a list of numbers"),
        (LONG | dict(long_factor=2.0), "long_factor of scaling must be a list of .*, got 2.0"),
        (
            LONG | dict(original_max_position_embeddings=1),
            "original_max_position_embeddings of scaling must be above 1 for rope_type 'longrope'",
        ),
        (LONG | dict(attention_factor="1"), "attention_factor of scaling must be a number of at"),
        (DYNAMIC | dict(factor=0), "factor of scaling must be a number above 0, got 0"),
    ],
)
def test_scalings_by_length_that_cannot_be(scaling, message):
    with pytest.raises(ValueError, match=message):
        Rotary(H, 100.0, scaling)
    with pytest.raises(ValueError, match="head_dim must be above 2 for rope_type 'dynamic', got 2"):
        Rotary(2, scaling=DYNAMIC)


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
