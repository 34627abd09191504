"""Files of images, and moved images."""

import gzip
import io
import tarfile

import numpy as np
import pytest

from keras_transformer.data.images import batches, moved, read_idx, read_image_archive


def idx(array):
    sizes = np.array(array.shape, ">i4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


@pytest.mark.parametrize("name,pack", [("a.gz", gzip.compress), ("a", bytes)])
def test_idx(rng, tmp_path, name, pack):
    array = rng.integers(0, 256, (3, 4, 5)).astype("uint8")
    (tmp_path / name).write_bytes(pack(idx(array)))
    np.testing.assert_array_equal(read_idx(tmp_path / name), array)


@pytest.mark.parametrize(
    "data,message",
    [
        (b"PNG", "a is no idx file of unsigned bytes"),
        (idx(np.zeros(9, "uint8"))[:-1], "a must hold 9 values, got 8"),
    ],
)
def test_no_idx(tmp_path, data, message):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_idx(tmp_path / "a")


def archive(path, images):
    from PIL import Image

    with tarfile.open(path, "w:gz") as tar:
        for name, pixels in images.items():
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            member = tarfile.TarInfo(name)
            member.size = file.tell()
            file.seek(0)
            tar.addfile(member, file)
    return path


def test_archive(rng, tmp_path):
    first, second, third = rng.integers(0, 256, (3, 4, 6, 3)).astype("uint8")
    images = {"train/dog/1.png": first, "train/cat/1.png": second, "train/dog/2.png": third}
    found, labels, classes = read_image_archive(archive(tmp_path / "a.tar.gz", images))
    np.testing.assert_array_equal(found, [first, second, third])
    assert labels.tolist() == [1, 0, 1] and classes == ["cat", "dog"]


def test_empty_archive(tmp_path):
    with pytest.raises(ValueError, match="a.tar.gz holds no images"):
        read_image_archive(archive(tmp_path / "a.tar.gz", {}))


def test_moved(rng):
    images = rng.standard_normal((40, 5, 4, 2))
    found = moved(images, rng, 1, flip=True)
    shapes = set()
    for before, after in zip(images, found, strict=True):
        padded = np.pad(before, ((1, 1), (1, 1), (0, 0)), mode="edge")
        places = [
            (down, right, step)
            for down in range(3)
            for right in range(3)
            for step in (1, -1)
            if np.array_equal(padded[down : down + 5, right : right + 4][:, ::step], after)
        ]
        shapes.add(*places)
    assert len(shapes) > 10
    np.testing.assert_array_equal(moved(images, rng, 0), images)


def test_each_pass_has_all():
    images, labels = np.arange(10.0).reshape(10, 1, 1, 1), np.arange(10)
    made = batches(images, labels, 5, seed=1)
    passes = [np.concatenate([next(made)[1] for _ in range(2)]) for _ in range(2)]
    for found in passes:
        assert sorted(found) == list(range(10))
    assert passes[0].tolist() != passes[1].tolist()
    pixels, numbers = next(batches(images, labels, 5, seed=1))
    np.testing.assert_array_equal(pixels[:, 0, 0, 0], numbers)
