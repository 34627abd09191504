"""Files of images, and moved images."""

import gzip
import io
import tarfile

import numpy as np
import pytest

from keras_transformer.data.images import batches, moved, read_digits, read_idx, read_image_archive


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
        (b"", "a is not an idx file of unsigned bytes"),
        (b"\0\0\x08\x03\0", "a is not an idx file of unsigned bytes"),
        (b"PNG", "a is not an idx file of unsigned bytes"),
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


def test_archives_of_something_else(tmp_path):
    path, pixels = tmp_path / "a.tar.gz", np.zeros((4, 6, 3), "uint8")
    archive(path, {"dog/1.png": pixels, "dog/2.png": pixels[:3]})
    with pytest.raises(ValueError, match=r"size of dog/2.png must be \(4, 6\), got \(3, 6\)"):
        read_image_archive(path)
    path.write_bytes(path.read_bytes()[:90])
    with pytest.raises(ValueError, match="a.tar.gz must be a complete tar file"):
        read_image_archive(path)
    with tarfile.open(path, "w") as tar:
        tar.addfile(tarfile.TarInfo("dog/notes.txt"))
    with pytest.raises(ValueError, match="dog/notes.txt must be an image"):
        read_image_archive(path)


@pytest.mark.parametrize(
    "images,labels,message",
    [
        ((3, 4), (3,), r"images must be \(N, height, width\), got \(3, 4\)"),
        ((3, 4, 4), (2,), r"labels must be \(3,\), one label per image, got \(2,\)"),
        ((1, 4, 4), (1,), "labels must be from 0 to 9, got 10"),
    ],
    ids=["shape", "number", "label"],
)
def test_digits_that_do_not_fit(tmp_path, images, labels, message):
    (tmp_path / "images").write_bytes(idx(np.zeros(images, "uint8")))
    (tmp_path / "labels").write_bytes(idx(np.full(labels, 10, "uint8")))
    with pytest.raises(ValueError, match=message):
        read_digits(tmp_path / "images", tmp_path / "labels")


def test_no_whole_batch():
    images, labels = np.zeros((3, 2, 2, 1)), np.zeros(3)
    with pytest.raises(ValueError, match="batch_size must be at most 3, .*, got 4"):
        batches(images, labels, 4)
    with pytest.raises(ValueError, match="labels must be 3, one per image, got 2"):
        batches(images, labels[:2], 2)
