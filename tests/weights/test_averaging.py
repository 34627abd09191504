"""The mean of checkpoints: by hand, in any order, of any precision, and what is refused."""

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_transformer.weights import average, average_weights, save_weights


def checkpoint(folder, **weights):
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / "weights.safetensors", weights)
    return folder


def test_mean_of_each_weight(tmp_path):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 4, 5)).astype("float32").astype("float64")
    paths = [
        checkpoint(tmp_path / f"{i}", kernel=w.astype("float32"), bias=w[0].astype("float32"))
        for i, w in enumerate(weights)
    ]
    mean = average_weights(paths)
    np.testing.assert_allclose(mean["kernel"], weights.mean(0), rtol=1e-6)
    np.testing.assert_allclose(mean["bias"], weights[:, 0].mean(0), rtol=1e-6)
    assert mean["kernel"].dtype == "float32"


def test_one_checkpoint_is_its_own_mean(tmp_path):
    values = np.random.default_rng(0).normal(size=100).astype("float32")
    path = checkpoint(tmp_path, kernel=values)
    np.testing.assert_array_equal(average_weights([path])["kernel"], values)
    np.testing.assert_array_equal(average_weights([path] * 7)["kernel"], values)


def test_sums_in_double_precision(tmp_path):
    # In float32 the sum would end at 2**24, to which adding 1 changes nothing.
    big = checkpoint(tmp_path / "big", kernel=np.float32([2**24]))
    small = checkpoint(tmp_path / "small", kernel=np.float32([1]))
    mean = average_weights([big] + [small] * 63)["kernel"]
    np.testing.assert_array_equal(mean, np.float32([(2**24 + 63) / 64]))


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16])
def test_keeps_the_precision(tmp_path, dtype):
    paths = [
        checkpoint(tmp_path / str(value), kernel=np.array([value, -value], dtype))
        for value in (1, 2)
    ]
    mean = average_weights(paths)["kernel"]
    assert mean.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(mean.astype("float32"), [1.5, -1.5])


def test_writes_a_file_that_may_be_one_of_its_sources(tmp_path):
    paths = [checkpoint(tmp_path / str(v), kernel=np.float32([v])) for v in (1, 3)]
    files = [path / "weights.safetensors" for path in paths]
    average(paths, tmp_path / "new" / "mean.safetensors")
    assert load_file(tmp_path / "new" / "mean.safetensors")["kernel"] == [2]
    average(files, files[0])
    assert load_file(files[0])["kernel"] == [2]


def test_refuses_no_paths_and_one_path(tmp_path):
    with pytest.raises(ValueError, match="at least one checkpoint"):
        average_weights([])
    path = checkpoint(tmp_path, kernel=np.float32([1]))
    for one in (path, str(path)):
        with pytest.raises(ValueError, match="list of paths"):
            average_weights(one)


def test_refuses_checkpoints_that_differ(tmp_path):
    one = checkpoint(tmp_path / "one", a=np.zeros(2), b=np.zeros(2))
    other_names = checkpoint(tmp_path / "names", a=np.zeros(2), c=np.zeros(2))
    with pytest.raises(ValueError, match=r"names does not fit.*missing: b; unexpected: c"):
        average_weights([one, other_names])
    # (2,) and (1,) would broadcast silently.
    other_shape = checkpoint(tmp_path / "shape", a=np.zeros(1), b=np.zeros(2))
    with pytest.raises(ValueError, match=r"shape does not fit.*a \(1,\) instead of \(2,\)"):
        average_weights([one, other_shape])


def test_refuses_what_is_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors"):
        average_weights([tmp_path])
    broken = tmp_path / "weights.safetensors"
    broken.write_bytes(b"no safetensors")
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        average_weights([broken])
