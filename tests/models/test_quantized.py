"""Models with 8-bit weights, and the float models that they become."""

import keras
import numpy as np
import pytest

from keras_transformer.layers.blocks import BLOCKS
from keras_transformer.layers.layer import skip_init
from keras_transformer.models import (
    BERT,
    GPT,
    BERTConfig,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    Transformer,
    enable_lora,
    narrowed,
    widened,
)
from keras_transformer.models.quantized import assign_matrices
from tests.backends import cases
from tests.tiny import tiny

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


def test_experts_stay_in_floats():
    message = "mode must be None for a model with num_experts, got 'int8'"
    for options in (dict(remainders=True), {}):
        with pytest.raises(ValueError, match=message):
            tiny("mixture").quantize("int8", **options)


LANGUAGE_MODELS = {
    "tied": (LLaMA, LLaMAConfig, dict(num_kv_heads=2, tie_output=True)),
    "untied": (LLaMA, LLaMAConfig, dict(tie_output=False, qkv_bias=True)),
    "gpt": (GPT, GPTConfig, dict()),
}
SIZES = dict(vocab_size=90, d_model=64, d_ff=128, num_layers=2, num_heads=4, max_length=48)
IDS = {"token_ids": np.random.default_rng(0).integers(4, 90, (2, 40)).astype("int32")}


def language_model(name, randomize):
    kind, config, options = LANGUAGE_MODELS[name]
    return randomize(kind(config(**SIZES, **options)))


@pytest.mark.parametrize("name", cases([*LANGUAGE_MODELS], "untied"))
@pytest.mark.parametrize("mode", BLOCKS)
def test_in_blocks_it_computes_as_the_floats_that_the_blocks_are(
    name, mode, randomize, saved_and_loaded
):
    model = language_model(name, randomize)
    small = narrowed(model, mode)
    matrices = {w.path: w.dtype for w in small.weights if w.path.endswith(("levels", "scales"))}
    assert {*matrices.values()} == {"uint8", "float16"}
    eight = {x.path for x in small._flatten_layers() if getattr(x, "bits", 0) == 8}
    assert ("output" in eight) == (name == "untied") and "embedding/tokens" in eight
    floats = widened(small)
    assert (floats.quantization, floats.saved_quantization) == (None, None)
    for ids in (IDS, {"token_ids": IDS["token_ids"][:1, :1]}):
        np.testing.assert_allclose(logits(small, ids), logits(floats, ids), atol=1e-4)
    error = np.abs(logits(small, IDS) - logits(model, IDS)).max()
    assert 0 < error < {"q4": 3.0, "q8": 0.3}[mode]
    loaded = saved_and_loaded(small)
    assert loaded.quantization == mode
    np.testing.assert_array_equal(logits(loaded, IDS), logits(small, IDS))


@pytest.mark.parametrize("mode", cases([*BLOCKS], "q4"))
def test_steps_are_near_the_whole_pass(mode, randomize):
    model = narrowed(language_model("tied", randomize), mode)
    ids = IDS["token_ids"][:1, :6]
    expected = logits(model, {"token_ids": ids})
    first, state, step = model.prefill(ids[:, :3], 6)
    steps = [first]
    for i in range(3, 6):
        result, state = step(ids[:, i : i + 1], state, i)
        steps.append(result[:, 0])
    steps = keras.ops.convert_to_numpy(keras.ops.stop_gradient(keras.ops.stack(steps, 1)))
    np.testing.assert_allclose(steps, expected[:, 2:], atol=0.1)


@pytest.mark.once("sizes are counted before any backend")
@pytest.mark.parametrize("mode", BLOCKS)
def test_it_is_never_in_floats(mode, randomize, tmp_path):
    model = language_model("untied", randomize)
    path = tmp_path / "model.keras"
    narrowed(model, mode).save(path)
    num_floats = sum(x.size for x in map(np.array, model.get_weights()))
    tables = 2 * SIZES["max_length"] * SIZES["d_model"]
    with skip_init(int(1.4 * num_floats if mode == "q8" else num_floats) + tables):
        keras.saving.load_model(path)
    with pytest.raises(ValueError, match="asks for much more"), skip_init(num_floats // 2):
        keras.saving.load_model(path)
    assert path.stat().st_size < {"q4": 2.0, "q8": 2.5}[mode] * num_floats


@pytest.mark.once("refused before any computing")
def test_it_cannot_be_trained(randomize):
    model = narrowed(language_model("tied", randomize), "q8")
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="in blocks of 4 or 8 bits cannot be trained"):
        model.fit(IDS, np.zeros((2, 40, 90), "float32"), verbose=0)
    with pytest.raises(ValueError, match="this one has quantized weights"):
        enable_lora(model, 2)


@pytest.mark.once("arrays")
def test_matrices_are_read_one_by_one(randomize):
    model = language_model("gpt", randomize)
    small, values = narrowed(model, "q8"), {weight.path: weight for weight in model.weights}
    asked = []

    def value_of(path, shape):
        asked.append(path)
        assert tuple(values[path].shape) == shape
        return values[path]

    assign_matrices(small, value_of)
    assert sorted(asked) == sorted(values)
