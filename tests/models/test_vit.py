"""ViT: what `transformers` computes, we compute; other sizes; what is refused."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file, save_file

from keras_transformer import adam
from keras_transformer.checkpoints.hugging_face import read_model, write_model
from keras_transformer.layers import resized_positions
from keras_transformer.models import ViT, ViTConfig, resized

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24)
SIZES |= dict(image_size=16, patch_size=4, num_labels=5)
MODELS = {
    "plain": {},
    "no-qkv-bias": dict(qkv_bias=False),
    "one-channel": dict(num_channels=1, num_labels=2, patch_size=8, hidden_act="gelu_new"),
    "wide": dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=2, image_size=[8, 16]),
}
CONFIG = ViTConfig(3, image_size=8, patch_size=4, d_model=8, num_layers=1, num_heads=2)


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(**SIZES | MODELS[request.param])
    theirs = transformers.ViTForImageClassification(config).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            weight.normal_(float("norm" in name and name.endswith("weight")), 0.3)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def images(config, seed=0):
    shape = (2, *config.image_size, config.num_channels)
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def expected(theirs, pixels, **options):
    with torch.no_grad():
        pixels = torch.tensor(pixels).permute(0, 3, 1, 2)
        hidden = theirs.vit(pixels, **options).last_hidden_state
        return hidden.numpy(), theirs(pixels, **options).logits.numpy()


def assert_equal(ours, pixels, hidden, logits):
    found = ops.convert_to_numpy(ours.hidden(ops.convert_to_tensor(pixels)))
    np.testing.assert_allclose(found, hidden, atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(ops.convert_to_numpy(ours(pixels)), logits, atol=1e-4, rtol=1e-4)


def test_hidden_states_and_logits(pair):
    theirs, _, ours = pair
    pixels = images(ours.config)
    assert_equal(ours, pixels, *expected(theirs, pixels))


@pytest.mark.parametrize("size", [24, (32, 16), 8])
def test_other_image_sizes(pair, size):
    theirs, _, ours = pair
    if isinstance(theirs.config.image_size, list | tuple):
        pytest.skip("`transformers` interpolates square positions alone")
    other = resized(ours, size)
    pixels = images(other.config)
    hidden, logits = expected(theirs, pixels, interpolate_pos_encoding=True)
    assert_equal(other, pixels, hidden, logits)


def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours)
    before, after = (load_file(x / "model.safetensors") for x in (folder, tmp_path))
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    again = type(theirs).from_pretrained(tmp_path).eval()
    pixels = images(ours.config)
    np.testing.assert_array_equal(expected(again, pixels)[1], expected(theirs, pixels)[1])


def test_number_of_classes_and_what_no_model_reads(pair, tmp_path):
    theirs, folder, _ = pair
    config = json.loads((folder / "config.json").read_text())
    config.pop("id2label", None)
    config["num_labels"] = theirs.config.num_labels
    tensors = load_file(folder / "model.safetensors")
    tensors["vit.pooler.dense.weight"] = np.zeros((2, 2), "float32")
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors")
    assert read_model(tmp_path).config.num_classes == theirs.config.num_labels


def test_same_size_changes_no_position(rng):
    positions = rng.standard_normal((7, 4))
    np.testing.assert_allclose(resized_positions(positions, (2, 3), (2, 3)), positions)


def test_saved_and_loaded(saved_and_loaded, randomize):
    model = randomize(ViT(CONFIG))
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    pixels = images(CONFIG)
    found, before = (ops.convert_to_numpy(x(pixels)) for x in (again, model))
    np.testing.assert_allclose(found, before, atol=1e-6)


def test_trains_in_mixed_precision():
    model = ViT(dataclasses.replace(CONFIG, dropout=0.1), dtype="mixed_bfloat16")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam(1e-2), loss)
    losses = model.fit(images(CONFIG), np.array([0, 2]), epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("shape", [(2, 9, 8, 3), (2, 8, 8, 1), (2, 3, 8, 8)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"images must be \(batch, 8, 8, 3\), got \(2, "):
        ViT(CONFIG)(np.zeros(shape, "float32"))


CASES = {
    "num_classes": 0, "image_size": 9, "patch_size": 0, "num_channels": 0, "d_model": 0,
    "d_ff": 1.5, "num_layers": 0, "num_heads": -1, "dropout": 1.0, "activation": "mish",
    "epsilon": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {CASES[name]!r}"):
        dataclasses.replace(CONFIG, **{name: CASES[name]})
