"""A mixture of experts against its equation, token by token."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import MixtureOfExperts
from keras_transformer.layers.blocks import in_blocks
from tests.backends import BACKEND

numpy = ops.convert_to_numpy


def silu(x):
    return x / (1 + np.exp(-x))


def weights_of(layer):
    return {weight.name: numpy(weight).astype("float64") for weight in layer.weights}


def routed(x_D, router, count, normalize):
    """The experts of one token, and their weights."""
    logits = x_D @ router
    probabilities = np.exp(logits) / np.exp(logits).sum()
    chosen = np.argsort(-probabilities)[:count]
    return chosen, probabilities[chosen] / (probabilities[chosen].sum() if normalize else 1)


WAYS = {  # tokens, experts, and the rows of a block
    "few": (1, 16, 1),
    "all": (6, 8, None),
    "blocks": (260, 32, 17),
}


@pytest.mark.parametrize("gated,normalize", [(True, True), (False, False)])
@pytest.mark.parametrize("way", WAYS)
def test_each_token_uses_its_experts(rng, randomize, way, gated, normalize):
    num_tokens, num_experts, num_rows = WAYS[way]
    x = rng.standard_normal((1, num_tokens, 6)).astype("float32")
    layer = MixtureOfExperts(5, num_experts, "silu", gated=gated, normalize_routing=normalize)
    layer.build(x.shape)
    randomize(layer)
    assert layer._block_rows(num_tokens) == num_rows
    values, expected = weights_of(layer), np.zeros(x.shape)
    for place in np.ndindex(x.shape[:2]):
        chosen, weights = routed(x[place], values["router"], 2, normalize)
        for e, weight in zip(chosen, weights, strict=True):
            hidden = silu(x[place] @ values["experts_hidden"][e])
            if gated:
                hidden = hidden * (x[place] @ values["experts_gate"][e])
            expected[place] += weight * (hidden @ values["experts_output"][e])
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-4)


def test_both_ways_have_the_same_gradients(rng, randomize, monkeypatch):
    """One step of SGD changes all weights alike, also if one expert has hardly any tokens."""
    x = rng.standard_normal((2, 150, 6)).astype("float32")
    x[..., 0] = 1
    layer = MixtureOfExperts(5, 12, "silu", gated=True)
    model = randomize(keras.Sequential([keras.Input(x.shape[1:]), layer]))
    router = numpy(layer.router).copy()
    router[0, 3] = -50
    layer.router.assign(router)
    before, results = model.get_weights(), []
    for rows in (25, 50, None):
        monkeypatch.setattr(layer, "_block_rows", lambda _, rows=rows: rows)
        model.set_weights(before)
        # TensorFlow's graph does not know the number of tokens.
        model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=BACKEND == "tensorflow")
        model.fit(x, x, batch_size=2, verbose=0)
        results.append(model.get_weights())
    for values in zip(before, *results, strict=True):
        assert np.abs(values[0] - values[1]).max() > 1e-4
        for other in values[2:]:
            np.testing.assert_allclose(other, values[1], atol=1e-5)


def test_the_loss_that_balances_experts(rng, randomize):
    """Equations 4 to 6 of Fedus et al. 2021, with a token's two experts each counted."""
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = MixtureOfExperts(10, 4, balance_loss=0.5)
    layer.build(x.shape)
    randomize(layer)
    layer(x)
    assert not layer.losses
    layer(x, training=True)
    router, shares, means = weights_of(layer)["router"], np.zeros(4), np.zeros(4)
    for token in x.reshape(-1, 6):
        chosen, _ = routed(token, router, 2, False)
        shares[chosen] += 0.1
        everyone, probabilities = routed(token, router, 4, False)
        means[everyone] += 0.1 * probabilities
    (loss,) = layer.losses
    assert float(numpy(loss)) == pytest.approx(0.5 * 4 * (shares * means).sum(), rel=1e-5)


def test_training_balances_the_experts(rng):
    """At first all tokens use the same two experts."""
    x = rng.standard_normal((8, 4, 6)).astype("float32")
    x[..., 0] = 1
    layer = MixtureOfExperts(10, 4, experts_per_token=1, balance_loss=1.0)
    model = keras.Sequential([keras.Input((None, 6)), layer])
    router = np.zeros((6, 4), "float32")
    router[0] = [2, 0, 0, 0]
    layer.router.assign(router)
    model.compile(keras.optimizers.Adam(0.05), "mse")
    before, *_, after = model.fit(x, x, epochs=20, batch_size=8, verbose=0).history["loss"]
    chosen = np.argmax(x @ numpy(layer.router), axis=-1)
    assert after < before and len(np.unique(chosen)) > 1


def test_an_expert_begins_as_a_feed_forward_does():
    """Each matrix has Glorot's variance, 2 / (D + F), whatever the number of experts."""
    layer = MixtureOfExperts(60, 16)
    layer.build((None, None, 40))
    assert numpy(layer.hidden).std() == pytest.approx((2 / 100) ** 0.5, rel=0.03)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("options", [{"gated": True}, {"dtype": "mixed_bfloat16"}])
def test_round_trips(rng, round_trips, options):
    layer = MixtureOfExperts(10, 3, "gelu_tanh", name="experts", **options)
    round_trips(layer, x=rng.standard_normal((2, 5, 6)).astype("float32"))


@pytest.mark.once("a check of a value")
def test_no_blocks_of_4_bits():
    with in_blocks("q4"), pytest.raises(ValueError, match="precision must be one of floats: exp"):
        MixtureOfExperts(64, 2).build((None, None, 64))
