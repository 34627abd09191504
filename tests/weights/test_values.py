"""Arrays that several processes wrote in slices."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_transformer.weights import read_weights, save_weights
from keras_transformer.weights.values import METADATA, Values, file_of, index_of, key_of

X = np.arange(24.0).reshape(4, 6)


@pytest.fixture
def path(tmp_path):
    """A file of which process 0 wrote the left half of `x` and all of `y`, process 1 the rest."""
    path = tmp_path / "weights.safetensors"
    save_weights(
        file_of(path, 0), {key_of("x", (0, 0)): X[:, :3], key_of("y", ()): np.float32(7.0)}
    )
    save_weights(file_of(path, 1), {key_of("x", (0, 3)): X[:2, 3:], key_of("x", (2, 3)): X[2:, 3:]})
    index = {
        "x": {"shape": [4, 6], "slices": [[0, [0, 0]], [1, [0, 3]], [1, [2, 3]]]},
        "y": {"shape": [], "slices": [[0, []]]},
    }
    index_of(path).write_text(json.dumps(METADATA | {"arrays": index}))
    return path


def test_whole_arrays_and_parts(path):
    values = Values(path)
    assert values.shapes == {"x": (4, 6), "y": ()}
    np.testing.assert_array_equal(values.read("x"), X)
    assert values.read("y") == 7.0
    for index in [np.s_[1:3, 2:5], np.s_[:, 3:], np.s_[3:4, 0:1], np.s_[0:2, :]]:
        np.testing.assert_array_equal(values.read("x", index), X[index])
    np.testing.assert_array_equal(read_weights(path)["x"], X)
    np.testing.assert_array_equal(read_weights(path.parent)["x"], X)


def test_a_plain_file(tmp_path):
    save_weights(tmp_path / "plain.safetensors", {"x": X})
    values = Values(tmp_path / "plain.safetensors")
    np.testing.assert_array_equal(values.read("x", np.s_[1:2, :]), X[1:2])


def test_a_slice_that_is_missing(path):
    index = json.loads(index_of(path).read_text())
    index["arrays"]["x"]["slices"].pop()
    index_of(path).write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"weights.slices.json names no slices for all of x"):
        Values(path).read("x")
    np.testing.assert_array_equal(Values(path).read("x", np.s_[:2, :]), X[:2])


def test_files_that_are_missing_or_broken(path):
    file_of(path, 1).write_bytes(b"no")
    with pytest.raises(ValueError, match=r"weights.00001.safetensors is not a complete"):
        Values(path).read("x")
    file_of(path, 1).unlink()
    with pytest.raises(FileNotFoundError, match="there is no weights file .*00001"):
        read_weights(path)
    index_of(path).write_text('{"x": 3}')
    with pytest.raises(ValueError, match="is not an index of slices"):
        Values(path)
    index_of(path).unlink()
    with pytest.raises(FileNotFoundError, match="there is no weights file"):
        Values(path)


def test_another_format(path, tmp_path):
    index = json.loads(index_of(path).read_text())
    (name,) = METADATA
    index_of(path).write_text(json.dumps(index | {name: "99"}))
    with pytest.raises(ValueError, match=f"{name} of .*weights.safetensors must be '2': .*'99'"):
        Values(path)
    plain = tmp_path / "plain.safetensors"
    save_file({"x": X}, plain, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="'2': another version or another program wrote it"):
        read_weights(plain)
    np.testing.assert_array_equal(read_weights(plain, foreign=True)["x"], X)
