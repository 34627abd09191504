"""Models with 8-bit weights, and the float models that they become."""

import keras
import numpy as np
import pytest

from keras_transformer.models import BERT, BERTConfig, Transformer, widened
from tests.backends import cases

BATCH = {
    "source_ids": np.array([[4, 5, 6, 3], [7, 8, 3, 0]], "int32"),
    "target_ids": np.array([[2, 9, 10, 11], [2, 12, 4, 0]], "int32"),
}


def logits(model, batch=BATCH):
    return keras.ops.convert_to_numpy(keras.ops.stop_gradient(model(batch)))


@pytest.fixture(params=cases(["tied", "untied", "learned"], "untied"))
def model(request, tiny_transformer):
    options = {"untied": dict(tie_output=False), "learned": dict(positions="learned")}
    return tiny_transformer(scale=1.0, **options.get(request.param, {}))


@pytest.mark.once("made of parts that are tested under each backend")
def test_with_remainders_it_is_far_nearer(model):
    exact = logits(model)
    rough, fine = (Transformer.from_config(model.get_config()) for _ in range(2))
    for copy in (rough, fine):
        copy.set_weights(model.get_weights())
    rough.quantize("int8")
    fine.quantize("int8", remainders=True)
    errors = [np.abs(logits(widened(copy)) - exact).max() for copy in (rough, fine)]
    assert 0 < 5 * errors[1] < errors[0]


@pytest.mark.parametrize("remainders", cases([False, True], True))
def test_it_becomes_floats_and_eight_bits_again(model, remainders, saved_and_loaded):
    model.quantize("int8", remainders=remainders)
    loaded = saved_and_loaded(model)
    assert (loaded.quantization, loaded.has_remainders) == ("int8", remainders)
    floats = widened(loaded)
    assert (floats.quantization, floats.saved_quantization) == (None, "int8")
    assert not any(layer.quantization_mode for layer in floats.layers)
    np.testing.assert_allclose(logits(floats), logits(widened(model)), atol=1e-6)
    again = Transformer.from_config(floats.get_config())
    again.set_weights(floats.get_weights())
    again.quantize("int8", remainders=True)
    np.testing.assert_allclose(logits(widened(again)), logits(floats), atol=1e-4)


def test_a_family_with_layers_of_keras(randomize):
    sizes = dict(d_model=8, d_ff=12, num_layers=1, num_heads=2, max_length=9)
    model = randomize(BERT(BERTConfig(11, **sizes)))
    batch = {"token_ids": np.array([[4, 5, 6]], "int32")}
    before = logits(model, batch)
    model.quantize("int8", remainders=True)
    np.testing.assert_allclose(logits(widened(model), batch), before, atol=0.01)


def test_only_int8_has_remainders(tiny_transformer):
    message = "mode must be 'int8', which alone has remainders, got 'int4'"
    with pytest.raises(ValueError, match=message):
        tiny_transformer().quantize("int4", remainders=True)
