"""ViT and DeiT of `transformers`: the same outputs at any size, and the same weights back."""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file, save_file

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import resized
from tests.backends import cases
from tests.hub.families.parity import configure, fill

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24)
SIZES |= dict(image_size=16, patch_size=4, num_labels=5)
MODELS = {
    "plain": {},
    "no-qkv-bias": dict(qkv_bias=False),
    "one-channel": dict(num_channels=1, num_labels=2, patch_size=8, hidden_act="gelu_new"),
    "deit": dict(qkv_bias=False, patch_size=8),
    "deit-teacher": dict(num_labels=3),
    "wide": dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=2, image_size=[8, 16]),
}


@pytest.fixture(scope="module", params=cases(MODELS, "one-channel", "deit-teacher"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    family = "DeiT" if request.param.startswith("deit") else "ViT"
    end = "WithTeacher" if request.param == "deit-teacher" else ""
    config = getattr(transformers, f"{family}Config")(**SIZES | MODELS[request.param])
    theirs = getattr(transformers, f"{family}ForImageClassification{end}")(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def images(config, seed=0):
    shape = (2, *config.image_size, config.num_channels)
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def expected(theirs, pixels, **options):
    with torch.no_grad():
        pixels = torch.tensor(pixels).permute(0, 3, 1, 2)
        hidden = theirs.base_model(pixels, **options).last_hidden_state
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


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A model without a classifier, its folder, and ours read from there."""
    torch.manual_seed(0)
    theirs = transformers.ViTModel(transformers.ViTConfig(**SIZES)).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("bare")
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def test_without_a_classifier(bare):
    theirs, _, ours = bare
    pixels = images(ours.config)
    with torch.no_grad():
        expected = theirs(torch.tensor(pixels).permute(0, 3, 1, 2)).last_hidden_state.numpy()
    assert ours.config.num_classes == 0
    np.testing.assert_allclose(ops.convert_to_numpy(ours(pixels)), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.once("weights are read and written as arrays")
def test_a_bare_model_in_both_forms(bare, tmp_path):
    """Everything but the pooler comes back; the newer names are read, too."""
    theirs, _, ours = bare
    write_model(tmp_path / "out", ours)
    again = transformers.ViTModel.from_pretrained(tmp_path / "out").state_dict()
    for name, value in theirs.state_dict().items():
        assert name.startswith("pooler.") or torch.equal(again[name], value), name
    theirs.save_pretrained(tmp_path / "new", save_original_format=False)
    assert "layers.0.mlp.fc1.weight" in load_file(tmp_path / "new" / "model.safetensors")
    for other in (tmp_path / "new", tmp_path / "out"):
        for one, two in zip(ours.weights, read_model(other).weights, strict=True):
            np.testing.assert_array_equal(*map(ops.convert_to_numpy, (one, two)))
    configure(tmp_path / "out", architectures=["ViTForMaskedImageModeling"])
    with pytest.raises(ValueError, match="architectures must be one of .*'ViTModel'.*, got 'ViTFo"):
        read_model(tmp_path / "out")
    configure(tmp_path / "out", architectures=None)
    assert read_model(tmp_path / "out").config == ours.config


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
