"""DINOv2 of `transformers`: the same outputs at any size, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import ViT, ViTConfig, resized
from tests.backends import cases
from tests.hub.families.parity import configure, fill

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2)
SIZES |= dict(image_size=20, patch_size=4, num_labels=5)
MODELS = {
    "plain": dict(layerscale_value=0.1),
    "gated": dict(use_swiglu_ffn=True, qkv_bias=False),
    "registers": dict(num_register_tokens=3),
    "bare": dict(use_mask_token=False),
}


@pytest.fixture(scope="module", params=cases(MODELS, "gated", "registers"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    name = "Dinov2WithRegisters" if request.param == "registers" else "Dinov2"
    end = "Model" if request.param == "bare" else "ForImageClassification"
    config = getattr(transformers, f"{name}Config")(**SIZES | MODELS[request.param])
    theirs = getattr(transformers, f"{name}{end}")(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def images(config):
    shape = (2, *config.image_size, config.num_channels)
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def assert_equal(ours, theirs):
    pixels = images(ours.config)
    with torch.no_grad():
        inputs = torch.tensor(pixels).permute(0, 3, 1, 2)
        expected = theirs.base_model(inputs).last_hidden_state, theirs(inputs)[0]
    found = ours.hidden(ops.convert_to_tensor(pixels)), ours(pixels)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(mine), other, atol=1e-4, rtol=1e-4)


# Positions are fewer, more, and not square.
@pytest.mark.parametrize("size", [20, 12, 32, (16, 24)])
def test_hidden_states_and_logits_at_any_size(pair, size):
    theirs, _, ours = pair
    assert_equal(ours if size == 20 else resized(ours, size), theirs)


@pytest.mark.once("weights are read and written as arrays")
def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours)
    before, after = (load_file(x / "model.safetensors") for x in (folder, tmp_path))
    prefix = "" if hasattr(theirs, "classifier") else "dinov2."  # a bare model has none
    unused = {name for name in before if name.endswith("mask_token")}
    assert {name.removeprefix(prefix) for name in after} == before.keys() - unused
    for name, value in after.items():
        np.testing.assert_array_equal(before[name.removeprefix(prefix)], value)
    again = type(theirs).from_pretrained(tmp_path).eval()
    assert_equal(ours, again)
    assert again.config.layerscale_value == theirs.config.layerscale_value


@pytest.mark.once("names")
def test_newer_names_and_what_is_refused(pair, tmp_path):
    theirs, _, ours = pair
    if theirs.config.use_swiglu_ffn:
        pytest.skip("its newer names divide a weight")
    theirs.save_pretrained(tmp_path, save_original_format=False)
    for one, two in zip(ours.weights, read_model(tmp_path).weights, strict=True):
        np.testing.assert_array_equal(*map(ops.convert_to_numpy, (one, two)))
    configure(tmp_path, architectures=["Dinov2Backbone"])
    with pytest.raises(ValueError, match="architectures must be one of .*, got 'Dinov2Backbone'"):
        read_model(tmp_path)
    configure(tmp_path, architectures=None)
    assert read_model(tmp_path).config == ours.config
    configure(tmp_path, image_size=[20, 16])
    with pytest.raises(ValueError, match=r"image_size must be one number, got \[20, 16\]"):
        read_model(tmp_path)


@pytest.mark.once("configs")
@pytest.mark.parametrize(
    "changes,said",
    [
        (dict(layer_scale=None), "dinov2: layer_scale must be a number, got None"),
        (dict(pooling="class"), "dinov2: it would be read back with pooling='class_and_mean'"),
        (dict(num_registers=2), "dinov2: it would be read back with num_registers=0"),
        (dict(image_size=(8, 16)), r"dinov2: image_size must be one number, got \[8, 16\]"),
    ],
)
def test_what_no_checkpoint_can_hold(changes, said, tmp_path):
    sizes = dict(image_size=8, patch_size=4, d_model=8, num_layers=1, num_heads=2)
    dino = dict(layer_scale=1.0, pooling="class_and_mean")
    model = ViT(ViTConfig(3, **sizes | dino | changes))
    with pytest.raises(ValueError, match=said):
        write_model(tmp_path, model, "dinov2")
