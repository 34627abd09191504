"""LoRA and 8-bit weights: what they change, what they leave, and how they are kept."""

import keras
import numpy as np
import pytest

from keras_transformer import LabelSmoothedCrossentropy, adam
from keras_transformer.models import T5, T5Config, enable_lora, merged
from tests.backends import cases
from tests.tiny import tiny

BATCH = {
    "source_ids": np.array([[4, 5, 6, 3], [7, 8, 3, 0]], "int32"),
    "target_ids": np.array([[2, 9, 10, 11], [2, 12, 4, 0]], "int32"),
}
LABELS = np.array([[9, 10, 11, 3], [12, 4, 3, 0]], "int32")


def logits(model):
    return keras.ops.convert_to_numpy(keras.ops.cast(model(BATCH), "float32"))


def small_t5(randomize):
    sizes = dict(d_model=8, d_ff=12, num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    config = T5Config(vocab_size=13, head_dim=4, pad_id=0, bos_id=2, eos_id=3, **sizes)
    return randomize(T5(config))


def trained(model, steps=3):
    model.compile(adam(1e-2), LabelSmoothedCrossentropy(pad_id=0))
    model.fit(BATCH, LABELS, epochs=steps, verbose=0)
    return model


def test_lora_begins_as_the_model_was(tiny_transformer):
    model = tiny_transformer(tie_output=False)
    before = logits(model)
    enable_lora(model, rank=2)
    np.testing.assert_allclose(logits(model), before, atol=1e-6)
    names = {weight.name for weight in model.trainable_weights}
    assert names == {"lora_kernel_a", "lora_kernel_b"}
    # query_key_value, output and two of the feed-forward in the encoder's block; the decoder's two
    # have a query, a key_value and an output more; nothing of what makes logits.
    assert len(model.trainable_weights) == 2 * (4 + 2 * 7)


@pytest.mark.parametrize("kind", cases(["transformer", "t5"], "t5"))
def test_lora_trains_alone_and_merges(kind, tiny_transformer, randomize):
    model = tiny_transformer() if kind == "transformer" else small_t5(randomize)
    enable_lora(model, rank=2, alpha=4)
    before = {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}
    first = logits(model)
    trained(model)
    for weight in model.weights:
        same = np.array_equal(before[weight.path], keras.ops.convert_to_numpy(weight))
        assert same == ("lora_kernel" not in weight.name), weight.path
    plain = merged(model)
    np.testing.assert_allclose(logits(plain), logits(model), atol=1e-5)
    assert np.abs(logits(plain) - first).max() > 1e-3
    assert not any("lora" in weight.path for weight in plain.weights)
    assert all(weight.trainable for weight in plain.weights if "seed" not in weight.path)


@pytest.mark.once("made of parts that are tested under each backend")
def test_experts_and_their_router_are_frozen():
    model = tiny("mixture")
    enable_lora(model, rank=2)
    layers = {weight.path.split("/")[-2] for weight in model.trainable_weights}
    assert layers == {"query_key_value", "output"}
    ids = {"token_ids": BATCH["source_ids"]}
    plain, tuned = (keras.ops.convert_to_numpy(x(ids)) for x in (merged(model), model))
    np.testing.assert_allclose(plain, tuned, atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_lora_of_bad_input(tiny_transformer):
    model = tiny_transformer()
    with pytest.raises(ValueError, match="rank must be a whole number of at least 1, got 0"):
        enable_lora(model, 0)
    enable_lora(model, 2)
    with pytest.raises(ValueError, match="this one has LoRA already"):
        enable_lora(model, 2)
    model = tiny_transformer()
    model.quantize("int8")
    with pytest.raises(ValueError, match="this one has quantized weights"):
        enable_lora(model, 2)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("kind", cases(["transformer", "untied", "t5"], "untied"))
def test_int8_is_close_and_small(kind, tiny_transformer, randomize, saved_and_loaded):
    if kind == "t5":
        model = small_t5(randomize)
    else:
        model = tiny_transformer(scale=1.0, tie_output=kind == "transformer")
    before = logits(model)
    model.quantize("int8")
    close = logits(model)
    assert 0 < np.abs(close - before).max() < 0.15 * np.abs(before).max()
    kinds = {keras.backend.standardize_dtype(w.dtype) for w in model.weights if w.ndim == 2}
    assert "int8" in kinds
    again = saved_and_loaded(model)
    assert again.quantization == "int8"
    np.testing.assert_allclose(logits(again), close, atol=1e-6)


def test_int8_computes_what_keras_computes(tiny_transformer):
    """Without gradients PyTorch's CPU takes a way of its own; with them all take Keras's."""
    layer = tiny_transformer().encoder.blocks[0].feed_forward.hidden
    layer.quantize("int8")
    x = np.random.default_rng(0).standard_normal((2, 3, 6)).astype("float32")
    x[0, 1] = 0.0
    x = keras.ops.convert_to_tensor(x)
    plain = keras.ops.convert_to_numpy(keras.layers.Dense.quantized_call(layer, x))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(keras.ops.stop_gradient(layer(x))), plain, atol=1e-6
    )
    if keras.backend.backend() == "torch":
        import torch

        with torch.no_grad():
            np.testing.assert_allclose(layer(x).numpy(), plain, atol=1e-5)
