"""The tensors of a checkpoint folder: whole, in shards, pickled, damaged."""

import json
import shutil

import numpy as np
import pytest
import torch
from keras import ops
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_tensors

from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.hub.tensors import Checkpoint
from tests.hub.families.parity import marian, pair_batch


@pytest.fixture
def folder(tmp_path):
    """A small Marian checkpoint, whole."""
    torch.manual_seed(0)
    marian(encoder_layers=1, decoder_layers=1).save_pretrained(tmp_path)
    return tmp_path


def logits(model):
    source, target = pair_batch(model.config)
    return ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))


@pytest.fixture
def small(tmp_path):
    """A folder with four tensors."""
    tensors = {f"layer.{i}.{x}": np.full(3, i, "float32") for i in (0, 1) for x in ("gamma", "w")}
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


@pytest.mark.once("arrays in files")
def test_a_prefix_is_added_where_no_name_has_it(small):
    plain, added = Checkpoint(small), Checkpoint(small, "model.")
    assert added.names() == {f"model.{name}" for name in plain.names()}
    assert Checkpoint(small, "layer.").names() == plain.names()
    np.testing.assert_array_equal(added.read("model.layer.1.w"), plain.read("layer.1.w"))


@pytest.mark.once("arrays in files")
def test_ends_of_names_are_replaced(small):
    found = Checkpoint(small, endings=[(".gamma", ".weight")])
    assert found.names() == {f"layer.{i}.{x}" for i in (0, 1) for x in ("weight", "w")}
    np.testing.assert_array_equal(found.read("layer.1.weight"), np.ones(3))


@pytest.mark.once("arrays in files")
def test_a_part_has_names_of_its_own(small):
    found = Checkpoint(small, part=[("layer.1.", "model."), ("layer.", "other.")])
    assert found.names() == {"model.gamma", "model.w", "other.0.gamma", "other.0.w"}
    np.testing.assert_array_equal(found.read("model.w"), np.ones(3))
    assert Checkpoint(small, part=[("layer.0.", "")]).names() == {"gamma", "w"}


@pytest.mark.once("arrays in files")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_floats_come_as_float32(tmp_path, dtype):
    values = np.array([0.5, -3.25, 1024.0], dtype)
    save_file({"x": values}, tmp_path / "model.safetensors")
    found = Checkpoint(tmp_path).read("x")
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, values)


@pytest.mark.once("arrays in files")
def test_a_file_is_preferred_to_a_pickle(small):
    torch.save({"other": torch.zeros(2)}, small / "pytorch_model.bin")
    assert "other" not in Checkpoint(small).names()
    (small / "model.safetensors").unlink()
    assert Checkpoint(small).names() == {"other"}


@pytest.mark.once("arrays in files")
def test_a_shard_outside_the_folder_is_not_read(small):
    (small / "inner").mkdir()
    places = {"weight_map": {"layer.0.w": "../model.safetensors"}}
    (small / "inner" / "model.safetensors.index.json").write_text(json.dumps(places))
    with pytest.raises(FileNotFoundError, match=r"shard \.\./model\.safetensors is missing"):
        Checkpoint(small / "inner")


def test_shards_and_pickles_hold_the_same(folder, tmp_path_factory):
    expected = logits(read_model(folder))
    tensors = load_file(folder / "model.safetensors")
    pickled = tmp_path_factory.mktemp("pickled")
    shutil.copy(folder / "config.json", pickled)
    weights = {name: torch.tensor(value) for name, value in tensors.items()}
    for archive in (True, False):  # the second as PyTorch before 1.6 wrote them
        path = pickled / "pytorch_model.bin"
        torch.save(weights, path, _use_new_zipfile_serialization=archive)
        np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    path.unlink()
    places = {}
    for i, part in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        places |= dict.fromkeys(part, f"pytorch_model-{i}.bin")
        torch.save({name: weights[name] for name in part}, pickled / f"pytorch_model-{i}.bin")
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    names = sorted(tensors)
    parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / shard)
    places = {name: shard for shard, part in parts.items() for name in part}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(logits(read_model(folder)), expected)
    places["of_nobody"] = "two.safetensors"
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(ValueError, match="two.safetensors lacks of_nobody, which the index lists"):
        read_model(folder)
    (folder / "two.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="its shard two.safetensors is missing"):
        read_model(folder)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8", "float8_e4m3fn"])
def test_weights_that_are_no_floats(folder, kind, pickled):
    """Without scales these are no weights, whatever the config says."""
    path, name = folder / "model.safetensors", "model.encoder.layers.0.fc1.weight"
    tensors = {x: torch.tensor(y) for x, y in load_file(path).items()}
    tensors[name] = tensors[name].to(getattr(torch, kind))
    tensors["model.encoder.embed_positions.weight"] = torch.zeros(3, dtype=torch.int64)  # unused
    if pickled:
        path.unlink()
        path = folder / "pytorch_model.bin"
        torch.save(tensors, path)
    else:
        save_tensors(tensors, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=f"{name} in .*{path.name} must hold floats of 16 bits or"):
        read_model(folder)


def test_broken_files(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        read_model(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        read_model(folder)
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="pytorch_model.bin cannot be read"):
        read_model(folder)


@pytest.mark.parametrize(
    "content,message",
    [
        ([torch.zeros(2)], "must hold a dict of tensors, got a list"),
        (torch.zeros(2), "must hold a dict of tensors, got a Tensor"),
        ({"model": {"x": torch.zeros(2)}}, "must hold a dict of tensors: 'model' is a dict"),
    ],
    ids=["list", "tensor", "nested"],
)
def test_a_pickle_of_something_else(folder, content, message):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=f"pytorch_model.bin {message}"):
        read_model(folder)


def test_an_index_that_names_no_file(folder):
    (folder / "model.safetensors").unlink()
    places = {"weight_map": {"x": ["y"]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))
    with pytest.raises(ValueError, match=r"weight_map in .*index.json must name files, got \['y'"):
        read_model(folder)


@pytest.mark.once("arrays in files")
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pickled", [False, True])
def test_numbers_that_are_none(tmp_path, wrong, pickled):
    values = np.array([0.5, wrong, 2.0, wrong], "float16")
    good = np.zeros(0, "float16")
    if pickled:
        tensors = {"x.y": torch.tensor(values).bfloat16(), "good": torch.tensor(good)}
        torch.save(tensors, tmp_path / "pytorch_model.bin")
    else:
        save_file({"x.y": values, "good": good}, tmp_path / "model.safetensors")
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.read("good").size == 0
    with pytest.raises(ValueError, match=r"x.y in .*model.* holds 2 numbers that are NaN or inf"):
        checkpoint.read("x.y")
