"""An adapter's file, written and read, and the weights that it does not fit."""

import numpy as np
import pytest

from keras_transformer.models import enable_lora
from keras_transformer.weights import read_weights, save_weights, weights_of
from keras_transformer.weights.adapters import ADAPTER, SAMPLES, Adapter
from tests.tiny import tiny

FACTS = dict(rank=2, alpha=3)


@pytest.fixture(scope="module")
def model():
    model = tiny("bert")
    enable_lora(model, **FACTS, whole={"output_bias/bias"})
    return model


def shapes_of(model):
    return {weight.path: tuple(weight.shape) for weight in model.weights}


def test_it_is_written_and_read(model, tmp_path):
    adapter = Adapter.of(model)
    adapter.write(tmp_path / ADAPTER)
    again = Adapter.read(tmp_path, FACTS)
    assert (again.rank, again.alpha) == (2, 3)
    assert list(again.whole) == ["output_bias/bias"]
    values = weights_of(model)
    lora = {name for name in values if "lora" in name}
    assert len(lora) == 2 * len(again.products) > 0
    for path, pair in again.products.items():
        for value, side in zip(pair, "ab", strict=True):
            own = values[f"{path.removesuffix('kernel')}lora_kernel_{side}"]
            np.testing.assert_array_equal(value, own)
    size = sum(values[name].size for name in (*lora, "output_bias/bias"))
    assert Adapter.size_of(tmp_path) == size < sum(x.size for x in values.values()) / 2
    # The base is recognized by some values of each other weight, the first and the last included.
    others = sorted(values.keys() - lora - {"output_bias/bias"})
    assert again.base.shape == (len(others), SAMPLES)
    ends = [(values[path].flat[0], values[path].flat[-1]) for path in others]
    np.testing.assert_array_equal(again.base[:, [0, -1]], ends)


def test_the_value_of_a_weight():
    base = {"x/kernel": np.ones((2, 3), "float32"), "y/bias": np.full(2, 7, "float32")}
    a, b = np.array([[1.0], [2.0]], "float32"), np.array([[1.0, 0.0, -1.0]], "float32")
    adapter = Adapter({"x/kernel": (a, b)}, {"z/bias": np.zeros(1)}, np.zeros((1, SAMPLES)), 1, 0.5)
    expected = [[1.5, 1.0, 0.5], [2.0, 1.0, 0.0]]
    np.testing.assert_array_equal(adapter.value("x/kernel", base), expected)
    assert adapter.value("z/bias", base) == 0 and adapter.value("y/bias", base)[0] == 7
    assert base["x/kernel"].max() == 1  # a copy was changed


def test_what_it_does_not_fit(model):
    adapter, base = Adapter.of(model), tiny("bert")
    weights = {weight.path: weight for weight in base.weights}
    with pytest.raises(ValueError, match="the values of .* are others than those it was trained"):
        adapter.check(weights, shapes_of(base))
    own = {path: value for path, value in weights_of(model).items() if "lora" not in path}
    adapter.check(own, shapes_of(base))
    adapter.check(own | {"output_bias/bias": None}, shapes_of(base))  # the adapter brings it
    rounded = {path: value.astype("float16") for path, value in own.items()}
    adapter.check(rounded, shapes_of(base))
    path = next(iter(own))
    with pytest.raises(ValueError, match=f"the base's shape of {path} must be .*, got None"):
        adapter.check({x: y for x, y in own.items() if x != path}, shapes_of(base))
    wide = tiny("bert", d_ff=40)
    with pytest.raises(ValueError, match=r"shape of .*hidden/.* must be \(.*40.*\), got \(.*32"):
        adapter.check(own, shapes_of(wide))
    with pytest.raises(ValueError, match="it changes .*, which the model lacks"):
        adapter.check(own, {path: own[path].shape})
    with pytest.raises(ValueError, match="it was trained on .* other weights, not"):
        adapter.check(own | {"more": np.zeros(1)}, shapes_of(base) | {"more": (1,)})


def test_broken_files(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        Adapter.read(tmp_path, FACTS)
    adapter = Adapter.of(model)
    adapter.write(tmp_path / ADAPTER)
    arrays = read_weights(tmp_path / ADAPTER)
    name = next(name for name in arrays if name.endswith("lora_kernel_b"))
    for wrong, message in (
        ({x: y for x, y in arrays.items() if x != name}, "must be the two factors of a product"),
        (arrays | {name: arrays[name][:1]}, "must be the two factors of a product"),
        ({x: y for x, y in arrays.items() if x != "base"}, "must be an adapter, got .another file"),
        ({"base": arrays["base"]}, "must be an adapter, got .another file"),
    ):
        save_weights(tmp_path / ADAPTER, wrong)
        with pytest.raises(ValueError, match=message):
            Adapter.read(tmp_path, FACTS)
    with pytest.raises(ValueError, match="model must be a model with LoRA"):
        Adapter.of(tiny("bert"))
